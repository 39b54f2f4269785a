"""Reading the HTML that reports hold with the standard library's parser, which shares nothing with
what wrote it."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_VOID = {"meta", "br", "input", "img", "link", "hr"}


@dataclass
class Element:
    """An element with its text, which includes that of its children."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    inside: tuple[str, ...] = ()


@dataclass
class Page(HTMLParser):
    """Every element of a page, in order; a tag that is not closed as it was opened is an error."""

    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @classmethod
    def of(cls, text: str) -> Page:
        page = cls()
        page.feed(text)
        page.close()
        assert not page._open, [element.tag for element in page._open]
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(
            tag,
            {name: value or "" for name, value in attrs},
            inside=tuple(e.tag for e in self._open),
        )
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, tag
        assert self._open[-1].tag == tag, (tag, [element.tag for element in self._open])
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements of a tag that have these attributes."""
        return [
            element
            for element in self.elements
            if element.tag == tag and attributes.items() <= element.attributes.items()
        ]


def session_data(page: Page) -> dict[str, Any]:
    """What the page says of its session, its rows among it."""
    [block] = page.all("script", id="session")
    data: dict[str, Any] = json.loads(block.text)
    return data


def listed_cases(page: Page) -> list[dict[str, Any]]:
    """The rows of the list, in its order."""
    rows: list[dict[str, Any]] = session_data(page)["cases"]
    return rows


def data_blocks(page: Page) -> dict[str, Any]:
    """The compressed blocks of the page, one for each run, by their ids."""
    blocks = {}
    for block in page.all("script", type="text/plain"):
        unpacked = zlib.decompress(base64.b64decode(block.text))
        blocks[block.attributes["id"]] = json.loads(unpacked)
    return blocks


def bodies(page: Page) -> dict[str, dict[str, Any]]:
    """What the page holds of each case, by the case's key."""
    cases = {}
    for block in data_blocks(page).values():
        for key, body in block["cases"].items():
            turns = body["turns"] and [block["pool"][place] for place in body["turns"]]
            cases[key] = {**body, "turns": turns}
    return cases

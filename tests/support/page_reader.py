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


def bodies(page: Page) -> dict[str, Any]:
    """What the data blocks of the source runs in an HTML report hold, by their ids."""
    blocks = page.all("script", type="text/plain")
    return {
        block.attributes["id"]: _unpacked(block)
        for block in blocks
        if block.text and block.attributes["id"] not in ("search", "rows")
    }


def listed_cases(page: Page) -> list[Any]:
    """The rows of an HTML report's list of cases, in its order."""
    [block] = page.all("script", id="rows")
    cases: list[Any] = _unpacked(block)["cases"]
    return cases


def _unpacked(block: Element) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(block.text)))

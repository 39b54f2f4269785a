"""What differs between a request of a judge's code and the recorded one that is most like it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from pytest_jrh.core.text import shortened
from pytest_jrh.recording.recorder import HttpRequest

_LONGEST = 120
_CONTEXT = 20
_MOST = 3
# In a path: a number, or a word that is an id by its length.
_ID = re.compile(r"\b(?:\d+|[\w-]{16,})\b")


class Change(NamedTuple):
    """A part of a request, such as a JSON pointer into its body, as it is recorded and now."""

    place: str
    recorded: str
    now: str

    def lines(self) -> list[str]:
        """The change in three lines, each value from where it begins to differ."""
        start = 0
        for old, new in zip(self.recorded, self.now, strict=False):
            if old != new:
                break
            start += 1
        start = max(0, start - _CONTEXT)
        values = [text[start:].replace("\n", " ") for text in (self.recorded, self.now)]
        before = "…" if start else ""
        recorded, now = (shortened(f"{before}{value}", _LONGEST) for value in values)
        return [f"{self.place}:", f"-{recorded}", f"+{now}"]


def changes(recorded: Sequence[HttpRequest], request: HttpRequest) -> list[Change] | None:
    """What differs from the recorded request to the same address that is most like it; None
    where there is no such request.
    """

    def address(each: HttpRequest) -> tuple[str, str]:
        return each.method, _ID.sub("#", urlsplit(each.uri).path)

    now = parts_of(request)
    alike = [parts_of(each) for each in recorded if address(each) == address(request)]
    if not alike:
        return None
    nearest = max(alike, key=lambda parts: len(parts.items() & now.items()))
    found: list[Change] = []
    for place in nearest | now:
        old, new = nearest.get(place, ""), now.get(place, "")
        if old != new:
            found.append(Change(place, old, new))
    return found


def change_lines(found: Sequence[Change] | None) -> str:
    """What differs, in a few lines."""
    if found is None:
        return "(no request to this address is recorded; another thread may have sent it)"
    lines: list[str] = []
    for change in found[:_MOST]:
        lines += change.lines()
    return "\n".join(lines) or "(equal to a recorded request that was asked fewer times)"


def parts_of(request: HttpRequest) -> dict[str, str]:
    """The texts that a request consists of, by their places."""
    url = urlsplit(request.uri)
    parts = {"path": url.path}
    for name, value in parse_qsl(url.query, keep_blank_values=True):
        parts[f"parameter {name} of the URL"] = value
    try:
        parts.update(_leaves(json.loads(request.body), ""))
    except (ValueError, RecursionError):
        parts["body"] = request.body
    return parts


def _leaves(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """The values of JSON that hold no others, by their pointers."""
    entries: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        entries += value.items()
    elif isinstance(value, list):
        entries += enumerate(value)
    for key, entry in entries:
        name = str(key).replace("~", "~0").replace("/", "~1")
        yield from _leaves(entry, f"{pointer}/{name}")
    if not entries:
        yield pointer or "body", value if isinstance(value, str) else json.dumps(value)

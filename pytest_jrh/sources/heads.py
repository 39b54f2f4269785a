"""The beginning of a file, by which a form knows its own, and the items of a JSON list."""

from __future__ import annotations

import contextlib
import mmap
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_jrh.config.rubrics import read_head
from pytest_jrh.core.documents import DamagedError, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES = (".jsonl", ".ndjson")
"""What the names of files end in whose lines are JSON."""
BOM = b"\xef\xbb\xbf"
_LOOKED_AT = 20
_LONGEST_LOOKED_AT = 2**20
# All up to the next bracket that is in no string.
BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([{}\[\]])', re.DOTALL)
_COMMA = re.compile(rb"\s*+,\s*+")
_BLANK = re.compile(rb"\s*+")


class Head:
    """The beginning of a file, by which a form knows its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_lines(self) -> bool:
        """Whether it is one of JSON lines, by its name."""
        return self.path.suffix.lower() in LINES and self.path.is_file()

    @cached_property
    def text(self) -> str:
        """The first 64 kB; nothing where they cannot be read."""
        return read_head(self.path).lstrip()

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The first objects of JSON lines that are no conversations; none of another file."""
        values: list[dict[str, Any]] = []
        if not self.is_lines:
            return values
        with (
            contextlib.suppress(DamagedError, OSError),
            self.path.open("rb") as file,
        ):
            for _ in range(_LOOKED_AT):
                line = file.readline(_LONGEST_LOOKED_AT)
                value = parsed(line) if line.strip() else {}
                if not line or not isinstance(value, dict) or "messages" in value:
                    break
                values.append(value)
        return values

    @property
    def begins_list(self) -> bool:
        """Whether it begins like a JSON list."""
        return self.text.startswith("[")

    @cached_property
    def first_item(self) -> Any:
        """The first item of a JSON list; None where there is none, or it is damaged."""
        if not self.begins_list or self.is_lines:
            return None
        with (
            contextlib.suppress(DamagedError, OSError),
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            start, end = next(elements(data), (0, 0))
            return parsed(data[start:end]) if end - start <= _LONGEST_LOOKED_AT else None
        return None

    @property
    def is_inspect_log(self) -> bool:
        """Whether it is a log of Inspect's in JSON."""
        return self.text.startswith("{") and '"eval"' in self.text and '"version"' in self.text


def elements(data: bytes | mmap.mmap) -> Iterator[tuple[int, int]]:
    """Find the objects and lists right below a JSON list, by their brackets alone.

    Raises DamagedError for brackets that do not match, and other values between the items.
    """
    blank = _BLANK.match(data, len(BOM) if data[: len(BOM)] == BOM else 0)
    bracket = BRACKET.match(data)
    if blank is None or bracket is None or bracket[1] != b"[" or bracket.start(1) != blank.end():
        raise DamagedError("it does not begin with [")
    depth, start, at = 1, 0, bracket.end()
    edge, between = at, _BLANK
    while depth:
        bracket = BRACKET.match(data, at)
        if bracket is None:
            raise DamagedError("unexpected end of input: unclosed brace or string")
        at = bracket.end()
        depth += 1 if bracket[1] in b"{[" else -1
        if depth == 2 and bracket[1] in b"{[":  # noqa: PLR2004 - an item of the list
            start = at - 1
            if not between.fullmatch(data, edge, start):
                raise DamagedError(f"every item must be an object or a list, see byte {edge}")
        elif depth == 1:
            yield start, at
            edge, between = at, _COMMA
    if bracket[1] != b"]":
        raise DamagedError("it does not end with ]")
    if not _BLANK.fullmatch(data, edge, at - 1):
        raise DamagedError(f"every item must be an object or a list, see byte {edge}")
    if not _BLANK.fullmatch(data, at):
        raise DamagedError(f"unexpected data after byte {at}")

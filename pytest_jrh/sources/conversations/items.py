"""Where each conversation of a file begins and ends: the lines of a JSONL file, or the items of a
JSON list.

One item at a time is in memory, whatever the size of the file.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pytest_jrh.documents.strict_json import DamagedError, parsed
from pytest_jrh.errors import Problem
from pytest_jrh.sources.log_parts import refused, too_big

Bytes: TypeAlias = "bytes | mmap.mmap"

LINES = (".jsonl", ".ndjson")
"""What the names of files end in that hold one conversation a line."""
_START = 4096
_BOM = b"\xef\xbb\xbf"
_CHUNK = 1_000_000
_PAGES = 32_000_000
# All up to the next bracket that is in no string.
_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([{}\[\]])', re.DOTALL)
_COMMA = re.compile(rb"\s*+,\s*+")
_BLANK = re.compile(rb"\s*+")


class FileItem(NamedTuple):
    """One conversation in its file: its bytes, and its line (`number`) or place in the list."""

    start: int
    end: int
    number: int


class ItemFile:
    """A file of conversations; `most_bytes` is how much one of them may be."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path
        self.in_lines = path.suffix.lower() in LINES
        self._most_bytes = most_bytes

    def items(self) -> Iterator[tuple[FileItem, bytes]]:
        """Each item with its bytes.

        Raises InputError for a file that cannot be read or split, naming the line.
        """
        try:
            if self.path.stat().st_size == 0:
                raise refused(self.path, "is empty, so it holds no conversation")
            yield from self._lines() if self.in_lines else self._elements()
        except IsADirectoryError:
            raise refused(self.path, "is a folder, not a file of conversations") from None
        except OSError as error:
            raise refused(self.path, f"cannot be read: {error.strerror or error}") from None

    def value(self, item: FileItem) -> Any:
        """The JSON of an item; raises DamagedError."""
        try:
            with self.path.open("rb") as file:
                file.seek(item.start)
                return parsed(file.read(item.end - item.start))
        except OSError as error:
            raise DamagedError(f"cannot be read: {error.strerror or error}") from None

    def place(self, item: FileItem) -> str:
        """The place of an item in words, such as `line 3`."""
        return f"{'line' if self.in_lines else 'item'} {item.number}"

    def problem(self, item: FileItem, message: str, hint: str | None = None) -> Problem:
        """Make the problem of one item; in a list its own line is looked up."""
        if self.in_lines:
            return Problem(message, str(self.path), item.number, hint=hint)
        line = self._line_of(item.start)
        return Problem(message, str(self.path), line, f"item {item.number}", hint)

    def _lines(self) -> Iterator[tuple[FileItem, bytes]]:
        start = 0
        number = 0
        with self.path.open("rb") as file:
            while line := file.readline(self._most_bytes + 2):
                number += 1
                item = FileItem(start, start + len(line), number)
                start = item.end
                self._check_size(item, len(line.rstrip(b"\r\n")))
                if line.strip(b" \t\r\n" + _BOM):
                    yield item, line

    def _elements(self) -> Iterator[tuple[FileItem, bytes]]:
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            dropped = 0
            try:
                for number, (start, end) in enumerate(elements(data), start=1):
                    item = FileItem(start, end, number)
                    self._check_size(item, end - start)
                    yield item, data[start:end]
                    dropped = _drop_pages(data, dropped, end)
            except DamagedError as error:
                hint = "one JSON object a line belongs in a .jsonl file"
                raise refused(self.path, f"is no whole JSON list: {error}", hint) from None

    def _check_size(self, item: FileItem, size: int) -> None:
        if size > self._most_bytes:
            raise refused(self.path, f"{self.place(item)} is {too_big(self._most_bytes)}")

    def _line_of(self, offset: int) -> int | None:
        try:
            with self.path.open("rb") as file:
                lines, left = 1, offset
                while left > 0 and (chunk := file.read(min(left, _CHUNK))):
                    lines += chunk.count(b"\n")
                    left -= len(chunk)
                return lines
        except OSError:
            return None


def _drop_pages(data: mmap.mmap, dropped: int, done: int) -> int:
    """Give back the memory of what was read, which would count as ours up to the file's end."""
    if done - dropped < _PAGES or not hasattr(mmap, "MADV_DONTNEED"):
        return dropped
    until = done - done % mmap.PAGESIZE
    data.madvise(mmap.MADV_DONTNEED, dropped, until - dropped)
    return until


def begins_list(path: Path) -> bool:
    """Whether a file begins like a JSON list; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_START).removeprefix(_BOM).lstrip().startswith(b"[")
    except OSError:
        return False


def elements(data: Bytes) -> Iterator[tuple[int, int]]:
    """Find the objects and lists right below a JSON list, by their brackets alone.

    Raises DamagedError for brackets that do not match, and other values between the items.
    """
    first = _BRACKET.match(data)
    if first is None or first[1] != b"[" or first.start(1) != _opening(data):
        raise DamagedError("it does not begin with [")
    depth, start, done, at = 1, 0, 0, first.end()
    edge = at
    while depth:
        found = _BRACKET.match(data, at)
        if found is None:
            raise DamagedError("unexpected end of input: unclosed brace or string")
        at = found.end()
        if found[1] in b"{[":
            depth += 1
            if depth == 2:  # noqa: PLR2004 - an item of the list
                start = at - 1
                _check_between(data, edge, start, first=not done)
            continue
        depth -= 1
        if depth == 1:
            yield start, at
            done, edge = done + 1, at
        elif not depth and found[1] != b"]":
            raise DamagedError("it does not end with ]")
    if not _BLANK.fullmatch(data, edge, at - 1):
        raise DamagedError(f"every item must be an object or a list, see byte {edge}")
    if not _BLANK.fullmatch(data, at):
        raise DamagedError(f"unexpected data after byte {at}")


def _opening(data: Bytes) -> int:
    bom = len(_BOM) if data[: len(_BOM)] == _BOM else 0
    blank = _BLANK.match(data, bom)
    return blank.end() if blank else bom


def _check_between(data: Bytes, edge: int, start: int, *, first: bool) -> None:
    fits = _BLANK.fullmatch(data, edge, start) if first else _COMMA.fullmatch(data, edge, start)
    if not fits:
        raise DamagedError(f"every item must be an object or a list, see byte {edge}")

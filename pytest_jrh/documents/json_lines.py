"""Reads JSON with the line of every key; the standard decoder does strings, numbers and names."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_jrh.documents.problems import printable
from pytest_jrh.documents.tree import MAX_DEPTH, Tree, storable
from pytest_jrh.errors import InputError, Problem

if TYPE_CHECKING:
    from pytest_jrh.documents.problems import KeyPath

_SPACE = re.compile(r"[ \t\r\n]*")


def read_json(text: str, file: str) -> Tree:
    """Parse one JSON value; raises InputError with the line of the first mistake."""
    return _Reader(text, file).tree()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._tree = Tree(file)
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._decoder = json.JSONDecoder(parse_constant=_no_constant)

    def tree(self) -> Tree:
        self._tree.data, end = self._value(self._skip(0), (), 0)
        end = self._skip(end)
        if end < len(self._text):
            self._fail(end, "unexpected text after the value")
        return self._tree

    def _skip(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return match.end() if match else position

    def _line(self, position: int) -> int:
        return bisect_left(self._newlines, position) + 1

    def _fail(self, position: int, what: str) -> NoReturn:
        line = self._line(position)
        row = self._text.split("\n", line)[line - 1] if line <= len(self._newlines) + 1 else ""
        hint = f"the line reads: {printable(row.strip())}" if row.strip() else None
        raise InputError(Problem(f"is not valid JSON: {what}", self._tree.file, line, hint=hint))

    def _value(self, position: int, path: KeyPath, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            self._fail(position, f"nested more than {MAX_DEPTH} levels deep")
        self._tree.lines.setdefault(path, self._line(position))
        first = self._text[position : position + 1]
        if first == "{":
            return self._object(position + 1, path, depth)
        if first == "[":
            return self._array(position + 1, path, depth)
        value, end = self._scalar(position)
        if value is not None and not isinstance(value, str):
            self._tree.texts[path] = self._text[position:end]
        return value, end

    def _scalar(self, position: int) -> tuple[Any, int]:
        if position >= len(self._text):
            self._fail(position, "unexpected end of input")
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except json.JSONDecodeError as error:
            self._fail(
                min(error.pos, len(self._text)), printable(error.msg[:1].lower() + error.msg[1:])
            )
        except ValueError as error:
            self._fail(position, printable(str(error)))
        return (storable(value) if isinstance(value, str) else value), end

    def _array(self, position: int, path: KeyPath, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        position = self._skip(position)
        while self._text[position : position + 1] != "]":
            item, position = self._value(position, (*path, len(items)), depth + 1)
            items.append(item)
            position = self._comma(position, "]")
        return items, position + 1

    def _object(self, position: int, path: KeyPath, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        own: dict[str, int] = {}
        position = self._skip(position)
        while self._text[position : position + 1] != "}":
            if self._text[position : position + 1] != '"':
                self._fail(position, "expected a key in double quotes")
            line = self._line(position)
            key, position = self._scalar(position)
            position = self._skip(position)
            if self._text[position : position + 1] != ":":
                self._fail(position, "expected a colon after the key")
            place = (*path, key)
            again = self._tree.is_duplicate(place, own.get(key), line)
            self._tree.lines.setdefault(place, line)
            value, position = self._value(self._skip(position + 1), place, depth + 1)
            if not again:
                own[key], members[key] = line, value
            position = self._comma(position, "}")
        return members, position + 1

    def _comma(self, position: int, closing: str) -> int:
        position = self._skip(position)
        char = self._text[position : position + 1]
        if char == closing:
            return position
        if char != ",":
            self._fail(
                position, f"expected a comma or {closing}" if char else "unexpected end of input"
            )
        position = self._skip(position + 1)
        if self._text[position : position + 1] == closing:
            self._fail(position, f"trailing comma before {closing}")
        return position

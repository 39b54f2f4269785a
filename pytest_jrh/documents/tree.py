"""The data of a file while it is being read, with the places of its keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_jrh.documents.problems import KeyPath, dotted
from pytest_jrh.errors import Problem

MAX_DEPTH = 100


@dataclass(slots=True)
class Tree:
    """What a reader fills in; `Document` is its finished form."""

    file: str
    data: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    texts: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, path: KeyPath, line: int, message: str, hint: str | None = None) -> None:
        """Note a mistake that does not stop the reading."""
        self.problems.append(Problem(message, self.file, line, dotted(path) or None, hint))

    def is_duplicate(self, path: KeyPath, first_line: int | None, line: int) -> bool:
        """Report a key that its mapping already has, with both lines."""
        if first_line is None:
            return False
        self.problem(
            path,
            line,
            f"the key stands twice, in line {first_line} and in line {line}",
            "keep one of them",
        )
        return True


def storable(text: str) -> str:
    """Text without what cannot be stored: lone surrogates become U+FFFD, NULs are dropped."""
    if text.isascii():
        return text.replace("\x00", "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")

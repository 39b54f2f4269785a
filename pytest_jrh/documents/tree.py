"""The data of a file being read, with the lines of its keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_jrh.documents.problems import KeyPath, dotted
from pytest_jrh.errors import Problem

MAX_DEPTH = 100


@dataclass(slots=True)
class Tree:
    """Filled by a reader; `Document` is the finished form."""

    file: str
    data: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    texts: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, path: KeyPath, line: int, message: str, hint: str | None = None) -> None:
        """Record a mistake that does not stop the reading."""
        self.problems.append(Problem(message, self.file, line, dotted(path) or None, hint))

    def is_duplicate(self, path: KeyPath, first_line: int | None, line: int) -> bool:
        """Report a key that its mapping already has, with both lines."""
        if first_line is None:
            return False
        self.problem(
            path,
            line,
            f"duplicate key, in lines {first_line} and {line}",
            "keep one of them",
        )
        return True


def storable(text: str) -> str:
    """Text that can be stored: lone surrogates become U+FFFD, NULs are dropped."""
    if text.isascii():
        return text.replace("\x00", "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")

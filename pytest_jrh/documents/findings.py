"""The mistakes of one document, each reported once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_jrh.documents.problems import dotted
from pytest_jrh.errors import Problem
from pytest_jrh.text import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_jrh.documents.problems import KeyPath
    from pytest_jrh.documents.reading import Document

_MOST_LOOKED_FOR = 2_000
_JOINT = re.compile(r"[.\[]")


@dataclass(slots=True)
class Findings:
    """The mistakes found in one document so far.

    A key that is missing only because it was misspelled or had a bad value is not reported twice.
    """

    document: Document
    problems: list[Problem] = field(default_factory=list)
    excused: set[str] = field(default_factory=set)
    _keys: set[str] = field(default_factory=set)
    _around: set[str] = field(default_factory=set)
    _indexed: int = 0
    _looked_for: int = 0

    def nearest(self, word: str, choices: Iterable[str], cutoff: float = 0.6) -> str | None:
        """The choice that a mistyped word most likely meant; None for the words of a document that
        has too many.
        """
        self._looked_for += 1
        return nearest(word, choices, cutoff) if self._looked_for <= _MOST_LOOKED_FOR else None

    def add(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Report the value at `path`."""
        key = dotted(path) or None
        self.problems.append(
            Problem(message, self.document.file, self.document.line(path), key, hint)
        )

    def missing(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Report that there is nothing at `path`, unless a problem there explains it."""
        if not self.explained(path):
            self.add(path, message, hint)

    def explained(self, path: KeyPath) -> bool:
        """Whether a reported problem explains why there is no usable value at `path`."""
        prefixes = {dotted(path[:end]) for end in range(1, len(path) + 1)}
        if prefixes & self.excused:
            return True
        self._index()
        return bool(prefixes & self._keys) or dotted(path) in self._around

    def _index(self) -> None:
        """Index the keys of new problems, and the keys of the sections that hold them."""
        for problem in self.problems[self._indexed :]:
            key = problem.key or ""
            self._keys.add(key)
            self._around.update(key[: joint.start()] for joint in _JOINT.finditer(key))
        self._indexed = len(self.problems)

"""Comparing texts in bounded time: difflib alone is quadratic where many short pieces match here
and there.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import accumulate
from typing import Any

_MOST_STEPS = 1_000_000
_MOST_LINES = 400


class TooDifferent(Exception):
    """The texts cannot be compared within the bound."""


class BoundedMatcher(SequenceMatcher[str]):
    """A `SequenceMatcher` that raises `TooDifferent` once comparing has cost 1,000,000 steps."""

    def __init__(self, old: Sequence[str], new: Sequence[str], *, autojunk: bool) -> None:
        super().__init__(None, old, new, autojunk=autojunk)
        there = self.b2j  # type: ignore[attr-defined]
        # What looking at the first so many pieces of the old text costs, each with its equals in
        # the new one.
        self._costs = [0, *accumulate(1 + len(there.get(piece, ())) for piece in old)]
        self._left = _MOST_STEPS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Any:
        """See `SequenceMatcher`, which calls this for each stretch that is left to compare."""
        self._left -= self._costs[-1 if ahi is None else ahi] - self._costs[alo]
        if self._left < 0:
            raise TooDifferent
        return super().find_longest_match(alo, ahi, blo, bhi)


def unified(old: Sequence[str], new: Sequence[str], *, context: int = 3) -> list[str]:
    """Give the lines of a unified diff without its head; of texts that cannot be compared whole,
    the first 400 lines.

    What both begin and end with does not count.
    """
    start, end = _shared(old, new)
    matcher = BoundedMatcher(
        old[start : len(old) - end], new[start : len(new) - end], autojunk=True
    )
    try:
        matcher.get_opcodes()
    except TooDifferent:
        old, new = old[start : start + _MOST_LINES], new[start : start + _MOST_LINES]
    return list(unified_diff(old, new, lineterm="", n=context))[2:]


def _shared(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many pieces both begin with, and how many of the others both end with."""
    shorter = min(len(old), len(new))
    start = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    end = next(
        (place for place in range(shorter - start) if old[-1 - place] != new[-1 - place]),
        shorter - start,
    )
    return start, end

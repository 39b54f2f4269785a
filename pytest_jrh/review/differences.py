"""Word-level differences between two texts, in bounded time."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_jrh.diffs import BoundedMatcher, TooDifferent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Kind = Literal["same", "gone", "new"]

# White space stays with the word before it: on its own it would match everywhere, and cost the
# most.
_WORD = re.compile(r"(?:\w+|[^\w\s])\s*|\s+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MOST_PAIRS = 150_000
_LEAST_ALIKE = 0.3
_SHORTEST_ISLAND = 3
_SHORT = 40


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that both have, that only the old one has, or only the new one."""

    kind: Kind
    text: str


def differences(old: str, new: str) -> tuple[Piece, ...]:
    """List what is the same, gone and new, in reading order; `gone` stands before the `new` that
    replaces it.

    Compared word by word; by line, or as two wholes, where that would take too long; and as two
    wholes where the texts have so little in common that a mix of their words could not be read.
    """
    head = _common_head(old, new)
    tail = _common_tail(old[head:], new[head:])
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    middle = _middle(before, after)
    rewritten = all(piece.kind != "same" for piece in middle) and before and after
    if (
        rewritten
        and max(len(old), len(new)) > _SHORT
        and head + tail < _LEAST_ALIKE * max(len(old), len(new))
    ):
        # A first word in common does not make a rewritten text another one with an edit in it.
        return (Piece("gone", old), Piece("new", new))
    pieces = [Piece("same", old[:head]), *middle, Piece("same", old[len(old) - tail :])]
    return tuple(_joined([piece for piece in pieces if piece.text]))


def _middle(old: str, new: str) -> list[Piece]:
    for pattern in (_WORD, _LINE):
        a, b = pattern.findall(old), pattern.findall(new)
        if _pairs(a, b) <= _MOST_PAIRS:
            with contextlib.suppress(TooDifferent):
                return _matched(a, b)
    return [Piece("gone", old), Piece("new", new)]


def _matched(a: Sequence[str], b: Sequence[str]) -> list[Piece]:
    matcher = BoundedMatcher(a, b, autojunk=False)
    whole = [Piece("gone", "".join(a)), Piece("new", "".join(b))]
    if a and b and matcher.ratio() < _LEAST_ALIKE:
        return whole
    pieces: list[Piece] = []
    for operation, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        if operation == "equal":
            pieces.append(Piece("same", "".join(b[b_start:b_end])))
        else:
            pieces += [
                Piece("gone", "".join(a[a_start:a_end])),
                Piece("new", "".join(b[b_start:b_end])),
            ]
    return pieces


def _pairs(a: Sequence[str], b: Sequence[str]) -> int:
    """How many equal pairs the matcher would have to look at."""
    there = Counter(b)
    return sum(count * there[word] for word, count in Counter(a).items())


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Join neighbours of a kind, and drown islands of a few letters between changes."""
    gone = new = ""
    for position, piece in enumerate(pieces):
        island = len(piece.text.strip()) <= _SHORTEST_ISLAND and 0 < position < len(pieces) - 1
        if piece.kind == "gone":
            gone += piece.text
        elif piece.kind == "new":
            new += piece.text
        elif island and (gone or new) and "\n" not in piece.text:
            gone += piece.text
            new += piece.text
        else:
            yield from _changes(gone, new)
            gone = new = ""
            yield piece
    yield from _changes(gone, new)


def _changes(gone: str, new: str) -> Iterator[Piece]:
    if gone:
        yield Piece("gone", gone)
    if new:
        yield Piece("new", new)


def _common_head(old: str, new: str) -> int:
    """The length of the common start, cut back to where a word begins."""
    end = _agreement(old, new)
    while end > 0 and not old[end - 1].isspace():
        end -= 1
    return end


def _common_tail(old: str, new: str) -> int:
    size = _agreement(old[::-1], new[::-1])
    while size > 0 and not old[len(old) - size].isspace():
        size -= 1
    return size


def _agreement(old: str, new: str) -> int:
    """How many characters agree from the start; halving, so that slices do the comparing."""
    low, high = 0, min(len(old), len(new))
    if old[:high] == new[:high]:
        return high
    while low + 1 < high:
        middle = (low + high) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle
    return low if old[low : low + 1] != new[low : low + 1] else low + 1

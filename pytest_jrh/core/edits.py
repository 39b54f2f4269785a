"""Where the edits of a made case stand, in its transcript and in the run that it was made of."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.core.model import Edit, Message


def edited_turns(edits: Iterable[Edit]) -> frozenset[int]:
    """The positions of edited messages in the made transcript.

    A splice that keeps a message as it was, such as the result of another call of the turn, has not
    edited it; what was left out has no position.
    """
    turns: set[int] = set()
    for edit in edits:
        if not edit.is_splice:
            turns.add(edit.message_index)
            continue
        same_length = len(edit.before) == len(edit.after)
        for offset, message in enumerate(edit.after):
            if not (same_length and edit.before[offset] == message):
                turns.add(edit.message_index + offset)
    return frozenset(turns)


def decisive_turns(edits: Iterable[Edit], length: int) -> frozenset[int]:
    """The edited turns of a made transcript of so many messages; where something was left out, the
    turn that stands there now, or the last one.
    """
    listed_edits = list(edits)
    turns = set(edited_turns(listed_edits))
    for edit in listed_edits:
        if edit.before and not edit.after and length:
            turns.add(min(edit.message_index, length - 1))
    return frozenset(turns)


class TurnPair(NamedTuple):
    """A turn of the run and the same turn of the made transcript, by their positions; None where it
    was put in, or left out.
    """

    old: int | None
    new: int | None


class _Splice(NamedTuple):
    """Turns of the made transcript, from `start` to before `end`, that stand for so many of the
    run.
    """

    start: int
    end: int
    replaced: int


def turn_pairs(
    run: Sequence[Message], made: Sequence[Message], edits: Sequence[Edit]
) -> list[TurnPair]:
    """The turns of a run and of its made transcript side by side, those that were left out where
    they stood.

    By position where the edits do not lead from one to the other, as in a record that somebody has
    changed.
    """
    by_position = [TurnPair(*pair) for pair in zip_longest(range(len(run)), range(len(made)))]
    pairs: list[TurnPair] = []
    old = new = 0
    for splice in _splices(edits):
        same = splice.start - new
        begin, old_end = old + same, old + same + splice.replaced
        if min(same, splice.replaced) < 0 or old_end > len(run) or splice.end > len(made):
            return by_position
        pairs += map(TurnPair, range(old, begin), range(new, splice.start))
        pairs += _paired(run, range(begin, old_end), made, range(splice.start, splice.end))
        old, new = old_end, splice.end
    if len(run) - old != len(made) - new:
        return by_position
    return [*pairs, *map(TurnPair, range(old, len(run)), range(new, len(made)))]


def _splices(edits: Iterable[Edit]) -> list[_Splice]:
    """What the edits replaced, in the order of the transcript; a person's edit of turns that were
    edited before is one with theirs.
    """
    splices: list[_Splice] = []
    for edit in sorted(edits, key=lambda edit: (edit.message_index, len(edit.after))):
        start, end = edit.message_index, edit.message_index + len(edit.after)
        more = len(edit.after) - len(edit.before)
        if splices and start < splices[-1].end:
            last = splices.pop()
            more += last.end - last.start - last.replaced
            start, end = last.start, max(last.end, end)
        splices.append(_Splice(start, end, end - start - more))
    return splices


def _paired(
    run: Sequence[Message], old_turns: range, made: Sequence[Message], new_turns: range
) -> Iterator[TurnPair]:
    """Pair the turns of a splice: the same ones, or as many as are left on both sides."""
    old, new = old_turns.start, new_turns.start
    while old < old_turns.stop or new < new_turns.stop:
        left, entered = old_turns.stop - old, new_turns.stop - new
        if left == entered or (left and entered and _is_same_turn(run[old], made[new])):
            yield TurnPair(old, new)
            old, new = old + 1, new + 1
        elif left > entered:
            yield TurnPair(old, None)
            old += 1
        else:
            yield TurnPair(None, new)
            new += 1


def _is_same_turn(old: Message, new: Message) -> bool:
    return all(old.get(key) == new.get(key) for key in ("role", "id", "tool_call_id"))

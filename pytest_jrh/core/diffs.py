"""What differs: texts, and a run from the case that was made of it.

Texts are compared up to so many equal pieces: difflib is quadratic where many short ones match.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from pytest_jrh.core import frozen
from pytest_jrh.core.cases import Edit, Message, Messages

Kind = Literal["same", "gone", "new"]

# White space stays with the word behind it: on its own it would match everywhere, and cost the
# most, and behind a word it would make another one of the last word before what was appended.
_WORD = re.compile(r"\s*(?:\d+(?:[.,]\d+)+|\w+|[^\w\s])|\s+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MOST_PAIRS = 20_000
_LEAST_ALIKE = 0.3
_SHORTEST_ISLAND = 3
_GAP = "…"
# Characters that two changes of a line may have between them and be one.
_MOST_BETWEEN = 40


def shared_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """How many pieces both begin with, and how many of the others both end with."""
    shorter = min(len(old), len(new))
    start = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    end = next(
        (index for index in range(shorter - start) if old[-1 - index] != new[-1 - index]),
        shorter - start,
    )
    return start, end


@frozen
class Piece:
    """A stretch of text that both have, that only the old one has, or only the new one."""

    kind: Kind
    text: str


def differences(old: str, new: str) -> tuple[Piece, ...]:
    """List what is the same, gone and new, in reading order; `gone` stands before the `new` that
    replaces it.

    Compared word by word; by line, or as two wholes, where that would take too long; and as two
    wholes where a mix of their words could not be read, as they have so little in common.
    """
    head = _common_head(old, new)
    tail = _common_head(old[head:][::-1], new[head:][::-1])
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    middle = [Piece("gone", before), Piece("new", after)]
    for pattern in (_WORD, _LINE):
        a, b = pattern.findall(before), pattern.findall(after)
        counts = Counter(b)
        # The matcher looks at each equal pair of pieces, and at each piece.
        pairs = sum(count * counts[word] for word, count in Counter(a).items())
        if max(pairs, len(a) + len(b)) <= _MOST_PAIRS:
            middle = _matched(a, b)
            break
    pieces = (Piece("same", old[:head]), *middle, Piece("same", old[len(old) - tail :]))
    joined = _joined([piece for piece in pieces if piece.text])
    return tuple(piece for piece in joined if piece.text)


def near_changes(pieces: Sequence[Piece], context: int) -> list[Piece]:
    """Cut what is the same to `context` characters beside each change, between words."""
    shown_lines = []
    for index, piece in enumerate(pieces):
        first, last = index == 0, index == len(pieces) - 1
        if piece.kind != "same" or len(piece.text) <= 2 * context:
            shown_lines.append(piece)
            continue
        # Without any change it is the start that is shown.
        head = "" if first and not last else piece.text[:context].rpartition(" ")[0]
        tail = "" if last else piece.text[-context:].partition(" ")[2]
        shown_lines.append(Piece("same", f"{head} {_GAP} {tail}" if head else f"{_GAP} {tail}"))
    return shown_lines


def changed_places(pieces: Sequence[Piece]) -> Iterator[tuple[str, str]]:
    """The old and the new text of each place that changed, in reading order.

    Changes near each other in a line are one place, with the words between and beside them.
    """
    old = new = ""
    for piece in (*pieces, Piece("same", "\n")):
        if piece.kind == "same" and ("\n" in piece.text or len(piece.text) > _MOST_BETWEEN):
            if old != new:
                yield old, new
            old = new = ""
            continue
        if piece.kind != "new":
            old += piece.text
        if piece.kind != "gone":
            new += piece.text


def _matched(a: Sequence[str], b: Sequence[str]) -> list[Piece]:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, a, b, autojunk=False)
    in_common = sum(block.size for block in matcher.get_matching_blocks())
    if in_common < _LEAST_ALIKE * min(len(a), len(b)):
        return [Piece("gone", "".join(a)), Piece("new", "".join(b))]
    pieces = []
    for operation, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        if operation == "equal":
            pieces.append(Piece("same", "".join(b[b_start:b_end])))
        else:
            pieces += [
                Piece("gone", "".join(a[a_start:a_end])),
                Piece("new", "".join(b[b_start:b_end])),
            ]
    return pieces


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
            yield from (Piece("gone", gone), Piece("new", new), piece)
            gone = new = ""
    yield from (Piece("gone", gone), Piece("new", new))


def _common_head(old: str, new: str) -> int:
    """The length of the common start, cut back to where a word begins."""
    end, _ = shared_ends(old, new)
    while end > 0 and not old[end - 1].isspace():
        end -= 1
    return end


def edited_turns(edits: Sequence[Edit]) -> frozenset[int]:
    """The positions of edited messages in the made transcript.

    A splice that keeps a message as it was, such as the result of another call of the turn, has not
    edited it; what was left out has no position.
    """
    turns = set()
    for edit in edits:
        if not edit.is_splice:
            turns.add(edit.message_index)
            continue
        same_length = len(edit.before) == len(edit.after)
        for offset, message in enumerate(edit.after):
            if not (same_length and edit.before[offset] == message):
                turns.add(edit.message_index + offset)
    return frozenset(turns)


def decisive_turns(edits: Sequence[Edit], length: int) -> frozenset[int]:
    """The edited turns of a made transcript of so many messages; where something was left out, the
    turn that stands there now, or the last one.
    """
    turns = set(edited_turns(edits))
    for edit in edits:
        if edit.before and not edit.after and length:
            turns.add(min(edit.message_index, length - 1))
    return frozenset(turns)


class TurnPair(NamedTuple):
    """A turn of a transcript and the same turn of another one, by their positions; None where it
    was put in, or left out.
    """

    old: int | None
    new: int | None


def turn_pairs(old: Messages, new: Messages) -> Iterator[TurnPair]:
    """The turns of two transcripts side by side, those that were left out where they stood."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, [*map(_key, old)], [*map(_key, new)], autojunk=False)
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        # An edit puts a call in before its turn, which may be edited, too: the last ones are pairs.
        changed = min(old_end - old_start, new_end - new_start)
        for index in range(old_start, old_end - changed):
            yield TurnPair(index, None)
        for index in range(new_start, new_end - changed):
            yield TurnPair(None, index)
        yield from map(
            TurnPair, range(old_end - changed, old_end), range(new_end - changed, new_end)
        )


def _key(message: Message) -> str:
    """The same for a turn and what an edit made of it where logs have ids, else for equal ones."""
    names = [message.get(key) for key in ("role", "id", "tool_call_id")]
    return json.dumps(message if message.get("id") is None else names, sort_keys=True)

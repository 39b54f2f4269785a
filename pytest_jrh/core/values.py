"""What one value of a table or a label says: as a text, a word, a whole number, an answer."""

from __future__ import annotations

import math
import re
from typing import Any

from pytest_jrh.core.documents import Fields, listed, printable, received, shown
from pytest_jrh.core.scales import Scale

CANNOT_TELL = "cannot tell"

# Characters that nobody sees: soft hyphens, those of no width, and marks of a direction.
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_LONGEST_WORD = 1_000
_PART = re.compile(r"([+-]?\d{1,18})(?:\.0*)?\s*(?:/|out of|of)\s*(\d{1,6})", re.ASCII)
_WHOLE = re.compile(r"([+-]?\d{1,18})(\.0*)?", re.ASCII)


def as_text(raw: object) -> str:
    """A value as the key of a mapping in YAML would be written."""
    if raw is None or (isinstance(raw, float) and math.isnan(raw)):
        return ""
    if isinstance(raw, bool):
        return str(raw).lower()
    return str(raw).strip()


def as_seen(raw: object) -> str:
    """A value as its reader sees it."""
    return printable(_words(raw), _LONGEST_WORD)


def _words(raw: object) -> str:
    """A value with one blank between words, and nothing that has no width. A sequence for a
    terminal stays, as it may hide what makes the value another one.
    """
    return " ".join(_UNSEEN.sub("", as_text(raw)).split())


def as_word(raw: object) -> str:
    """A value in small letters, and a whole number without a decimal point."""
    number = whole_number(raw)
    if number is None:
        return _words(raw).casefold()
    return str(number)


def whole_number(raw: object) -> int | None:
    """A value as an integer, also as a spreadsheet writes one, `1.0`; None where it is none."""
    number = _WHOLE.fullmatch(_words(raw))
    if number is None:
        return None
    return int(number[1])


def part_of(raw: object) -> tuple[int, int] | None:
    """`7/10` as its score and the end of its scale; None where a value is no such part."""
    part = _PART.fullmatch(_words(raw))
    if part is None:
        return None
    return int(part[1]), int(part[2])


class NoLabelError(ValueError):
    """A value that is no label."""


def label_value(raw: object, scale: Scale) -> int:
    """Read a label: the number of a level, or a word for an answer.

    Raises `NoLabelError` with what may stand there.
    """
    number = whole_number(raw)
    score = scale.label_words.get(as_word(raw))
    if scale.is_ordered:
        lowest, *_, highest = scores = scale.scores
        part = part_of(raw)
        if part is not None and part[1] == highest:
            number = part[0]
        expected = f"a score from {lowest} to {highest}"
        if number in scores:
            score = number
    else:
        *first_words, last_word = scale.label_words
        expected = f"{', '.join(first_words)} or {last_word}"
    if score is not None:
        return score
    if not as_text(raw):
        raise NoLabelError(f"the label is empty; must be {expected}")
    raise NoLabelError(received(raw, expected))


def mapped(raw: object, mapping: Fields) -> Any:
    """What a `map` makes of a value; a number is found however it is written.

    Raises `NoLabelError` for one that is not in it.
    """
    by_word = {as_word(word): value for word, value in mapping.items()}
    word = as_word(raw)
    if word in by_word:
        return by_word[word]
    raise NoLabelError(f"got {shown(raw)}; the keys of map are {listed(mapping)}")

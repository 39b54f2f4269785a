"""What one value of a table or a label says: as a text, a word, a whole number."""

from __future__ import annotations

import math
import re

from pytest_jrh.core.documents import printable

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

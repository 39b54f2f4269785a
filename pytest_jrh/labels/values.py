"""What a label means: its value on the scale of verdicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_jrh.documents.problems import listed, shown
from pytest_jrh.text import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

WORDS: Mapping[str, int] = {
    "0": 0,
    "1": 1,
    "false": 0,
    "true": 1,
    "pass": 0,
    "fail": 1,
    "satisfied": 0,
    "violated": 1,
}
"""What a binary label may be, whatever its case: 1 is violated, 0 is satisfied."""
_LONGEST_NUMBER = 20


class NoLabelError(ValueError):
    """A value that is no label, and the texts of which one was most likely meant."""

    def __init__(self, message: str, text: str = "", choices: Collection[str] = ()) -> None:
        super().__init__(message)
        self._text = text
        self._choices = choices

    @property
    def hint(self) -> str | None:
        """The nearest of the choices, looked for where it is asked for."""
        close = nearest(self._text, self._choices)
        return f"{close} is the nearest" if close else None


def label_value(raw: object, scale: Sequence[int]) -> int:
    """Read a label: on the `scale` of an ordinal rubric its score, else (empty) one of `WORDS`.

    Raises `NoLabelError` with what may stand there.
    """
    text = as_text(raw)
    if not text:
        raise NoLabelError(f"the label is empty; must be {_expected(scale)}")
    number = _whole(raw)
    if scale:
        if number in scale and not isinstance(raw, bool):
            return int(number or 0)
        raise NoLabelError(f"got {shown(raw)}; must be {_expected(scale)}")
    found = WORDS.get(text.casefold(), WORDS.get(str(number)))
    if found is None:
        raise NoLabelError(f"got {shown(raw)}; must be {_expected(scale)}", text, WORDS)
    return found


def mapped(raw: object, mapping: Mapping[str, Any]) -> Any:
    """What a `map` of the config makes of a value; a number is found however it is written.

    Raises `NoLabelError` for one that is not in it.
    """
    text = as_text(raw)
    if text in mapping:
        return mapping[text]
    number = _number(raw)
    for key, value in mapping.items():
        if number is not None and number == _number(key):
            return value
    message = f"got {shown(raw)}; the keys of map are {listed(mapping)}"
    raise NoLabelError(message, text, mapping)


def as_text(raw: object) -> str:
    """A value as the key of a mapping in YAML would be written."""
    match raw:
        case None:
            return ""
        case bool():
            return "true" if raw else "false"
        case _:
            return str(raw).strip()


def _expected(scale: Sequence[int]) -> str:
    if scale:
        return f"a score from {scale[0]} to {scale[-1]}"
    *words, last = WORDS
    return f"{', '.join(words)} or {last}"


def _number(raw: object) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    try:
        if isinstance(raw, str) and len(raw) > _LONGEST_NUMBER:
            return None
        found = float(raw)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _whole(raw: object) -> int | None:
    """An integer, also as a spreadsheet writes one: `1.0`."""
    number = _number(raw)
    return int(number) if number is not None and number.is_integer() else None

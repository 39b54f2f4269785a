"""The values that judges give in place of scores, and the key that a `score_map` has for each (rule
Q1).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Value: TypeAlias = "str | int | bool"

BINARY_SCORES = (0, 1)
"""Satisfied and violated."""
_LARGEST = 10**40


def key_of(value: object) -> str:
    """The key of a map that stands for a value: text as it is, others as JSON has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) and is_huge(value):
        return "a huge number"
    return json.dumps(value) if isinstance(value, int | float) else f"a {type(value).__name__}"


def is_huge(value: int) -> bool:
    """Whether a number is too long to read: Python refuses to write thousands of digits."""
    return abs(value) > _LARGEST


def offered_text(scores: Sequence[int]) -> str:
    """The scores on offer as messages list them: `0 or 1`."""
    return ", ".join(map(str, scores[:-1])) + f" or {scores[-1]}"


def value_of(key: str) -> Value:
    """The value that a model is to answer with for a key: true and false, whole numbers, text."""
    if key in ("true", "false"):
        return key == "true"
    try:
        number = int(key)
    except ValueError:
        return key
    return number if str(number) == key else key

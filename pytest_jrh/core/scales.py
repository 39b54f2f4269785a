"""The answers on offer under a rubric."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pytest_jrh.core import frozen

Mode: TypeAlias = Literal["binary", "ordinal"]
LONGEST_SCALE = 1000
"""How many scores a scale has at most."""


@frozen
class ScoreLevel:
    """One anchor of an ordinal scale."""

    score: int
    label: str

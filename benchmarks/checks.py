"""Figures that must hold, and tables of them, for `VALIDITY.md`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.measure import Line

_CLOSE = 2


@dataclass(frozen=True, slots=True)
class Check:
    """One figure that must hold: a percentage, or a difference in points, and its limit.

    `error` is the standard error that the simulation itself leaves in the figure.
    """

    what: str
    figure: float
    limit: float
    side: Literal["least", "most"]
    detail: str = ""
    error: float = 0.0

    @property
    def line(self) -> Line:
        """The figure in terms of the limit, 1 or less where it holds."""
        sides = (self.limit, self.figure) if self.side == "least" else (self.figure, self.limit)
        ratio = sides[0] / sides[1] if sides[1] else float(sides[0] > 0)
        limit = f"at {self.side} {self.limit:.4g}"
        return Line(self.what, f"{self.figure:.1f}", limit, ratio, 1.0)

    @property
    def holds(self) -> bool:
        """Whether the figure keeps to the limit."""
        return self.line.verdict == "holds"

    @property
    def is_close(self) -> bool:
        """Whether other random numbers could say otherwise."""
        return abs(self.figure - self.limit) < _CLOSE * self.error

    @property
    def verdict(self) -> str:
        """Whether it holds, and whether it is close."""
        holds = "met" if self.holds else "NOT MET"
        return f"{holds}, close" if self.is_close else holds

    @property
    def cells(self) -> tuple[str, ...]:
        """The figure as a row of a table."""
        error = f"{self.error:.2f}" if self.error else "-"
        return (
            self.what,
            f"{self.figure:.1f}",
            error,
            self.line.yardstick,
            self.verdict,
            self.detail,
        )


def error_of(share: float, sessions: int) -> float:
    """The standard error of a share of simulated sessions, in points."""
    # Of sessions that all say the same, as if one more had said something else.
    share = min(max(share, 1 / (sessions + 2)), 1 - 1 / (sessions + 2))
    return 100 * math.sqrt(share * (1 - share) / sessions)


def mean(values: Iterable[float]) -> float:
    """The mean of at least one value."""
    given = list(values)
    return sum(given) / len(given)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    text = [" | ".join(row) for row in (titles, ["---"] * len(titles), *rows)]
    return "".join(f"| {line} |\n" for line in text)

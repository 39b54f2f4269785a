"""Holm's adjustment, and which drop a comparison leaves unseen."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.stats.formulas import Estimate, t_quantile
from pytest_jrh.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


Verdict: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE"]
POWER = 0.8
_FEWEST_CLUSTERS = 2
ONE_RUN = "all cases come from one source run"
_HALVINGS = 40


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values of several decisions, in their order, so that all hold together at one level.

    Holm 1979, Scand J Stat 6:65-70.
    """
    order = sorted(range(len(p_values)), key=lambda number: p_values[number])
    adjusted, reached = [0.0] * len(p_values), 0.0
    for rank, number in enumerate(order):
        reached = min(1.0, max(reached, (len(order) - rank) * p_values[number]))
        adjusted[number] = reached
    return adjusted


class Change(NamedTuple):
    """One cluster: by how much the errors of its `n` compared cases have risen, taken together.

    Of a binary judge a case adds 1 where it was right and is wrong; with repeats, the difference of
    the shares of wrong answers. A gain is a negative loss.
    """

    loss: Fraction | float
    n: int


def unseen_drop(changes: Iterable[Change], level: float = LEVEL) -> Estimate:
    """The drop over clusters, with the smallest drop that they exclude as its upper bound.

    One-sided at `level`, by Student's t over clusters. As no loss that was seen says nothing of
    those that were not, a drop has at least the variance of one that breaks whole clusters: where
    fewer losses are in a suite than by chance, the variance among them is too small as well. The
    smallest drop is the one that is as large as its own bound.
    """
    filled = [change for change in changes if change.n]
    runs, n = len(filled), sum(change.n for change in filled)
    if runs < _FEWEST_CLUSTERS:
        return Estimate(why=ONE_RUN if filled else "no case could be compared")
    drop = math.fsum(change.loss for change in filled) / n
    squares = math.fsum((float(change.loss) - drop * change.n) ** 2 for change in filled)
    whole = sum(change.n**2 for change in filled)
    quantile = t_quantile(level, runs - 1)

    def bound(supposed: float) -> float:
        """The upper bound of the drop, where one of this size is to be excluded."""
        unseen = max(0.0, supposed * (1 - supposed)) * whole
        return drop + quantile * math.sqrt((squares + unseen) * runs / (runs - 1)) / n

    low, high = max(0.0, drop), max(1.0, bound(1.0))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return Estimate(drop, upper=high, n=n)

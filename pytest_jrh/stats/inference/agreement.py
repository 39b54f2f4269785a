"""How far annotators agree: Krippendorff's alpha, and the raw share of pairs (rule N1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_A_PAIR = 2


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of annotators on the units that at least two of them labelled.

    `raw` is the mean share of agreeing pairs of a unit; None where there is no such unit, and
    `alpha` too where all labels are the same, of which chance would say nothing.
    """

    units: int
    labels: int
    raw: float | None
    alpha: float | None


def agreement(units: Iterable[Sequence[int]], *, ordinal: bool = False) -> Agreement:
    """Agreement over units, each the labels that annotators gave to one run.

    Alpha is 1 minus observed over expected disagreement (Krippendorff 2004, Content Analysis, ch.
    11), with the nominal or the ordinal difference; a unit of m labels counts m / (m - 1) for each
    of its pairs.
    """
    pairable = [unit for unit in units if len(unit) >= _A_PAIR]
    if not pairable:
        return Agreement(0, 0, None, None)
    margins = Counter(value for unit in pairable for value in unit)
    distance = _ordinal(margins) if ordinal else _nominal
    total = sum(margins.values())
    observed = sum(_within(Counter(unit), distance) / (len(unit) - 1) for unit in pairable)
    expected = _within(margins, distance) / (total - 1)
    alike = [1 - _within(Counter(unit), _nominal) / _pairs(len(unit)) for unit in pairable]
    return Agreement(
        units=len(pairable),
        labels=total,
        raw=sum(alike) / len(alike),
        alpha=1 - observed / expected if expected else None,
    )


def _pairs(number: int) -> int:
    return number * (number - 1)


def _within(counts: Counter[int], distance: Callable[[int, int], float]) -> float:
    """The sum of differences over ordered pairs of labels with these counts."""
    return sum(
        counts[one] * counts[other] * distance(one, other) for one in counts for other in counts
    )


def _nominal(one: int, other: int) -> float:
    return float(one != other)


def _ordinal(margins: Counter[int]) -> Callable[[int, int], float]:
    """The squared number of labels between two, each end counted half."""

    def distance(one: int, other: int) -> float:
        low, high = min(one, other), max(one, other)
        between = sum(count for value, count in margins.items() if low <= value <= high)
        return (between - (margins[low] + margins[high]) / 2) ** 2 if low != high else 0.0

    return distance

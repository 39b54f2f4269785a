"""The formulas behind the figures, on plain counts; each cites its source (rule J1).

Quantiles and tails of the normal, Student's t and the binomial distribution, which the standard
library lacks.

How far annotators agree: Krippendorff's alpha, and the raw share of pairs (rule N1).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

from pytest_jrh.stats.metrics import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


Pair: TypeAlias = tuple[int, int]

SIGNIFICANCE = 0.05
NO_VERDICT = "no verdict was given"


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `n`; where `n` is 0, `reason` says what is missing."""

    count: int
    n: int
    reason: str | None = None

    @property
    def value(self) -> float | None:
        """The share, from 0 to 1; None where `n` is 0."""
        return self.count / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class ConfusionMatrix:
    """How often each answer met each label: `counts[i][j]` cases with label i were given answer j.

    `labels` are the scores in ascending order, of rows and columns alike.
    """

    labels: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        """All verdicts."""
        return sum(map(sum, self.counts))

    @property
    def rows(self) -> tuple[int, ...]:
        """How many cases have each label."""
        return tuple(map(sum, self.counts))

    @property
    def columns(self) -> tuple[int, ...]:
        """How often each answer was given."""
        return tuple(map(sum, zip(*self.counts, strict=True)))

    def expectation(self, cost: Callable[[int, int], float]) -> float:
        """Sum up the cost of each label and answer over all verdicts."""
        return sum(
            count * cost(label, answer)
            for label, row in zip(self.labels, self.counts, strict=True)
            for answer, count in zip(self.labels, row, strict=True)
        )


def confusion_matrix(pairs: Iterable[Pair], labels: Iterable[int] = ()) -> ConfusionMatrix:
    """Count pairs of label and answer; `labels` are shown also where no pair has them."""
    counts = Counter(pairs)
    shown = tuple(sorted({*labels, *(score for pair in counts for score in pair)}))
    return ConfusionMatrix(
        shown, tuple(tuple(counts[row, column] for column in shown) for row in shown)
    )


def cohen_kappa(matrix: ConfusionMatrix) -> Figure:
    """Agreement beyond chance: 1 is perfect, 0 what chance gives (Cohen 1960, Educ Psychol Meas
    20:37-46).
    """
    return _kappa(matrix, lambda one, other: float(one != other))


def quadratic_kappa(matrix: ConfusionMatrix) -> Figure:
    """Kappa that weighs a disagreement by the squared distance of the scores (Cohen 1968, Psychol
    Bull 70:213-220).
    """
    return _kappa(matrix, lambda one, other: float((one - other) ** 2))


def balanced_accuracy(matrix: ConfusionMatrix) -> Figure:
    """The mean of the recalls of the labels that occur (Brodersen et al. 2010, ICPR,
    pp. 3121-3124).
    """
    recalls = [matrix.counts[index][index] / row for index, row in enumerate(matrix.rows) if row]
    return Figure(sum(recalls) / len(recalls)) if recalls else Figure(None, NO_VERDICT)


def mean_absolute_error(matrix: ConfusionMatrix) -> Figure:
    """The mean distance of the answers from the labels, in levels."""
    if not matrix.n:
        return Figure(None, NO_VERDICT)
    return Figure(matrix.expectation(lambda label, answer: abs(label - answer)) / matrix.n)


def mean_bias(matrix: ConfusionMatrix) -> Figure:
    """The mean of answer minus label, in levels: above 0, the judge scores too high."""
    if not matrix.n:
        return Figure(None, NO_VERDICT)
    return Figure(matrix.expectation(lambda label, answer: answer - label) / matrix.n)


def mcnemar(regressions: int, fixes: int) -> float:
    """Two-sided exact p-value of a split at least this uneven, if regressions and fixes were
    equally likely.

    The binomial form of the test for paired shares (McNemar 1947, Psychometrika 12:153-157); 1
    where nothing changed. It takes cases to be independent, so cases that share a source run make
    it look more certain than it is.
    """
    changed = regressions + fixes
    term = tail = 1
    for number in range(min(regressions, fixes)):
        term = term * (changed - number) // (number + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << changed))


def _kappa(matrix: ConfusionMatrix, cost: Callable[[int, int], float]) -> Figure:
    """1 - observed over expected cost.

    Both margins in one class leave no chance disagreement to compare with.
    """
    if not matrix.n:
        return Figure(None, NO_VERDICT)
    by_chance = sum(
        row * column * cost(label, answer)
        for label, row in zip(matrix.labels, matrix.rows, strict=True)
        for answer, column in zip(matrix.labels, matrix.columns, strict=True)
    )
    if not by_chance:
        return Figure(None, "one class only: labels and answers are all the same")
    return Figure(1 - matrix.n * matrix.expectation(cost) / by_chance)


_NORMAL = NormalDist()
_ITERATIONS = 300
_CLOSE = 1e-15
_TINY = 1e-300
_CAUCHY, _TWO = 1, 2


def normal_quantile(share: float) -> float:
    """The value that a standard normal variable is below with probability `share`, 0 to 1."""
    return _NORMAL.inv_cdf(share)


def normal_cdf(value: float) -> float:
    """The probability of a standard normal variable to lie below `value`."""
    return _NORMAL.cdf(value)


def t_tail(value: float, freedom: float) -> float:
    """The probability of Student's t with so many degrees of freedom to lie above `value`."""
    square = value * value
    if square < freedom:
        # The other end of the beta distribution: exact where the argument would be close to 1.
        outside = 1 - _beta(0.5, freedom / 2, square / (freedom + square))
    else:
        outside = _beta(freedom / 2, 0.5, freedom / (freedom + square))
    return outside / 2 if value >= 0 else 1 - outside / 2


@lru_cache(maxsize=4096)
def t_quantile(share: float, freedom: float) -> float:
    """The value that Student's t is below with probability `share`, 0 to 1; freedom >= 1.

    Closed forms for 1 and 2 degrees of freedom, else Newton's method from the expansion of
    Cornish and Fisher (Abramowitz and Stegun 1964, 26.7.5), to 11 digits.
    """
    if share < 0.5:  # noqa: PLR2004 - the middle
        return -t_quantile(1 - share, freedom)
    if freedom == _CAUCHY:
        return math.tan(math.pi * (share - 0.5))
    if freedom == _TWO:
        return (2 * share - 1) * math.sqrt(2 / (4 * share * (1 - share)))
    z = normal_quantile(share)
    value = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale -= 0.5 * math.log(freedom * math.pi)
    for _ in range(_ITERATIONS):
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(value * value / freedom))
        step = (t_tail(value, freedom) - (1 - share)) / density
        # The tail is convex here, so that only a start that is too high can overshoot.
        value = max(value + step, value / 2)
        if abs(step) <= 1e-13 * (1 + abs(value)):
            break
    return value


def binomial_tail(count: float, n: float, share: float) -> float:
    """The probability that at least `count` of `n` cases, each with this `share`, have something.

    Of whole numbers it is the binomial distribution, and between these it goes on smoothly; `count`
    is above 0 and at most `n`.
    """
    return _beta(count, n - count + 1, share)


def _beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by Lentz's continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _ITERATIONS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return math.exp(log_front) * fraction / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


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

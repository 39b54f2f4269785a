"""What every figure is, an `Estimate`, and formulas on plain counts; each cites its source.

Also quantiles of Student's t and tails of the binomial distribution, which the standard library
lacks, how far annotators agree (Krippendorff's alpha), and the metrics of RAND's configs.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


Pair: TypeAlias = tuple[int, int]

SIGNIFICANCE = 0.05
NO_VERDICT = "no verdict was given"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval.

    A share is `count` of `n`; of other figures `n` is how many cases they are of, and `count` None.
    Where there is no value, or none but no interval, `why` says why not.
    """

    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    count: int | None = None
    n: int = 0
    why: str = ""

    @property
    def reason(self) -> str | None:
        """Why there is no value; None where there is one."""
        return self.why if self.value is None else None

    @property
    def interval_reason(self) -> str | None:
        """Why there is no interval; None where there is one."""
        return self.why if self.lower is None else None

    def complement(self) -> Estimate:
        """The share of the other cases."""
        if self.value is None or self.count is None:
            return self
        others = self.n - self.count
        whole = replace(self, value=others / self.n, count=others)
        if self.lower is None or self.upper is None:
            return whole
        return replace(whole, lower=1 - self.upper, upper=1 - self.lower)


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


def confusion_matrix(pairs: Iterable[Pair], labels: Iterable[int] = ()) -> ConfusionMatrix:
    """Count pairs of label and answer; `labels` are shown also where no pair has them."""
    counts = Counter(pairs)
    shown = tuple(sorted({*labels, *(score for pair in counts for score in pair)}))
    return ConfusionMatrix(
        shown, tuple(tuple(counts[row, column] for column in shown) for row in shown)
    )


def balanced_accuracy(matrix: ConfusionMatrix) -> float | None:
    """The mean of the recalls of the labels that occur (Brodersen et al. 2010, ICPR,
    pp. 3121-3124); None without a verdict.
    """
    recalls = [matrix.counts[index][index] / row for index, row in enumerate(matrix.rows) if row]
    return sum(recalls) / len(recalls) if recalls else None


_ITERATIONS = 300
_CLOSE = 1e-15
_TINY = 1e-300
_CAUCHY, _TWO = 1, 2


@lru_cache(maxsize=4096)
def t_quantile(share: float, freedom: float) -> float:
    """The value that Student's t is below with probability `share`, 1/2 to 1; freedom >= 1.

    Closed forms for 1 and 2 degrees of freedom, else Newton's method from the expansion of
    Cornish and Fisher (Abramowitz and Stegun 1964, 26.7.5), to 11 digits.
    """
    if freedom == _CAUCHY:
        return math.tan(math.pi * (share - 0.5))
    if freedom == _TWO:
        return (2 * share - 1) * math.sqrt(2 / (4 * share * (1 - share)))
    z = NormalDist().inv_cdf(share)
    value = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale -= 0.5 * math.log(freedom * math.pi)
    for _ in range(_ITERATIONS):
        square = value * value
        above = (1 - _beta(0.5, freedom / 2, square / (freedom + square))) / 2
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(square / freedom))
        step = (above - (1 - share)) / density
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
    import numpy as np

    values, codes = np.unique(np.concatenate(pairable), return_inverse=True)
    sizes = np.array([len(unit) for unit in pairable])
    counts = np.zeros((len(pairable), len(values)))
    np.add.at(counts, (np.repeat(np.arange(len(pairable)), sizes), codes), 1)
    margins, differ = counts.sum(axis=0), 1 - np.eye(len(values))
    distance = differ
    if ordinal:
        # The number of labels between two, each end counted half.
        middle = np.cumsum(margins) - margins / 2
        distance = (middle[:, None] - middle) ** 2
    within = ((counts @ distance) * counts).sum(axis=1) / (sizes - 1)
    disagreeing = ((counts @ differ) * counts).sum(axis=1) / (sizes * (sizes - 1))
    expected = float(margins @ distance @ margins) / (len(codes) - 1)
    return Agreement(
        units=len(pairable),
        labels=len(codes),
        raw=float(np.mean(1 - disagreeing)),
        alpha=1 - float(within.sum()) / expected if expected else None,
    )


def metric(name: str, expected: Sequence[int], scores: Sequence[int | None]) -> Estimate:
    """Compute a metric of RAND's configs: accuracy, balanced accuracy, kappa and F1, or another one
    of scikit-learn where that is installed.

    F1 is that of label 1, and on longer scales the mean over all labels, as are metrics of
    scikit-learn that average over labels. A score of None is a tie: wrong in the accuracy, and no
    label for the others.
    """
    if not expected:
        return Estimate(why=NO_VERDICT)
    if name == "accuracy_score":
        right = sum(label == score for label, score in zip(expected, scores, strict=True))
        return Estimate(right / len(expected))
    given = [score for score in scores if score is not None]
    if len(given) < len(scores):
        return Estimate(why="repeats that tie have no score that this metric could take")
    matrix = confusion_matrix(zip(expected, given, strict=True))
    value: float | None
    match name:
        case "balanced_accuracy_score":
            value = balanced_accuracy(matrix)
        case "cohen_kappa_score":
            value = _kappa(matrix)
        case "f1_score":
            value = _f1(matrix)
        case _:
            try:
                value = _of_scikit_learn(name, expected, given)
            except (ImportError, AttributeError, ValueError) as error:
                return Estimate(why=f"{name} cannot be computed from these verdicts: {error}")
    if value is None or not math.isfinite(value):
        return Estimate(why=f"{name} is not defined for these verdicts")
    return Estimate(value)


def _kappa(matrix: ConfusionMatrix) -> float | None:
    """Agreement beyond chance (Cohen 1960, Educ Psychol Meas 20:37-46)."""
    pairs = zip(matrix.rows, matrix.columns, strict=True)
    by_chance = sum(row * column for row, column in pairs) / matrix.n**2
    agreement = sum(row[index] for index, row in enumerate(matrix.counts)) / matrix.n
    return None if by_chance == 1 else (agreement - by_chance) / (1 - by_chance)


def _f1(matrix: ConfusionMatrix) -> float:
    """Twice the hits over labels and answers; 0 for a label that neither has."""
    scores = {}
    for index, label in enumerate(matrix.labels):
        occurs = matrix.rows[index] + matrix.columns[index]
        scores[label] = 2 * matrix.counts[index][index] / occurs
    if scores.keys() <= {0, 1}:
        return scores.get(1, 0.0)
    return sum(scores.values()) / len(scores)


def _of_scikit_learn(name: str, expected: Sequence[int], scores: Sequence[int]) -> float:
    import sklearn.metrics

    function = getattr(sklearn.metrics, name)
    options = {}
    if not {*expected, *scores} <= {0, 1} and "average" in inspect.signature(function).parameters:
        options["average"] = "macro"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(function(list(expected), list(scores), **options))

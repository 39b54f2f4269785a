"""Intervals of kappa, mean error and bias over clusters of cases (rule L2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.stats.inference.formulas import NO_VERDICT
from pytest_jrh.stats.inference.intervals import LEVEL, Bounds
from pytest_jrh.stats.inference.quantiles import t_quantile, t_tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_jrh.stats.inference.formulas import Pair

ALL_RIGHT = "no verdict is wrong, so nothing varies"
FEWEST_CLUSTERS = 5
_TOO_FEW = f"fewer than {FEWEST_CLUSTERS} samples or clusters"
# Added to the disagreements before the logarithm, in cases: finite where only one run has any.
_QUARTER = 0.25


class Sums(NamedTuple):
    """What the figures need to know of the labels and answers of one cluster, or of all."""

    n: int
    labels: int
    label_squares: int
    answers: int
    answer_squares: int
    square_errors: int
    errors: int
    signed_errors: int

    def less(self, other: Sums) -> Sums:
        """These sums without a cluster."""
        return Sums(*(one - two for one, two in zip(self, other, strict=True)))


def sums_of(pairs: Iterable[Pair]) -> Sums:
    """Sum up the pairs of label and answer of one cluster."""
    totals = [0] * len(Sums._fields)
    for label, answer in pairs:
        error = answer - label
        each = (1, label, label * label, answer, answer * answer, error * error, abs(error), error)
        totals = [total + term for total, term in zip(totals, each, strict=True)]
    return Sums(*totals)


def kappa_bounds(clusters: Iterable[Sums], level: float = LEVEL) -> Bounds:
    """Bound quadratically weighted kappa, which for the labels 0 and 1 is Cohen's.

    The jackknife over clusters (Fleiss and Davies 1982, Am J Epidemiol 115:841-845) with Student's
    t, on log(1 - kappa): kappa itself is skewed where it is high, and its interval too short.
    """
    given, total, reason = _summed(clusters)
    if reason:
        return Bounds(reason=reason)
    if total.square_errors == 0:
        return Bounds(reason=ALL_RIGHT if _chance(total) else "one class only")
    if total.n * total.answer_squares == total.answers**2:
        return Bounds(reason="every answer is the same, so nothing varies")
    if not all(_chance(total.less(each)) for each in given):
        return Bounds(reason="without one of the samples there is one class only")
    lower, upper = _of_logarithm(
        _disagreement(total), [_disagreement(total.less(each)) for each in given], total, level
    )
    return Bounds(max(-1.0, 1 - upper), min(1.0, 1 - lower))


def kappa_p(clusters: Iterable[Sums], sound: float) -> float:
    """One-sided p-value of a kappa this low where the true one is `sound`, by the jackknife of
    `kappa_bounds`; 1 where that has no interval.
    """
    given, total, reason = _summed(clusters)
    if reason or not total.square_errors or not all(_chance(total.less(each)) for each in given):
        return 1.0
    without = [_disagreement(total.less(each)) for each in given]
    centre, error = _logarithm(_disagreement(total), without, total)
    if not error:
        return 1.0
    return t_tail((centre - math.log(1 - sound)) / error, len(given) - 1)


def mean_error_bounds(clusters: Iterable[Sums], level: float = LEVEL) -> Bounds:
    """Bound the mean distance of answers from labels, in levels: the jackknife on its logarithm.

    Where errors are rare their mean is skewed: t over the means of the clusters covered 78 to 88%.
    """
    given, total, reason = _summed(clusters)
    if reason:
        return Bounds(reason=reason)
    if total.errors == 0:
        return Bounds(reason=ALL_RIGHT)
    others = [total.less(each) for each in given]
    lower, upper = _of_logarithm(
        total.errors / total.n, [other.errors / other.n for other in others], total, level
    )
    return Bounds(max(0.0, lower), upper)


def bias_bounds(clusters: Iterable[Sums], level: float = LEVEL) -> Bounds:
    """Bound the mean of answer minus label, in levels: Student's t over clusters.

    Clusters count by their cases, as in the mean itself (Cochran 1977, Sampling Techniques, 6.13).
    One error more than there are is taken to vary, or the interval is too short where all errors
    are in few clusters.
    """
    given, total, reason = _summed(clusters)
    if reason:
        return Bounds(reason=reason)
    if total.errors == 0:
        return Bounds(reason=ALL_RIGHT)
    mean, error = _bias(given, total)
    half = t_quantile((1 + level) / 2, len(given) - 1) * error
    return Bounds(mean - half, mean + half)


def bias_p(clusters: Iterable[Sums]) -> float:
    """Two-sided p-value of a bias this far from 0, by the test that `bias_bounds` inverts; 1 where
    that has no interval.
    """
    given, total, reason = _summed(clusters)
    if reason or total.errors == 0:
        return 1.0
    mean, error = _bias(given, total)
    return 2 * t_tail(abs(mean) / error, len(given) - 1)


def _bias(given: Sequence[Sums], total: Sums) -> tuple[float, float]:
    """The bias and its standard error."""
    mean, runs = total.signed_errors / total.n, len(given)
    squares = math.fsum((each.signed_errors - mean * each.n) ** 2 for each in given)
    return mean, math.sqrt(runs / (runs - 1) * squares + 1) / total.n


def _summed(clusters: Iterable[Sums]) -> tuple[list[Sums], Sums, str | None]:
    given = [each for each in clusters if each.n]
    total = Sums(*map(sum, zip(*given, strict=True))) if given else sums_of(())
    if not given:
        return given, total, NO_VERDICT
    return given, total, _TOO_FEW if len(given) < FEWEST_CLUSTERS else None


def _chance(sums: Sums) -> int:
    """The squared distance of every label from every answer."""
    apart = sums.n * (sums.label_squares + sums.answer_squares)
    return apart - 2 * sums.labels * sums.answers


def _disagreement(sums: Sums) -> float:
    """1 - kappa: the squared errors, in what chance would give."""
    return sums.n * sums.square_errors / _chance(sums)


def _of_logarithm(
    figure: float, without: Sequence[float], total: Sums, level: float
) -> tuple[float, float]:
    """Bound a positive figure by the jackknife of its logarithm; `without` lacks each cluster."""
    added = _QUARTER / total.n
    centre, error = _logarithm(figure, without, total)
    half = t_quantile((1 + level) / 2, len(without) - 1) * error
    return math.exp(centre - half) - added, math.exp(centre + half) - added


def _logarithm(figure: float, without: Sequence[float], total: Sums) -> tuple[float, float]:
    """The logarithm of a positive figure, and its standard error."""
    runs, added = len(without), _QUARTER / total.n
    logarithms = [math.log(each + added) for each in without]
    middle = math.fsum(logarithms) / runs
    spread = math.fsum((each - middle) ** 2 for each in logarithms)
    return math.log(figure + added), math.sqrt((runs - 1) / runs * spread)

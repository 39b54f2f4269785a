"""Figures whose cases come in clusters, with their intervals: shares, kappa, mean error, bias, and
how often a judge that is asked again says something else.

A cluster is one sample of the log over all its epochs and cases. Cases of one cluster are right and
wrong together, so that a hundred cases of ten runs say less than a hundred runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

from pytest_jrh.stats.formulas import (
    NO_VERDICT,
    Estimate,
    Pair,
    normal_quantile,
    t_quantile,
    t_tail,
)

LEVEL = 0.95
ONE_CLUSTER = "all verdicts come from one sample or cluster"
# What is taken for the correlation inside of clusters until the data say more: the guess weighs
# as much as three mistakes and as four clusters do.
_GUESSED_CORRELATION = 0.3
_GUESS_IN_MISTAKES = 3
_GUESS_IN_CLUSTERS = 4
_FEWEST_CLUSTERS = 2


_Item = TypeVar("_Item")


class Tally(NamedTuple):
    """One cluster: `right` of its `n` cases are right, found, or whatever is counted."""

    right: int
    n: int


class Design(NamedTuple):
    """What an interval needs to know of the clusters beside the mistakes.

    `weighted` is the mean size of a case's cluster, `pairs` the number of ordered pairs of cases
    that share a cluster, and `z` and `t` the quantiles of the level for many clusters and for
    these.
    """

    n: float
    clusters: int
    weighted: float
    pairs: float
    z: float
    t: float


def by_cluster(items: Iterable[tuple[Hashable, _Item]]) -> list[list[_Item]]:
    """Put together what is no independent observation: all that has one cluster."""
    clusters: dict[Hashable, list[_Item]] = {}
    for cluster, item in items:
        clusters.setdefault(cluster, []).append(item)
    return list(clusters.values())


def tallied(marks: Iterable[tuple[Hashable, bool]]) -> list[Tally]:
    """Count in each cluster the cases of which something is true."""
    return [Tally(sum(cluster), len(cluster)) for cluster in by_cluster(marks)]


def estimate_share(
    tallies: Iterable[Tally], level: float = LEVEL, missing: str = NO_VERDICT
) -> Estimate:
    """The share of cases that are counted, bounded by Wilson's interval on the effective sample
    size; without cases, `missing` says what there is none of.

    The `n` cases are as good as `n / (1 + (m - 1) * rho)` independent ones (Korn and Graubard
    1998, Survey Methodology 24:193-201; Dean and Pagano 2015, J Surv Stat Methodol 3:484-503),
    `m` the mean size of a case's cluster and `rho` the correlation inside of clusters, shrunk
    towards 0.3 where there are few mistakes or clusters. The normal quantile moves towards
    Student's t as far as clusters matter. With one case a cluster it is exactly Wilson's interval
    (1927, JASA 22:209-212).

    One more mistake never raises either bound. The formula alone does not see to that, as `rho`
    may fall with a mistake: each bound is therefore the lowest that the formula gives to these
    cases with any of the mistakes undone. For a number of mistakes a bound moves one way with the
    pairs of mistakes that share a cluster, so of all choices of what to undo two are looked at:
    the pairs are fewest where it is always in the cluster with most mistakes, and most where in
    the one with fewest.
    """
    estimate = _estimate_share(tuple(sorted(tally for tally in tallies if tally.n)), level)
    return estimate if estimate.n else replace(estimate, why=missing)


# One set of cases is bounded at several levels of the table, and under several names.
@lru_cache(maxsize=256)
def _estimate_share(tallies: tuple[Tally, ...], level: float) -> Estimate:
    if not tallies:
        return Estimate(count=0, why=NO_VERDICT)
    count, n = sum(tally.right for tally in tallies), sum(tally.n for tally in tallies)
    if len(tallies) < _FEWEST_CLUSTERS and n > 1:
        return Estimate(count / n, count=count, n=n, why=ONE_CLUSTER)
    design = design_of([tally.n for tally in tallies], level)
    wrong = sorted((tally.n - tally.right for tally in tallies), reverse=True)
    lower = _lowest(design, _most_pairs(wrong), upper=False)
    return Estimate(
        count / n, lower, _lowest(design, _fewest_pairs(wrong), upper=True), count=count, n=n
    )


def effective_size(tallies: Iterable[Tally]) -> float:
    """How many independent cases these clusters are as good as, at most as many as they have."""
    filled = [tally for tally in tallies if tally.n]
    if not filled:
        return 0.0
    if len(filled) < _FEWEST_CLUSTERS:
        return 1.0
    design = design_of([tally.n for tally in filled])
    wrong = [tally.n - tally.right for tally in filled]
    pairs = sum(number * (number - 1) for number in wrong)
    return design.n / (1 + (design.weighted - 1) * _correlation(design, sum(wrong), pairs))


def design_of(sizes: Sequence[float], level: float = LEVEL) -> Design:
    """Sum up the sizes of clusters, two or more of them or a single case."""
    n, clusters = sum(sizes), len(sizes)
    squares = sum(size * size for size in sizes)
    z = normal_quantile((1 + level) / 2)
    t = t_quantile((1 + level) / 2, clusters - 1) if clusters >= _FEWEST_CLUSTERS else z
    return Design(n, clusters, squares / n, squares - n, z, t)


def wilson(share: float, square: float) -> tuple[float, float]:
    """Bounds of the score interval of a share (Wilson 1927, JASA 22:209-212).

    `square` is the squared quantile of the level over the number of cases. Rounding may leave a
    bound a little outside of 0 to 1.
    """
    half = math.sqrt(square * (share * (1 - share) + square / 4))
    return (share + square / 2 - half) / (1 + square), (share + square / 2 + half) / (1 + square)


def wilson_bounds(design: Design, wrong: float, pairs: float) -> tuple[float, float]:
    """Bound the share that is right; `pairs` are ordered pairs of mistakes in one cluster."""
    extra = (design.weighted - 1) * _correlation(design, wrong, pairs)
    n = design.n / (1 + extra)
    z = design.z + (design.t - design.z) * extra / (1 + extra)
    square = z * z / n
    share = 1 - wrong / design.n
    lower, upper = wilson(share, square)
    return max(0.0, lower) if share else 0.0, min(1.0, upper) if wrong else 1.0


def intraclass_correlation(design: Design, wrong: float, pairs: float) -> float:
    """Estimate how much alike cases of one cluster are, from 0 to 1; 0 where nothing differs.

    From the share of pairs inside of clusters that are both wrong, free of the bias that the
    estimated share brings. With clusters of one size it is the estimate of the analysis of
    variance (Ridout, Demetrio and Firth 1999, Biometrics 55:137-148). It never falls as `pairs`
    alone rises.
    """
    share = wrong / design.n
    if not design.pairs or not 0 < share < 1:
        return 0.0
    within = (share - pairs / design.pairs) / (share * (1 - share))
    above = 1 - within * (1 - 1 / design.n)
    if above <= 0:
        return 0.0
    return min(1.0, above / (1 - within * (design.weighted - 1) / design.n))


def _correlation(design: Design, wrong: float, pairs: float) -> float:
    rarer = min(wrong, design.n - wrong)
    weight = rarer / (rarer + _GUESS_IN_MISTAKES)
    weight *= (design.clusters - 1) / (design.clusters - 1 + _GUESS_IN_CLUSTERS)
    estimate = intraclass_correlation(design, wrong, pairs) if weight else 0.0
    return weight * estimate + (1 - weight) * _GUESSED_CORRELATION


def _lowest(design: Design, steps: Iterable[tuple[int, int]], *, upper: bool) -> float:
    """The lowest of one bound over numbers of mistakes and their pairs, most mistakes first."""
    lowest = 1.0
    for wrong, pairs in steps:
        lowest = min(lowest, wilson_bounds(design, wrong, pairs)[upper])
        # Undoing more mistakes raises what the bound can be at its lowest, for any correlation.
        if _floor(design, wrong, upper=upper) >= lowest:
            break
    return lowest


def _floor(design: Design, wrong: int, *, upper: bool) -> float:
    """Below this the bound is not for one mistake less, wherever the others lie."""
    if upper:
        return 1 - (wrong - 1) / design.n
    square = design.t**2 * design.weighted / design.n
    share = 1 - max(0, wrong - 1) / design.n
    return wilson(share, square)[0]


def _fewest_pairs(wrong: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Undo mistakes one by one where most of them are; give what is left and its pairs.

    `wrong` is in falling order.
    """
    total, pairs = sum(wrong), sum(number * (number - 1) for number in wrong)
    yield total, pairs
    levels = [*wrong, 0]
    for clusters, level in enumerate(wrong, 1):
        for height in range(level, levels[clusters], -1):
            for _ in range(clusters):
                total, pairs = total - 1, pairs - 2 * (height - 1)
                yield total, pairs


def _most_pairs(wrong: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Undo mistakes one by one where fewest of them are; give what is left and its pairs."""
    total, pairs = sum(wrong), sum(number * (number - 1) for number in wrong)
    yield total, pairs
    for number in reversed(wrong):
        for height in range(number, 0, -1):
            total, pairs = total - 1, pairs - 2 * (height - 1)
            yield total, pairs


ALL_RIGHT = "no verdict is wrong, so nothing varies"
SAME_CLASS = "one class only: labels and answers are all the same"
FEWEST_CLUSTERS = 5
_TOO_FEW = f"fewer than {FEWEST_CLUSTERS} samples or clusters"
# Added to the disagreements before the logarithm, in cases: finite where only one run has any.
_QUARTER = 0.25
# Scores whose squares sum up to more are of no scale.
_LARGEST_SQUARES = 1e24


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
        terms = (1, label, label * label, answer, answer * answer, error * error, abs(error), error)
        totals = [total + term for total, term in zip(totals, terms, strict=True)]
    return Sums(*totals)


def summed(pairs: Iterable[tuple[Hashable, Pair]]) -> list[Sums]:
    """Sum up the pairs of label and answer in each cluster."""
    return [sums_of(cluster) for cluster in by_cluster(pairs)]


def estimate_kappa(clusters: Iterable[Sums], level: float = LEVEL) -> Estimate:
    """Agreement beyond chance, quadratically weighted (Cohen 1968, Psychol Bull 70:213-220), which
    for the labels 0 and 1 is Cohen's (1960, Educ Psychol Meas 20:37-46): 1 is perfect, 0 what
    chance gives.

    Bounded by the jackknife over clusters (Fleiss and Davies 1982, Am J Epidemiol 115:841-845) with
    Student's t, on log(1 - kappa): kappa itself is skewed where it is high, and its interval too
    short.
    """
    sums = _Clusters.of(clusters)
    if not sums.total.n:
        return Estimate(why=sums.why)
    if not _chance(sums.total):
        return Estimate(n=sums.total.n, why=SAME_CLASS)
    estimate = Estimate(1 - _disagreement(sums.total), n=sums.total.n)
    if why := _no_kappa_interval(sums):
        return replace(estimate, why=why)
    lower, upper = _of_logarithm(sums, _disagreement, level)
    return replace(estimate, lower=1 - upper, upper=1 - lower).within(-1.0, 1.0)


def kappa_p(clusters: Iterable[Sums], sound: float) -> float:
    """One-sided p-value of a kappa this low where the true one is `sound`, by the jackknife of
    `estimate_kappa`; 1 where that has no interval.
    """
    sums = _Clusters.of(clusters)
    if not sums.total.n or not _chance(sums.total) or _no_kappa_interval(sums):
        return 1.0
    centre, error = _logarithm(sums, _disagreement)
    if not error:
        return 1.0
    return t_tail((centre - math.log(1 - sound)) / error, len(sums.each) - 1)


def _no_kappa_interval(sums: _Clusters) -> str:
    """Why a kappa has no interval; empty where it has one."""
    if sums.why:
        return sums.why
    if sums.total.n * sums.total.answer_squares == sums.total.answers**2:
        return "every answer is the same, so nothing varies"
    if not all(map(_chance, sums.without)):
        return "without one of the samples there is one class only"
    return ""


def estimate_mean_error(clusters: Iterable[Sums], level: float = LEVEL) -> Estimate:
    """The mean distance of answers from labels, in levels, bounded by the jackknife on its
    logarithm.

    Where errors are rare their mean is skewed: t over the means of the clusters covered 78 to 88%.
    """
    sums = _Clusters.of(clusters)
    if not sums.total.n:
        return Estimate(why=sums.why)
    estimate = Estimate(_mean_error(sums.total), n=sums.total.n)
    if sums.why:
        return replace(estimate, why=sums.why)
    lower, upper = _of_logarithm(sums, _mean_error, level)
    return replace(estimate, lower=max(0.0, lower), upper=upper)


def estimate_bias(clusters: Iterable[Sums], level: float = LEVEL) -> Estimate:
    """The mean of answer minus label, in levels, bounded by Student's t over clusters: above 0, the
    judge scores too high.

    Clusters count by their cases, as in the mean itself (Cochran 1977, Sampling Techniques, 6.13).
    One error more than there are is taken to vary, or the interval is too short where all errors
    are in few clusters.
    """
    sums = _Clusters.of(clusters)
    if not sums.total.n:
        return Estimate(why=sums.why)
    bias = sums.total.signed_errors / sums.total.n
    if sums.why:
        return Estimate(bias, n=sums.total.n, why=sums.why)
    half = t_quantile((1 + level) / 2, len(sums.each) - 1) * _bias_error(sums)
    return Estimate(bias, bias - half, bias + half, n=sums.total.n)


def bias_p(clusters: Iterable[Sums]) -> float:
    """Two-sided p-value of a bias this far from 0, by the test that `estimate_bias` inverts; 1
    where that has no interval.
    """
    sums = _Clusters.of(clusters)
    if not sums.total.n or sums.why:
        return 1.0
    bias = sums.total.signed_errors / sums.total.n
    return 2 * t_tail(abs(bias) / _bias_error(sums), len(sums.each) - 1)


def _bias_error(sums: _Clusters) -> float:
    """The standard error of the bias."""
    bias, runs = sums.total.signed_errors / sums.total.n, len(sums.each)
    squares = math.fsum((cluster.signed_errors - bias * cluster.n) ** 2 for cluster in sums.each)
    return math.sqrt(runs / (runs - 1) * squares + 1) / sums.total.n


@dataclass(frozen=True, slots=True)
class _Clusters:
    """The sums of clusters with cases, and of all; `why` says why they give no interval."""

    each: list[Sums]
    total: Sums
    why: str

    @classmethod
    def of(cls, clusters: Iterable[Sums]) -> _Clusters:
        filled = [sums for sums in clusters if sums.n]
        if not filled:
            return cls([], sums_of(()), NO_VERDICT)
        total = Sums(*map(sum, zip(*filled, strict=True)))
        if total.label_squares + total.answer_squares > _LARGEST_SQUARES:
            return cls([], sums_of(()), "the scores are too large to calculate with")
        if len(filled) < FEWEST_CLUSTERS:
            return cls(filled, total, _TOO_FEW)
        return cls(filled, total, "" if total.errors else ALL_RIGHT)

    @property
    def without(self) -> Iterator[Sums]:
        """All sums but those of each cluster."""
        return (self.total.less(cluster) for cluster in self.each)


def _chance(sums: Sums) -> int:
    """The squared distance of every label from every answer."""
    apart = sums.n * (sums.label_squares + sums.answer_squares)
    return apart - 2 * sums.labels * sums.answers


def _disagreement(sums: Sums) -> float:
    """1 - kappa: the squared errors, in what chance would give."""
    return sums.n * sums.square_errors / _chance(sums)


def _mean_error(sums: Sums) -> float:
    return sums.errors / sums.n


def _of_logarithm(
    sums: _Clusters, figure: Callable[[Sums], float], level: float
) -> tuple[float, float]:
    """Bound a positive figure by the jackknife of its logarithm."""
    added = _QUARTER / sums.total.n
    centre, error = _logarithm(sums, figure)
    half = t_quantile((1 + level) / 2, len(sums.each) - 1) * error
    return math.exp(centre - half) - added, math.exp(centre + half) - added


def _logarithm(sums: _Clusters, figure: Callable[[Sums], float]) -> tuple[float, float]:
    """The logarithm of a positive figure, and its standard error."""
    runs, added = len(sums.each), _QUARTER / sums.total.n
    logarithms = [math.log(figure(others) + added) for others in sums.without]
    middle = math.fsum(logarithms) / runs
    spread = math.fsum((logarithm - middle) ** 2 for logarithm in logarithms)
    return math.log(figure(sums.total) + added), math.sqrt((runs - 1) / runs * spread)


NOT_REPEATED = "no case was judged more than once"
NOT_ASKED_TWICE = Estimate(count=0, why=NOT_REPEATED)
_TWICE = 2


@dataclass(frozen=True, slots=True)
class RepeatedCase:
    """The scores that one judge gave to one case, in any order, and the case's cluster.

    `binary` says that no other scores than 0 and 1 are on offer; None where the scores tell.
    """

    cluster: Hashable
    scores: tuple[int, ...]
    binary: bool | None = None

    @property
    def flickers(self) -> bool:
        """Whether two of the scores differ."""
        return len(set(self.scores)) > 1


def estimate_flicker(cases: Iterable[RepeatedCase], level: float = LEVEL) -> Estimate:
    """How often a judge contradicts itself: the share of ordered pairs of repeats of a case that
    differ, over the `n` repeated cases, of which `count` have scores that are not all the same.

    With the probability f of each verdict to be flipped it is 2 f (1 - f). Of k scores, 0 or 1,
    no more than about half of the pairs can differ: with shares of that as what is counted, the
    interval is no wider than the cases make it.
    """
    repeated = [case for case in cases if len(case.scores) >= _TWICE]
    if not repeated:
        return NOT_ASKED_TWICE
    shares = [differing_pairs(case.scores) for case in repeated]
    estimate = Estimate(
        value=math.fsum(shares) / len(repeated),
        count=sum(case.flickers for case in repeated),
        n=len(repeated),
    )
    most = max(_most_flicker_pairs(case) for case in repeated)
    pairs = zip(repeated, shares, strict=True)
    clusters = by_cluster((case.cluster, share / most) for case, share in pairs)
    if len(clusters) == 1 and len(repeated) > 1:
        return replace(estimate, why="all cases come from one sample or cluster")
    together = math.fsum(
        math.fsum(cluster) ** 2 - math.fsum(share * share for share in cluster)
        for cluster in clusters
    )
    design = design_of([len(cluster) for cluster in clusters], level)
    lower, upper = wilson_bounds(design, math.fsum(shares) / most, together)
    return replace(estimate, lower=most * (1 - upper), upper=most * (1 - lower))


def differing_pairs(scores: Sequence[int]) -> float:
    """The share of ordered pairs of two or more scores that differ."""
    same = sum(count * (count - 1) for count in Counter(scores).values())
    return 1 - same / (len(scores) * (len(scores) - 1))


def flip_probability(flicker: float) -> float:
    """The probability f of a verdict to be flipped: a flicker is 2 f (1 - f)."""
    return (1 - math.sqrt(max(0.0, 1 - 2 * flicker))) / 2


def majority_flip(flip: float, repeats: int) -> float:
    """The probability of a majority of repeats to be flipped; a tie counts as flipped."""
    needed = (repeats + 1) // 2
    return math.fsum(
        math.comb(repeats, wrong) * flip**wrong * (1 - flip) ** (repeats - wrong)
        for wrong in range(needed, repeats + 1)
    )


def false_alarm_of_snapshot(cases: int, flicker: float, repeats: int = 1) -> float:
    """The probability that "any regression fails" fails on a judge that did not change at all.

    A case regresses where the judge was right and is now wrong. Of an unchanged judge either
    order is as likely, so that it is half of the flicker, here of the majority of `repeats`.
    """
    flip = majority_flip(flip_probability(flicker), repeats)
    return 1 - (1 - flip * (1 - flip)) ** cases


def _most_flicker_pairs(case: RepeatedCase) -> float:
    """The most that `differing_pairs` can be, for scores of 0 and 1 or of more values.

    The scores of a judge of one's own may be outside of the scale.
    """
    k = len(case.scores)
    binary = case.binary is not False and set(case.scores) <= {0, 1}
    return (k // 2) * (k - k // 2) * 2 / (k * (k - 1)) if binary else 1.0

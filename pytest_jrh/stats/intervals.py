"""Figures whose cases come in clusters, with their intervals: shares, kappa, mean error, bias, how
often a judge that is asked again says something else, and which drop a comparison leaves unseen.

A cluster is one sample of the log over all its epochs and cases. Cases of one cluster are right and
wrong together, so that a hundred cases of ten runs say less than a hundred runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeVar

from pytest_jrh.stats.formulas import (
    NO_VERDICT,
    Estimate,
    Pair,
    binomial_tail,
    normal_quantile,
    t_quantile,
    t_tail,
)

LEVEL = 0.95
POWER = 0.8
ONE_CLUSTER = "all verdicts come from one sample or cluster"
# What is taken for the correlation inside of clusters until the data say more: where all cases are
# alike, and where some are right and some wrong. The guess then weighs as much as one independent
# mistake and as one cluster do: less covered under 91% where few cases are wrong.
_GUESS_WHERE_ALL_ALIKE = 0.3
_GUESS = 0.6
_FEWEST_CLUSTERS = 2


_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


class Tally(NamedTuple):
    """One cluster: `right` of its `n` cases are right, found, or whatever is counted."""

    right: int
    n: int


class Design(NamedTuple):
    """What an interval needs to know of the clusters beside the mistakes.

    `weighted` is the mean size of a case's cluster, so that there are as many clusters as `n /
    weighted` of one size; `paired` is the number of cases that share a cluster with another. `z`
    and `t` are the quantiles of the level for many clusters and for so many of one size.
    """

    n: float
    weighted: float
    paired: float
    z: float
    t: float


def grouped(items: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Put items under their keys, in the order in which these appear."""
    groups: dict[_Key, list[_Item]] = {}
    for key, item in items:
        groups.setdefault(key, []).append(item)
    return groups


def by_cluster(items: Iterable[tuple[Hashable, _Item]]) -> list[list[_Item]]:
    """Put together what is no independent observation: all that has one cluster."""
    return list(grouped(items).values())


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
    towards 0.6 where there are few mistakes or clusters, and 0.3 where all cases are alike. The
    normal quantile moves towards Student's t as far as clusters matter. With one case a cluster it
    is exactly Wilson's interval (1927, JASA 22:209-212).

    One more mistake never raises either bound, and right and wrong swapped mirror the interval. The
    formula alone does not see to the first, as `rho` may fall with a mistake: the lower bound is
    therefore the lowest that the formula gives to these cases with any of the mistakes undone, and
    the upper one the highest with any of the right cases turned wrong.
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
    lower = _lowest(design, tallies)
    upper = 1 - _lowest(design, [Tally(tally.n - tally.right, tally.n) for tally in tallies])
    return Estimate(count / n, lower, upper, count=count, n=n)


def effective_size(tallies: Iterable[Tally]) -> float:
    """How many independent cases these clusters are as good as, at most as many as they have."""
    filled = [tally for tally in tallies if tally.n]
    if len(filled) < _FEWEST_CLUSTERS:
        return float(len(filled))
    design = design_of([tally.n for tally in filled])
    wrong = sum(tally.n - tally.right for tally in filled)
    unlike = math.fsum((tally.n - tally.right) * _unlike(tally) for tally in filled)
    return design.n / (1 + _excess(design, wrong, unlike))


def design_of(sizes: Sequence[float], level: float = LEVEL) -> Design:
    """Sum up the sizes of clusters, two or more of them or a single case."""
    n, squares = sum(sizes), sum(size * size for size in sizes)
    z = normal_quantile((1 + level) / 2)
    t = z
    if len(sizes) >= _FEWEST_CLUSTERS:
        t = t_quantile((1 + level) / 2, max(1.0, n * n / squares - 1))
    return Design(n, squares / n, sum(size for size in sizes if size > 1), z, t)


def wilson(share: float, square: float) -> tuple[float, float]:
    """Bounds of the score interval of a share (Wilson 1927, JASA 22:209-212).

    `square` is the squared quantile of the level over the number of cases. Rounding may leave a
    bound a little outside of 0 to 1.
    """
    half = math.sqrt(square * (share * (1 - share) + square / 4))
    return (share + square / 2 - half) / (1 + square), (share + square / 2 + half) / (1 + square)


def wilson_bounds(design: Design, wrong: float, unlike: float) -> tuple[float, float]:
    """Bound the share that is right; `unlike` is as in `intraclass_correlation`."""
    excess = _excess(design, wrong, unlike)
    z = design.z + (design.t - design.z) * math.sqrt(excess / (1 + excess))
    share = 1 - wrong / design.n
    lower, upper = wilson(share, z * z * (1 + excess) / design.n)
    return max(0.0, lower) if share else 0.0, min(1.0, upper) if wrong else 1.0


def _unlike(tally: Tally) -> float:
    """The share of the other cases of its cluster that are right, for a case that is wrong."""
    return tally.right / (tally.n - 1) if tally.n > 1 else 0.0


def intraclass_correlation(design: Design, wrong: float, unlike: float) -> float:
    """Estimate how much alike cases of one cluster are, from 0 to 1; 0 where nothing differs.

    `unlike` sums up over the wrong cases which share of the others in their cluster is right. Right
    and wrong may be swapped. It is free of the bias that the estimated share brings, and with
    clusters of one size the estimate of the analysis of variance (Ridout, Demetrio and Firth 1999,
    Biometrics 55:137-148). It never rises as `unlike` alone does.
    """
    share = wrong / design.n
    if not design.paired or not 0 < share < 1:
        return 0.0
    within = unlike / design.paired / (share * (1 - share))
    above = 1 - within * (1 - 1 / design.n)
    if above <= 0:
        return 0.0
    return min(1.0, above / (1 - within * (design.weighted - 1) / design.n))


def _excess(design: Design, wrong: float, unlike: float) -> float:
    """How many cases more than an independent one a case takes: `(m - 1) * rho`."""
    others = design.weighted - 1
    if not 0 < wrong < design.n:
        return others * _GUESS_WHERE_ALL_ALIKE
    estimate = intraclass_correlation(design, wrong, unlike)
    rarer = min(wrong, design.n - wrong) / (1 + others * estimate)
    clusters = design.n / design.weighted
    weight = rarer / (rarer + 1) * (clusters - 1) / clusters
    return others * (weight * estimate + (1 - weight) * _GUESS)


def _lowest(design: Design, tallies: Iterable[Tally]) -> float:
    """The lowest that the lower bound can be with any of the mistakes undone.

    For so many mistakes the bound is lowest where they are most alike. What is `unlike` in clusters
    with some mistakes undone is no less than these mistakes' shares of what it is now (it is
    concave), so that those are undone first of which these are largest.
    """
    mistakes = [share for tally in tallies for share in [_unlike(tally)] * (tally.n - tally.right)]
    mistakes.sort()
    wrong, unlike = len(mistakes), math.fsum(mistakes)
    lowest = wilson_bounds(design, wrong, unlike)[0]
    surest = design.t**2 * design.weighted / design.n
    # Undoing more mistakes raises what the bound can be at its lowest, for any correlation.
    while wrong and wilson(1 - (wrong - 1) / design.n, surest)[0] < lowest:
        wrong, unlike = wrong - 1, unlike - mistakes.pop()
        lowest = min(lowest, wilson_bounds(design, wrong, max(0.0, unlike))[0])
    return lowest


ALL_RIGHT = "no verdict is wrong, so nothing varies"
SAME_CLASS = "one class only: labels and answers are all the same"
FEWEST_CLUSTERS = 5
_TOO_FEW = f"fewer than {FEWEST_CLUSTERS} samples or clusters"
# Scores whose squares sum up to more are of no scale.
_LARGEST_SQUARES = 1e24
_TOO_LARGE = "the scores are too large to calculate with"


class Sums(NamedTuple):
    """What the figures need to know of the labels and answers of one cluster, or of all."""

    n: int
    wrong: int
    labels: int
    label_squares: int
    answers: int
    answer_squares: int
    fourth_errors: int
    square_errors: int
    errors: int
    signed_errors: int


def sums_of(pairs: Iterable[Pair]) -> Sums:
    """Sum up the pairs of label and answer of one cluster."""
    totals = [0] * len(Sums._fields)
    for label, answer in pairs:
        error = answer - label
        square = error * error
        squares = (label, label * label, answer, answer * answer, square * square, square)
        terms = (1, int(error != 0), *squares, abs(error), error)
        totals = [total + term for total, term in zip(totals, terms, strict=True)]
    return Sums(*totals)


def summed(pairs: Iterable[tuple[Hashable, Pair]]) -> list[Sums]:
    """Sum up the pairs of label and answer in each cluster."""
    return [sums_of(cluster) for cluster in by_cluster(pairs)]


def estimate_kappa(clusters: Iterable[Sums], level: float = LEVEL) -> Estimate:
    """Agreement beyond chance, quadratically weighted (Cohen 1968, Psychol Bull 70:213-220), which
    for the labels 0 and 1 is Cohen's (1960, Educ Psychol Meas 20:37-46): 1 is perfect, 0 what
    chance gives.

    Bounded as the share of right answers is, with what chance gives held fixed: for the labels 0
    and 1 `(bound - chance) / (1 - chance)`. On a longer scale how far wrong answers are off varies,
    too; where none is wrong, a wrong one is taken to be as far off as by chance.
    """
    filled, total, why = _added_up(clusters)
    if not total.n:
        return Estimate(why=why)
    chance = _chance(total)
    if not chance:
        return Estimate(n=total.n, why=SAME_CLASS)
    disagreement = total.n * total.square_errors / chance
    spread = _spread(total, total.square_errors, total.fourth_errors)
    surely_wrong = max(1.0, total.n * total.n / chance)
    distance = _scaled(filled, disagreement, surely_wrong, spread, level)
    if distance.lower is None or distance.upper is None:
        return Estimate(1 - disagreement, n=total.n, why=distance.why)
    lower, upper = max(-1.0, 1 - distance.upper), 1 - distance.lower
    return Estimate(1 - disagreement, lower, upper, n=total.n)


def kappa_p(clusters: Iterable[Sums], sound: float) -> float:
    """One-sided p-value of a kappa this low where the true one is `sound`, by the score test that
    `estimate_kappa` inverts; 1 where that has no interval.
    """
    filled, total, _ = _added_up(clusters)
    chance = _chance(total)
    if len(filled) < _FEWEST_CLUSTERS or not chance or not total.wrong:
        return 1.0
    share = total.wrong / total.n
    limit = share * (1 - sound) * chance / (total.n * total.square_errors)
    if limit >= 1:
        return 1.0
    error = math.sqrt(limit * (1 - limit) / effective_size(_right(filled)))
    design = design_of([sums.n for sums in filled])
    return t_tail((share - limit) / error, max(1.0, design.n / design.weighted - 1))


def estimate_mean_error(clusters: Iterable[Sums]) -> Estimate:
    """The mean distance of answers from labels, in levels, bounded as the share of wrong answers
    and how far these are off; where none is wrong, by one level.
    """
    filled, total, why = _added_up(clusters)
    if not total.n:
        return Estimate(why=why)
    spread = _spread(total, total.errors, total.square_errors)
    return _scaled(filled, total.errors / total.n, 1.0, spread, LEVEL)


def _spread(total: Sums, sum_of_sizes: int, sum_of_squares: int) -> float:
    """How much wrong cases vary in how far they are off: their squared coefficient of variation.

    0 for scores of 0 and 1, of which none is off by more than another. Else one wrong case more
    than there are is taken to vary by as much as it counts.
    """
    if total.label_squares == total.labels and total.answer_squares == total.answers:
        return 0.0
    if not total.wrong:
        return 1.0
    squares = total.wrong * sum_of_squares / sum_of_sizes**2 - 1
    return (total.wrong * squares + 1) / (total.wrong + 1)


def _scaled(
    clusters: Sequence[Sums], figure: float, if_wrong: float, spread: float, level: float
) -> Estimate:
    """A mean over cases to which only wrong ones add, bounded by the intervals of their share and
    of how far they are off (MOVER: Zou and Donner 2008, Stat Med 27:1693-1702).

    `if_wrong` is what the figure is taken to be if all cases were wrong, where none is.
    """
    right = _right(clusters)
    wrong = estimate_share(right, level).complement()
    estimate = Estimate(figure, n=wrong.n, why=wrong.why)
    if wrong.value is None or wrong.lower is None or wrong.upper is None:
        return estimate
    scale = figure / wrong.value if wrong.value else if_wrong
    effective = effective_size(right) * wrong.value
    off = 0.0
    if figure:
        off = figure * normal_quantile((1 + level) / 2) * math.sqrt(spread / effective)
    return replace(
        estimate,
        lower=max(0.0, figure - math.hypot(figure - scale * wrong.lower, off)),
        upper=figure + math.hypot(scale * wrong.upper - figure, off),
    )


def _right(clusters: Iterable[Sums]) -> list[Tally]:
    return [Tally(sums.n - sums.wrong, sums.n) for sums in clusters]


def estimate_bias(clusters: Iterable[Sums], level: float = LEVEL) -> Estimate:
    """The mean of answer minus label, in levels, bounded by Student's t over clusters: above 0, the
    judge scores too high.

    Clusters count by their cases, as in the mean itself (Cochran 1977, Sampling Techniques, 6.13).
    One error more than there are is taken to vary, or the interval is too short where all errors
    are in few clusters.
    """
    filled, total, why = _added_up(clusters)
    if not total.n:
        return Estimate(why=why)
    bias = total.signed_errors / total.n
    if why := _no_bias_interval(filled, total):
        return Estimate(bias, n=total.n, why=why)
    half = t_quantile((1 + level) / 2, len(filled) - 1) * _bias_error(filled, total)
    return Estimate(bias, bias - half, bias + half, n=total.n)


def bias_p(clusters: Iterable[Sums]) -> float:
    """Two-sided p-value of a bias this far from 0, by the test that `estimate_bias` inverts; 1
    where that has no interval.
    """
    filled, total, _ = _added_up(clusters)
    if _no_bias_interval(filled, total):
        return 1.0
    bias = total.signed_errors / total.n
    return 2 * t_tail(abs(bias) / _bias_error(filled, total), len(filled) - 1)


def _no_bias_interval(clusters: Sequence[Sums], total: Sums) -> str:
    """Why a bias has no interval; empty where it has one."""
    if len(clusters) < FEWEST_CLUSTERS:
        return _TOO_FEW
    return "" if total.errors else ALL_RIGHT


def _bias_error(clusters: Sequence[Sums], total: Sums) -> float:
    """The standard error of the bias."""
    bias, runs = total.signed_errors / total.n, len(clusters)
    squares = math.fsum((cluster.signed_errors - bias * cluster.n) ** 2 for cluster in clusters)
    return math.sqrt(runs / (runs - 1) * squares + 1) / total.n


def _added_up(clusters: Iterable[Sums]) -> tuple[list[Sums], Sums, str]:
    """The clusters with cases, the sums of all, and why there are none."""
    filled = [sums for sums in clusters if sums.n]
    total = Sums(*map(sum, zip(*filled, strict=True))) if filled else sums_of(())
    if total.label_squares + total.answer_squares > _LARGEST_SQUARES:
        return [], sums_of(()), _TOO_LARGE
    return filled, total, "" if filled else NO_VERDICT


def _chance(sums: Sums) -> int:
    """The squared distance of every label from every answer."""
    apart = sums.n * (sums.label_squares + sums.answer_squares)
    return apart - 2 * sums.labels * sums.answers


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


def estimate_flicker(cases: Iterable[RepeatedCase]) -> Estimate:
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
    # A case counts as much as it flickers, and is unlike the rest by what these do not.
    unlike = math.fsum(
        share * (len(cluster) - 1 - math.fsum(cluster) + share) / (len(cluster) - 1)
        for cluster in clusters
        if len(cluster) > 1
        for share in cluster
    )
    design = design_of([len(cluster) for cluster in clusters])
    lower, upper = wilson_bounds(design, math.fsum(shares) / most, unlike)
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
    return binomial_tail((repeats + 1) // 2, repeats, flip)


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


ONE_RUN = "all cases come from one source run"
_HALVINGS = 40
_NO_DROP = 1e-9


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
    return Estimate(drop, upper=high if high > _NO_DROP else 0.0, n=n)

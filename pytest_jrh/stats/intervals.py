"""Intervals of figures whose cases come in clusters: shares, kappa, mean error, bias, and how often
a judge that is asked again says something else.

A cluster is one sample of the log over all its epochs and cases. Cases of one cluster are right and
wrong together, so that a hundred cases of ten runs say less than a hundred runs.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.stats.formulas import NO_VERDICT, normal_quantile, t_quantile, t_tail

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from pytest_jrh.stats.formulas import Pair


LEVEL = 0.95
ONE_CLUSTER = "all verdicts come from one sample or cluster"
# What is taken for the correlation inside of clusters until the data say more: the guess weighs
# as much as three mistakes and as four clusters do.
_GUESSED_CORRELATION = 0.3
_GUESS_IN_MISTAKES = 3
_GUESS_IN_CLUSTERS = 4
_FEWEST_CLUSTERS = 2


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower and upper end of an interval, both None where `reason` says why there is none."""

    lower: float | None = None
    upper: float | None = None
    reason: str | None = None


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


def share_bounds(tallies: Iterable[Tally], level: float = LEVEL) -> Bounds:
    """Bound a share of cases in clusters: Wilson's interval on the effective sample size (rule L1).

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
    return _share_bounds(tuple(sorted(tally for tally in tallies if tally.n)), level)


# One set of cases is bounded at several levels of the table, and under several names.
@lru_cache(maxsize=256)
def _share_bounds(given: tuple[Tally, ...], level: float) -> Bounds:
    if not given:
        return Bounds(reason=NO_VERDICT)
    if len(given) < _FEWEST_CLUSTERS and given[0].n > 1:
        return Bounds(reason=ONE_CLUSTER)
    design = design_of([tally.n for tally in given], level)
    wrong = sorted((tally.n - tally.right for tally in given), reverse=True)
    lower = _lowest(design, _most_pairs(wrong), upper=False)
    return Bounds(lower, _lowest(design, _fewest_pairs(wrong), upper=True))


def effective_size(tallies: Iterable[Tally]) -> float:
    """How many independent cases these clusters are as good as, at most as many as they have."""
    given = [tally for tally in tallies if tally.n]
    if not given:
        return 0.0
    if len(given) < _FEWEST_CLUSTERS:
        return 1.0
    design = design_of([tally.n for tally in given])
    wrong = [tally.n - tally.right for tally in given]
    pairs = sum(each * (each - 1) for each in wrong)
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
    known = rarer / (rarer + _GUESS_IN_MISTAKES)
    known *= (design.clusters - 1) / (design.clusters - 1 + _GUESS_IN_CLUSTERS)
    estimate = intraclass_correlation(design, wrong, pairs) if known else 0.0
    return known * estimate + (1 - known) * _GUESSED_CORRELATION


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
    total, pairs = sum(wrong), sum(each * (each - 1) for each in wrong)
    yield total, pairs
    levels = [*wrong, 0]
    for place, level in enumerate(wrong):
        for height in range(level, levels[place + 1], -1):
            for _ in range(place + 1):
                total, pairs = total - 1, pairs - 2 * (height - 1)
                yield total, pairs


def _most_pairs(wrong: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Undo mistakes one by one where fewest of them are; give what is left and its pairs."""
    total, pairs = sum(wrong), sum(each * (each - 1) for each in wrong)
    yield total, pairs
    for each in reversed(wrong):
        for height in range(each, 0, -1):
            total, pairs = total - 1, pairs - 2 * (height - 1)
            yield total, pairs


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


NOT_REPEATED = "no case was judged more than once"
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


@dataclass(frozen=True, slots=True)
class Flicker:
    """The share of ordered pairs of repeats of a case that differ, over all repeated cases.

    `value` is None without any, which the `reason` of `bounds` then says. `cases` are those with
    two or more scores, and `flickering` those among them whose scores are not all the same.
    """

    value: float | None
    bounds: Bounds
    cases: int
    flickering: int

    @property
    def reason(self) -> str | None:
        """Why there is no value; None where there is one."""
        return self.bounds.reason if self.value is None else None


NOT_ASKED_TWICE = Flicker(None, Bounds(reason=NOT_REPEATED), 0, 0)


def flicker(cases: Iterable[RepeatedCase], level: float = LEVEL) -> Flicker:
    """Estimate from repeats how often a judge contradicts itself, with the interval of rule L1.

    With the probability f of each verdict to be flipped it is 2 f (1 - f). Of k scores, 0 or 1,
    no more than about half of the pairs can differ: with shares of that as what is counted, the
    interval is no wider than the cases make it.
    """
    repeated = [case for case in cases if len(case.scores) >= _TWICE]
    if not repeated:
        return NOT_ASKED_TWICE
    shares = [differing_pairs(case.scores) for case in repeated]
    most = max(_most_flicker_pairs(case) for case in repeated)
    clusters: dict[Hashable, list[float]] = {}
    for case, share in zip(repeated, shares, strict=True):
        clusters.setdefault(case.cluster, []).append(share / most)
    design = design_of([len(each) for each in clusters.values()], level)
    total = math.fsum(shares) / most
    together = math.fsum(
        math.fsum(each) ** 2 - math.fsum(share * share for share in each)
        for each in clusters.values()
    )
    if len(clusters) == 1 and len(repeated) > 1:
        bounds = Bounds(reason="all cases come from one sample or cluster")
    else:
        right = wilson_bounds(design, total, together)
        bounds = Bounds(most * (1 - right[1]), most * (1 - right[0]))
    value = math.fsum(shares) / len(repeated)
    return Flicker(value, bounds, len(repeated), sum(case.flickers for case in repeated))


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
    """The most that `differing_pairs` can be, for scores of 0 and 1 or of more values."""
    k = len(case.scores)
    binary = set(case.scores) <= {0, 1} if case.binary is None else case.binary
    return (k // 2) * (k - k // 2) * 2 / (k * (k - 1)) if binary else 1.0

"""Intervals of shares whose cases come in clusters (rule L1).

A cluster is one sample of the log over all its epochs and cases. Cases of one cluster are right and
wrong together, so that a hundred cases of ten runs say less than a hundred runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.stats.inference.formulas import NO_VERDICT
from pytest_jrh.stats.inference.quantiles import normal_quantile, t_quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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

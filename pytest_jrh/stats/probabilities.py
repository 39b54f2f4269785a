"""What a judge's probabilities say beside the verdicts that a threshold makes of them: what it
misses at few false alarms, whether its numbers mean what they say, how much it may decide alone.

Each case is counted by a threshold that was chosen without its cluster (cross-fitting). Another
sample would have chosen another threshold. So an interval goes from the lower bound of the share at
the strictest threshold to the upper bound at the loosest one, where Wilson's bounds of the limited
rate meet the limit. Choice and share are each beyond such a bound in 2.5 of 100 samples, so that an
interval misses in at most 10.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from statistics import NormalDist, fmean
from typing import NamedTuple

from pytest_jrh.core.results import CaseResult
from pytest_jrh.stats.intervals import (
    LEVEL,
    Estimate,
    effective_size,
    estimate_mean,
    estimate_share,
    grouped,
    wilson,
)

FALSE_ALARMS = 0.05
ERROR = 0.05
BINS = 10
_FOLDS = 10
# So that 1 - 0.07 is 0.93.
_DIGITS = 9
_SQUARE = NormalDist().inv_cdf((1 + LEVEL) / 2) ** 2


class Probabilities(NamedTuple):
    """The figures of one judge.

    `missed` are violations below a `threshold` that raises few `false_alarms`. `alone` are verdicts
    that may stand without a person, at least so `sure`, and `wrong` the mistakes among them. What
    no case reaches is None; `bins` are violations by tenths.
    """

    missed: Estimate
    false_alarms: Estimate
    threshold: float | None
    alone: Estimate
    wrong: Estimate
    sure: float | None
    brier: Estimate
    bins: Mapping[int, Estimate]


class _Case(NamedTuple):
    """How sure a judge is of an answer, and whether that is wrong."""

    sure: float
    is_wrong: bool
    cluster: Hashable


def probabilities_of(results: Iterable[CaseResult], error: float = ERROR) -> Probabilities | None:
    """The figures of one judge's results, without ties; None where it says nothing between 0 and 1,
    or all labels or clusters are the same.
    """
    violations, verdicts = [], []
    for result in results:
        repeats, label, score = result.extra.probabilities, result.label, result.score
        if label is None or score is None or len(repeats) != len(result.scores):
            continue
        value, cluster = round(fmean(repeats), _DIGITS), result.spec.cluster_id
        of_verdict = value if score else round(1 - value, _DIGITS)
        violations.append(_Case(value, label == 0, cluster))
        verdicts.append(_Case(of_verdict, score != label, cluster))
    clusters = [case.cluster for case in violations]
    has_shares = any(0 < case.sure < 1 for case in violations)
    if not has_shares or 1 in (len({*clusters}), len({case.is_wrong for case in violations})):
        return None
    worth = effective_size([case.is_wrong for case in verdicts], clusters) / len(clusters)
    threshold, caught, raised = _chosen(violations, FALSE_ALARMS, worth, of_wrong=True)
    sure, share, alone = _chosen(verdicts, error, worth)
    alarms, passing = sum(case.is_wrong for case in raised), len(clusters) - caught.n
    squares = [(case.sure - 1 + case.is_wrong) ** 2 for case in violations]
    bins = grouped((min(int(case.sure * BINS), BINS - 1), case) for case in violations)
    return Probabilities(
        missed=caught.complement(),
        false_alarms=Estimate(alarms / passing, count=alarms, n=passing, why="a count alone"),
        threshold=threshold,
        alone=share,
        wrong=_wrong(alone),
        sure=sure,
        brier=estimate_mean(squares, clusters),
        bins={tenth: _wrong(cases).complement() for tenth, cases in sorted(bins.items())},
    )


def _chosen(
    cases: Sequence[_Case], limit: float, worth: float, *, of_wrong: bool = False
) -> tuple[float | None, Estimate, list[_Case]]:
    """How sure a case must be (see `_lowest`), the share of cases that are (`of_wrong`: of right
    ones), and these cases; each is held to a threshold that was chosen without its cluster.
    """
    lowest, loosest, strictest = _lowest(cases, limit, worth, of_wrong=of_wrong)
    names = sorted({case.cluster for case in cases}, key=repr)
    apart: dict[Hashable, float] = {}
    for first in range(_FOLDS):
        fold = {*names[first::_FOLDS]}
        others = [case for case in cases if case.cluster not in fold]
        apart |= dict.fromkeys(fold, _lowest(others, limit, worth, of_wrong=of_wrong)[0])
    counted = [case for case in cases if not (of_wrong and case.is_wrong)]
    clusters = [case.cluster for case in counted]
    share = estimate_share([case.sure >= apart[case.cluster] for case in counted], clusters)
    lower = estimate_share([case.sure >= strictest for case in counted], clusters).lower
    upper = estimate_share([case.sure >= loosest for case in counted], clusters).upper
    if share.value is not None and lower is not None and upper is not None:
        share = replace(share, lower=min(lower, share.value), upper=max(upper, share.value))
    reached = lowest if lowest < math.inf else None
    return reached, share, [case for case in cases if case.sure >= apart[case.cluster]]


def _lowest(cases: Iterable[_Case], limit: float, worth: float, *, of_wrong: bool) -> list[float]:
    """The lowest sureness from which on the share of wrong cases keeps to the limit, or with
    `of_wrong` the share of all wrong cases that are so sure; then the same by the lower and by the
    upper bound of that share, where a case is `worth` a part of an independent one. Infinite where
    there is none.
    """
    ordered = sorted(cases, key=attrgetter("sure"), reverse=True)
    whole = sum(case.is_wrong for case in ordered) if of_wrong else 0
    lowest = [math.inf] * 3
    n = wrong = 0
    for sure, equal in groupby(ordered, attrgetter("sure")):
        for case in equal:
            n += 1
            wrong += case.is_wrong
        share = wrong / (whole or n)
        rates = (share, *wilson(share, _SQUARE / ((whole or n) * worth)))
        lowest = [sure if rate <= limit else old for rate, old in zip(rates, lowest, strict=True)]
    return lowest


def _wrong(cases: Sequence[_Case]) -> Estimate:
    return estimate_share([case.is_wrong for case in cases], [case.cluster for case in cases])

"""What a judge's probabilities say beside the verdicts that a threshold makes of them: what it
misses at few false alarms, whether its numbers mean what they say, how much it may decide alone.

Each case is counted by a threshold that was chosen without its cluster (cross-fitting). How far
chance may move the choice is read from Wilson's bounds of the rate that it keeps to, and joined
with the interval of the share itself (Zou and Donner 2008, Stat Med 27:1693-1702).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from statistics import NormalDist, fmean
from typing import NamedTuple

from pytest_jrh.core.model import CaseResult
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
_ROUNDING = 1e-9
# Where probabilities are few a choice is one or another, and the share itself varies at both.
_AT_END = 0.65
_SQUARE = NormalDist().inv_cdf((1 + LEVEL) / 2) ** 2


class Probabilities(NamedTuple):
    """The figures of one judge.

    `found` are violations by a `threshold` that raises few false alarms, of which it raised
    `alarms`. `alone` are verdicts that may stand without a person, at least so `sure`, and `wrong`
    mistakes among them. What no case reaches is infinite; `bins` are violations by tenths.
    """

    found: Estimate
    alarms: Estimate
    threshold: float
    alone: Estimate
    wrong: Estimate
    sure: float
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
        value, cluster = fmean(repeats), result.spec.cluster_id
        violations.append(_Case(value, label == 0, cluster))
        verdicts.append(_Case(value if score else 1 - value, score != label, cluster))
    clusters = [case.cluster for case in violations]
    is_graded = any(0 < case.sure < 1 for case in violations)
    if not is_graded or 1 in (len({*clusters}), len({case.is_wrong for case in violations})):
        return None
    worth = effective_size([case.is_wrong for case in verdicts], clusters) / len(clusters)
    threshold, found, called = _chosen(violations, FALSE_ALARMS, worth, of_wrong=True)
    sure, share, alone = _chosen(verdicts, error, worth)
    alarms, satisfied = sum(case.is_wrong for case in called), len(clusters) - found.n
    bins = grouped((min(int(case.sure * BINS + _ROUNDING), BINS - 1), case) for case in violations)
    return Probabilities(
        found=found,
        alarms=Estimate(alarms / satisfied, count=alarms, n=satisfied, why="a count alone"),
        threshold=threshold,
        alone=share,
        wrong=_wrong(alone),
        sure=sure,
        brier=estimate_mean([(one.sure - 1 + one.is_wrong) ** 2 for one in violations], clusters),
        bins={tenth: _wrong(cases).complement() for tenth, cases in sorted(bins.items())},
    )


def _chosen(
    cases: Sequence[_Case], limit: float, worth: float, *, of_wrong: bool = False
) -> tuple[float, Estimate, list[_Case]]:
    """How sure a case must be (see `_lowest`), which share is, `of_wrong` of others; and which."""
    lowest, strict, loose = _lowest(cases, limit, worth, of_wrong=of_wrong)
    names = sorted({case.cluster for case in cases}, key=repr)
    apart: dict[Hashable, float] = {}
    for first in range(_FOLDS):
        fold = {*names[first::_FOLDS]}
        others = [case for case in cases if case.cluster not in fold]
        apart |= dict.fromkeys(fold, _lowest(others, limit, worth, of_wrong=of_wrong)[0])
    counted = [case for case in cases if not (of_wrong and case.is_wrong)]
    marks = [case.sure >= apart[case.cluster] for case in counted]
    share = estimate_share(marks, [case.cluster for case in counted])
    value, lower, upper = share.value, share.lower, share.upper
    if value is not None and lower is not None and upper is not None:
        ends = []
        for sign, own, choice in ((-1, value - lower, strict), (1, upper - value, loose)):
            moved = max(0.0, sign * (fmean(case.sure >= choice for case in counted) - value))
            ends.append(value + sign * max(math.hypot(own, moved), moved + _AT_END * own))
        share = replace(share, lower=max(0.0, ends[0]), upper=min(1.0, ends[1]))
    return lowest, share, [case for case in cases if case.sure >= apart[case.cluster]]


def _lowest(
    cases: Iterable[_Case], limit: float, worth: float, *, of_wrong: bool
) -> tuple[float, float, float]:
    """The lowest sureness so that of the cases that are so sure no larger share than the limit is
    wrong, or `of_wrong` ones no larger share is so sure; then by the upper and the lower bound of
    that share, of cases that are `worth` so many each. Infinite where there is none.
    """
    ordered = sorted(cases, key=attrgetter("sure"), reverse=True)
    whole = sum(case.is_wrong for case in ordered) if of_wrong else 0
    lowest = strict = loose = math.inf
    n = wrong = 0
    for sure, equal in groupby(ordered, attrgetter("sure")):
        for case in equal:
            n += 1
            wrong += case.is_wrong
        share = wrong / (whole or n)
        lower, upper = wilson(share, _SQUARE / ((whole or n) * worth))
        lowest = sure if share <= limit else lowest
        strict = sure if upper <= limit else strict
        loose = sure if lower <= limit else loose
    return lowest, strict, loose


def _wrong(cases: Sequence[_Case]) -> Estimate:
    return estimate_share([case.is_wrong for case in cases], [case.cluster for case in cases])

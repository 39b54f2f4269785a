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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist, fmean
from typing import NamedTuple

import numpy as np

from pytest_jrh.core import frozen
from pytest_jrh.stats.intervals import (
    LEVEL,
    Estimate,
    effective_size,
    estimate_mean,
    estimate_share,
    wilson,
)
from pytest_jrh.stats.verdicts import Bools, Floats, Ints, Verdicts

FALSE_ALARMS = 0.05
ERROR = 0.05
BINS = 10
_FOLDS = 10
# So that 1 - 0.07 is 0.93.
_DIGITS = 9
_SQUARE = NormalDist().inv_cdf((1 + LEVEL) / 2) ** 2


@frozen
class Probabilities:
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


class _Answers(NamedTuple):
    """Of each case how sure a judge is of an answer, whether that is wrong, and the cluster."""

    sure: Floats
    wrong: Bools
    clusters: Ints

    def where(self, rows: Bools) -> _Answers:
        return _Answers(self.sure[rows], self.wrong[rows], self.clusters[rows])

    @property
    def wrong_share(self) -> Estimate:
        return estimate_share(self.wrong, self.clusters)


def probabilities_of(verdicts: Verdicts, error: float = ERROR) -> Probabilities | None:
    """The figures of one judge's verdicts, without ties; None where it says nothing between 0 and
    1, or all labels or clusters are the same.
    """
    has_one = verdicts.probabilities.each(bool)
    if not has_one.any():
        return None
    is_answered = verdicts.kinds("label", "score").each(lambda kind: None not in kind)
    # Each of the repeats has to have one.
    repeats = verdicts.kinds("probabilities", "answers")
    is_whole = repeats.each(lambda kind: len(kind[0]) == len(kind[1]))
    known = verdicts.where(has_one & is_answered & is_whole)
    of_violation = known.probabilities.each(_mean, float)
    is_violation, says_violation = known.label.each(bool), known.score.each(bool)
    clusters = known.cluster
    has_shares = ((of_violation > 0) & (of_violation < 1)).any()
    if not has_shares or 1 in (len(np.unique(clusters)), len(np.unique(is_violation))):
        return None
    of_verdict = np.where(says_violation, of_violation, np.round(1 - of_violation, _DIGITS))
    violations = _Answers(of_violation, ~is_violation, clusters)
    answers = _Answers(of_verdict, says_violation != is_violation, clusters)
    worth = effective_size(answers.wrong, clusters) / len(clusters)
    at_few_alarms = _chosen(violations, FALSE_ALARMS, worth, of_wrong=True)
    at_few_errors = _chosen(answers, error, worth)
    alarms, passing = int(at_few_alarms.reaching.wrong.sum()), int((~is_violation).sum())
    tenths = np.minimum(of_violation * BINS, BINS - 1).astype(np.int64)
    bins = {}
    for tenth in np.unique(tenths).tolist():
        bins[tenth] = violations.where(tenths == tenth).wrong_share.complement()
    return Probabilities(
        missed=at_few_alarms.share.complement(),
        false_alarms=Estimate(alarms / passing, count=alarms, n=passing, why="it is only a count"),
        threshold=at_few_alarms.threshold,
        alone=at_few_errors.share,
        wrong=at_few_errors.reaching.wrong_share,
        sure=at_few_errors.threshold,
        brier=estimate_mean((of_violation - is_violation) ** 2, clusters),
        bins=bins,
    )


def _mean(probabilities: Sequence[float]) -> float:
    return round(fmean(probabilities), _DIGITS) if probabilities else 0.0


class _Chosen(NamedTuple):
    """How sure a case must be, None where no case is, the share of cases that are, and these."""

    threshold: float | None
    share: Estimate
    reaching: _Answers


def _chosen(answers: _Answers, limit: float, worth: float, *, of_wrong: bool = False) -> _Chosen:
    """Choose how sure a case must be (see `_lowest`), and which are; the share is that of all
    cases, or `of_wrong` of the right ones. Each case is held to a threshold that was chosen without
    its cluster.
    """
    lowest, loosest, strictest = _lowest(answers, limit, worth, of_wrong=of_wrong)
    _, numbers = np.unique(answers.clusters, return_inverse=True)
    folds = numbers % _FOLDS
    thresholds = np.zeros(len(folds))
    for fold in range(_FOLDS):
        others = answers.where(folds != fold)
        thresholds[folds == fold] = _lowest(others, limit, worth, of_wrong=of_wrong)[0]
    reaches = answers.sure >= thresholds
    counts = ~answers.wrong if of_wrong else np.ones(len(folds), bool)
    sure, clusters = answers.sure[counts], answers.clusters[counts]
    share = estimate_share(reaches[counts], clusters)
    lower = estimate_share(sure >= strictest, clusters).lower
    upper = estimate_share(sure >= loosest, clusters).upper
    if share.value is not None and lower is not None and upper is not None:
        share = replace(share, lower=min(lower, share.value), upper=max(upper, share.value))
    threshold = lowest if lowest < math.inf else None
    return _Chosen(threshold, share, answers.where(reaches))


def _lowest(
    answers: _Answers, limit: float, worth: float, *, of_wrong: bool
) -> tuple[float, float, float]:
    """The lowest sureness from which on the share of wrong cases keeps to the limit, or with
    `of_wrong` the share of all wrong cases that are so sure; then the same by the lower and by the
    upper bound of that share, where a case is `worth` a part of an independent one. Infinite where
    there is none.
    """
    whole = int(answers.wrong.sum()) if of_wrong else 0
    lowest = loosest = strictest = math.inf
    n = wrong = 0
    values, numbers = np.unique(answers.sure, return_counts=True)
    wrong_numbers = np.bincount(
        np.searchsorted(values, answers.sure[answers.wrong]), minlength=len(values)
    )
    steps = zip(values.tolist(), numbers.tolist(), wrong_numbers.tolist(), strict=True)
    for sure, equal, equal_wrong in reversed([*steps]):
        n += equal
        wrong += equal_wrong
        share = wrong / (whole or n)
        lower, upper = wilson(share, _SQUARE / ((whole or n) * worth))
        if share <= limit:
            lowest = sure
        if lower <= limit:
            loosest = sure
        if upper <= limit:
            strictest = sure
    return lowest, loosest, strictest

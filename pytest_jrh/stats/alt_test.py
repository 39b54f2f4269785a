"""Whether a judge may take the place of the people who label: the alternative annotator test of
Calderon, Reichart and Dror (2025, "The Alternative Annotator Test for LLM-as-a-Judge", ACL).

Each person is left out in turn. On each of the person's cases, judge and person are held against
the other people there: is its answer as near to theirs as the person's, or nearer? Nearness is the
share of equal answers, and of levels the root mean square of differences. The judge matches those
people than whom it is further off in fewer cases, but for a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np

from pytest_jrh.core import frozen
from pytest_jrh.core.scales import NOT_APPLICABLE
from pytest_jrh.stats.intervals import Estimate, estimate_mean, t_tail
from pytest_jrh.stats.verdicts import Coded, Floats, Ints

TOLERANCES = (0.2, 0.1)
"""By how much a judge may be behind people who are experts, and so cost more, and behind others."""
_FEWEST_PEOPLE = 3
_FEWEST_CASES = 30
_FALSE_DISCOVERIES = 0.05


@frozen
class AltTest:
    """How a judge does beside each of the `people` of whom there are cases with others.

    `matched` are by tolerance those whom it matches; with half of all it passes. `advantage` is how
    often it is as near to the others as a person is, or nearer, in the mean of people.
    """

    people: Sequence[str]
    matched: Mapping[float, Sequence[str]]
    advantage: Estimate


def alt_test(
    judge: Floats, case: Ints, person: Coded[str], answer: Floats, clusters: Ints, *, ordered: bool
) -> AltTest | None:
    """Hold a judge against people; None with fewer than three of them, or 30 cases of two.

    `judge` and `clusters` are by case; each vote has its `case`, which the judge has judged, its
    `person` and its `answer`.
    """
    of_several = np.bincount(case, minlength=1)[case] > 1
    case, person, answer = case[of_several], Coded.of(person[of_several].values), answer[of_several]
    if len(person.names) < _FEWEST_PEOPLE or len(np.unique(case)) < _FEWEST_CASES:
        return None
    values, codes = np.unique([answer, judge[case]], return_inverse=True)
    of_person, of_judge = codes.reshape(2, -1)
    distances = (values[:, None] - values) ** 2 if ordered else 1 - np.eye(len(values))
    # From every level n/a is as far as levels can be from each other.
    is_level = values != NOT_APPLICABLE
    distances[is_level != is_level[:, None]] = distances[np.ix_(is_level, is_level)].max(initial=1)
    # How far an answer is from those of all people of a case, and so from those of the others.
    given = np.zeros((len(judge), len(values)))
    np.add.at(given, (case, of_person), 1)
    losses = (given @ distances)[case]
    votes = np.arange(len(case))
    judge_loss = losses[votes, of_judge] - distances[of_judge, of_person]
    rise = judge_loss - losses[votes, of_person]
    # 1 where the person alone is nearer, -1 where the judge alone is.
    in_order = np.sign(rise)[np.argsort(person.codes, kind="stable")]
    by_person = np.split(in_order, np.cumsum(np.bincount(person.codes))[:-1])
    matched = {}
    for tolerance in TOLERANCES:
        p_values = [_p_value(differences - tolerance) for differences in by_person]
        matched[tolerance] = [*compress(person.names, _rejected(p_values))]
    # However many cases somebody has, all count alike.
    weights = len(case) / len(by_person) / person.sizes
    return AltTest(person.names, matched, estimate_mean(rise <= 0, clusters[case], weights=weights))


def _p_value(values: Floats) -> float:
    """How likely the mean is to be so low if it is 0: by the paired t-test, and of few cases by the
    signed ranks (Wilcoxon 1945, Biometrics Bull 1:80-83).
    """
    n = len(values)
    if n < _FEWEST_CASES:
        return _signed_ranks(values)
    deviation = values.std(ddof=1)
    if not deviation:
        return float(values[0] >= 0)
    return t_tail(-values.mean() / deviation * math.sqrt(n), n - 1)


def _signed_ranks(values: Floats) -> float:
    """The share of all choices of signs that give the positive values no higher a sum of ranks;
    equal ones share theirs. Ranks are counted double, so that they are whole.
    """
    sizes = np.abs(values)
    ranks = (sizes[:, None] > sizes).sum(axis=1) + (sizes[:, None] >= sizes).sum(axis=1) + 1
    shares = np.ones(1)
    for rank in ranks:
        shares = (np.pad(shares, (0, rank)) + np.pad(shares, (rank, 0))) / 2
    return float(shares[: ranks[values > 0].sum() + 1].sum())


def _rejected(p_values: Sequence[float]) -> list[bool]:
    """Which hypotheses are rejected so that few of these are true, however they depend on each
    other (Benjamini and Yekutieli 2001, Ann Stat 29:1165-1188).
    """
    ranks = np.arange(1, len(p_values) + 1)
    limits = _FALSE_DISCOVERIES * ranks / len(ranks) / (1 / ranks).sum()
    in_order = np.sort(p_values)
    bound = in_order[in_order <= limits].max(initial=-1)
    return [p <= bound for p in p_values]

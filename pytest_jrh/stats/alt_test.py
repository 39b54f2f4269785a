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
from pytest_jrh.stats.distributions import t_tail
from pytest_jrh.stats.intervals import Estimate, estimate_mean
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

    people: tuple[str, ...]
    matched: Mapping[float, tuple[str, ...]]
    advantage: Estimate


def alt_test(
    judge: Floats, case: Ints, person: Coded[str], answer: Floats, clusters: Ints, *, ordered: bool
) -> AltTest | None:
    """Hold a judge against people; None with fewer than three of them, or 30 cases of two.

    `judge` and `clusters` are by case, the judge's answer nan where it gave none; each vote has its
    `case`, its `person` and its `answer`.
    """
    of_several = np.bincount(case, minlength=len(judge)) > 1
    known = of_several[case] & ~np.isnan(judge[case])
    case, person, answer = case[known], Coded.of(person[known].values), answer[known]
    people = person.names
    if len(people) < _FEWEST_PEOPLE or len(np.unique(case)) < _FEWEST_CASES:
        return None
    values, codes = np.unique([answer, judge[case]], return_inverse=True)
    of_person, of_judge = codes.reshape(2, -1)
    distances = (values[:, None] - values) ** 2 if ordered else 1 - np.eye(len(values))
    # How far an answer is from those of all people of a case, and so from those of the others.
    given = np.zeros((len(judge), len(values)))
    np.add.at(given, (case, of_person), 1)
    losses = given @ distances
    judge_loss = losses[case, of_judge] - distances[of_judge, of_person]
    person_loss = losses[case, of_person]
    is_as_near = judge_loss <= person_loss
    differences = (person_loss <= judge_loss).astype(float) - is_as_near
    in_order = differences[np.argsort(person.codes, kind="stable")]
    by_person = np.split(in_order, np.cumsum(np.bincount(person.codes))[:-1])
    matched = {}
    for tolerance in TOLERANCES:
        p_values = [_p_value(of_one, tolerance) for of_one in by_person]
        matched[tolerance] = tuple(compress(people, _rejected(p_values)))
    # However many cases somebody has, all count alike.
    weights = len(case) / len(people) / person.sizes
    advantage = estimate_mean(is_as_near, clusters[case], weights=weights)
    return AltTest(tuple(people), matched, advantage)


def _p_value(differences: Floats, tolerance: float) -> float:
    """How likely the mean is to be so low where the judge is behind by the tolerance: by the paired
    t-test, and of few cases by the signed ranks (Wilcoxon 1945, Biometrics Bull 1:80-83).
    """
    rest, n = differences - tolerance, len(differences)
    if n < _FEWEST_CASES:
        return _signed_ranks(rest)
    deviation = rest.std(ddof=1)
    if not deviation:
        return float(rest[0] >= 0)
    return t_tail(-rest.mean() / deviation * math.sqrt(n), n - 1)


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
    in_order = sorted(p_values)
    each = (
        _FALSE_DISCOVERIES / len(in_order) / sum(1 / rank for rank in range(1, len(in_order) + 1))
    )
    bound = max((p for rank, p in enumerate(in_order, 1) if p <= rank * each), default=-1.0)
    return [p <= bound for p in p_values]

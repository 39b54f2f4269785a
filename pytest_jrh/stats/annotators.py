"""People who label the same cases: how far they agree with each other, and judges with them; and
whether a judge may take their place: the alternative annotator test of Calderon, Reichart and Dror
(2025, "The Alternative Annotator Test for LLM-as-a-Judge", ACL).

In that test each person is left out in turn. On each of the person's cases, judge and person are
held against the other people there: is its answer as near to theirs as the person's, or nearer?
Nearness is the share of equal answers, and of levels the root mean square of differences. The judge
matches those people than whom it is further off in fewer cases, but for a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import frozen
from pytest_jrh.core.scales import BINARY, NOT_APPLICABLE, Scale
from pytest_jrh.stats.intervals import Estimate, estimate, estimate_mean, t_tail, where_varied
from pytest_jrh.stats.statistics import JudgePair, judge_pairs
from pytest_jrh.stats.verdicts import Coded, Floats, Ints, Verdicts, numbered

THE_JUDGE = "the judge"
_MOST_PEOPLE = 10
"""So many are held against each other in pairs, those with the most labels."""


class VotedCase(NamedTuple):
    """What people say of a case, None for no label, and the label that counts, None where there is
    none. The `key` is the rubric, the run and the epoch.
    """

    key: Any
    cluster: Hashable
    label: int | None
    votes: Mapping[Any, int | None]


@dataclass(frozen=True, eq=False)
class Votes:
    """What people say of cases, and in columns of all votes whose they are, which case they are
    about, by its number, and the answer, nan where that is no label.
    """

    cases: Sequence[VotedCase] = ()
    scale: Scale = BINARY

    @cached_property
    def person(self) -> Coded[Any]:
        """Who says it."""
        return Coded.of(person for case in self.cases for person in case.votes)

    @cached_property
    def case(self) -> Ints:
        """Of which case."""
        return np.repeat(np.arange(len(self.cases)), self.sizes)

    @cached_property
    def answer(self) -> Floats:
        """What they say."""
        return np.array([vote for case in self.cases for vote in case.votes.values()], float)

    @cached_property
    def sizes(self) -> Ints:
        """How many people voted on each case."""
        return np.array([len(case.votes) for case in self.cases], np.int64)

    @cached_property
    def clusters(self) -> Ints:
        """The cluster of each case."""
        return numbered(case.cluster for case in self.cases)

    @cached_property
    def disputed(self) -> list[int]:
        """Which cases have no label, as at most half of those who voted say one thing."""
        disputed = []
        for number, case in enumerate(self.cases):
            votes = [*case.votes.values()]
            if votes and case.label is None and 2 * votes.count(None) <= len(votes):
                disputed.append(number)
        return disputed

    def word(self, answer: int | None) -> str:
        """What an answer is called."""
        return "no label" if answer is None else self.scale.word(answer)

    def counts(self, values: Sequence[Any] | Floats) -> Floats:
        """How many people give each case each of these values."""
        counts = np.zeros((len(self.cases), len(values)))
        for place, value in enumerate(values):
            counts[:, place] = np.bincount(self.case, self.answer == value, len(counts))
        return counts


@frozen
class Agreement:
    """Agreement of people on the cases that at least two of them labelled: `raw` is the mean share
    of agreeing pairs of a case, `alpha` Krippendorff's.
    """

    raw: Estimate
    alpha: Estimate


def agreement(votes: Votes) -> Agreement:
    """How far people agree: in pairs, and beyond chance by alpha, 1 minus observed over expected
    disagreement (Krippendorff 2004, Content Analysis, ch. 11), with the ordinal difference of
    levels, and else the nominal one, as n/a is no level; a case with m labels counts m / (m - 1)
    for each of its pairs.
    """
    values = np.unique(votes.answer[~np.isnan(votes.answer)])
    is_ordered = votes.scale.is_ordered and NOT_APPLICABLE not in values
    counts = votes.counts(values)
    of_several = counts.sum(axis=1) > 1
    if not of_several.any():
        missing = Estimate(why="no case has labels of two people")
        return Agreement(missing, missing)
    counts, clusters = counts[of_several], votes.clusters[of_several]
    sizes = counts.sum(axis=1)
    weights = counts / (sizes - 1)[:, None]
    raw = estimate_mean((weights * (counts - 1)).sum(axis=1) / sizes, clusters)
    # Alpha is one of sums over cases: of each one's disagreement, with the differences as they are,
    # and of its counts, on which ordinal differences depend, too.
    together = counts.T @ weights - np.diag(weights.sum(axis=0))
    differences = _differences(counts.sum(axis=0), is_ordered=is_ordered)

    def alpha(sums: Any) -> Any:
        margins = np.array(sums[1:])
        moved = _differences(margins, is_ordered=is_ordered)
        by_chance = margins @ moved @ margins
        if not by_chance:
            return math.nan
        observed = sums[0] + (together * (moved - differences)).sum()
        return 1 - observed * (margins.sum() - 1) / by_chance

    rows = np.column_stack([(counts @ differences * weights).sum(axis=1), counts])
    # One of those who vote on a case says otherwise.
    turned = np.zeros((1, rows.shape[1]))
    turned[0, [0, 1]] = 2 * differences[0, -1], sizes.mean() - 1
    turned[0, -1] += 1
    figure = estimate(rows, clusters, alpha, turned, span=(-1.0, 1.0))
    most = counts.sum(axis=0).max() / sizes.mean()
    return Agreement(raw, where_varied(figure, len(counts) - most))


def _differences(margins: Floats, *, is_ordered: bool) -> Floats:
    """How much two values differ: at all, or on a scale by the number of labels between them, each
    end counted half, squared.
    """
    if not is_ordered:
        return 1 - np.eye(len(margins))
    middles = np.cumsum(margins) - margins / 2
    differences: Floats = (middles[:, None] - middles) ** 2
    return differences


@frozen
class BesidePeople:
    """How one judge does beside people: with how many of those of a case it agrees in the mean, and
    the alternative annotator test. `by_votes` are its figures where each disputed case counts by
    its votes, by their titles; empty where it judged none.
    """

    agreement: Estimate
    alt_test: AltTest | None
    by_votes: Mapping[str, Estimate]


@frozen
class People:
    """How far the people agree who labelled the cases of a suite or a table, and its judges with
    them; `pairs` are of these, and of people.
    """

    votes: Votes
    agreement: Agreement
    judges: Mapping[str, BesidePeople]
    pairs: Sequence[JudgePair]


def people_beside(votes: Votes, judges: Mapping[str, Verdicts]) -> People:
    """Hold people against each other, and judges, by their names, against them."""
    names, columns, beside = [], [], {}
    for judge, verdicts in judges.items():
        by_key = {}
        for test, rubric, run, score in verdicts.kinds("test", "rubric", "run", "score").names:
            if KINDS[test].is_labelled:
                by_key[rubric, *run] = score
        scores = np.array([by_key.get(case.key) for case in votes.cases], float)
        beside[judge] = _beside(votes, scores)
        names.append(judge or THE_JUDGE)
        columns.append(scores)
    labels = np.bincount(votes.person.codes, ~np.isnan(votes.answer))
    for code in sorted(np.argsort(-labels, kind="stable")[:_MOST_PEOPLE]):
        person = votes.person.names[code]
        names.append(person)
        columns.append(np.array([case.votes.get(person) for case in votes.cases], float))
    is_ordered = votes.scale.is_ordered
    scores = np.column_stack(columns)
    pairs = judge_pairs(names, scores, votes.clusters, is_ordered=is_ordered, judges=len(judges))
    return People(votes, agreement(votes), beside, pairs)


def _beside(votes: Votes, scores: Floats) -> BesidePeople:
    """One judge, of which the scores are by case, beside people."""
    is_known = ~np.isnan(votes.answer + scores[votes.case])
    case, answer = votes.case[is_known], votes.answer[is_known]
    # Each case counts alike, however many people say something of it.
    agreeing = estimate_mean(
        scores[case] == answer, votes.clusters[case], weights=1 / np.bincount(case)[case]
    )
    held = alt_test(
        scores, case, votes.person[is_known], answer, votes.clusters, ordered=votes.scale.is_ordered
    )
    return BesidePeople(agreeing, held, _by_votes(votes, scores))


def _by_votes(votes: Votes, scores: Floats) -> dict[str, Estimate]:
    """The share of mistakes on each class over all cases, where a disputed one counts for it by the
    share of its votes.
    """
    disputed, figures = votes.disputed, {}
    if votes.scale.is_ordered or np.isnan(scores[disputed]).all():
        return {}
    labels = np.array([case.label for case in votes.cases], float)
    for of_class in votes.scale.classes:
        weights = (labels == of_class.answer).astype(float)
        of_votes = votes.counts([of_class.answer])[disputed, 0]
        weights[disputed] = of_votes / votes.sizes[disputed]
        cases = (weights > 0) & ~np.isnan(scores)
        figures[of_class.mistakes] = estimate_mean(
            scores[cases] != of_class.answer, votes.clusters[cases], weights=weights[cases]
        )
    return figures


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

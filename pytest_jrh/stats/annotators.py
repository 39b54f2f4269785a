"""People who label the same cases: how far they agree with each other, and judges with them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_jrh.core import frozen
from pytest_jrh.core.scales import NOT_APPLICABLE, Scale, as_level
from pytest_jrh.stats.alt_test import AltTest, alt_test
from pytest_jrh.stats.intervals import Estimate, estimate, estimate_kappa, estimate_mean
from pytest_jrh.stats.statistics import JudgePair, judge_pairs
from pytest_jrh.stats.verdicts import Bools, Coded, Floats, Ints, Verdicts, numbered

THE_JUDGE = "the judge"
_MOST_PEOPLE = 10
"""So many are held against each other in pairs, those with the most labels."""


@dataclass(frozen=True, eq=False)
class Votes:
    """What people say of cases: a row for each vote, with the number of its `case`, its `person`,
    and its `answer` on the scale, nan where that is no label. `keys`, `clusters` and the `labels`
    that count, nan for none, are by case.
    """

    keys: tuple[Any, ...]
    clusters: Ints
    labels: Floats
    case: Ints
    person: Coded[Any]
    answer: Floats
    scale: Scale

    @classmethod
    def of(
        cls,
        cases: Sequence[tuple[Hashable, Hashable, int | None, Mapping[Any, int | None]]],
        scale: Scale,
    ) -> Votes:
        """The votes of cases, each with its key, its cluster, its label, and what people say."""
        keys, clusters, labels, votes = zip(*cases, strict=True) if cases else ((),) * 4
        of_people = Coded.of(person for of_case in votes for person in of_case)
        answers = [answer for of_case in votes for answer in of_case.values()]
        case = np.repeat(np.arange(len(keys)), np.array([*map(len, votes)], np.int64))
        codes = numbered(clusters)
        return cls(
            keys, codes, _numbers(labels, scale), case, of_people, _numbers(answers, scale), scale
        )

    @property
    def known(self) -> Bools:
        """Which votes are for a label."""
        return ~np.isnan(self.answer)

    @property
    def sizes(self) -> Ints:
        """How many people voted on each case."""
        return np.bincount(self.case, minlength=len(self.keys))

    @property
    def disputed(self) -> Bools:
        """Which cases have no label, as at most half of those who voted say one thing."""
        without = np.bincount(self.case, ~self.known, len(self.keys))
        disputed: Bools = np.isnan(self.labels) & (2 * without <= self.sizes)
        return disputed

    def disputes(self, most: int) -> list[tuple[Any, list[str]]]:
        """The keys of the first disputed cases, and what each person says of them."""
        disputes = []
        for number in np.flatnonzero(self.disputed)[:most]:
            rows = np.flatnonzero(self.case == number)
            votes = zip(self.person[rows].values, self.answer[rows], strict=True)
            said = [f"{person}: {self._word(answer)}" for person, answer in votes]
            disputes.append((self.keys[number], said))
        return disputes

    @property
    def spread(self) -> dict[str, int]:
        """How many cases have each label, in words."""
        labels, numbers = np.unique(self.labels, return_counts=True)
        return dict(zip(map(self._word, labels), numbers.tolist(), strict=True))

    def _word(self, answer: float) -> str:
        return "no label" if np.isnan(answer) else self.scale.word(as_level(answer))

    def counts(self, values: Floats) -> Floats:
        """How many people give each case each of these values, which are ascending."""
        places = self.case[self.known] * len(values)
        places += np.searchsorted(values, self.answer[self.known])
        counts = np.bincount(places, minlength=len(self.keys) * len(values))
        return counts.reshape(len(self.keys), len(values)).astype(float)


def _numbers(answers: Iterable[int | None], scale: Scale) -> Floats:
    """Answers as numbers; among levels n/a has no place."""
    numbers = np.array([*answers], float)
    if scale.is_ordered:
        numbers[numbers == NOT_APPLICABLE] = math.nan
    return numbers


@frozen
class Agreement:
    """Agreement of people on the cases that at least two of them labelled: `raw` is the mean share
    of agreeing pairs of a case, `alpha` Krippendorff's.
    """

    raw: Estimate
    alpha: Estimate


def agreement(votes: Votes) -> Agreement:
    """How far people agree: in pairs, and beyond chance by alpha, 1 minus observed over expected
    disagreement (Krippendorff 2004, Content Analysis, ch. 11), with the nominal or the ordinal
    difference; a case with m labels counts m / (m - 1) for each of its pairs.
    """
    counts = votes.counts(np.unique(votes.answer[votes.known]))
    of_several = counts.sum(axis=1) > 1
    counts, clusters = counts[of_several], votes.clusters[of_several]
    others = counts.sum(axis=1, keepdims=True) - 1
    raw = estimate_mean((counts * (counts - 1) / others).sum(axis=1) / (others[:, 0] + 1), clusters)
    return Agreement(raw, _alpha(counts, counts / others, clusters, votes.scale))


def _alpha(counts: Floats, weights: Floats, clusters: Ints, scale: Scale) -> Estimate:
    """Alpha as a figure of sums over cases: of each one's disagreement, with the differences as
    they are, and of its counts, on which ordinal differences depend, too.
    """
    together = counts.T @ weights - np.diag(weights.sum(axis=0))
    differences = _differences(counts.sum(axis=0), scale)

    def alpha(sums: Any) -> Any:
        margins = np.array(sums[1:])
        moved = _differences(margins, scale)
        by_chance = margins @ moved @ margins
        if not by_chance:
            return math.nan
        observed = sums[0] + (together * (moved - differences)).sum()
        return 1 - observed * (margins.sum() - 1) / by_chance

    rows = np.column_stack([(counts @ differences * weights).sum(axis=1), counts])
    # One of those who vote on a case says otherwise.
    turned = np.zeros((2, rows.shape[1]))
    if len(rows):
        turned[:, 0] = 2 * differences[0, -1]
        turned[[0, 1], [1, -1]] = counts.sum() / len(counts) - 1
        turned[[0, 1], [-1, 1]] = 1
    return estimate(rows, clusters, alpha, turned, span=(-1.0, 1.0))


def _differences(margins: Floats, scale: Scale) -> Floats:
    """How much two values differ: at all, or on a scale by the number of labels between them, each
    end counted half, squared.
    """
    if not scale.is_ordered:
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
    pairs: tuple[JudgePair, ...]


def people_beside(votes: Votes, judges: Mapping[str, Verdicts]) -> People:
    """Hold people against each other, and judges, by their names, against them."""
    places = {key: place for place, key in enumerate(votes.keys)}
    names, columns = [judge or THE_JUDGE for judge in judges], []
    for verdicts in judges.values():
        scores: list[int | None] = [None] * len(places)
        for rubric, run, score in verdicts.kinds("rubric", "run", "score").names:
            if (rubric, *run) in places:
                scores[places[rubric, *run]] = score
        columns.append(_numbers(scores, votes.scale))
    beside = {judge: _beside(votes, scores) for judge, scores in zip(judges, columns, strict=True)}
    numbers = np.bincount(votes.person.codes, votes.known)
    for code in sorted(np.argsort(-numbers, kind="stable")[:_MOST_PEOPLE]):
        names.append(votes.person.names[code])
        columns.append(np.full(len(places), math.nan))
        is_of_one = votes.person.codes == code
        columns[-1][votes.case[is_of_one]] = votes.answer[is_of_one]
    pairs = judge_pairs(
        names,
        np.column_stack(columns),
        votes.clusters,
        is_ordered=votes.scale.is_ordered,
        judges=len(judges),
    )
    return People(votes, agreement(votes), beside, pairs)


def _beside(votes: Votes, scores: Floats) -> BesidePeople:
    """One judge, of which the scores are by case, beside people."""
    is_known = votes.known & ~np.isnan(scores[votes.case])
    case, answer = votes.case[is_known], votes.answer[is_known]
    sizes = np.bincount(case)
    judged = np.flatnonzero(sizes)
    agreeing = np.bincount(case, scores[case] == answer)[judged] / sizes[judged]
    person, clusters = votes.person[is_known], votes.clusters
    held = alt_test(scores, case, person, answer, clusters, ordered=votes.scale.is_ordered)
    return BesidePeople(estimate_mean(agreeing, clusters[judged]), held, _by_votes(votes, scores))


def _by_votes(votes: Votes, scores: Floats) -> dict[str, Estimate]:
    """The figures of a judge over all cases, where a disputed one counts for each label by the
    share of its votes.
    """
    disputed = votes.disputed & ~np.isnan(scores)
    if votes.scale.is_ordered or not disputed.any():
        return {}
    values = np.unique(
        np.concatenate([votes.answer[votes.known], votes.labels[~np.isnan(votes.labels)]])
    )
    weights = (votes.labels[:, None] == values).astype(float)
    weights[disputed] = votes.counts(values)[disputed] / votes.sizes[disputed, None]
    case, place = np.nonzero(weights * ~np.isnan(scores)[:, None])
    pairs = np.column_stack([values[place], scores[case]])
    weight, clusters = weights[case, place], votes.clusters[case]
    figures = {}
    for of_class in votes.scale.classes:
        cases = pairs[:, 0] == of_class.answer
        is_wrong = pairs[cases, 1] != of_class.answer
        figures[of_class.mistakes] = estimate_mean(is_wrong, clusters[cases], weights=weight[cases])
    kappa = estimate_kappa(pairs, clusters, is_ordered=False, weights=weight)
    return {**figures, "kappa": kappa}

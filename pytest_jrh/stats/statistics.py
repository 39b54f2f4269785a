"""Figures of the judges, with their intervals: per judge, test and rubric, and over all; what
repeats say about a judge, and what an ordinal judge gives to the cases of each level.

Only agree and disagree count. A figure that cannot be computed is None with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import TYPE_CHECKING, TypeAlias

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.model import JUDGED
from pytest_jrh.stats.formulas import (
    NO_VERDICT,
    ConfusionMatrix,
    Pair,
    Share,
    balanced_accuracy,
    cohen_kappa,
    confusion_matrix,
    mean_absolute_error,
    mean_bias,
    quadratic_kappa,
)
from pytest_jrh.stats.intervals import (
    LEVEL,
    NOT_ASKED_TWICE,
    Bounds,
    Flicker,
    RepeatedCase,
    Tally,
    bias_bounds,
    flicker,
    kappa_bounds,
    mean_error_bounds,
    share_bounds,
    sums_of,
)
from pytest_jrh.stats.metrics import Figure, GroupStats, group_stats, totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.stats.intervals import Sums


def answer_of(result: CaseResult) -> int | None:
    """The answer that counts: the score, and for a tie of a binary judge the wrong one.

    None for a tie of an ordinal judge: there is no telling how far off it is.
    """
    if result.score is None and result.expected is not None and result.spec.target_score is None:
        return 1 - result.expected
    return result.score


def repeated_case(result: CaseResult, earlier: Iterable[int] = ()) -> RepeatedCase:
    """The scores of a case, with those that the same judge gave the same case `earlier`."""
    scores = (*earlier, *result.scores)
    return RepeatedCase(result.spec.cluster_id, scores, binary=result.spec.target_score is None)


def flicker_of(results: Iterable[CaseResult]) -> Flicker:
    """How often the judge of these results contradicts itself."""
    return flicker(repeated_case(result) for result in results)


def flickering(results: Iterable[CaseResult]) -> list[CaseResult]:
    """The cases that a judge gave different scores."""
    return [result for result in results if result.flickers]


Cluster: TypeAlias = "tuple[str, str | None, str]"
"""A `CaseResult.cluster_id`."""


def clusters_of(results: Iterable[CaseResult]) -> list[list[CaseResult]]:
    """Put together what is no independent observation: all cases of one cluster (rule L3)."""
    clusters: dict[Cluster, list[CaseResult]] = {}
    for result in results:
        clusters.setdefault(result.spec.cluster_id, []).append(result)
    return list(clusters.values())


def accuracy_bounds(judged: Iterable[CaseResult], level: float = LEVEL) -> Bounds:
    """Bound the share of verdicts that are right."""
    return share_of(judged, lambda result: result.outcome == "agree", level)


def share_of(
    judged: Iterable[CaseResult], right: Callable[[CaseResult], bool], level: float = LEVEL
) -> Bounds:
    """Bound the share of verdicts of which something is true."""
    tallies = [Tally(sum(map(right, cluster)), len(cluster)) for cluster in clusters_of(judged)]
    return share_bounds(tallies, level)


def binary_bounds(
    violations: Sequence[CaseResult],
    satisfied: Sequence[CaseResult],
    judged: Sequence[CaseResult],
    kappa: Figure,
    pairs: Mapping[Cluster, Sequence[bool]],
) -> dict[str, Bounds]:
    """The intervals of the figures of a binary judge, by the keys that the JSON report has.

    `pairs` are the `whole_pairs` of what was judged.
    """
    right = accuracy_bounds(satisfied)
    alarms = right
    if right.lower is not None and right.upper is not None:
        alarms = Bounds(1 - right.upper, 1 - right.lower)
    return {
        "recall": accuracy_bounds(violations),
        "false_positive_rate": alarms,
        "balanced_accuracy": Bounds(reason="see the intervals of recall and false-positive rate"),
        "kappa": kappa_or_reason(kappa, sums_by_cluster(judged)),
        "paired_accuracy": share_bounds(Tally(sum(each), len(each)) for each in pairs.values()),
    }


def ordinal_bounds(
    judged: Sequence[CaseResult],
    within_one: Callable[[CaseResult], bool],
    kappa: Figure,
    scores: Sequence[int],
) -> dict[str, Bounds]:
    """The intervals of the figures of a judge that scores, by the keys that the JSON report has.

    No error is larger than the distance from the lowest of the `scores` to the highest; they are in
    ascending order.
    """
    farthest = scores[-1] - scores[0] if scores else 0
    sums = sums_by_cluster(judged)
    return {
        "exact": accuracy_bounds(judged),
        "within_one": share_of(judged, within_one),
        "mean_absolute_error": _between(0, farthest, mean_error_bounds(sums)),
        "bias": _between(-farthest, farthest, bias_bounds(sums)),
        "weighted_kappa": kappa_or_reason(kappa, sums),
    }


def whole_pairs(judged: Iterable[CaseResult]) -> dict[Cluster, list[bool]]:
    """Whether each run with both its tests judged was judged right in both, by cluster.

    A pair is of one judge, rubric, sample and epoch.
    """
    pairs: dict[tuple[Cluster, str, str, str, int], dict[str, bool]] = {}
    for result in judged:
        if KINDS[result.spec.test].natural:
            continue
        key = (
            result.spec.cluster_id,
            result.spec.run_id,
            result.judge,
            result.spec.rubric_id,
            result.spec.epoch,
        )
        pairs.setdefault(key, {})[result.spec.test] = result.outcome == "agree"
    clusters: dict[Cluster, list[bool]] = {}
    for (cluster, *_), pair in pairs.items():
        if len(pair) > 1:
            clusters.setdefault(cluster, []).append(all(pair.values()))
    return clusters


def kappa_or_reason(kappa: Figure, sums: Sequence[Sums]) -> Bounds:
    """The interval of kappa; where there is no kappa, why."""
    return Bounds(reason=kappa.reason) if kappa.reason else kappa_bounds(sums)


def _between(lowest: float, highest: float, bounds: Bounds) -> Bounds:
    """The part of an interval that the figure can be in; without an interval, the reason."""
    if bounds.lower is None or bounds.upper is None:
        return bounds
    return Bounds(max(lowest, bounds.lower), min(highest, bounds.upper))


def sums_by_cluster(judged: Iterable[CaseResult]) -> list[Sums]:
    """The sums of labels and answers that figures are made of, of each cluster."""
    return [
        sums_of(
            (result.expected, answer)
            for result in cluster
            if result.expected is not None and (answer := answer_of(result)) is not None
        )
        for cluster in clusters_of(judged)
    ]


Scales: TypeAlias = "Mapping[tuple[str, str], Sequence[int]]"

_Names: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class BinaryStats:
    """Figures of a binary judge; 1 is "violated", 0 "satisfied".

    `recall` is the share of the violations of agent_perturbation that were found,
    `false_positive_rate` the share of the satisfied cases of agent_positives that were judged
    violated, `paired` the share of runs whose perturbation and positive of one rubric were both
    judged right by one judge. `intervals` are those of the figures, by their keys in the JSON
    report.
    """

    matrix: ConfusionMatrix
    recall: Share
    false_positive_rate: Share
    balanced_accuracy: Figure
    kappa: Figure
    paired: Share
    intervals: Mapping[str, Bounds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OrdinalStats:
    """Figures of an ordinal judge; errors are in levels of the scale.

    `bias` is the mean of answer minus label. `intervals` are those of the figures, by their keys in
    the JSON report.
    """

    matrix: ConfusionMatrix
    exact: Share
    within_one: Share
    mean_absolute_error: Figure
    bias: Figure
    weighted_kappa: Figure
    intervals: Mapping[str, Bounds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Every figure of one set of results; names in `counts` that are empty stand for all.

    `binary` and `ordinal` are None where the set has no case of that mode. `flicker` says how often
    the judge contradicts itself. A tie of repeats is wrong in every share; what needs the score of
    an ordinal judge leaves it out (rule M2). `judged` are the results with a verdict that the
    figures are of.
    """

    counts: GroupStats
    accuracy: Figure
    interval: Bounds
    flicker: Flicker = NOT_ASKED_TWICE
    binary: BinaryStats | None = None
    ordinal: OrdinalStats | None = None
    judged: Sequence[CaseResult] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class StatisticsTable:
    """The figures at every level, each in the order in which its groups first appear.

    `groups` are per suite, test, rubric and judge; `rubrics` join the two tests, which agreement
    beyond chance and pairs need; `judges` are per suite and judge; `overall` is everything.
    """

    groups: tuple[Statistics, ...]
    rubrics: tuple[Statistics, ...]
    judges: tuple[Statistics, ...]
    overall: Statistics


def tabulate(results: Iterable[CaseResult], scales: Scales | None = None) -> StatisticsTable:
    """Compute the figures at every level, of all results but those of probes (rule S8).

    `scales` gives the scores of an ordinal rubric by suite and rubric id, so that its matrix shows
    them all.
    """
    given = [result for result in results if not result.spec.derived]
    # With one judge, or one test, the levels are the same sets again.
    known: dict[tuple[int, ...], Statistics] = {}

    def level(names_of: Callable[[CaseResult], _Names]) -> tuple[Statistics, ...]:
        members: dict[_Names, list[int]] = {}
        for index, result in enumerate(given):
            members.setdefault(names_of(result), []).append(index)
        return tuple(described(names, tuple(indices)) for names, indices in members.items())

    def described(names: _Names, indices: tuple[int, ...]) -> Statistics:
        if indices not in known:
            known[indices] = describe([given[index] for index in indices], scales)
        suite, test, rubric, judge = names
        counts = replace(known[indices].counts, suite=suite, test=test, rubric=rubric, judge=judge)
        return replace(known[indices], counts=counts)

    return StatisticsTable(
        groups=level(
            lambda result: (
                result.spec.suite,
                result.spec.test,
                result.spec.rubric_id,
                result.judge,
            )
        ),
        rubrics=level(lambda result: (result.spec.suite, "", result.spec.rubric_id, result.judge)),
        judges=level(lambda result: (result.spec.suite, "", "", result.judge)),
        overall=described(("", "", "", ""), tuple(range(len(given)))),
    )


def describe(results: Iterable[CaseResult], scales: Scales | None = None) -> Statistics:
    """Compute the figures of one set of results, taken together; probes count in none."""
    given = [result for result in results if not result.spec.derived]
    judged = [result for result in given if result.outcome in JUDGED]
    binary = any(result.spec.target_score is None for result in given)
    ordinal = any(result.spec.target_score is not None for result in given)
    counts = totals(group_stats(given))
    return Statistics(
        counts=counts,
        accuracy=Figure(counts.accuracy, None if judged else NO_VERDICT),
        interval=accuracy_bounds(judged),
        flicker=flicker_of(judged),
        binary=_binary([result for result in judged if result.spec.target_score is None])
        if binary
        else None,
        ordinal=_ordinal(
            [result for result in judged if result.spec.target_score is not None], scales
        )
        if ordinal
        else None,
        judged=judged,
    )


def pairs_of(results: Iterable[CaseResult]) -> list[Pair]:
    """Label and answer of every verdict, but of no tie of an ordinal judge (`answer_of`)."""
    answers = [
        (result.expected, answer_of(result)) for result in results if result.outcome in JUDGED
    ]
    return [
        (label, answer) for label, answer in answers if label is not None and answer is not None
    ]


def _binary(judged: Sequence[CaseResult]) -> BinaryStats:
    matrix = confusion_matrix(pairs_of(judged), labels=(0, 1))
    violations = [result for result in _counting_in("recall", judged) if result.expected == 1]
    satisfied = [
        result for result in _counting_in("false_positive_rate", judged) if result.expected == 0
    ]
    found = sum(result.outcome == "agree" for result in violations)
    alarms = sum(result.outcome == "disagree" for result in satisfied)
    kappa = _of_two_labels(matrix, cohen_kappa(matrix))
    pairs = whole_pairs(judged)
    whole = [pair for cluster in pairs.values() for pair in cluster]
    return BinaryStats(
        matrix=matrix,
        recall=_share(found, len(violations), "no perturbation was judged"),
        false_positive_rate=_share(alarms, len(satisfied), "no positive was judged"),
        balanced_accuracy=_of_two_labels(matrix, balanced_accuracy(matrix)),
        kappa=kappa,
        paired=_share(sum(whole), len(whole), "no run has both its tests judged"),
        intervals=binary_bounds(violations, satisfied, judged, kappa, pairs),
    )


def _ordinal(judged: Sequence[CaseResult], scales: Scales | None) -> OrdinalStats:
    used = {
        tuple((scales or {}).get((result.spec.suite, result.spec.rubric_id), ()))
        for result in judged
    }
    pairs = pairs_of(judged)
    matrix = confusion_matrix(pairs, {score for scale in used for score in scale})
    exact = sum(label == answer for label, answer in pairs)
    near = sum(abs(label - answer) <= 1 for label, answer in pairs)
    kappa = (
        quadratic_kappa(matrix)
        if len(used) <= 1
        else Figure(None, "the rubrics have different scales")
    )
    kappa = _of_two_labels(matrix, kappa)
    return OrdinalStats(
        matrix=matrix,
        exact=_share(exact, len(judged), NO_VERDICT),
        within_one=_share(near, len(judged), NO_VERDICT),
        mean_absolute_error=mean_absolute_error(matrix),
        bias=mean_bias(matrix),
        weighted_kappa=kappa,
        intervals=ordinal_bounds(judged, _is_near, kappa, matrix.labels),
    )


def _is_near(result: CaseResult) -> bool:
    return (
        result.expected is not None
        and result.score is not None
        and abs(result.expected - result.score) <= 1
    )


def _of_two_labels(matrix: ConfusionMatrix, figure: Figure) -> Figure:
    """Replaces kappa by a reason where all labels are the same: it would be 0 for every judge."""
    labels = [label for label, row in zip(matrix.labels, matrix.rows, strict=True) if row]
    return (
        Figure(None, f"one class only: every label is {labels[0]}") if len(labels) == 1 else figure
    )


def _counting_in(figure: str, results: Iterable[CaseResult]) -> list[CaseResult]:
    return [result for result in results if figure in KINDS[result.spec.test].figures]


def _share(count: int, n: int, missing: str) -> Share:
    return Share(count, n, None if n else missing)


@dataclass(frozen=True, slots=True)
class LevelFigures:
    """The scores that the `n` cases of one level, at least one, were given, in levels of the scale.

    `spread` is their standard deviation over these cases, `lowest` and `highest` the ends.
    """

    level: int
    n: int
    mean: float
    spread: float
    lowest: int
    highest: int

    @property
    def bias(self) -> float:
        """The mean of what was given minus the level: above 0 where the judge scores too high."""
        return self.mean - self.level

    @property
    def range_text(self) -> str:
        """The ends of what was given."""
        return (
            f"{self.lowest} to {self.highest}" if self.highest > self.lowest else f"{self.lowest}"
        )

    @property
    def bias_text(self) -> str:
        """The bias with its sign, to two digits."""
        # Rounding makes "-0.00" of what is a little below 0.
        rounded = round(self.bias, 2) + 0.0
        return f"{rounded:+.2f}" if rounded else "0.00"


def levels_of(matrix: ConfusionMatrix) -> Iterator[LevelFigures]:
    """The figures of each level that has a case, from the lowest up."""
    for level, counts in zip(matrix.labels, matrix.counts, strict=True):
        n = sum(counts)
        if not n:
            continue
        given = [
            (score, count) for score, count in zip(matrix.labels, counts, strict=True) if count
        ]
        mean = sum(score * count for score, count in given) / n
        variance = sum(count * (score - mean) ** 2 for score, count in given) / n
        yield LevelFigures(level, n, mean, sqrt(variance), given[0][0], given[-1][0])

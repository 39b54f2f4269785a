"""Figures of the judges, with their intervals: per judge, test and rubric, and over all; what
repeats say about a judge, and what an ordinal judge gives to the cases of each level.

Only agree and disagree count. A figure that cannot be computed is an `Estimate` that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import TYPE_CHECKING, TypeAlias

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.model import JUDGED
from pytest_jrh.stats.formulas import (
    NO_VERDICT,
    ConfusionMatrix,
    Estimate,
    Pair,
    balanced_accuracy,
    confusion_matrix,
)
from pytest_jrh.stats.intervals import (
    LEVEL,
    RepeatedCase,
    Sums,
    estimate_bias,
    estimate_flicker,
    estimate_kappa,
    estimate_mean_error,
    estimate_share,
    summed,
    tallied,
)
from pytest_jrh.stats.metrics import GroupStats, counts_of

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseResult, ClusterId, Mode


_LARGEST_SCORE = 10**12
SEE_RECALL = "see the intervals of recall and false-positive rate"


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


def flicker_of(results: Iterable[CaseResult]) -> Estimate:
    """How often the judge of these results contradicts itself."""
    return estimate_flicker(repeated_case(result) for result in results)


def flickering(results: Iterable[CaseResult]) -> list[CaseResult]:
    """The cases that a judge gave different scores."""
    return [result for result in results if result.flickers]


def accuracy_of(judged: Iterable[CaseResult], level: float = LEVEL) -> Estimate:
    """The share of verdicts that are right."""
    return estimate_share(tallied(_marks(judged, _is_right)), level)


def sums_by_cluster(judged: Iterable[CaseResult]) -> list[Sums]:
    """The sums of labels and answers that figures are made of, of each cluster."""
    return summed(_labelled_answers(judged))


def _labelled_answers(judged: Iterable[CaseResult]) -> Iterator[tuple[ClusterId, Pair]]:
    """The cluster, and the label and answer, of every verdict but a tie of an ordinal judge."""
    for result in judged:
        answer = answer_of(result)
        if result.expected is not None and answer is not None:
            yield result.spec.cluster_id, (result.expected, answer)


def _marks(
    results: Iterable[CaseResult], counts: Callable[[CaseResult], bool]
) -> Iterator[tuple[ClusterId, bool]]:
    """The cluster of each result, and whether it counts."""
    return ((result.spec.cluster_id, counts(result)) for result in results)


def _is_right(result: CaseResult) -> bool:
    return result.outcome == "agree"


def _whole_pairs(judged: Iterable[CaseResult]) -> Iterator[tuple[ClusterId, bool]]:
    """The cluster of each run with both its tests judged, and whether both were judged right.

    A pair is of one judge, rubric, sample and epoch.
    """
    pairs: dict[tuple[ClusterId, str, str, str, int], dict[str, bool]] = {}
    for result in judged:
        if not KINDS[result.spec.test].natural:
            key = (
                result.spec.cluster_id,
                result.spec.run_id,
                result.judge,
                result.spec.rubric_id,
                result.spec.epoch,
            )
            pairs.setdefault(key, {})[result.spec.test] = _is_right(result)
    for (cluster, *_), pair in pairs.items():
        if len(pair) > 1:
            yield cluster, all(pair.values())


Scales: TypeAlias = "Mapping[tuple[str, str], Sequence[int]]"

_Names: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Every figure of one set of results; names in `counts` that are empty stand for all.

    `figures` are by their keys in the JSON report: `accuracy` and `flicker`, and those of the modes
    of which the set has cases. `matrices` are those of the same modes; in a binary one 1 is
    "violated", 0 "satisfied". A tie of repeats is wrong in every share; what needs the score of an
    ordinal judge leaves it out. `judged` are the results with a verdict that the figures are of.
    """

    counts: GroupStats
    figures: Mapping[str, Estimate]
    matrices: Mapping[Mode, ConfusionMatrix] = field(default_factory=dict)
    judged: Sequence[CaseResult] = field(default=(), repr=False)

    @property
    def accuracy(self) -> Estimate:
        """The share of verdicts that are right."""
        return self.figures["accuracy"]

    @property
    def flicker(self) -> Estimate:
        """How often the judge contradicts itself."""
        return self.figures["flicker"]

    @property
    def mode(self) -> Mode:
        """The mode whose figures are shown."""
        return "ordinal" if "ordinal" in self.matrices else "binary"


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
    """Compute the figures at every level, of all results but those of probes.

    `scales` gives the scores of an ordinal rubric by suite and rubric id, so that its matrix shows
    them all.
    """
    shown = [result for result in results if not result.spec.derived]
    # With one judge, or one test, the levels are the same sets again.
    computed: dict[tuple[int, ...], Statistics] = {}

    def level(names_of: Callable[[CaseResult], _Names]) -> tuple[Statistics, ...]:
        members: dict[_Names, list[int]] = {}
        for index, result in enumerate(shown):
            members.setdefault(names_of(result), []).append(index)
        return tuple(described(names, tuple(indices)) for names, indices in members.items())

    def described(names: _Names, indices: tuple[int, ...]) -> Statistics:
        if indices not in computed:
            computed[indices] = describe([shown[index] for index in indices], scales)
        suite, test, rubric, judge = names
        counts = computed[indices].counts
        counts = replace(counts, suite=suite, test=test, rubric=rubric, judge=judge)
        return replace(computed[indices], counts=counts)

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
        overall=described(("", "", "", ""), tuple(range(len(shown)))),
    )


def describe(results: Iterable[CaseResult], scales: Scales | None = None) -> Statistics:
    """Compute the figures of one set of results, taken together; probes count in none."""
    shown = [result for result in results if not result.spec.derived]
    judged = [result for result in shown if result.outcome in JUDGED]
    figures = {"accuracy": accuracy_of(judged), "flicker": flicker_of(judged)}
    matrices: dict[Mode, ConfusionMatrix] = {}
    if any(result.spec.target_score is None for result in shown):
        binary = [result for result in judged if result.spec.target_score is None]
        matrices["binary"] = _matrix(binary, (0, 1))
        figures |= _binary_figures(binary, matrices["binary"])
    if any(result.spec.target_score is not None for result in shown):
        ordinal = [result for result in judged if result.spec.target_score is not None]
        rubrics = {(result.spec.suite, result.spec.rubric_id) for result in ordinal}
        used = {tuple((scales or {}).get(rubric, ())) for rubric in rubrics}
        matrices["ordinal"] = _matrix(ordinal, set().union(*used))
        figures |= _ordinal_figures(ordinal, matrices["ordinal"], one_scale=len(used) <= 1)
    return Statistics(counts_of(shown), figures, matrices, judged)


def _matrix(judged: Iterable[CaseResult], labels: Iterable[int]) -> ConfusionMatrix:
    return confusion_matrix((pair for _, pair in _labelled_answers(judged)), labels)


def _binary_figures(
    judged: Sequence[CaseResult], matrix: ConfusionMatrix
) -> Iterator[tuple[str, Estimate]]:
    """The figures of a binary judge, by their keys.

    `recall` is the share of the violations of agent_perturbation that were found,
    `false_positive_rate` the share of the satisfied cases of agent_positives that were judged
    violated, `paired_accuracy` the share of runs whose perturbation and positive of one rubric were
    both judged right by one judge.
    """
    violated = _counting_in("recall", judged, 1)
    satisfied = _counting_in("false_positive_rate", judged, 0)
    found = tallied(_marks(violated, _is_right))
    spared = tallied(_marks(satisfied, _is_right))
    whole = tallied(_whole_pairs(judged))
    right = estimate_share(spared, missing="no positive was judged")
    why = SEE_RECALL if matrix.n else NO_VERDICT
    balanced = Estimate(balanced_accuracy(matrix), n=matrix.n, why=why)
    yield "recall", estimate_share(found, missing="no perturbation was judged")
    yield "false_positive_rate", right.complement()
    yield "balanced_accuracy", _of_two_labels(matrix, balanced)
    yield "kappa", _of_two_labels(matrix, estimate_kappa(sums_by_cluster(judged)))
    yield "paired_accuracy", estimate_share(whole, missing="no run has both its tests judged")


def _ordinal_figures(
    judged: Sequence[CaseResult], matrix: ConfusionMatrix, *, one_scale: bool
) -> Iterator[tuple[str, Estimate]]:
    """The figures of a judge that scores, by their keys; errors are in levels of the scale."""
    # No error is larger than the distance from the lowest score to the highest.
    farthest = matrix.labels[-1] - matrix.labels[0] if matrix.labels else 0
    sums = sums_by_cluster(judged)
    yield "exact", accuracy_of(judged)
    yield "within_one", estimate_share(tallied(_marks(judged, _is_near)))
    yield "mean_absolute_error", estimate_mean_error(sums).within(0, farthest)
    yield "bias", estimate_bias(sums).within(-farthest, farthest)
    kappa = Estimate(n=matrix.n, why="the rubrics have different scales")
    if one_scale:
        kappa = estimate_kappa(sums)
    yield "weighted_kappa", _of_two_labels(matrix, kappa)


def _is_near(result: CaseResult) -> bool:
    return (
        result.expected is not None
        and result.score is not None
        and abs(result.expected - result.score) <= 1
    )


def _of_two_labels(matrix: ConfusionMatrix, figure: Estimate) -> Estimate:
    """Replaces kappa by a reason where all labels are the same: it would be 0 for every judge."""
    labels = [label for label, row in zip(matrix.labels, matrix.rows, strict=True) if row]
    if len(labels) == 1:
        return Estimate(n=matrix.n, why=f"one class only: every label is {labels[0]}")
    return figure


def _counting_in(figure: str, results: Iterable[CaseResult], label: int) -> list[CaseResult]:
    return [
        result
        for result in results
        if result.expected == label and figure in KINDS[result.spec.test].figures
    ]


@dataclass(frozen=True, slots=True)
class LevelFigures:
    """The scores of the `n` cases of one level, at least one, in levels of the scale.

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
        """The mean of the scores minus the level: above 0 where the judge scores too high."""
        return self.mean - self.level

    @property
    def range_text(self) -> str:
        """The lowest and the highest score."""
        if self.highest > self.lowest:
            return f"{self.lowest} to {self.highest}"
        return f"{self.lowest}"

    @property
    def bias_text(self) -> str:
        """The bias with its sign, to two digits."""
        # Rounding makes "-0.00" of what is a little below 0.
        rounded = round(self.bias, 2) + 0.0
        return f"{rounded:+.2f}" if rounded else "0.00"


def levels_of(matrix: ConfusionMatrix) -> Iterator[LevelFigures]:
    """The figures of each level that has a case, from the lowest up; none where a score is of no
    scale.
    """
    if any(abs(label) > _LARGEST_SCORE for label in matrix.labels):
        return
    for level, counts in zip(matrix.labels, matrix.counts, strict=True):
        n = sum(counts)
        if not n:
            continue
        columns = zip(matrix.labels, counts, strict=True)
        scores = [(score, count) for score, count in columns if count]
        mean = sum(score * count for score, count in scores) / n
        variance = sum(count * (score - mean) ** 2 for score, count in scores) / n
        yield LevelFigures(level, n, mean, sqrt(variance), scores[0][0], scores[-1][0])

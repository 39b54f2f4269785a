"""Figures of the judges, with their intervals: per judge, test and rubric, and over all; what
repeats say about a judge.

Only agree and disagree count. A figure that cannot be computed is an `Estimate` that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from pytest_jrh.core.model import JUDGED, NATURAL, PERTURBATION, POSITIVES
from pytest_jrh.stats.columns import GroupStats, ResultColumns
from pytest_jrh.stats.formulas import (
    NO_VERDICT,
    ConfusionMatrix,
    Estimate,
    balanced_accuracy,
    confusion_matrix,
)
from pytest_jrh.stats.intervals import (
    LEVEL,
    RepeatedCase,
    cluster_codes,
    estimate_bias,
    estimate_flicker,
    estimate_kappa,
    estimate_mean,
    estimate_share,
)

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseResult, Mode, TestName


SEE_RECALL = "see the intervals of recall and false-positive rate"
_TOO_LARGE = "the scores are too large to calculate with"


def repeated_case(result: CaseResult, earlier: Iterable[int] = ()) -> RepeatedCase:
    """The scores of a case, with those that the same judge gave the same case `earlier`."""
    scores = (*earlier, *result.all_scores)
    return RepeatedCase(result.spec.cluster_id, scores, binary=result.spec.target_score is None)


def flicker_of(results: Iterable[CaseResult]) -> Estimate:
    """How often the judge of these results contradicts itself."""
    return estimate_flicker(repeated_case(result) for result in results)


def flickering(results: Iterable[CaseResult]) -> list[CaseResult]:
    """The cases that a judge gave different scores."""
    return [result for result in results if result.flickers]


def share_of(
    results: Iterable[CaseResult],
    counts: Callable[[CaseResult], bool],
    level: float = LEVEL,
    missing: str = NO_VERDICT,
) -> Estimate:
    """The share of results that count."""
    every_result = list(results)
    clusters = cluster_codes(result.spec.cluster_id for result in every_result)
    return estimate_share(list(map(counts, every_result)), clusters, level, missing)


def accuracy_of(judged: Iterable[CaseResult], level: float = LEVEL) -> Estimate:
    """The share of verdicts that are right."""
    return share_of(judged, _is_right, level)


def bias_of(judged: Sequence[CaseResult], scale: Sequence[int]) -> Estimate:
    """The mean of score minus label of a judge that gives scores of a scale, in levels: above 0,
    it scores too high.
    """
    return _bias(_with_answer(ResultColumns.of(judged)), _farthest(scale))


def _is_right(result: CaseResult) -> bool:
    return result.outcome == "agree"


Scales: TypeAlias = "Mapping[tuple[str, str], Sequence[int]]"

_Names: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Every figure of one set of results; names in `counts` that are empty stand for all.

    `figures` are by their keys in the JSON report: `accuracy` and `flicker`, and those of the modes
    of which the set has cases. `matrices` are those of the same modes; in a binary one 1 is
    "violated", 0 "satisfied". A tie of repeats is wrong in every share; what needs the score of an
    ordinal judge leaves it out. `judged` are the results with a verdict that the figures are of,
    and `columns` the same as columns.
    """

    counts: GroupStats
    figures: Mapping[str, Estimate]
    matrices: Mapping[Mode, ConfusionMatrix] = field(default_factory=dict)
    judged: Sequence[CaseResult] = field(default=(), repr=False)
    columns: ResultColumns = field(
        default_factory=lambda: ResultColumns.of(()), repr=False, compare=False
    )

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
    """The figures per rubric and judge, per judge, and of everything; suites are apart, and each
    stands in the order in which its cases first appear.
    """

    rubrics: tuple[Statistics, ...]
    judges: tuple[Statistics, ...]
    overall: Statistics


def tabulate(results: Iterable[CaseResult], scales: Scales | None = None) -> StatisticsTable:
    """Compute the figures at every level, of all results but those of probes.

    `scales` gives the scores of an ordinal rubric by suite and rubric id, so that its matrix shows
    them all.
    """
    shown = [result for result in results if not result.spec.derived]
    columns = ResultColumns.of(shown)
    # With one judge, or one rubric, the levels are the same sets again.
    computed: dict[tuple[int, ...], Statistics] = {}

    def level(names_of: Callable[[CaseResult], _Names]) -> tuple[Statistics, ...]:
        members: dict[_Names, list[int]] = {}
        for index, result in enumerate(shown):
            members.setdefault(names_of(result), []).append(index)
        return tuple(described(names, tuple(indices)) for names, indices in members.items())

    def described(names: _Names, indices: tuple[int, ...]) -> Statistics:
        if indices not in computed:
            results = [shown[index] for index in indices]
            computed[indices] = _describe(results, columns.where(list(indices)), scales)
        suite, rubric, judge = names
        counts = replace(computed[indices].counts, suite=suite, rubric=rubric, judge=judge)
        return replace(computed[indices], counts=counts)

    return StatisticsTable(
        rubrics=level(lambda result: (result.spec.suite, result.spec.rubric_id, result.judge)),
        judges=level(lambda result: (result.spec.suite, "", result.judge)),
        overall=described(("", "", ""), tuple(range(len(shown)))),
    )


def _describe(
    shown: Sequence[CaseResult], columns: ResultColumns, scales: Scales | None
) -> Statistics:
    judged = [result for result in shown if result.outcome in JUDGED]
    of_judged = columns.where(columns.is_judged)
    figures = {
        "accuracy": estimate_share(of_judged.is_right, of_judged.clusters),
        "flicker": flicker_of(judged),
    }
    matrices: dict[Mode, ConfusionMatrix] = {}
    if not columns.is_ordinal.all():
        binary = of_judged.where(~of_judged.is_ordinal)
        matrices["binary"] = _matrix(binary, (0, 1))
        figures |= _binary_figures(binary, matrices["binary"])
    if columns.is_ordinal.any():
        rubrics = {
            (result.spec.suite, result.spec.rubric_id)
            for result in judged
            if result.spec.target_score is not None
        }
        used = {tuple((scales or {}).get(rubric, ())) for rubric in rubrics}
        ordinal = of_judged.where(of_judged.is_ordinal)
        matrices["ordinal"] = _matrix(ordinal, set().union(*used))
        figures |= _ordinal_figures(ordinal, matrices["ordinal"], one_scale=len(used) <= 1)
    return Statistics(columns.counts(), figures, matrices, judged, of_judged)


def _matrix(judged: ResultColumns, labels: Iterable[int]) -> ConfusionMatrix:
    """Labels and answers but for the ties of an ordinal judge."""
    known = _with_answer(judged)
    pairs = zip(known.labels.astype(int).tolist(), known.answers.astype(int).tolist(), strict=True)
    return confusion_matrix(pairs, labels)


def _with_answer(judged: ResultColumns) -> ResultColumns:
    import numpy as np

    return judged.where(~np.isnan(judged.answers) & ~np.isnan(judged.labels))


def _binary_figures(
    judged: ResultColumns, matrix: ConfusionMatrix
) -> Iterator[tuple[str, Estimate]]:
    """The figures of a binary judge, by their keys.

    `recall` is the share of the violations that were found, `false_positive_rate` the share of the
    satisfied cases that were judged violated, each of the tests that count in it.
    """
    violated = _of_tests(judged, PERTURBATION, NATURAL).labelled(1)
    satisfied = _of_tests(judged, POSITIVES, NATURAL).labelled(0)
    found = estimate_share(
        violated.is_right, violated.clusters, missing="no perturbation was judged"
    )
    alarms = estimate_share(
        ~satisfied.is_right, satisfied.clusters, missing="no positive was judged"
    )
    why = SEE_RECALL if matrix.n else NO_VERDICT
    balanced = Estimate(balanced_accuracy(matrix), n=matrix.n, why=why)
    yield "recall", found
    yield "false_positive_rate", alarms
    yield "balanced_accuracy", _of_two_labels(matrix, balanced)
    yield "kappa", _of_two_labels(matrix, _kappa(judged))


def _of_tests(judged: ResultColumns, *tests: TestName) -> ResultColumns:
    import numpy as np

    return judged.where(np.isin(judged.tests, tests))


def _ordinal_figures(
    judged: ResultColumns, matrix: ConfusionMatrix, *, one_scale: bool
) -> Iterator[tuple[str, Estimate]]:
    """The figures of a judge that scores, by their keys; errors are in levels of the scale."""
    known, farthest = _with_answer(judged), _farthest(matrix.labels)
    errors = abs(known.answers - known.labels)
    # A tie is not near: it has no score.
    near = abs(judged.answers - judged.labels) <= 1
    yield "exact", estimate_share(judged.is_right, judged.clusters)
    yield "within_one", estimate_share(near, judged.clusters)
    mean_error = Estimate(why=_TOO_LARGE)
    if not known.is_too_large:
        mean_error = estimate_mean(errors, known.clusters, (0.0, farthest))
    yield "mean_absolute_error", mean_error
    yield "bias", _bias(known, farthest)
    kappa = Estimate(n=matrix.n, why="the rubrics have different scales")
    if one_scale:
        kappa = _kappa(known)
    yield "weighted_kappa", _of_two_labels(matrix, kappa)


def _farthest(scale: Sequence[int]) -> float:
    """The largest error that there can be, from the lowest score to the highest."""
    return float(max(1, scale[-1] - scale[0])) if scale else 1.0


def _bias(known: ResultColumns, farthest: float) -> Estimate:
    if known.is_too_large:
        return Estimate(why=_TOO_LARGE)
    return estimate_bias(known.labels, known.answers, known.clusters, farthest)


def _kappa(known: ResultColumns, level: float = LEVEL) -> Estimate:
    if known.is_too_large:
        return Estimate(why=_TOO_LARGE)
    return estimate_kappa(known.labels, known.answers, known.clusters, level)


def kappa_of(statistics: Statistics, mode: Mode, level: float) -> Estimate:
    """Agreement beyond chance of the cases of one mode, with an interval at another level."""
    judged = statistics.columns.where(statistics.columns.is_ordinal == (mode == "ordinal"))
    return _of_two_labels(statistics.matrices[mode], _kappa(_with_answer(judged), level))


def kappa_by_case(pairs: Sequence[tuple[int, int]]) -> Estimate:
    """Agreement beyond chance of these labels and answers, as if no two cases shared a run; either
    bound is one-sided at 95%, as it is asked whether a judge is better than chance.
    """
    import numpy as np

    columns = np.array(pairs, dtype=float)
    return estimate_kappa(columns[:, 0], columns[:, 1], np.arange(len(pairs)), 0.9)


def _of_two_labels(matrix: ConfusionMatrix, figure: Estimate) -> Estimate:
    """Replaces kappa by a reason where all labels are the same: it would be 0 for every judge."""
    labels = [label for label, row in zip(matrix.labels, matrix.rows, strict=True) if row]
    if len(labels) == 1:
        return Estimate(n=matrix.n, why=f"one class only: every label is {labels[0]}")
    return figure

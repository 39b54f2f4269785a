"""Figures of the judges, with their intervals: per judge and rubric, and over all.

Only agree and disagree count. A figure that cannot be computed is an `Estimate` that says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pytest_jrh.core.model import JUDGED, NATURAL, PERTURBATION, POSITIVES, UNSCORED
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
from pytest_jrh.stats.reasoning import reasoning_disagrees

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseResult, Mode
    from pytest_jrh.stats.intervals import Codes, Numbers


SEE_RECALL = "see the intervals of recall and false-positive rate"
# Scores beyond this are of no scale, and are counted as this.
_LARGEST_SCORE = 10**12


def repeated_case(result: CaseResult, earlier: Iterable[int] = ()) -> RepeatedCase:
    """The scores of a case, with those that the same judge gave the same case `earlier`."""
    scores = (*earlier, *result.all_scores)
    return RepeatedCase(result.spec.cluster_id, scores, binary=result.spec.target_score is None)


def share_of(
    results: Iterable[CaseResult], counts: Callable[[CaseResult], bool], level: float = LEVEL
) -> Estimate:
    """The share of results that count."""
    every_result = list(results)
    clusters = cluster_codes(result.spec.cluster_id for result in every_result)
    return estimate_share(list(map(counts, every_result)), clusters, level)


def accuracy_of(judged: Iterable[CaseResult]) -> Estimate:
    """The share of verdicts that are right."""
    return share_of(judged, lambda result: result.outcome == "agree")


def bias_of(judged: Sequence[CaseResult], scale: Sequence[int]) -> Estimate:
    """The mean of score minus label of a judge that gives scores of a scale, in levels: above 0,
    it scores too high.
    """
    return _bias(Verdicts.of(judged).with_answer, _farthest(scale))


def answer_of(result: CaseResult) -> int | None:
    """The answer that counts: the score, and for a tie of a binary judge the wrong one.

    None for a tie of an ordinal judge: there is no telling how far off it is.
    """
    if result.score is None and result.label is not None and result.spec.target_score is None:
        return 1 - result.label
    return result.score


@dataclass(frozen=True, slots=True)
class Counts:
    """How many results came to what; `n` is the number of verdicts, agree plus disagree.

    `unverified` counts the cases, among all, whose label no verifier confirmed, and
    `contradicted` the verdicts whose reasoning disagrees with their score. `ties` counts the
    disagreements without a score.
    """

    agree: int = 0
    disagree: int = 0
    no_case: int = 0
    unscored: int = 0
    generated: int = 0
    unlabelled: int = 0
    unverified: int = 0
    contradicted: int = 0
    ties: int = 0

    @classmethod
    def of(cls, results: Sequence[CaseResult]) -> Counts:
        """The counts of these results."""
        outcomes = Counter(result.outcome for result in results)
        judged = [result for result in results if result.outcome in JUDGED]
        return cls(
            agree=outcomes["agree"],
            disagree=outcomes["disagree"],
            no_case=outcomes["no_case"],
            unscored=sum(number for outcome, number in outcomes.items() if outcome in UNSCORED),
            generated=outcomes["generated"],
            unlabelled=outcomes["unlabelled"],
            unverified=sum(result.verified is False for result in results),
            contradicted=sum(map(reasoning_disagrees, results)),
            ties=sum(result.score is None for result in judged),
        )

    @property
    def n(self) -> int:
        """The number of verdicts."""
        return self.agree + self.disagree

    @property
    def accuracy(self) -> float | None:
        """Agreement over verdicts; None without a verdict."""
        return self.agree / self.n if self.n else None


class Verdicts(NamedTuple):
    """Results as columns of numbers, with a row each: label and answer (`answer_of`) are nan where
    there is none.
    """

    is_judged: Any
    is_right: Any
    is_ordinal: Any
    tests: Any
    labels: Numbers
    answers: Numbers
    clusters: Codes

    @classmethod
    def of(cls, results: Sequence[CaseResult]) -> Verdicts:
        """The columns of these results."""
        import numpy as np

        outcomes = np.array([result.outcome for result in results], dtype=str)
        return cls(
            np.isin(outcomes, JUDGED),
            outcomes == "agree",
            np.array([result.spec.target_score is not None for result in results], dtype=bool),
            np.array([result.spec.test for result in results], dtype=str),
            _numbers(result.label for result in results),
            _numbers(map(answer_of, results)),
            cluster_codes(result.spec.cluster_id for result in results),
        )

    def where(self, rows: Any) -> Verdicts:
        """The columns of some rows: their places, or whether each is one of them."""
        return Verdicts(*(column[rows] for column in self))

    @property
    def with_answer(self) -> Verdicts:
        """The rows that have both, a label and an answer."""
        import numpy as np

        return self.where(np.isfinite(self.labels + self.answers))


def _numbers(values: Iterable[int | None]) -> Numbers:
    import numpy as np

    known = []
    for value in values:
        bounded = None if value is None else max(-_LARGEST_SCORE, min(value, _LARGEST_SCORE))
        known.append(bounded)
    return np.array(known, dtype=float)


Scales: TypeAlias = "Mapping[tuple[str, str], Sequence[int]]"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Every figure of one set of results; names that are empty stand for all.

    `figures` are by their keys in the JSON report: `accuracy` and `flicker`, and those of the modes
    of which the set has cases. `matrices` are those of the same modes; in a binary one 1 is
    "violated", 0 "satisfied". A tie of repeats is wrong in every share; what needs the score of an
    ordinal judge leaves it out. `judged` are the results with a verdict that the figures are of,
    and `verdicts` the same as columns.
    """

    suite: str
    rubric: str
    judge: str
    counts: Counts
    figures: Mapping[str, Estimate]
    matrices: Mapping[Mode, ConfusionMatrix]
    judged: Sequence[CaseResult] = field(repr=False)
    verdicts: Verdicts = field(repr=False, compare=False)

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

    @property
    def name(self) -> str:
        """What stands before its figures in a table."""
        return self.rubric or "all"


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
    verdicts = Verdicts.of(shown)
    of_rubrics: dict[tuple[str, str, str], list[int]] = {}
    of_judges: dict[tuple[str, str, str], list[int]] = {}
    for place, result in enumerate(shown):
        suite, rubric = result.spec.suite, result.spec.rubric_id
        of_rubrics.setdefault((suite, rubric, result.judge), []).append(place)
        of_judges.setdefault((suite, "", result.judge), []).append(place)
    # With one judge, or one rubric, the levels are the same sets again.
    computed: dict[tuple[int, ...], Statistics] = {}

    def described(names: tuple[str, str, str], places: Iterable[int]) -> Statistics:
        key = tuple(places)
        if key not in computed:
            members = [shown[place] for place in key]
            computed[key] = _described(names, members, verdicts.where([*key]), scales or {})
        suite, rubric, judge = names
        return replace(computed[key], suite=suite, rubric=rubric, judge=judge)

    return StatisticsTable(
        rubrics=tuple(described(*level) for level in of_rubrics.items()),
        judges=tuple(described(*level) for level in of_judges.items()),
        overall=described(("", "", ""), range(len(shown))),
    )


def _described(
    names: tuple[str, str, str], results: Sequence[CaseResult], columns: Verdicts, scales: Scales
) -> Statistics:
    judged = [result for result in results if result.outcome in JUDGED]
    verdicts = columns.where(columns.is_judged)
    figures = {
        "accuracy": estimate_share(verdicts.is_right, verdicts.clusters),
        "flicker": estimate_flicker(map(repeated_case, judged)),
    }
    matrices: dict[Mode, ConfusionMatrix] = {}
    if not columns.is_ordinal.all():
        binary = verdicts.where(~verdicts.is_ordinal)
        matrices["binary"] = _matrix(binary, (0, 1))
        figures |= _binary_figures(binary, matrices["binary"])
    if columns.is_ordinal.any():
        used = set()
        for result in judged:
            if result.spec.target_score is not None:
                used.add(tuple(scales.get((result.spec.suite, result.spec.rubric_id), ())))
        ordinal = verdicts.where(verdicts.is_ordinal)
        matrices["ordinal"] = _matrix(ordinal, set().union(*used))
        figures |= _ordinal_figures(ordinal, matrices["ordinal"], one_scale=len(used) <= 1)
    return Statistics(*names, Counts.of(results), figures, matrices, judged, verdicts)


def _matrix(judged: Verdicts, labels: Iterable[int]) -> ConfusionMatrix:
    """Labels and answers but for the ties of an ordinal judge."""
    known = judged.with_answer
    pairs = zip(known.labels.astype(int).tolist(), known.answers.astype(int).tolist(), strict=True)
    return confusion_matrix(pairs, labels)


def _binary_figures(judged: Verdicts, matrix: ConfusionMatrix) -> dict[str, Estimate]:
    """The figures of a binary judge, by their keys.

    `recall` is the share of the violations that were found, `false_positive_rate` the share of the
    satisfied cases that were judged violated, each of the tests that count in it.
    """
    import numpy as np

    is_violation = np.isin(judged.tests, (PERTURBATION, NATURAL)) & (judged.labels == 1)
    is_satisfied = np.isin(judged.tests, (POSITIVES, NATURAL)) & (judged.labels == 0)
    violated, satisfied = judged.where(is_violation), judged.where(is_satisfied)
    return {
        "recall": estimate_share(
            violated.is_right, violated.clusters, missing="no perturbation was judged"
        ),
        "false_positive_rate": estimate_share(
            ~satisfied.is_right, satisfied.clusters, missing="no positive was judged"
        ),
        "balanced_accuracy": _of_two_labels(
            matrix,
            Estimate(
                balanced_accuracy(matrix), n=matrix.n, why=SEE_RECALL if matrix.n else NO_VERDICT
            ),
        ),
        "kappa": _of_two_labels(matrix, _kappa(judged)),
    }


def _ordinal_figures(
    judged: Verdicts, matrix: ConfusionMatrix, *, one_scale: bool
) -> dict[str, Estimate]:
    """The figures of a judge that scores, by their keys; errors are in levels of the scale."""
    known, farthest = judged.with_answer, _farthest(matrix.labels)
    # A tie is not near: it has no score.
    near = abs(judged.answers - judged.labels) <= 1
    kappa = Estimate(n=matrix.n, why="the rubrics have different scales")
    if one_scale:
        kappa = _kappa(known)
    return {
        "exact": estimate_share(judged.is_right, judged.clusters),
        "within_one": estimate_share(near, judged.clusters),
        "mean_absolute_error": estimate_mean(
            abs(known.answers - known.labels), known.clusters, (0.0, farthest)
        ),
        "bias": _bias(known, farthest),
        "weighted_kappa": _of_two_labels(matrix, kappa),
    }


def _farthest(scale: Sequence[int]) -> float:
    """The largest error that there can be, from the lowest score to the highest."""
    return float(max(1, scale[-1] - scale[0])) if scale else 1.0


def _bias(known: Verdicts, farthest: float) -> Estimate:
    return estimate_bias(known.labels, known.answers, known.clusters, farthest)


def _kappa(known: Verdicts, level: float = LEVEL) -> Estimate:
    return estimate_kappa(known.labels, known.answers, known.clusters, level)


def kappa_of(statistics: Statistics, level: float) -> Estimate:
    """Agreement beyond chance of the cases of the shown mode, with an interval at another level."""
    verdicts, mode = statistics.verdicts, statistics.mode
    of_mode = verdicts.where(verdicts.is_ordinal == (mode == "ordinal"))
    return _of_two_labels(statistics.matrices[mode], _kappa(of_mode.with_answer, level))


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

"""Figures of the judges, with their intervals: per judge and rubric, and over all; and of several
judges on the same cases, how they agree, and their majority vote.

Only agree and disagree count. A figure that cannot be computed is an `Estimate` that says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import combinations
from operator import attrgetter
from statistics import fmean

import numpy as np

from pytest_jrh.core import frozen, grouped_by
from pytest_jrh.core.cases import majority
from pytest_jrh.core.scales import BINARY, NOT_APPLICABLE, CaseClass, Scale, off
from pytest_jrh.stats.classes import (
    FALSE_ALARMS,
    PASSED_OVER,
    ConfusionMatrix,
    class_shares,
    confusion_matrix,
    estimate_macro_f1,
    joined,
    recall_key,
)
from pytest_jrh.stats.intervals import (
    LEVEL,
    NO_VERDICT,
    Estimate,
    estimate_bias,
    estimate_flicker,
    estimate_kappa,
    estimate_mean,
    estimate_share,
    where_varied,
)
from pytest_jrh.stats.verdicts import Bools, Coded, Floats, Ints, Verdicts, distinct
from pytest_jrh.stats.weights import weighted

_SEE_RECALL = "see the intervals of recall and false-positive rate"
_OTHER_CLASSES = "the rubrics have different classes"


def share_of(verdicts: Verdicts, counts: Bools, level: float = LEVEL) -> Estimate:
    """The share of the verdicts that count."""
    return estimate_share(counts, verdicts.cluster, level)


def accuracy_of(judged: Verdicts) -> Estimate:
    """The share of verdicts that are right."""
    return share_of(judged, judged.right)


def kappa_of(judged: Verdicts, level: float = LEVEL) -> Estimate:
    """Agreement beyond chance of the cases that have both, a label and an answer."""
    known, pairs = judged.answered
    return estimate_kappa(pairs, known.cluster, level, is_ordered=known.is_ordered)


def flicker_of(judged: Verdicts, answers: str = "answers") -> Estimate:
    """How often the judge contradicts itself in a column of answers."""
    return estimate_flicker(judged.kinds(answers, "scale"), judged.cluster)


@frozen
class Counts:
    """How many results came to what; `n` is the number of verdicts, agree plus disagree.

    `ties` counts the disagreements without a score.
    """

    agree: int = 0
    disagree: int = 0
    no_case: int = 0
    unscored: int = 0
    ties: int = 0

    @classmethod
    def of(cls, verdicts: Verdicts) -> Counts:
        """The counts of these verdicts."""
        return cls(
            agree=int(verdicts.right.sum()),
            disagree=int(verdicts.wrong.sum()),
            no_case=int(verdicts.outcome.equals("no_case").sum()),
            unscored=int(verdicts.unscored.sum()),
            ties=int((verdicts.has_verdict & verdicts.score.equals(None)).sum()),
        )

    @property
    def n(self) -> int:
        """The number of verdicts."""
        return self.agree + self.disagree


@frozen
class Statistics:
    """Every figure of one set of results, of one `rubric`; empty stands for all.

    `figures` are by their keys in the JSON report: `accuracy` and `flicker`, and those of the
    `scales` of which the set has cases. `matrices` are by the names of these scales, too. A tie of
    repeats is wrong in every share; what needs its distance from the label leaves it out. `judged`
    are the verdicts that the figures are of.
    """

    rubric: str
    counts: Counts
    figures: Mapping[str, Estimate]
    scales: Mapping[str, Scale]
    matrices: Mapping[str, ConfusionMatrix]
    judged: Verdicts = field(repr=False)

    @property
    def accuracy(self) -> Estimate:
        """The share of verdicts that are right."""
        return self.figures["accuracy"]

    @property
    def scale(self) -> Scale:
        """The one that reports show."""
        return max(self.scales.values(), key=attrgetter("is_ordered"), default=BINARY)

    @property
    def flicker(self) -> Estimate:
        """How often the judge contradicts itself."""
        return self.figures["flicker"]

    @property
    def matrix(self) -> ConfusionMatrix | None:
        """That of the scale that is shown."""
        return self.matrices.get(self.scale.name)

    def mistakes(self, of_class: CaseClass) -> Estimate:
        """The share of wrong verdicts on a class."""
        figure = self.figures[recall_key(of_class)]
        is_of_wrong = of_class.figure == FALSE_ALARMS
        return figure if is_of_wrong else figure.complement()

    @property
    def of_classes(self) -> Mapping[str, Estimate]:
        """The figures of single classes of the scale that is shown, of which no column tells."""
        keys = [recall_key(of) for of in self.scale.classes if not of.figure]
        if NOT_APPLICABLE in self.scale.words:
            keys.append(PASSED_OVER)
        return {key: self.figures[key] for key in keys if key in self.figures}

    @property
    def kappa(self) -> tuple[str, Estimate]:
        """Agreement beyond chance, behind its name."""
        name = "kappa"
        if self.scale.is_ordered:
            name = "weighted kappa"
        return name, self.figures[name.replace(" ", "_")]

    @property
    def name(self) -> str:
        """What stands before its figures in a table."""
        return self.rubric or "all"


def statistics_of(verdicts: Verdicts) -> Statistics:
    """Every figure of these verdicts, which are of no probe.

    A matrix shows every score that is on offer under their rubrics, where these are known.
    """
    judged = verdicts.judged
    figures = {"accuracy": accuracy_of(judged), "flicker": flicker_of(judged)}
    matrices: dict[str, ConfusionMatrix] = {}
    # Of scales with one name the one with the most answers has those of all.
    in_order = sorted(verdicts.scale.present(), key=lambda scale: len(scale.classes))
    scales = {name: joined(scales) for name, scales in grouped_by(in_order, "name").items()}
    for name, scale in scales.items():
        of_scale = judged.where(judged.scale.each(attrgetter("name"), object) == name)
        levels = {used.scores for used in of_scale.scale.present()}
        _, pairs = of_scale.paired
        matrices[name] = confusion_matrix(pairs, {*scale.scores}.union(*levels), scale)
        figures_of = _level_figures if scale.is_ordered else _class_figures
        figures |= figures_of(scale, of_scale, matrices[name], one_scale=len(levels) <= 1)
        figures |= class_shares(scale, judged)
    if sum(not scale.is_ordered for scale in scales.values()) > 1:
        figures["kappa"] = Estimate(n=len(judged), why=_OTHER_CLASSES)
    return Statistics(
        rubric="",
        counts=Counts.of(verdicts),
        figures=weighted(judged, figures),
        scales=scales,
        matrices=matrices,
        judged=judged,
    )


def _class_figures(
    scale: Scale, judged: Verdicts, matrix: ConfusionMatrix, *, one_scale: bool
) -> dict[str, Estimate]:
    """The figures of a judge whose answers have no order, by their keys."""
    # The mean of the recalls of the labels that occur (Brodersen et al. 2010, ICPR, pp. 3121-3124).
    recalls = [row[index] / sum(row) for index, row in enumerate(matrix.counts) if any(row)]
    balanced = Estimate(why=NO_VERDICT)
    if recalls:
        balanced = Estimate(fmean(recalls), n=matrix.n, why=_SEE_RECALL)
    kappa = macro_f1 = Estimate(n=matrix.n, why=_OTHER_CLASSES)
    if one_scale:
        known, pairs = judged.answered
        kappa = _of_two_labels(matrix, kappa_of(judged), scale)
        macro_f1 = _of_two_labels(matrix, estimate_macro_f1(pairs, known.cluster), scale)
    return {
        "balanced_accuracy": _of_two_labels(matrix, balanced, scale),
        "kappa": kappa,
        "macro_f1": macro_f1,
    }


def _level_figures(
    scale: Scale, judged: Verdicts, matrix: ConfusionMatrix, *, one_scale: bool
) -> dict[str, Estimate]:
    """The figures of a judge whose answers are levels, by their keys; errors are in levels, of the
    verdicts that are known: a tie has no score.
    """
    known, pairs = judged.answered
    errors = pairs[:, 1] - pairs[:, 0]
    distances = np.abs(errors)
    # The largest error that there can be, from the lowest score to the highest.
    levels = [score for score in matrix.labels if score != NOT_APPLICABLE]
    farthest = float(max(1, levels[-1] - levels[0])) if levels else 1.0
    is_exact = judged.kinds("score", "label").each(
        lambda kind: kind[0] is not None and not off(*kind)
    )
    is_near = is_exact | np.isin(judged.row, known.row[distances <= 1])
    kappa = Estimate(n=matrix.n, why="the rubrics have different scales")
    if one_scale:
        kappa = kappa_of(judged)
    return {
        "exact": share_of(judged, is_exact),
        "within_one": share_of(judged, is_near),
        "mean_absolute_error": estimate_mean(distances, known.cluster, (0.0, farthest)),
        "bias": estimate_bias(errors, known.cluster, farthest),
        "weighted_kappa": _of_two_labels(matrix, kappa, scale),
    }


def _of_two_labels(matrix: ConfusionMatrix, figure: Estimate, scale: Scale) -> Estimate:
    """Replaces kappa by a reason where all labels are the same: it would be 0 for every judge."""
    if len(matrix.given_labels) == 1:
        label = scale.said(matrix.given_labels[0])
        return Estimate(n=matrix.n, why=f"one class only: every label is {label}")
    return figure


@frozen
class JudgePair:
    """How two judges of a panel, or a judge and a person, or two people agree on the cases that
    both gave a score, whatever the label; `kappa` is Cohen's, quadratically weighted of levels.
    """

    judges: tuple[str, str]
    agreement: Estimate
    kappa: Estimate


def judge_pairs(
    names: Sequence[str], scores: Floats, clusters: Ints, *, is_ordered: bool, judges: int = 0
) -> tuple[JudgePair, ...]:
    """How those agree, two by two, whose scores are the columns, nan where they gave none; the
    first `judges` are not held against each other.
    """
    pairs = []
    for one, other in combinations(range(len(names)), 2):
        of_two = scores[:, [one, other]]
        of_both = ~np.isnan(of_two).any(axis=1)
        if other < judges:
            continue
        pair = of_two[of_both]
        same = pair[:, 0] == pair[:, 1]
        agreement = kappa = estimate_share(
            same, clusters[of_both], missing="no case has a verdict of both"
        )
        if len(pair):
            # Where one says n/a, which is no level, answers are equal or not.
            has_order = is_ordered and not np.any(pair == NOT_APPLICABLE)
            kappa = estimate_kappa(pair, clusters[of_both], is_ordered=has_order)
            most = [np.unique(column, return_counts=True)[1].max() for column in pair.T]
            kappa = where_varied(kappa, len(pair) - max(most))
        pairs.append(JudgePair((names[one], names[other]), agreement, kappa))
    return tuple(pairs)


@frozen
class Panel:
    """The judges of one suite taken together.

    `accuracy` is the majority's over all cases that each judge was asked about, with a verdict of
    any: where there is no majority the panel is not right. `without_majority` gives for such a
    case, by its id without a judge, what each of them gave.
    """

    suite: str
    judges: tuple[str, ...]
    pairs: tuple[JudgePair, ...]
    without_majority: Mapping[str, str]
    accuracy: Estimate


def panels(verdicts: Verdicts) -> list[Panel]:
    """Compare the judges of each suite that has several, in the order in which they appear.

    Cases of probes are no part of it.
    """
    compared: list[Panel] = []
    if any(verdicts.weight.names):
        # How judges agree on labelled cases alone says nothing of all.
        return compared
    for suite, of_suite in verdicts.where(~verdicts.derived).grouped("suite").items():
        voting = of_suite.judged
        judges = tuple(voting.judge.present())
        if len(judges) > 1 and (panel := _panel(suite, judges, of_suite, voting)) is not None:
            compared.append(panel)
    return compared


def _panel(suite: str, judges: Sequence[str], verdicts: Verdicts, voting: Verdicts) -> Panel | None:
    """How these judges agree; None where no case was given to all of them."""
    asked = verdicts.where(verdicts.judge.each(judges.__contains__))
    _, first = distinct(asked.made.codes, asked.judge.codes)
    was_given_to_all = np.bincount(asked.made.codes[first]) == len(judges)
    voting = voting.where(np.isin(voting.made.codes, np.flatnonzero(was_given_to_all)))
    case_of_row, first = distinct(voting.made.codes)
    if not len(first):
        return None
    cases = voting.where(first)
    scores = np.full((len(first), len(judges)), None, object)
    places = {judge: place for place, judge in enumerate(judges)}
    # Judges of other suites have no place, and no row here.
    place_of_row = voting.judge.each(lambda judge: places.get(judge, -1), int)
    scores[case_of_row, place_of_row] = voting.score.values
    votes = Coded.of(map(tuple, scores.tolist()))
    # A judge without a verdict, or whose repeats tie, could undo a majority of the others.
    majorities = votes.each(majority, object)
    without_majority = {}
    for case in np.flatnonzero(majorities == None):  # noqa: E711 - for each case
        made_id = cases.made.names[cases.made.codes[case]]
        scores_of_case = []
        for judge, score in zip(judges, votes.names[votes.codes[case]], strict=True):
            said = "none" if score is None else cases.scale.values[case].said(score)
            scores_of_case.append(f"{judge}: {said}")
        without_majority[made_id] = ", ".join(scores_of_case)
    numbers = scores.astype(float)
    pairs = judge_pairs(judges, numbers, cases.cluster, is_ordered=cases.is_ordered)
    accuracy = share_of(cases, majorities == np.array(cases.label.values))
    return Panel(suite, tuple(judges), pairs, without_majority, accuracy)

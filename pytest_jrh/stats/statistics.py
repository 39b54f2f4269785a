"""Figures of the judges, with their intervals: per judge and rubric, and over all; and of several
judges on the same cases, how they agree, and their majority vote.

Only agree and disagree count. A figure that cannot be computed is an `Estimate` that says why.

Then those of answers without an order, of which there may be more than two, and n/a beside levels:
the figures of each class, what a judge calls its cases instead, and n/a as an answer of its own.

At the end figures of labels that stand for several cases each, as those that were drawn evenly from
what a judge said, where a random sample would hold few of the rare ones. Their intervals are those
of a Bayesian bootstrap (Rubin 1981, Ann Stat 9:130-134), drawn in each stratum by itself (Aitkin
2008, Surv Res Methods 2:49-56), in which cases of one cluster have one weight. Half a case with a
right verdict, and half a case with a wrong one, are added to each stratum, as in the prior of
Jeffreys: what was not seen of few labels may be there. How many cases a stratum has is known of the
table, and varies as it does in one of so many cases (double sampling, Cochran 1977, Sampling
Techniques, 12.2).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations
from operator import attrgetter
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from pytest_jrh.core import counted, frozen, grouped_by, one_line, out_of
from pytest_jrh.core.cases import majority
from pytest_jrh.core.scales import (
    BINARY,
    NO_SUCH,
    NOT_APPLICABLE,
    CaseClass,
    Scale,
    as_level,
    classed,
    code_of,
    most_frequent,
    off,
)
from pytest_jrh.stats.intervals import (
    LEVEL,
    NO_VERDICT,
    Clusters,
    Estimate,
    Pairs,
    estimate,
    estimate_bias,
    estimate_flicker,
    estimate_kappa,
    estimate_mean,
    estimate_share,
    kappa_of_sums,
    other_pairs,
    products,
    where_varied,
)
from pytest_jrh.stats.verdicts import Bools, Coded, Floats, Ints, Verdicts, answer_of, distinct

_SEE_RECALL = "recall and false-positive rate have intervals of their own"
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
        return Estimate(n=matrix.n, why=f"every label is {label}")
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
) -> Sequence[JudgePair]:
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
            same, clusters[of_both], missing="no case has verdicts of both"
        )
        if len(pair):
            # Where one says n/a, which is no level, answers are equal or not.
            has_order = is_ordered and not np.any(pair == NOT_APPLICABLE)
            kappa = estimate_kappa(pair, clusters[of_both], is_ordered=has_order)
            most = [np.unique(column, return_counts=True)[1].max() for column in pair.T]
            kappa = where_varied(kappa, len(pair) - max(most))
        pairs.append(JudgePair((names[one], names[other]), agreement, kappa))
    return pairs


@frozen
class Panel:
    """The judges of one suite taken together.

    `accuracy` is the majority's over all cases that each judge was asked about, with a verdict of
    any: where there is no majority the panel is not right. `without_majority` gives for such a
    case, by its id without a judge, what each of them gave.
    """

    suite: str
    judges: Sequence[str]
    pairs: Sequence[JudgePair]
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
        judges = voting.judge.present()
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
    return Panel(suite, judges, pairs, without_majority, accuracy)


FALSE_ALARMS = "false_positive_rate"
PASSED_OVER = "called_not_applicable"
"""The figure of satisfied cases that are called n/a."""
# Of fewer cases it says nothing what most of them are called.
_FEWEST = 4
FEWEST_LABELS = 10
"""Of fewer labels of a class, an interval covers too little."""
RECALL_OF = "recall of "
_MOST_ANSWERS = 3


def recall_key(of_class: CaseClass) -> str:
    """The key of a class's own figure."""
    return of_class.figure or f"{RECALL_OF}{of_class.word}"


def joined(scales: Sequence[Scale]) -> Scale:
    """One scale with the answers of several of one kind, without their levels."""
    *others, last = scales
    classes = {of.answer: of for of in last.classes}
    for scale in others:
        for of_class in scale.classes:
            classes.setdefault(of_class.answer, of_class)
    in_order = sorted(classes.values(), key=lambda of_class: of_class.answer == NOT_APPLICABLE)
    return replace(last.kind, classes=tuple(in_order))


def false_alarms(verdicts: Verdicts) -> Bools:
    """Which wrong verdicts on satisfied cases are false alarms: those that are not n/a."""
    return verdicts.wrong & ~verdicts.score.equals(NOT_APPLICABLE)


def class_shares(scale: Scale, judged: Verdicts) -> dict[str, Estimate]:
    """Of each class how many of its cases the judge finds, of satisfied ones in how many it raises
    a false alarm, and beside n/a also how many it calls that.
    """
    figures = {}
    keys = judged.case_class.each(lambda of: of is not None and recall_key(of), object)
    for of_class in scale.classes:
        if of_class.answer is None:
            continue
        key = recall_key(of_class)
        cases = judged.where(keys == key)
        missing = f"no {of_class.noun or f'{of_class.word} case'} was judged"
        counts = cases.right
        if key == FALSE_ALARMS:
            counts = false_alarms(cases)
            if NOT_APPLICABLE in scale.words:
                is_called_so = cases.score.equals(NOT_APPLICABLE)
                figures[PASSED_OVER] = estimate_share(is_called_so, cases.cluster, missing=missing)
        figures[key] = estimate_share(counts, cases.cluster, missing=missing)
    return figures


def estimate_macro_f1(pairs: Pairs, clusters: Clusters) -> Estimate:
    """The mean of F1 over the classes that occur as label or answer, each the harmonic mean of the
    share of its cases that are found and the share of its answers that are right (Opitz and Burst
    2019, arXiv:1911.03347, the first of their two).
    """
    known = np.asarray(pairs, float).reshape(-1, 2)
    if not len(known):
        return Estimate(why=NO_VERDICT)
    classes = np.unique(known)

    def rows(pairs: Any) -> Any:
        labels, answers = pairs[:, :1] == classes, pairs[:, 1:] == classes
        return np.hstack([labels & answers, labels.astype(int) + answers]).astype(float)

    def figure(sums: Sequence[Any]) -> Any:
        hits, both = sums[: len(classes)], sums[len(classes) :]
        return sum(2 * hit / of for hit, of in zip(hits, both, strict=True)) / len(classes)

    f1 = estimate(rows(known), clusters, figure, rows(other_pairs(known, classes)))
    # By simulation with rarer classes the interval covers as few as half of the true figures.
    if min((known[:, :1] == classes).sum(axis=0)) < FEWEST_LABELS:
        return replace(
            f1, lower=None, upper=None, why=f"a class has fewer than {FEWEST_LABELS} labels"
        )
    return f1


@frozen
class ConfusionMatrix:
    """How often each answer met each label: `counts[i][j]` cases with label i were given answer j.

    `labels` are the scores in the order of the scale, of rows and columns alike.
    """

    labels: Sequence[int]
    counts: Sequence[Sequence[int]]

    @property
    def n(self) -> int:
        """All verdicts."""
        return sum(map(sum, self.counts))

    @property
    def given_labels(self) -> list[int]:
        """The labels that cases have."""
        return [label for label, row in zip(self.labels, self.counts, strict=True) if any(row)]

    @property
    def given_answers(self) -> list[int]:
        """The answers that were given."""
        columns = zip(*self.counts, strict=True)
        return [answer for answer, column in zip(self.labels, columns, strict=True) if any(column)]


def confusion_matrix(pairs: Pairs, labels: Iterable[int], scale: Scale = BINARY) -> ConfusionMatrix:
    """Count pairs of label and answer; `labels` are shown also where no pair has them."""
    values, numbers = np.unique(np.reshape(pairs, (-1, 2)), axis=0, return_counts=True)
    words = [answer for answer in scale.answers if scale.said(answer) != answer]
    shown = [*sorted({*labels, *map(as_level, values.ravel().tolist())} - {*words}), *words]
    counts = np.zeros((len(shown), len(shown)), np.int64)
    for (label, answer), number in zip(values.tolist(), numbers, strict=True):
        counts[shown.index(label), shown.index(answer)] = number
    return ConfusionMatrix(shown, counts.tolist())


def confusions(matrix: ConfusionMatrix, scale: Scale) -> Iterator[str]:
    """Which classes a judge never names, and which it calls another one in most of their cases; of
    levels this is said of n/a alone.
    """
    if scale.has_two or len(matrix.given_answers) <= 1:
        return
    for label, counts in zip(matrix.labels, matrix.counts, strict=True):
        by_answer = dict(zip(matrix.labels, counts, strict=True))
        by_answer.pop(label)
        other = max(by_answer, key=by_answer.__getitem__)
        n, most = sum(counts), by_answer[other]
        is_shown = not scale.is_ordered or NOT_APPLICABLE in (label, other)
        if n < _FEWEST or not is_shown:
            continue
        word, called = one_line(scale.word(label)), one_line(scale.word(other))
        is_most = 2 * most > n
        if label not in matrix.given_answers:
            calls = f'; it calls {most:,} of these "{called}"' if is_most else ""
            yield f'The judge never says "{word}", which is right in {counted(n, "case")}{calls}.'
        elif is_most:
            cases = counted(n, f'"{word}" case')
            if scale.is_ordered and label != NOT_APPLICABLE:
                cases = f"{counted(n, 'case')} of level {word}"
            yield f'The judge calls {most:,} of {cases} "{called}".'


def called(wrong: Verdicts) -> Mapping[str, int]:
    """What wrong verdicts are instead, the most frequent first, where there are several answers
    that are wrong.
    """
    answers = Counter[str]()
    kinds = wrong.kinds("scale", "score")
    for (scale, score), number in zip(kinds.names, np.bincount(kinds.codes), strict=True):
        if not scale.has_two and not scale.is_ordered:
            word = "a tie" if score is None else one_line(scale.word(score))
            answers[word] += int(number)
    return dict(answers.most_common())


def mistakes_text(
    of_class: CaseClass, cases: int, answers: Mapping[str, int], text: str, which: str = ""
) -> str:
    """A clause about wrong verdicts on a class with what these are instead: satisfied cases that
    are called n/a are no false alarms.
    """
    if not answers:
        return text
    wrong = sum(answers.values())
    if of_class.figure == FALSE_ALARMS and NO_SUCH in answers:
        text = f"is wrong on {out_of(wrong, cases, f'{of_class.word} case')} {which}".rstrip()
    if len(answers) == 1:
        [word] = answers
        return f"{text} (judged {word})"
    parts = [f"{number:,} as {word}" for word, number in answers.items()]
    return f"{text} (judged {', '.join(parts[:_MOST_ANSWERS])})"


_LEVEL = "level"
_APPLIES = classed(((_LEVEL, ""), (NO_SUCH, "")))
"""Whether a level is right or n/a."""
GIVEN_NO_LEVEL = replace(
    _APPLIES.classes[0],
    newly_wrong=lambda wrong, cases: (
        f"says n/a to {out_of(wrong, cases, 'case')} to which it gave a level before"
    ),
    loss="more n/a instead of a level",
    noun="case",
)
_APPLIES = replace(_APPLIES, classes=(GIVEN_NO_LEVEL, _APPLIES.classes[1]))


def apart(compared: Verdicts) -> Verdicts:
    """The verdicts, with those twice for which levels and n/a are on offer: whether n/a is right or
    not is an answer without an order, and is in no mean of levels.
    """
    has_both = compared.scale.each(lambda scale: scale.is_ordered and _offers_none(scale))
    if not has_both.any():
        return compared
    kinds = compared.kinds("label", "before", "answers")
    has_levels = ~has_both | kinds.each(lambda kind: all(map(_levels, ((kind[0],), *kind[1:]))))
    rows = [np.flatnonzero(has_levels), np.flatnonzero(has_both)]
    twice = compared.where(np.concatenate(rows))
    is_second = np.repeat([0, 1], [len(part) for part in rows])
    names = "scale", "label", "score", "before", "answers"
    kinds = twice.kinds(*names)
    codes, first = distinct(kinds.codes, is_second)
    columns: list[tuple[Any, ...]] = []
    for number in first:
        scale, label, score, before, answers = kinds.names[kinds.codes[number]]
        if is_second[number]:
            label = _applies([label])[0]
            before, answers = _applies(before), _applies(answers)
            scale, score = _APPLIES, most_frequent(answers)
        elif scale.is_ordered and _offers_none(scale):
            scale = replace(scale, classes=scale.classes[:1])
            before, answers = _levels(before), _levels(answers)
        columns.append((scale, label, score, before, answers))
    changed: dict[str, Any] = {}
    for name, values in zip(names, zip(*columns, strict=True), strict=True):
        changed[name] = Coded(values, codes)
    return replace(twice, **changed)


def _offers_none(scale: Scale) -> bool:
    return any(of_class.answer == NOT_APPLICABLE for of_class in scale.classes)


def _levels(scores: Sequence[int]) -> tuple[int, ...]:
    return tuple(score for score in scores if score != NOT_APPLICABLE)


def _applies(scores: Sequence[int]) -> tuple[int, ...]:
    level = code_of(_LEVEL)
    return tuple(score if score == NOT_APPLICABLE else level for score in scores)


_DRAWS = 2_000
_UNSEEN = 0.5
_SEED = 8234
# The correlation that is taken inside of the clusters of the table.
_ALIKE = 0.3

_Cell = tuple[Scale, Any, int | None]
"""A scale, a label on it, and an answer."""


class Stratum(NamedTuple):
    """Labels that were drawn alike: how many cases each of these stands for, how many there are,
    and what share of independent cases they are of those that they stand for.
    """

    name: str
    weight: float
    labels: int
    share: float


def strata(weights: Iterable[tuple[str, float]], clusters: Ints) -> list[Stratum | None]:
    """The strata of cases with these names and weights, 0 for those without a label."""
    known = Coded.of(weights)
    sizes = np.bincount(np.unique(clusters, return_inverse=True)[1]).astype(float)
    alike = 1 + _ALIKE * ((sizes @ sizes) / sizes.sum() - 1)
    of_names: list[Stratum | None] = []
    for (name, weight), number in zip(known.names, np.bincount(known.codes).tolist(), strict=True):
        stratum = Stratum(name, weight, number, min(1.0, alike / max(weight, 1.0)))
        of_names.append(stratum if weight else None)
    return Coded(of_names, known.codes).values


def weighted(
    judged: Verdicts, figures: Mapping[str, Estimate], unseen: float = _UNSEEN
) -> dict[str, Estimate]:
    """The figures of these verdicts by the weights of their labels; as they are without any. So
    many `unseen` cases of either kind are added to each stratum.
    """
    of_figures = {**figures}
    labelled = judged.where(~judged.weight.equals(None))
    if len(labelled):
        cells, masses = _masses(labelled, unseen)
        numbers = Counter(recall_key(of) for of in labelled.case_class.values if of is not None)
        for key, figure in figures.items():
            if figure.value is None or key == "flicker":
                continue
            estimate = _estimate(key, cells, masses, len(labelled))
            if key.startswith(RECALL_OF) and numbers[key] < FEWEST_LABELS:
                estimate = replace(
                    estimate,
                    lower=None,
                    upper=None,
                    why=f"the class has fewer than {FEWEST_LABELS} labels",
                )
            of_figures[key] = estimate
    return of_figures


def _masses(labelled: Verdicts, unseen: float) -> tuple[list[_Cell], Floats]:
    """The verdicts that there are, or may be, and of how many cases: by the labels in the first
    row, then draw by draw.
    """
    rng = np.random.default_rng(_SEED)
    _, clusters = np.unique(labelled.cluster, return_inverse=True)
    of_clusters = rng.standard_exponential((_DRAWS, clusters.max() + 1))
    masses: dict[_Cell, Floats] = {}
    for (stratum,), rows in labelled.places("weight").items():
        kinds = labelled.where(rows).kinds("scale", "label", "score")
        drawn: dict[_Cell, Floats] = dict.fromkeys(kinds.names, np.zeros(1 + _DRAWS))
        for number, cell in enumerate(kinds.names):
            of_kind = rows[kinds.codes == number]
            draws = of_clusters[:, clusters[of_kind]].sum(axis=1)
            drawn[cell] = drawn[cell] + [len(of_kind), *draws]
            for labels in _labels(cell):
                part = unseen * len(of_kind) / (len(rows) * len(labels))
                for label in labels:
                    other, more = (cell[0], label, cell[2]), rng.gamma(part, size=_DRAWS)
                    drawn[other] = drawn.get(other, 0) + np.array([0, *more])
        # Labels of other rubrics are of the stratum, too.
        total = sum(drawn.values()) + rng.gamma(stratum.labels - len(rows), size=1 + _DRAWS)
        expected = stratum.labels + 2 * unseen
        factor = (total / expected) ** (math.sqrt(stratum.share) - 1) * stratum.labels / expected
        factor[0] = 1
        for cell, of_cell in drawn.items():
            masses[cell] = masses.get(cell, 0) + of_cell * factor * stratum.weight
    return [*masses], np.column_stack([*masses.values()])


def _labels(cell: _Cell) -> tuple[list[int | None], list[int | None]]:
    """The labels by which a verdict is right, and those by which it is wrong, on levels by one."""
    scale, label, score = cell
    others = [other for other in scale.answers if other != score]
    if scale.is_ordered and score is not None:
        others = [other for other in others if abs(other - score) == 1]
    return [score if score in scale.answers else label], [*others] or [label]


def _estimate(key: str, cells: Sequence[_Cell], masses: Floats, labels: int) -> Estimate:
    """A figure with its interval."""
    if key.endswith("kappa"):
        answers = [_answer(*cell) for cell in cells]
        is_known = np.array([answer is not None for answer in answers])
        pairs = np.array([(cell[1], answer) for cell, answer in zip(cells, answers, strict=True)])
        known = pairs[is_known].astype(float)
        classes = None if cells[0][0].is_ordered else np.unique(known)
        sums = masses[:, is_known] @ products(known, classes)
        values = np.array([*map(kappa_of_sums, sums.tolist())])
    else:
        sums = masses @ np.array([_terms(key, *cell) for cell in cells], float)
        if not sums[0, 1]:
            return Estimate(n=labels, why="the labels are not weighted")
        values = sums[:, 0] / sums[:, 1]
    value = float(values[0])
    lower, upper = np.nanquantile(values[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Estimate(value, min(lower, value), max(upper, value), n=labels)


def _terms(key: str, scale: Scale, label: Any, score: int | None) -> tuple[float, float]:
    """What a verdict adds to a figure, a ratio of two sums."""
    is_right, answer = scale.accepts(score, label), _answer(scale, label, score)
    error = None if answer is None else answer - label
    if key == "violated":
        return label == 1, 1
    if key == "accuracy":
        return is_right, 1
    if key in ("exact", "within_one"):
        is_exact = score is not None and not off(score, label)
        return is_exact or (key == "within_one" and error is not None and abs(error) <= 1), 1
    if key in ("mean_absolute_error", "bias"):
        return abs(error or 0) if key != "bias" else error or 0, error is not None
    of_class = scale.class_of(label)
    if of_class is None or recall_key(of_class) != key:
        return 0, 0
    if key == FALSE_ALARMS:
        is_right = not is_right and score != NOT_APPLICABLE
    return is_right, 1


def _answer(scale: Scale, label: Any, score: int | None) -> int | None:
    """The answer that counts; n/a beside levels is in no mean."""
    if scale.is_ordered and NOT_APPLICABLE in (label, score):
        return None
    return answer_of(scale, label, score)


def labels_for(figure: Estimate, points: float) -> int:
    """So many labels would make an interval so wide, by a rule of thumb."""
    width = (figure.upper or 0) - (figure.lower or 0)
    return math.ceil(figure.n * (width / points) ** 2)

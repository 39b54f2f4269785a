"""Answers without an order, of which there may be more than two, and n/a beside levels: the figures
of each class, what a judge calls its cases instead, and n/a as an answer of its own where the
others are levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_jrh.core import frozen
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
)
from pytest_jrh.core.text import counted, one_line, out_of
from pytest_jrh.stats.intervals import (
    NO_VERDICT,
    Clusters,
    Estimate,
    Pairs,
    estimate,
    estimate_share,
    other_pairs,
)
from pytest_jrh.stats.verdicts import Bools, Coded, Verdicts, distinct

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

    labels: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]

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
    return ConfusionMatrix(tuple(shown), tuple(map(tuple, counts.tolist())))


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
            calls = f": calls {most:,} of them {called}" if is_most else ""
            yield f"Never says {word}, which is right in {counted(n, 'case')}{calls}."
        elif is_most:
            cases = counted(n, f"{word} case")
            if scale.is_ordered and label != NOT_APPLICABLE:
                cases = f"{counted(n, 'case')} of level {word}"
            yield f"Calls {most:,} of {cases} {called}."


def called(wrong: Verdicts) -> Mapping[str, int]:
    """What wrong verdicts are instead, the most frequent first, where there are several answers
    that are wrong.
    """
    answers: Counter[str] = Counter()
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
        f"says n/a to {out_of(wrong, cases, 'case')} that it gave a level before"
    ),
    loss="more n/a where a level is right",
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

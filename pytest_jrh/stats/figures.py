"""The table of figures that every report shows: a section per judge, a row per rubric and all, and
what makes them doubtful.

Each figure is declared once, as a column; every report and the schema of the JSON report derive
from these. A new one is its computation in `Statistics` and one line here.

Then the figures of slices, which are the cases with one value of a field or a column; and what the
place of two answers does to a judge that says which is better: how often it takes the first one,
and whether it says the same of a pair in both orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np

from pytest_jrh.core import counted, frozen, listed, one_line
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import BINARY, PLACES, TIE, Mode, Scale, code_of, other_place
from pytest_jrh.stats.intervals import (
    SIGNIFICANCE,
    Estimate,
    binomial_tail,
    estimate_mean,
    estimate_share,
)
from pytest_jrh.stats.statistics import Statistics, accuracy_of, confusions, kappa_of, statistics_of
from pytest_jrh.stats.verdicts import Coded, Verdicts

FigureKind = Literal["count", "rate", "share", "number"]
NONE = "-"


@frozen
class Column:
    """One figure of a set of results, by its `key` in `Statistics.figures`.

    Of a `count` it is the number of verdicts. `title` heads it in tables; one without a title is in
    the JSON report alone. `meaning` explains it in a sentence or two. `scales` are the kinds of
    scales that have it; where there is none, all have it.
    """

    key: str
    kind: FigureKind
    title: str
    meaning: str
    scales: tuple[Mode, ...] = ()

    def is_shown(self, total: Statistics) -> bool:
        """Whether it is shown of a judge with these figures over all its cases: no figure of
        another scale, no flicker where no case was judged twice, no accuracy where that is `exact`.
        """
        if self.key == "accuracy":
            return total.figures.get("exact") != total.accuracy
        if self.key == "flicker":
            return total.flicker.n > 0
        return not self.scales or total.scale.name in self.scales


def value_text(estimate: Estimate, kind: FigureKind) -> str:
    """A figure as text: a share in percent, another figure in its own unit."""
    return decimal(estimate.value) if kind == "number" else percent(estimate.value)


def percent(value: float | None) -> str:
    """A share as a percentage; never 100.0% or 0.0% where it is not quite that."""
    if value is None:
        return NONE
    text = f"{value:.1%}"
    if text == "100.0%" and value < 1:
        return ">99.9%"
    return "<0.1%" if text == "0.0%" and value > 0 else text


def range_text(estimate: Estimate, kind: FigureKind = "share", digits: int = 1) -> str:
    """An interval as text: of a share in percent, of another figure in its own unit."""
    if estimate.lower is None or estimate.upper is None:
        return NONE
    if kind == "number":
        between = " to " if estimate.lower < 0 else "-"
        return f"{decimal(estimate.lower)}{between}{decimal(estimate.upper)}"
    # An end that is not quite 100 or 0 is not printed as if it were.
    least: float = 10 ** -(digits + 2)
    lower = min(estimate.lower, 1 - least) if estimate.lower < 1 else 1.0
    upper = max(estimate.upper, least) if estimate.upper > 0 else 0.0
    return f"{100 * lower:.{digits}f}-{100 * upper:.{digits}f}"


def right_text(judged: Verdicts) -> str:
    """The interval of accuracy, ` (60-100% right, from 5 clusters)`; empty where there is none."""
    right = range_text(accuracy_of(judged), digits=0)
    if right == NONE:
        return ""
    clusters = len({*judged.cluster.tolist()})
    of = f", from {counted(clusters, 'cluster')}" if clusters < len(judged) else ""
    return f" ({right}% right{of})"


def decimal(value: float | None) -> str:
    """A number as text."""
    # Rounding makes "-0.00" of what is a little below 0.
    return NONE if value is None else f"{round(value, 2) + 0.0:.2f}"


_LEVELS: tuple[Mode, ...] = ("ordinal",)
_TWO: tuple[Mode, ...] = (BINARY.name,)
_CLASSES: tuple[Mode, ...] = ("classes",)
COLUMNS = (
    Column("n", "count", "n", "How many cases have a verdict."),
    Column(
        "exact",
        "share",
        "exact",
        "The share of verdicts that give exactly the target score.",
        _LEVELS,
    ),
    Column(
        "accuracy",
        "rate",
        "accuracy",
        "The share of verdicts that are right: equal to the label, or near the label on a wide "
        "scale (`suite.within`).",
    ),
    Column("recall", "share", "recall", "The share of the violations that the judge found.", _TWO),
    Column(
        "false_positive_rate",
        "share",
        "false-positive rate",
        "The share of the satisfied cases that the judge called violations (`FPR` in the "
        "terminal).",
        _TWO,
    ),
    Column(
        "balanced_accuracy",
        "rate",
        "",
        "The mean of two shares: of the cases with each label, how many are judged right.",
        _TWO,
    ),
    Column(
        "kappa",
        "number",
        "kappa",
        "Cohen's kappa: agreement beyond what chance would give.",
        _TWO + _CLASSES,
    ),
    Column(
        "macro_f1",
        "rate",
        "macro F1",
        "The mean over classes of F1, the harmonic mean of recall and precision.",
        _CLASSES,
    ),
    Column(
        "within_one",
        "share",
        "within 1",
        "The share of verdicts that are at most one level off the target.",
        _LEVELS,
    ),
    Column(
        "mean_absolute_error",
        "number",
        "mean error",
        "The mean distance from the target, in levels of the scale.",
        _LEVELS,
    ),
    Column(
        "bias",
        "number",
        "bias",
        "The mean of score minus target, in levels of the scale: above 0, the judge scores too "
        "high.",
        _LEVELS,
    ),
    Column(
        "weighted_kappa",
        "number",
        "weighted kappa",
        "Kappa with quadratic weights: small errors count less than large ones.",
        _LEVELS,
    ),
    Column(
        "flicker",
        "rate",
        "flicker",
        "How often two verdicts of the judge on one case differ, if `repeats` asks the judge more "
        "than once",
    ),
)


ONE_BY_ONE = (
    "Each interval says where the figure for new cases under these rubrics probably is; about one "
    "interval in 20 is wrong."
)
"""What is said under a table with several rows."""


@frozen
class Section:
    """The figures of one judge of one suite: of each rubric, and of all."""

    suite: str
    judge: str
    rubrics: Sequence[Statistics]
    total: Statistics

    @property
    def rows(self) -> list[Statistics]:
        """The rows of its table: the rubrics, and where there are several the total."""
        return [*self.rubrics, self.total] if len(self.rubrics) > 1 else [*self.rubrics]

    @property
    def scale(self) -> Scale:
        """The scale whose figures are shown."""
        return self.total.scale

    @property
    def columns(self) -> list[Column]:
        """The columns of its table, in order."""
        return [column for column in COLUMNS if column.title and column.is_shown(self.total)]

    @property
    def label(self) -> str:
        """The judge's name, or its suite's where it has none."""
        return f"{self.suite}, judge {self.judge}" if self.judge else self.suite


def section_of(verdicts: Verdicts, suite: str, judge: str) -> Section:
    """The figures of a judge, of all its verdicts but those of probes."""
    shown = verdicts.where(~verdicts.derived)
    total = statistics_of(shown)
    by_rubric = shown.grouped("rubric")
    rubrics = []
    for rubric, of_rubric in by_rubric.items():
        # One rubric alone is all cases.
        statistics = total if len(by_rubric) == 1 else statistics_of(of_rubric)
        rubrics.append(replace(statistics, rubric=rubric))
    return Section(suite, judge, rubrics, total)


def sections(verdicts: Verdicts) -> list[Section]:
    """The figures by suite and judge; a judge without cases to judge has no section."""
    with_cases = []
    for (suite, judge), of_judge in verdicts.grouped("suite", "judge").items():
        section = section_of(of_judge, suite, judge)
        counts = section.total.counts
        if counts.n or counts.no_case or counts.unscored:
            with_cases.append(section)
    return with_cases


def flicker_sentence(statistics: Statistics) -> str:
    """In how many cases a judge contradicts itself; nothing where none was judged twice."""
    flicker = statistics.flicker
    if not flicker.n:
        return ""
    cases = f"{flicker.count:,} of {counted(flicker.n, 'repeated case')}"
    interval = "" if flicker.lower is None else f", 95% interval {range_text(flicker)}"
    return (
        f"The judge's scores differed in {cases}; two scores of a case differ in "
        f"{percent(flicker.value)} of comparisons (flicker{interval})."
    )


def tie_sentence(statistics: Statistics) -> str:
    """What becomes of the cases without a score; nothing where there is none."""
    ties, n = statistics.counts.ties, statistics.counts.n
    if not ties:
        return ""
    left_out = ""
    if statistics.scale.is_ordered:
        left_out = ", but not for mean error, bias and weighted kappa"
    elif not statistics.scale.has_two:
        left_out = ", but not for kappa and F1"
    return (
        f"Ties: in {ties:,} of {counted(n, 'case')} the repeats give no score most often. "
        f"These cases count as wrong{left_out}."
    )


# Of a judge that is right in 80% of the cases of either label.
_SOUND = 0.6
_FEWEST_VERDICTS = 4
# A single case has one label, whatever the suite.
_FEWEST_LABELS = 2
_MOST_NAMED = 5


def all_warnings(
    total: Statistics, rubrics: Sequence[Statistics], *, with_total: bool = True
) -> list[str]:
    """Warnings about one judge over all its cases, where these are asked for, and about single
    rubrics.

    What is true of all cases is not said of a rubric again.
    """
    of_total = [doubt(total), one_class(total)]
    lines = [text for text in of_total if text and with_total]
    if with_total and total.matrix is not None:
        lines += confusions(total.matrix, total.scale)
    if ties := tie_sentence(total):
        lines.append(ties)
    matrix = total.matrix
    is_constant = matrix is not None and len(matrix.given_answers) == 1
    if len(rubrics) < _FEWEST_LABELS or is_constant:
        return lines
    doubts = [doubt(rubric, len(rubrics)) for rubric in rubrics]
    if of_total[0] and all(doubts):
        doubts = [""] * len(rubrics)
    named: dict[str, list[str]] = {}
    for rubric, doubted in zip(rubrics, doubts, strict=True):
        for text in (doubted, one_class(rubric)):
            if text and text not in of_total:
                named.setdefault(text, []).append(one_line(rubric.rubric))
    for text, names in named.items():
        lines.append(f"{listed(names, _MOST_NAMED)}: {text[0].lower()}{text[1:]}")
    return lines


def doubt(statistics: Statistics, rubrics: int = 1) -> str:
    """Why verdicts are worth little: of a constant judge, and where even the upper end of kappa is
    below that of a judge that is right in 80% of either class; empty where they may be.

    Of one of several `rubrics` the level is adjusted, so that of sound judges 5% are doubted; so is
    a constant verdict on them, which a judge may give that is sound. Nothing is said of fewer than
    four verdicts, or where all labels are the same.
    """
    matrix = statistics.matrix
    if matrix is None or matrix.n < _FEWEST_VERDICTS or len(matrix.given_labels) < _FEWEST_LABELS:
        return ""
    name, kappa = statistics.kappa
    upper = kappa.upper
    if rubrics > 1 and upper is not None and upper < _SOUND:
        upper = kappa_of(statistics.judged, 1 - SIGNIFICANCE / rubrics).upper
    is_worthless = upper is not None and upper < _SOUND
    if len(matrix.given_answers) == 1 and (rubrics == 1 or is_worthless):
        [answer] = matrix.given_answers
        if answer == TIE and statistics.flicker.count == matrix.n:
            return (
                f"No verdict is the same in both orders, so all {matrix.n:,} cases count as ties."
            )
        verdict = statistics.scale.meant(answer)
        return f"The judge says {verdict} in all {matrix.n:,} cases."
    if not is_worthless:
        return ""
    interval = range_text(kappa, "number")
    text = f"{name} is {decimal(kappa.value)} ({interval}); guessing gives 0."
    return f"The verdicts are worth little: {text}"


def one_class(statistics: Statistics) -> str:
    """What is said where all labels are the same; nothing where they are not."""
    matrix = statistics.matrix
    if matrix is None or matrix.n < _FEWEST_LABELS or len(matrix.given_labels) > 1:
        return ""
    [label] = matrix.given_labels
    word = statistics.scale.words.get(label)
    cases = f"{word} cases" if word else f"cases of score {label}"
    said = statistics.scale.said(label)
    return f"There are only {one_line(cases)}, so always saying {said} would get 100%."


def figure_text(name: str, estimate: Estimate) -> str:
    """A figure and its interval as the tables show them, with what is missing of it."""
    kinds: dict[str, FigureKind] = {column.key: column.kind for column in COLUMNS}
    kind = kinds.get(name, "share")
    text, interval = value_text(estimate, kind), range_text(estimate, kind)
    if NONE not in (text, interval):
        text = f"{text} ({interval})"
    return f"{text} ({estimate.why})" if estimate.why else text


@frozen
class Reliability:
    """How well a judge agrees with the labels: `figures` over all cases, and per rubric, by name.

    The names are those of the JSON report: `accuracy`, `recall`, `false_positive_rate`, `kappa` and
    more for a binary judge, `exact`, `within_one`, `weighted_kappa` and more for an ordinal one,
    `macro_f1`, `recall of CLASS` and more for one of classes.
    `warnings` say what makes a figure worthless, such as a constant verdict.
    """

    figures: dict[str, Estimate]
    rubrics: dict[str, dict[str, Estimate]]
    warnings: Sequence[str]

    def __str__(self) -> str:
        lines = [f"{name}: {figure_text(name, figure)}" for name, figure in self.figures.items()]
        return "\n".join([*lines, *(f"! {warning}" for warning in self.warnings)])


def reliability(results: Iterable[CaseResult] | Verdicts) -> Reliability:
    """Compute one judge's figures with 95% intervals, clustered by run; raises `ValueError` for no
    results, and for those of several judges or suites.
    """
    verdicts = results if isinstance(results, Verdicts) else Verdicts.of(results)
    judge_sections = sections(verdicts)
    if len(judge_sections) != 1:
        raise ValueError(f"the results have {len(judge_sections)} judges or suites; must be one")
    [section] = judge_sections
    return Reliability(
        _named_figures(section.total),
        {row.name: _named_figures(row) for row in section.rubrics},
        all_warnings(section.total, section.rubrics),
    )


def _named_figures(statistics: Statistics) -> dict[str, Estimate]:
    """Every figure that is shown with its interval, by its name in the JSON report."""
    figures = {}
    for column in COLUMNS:
        if column.kind != "count" and column.is_shown(statistics):
            figures[column.key] = statistics.figures[column.key]
    return {**figures, **statistics.of_classes}


_FIRST = code_of(PLACES[0])


@frozen
class Places:
    """The figures of one judge: of verdicts that name an answer, how many name the `first` one that
    was shown; and of pairs that were shown in both orders, how many have the `same` verdict, and
    how many of the others take the answer in one place both times, by the place.
    """

    first: Estimate
    same: Estimate
    taken: Sequence[int]

    @property
    def is_biased(self) -> bool:
        """Whether verdicts that change with the order take one place more often than by chance."""
        most, both = max(self.taken), sum(self.taken)
        return bool(both) and 2 * binomial_tail(most, both, 0.5) < SIGNIFICANCE


def places_of(judged: Verdicts) -> Places | None:
    """The figures of these verdicts; None where they are not of pairs."""
    kinds = judged.kinds("scale", "answers")
    if not kinds.names or not all(scale.orders for scale, _ in kinds.names):
        return None
    shares = kinds.each(lambda kind: _first_share(*kind), float)
    names_one = shares >= 0
    first = estimate_mean(shares[names_one], judged.cluster[names_one])
    is_both = kinds.each(lambda kind: kind[0].orders == len(PLACES))
    of_both, both = judged.where(is_both), kinds[is_both]
    by_order = Coded([scale.by_order(answers) for scale, answers in both.names], both.codes)
    same = by_order.each(lambda answers: len({*answers}) == 1)
    taken = []
    for code in map(code_of, PLACES):
        taken.append(int(by_order.equals((code, other_place(code))).sum()))
    return Places(first, estimate_share(same, of_both.cluster), taken)


@frozen
class Favour:
    """In what share of its pairs a system's answer is the better one, ties half: by people, and how
    much more often by the judge.
    """

    system: str
    people: Estimate
    more: Estimate

    @property
    def is_shown(self) -> bool:
        """Whether the judge is shown to favour the system, or to put it at a disadvantage."""
        lower, upper = self.more.lower, self.more.upper
        return lower is not None and upper is not None and not lower <= 0 <= upper


def favours(judged: Verdicts) -> list[Favour]:
    """Each system that gave some of the answers, those first that win most by people."""
    known, pairs = judged.answered
    codes = np.array([*map(code_of, PLACES)])
    rows = []
    for system in dict.fromkeys(chain.from_iterable(known.systems.present())):
        places = known.systems.each(partial(_place_of, system), int)
        is_in_one = places >= 0
        if not is_in_one.any():
            # Both answers of its pairs are its own.
            continue
        own = codes[places[is_in_one], None]
        wins = np.where(pairs[is_in_one] == own, 1.0, 0.5 * (pairs[is_in_one] == TIE))
        clusters = known.cluster[is_in_one]
        rows.append(
            Favour(
                system,
                estimate_mean(wins[:, 0], clusters),
                estimate_mean(wins[:, 1] - wins[:, 0], clusters, (-1.0, 1.0)),
            )
        )
    return sorted(rows, key=lambda row: -(row.people.value or 0))


def _place_of(system: str, systems: Sequence[str]) -> int:
    """The place of a system's answer; below 0 where it gave none, or both."""
    return systems.index(system) if systems.count(system) == 1 else -1


def _first_share(scale: Scale, answers: Sequence[int]) -> float:
    """The share of verdicts that name the answer that was shown first, of those that name one;
    below 0 where none does.
    """
    half = len(answers) // scale.orders
    shown = [*answers[:half], *map(other_place, answers[half:])]
    named = [answer for answer in shown if other_place(answer) != answer]
    return named.count(_FIRST) / len(named) if named else -1.0


def favour_sentence(favour: Favour) -> str:
    """How often a system wins by people, and by the judge."""
    more, by_people = favour.more.value or 0.0, favour.people.value or 0.0
    text = (
        f'"{one_line(favour.system)}" wins {percent(by_people)} of its pairs according to people, '
    )
    text += f"and {percent(by_people + more)} according to the judge: {100 * more:+.1f} points"
    lower, upper = favour.more.lower, favour.more.upper
    if lower is not None and upper is not None:
        text += f" ({100 * lower:+.1f} to {100 * upper:+.1f})"
    return f"{text}."


def places_sentence(places: Places) -> str:
    """How often a judge takes the first answer, and what changes with the order."""
    text = "When the judge prefers an answer, it prefers the first one in "
    text += f"{percent(places.first.value)} ({range_text(places.first)})."
    if not places.same.n:
        return text
    same, (first, second) = places.same, places.taken
    text += f" In both orders it says the same about {same.fraction} pairs ({range_text(same)}%)"
    flips = same.n - (same.count or 0)
    if flips:
        text += f"; among the {counted(flips, 'other')}, it prefers the first answer both times in "
        text += f"{first:,}, and the second in {second:,}"
    return f"{text}."


_FEWEST_CASES = 10
# So many values have figures of their own: those with most wrong verdicts.
_MOST_VALUES = 50
_MOST_SETS = 100
_NO_VALUE = "(none)"


def slice_name(key: str, value: str) -> str:
    """What a slice is called among other sets."""
    return f"{key}={value or _NO_VALUE}"


def with_sets(verdicts: Verdicts, *, decides: bool) -> Verdicts:
    """The verdicts of a judge with those slices alone that are sets of the decision: where they
    decide, the largest.
    """
    slices = verdicts.slices
    sizes = Counter[tuple[str, str]]()
    if decides:
        for code, number in Counter(slices.codes[~verdicts.derived].tolist()).items():
            sizes.update(dict.fromkeys(slices.names[code], number))
    sets = {of for of, number in sizes.most_common(_MOST_SETS) if number >= _FEWEST_CASES}
    names = [tuple(filter(sets.__contains__, of_case)) for of_case in slices.names]
    return replace(verdicts, slices=Coded.of(names)[slices.codes])


def slice_sections(section: Section) -> dict[str, Section]:
    """The figures of a judge by each field: a row for each value, the worst first; then those with
    fewer wrong verdicts together, and those with few cases.
    """
    judged = section.total.judged
    keys: dict[str, None] = {}
    for slices in judged.slices.present():
        keys |= dict.fromkeys(key for key, _ in slices)
    sections = {}
    for key in keys:
        names = [dict(slices).get(key, "") for slices in judged.slices.names]
        values = Coded.of(names)[judged.slices.codes]
        sections[key] = replace(section, rubrics=[*_value_rows(judged, values)])
    return sections


def _value_rows(judged: Verdicts, values: Coded[str]) -> Iterator[Statistics]:
    sizes = np.bincount(values.codes, minlength=len(values.names))
    wrong = np.bincount(values.codes[judged.wrong], minlength=len(sizes))
    is_large = sizes >= _FEWEST_CASES
    large = np.flatnonzero(is_large).tolist()
    large.sort(key=lambda code: -wrong[code])
    small = np.flatnonzero((sizes > 0) & ~is_large).tolist()
    own, others = large[:_MOST_VALUES], large[_MOST_VALUES:]

    def row(name: str, codes: list[int]) -> Statistics:
        return replace(statistics_of(judged.where(np.isin(values.codes, codes))), rubric=name)

    rows = [row(values.names[code] or _NO_VALUE, [code]) for code in own]
    yield from sorted(rows, key=_badness, reverse=True)
    if others:
        yield row(counted(len(others), "other value"), others)
    if small:
        yield row(f"{counted(len(small), 'value')} with under {_FEWEST_CASES} cases", small)


def _badness(statistics: Statistics) -> tuple[float, float]:
    """The lower end of the share of mistakes in the worst class, and that share: a few mistakes in
    few cases are not the worst.
    """
    shares = map(statistics.mistakes, statistics.scale.classes)
    return max((share.lower or 0.0, share.value or 0.0) for share in shares)

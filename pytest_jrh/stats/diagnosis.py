"""Doubts about judges whose accuracy may look fine and means nothing, over all cases and per
rubric.

Also the figures of a set of results as a list, for reports that have no table to show them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.figures import (
    COLUMNS,
    FIGURES,
    decimal,
    range_text,
    ranged,
    sections,
    tie_sentence,
    value_text,
)
from pytest_jrh.stats.formulas import SIGNIFICANCE, Estimate
from pytest_jrh.stats.statistics import kappa_of, tabulate

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseResult, Mode
    from pytest_jrh.stats.figures import Section
    from pytest_jrh.stats.formulas import ConfusionMatrix
    from pytest_jrh.stats.statistics import Statistics


_MEANINGS = {0: "satisfied", 1: "violated"}
# Of a judge that is right in 80% of the cases of either label.
_SOUND = 0.6
_FEWEST_VERDICTS = 4
# A single case has one label, whatever the suite.
_FEWEST_LABELS = 2
_MOST_NAMED = 5


def section_warnings(section: Section) -> list[str]:
    """All warnings about the figures of one judge."""
    rubrics = [row.statistics for row in section.rubrics]
    return all_warnings(section.total, rubrics, section.mode)


def all_warnings(total: Statistics, rubrics: Sequence[Statistics], mode: Mode) -> list[str]:
    """Warnings about one judge over all its cases, and about single rubrics.

    What is true of all cases is not said of a rubric again.
    """
    of_total = [doubt(total, mode), one_class(total, mode)]
    lines = [text for text in of_total if text] + _contradictions(total)
    if ties := tie_sentence(total):
        lines.append(ties)
    if len(rubrics) < _FEWEST_LABELS or _is_constant(total, mode):
        return lines
    doubts = [doubt(rubric, mode, len(rubrics)) for rubric in rubrics]
    if of_total[0] and all(doubts):
        doubts = [""] * len(rubrics)
    named: dict[str, list[str]] = {}
    for rubric, doubted in zip(rubrics, doubts, strict=True):
        for text in (doubted, one_class(rubric, mode)):
            if text and text not in of_total:
                named.setdefault(text, []).append(one_line(rubric.counts.rubric))
    for text, names in named.items():
        lines.append(f"{_listed(names)}: {text[0].lower()}{text[1:]}")
    return lines


def doubt(statistics: Statistics, mode: Mode, rubrics: int = 1) -> str:
    """Why verdicts are worth little: of a constant judge, and where even the upper end of kappa is
    below that of a judge that is right in 80% of either class; empty where they may be.

    Of one of several `rubrics` the level is adjusted, so that of sound judges 5% are doubted; so is
    a constant verdict on them, which a judge may give that is sound. Nothing is said of fewer than
    four verdicts, or where all labels are the same.
    """
    if not _can_be_doubted(statistics, mode):
        return ""
    is_constant = _is_constant(statistics, mode)
    if is_constant and rubrics == 1:
        return _constant_text(statistics.matrices[mode], mode)
    kappa = statistics.figures["weighted_kappa" if mode == "ordinal" else "kappa"]
    if kappa.upper is None or kappa.upper >= _SOUND:
        return ""
    if rubrics > 1:
        kappa = kappa_of(statistics, mode, 1 - SIGNIFICANCE / rubrics)
        if kappa.upper is None or kappa.upper >= _SOUND:
            return ""
    if is_constant:
        return _constant_text(statistics.matrices[mode], mode)
    name = "weighted kappa" if mode == "ordinal" else "kappa"
    interval = range_text(kappa, "number")
    return f"Worth little: {name} {decimal(kappa.value)} ({interval}); 0 is chance."


def _can_be_doubted(statistics: Statistics, mode: Mode) -> bool:
    matrix = statistics.matrices.get(mode)
    if matrix is None or matrix.n < _FEWEST_VERDICTS:
        return False
    return sum(map(bool, matrix.rows)) >= _FEWEST_LABELS


def _is_constant(statistics: Statistics, mode: Mode) -> bool:
    """Whether all cases were given one verdict."""
    matrix = statistics.matrices.get(mode)
    return matrix is not None and sum(map(bool, matrix.columns)) == 1


def _constant_text(matrix: ConfusionMatrix, mode: Mode) -> str:
    columns = zip(matrix.labels, matrix.columns, strict=True)
    [answer] = [label for label, number in columns if number]
    verdict = str(answer)
    if mode == "binary" and answer in _MEANINGS:
        verdict = f"{answer} ({_MEANINGS[answer]})"
    return f"Constant verdict: {verdict} for all {matrix.n:,} cases."


def one_class(statistics: Statistics, mode: Mode) -> str:
    """What is said where all labels are the same; nothing where they are not."""
    matrix = statistics.matrices.get(mode)
    if matrix is None or matrix.n < _FEWEST_LABELS or sum(map(bool, matrix.rows)) > 1:
        return ""
    [label] = [score for score, row in zip(matrix.labels, matrix.rows, strict=True) if row]
    cases = f"Only cases of score {label}"
    if mode == "binary" and label in _MEANINGS:
        cases = f"Only {_MEANINGS[label]} cases"
    return f"{cases}: a judge that always says {label} would get 100%."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {counted(more, 'more rubric')}" if more > 0 else shown


def _contradictions(statistics: Statistics) -> list[str]:
    counts = statistics.counts
    if not counts.contradicted:
        return []
    return [
        f"Reasoning and score disagree in {counts.contradicted:,} of "
        f"{counted(counts.n, 'verdict')}: the reasoning ends in another verdict than the score. "
        "The score counts."
    ]


def named_figures(statistics: Statistics, mode: Mode) -> dict[str, Estimate]:
    """Every figure of this mode with its interval, by its name in the JSON report."""
    return {
        column.key: statistics.figures[column.key]
        for column in COLUMNS
        if mode in column.modes and column.kind in FIGURES and column.shown(statistics)
    }


def figure_text(name: str, estimate: Estimate) -> str:
    """A figure and its interval as the tables show them, with what is missing of it."""
    [kind] = [column.kind for column in COLUMNS if column.key == name and column.kind in FIGURES]
    text = ranged(value_text(estimate, kind), estimate, kind)
    return f"{text} ({estimate.why})" if estimate.why else text


@dataclass(frozen=True, slots=True)
class Reliability:
    """How well a judge agrees with the labels: `figures` over all cases, and per rubric, by name.

    The names are those of the JSON report: `accuracy`, `recall`, `false_positive_rate`, `kappa` and
    more for a binary judge, `exact`, `within_one`, `weighted_kappa` and more for an ordinal one.
    `warnings` say what makes a figure worthless, such as a constant verdict.
    """

    figures: dict[str, Estimate]
    rubrics: dict[str, dict[str, Estimate]]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{name}: {figure_text(name, figure)}" for name, figure in self.figures.items()]
        return "\n".join([*lines, *(f"! {warning}" for warning in self.warnings)])


def reliability(results: Iterable[CaseResult]) -> Reliability:
    """Compute one judge's figures with 95% intervals, clustered by run; raises `ValueError` for no
    results, and for those of several judges or suites.
    """
    judge_sections = sections(tabulate(results))
    if len(judge_sections) != 1:
        raise ValueError(f"the results are of {len(judge_sections)} judges or suites; must be one")
    [section] = judge_sections

    rubrics = {row.name: named_figures(row.statistics, section.mode) for row in section.rubrics}
    total = named_figures(section.total, section.mode)
    return Reliability(total, rubrics, tuple(section_warnings(section)))

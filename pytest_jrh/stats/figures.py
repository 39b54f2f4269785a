"""The table of figures that every report shows: a section per judge, a row per rubric and all.

Each figure is declared once, as a column; every report and the schema of the JSON report derive
from these. A new one is its computation in `Statistics` and one line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.core.text import counted
from pytest_jrh.stats.intervals import grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.core.model import Mode
    from pytest_jrh.stats.formulas import Estimate
    from pytest_jrh.stats.statistics import Statistics, StatisticsTable


FigureKind: TypeAlias = Literal["count", "rate", "share", "number", "bounds"]
FIGURES = ("rate", "share", "number")
"""The kinds of columns that are a figure of their own."""
NONE = "-"
_BOTH: tuple[Mode, ...] = ("binary", "ordinal")


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a set of results, by its `key` in `Statistics.figures`.

    Of a `count` it is the number of verdicts. Of `bounds` the interval alone is shown, beside a
    figure that is `apart` from it. `title` heads it in tables, where a terminal breaks it as in
    `head`; one without a title is in the JSON report alone, where it stands under its key among
    the figures of its mode, or of both where it is `common`. `meaning` explains it in a sentence or
    two. What is `optional` is left out of the table of a judge of whom it can say nothing.
    """

    key: str
    kind: FigureKind
    meaning: str
    title: str = ""
    head: tuple[str, str] | None = None
    modes: tuple[Mode, ...] = _BOTH
    common: bool = False
    apart: bool = False
    optional: bool = False

    @property
    def heading(self) -> tuple[str, str]:
        """The two lines of the title in a terminal."""
        return self.head or ("", self.title)

    def shown(self, total: Statistics) -> bool:
        """Whether it is shown of a judge with these figures over all its cases."""
        return not self.optional or total.figures[self.key].n > 0

    def cell(self, statistics: Statistics) -> tuple[str, str]:
        """The figure as text, `-` where it cannot be computed, and then the reason."""
        if self.kind == "count":
            return f"{statistics.counts.n:,}", ""
        estimate = statistics.figures.get(self.key)
        if estimate is None:
            return NONE, ""
        if self.kind == "bounds":
            return range_text(estimate), estimate.interval_reason or ""
        return value_text(estimate, self.kind), estimate.reason or ""

    def range_cell(self, statistics: Statistics) -> tuple[str, str]:
        """The interval as text, `-` where there is none, and then the reason.

        Empty where it has a column of its own, or the figure itself is missing.
        """
        estimate = statistics.figures.get(self.key)
        if estimate is None or estimate.value is None or self.apart or self.kind == "bounds":
            return "", ""
        return range_text(estimate, self.kind), estimate.interval_reason or ""


def value_text(estimate: Estimate, kind: FigureKind) -> str:
    """A figure as text: a share in percent, another figure in its own unit."""
    return decimal(estimate.value) if kind == "number" else percent(estimate.value)


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage; never 100.0% or 0.0% where it is not quite that."""
    if value is None:
        return NONE
    text = f"{value:.{digits}%}"
    if text == f"{1:.{digits}%}" and value < 1:
        return f">{1 - 10 ** -(digits + 2):.{digits}%}"
    if text == f"{0:.{digits}%}" and value > 0:
        return f"<{10 ** -(digits + 2):.{digits}%}"
    return text


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


def ranged(text: str, estimate: Estimate, kind: FigureKind = "share") -> str:
    """The text of a figure, with the interval in parentheses where there is one."""
    interval = range_text(estimate, kind)
    return text if NONE in (interval, text) else f"{text} ({interval})"


def decimal(value: float | None) -> str:
    """A number as text."""
    # Rounding makes "-0.00" of what is a little below 0.
    return NONE if value is None else f"{round(value, 2) + 0.0:.2f}"


def columns_of(mode: Mode, total: Statistics) -> list[Column]:
    """The columns of the table of a judge of this mode, in order; `total` is over all its cases."""
    return [
        column
        for column in COLUMNS
        if mode in column.modes and column.title and column.shown(total)
    ]


def keys_of(mode: Mode) -> list[Column]:
    """The figures that the JSON report has for this mode alone, in order."""
    return [column for column in COLUMNS if mode in column.modes and not column.common]


COLUMNS: tuple[Column, ...] = (
    Column("n", "count", "How many cases have a verdict.", "n", common=True),
    Column(
        "accuracy",
        "rate",
        "The share of verdicts that are the label.",
        "accuracy",
        modes=("binary",),
        common=True,
        apart=True,
    ),
    Column(
        "exact",
        "share",
        "The share of verdicts that give exactly the target score.",
        "exact",
        modes=("ordinal",),
        apart=True,
    ),
    Column(
        "accuracy",
        "bounds",
        "The range in which the accuracy would plausibly lie on other runs of the same kind.",
        "95% interval",
        head=("95%", "interval"),
        common=True,
    ),
    Column(
        "recall",
        "share",
        "The share of the violations, in `agent_perturbation` and `agent_labels`, that the judge "
        "found.",
        "recall",
        modes=("binary",),
    ),
    Column(
        "false_positive_rate",
        "share",
        "The share of the satisfied cases, in `agent_positives` and `agent_labels`, that the judge "
        "called violations (`FPR` in the terminal).",
        "false-positive rate",
        head=("", "FPR"),
        modes=("binary",),
    ),
    Column(
        "balanced_accuracy",
        "rate",
        "The mean of the shares of right verdicts of both labels.",
        modes=("binary",),
    ),
    Column(
        "kappa",
        "number",
        "Cohen's kappa: agreement beyond what chance would give.",
        "kappa",
        modes=("binary",),
    ),
    Column(
        "within_one",
        "share",
        "The share that are at most one level off.",
        "within 1",
        head=("within", "1"),
        modes=("ordinal",),
    ),
    Column(
        "mean_absolute_error",
        "number",
        "The mean distance from the target, in levels of the scale.",
        "mean error",
        head=("mean", "error"),
        modes=("ordinal",),
    ),
    Column(
        "bias",
        "number",
        "The mean of score minus target, in levels of the scale: above 0, the judge scores too "
        "high.",
        "bias",
        modes=("ordinal",),
    ),
    Column(
        "weighted_kappa",
        "number",
        "Kappa with quadratic weights: near misses count for something, large ones against.",
        "weighted kappa",
        head=("weighted", "kappa"),
        modes=("ordinal",),
    ),
    Column(
        "flicker",
        "rate",
        "How often two verdicts of the judge on one case differ, where `repeats` has it judge each "
        "case more than once",
        "flicker",
        common=True,
        optional=True,
    ),
)


ONE_BY_ONE = (
    "Each interval is about other runs under these rubrics, and holds by itself: of 20, about one "
    "misses its true figure."
)
"""What is said under a table with several rows."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure as text, `-` where it cannot be computed, and then why.

    `range` is its interval, `-` where there is none, and then `range_reason` says why; empty where
    it has a column of its own.
    """

    column: Column
    text: str
    reason: str = ""
    range: str = ""
    range_reason: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a rubric, or, where `rubric` is empty, all of the judge's cases."""

    rubric: str
    statistics: Statistics
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """What stands before its cells."""
        return self.rubric or "all"


@dataclass(frozen=True, slots=True)
class Section:
    """The figures of one judge of one suite; `judge` is empty for a suite's only judge.

    The last row is the total, but for a judge of one rubric.
    """

    suite: str
    judge: str
    mode: Mode
    rows: tuple[Row, ...]
    total: Statistics

    @property
    def rubrics(self) -> list[Row]:
        """The rows of single rubrics."""
        return [row for row in self.rows if row.rubric]

    @property
    def total_first(self) -> list[Row]:
        """The rows, the total first."""
        return sorted(self.rows, key=lambda row: bool(row.rubric))

    @property
    def columns(self) -> list[Column]:
        """The columns of the rows' cells."""
        return columns_of(self.mode, self.total)

    @property
    def label(self) -> str:
        """The judge's name, or its suite's where it has none."""
        return f"{self.suite}, judge {self.judge}" if self.judge else self.suite


def sections(table: StatisticsTable) -> list[Section]:
    """Arrange the figures by suite and judge.

    A judge without cases to judge has no section.
    """
    by_judge = grouped(
        ((rubric.counts.suite, rubric.counts.judge), rubric) for rubric in table.rubrics
    )
    with_cases = []
    for total in table.judges:
        counts, mode = total.counts, total.mode
        if not (counts.n or counts.no_case or counts.unscored):
            continue
        columns = columns_of(mode, total)
        levels = [*by_judge[counts.suite, counts.judge]]
        if len(levels) > 1:
            levels.append(total)
        rows = tuple(Row(level.counts.rubric, level, _cells(level, columns)) for level in levels)
        with_cases.append(Section(counts.suite, counts.judge, mode, rows, total))
    return with_cases


def left_out(statistics: Statistics) -> list[tuple[str, int]]:
    """What the figures leave out, and how much of each."""
    counts = statistics.counts
    all_kinds = [
        ("without a case", counts.no_case),
        ("unscored", counts.unscored),
        ("not to be judged", counts.generated),
        ("judged without a label", counts.unlabelled),
    ]
    return [(kind, number) for kind, number in all_kinds if number]


def reasons(section: Section) -> list[tuple[str, str, list[str]]]:
    """Why figures of a section are missing, as title, reason and the rows' names; each reason
    once.
    """
    missing: dict[tuple[str, str], list[str]] = {}
    for row in section.rows:
        for cell in row.cells:
            if cell.reason:
                missing.setdefault((cell.column.title, cell.reason), []).append(row.name)
            if cell.range_reason:
                title = f"interval of {cell.column.title}"
                missing.setdefault((title, cell.range_reason), []).append(row.name)
    return [(title, reason, names) for (title, reason), names in missing.items()]


def _cells(statistics: Statistics, columns: Sequence[Column]) -> tuple[Cell, ...]:
    return tuple(
        Cell(column, *column.cell(statistics), *column.range_cell(statistics)) for column in columns
    )


def flicker_sentence(statistics: Statistics) -> str:
    """In how many cases a judge contradicts itself; nothing where none was judged twice."""
    flicker = statistics.flicker
    if not flicker.n:
        return ""
    cases = f"{flicker.count:,} of {counted(flicker.n, 'repeated case')}"
    interval = "" if flicker.lower is None else f", 95% interval {range_text(flicker)}"
    return (
        f"The judge gave different scores in {cases} (flicker {percent(flicker.value)}{interval})."
    )


def tie_sentence(statistics: Statistics) -> str:
    """What becomes of the cases without a score; nothing where there is none."""
    ties, n = statistics.counts.ties, statistics.counts.n
    if not ties:
        return ""
    left_out = ""
    if "ordinal" in statistics.matrices:
        left_out = "; mean error, bias and weighted kappa leave them out"
    return (
        f"Ties: in {ties:,} of {counted(n, 'case')} no score is the most frequent of the repeats. "
        f"They count as wrong{left_out}."
    )

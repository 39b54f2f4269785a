"""The table of figures that every report shows: a section per judge, a row per rubric, test and
all.

Each figure is declared once, as a column; every report and the schema of the JSON report derive
from these. A new one is its computation in `Statistics` and one line here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_jrh.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.core.model import Mode
    from pytest_jrh.stats.formulas import ConfusionMatrix, Share
    from pytest_jrh.stats.intervals import Bounds, Flicker
    from pytest_jrh.stats.metrics import Figure
    from pytest_jrh.stats.statistics import BinaryStats, OrdinalStats, Statistics, StatisticsTable


Value: TypeAlias = "Figure | Share | Bounds | Flicker | int"
FigureKind: TypeAlias = Literal["count", "rate", "share", "number", "bounds"]
NONE = "-"
_BOTH: tuple[Mode, ...] = ("binary", "ordinal")


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a set of results.

    `of` takes it from the set's `Statistics`, as a `Figure`, a `Share`, `Bounds` or a number
    by `kind`; None where the set has no case of the mode. `interval` takes its interval, which by
    default is the one under its `key`; with `apart` that has a column of its own. `title` heads
    it in tables, where a terminal breaks it as in `head`; one without a title is in the JSON report
    alone. `key` names it there, among the figures of its mode. `meaning` explains it in a sentence
    or two. `shown` leaves it out of the table of a judge of whom it can say nothing.
    """

    of: Callable[[Statistics], Value | None]
    kind: FigureKind
    meaning: str
    title: str = ""
    head: tuple[str, str] | None = None
    key: str = ""
    modes: tuple[Mode, ...] = _BOTH
    interval: Callable[[Statistics], Bounds | None] | None = None
    apart: bool = False
    shown: Callable[[Statistics], bool] = lambda _: True

    @property
    def heading(self) -> tuple[str, str]:
        """The two lines of the title in a terminal."""
        return self.head or ("", self.title)

    def cell(self, statistics: Statistics) -> tuple[str, str]:
        """The figure as text, `-` where it cannot be computed, and then the reason."""
        figure: Any = self.of(statistics)
        if figure is None:
            return NONE, ""
        match self.kind:
            case "count":
                return f"{figure:,}", ""
            case "bounds":
                return range_text(figure), figure.reason or ""
            case "number":
                return decimal(figure.value), figure.reason or ""
            case "rate" | "share":
                return percent(figure.value), figure.reason or ""

    def bounds(self, statistics: Statistics) -> Bounds | None:
        """The interval of the figure; None for what has none, as a number of cases."""
        if self.interval is not None:
            return self.interval(statistics)
        for described in (statistics.binary, statistics.ordinal):
            if described is not None and self.key in described.intervals:
                return described.intervals[self.key]
        return None

    def range_cell(self, statistics: Statistics) -> tuple[str, str]:
        """The interval as text, `-` where there is none, and then the reason.

        Empty where it has a column of its own, or the figure itself is missing.
        """
        bounds = None if self.apart else self.bounds(statistics)
        figure: Any = self.of(statistics)
        if bounds is None or figure is None or figure.value is None:
            return "", ""
        return range_text(bounds, self.kind), bounds.reason or ""


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


def range_text(bounds: Bounds, kind: FigureKind = "share") -> str:
    """An interval as text: of a share in percent, of another figure in its own unit."""
    if bounds.lower is None or bounds.upper is None:
        return NONE
    if kind == "number":
        between = " to " if bounds.lower < 0 else "-"
        return f"{decimal(bounds.lower)}{between}{decimal(bounds.upper)}"
    # An end that is not quite 100 or 0 is not printed as if it were.
    lower = min(bounds.lower, 0.999) if bounds.lower < 1 else 1.0
    upper = max(bounds.upper, 0.001) if bounds.upper > 0 else 0.0
    return f"{100 * lower:.1f}-{100 * upper:.1f}"


def ranged(text: str, bounds: Bounds, kind: FigureKind = "share") -> str:
    """A figure with its interval in parentheses, where it has one."""
    shown = range_text(bounds, kind)
    return text if NONE in (shown, text) else f"{text} ({shown})"


def decimal(value: float | None) -> str:
    """A number as text."""
    # Rounding makes "-0.00" of what is a little below 0.
    return NONE if value is None else f"{round(value, 2) + 0.0:.2f}"


def columns_of(mode: Mode, total: Statistics) -> list[Column]:
    """The columns of the table of a judge of this mode, in order; `total` is over all its cases."""
    own = [column for column in COLUMNS if mode in column.modes and column.title]
    return [column for column in own if column.shown(total)]


def keys_of(mode: Mode) -> list[Column]:
    """The figures that the JSON report has for this mode alone, in order."""
    return [column for column in COLUMNS if mode in column.modes and column.key]


def _binary(figure: Callable[[BinaryStats], Value]) -> Callable[[Statistics], Value | None]:
    return lambda statistics: None if statistics.binary is None else figure(statistics.binary)


def _ordinal(figure: Callable[[OrdinalStats], Value]) -> Callable[[Statistics], Value | None]:
    return lambda statistics: None if statistics.ordinal is None else figure(statistics.ordinal)


COLUMNS: tuple[Column, ...] = (
    Column(
        lambda statistics: statistics.counts.n,
        "count",
        "How many cases have a verdict.",
        "n",
    ),
    Column(
        lambda statistics: statistics.accuracy,
        "rate",
        "The share of verdicts that are the label.",
        "accuracy",
        modes=("binary",),
        interval=lambda statistics: statistics.interval,
        apart=True,
    ),
    Column(
        _ordinal(lambda figures: figures.exact),
        "share",
        "The share of verdicts that give exactly the target score.",
        "exact",
        key="exact",
        modes=("ordinal",),
        apart=True,
    ),
    Column(
        lambda statistics: statistics.interval,
        "bounds",
        "The range in which the accuracy would plausibly lie on other runs of the same kind.",
        "95% interval",
        head=("95%", "interval"),
    ),
    Column(
        _binary(lambda figures: figures.recall),
        "share",
        "The share of the violations, in `agent_perturbation` and `agent_labels`, that the judge "
        "found.",
        "recall",
        key="recall",
        modes=("binary",),
    ),
    Column(
        _binary(lambda figures: figures.false_positive_rate),
        "share",
        "The share of the satisfied cases, in `agent_positives` and `agent_labels`, that the judge "
        "called violations (`FPR` in the terminal).",
        "false-positive rate",
        head=("", "FPR"),
        key="false_positive_rate",
        modes=("binary",),
    ),
    Column(
        _binary(lambda figures: figures.balanced_accuracy),
        "rate",
        "The mean of the shares of right verdicts of both labels.",
        key="balanced_accuracy",
        modes=("binary",),
    ),
    Column(
        _binary(lambda figures: figures.kappa),
        "number",
        "Cohen's kappa: agreement beyond what chance would give.",
        "kappa",
        key="kappa",
        modes=("binary",),
    ),
    Column(
        _binary(lambda figures: figures.paired),
        "share",
        "The share of runs whose two cases under a rubric, the edited one and the satisfied one, "
        "were both judged right.",
        "paired",
        key="paired_accuracy",
        modes=("binary",),
    ),
    Column(
        _ordinal(lambda figures: figures.within_one),
        "share",
        "The share that are at most one level off.",
        "within 1",
        head=("within", "1"),
        key="within_one",
        modes=("ordinal",),
    ),
    Column(
        _ordinal(lambda figures: figures.mean_absolute_error),
        "number",
        "The mean distance from the target, in levels of the scale.",
        "mean error",
        head=("mean", "error"),
        key="mean_absolute_error",
        modes=("ordinal",),
    ),
    Column(
        _ordinal(lambda figures: figures.bias),
        "number",
        "The mean of score minus target, in levels of the scale: above 0, the judge scores too "
        "high.",
        "bias",
        key="bias",
        modes=("ordinal",),
    ),
    Column(
        _ordinal(lambda figures: figures.weighted_kappa),
        "number",
        "Kappa with quadratic weights: near misses count for something, large ones against.",
        "weighted kappa",
        head=("weighted", "kappa"),
        key="weighted_kappa",
        modes=("ordinal",),
    ),
    Column(
        lambda statistics: statistics.flicker,
        "rate",
        "How often two verdicts of the judge on one case differ, where `repeats` has it judge each "
        "case more than once",
        "flicker",
        interval=lambda statistics: statistics.flicker.bounds,
        shown=lambda total: total.flicker.cases > 0,
    ),
)


ONE_BY_ONE = "Each interval holds by itself: of 20, about one misses its true figure."
"""What is said under a table with several rows (rule L5)."""
Level: TypeAlias = Literal["rubric", "test", "total"]


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

    @property
    def whole(self) -> str:
        """The figure with its interval in parentheses."""
        return f"{self.text} ({self.range})" if self.range not in ("", NONE) else self.text


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a rubric over both its tests, one of its tests, or all of the judge's
    cases.
    """

    level: Level
    name: str
    statistics: Statistics
    cells: tuple[Cell, ...]
    rubric: str = ""

    @property
    def label(self) -> str:
        """The row's name outside of the table."""
        return f"{self.name} of {self.rubric}" if self.level == "test" else self.name


@dataclass(frozen=True, slots=True)
class Section:
    """The figures of one judge of one suite; `judge` is empty for a suite's only judge.

    Where all its cases are of one of the `tests`, there are no rows for tests; where all are of one
    rubric, there is none for the `total`.
    """

    suite: str
    judge: str
    mode: Mode
    tests: tuple[str, ...]
    rows: tuple[Row, ...]
    total: Statistics

    @property
    def whole_rows(self) -> list[Row]:
        """The rows that are not of one test alone, the total first."""
        return sorted(
            (row for row in self.rows if row.level != "test"), key=lambda row: row.level != "total"
        )

    @property
    def columns(self) -> list[Column]:
        """The columns of the rows' cells."""
        return columns_of(self.mode, self.total)

    @property
    def first_title(self) -> str:
        """What heads the names of the rows."""
        return "rubric, test" if len(self.tests) > 1 else f"rubric ({', '.join(self.tests)})"

    @property
    def first_row(self) -> Row:
        """The row over all of the judge's cases."""
        return self.whole_rows[0]

    @property
    def label(self) -> str:
        """The judge's name, or its suite's where it has none."""
        return f"{self.suite}, judge {self.judge}" if self.judge else self.suite


def sections(table: StatisticsTable) -> list[Section]:
    """Arrange the figures by suite and judge.

    A judge without cases to judge has no section.
    """
    return [_section(total, table) for total in table.judges if _asked(total)]


def matrix_of(statistics: Statistics, mode: Mode) -> ConfusionMatrix | None:
    """The confusion matrix of figures of that mode."""
    described = statistics.ordinal if mode == "ordinal" else statistics.binary
    return None if described is None else described.matrix


def left_out(statistics: Statistics) -> list[tuple[str, int]]:
    """What the figures leave out, and how much of each."""
    counts = statistics.counts
    all_kinds = [
        ("without a case", counts.no_case),
        ("unscored", counts.unscored),
        ("not to be judged", counts.generated),
    ]
    return [(kind, number) for kind, number in all_kinds if number]


def reasons(section: Section) -> list[tuple[str, str, list[str]]]:
    """Why figures of a section are missing, as title, reason and the rows' labels; each reason
    once.

    A test's name alone means all its rows.
    """
    found: dict[tuple[str, str], list[Row]] = {}
    for row in section.rows:
        for cell in row.cells:
            if cell.reason:
                found.setdefault((cell.column.title, cell.reason), []).append(row)
            if cell.range_reason:
                title = f"interval of {cell.column.title}"
                found.setdefault((title, cell.range_reason), []).append(row)
    return [(title, reason, _labels(rows, section)) for (title, reason), rows in found.items()]


def _labels(rows: list[Row], section: Section) -> list[str]:
    names = Counter(row.name for row in section.rows if row.level == "test")
    affected = Counter(row.name for row in rows if row.level == "test")
    whole = {name for name, number in affected.items() if number == names[name]}
    labels = [row.name if row.level == "test" and row.name in whole else row.label for row in rows]
    return list(dict.fromkeys(labels))


def _asked(total: Statistics) -> bool:
    counts = total.counts
    return bool(counts.n or counts.no_case or counts.unscored)


def _section(total: Statistics, table: StatisticsTable) -> Section:
    suite, judge = total.counts.suite, total.counts.judge
    mode: Mode = "ordinal" if total.ordinal is not None else "binary"
    columns = columns_of(mode, total)
    by_rubric: dict[str, list[Statistics]] = {}
    for group in table.groups:
        if (group.counts.suite, group.counts.judge) == (suite, judge):
            by_rubric.setdefault(group.counts.rubric, []).append(group)
    tests = tuple(sorted({group.counts.test for groups in by_rubric.values() for group in groups}))
    rows = []
    for rubric in table.rubrics:
        if (rubric.counts.suite, rubric.counts.judge) != (suite, judge):
            continue
        name = rubric.counts.rubric
        rows.append(Row("rubric", name, rubric, _cells(rubric, columns), name))
        if len(tests) > 1:
            of_tests = sorted(by_rubric[name], key=lambda group: group.counts.test)
            rows += [
                Row("test", group.counts.test, group, _cells(group, columns), name)
                for group in of_tests
            ]
    if len(by_rubric) > 1:
        rows.append(Row("total", "all", total, _cells(total, columns)))
    return Section(suite, judge, mode, tests, tuple(rows), total)


def _cells(statistics: Statistics, columns: Sequence[Column]) -> tuple[Cell, ...]:
    return tuple(
        Cell(column, *column.cell(statistics), *column.range_cell(statistics)) for column in columns
    )


def flicker_sentence(statistics: Statistics) -> str:
    """In how many cases a judge contradicts itself; nothing where none was judged twice."""
    found = statistics.flicker
    if not found.cases:
        return ""
    cases = f"{found.flickering:,} of {counted(found.cases, 'repeated case')}"
    known = "" if found.bounds.lower is None else f", 95% interval {range_text(found.bounds)}"
    return f"The judge gave different scores in {cases} (flicker {percent(found.value)}{known})."


def tie_sentence(statistics: Statistics) -> str:
    """What becomes of the cases without a score; nothing where there is none."""
    ties, n = statistics.counts.ties, statistics.counts.n
    if not ties:
        return ""
    left_out = "; mean error, bias and weighted kappa leave them out" if statistics.ordinal else ""
    return (
        f"Ties: in {ties:,} of {counted(n, 'case')} no score is the most frequent of the repeats. "
        f"They count as wrong{left_out}."
    )

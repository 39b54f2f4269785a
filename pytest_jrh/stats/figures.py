"""The table of figures that every report shows: a section per judge, a row per rubric, test and all
(rule J1).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.stats.columns import NONE, columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.models import Mode
    from pytest_jrh.stats.columns import Column
    from pytest_jrh.stats.inference.formulas import ConfusionMatrix
    from pytest_jrh.stats.statistics import Statistics, StatisticsTable

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

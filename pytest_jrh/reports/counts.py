"""What is missed and what is a false alarm, as tables of counts beside what was so before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_jrh.core import frozen
from pytest_jrh.core.text import counted
from pytest_jrh.reports.blocks import Block, Cell, Level, Row, Sentence, Table, Weight
from pytest_jrh.reports.probes import turned_sentence, turned_table
from pytest_jrh.reports.session import Session
from pytest_jrh.stats.baseline import Pair
from pytest_jrh.stats.figures import NONE, Section, decimal, sections
from pytest_jrh.stats.intervals import Estimate, grouped
from pytest_jrh.stats.probes import ProbeTable
from pytest_jrh.stats.statistics import Statistics, accuracy_of, bias_of

# So many rows still fit a glance.
_MOST_ROWS = 8
_ALL = "all"


class Share(NamedTuple):
    """How many verdicts are wrong, of how many; and of those that are compared with the baseline,
    how many were wrong there, None where none is.
    """

    wrong: Estimate = Estimate()
    before: int | None = None

    @property
    def cell(self) -> Cell:
        """The count, with its share as a bar."""
        wrong = self.wrong
        if not wrong.n:
            return Cell(NONE)
        interval = before = None
        weight: Weight = ""
        if wrong.lower is not None and wrong.upper is not None:
            interval = (wrong.lower, wrong.upper)
        if self.before is not None:
            before = self.before / wrong.n
            weight = "bad" if (wrong.count or 0) > self.before else ""
        text = f"{wrong.count:,} of {wrong.n:,}"
        return Cell(text, weight=weight, share=wrong.value, interval=interval, before=before)


_NOTHING = Share()


@frozen
class _Counts:
    """What a judge gets wrong in the cases of a rubric, of a level, or of all.

    Of an ordinal judge `missed` are wrong levels, and it has a `bias`, and no `alarms`.
    """

    name: str
    about: tuple[str, str, str]
    missed: Share
    alarms: Share = _NOTHING
    bias: Estimate | None = None

    @property
    def worst(self) -> float:
        """The larger one of its shares, by which rows are sorted."""
        return max(self.missed.wrong.value or 0, self.alarms.wrong.value or 0)

    @property
    def sentence(self) -> str:
        """What is wrong, where there is little: `0 of 25 violations missed`."""
        missed, alarms = self.missed.wrong, self.alarms.wrong
        parts = []
        if missed.n and self.bias is not None:
            parts.append(f"{missed.count:,} of {missed.n:,} given another level")
        elif missed.n:
            parts.append(f"{missed.count:,} of {counted(missed.n, 'violation')} missed")
        if alarms.n:
            false_alarms = counted(alarms.count or 0, "false alarm")
            parts.append(f"{false_alarms} on {counted(alarms.n, 'satisfied case')}")
        return ", ".join(parts)


def count_blocks(session: Session, suite: str, *, bars: bool) -> Iterator[Block]:
    """What is missed and what is a false alarm: of several judges a row each, of one its rubrics,
    or the levels of its scale; what probes turned.
    """
    of_suite = [section for section in sections(session.table) if section.suite == suite]
    judged = [section for section in of_suite if section.total.counts.n]
    probes = [table for table in session.probes if table.suite == suite]
    findings = [table for table in probes if table.is_finding]
    if len(judged) > 1:
        yield _judges_table(session, judged, () if bars else findings)
    elif judged:
        section = judged[0]
        pairs = _pairs(session, section)
        rows = sorted(_section_rows(section, pairs), key=lambda row: -row.worst)
        total = _counts(_ALL, section.total, pairs)
        # Of a case that is looked at again the headline says it all.
        is_alone = section.total.counts.n == 1 and session.decisions
        if bars or (section.total.counts.disagree and not is_alone):
            first = "level" if section.scale.is_ordered else "rubric"
            yield _counts_table(first, [*rows, total] if len(rows) > 1 else rows)
        elif not is_alone:
            yield Sentence(total.sentence)
    if bars or not judged:
        yield from turned_table(probes)
    elif len(judged) == 1:
        for table in findings:
            yield Sentence(turned_sentence(table, session.probes), "warning")


def _pairs(session: Session, section: Section) -> list[Pair]:
    """The cases of a judge that are compared with the baseline."""
    decision = session.decisions.get(section.suite)
    if decision is None or decision.comparison is None:
        return []
    return [pair for pair in decision.comparison.pairs if pair.now.judge == section.judge]


def _section_rows(section: Section, pairs: Sequence[Pair]) -> Iterator[_Counts]:
    """The rubrics of a judge, or the levels of its scale."""
    if not section.scale.is_ordered:
        for statistics in section.rubrics or [section.total]:
            of_rubric = pairs
            if statistics.rubric:
                of_rubric = [pair for pair in pairs if pair.now.rubric_id == statistics.rubric]
            yield _counts(statistics.rubric or section.total.name, statistics, of_rubric)
        return
    judged = section.total.judged
    by_level = grouped((result.label, result) for result in judged if result.label is not None)
    matrix = section.total.matrix
    scores = () if matrix is None else matrix.labels
    about = (section.suite, section.judge, "")
    for level, results in sorted(by_level.items()):
        wrong = _share(accuracy_of(results).complement(), pairs, level)
        yield _Counts(f"level {level}", about, wrong, bias=bias_of(results, scores))


def _counts(name: str, statistics: Statistics, pairs: Sequence[Pair]) -> _Counts:
    about = (statistics.suite, statistics.judge, statistics.rubric)
    figures = statistics.figures
    if statistics.scale.is_ordered:
        wrong = _share(figures["exact"].complement(), pairs)
        return _Counts(name, about, wrong, bias=figures["bias"])
    missed = _share(figures["recall"].complement(), pairs, 1)
    return _Counts(name, about, missed, _share(figures["false_positive_rate"], pairs, 0))


def _share(wrong: Estimate, pairs: Sequence[Pair], label: int | None = None) -> Share:
    """What is wrong beside what was so before, in the pairs of all labels or of one."""
    compared = [pair for pair in pairs if label in (None, pair.now.label)]
    return Share(wrong, sum(not pair.was_right for pair in compared) if compared else None)


def _counts_table(first: str, rows: Sequence[_Counts], findings: Sequence[str] = ()) -> Table:
    """A table of counts; what was wrong before stands beside what changed, and what there is no
    case of has no column.
    """
    biases = [row.bias for row in rows if row.bias is not None]
    columns = _share_columns("wrong level" if biases else "missed", [row.missed for row in rows])
    if biases:
        columns.append(("bias", [Cell(decimal(bias.value)) for bias in biases]))
    columns += _share_columns("false alarms", [row.alarms for row in rows])
    if findings:
        columns.append(("turned by probes", [Cell(text, weight="warning") for text in findings]))
    titles = []
    cells_of_rows: list[list[Cell]] = [[] for _ in rows]
    for title, cells in columns:
        if any(cell.text != NONE for cell in cells):
            titles.append(title)
            for in_row, cell in zip(cells_of_rows, cells, strict=True):
                in_row.append(cell)
    table_rows = []
    for row, in_row in zip(rows, cells_of_rows, strict=True):
        level: Level = "total" if row.name == _ALL else "rubric"
        table_rows.append(Row(row.name, tuple(in_row), level, row.about))
    return Table(first, tuple(titles), tuple(table_rows), most=_MOST_ROWS)


def _share_columns(title: str, shares: Sequence[Share]) -> list[tuple[str, list[Cell]]]:
    columns = [(title, [share.cell for share in shares])]
    if any(share.before not in (None, share.wrong.count) for share in shares):
        before = [NONE if share.before is None else f"{share.before:,}" for share in shares]
        columns.append(("before", list(map(Cell, before))))
    return columns


def _judges_table(
    session: Session, judged: Sequence[Section], findings: Sequence[ProbeTable]
) -> Table:
    """A row for each judge, the worst one first, or the best one where nothing is decided; what
    each probe turned more often than by chance stands beside it.
    """
    found = grouped((table.judge, table) for table in findings)

    def place(section: Section) -> tuple[bool, float]:
        kappa = section.total.kappa[1].value
        if kappa is None:
            kappa = 2
        elif not session.decisions:
            kappa = -kappa
        return section.judge not in found, kappa

    rows, turned = [], []
    for section in sorted(judged, key=place):
        pairs = _pairs(session, section)
        rows.append(_counts(section.judge or section.label, section.total, pairs))
        parts = []
        for table in found.get(section.judge, ()):
            parts.append(f"{table.probe} {table.total.turned:,} of {table.total.n:,}")
        turned.append(", ".join(parts))
    return _counts_table("judge", rows, turned if found else ())

"""What probes found, as blocks."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_jrh.core.text import counted
from pytest_jrh.reports.blocks import Block, Cell, Row, Section, Sentence, Table, Weight
from pytest_jrh.stats.figures import NONE, percent, range_text
from pytest_jrh.stats.intervals import grouped
from pytest_jrh.stats.probes import SUPPOSED_FLICKER, ProbeRow, ProbeTable

TITLES = ("n", "turned", "rate", "interval", "towards")
NOTE = (
    "turned: verdicts that are right on the unchanged case and wrong on the changed one. 95% "
    "intervals, row by row."
)


def heading(table: ProbeTable, tables: Sequence[ProbeTable]) -> str:
    """The suite and the judge of a table, where there are several; else nothing."""
    parts = []
    if len({other.suite for other in tables}) > 1:
        parts.append(f"suite {table.suite}")
    if table.judge and len({other.judge for other in tables}) > 1:
        parts.append(f"judge {table.judge}")
    return ", ".join(parts)


def finding_sentences(tables: Sequence[ProbeTable]) -> list[str]:
    """One sentence for each finding, and one where there is none."""
    findings = [_finding(table, tables) for table in tables if table.is_finding]
    if findings or not any(table.total.n for table in tables):
        return findings
    return ["No probe turns verdicts more often than by chance (5%, by Holm's method)."]


def turned_sentence(table: ProbeTable, tables: Sequence[ProbeTable]) -> str:
    """What a probe turned, one of all `tables`."""
    of = heading(table, tables)
    return (
        f"{f'{of}: ' if of else ''}{table.probe} turns {table.total.turned:,} of "
        f"{counted(table.total.n, 'right verdict')}"
    )


def flicker_sentences(tables: Sequence[ProbeTable]) -> list[str]:
    """Say where flicker is not known, so that verdicts may have turned by themselves."""
    if not any(table.total.turned and not table.flicker.n for table in tables):
        return []
    return [
        "Without repeats it is not known how often a verdict turns by itself; "
        f"{SUPPOSED_FLICKER:.0%} is supposed (repeats: 3 measures it)."
    ]


def _finding(table: ProbeTable, tables: Sequence[ProbeTable]) -> str:
    total = table.total
    rate = f"{percent(total.rate.value)}, 95% interval {range_text(total.rate)}"
    text = f"{turned_sentence(table, tables)} ({rate})"
    if towards := _towards(total):
        text += f", {towards}" if table.is_ordered else f", towards {towards}"
    if table.flicker.value is not None:
        text += f"; the judge's flicker is {percent(table.flicker.value)}"
    return f"{text}."


def _cells(row: ProbeRow) -> tuple[Cell, ...]:
    texts = (
        f"{row.n:,}",
        NONE if row.rate.value is None else f"{row.turned:,}",
        percent(row.rate.value),
        range_text(row.rate),
        _towards(row) or NONE,
    )
    return tuple(map(Cell, texts))


def _towards(row: ProbeRow) -> str:
    if row.shift is not None:
        return f"{row.shift:+.2f} levels" if row.turned else ""
    return ", ".join(f"{number:,} {word}" for word, number in row.towards.items())


def turned_table(tables: Sequence[ProbeTable]) -> list[Table]:
    """What each probe turned of the right verdicts of each judge of a suite; none without any."""
    probes = list(dict.fromkeys(table.probe for table in tables))
    by_judge: dict[str, dict[str, Cell]] = {}
    for table in tables:
        weight: Weight = "warning" if table.is_finding else ""
        cell = Cell(f"{table.total.turned:,} of {table.total.n:,}", weight=weight)
        by_judge.setdefault(table.judge, {})[table.probe] = cell
    rows = []
    for judge, cells in by_judge.items():
        about = (tables[0].suite, judge, "")
        in_order = tuple(cells.get(probe, Cell(NONE)) for probe in probes)
        rows.append(Row(judge or "the judge", in_order, about=about))
    titles = tuple(probe.replace("_", " ") for probe in probes)
    return [Table("verdicts turned", titles, tuple(rows))] if rows else []


def probe_blocks(tables: Sequence[ProbeTable]) -> list[Block]:
    """What probes found, for each suite and judge: findings, and the table with their variants;
    last what one has to know to read them.
    """
    sections: list[Block] = []
    groups = grouped(((table.suite, table.judge), table) for table in tables)
    for group in groups.values():
        title = heading(group[0], tables)
        is_finding = any(table.is_finding for table in group)
        rows: list[Row] = []
        for table in group:
            rows.append(Row(table.probe, _cells(table.total)))
            rows += [Row(row.variant, _cells(row), "variant") for row in table.rows]
        weight: Weight = "warning" if is_finding else ""
        blocks: list[Block] = [Sentence(finding, weight) for finding in finding_sentences(group)]
        blocks.append(Table("probe", TITLES, tuple(rows)))
        sections.append(Section(f"Probes: {title}" if title else "Probes", tuple(blocks)))
    if not sections:
        return []
    notes = [*flicker_sentences(tables), NOTE]
    return [*sections, *(Sentence(note, "muted") for note in notes)]

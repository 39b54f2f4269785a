"""What probes found: sentences and a table that are the same in every report, for the terminal, as
Markdown, and as JSON values.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.text import Styled, columns, counted, one_line, shortened, wrapped
from pytest_jrh.reports.json_values import interval_data
from pytest_jrh.reports.markdown_text import code, prose
from pytest_jrh.stats.figures import NONE, percent, range_text
from pytest_jrh.stats.probes import SUPPOSED_FLICKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.stats.probes import ProbeRow, ProbeTable


TITLES = ("n", "turned", "rate", "interval", "net", "towards")
NOTE = (
    "turned: verdicts that are right on the unchanged case and wrong on the changed one; net: the "
    "rate less the judge's flicker on the unchanged cases. 95% intervals, row by row."
)
_MOST_NAMED = 3
_TWICE = 2


class ProbeLine(NamedTuple):
    """One row of the table: a probe, or one of its variants."""

    name: str
    cells: tuple[str, ...]
    turned: int
    is_total: bool = False


def probe_lines(table: ProbeTable) -> Iterator[ProbeLine]:
    """The rows of one probe: the whole first, then its variants."""
    total = table.total
    yield ProbeLine(table.probe, _cells(total), total.turned, is_total=True)
    for row in table.rows:
        yield ProbeLine(row.variant, _cells(row), row.turned)


def heading(table: ProbeTable, tables: Sequence[ProbeTable]) -> str:
    """The suite and the judge of a table, where there are several; else nothing."""
    suites = len({each.suite for each in tables}) > 1
    judges = len({each.judge for each in tables}) > 1
    parts = [f"suite {table.suite}"] if suites else []
    return ", ".join([*parts, f"judge {table.judge}"] if judges and table.judge else parts)


def grouped(tables: Iterable[ProbeTable]) -> dict[tuple[str, str], list[ProbeTable]]:
    """The tables of each suite and judge."""
    groups: dict[tuple[str, str], list[ProbeTable]] = {}
    for table in tables:
        groups.setdefault((table.suite, table.judge), []).append(table)
    return groups


def finding_sentences(tables: Sequence[ProbeTable]) -> list[str]:
    """One sentence for each finding, and one where there is none."""
    found = [_finding(table, tables) for table in tables if table.is_finding]
    judged = [table for table in tables if table.total.n]
    if found or not judged:
        return found
    return ["No probe turns verdicts more often than by chance (5%, by Holm's method)."]


def findings_first(tables: Sequence[ProbeTable]) -> list[str]:
    """The sentences of all findings, for the head of a report; none where nothing was found."""
    return finding_sentences(tables) if any(table.is_finding for table in tables) else []


def flicker_sentences(tables: Sequence[ProbeTable]) -> list[str]:
    """Say where flicker is not known, so that verdicts may have turned by themselves."""
    if not any(table.total.turned and not table.flicker.n for table in tables):
        return []
    return [
        "Without repeats it is not known how often a verdict turns by itself; "
        f"{percent(SUPPOSED_FLICKER, 0)} is supposed (repeats: 3 measures it)."
    ]


def _finding(table: ProbeTable, tables: Sequence[ProbeTable]) -> str:
    total = table.total
    of = heading(table, tables)
    rate = f"{percent(total.rate.value)}, 95% interval {range_text(total.rate)}"
    text = (
        f"{f'{of}: ' if of else ''}{table.probe} turns {total.turned:,} of "
        f"{counted(total.n, 'right verdict')} ({rate})"
    )
    if towards := _towards(total):
        text += f", {towards}" if table.ordinal else f", towards {towards}"
    if table.flicker.value is not None:
        text += f"; the judge's flicker is {percent(table.flicker.value)}"
    if worst := _worst(table):
        text += f"; most by {worst}"
    return f"{text}."


def _worst(table: ProbeTable) -> str:
    """The parts of variants' names that turn most, of those that turn more than the whole."""
    parts: dict[str, tuple[int, int]] = {}
    for row in table.rows:
        for part in row.axes:
            turned, n = parts.get(part, (0, 0))
            parts[part] = (turned + row.turned, n + row.n)
    if len(parts) < _TWICE or table.total.rate.value is None:
        return ""
    above = {
        part: (turned, n)
        for part, (turned, n) in parts.items()
        if turned and turned / n > table.total.rate.value
    }
    ranked = sorted(above, key=lambda part: (-above[part][0] / above[part][1], -above[part][1]))
    return ", ".join(
        f"{part} ({above[part][0]} of {above[part][1]})" for part in ranked[:_MOST_NAMED]
    )


def _cells(row: ProbeRow) -> tuple[str, ...]:
    judged = row.rate.value is not None
    return (
        f"{row.n:,}",
        f"{row.turned:,}" if judged else NONE,
        percent(row.rate.value),
        range_text(row.rate),
        _signed(row.net),
        _towards(row) or NONE,
    )


def _signed(share: float | None) -> str:
    if share is None:
        return NONE
    return f"-{percent(-share)}" if share < 0 else percent(share)


def _towards(row: ProbeRow) -> str:
    if row.shift is not None:
        return f"{row.shift:+.2f} levels" if row.turned else ""
    parts = [
        f"{number:,} {name}"
        for number, name in ((row.satisfied, "satisfied"), (row.violated, "violated"))
        if number
    ]
    return ", ".join(parts)


class Grid(NamedTuple):
    """The turned verdicts of a probe whose variants have two parts, as an attack and its place.

    `cells` are by row and column; None where the probe has no such case with a verdict.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[ProbeRow | None, ...], ...]


def grid_of(table: ProbeTable) -> Grid | None:
    """The variants as a grid; None where their names do not have two parts."""
    if not table.rows or any(len(row.axes) != _TWICE for row in table.rows):
        return None
    by_axes = {row.axes: row for row in table.rows if row.n}
    rows = tuple(dict.fromkeys(row.axes[0] for row in table.rows))
    columns = tuple(dict.fromkeys(row.axes[1] for row in table.rows))
    return Grid(
        rows, columns, tuple(tuple(by_axes.get((one, two)) for two in columns) for one in rows)
    )


def markdown_blocks(
    tables: Sequence[ProbeTable],
) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """For each suite and judge a block of lines, as `BoundedPage.block` takes them: what comes
    first, rows that may be cut, and what follows.
    """
    for own in grouped(tables).values():
        title = heading(own[0], tables)
        marks = "⚠️ " if any(table.is_finding for table in own) else ""
        said = [f"{marks}{prose(sentence)}\n" for sentence in finding_sentences(own)]
        head = [f"\n### Probes{f' of {code(title)}' if title else ''}\n", *said]
        head += [_row(["probe", *TITLES]), _row(["---", *("---:" for _ in TITLES)])]
        rows = [
            _row(
                [
                    f"{'' if line.is_total else '&nbsp;&nbsp;'}{code(line.name, cell=True)}",
                    *line.cells,
                ]
            )
            for table in own
            for line in probe_lines(table)
            # Variants of a grid stand there.
            if line.is_total or grid_of(table) is None
        ]
        yield head, rows, ["", *map(prose, [*flicker_sentences(own), NOTE]), ""]
        for table in own:
            if (grid := grid_of(table)) is not None:
                yield _grid(table, grid)


def _grid(table: ProbeTable, grid: Grid) -> tuple[list[str], list[str], list[str]]:
    head = [
        f"\n{code(table.probe)}: turned verdicts by variant and place\n",
        _row(["", *(code(name, cell=True) for name in grid.columns)]),
        _row(["---", *("---:" for _ in grid.columns)]),
    ]
    rows = [
        _row(
            [
                code(name, cell=True),
                *(f"{cell.turned} of {cell.n}" if cell is not None else "" for cell in cells),
            ]
        )
        for name, cells in zip(grid.rows, grid.cells, strict=True)
    ]
    return head, rows, [""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_GAP = "  "
_NARROWEST_NAME = 16


def terminal_lines(
    tables: Sequence[ProbeTable], width: int, *, verbose: bool = False
) -> Iterator[Styled]:
    """The table, and the findings; of the variants those that turned a verdict, and all with `-v`.

    Nothing where there is no probe.
    """
    for own in grouped(tables).values():
        lines = [
            line
            for table in own
            for line in probe_lines(table)
            if line.is_total or line.turned or verbose
        ]
        yield Styled("")
        if title := heading(own[0], tables):
            yield Styled(shortened(one_line(title), width), "bold")
        yield from _table(lines, width)
    if not tables:
        return
    for line in wrapped(NOTE, width):
        yield Styled(line)
    for sentence in finding_sentences(tables):
        style = "yellow" if any(table.is_finding for table in tables) else ""
        for line in wrapped(one_line(sentence), width):
            yield Styled(line, style)
    for sentence in flicker_sentences(tables):
        for line in wrapped(sentence, width):
            yield Styled(line)


def _table(lines: Sequence[ProbeLine], width: int) -> Iterator[Styled]:
    wide = [
        max(len(title), *(columns(line.cells[place]) for line in lines))
        for place, title in enumerate(TITLES)
    ]
    left = width - sum(wide) - len(_GAP) * len(wide)
    longest = max(columns(_name(line)) for line in lines)
    name = max(min(longest, left), _NARROWEST_NAME)
    yield Styled(_line("probe", TITLES, name, wide), "bold")
    for line in lines:
        yield Styled(_line(shortened(_name(line), name), line.cells, name, wide))


def _name(line: ProbeLine) -> str:
    return one_line(line.name) if line.is_total else f"{_GAP}{one_line(line.name)}"


def _line(name: str, cells: Sequence[str], width: int, wide: Sequence[int]) -> str:
    padded = [name + " " * (width - columns(name))]
    padded += [cell.rjust(size) for cell, size in zip(cells, wide, strict=True)]
    return _GAP.join(padded).rstrip()


def probe_data(tables: Sequence[ProbeTable]) -> dict[str, Any]:
    """All figures of probes: `findings` are sentences, `probes` the tables."""
    return {
        "findings": finding_sentences(tables),
        "remarks": flicker_sentences(tables),
        "probes": [
            {
                "probe": table.probe,
                "finding": table.is_finding,
                "p_value": table.p_value,
                "adjusted_p_value": table.adjusted,
                "flicker": table.flicker.value,
                "flicker_reason": table.flicker.reason,
                "all": _row_data(table.total),
                "variants": {row.variant: _row_data(row) for row in table.rows},
                "turned_cases": list(table.cases),
            }
            for table in tables
        ],
    }


def probe_page(tables: Sequence[ProbeTable]) -> list[dict[str, Any]]:
    """What the HTML page shows: a card for each suite and judge."""
    cards = []
    for own in grouped(tables).values():
        title = heading(own[0], tables)
        cards.append(
            {
                "title": f"Probes: {title}" if title else "Probes",
                "titles": TITLES,
                "findings": finding_sentences(own),
                "is_finding": any(table.is_finding for table in own),
                "remarks": [*flicker_sentences(own), NOTE],
                "rows": [
                    {"name": line.name, "cells": line.cells, "total": line.is_total}
                    for table in own
                    for line in probe_lines(table)
                ],
                "grids": [
                    {"title": table.probe, **_grid_values(grid)}
                    for table in own
                    if (grid := grid_of(table)) is not None
                ],
            }
        )
    return cards


def _grid_values(grid: Grid) -> dict[str, Any]:
    return {
        "columns": grid.columns,
        "rows": [
            {
                "name": name,
                "cells": [
                    # Five steps of a color, 0 for none.
                    {
                        "text": f"{cell.turned} of {cell.n}",
                        "heat": round(5 * (cell.rate.value or 0)),
                    }
                    if cell is not None
                    else {"text": "", "heat": 0}
                    for cell in cells
                ],
            }
            for name, cells in zip(grid.rows, grid.cells, strict=True)
        ],
    }


def _row_data(row: ProbeRow) -> dict[str, Any]:
    data = asdict(row)
    del data["variant"], data["rate"]
    counts = {"n": row.n, "turned": row.turned, "rate": row.rate.value}
    return {**counts, **data, "interval": interval_data(row.rate)}

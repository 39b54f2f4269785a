"""Columns that a table has under other names: `human_{rubric}` is a column for each rubric, and a
row becomes one for each of them; `/label/faulty` is a field further down, `run_id,step` joins two.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from pytest_jrh.core.documents import listed, pointer_to, shown
from pytest_jrh.core.values import as_text
from pytest_jrh.sources.columns import PLACE, Table
from pytest_jrh.sources.source import at, names_in
from pytest_jrh.sources.tables import refuse_too_many


def with_named(
    table: Table, named: Sequence[tuple[str, str]], needed: Collection[str] = ()
) -> Table:
    """The table with what is named behind its role and is no column of it, as far as it has that.

    `needed` says which of "label" and "verdict" it is read for. Raises `InputError` where one of
    these or of the baseline is a pattern, and another none.
    """
    columns = dict(table.columns)
    patterns: dict[str, Mapping[str, str]] = {}
    for role, name in named:
        if name in columns:
            continue
        values = _values(table, name)
        if values is not None:
            columns[name] = values
        elif role in (*needed, "baseline") and (of_rubrics := _of_rubrics(table, name)):
            patterns[name] = of_rubrics
    table = replace(table, columns=columns)
    if not patterns:
        return table
    answers = [*named, *((role, "") for role in needed if role not in dict(named))]
    for role, name in answers:
        is_read = role in needed or (role == "baseline" and name in columns)
        if is_read and name not in patterns:
            message = f"got {shown(name)} beside {listed(patterns)}; must be a pattern, too, that "
            message += f"fits some of {listed(columns)}"
            raise table.error(message, f"name them: --{role} 'NAME_{PLACE}'")
    return _long(table, patterns)


def _values(table: Table, name: str) -> Sequence[Any] | None:
    """What a pointer, or several columns joined, have in each row; None where there is no such."""
    if name in table.columns:
        return table.columns[name]
    if name.startswith("/"):
        field, *inner = names_in(name)
        values = [at(cell, pointer_to(*inner)) for cell in table.columns.get(field, ())]
        return None if all(value is None for value in values) else values
    cells = []
    names = name.split(",")
    for part in names if len(names) > 1 else ():
        values_of_part = _values(table, part.strip())
        if values_of_part is not None:
            cells.append(values_of_part)
    return [*map(_joined, *cells)] if len(cells) == len(names) else None


def _joined(*cells: Any) -> str:
    """Cells as one text, which is another one for other cells."""
    first, *others = map(as_text, cells)
    return f"{first}{pointer_to(*others)}" if any((first, *others)) else ""


def _of_rubrics(table: Table, pattern: str) -> dict[str, str]:
    """The columns that a pattern fits, by what stands in its place."""
    head, place, tail = pattern.partition(PLACE)
    columns = {}
    for column in table.columns if place else ():
        rubric = column.removeprefix(head).removesuffix(tail)
        if rubric and column == f"{head}{rubric}{tail}":
            columns[rubric] = column
    return columns


def _long(table: Table, patterns: Mapping[str, Mapping[str, str]]) -> Table:
    """The table with a row for each rubric that all patterns have; one without any cell is left
    out, and columns of other rubrics are said.
    """
    first, *others = patterns.values()
    rubrics = [rubric for rubric in first if all(rubric in of for of in others)]
    matched = dict.fromkeys(chain.from_iterable(of.values() for of in patterns.values()))
    used = {of[rubric] for of in patterns.values() for rubric in rubrics}
    lonely = [column for column in matched if column not in used]
    if not rubrics:
        message = f"no rubric is in all of {listed(patterns)}: they fit {listed(lonely)}"
        raise table.error(message, f"{PLACE} stands for the same text in each")
    names = [PLACE, *patterns, *({*table.columns} - used)]
    refuse_too_many(names * len(rubrics), table.lines, table.file)
    columns: dict[str, list[Any]] = {PLACE: rubrics * len(table.lines)}
    lines = [line for line in table.lines for _ in rubrics]
    for name, cells in table.columns.items():
        if name not in used:
            columns[name] = [cell for cell in cells for _ in rubrics]
    for pattern, of in patterns.items():
        cells_of = [table.columns[of[rubric]] for rubric in rubrics]
        columns[pattern] = [*chain.from_iterable(zip(*cells_of, strict=True))]
    notices = []
    if lonely:
        notices.append(f"Not used, as not all patterns have their rubric: {listed(lonely)}.")
    long = replace(table, lines=lines, columns=columns)
    return long.kept(map(any, long.cells(*patterns)), *notices)

"""The one reader of tables, of labels and of verdicts beside labels: CSV as spreadsheets write it,
JSON, or what another tool writes. And columns that a table has under other names: `human_{rubric}`
is a column for each rubric, and a row becomes one for each of them; `/label/faulty` is a field
further down, `run_id,step` joins two.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from pytest_jrh.core import (
    Fields,
    InputError,
    Json,
    Problem,
    first_problems,
    listed,
    printable,
    shown,
    storable,
)
from pytest_jrh.core.documents import DamagedError, as_text, parsed, pointer_to, read_text
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.sources.columns import PLACE, Table
from pytest_jrh.sources.results import read_results
from pytest_jrh.sources.results.scores import Results

_MOST_BYTES = 128 * 2**20
_MOST_CELLS = 20_000_000
_MOST_COUNTED = 1_000
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
# Rows by which the results of another tool are told.
_LOOKED_AT = 50
_SEPARATORS = (",", ";", "\t")
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_GUARDED = f"'{_FORMULA.pattern}"
# What writes these columns guards its cells; elsewhere a quote is one.
_LABEL_FILE = {"case_id", "rubric_digest"}
_QUOTES = 'put a text with a comma, semicolon, tab or line end in double quotes: "..."'
_NUMBER = r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?"


def read_table(
    path: str | Path,
    needed: Collection[str],
    roles: Collection[tuple[str, str]] = (),
    file: str = "",
) -> Table:
    """Read CSV (commas, semicolons or tabs), JSON lines, a list of JSON objects, or what another
    tool writes.

    `file` is how messages name it, if not by its path. Of another tool's results those scores
    become rows that are `needed`, "label", "verdict" or both, or "text" alone, of the metrics that
    are named behind their `roles`.

    Raises `InputError` for lines that are no rows, and where there is no row or no such score.
    """
    file, path = file or str(path), Path(path)
    if path.suffix.lower() == ".eval":
        raise InputError(
            "is an Inspect log, but a table is needed: CSV, JSON lines or a JSON list",
            file,
            hint="make a table from the log: inspect_ai.analysis.samples_df (docs/tables.md)",
        )
    # An id may have other line ends inside.
    text = read_text(path, file, _MOST_BYTES, as_it_is=True)
    if not text.strip():
        raise InputError("is empty; a table must be CSV, JSON lines or a JSON list", file, 1)
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise InputError("has a NUL character", file, line, hint="save the file again as UTF-8")
    problems: list[Problem] = []
    start = text.lstrip()
    # JSON lines are whole objects; a document is a list, or not whole in its first line.
    is_whole = start.partition("\n")[0].rstrip().endswith("}")
    is_document = start.startswith("[") or (start.startswith("{") and not is_whole)
    is_csv = not start.startswith(("[", "{"))
    # What people quote of runs may hold keys.
    redactor = Redactor(secrets_of())
    if is_csv:
        table = _csv_table(text, file, redactor, problems)
        # What a tool writes has the same columns in all rows.
        rows: list[tuple[int, Fields]] = [*islice(rows_of(table), _LOOKED_AT)]
    else:
        rows = [*_json_rows(text, file, redactor, problems, is_document=is_document)]
    if problems:
        first = first_problems(problems, file)
        if len(problems) > _MOST_COUNTED:
            first.append(Problem("was not read to its end", file))
        raise InputError(first)
    # The entries of one document are in a list of it.
    is_one = is_document or len(rows) == 1
    results = read_results(rows, file, is_document=is_one)
    if results is not None:
        if is_csv:
            results = read_results([*rows_of(table)], file, is_document=is_one) or results
        entries, notices = results.rows(roles, needed)
        return table_of(entries, file, results.path, results, notices)
    if not rows:
        raise InputError("has no rows; the first line of a CSV has the names of the columns", file)
    return table if is_csv else table_of(rows, file, "" if is_document else None)


def table_of(
    rows: Iterable[tuple[int, Fields]],
    file: str,
    path: str | None = None,
    results: Results | None = None,
    notices: Iterable[str] = (),
) -> Table:
    """The table of rows with their numbers."""
    lines, clean_rows = [], []
    names: dict[str, None] = {}
    for line, row in rows:
        clean, _ = storable({name.strip(): value for name, value in row.items()})
        if len(clean) < len(row):
            raise InputError(
                "has two keys with the same name (blanks around a name do not count)", file, line
            )
        names |= dict.fromkeys(clean)
        lines.append(line)
        clean_rows.append(clean)
    refuse_too_many(names, lines, file)
    columns = {}
    for name in names:
        columns[name] = [row.get(name) for row in clean_rows]
    return Table(file, lines, columns, path, results, [*notices])


def refuse_too_many(names: Collection[str], lines: Collection[int], file: str) -> None:
    """Refuse a table that memory cannot hold: a small file may say little of many columns."""
    if len(names) * len(lines) > _MOST_CELLS:
        raise InputError(
            f"the {len(names):,} columns have more than {_MOST_CELLS:,} cells up to this line",
            file,
            max(lines),
            hint="remove the columns that are not needed",
        )


def rows_of(table: Table) -> Iterator[tuple[int, Json]]:
    """The rows of a table as mappings, with their lines."""
    for row, line in enumerate(table.lines):
        yield line, {name: column[row] for name, column in table.columns.items()}


def _csv_table(text: str, file: str, redactor: Redactor, problems: list[Problem]) -> Table:
    """The table of a CSV, in which equal cells are one text."""
    separator = max(_SEPARATORS, key=text.partition("\n")[0].count)
    csv.field_size_limit(_MOST_BYTES)
    # `io.StringIO` would keep four bytes for each character.
    lines_of_text = (match[0] for match in _LINE.finditer(text))
    reader = csv.reader(lines_of_text, delimiter=separator, strict=True)
    names: list[str] = []
    columns: list[list[str | None]] = []
    different: dict[str | None, str | None] = {}
    sheet_rows = {}
    line = 1
    try:
        for number, cells in enumerate(reader, 1):
            if len(problems) > _MOST_COUNTED:
                break
            if not names:
                names = [redactor.text(cell.strip()) for cell in cells]
                columns = [[] for _ in names]
                for name, count in Counter(filter(None, names)).items():
                    if count > 1:
                        problems.append(Problem(f"two columns are called {shown(name)}", file, 1))
            elif len(cells) > len(names):
                problems.append(
                    Problem(
                        f"has {len(cells)} cells, but the table has {len(names)} columns",
                        file,
                        line,
                        hint=_QUOTES,
                    )
                )
            elif any(map(str.strip, cells)):
                sheet_rows[line] = number
                refuse_too_many(names, sheet_rows, file)
                for column, cell in zip_longest(columns, cells):
                    column.append(different.setdefault(cell, cell))
            line = reader.line_num + 1
    except csv.Error as error:
        message = (
            f"is not valid CSV: {printable(error)} (what begins with no {{ or [ is read as CSV)"
        )
        problems.append(Problem(message, file, reader.line_num, hint=_QUOTES))
    texts = []
    is_ours = {*names} >= _LABEL_FILE
    for cell in different:
        is_guarded = is_ours and cell and re.match(_GUARDED, cell)
        texts.append(cell and redactor.text(cell.removeprefix("'") if is_guarded else cell))
    # All at once: each call leaves some memory behind.
    different = dict(zip(different, storable(texts)[0], strict=True))
    of_names = {}
    for name, column in zip(names, columns, strict=True):
        if name:
            of_names[name] = [*map(different.get, column)]
    lines = [*sheet_rows]
    if lines == [*sheet_rows.values()]:
        sheet_rows = {}
    return Table(file, lines, of_names, sheet_rows=sheet_rows)


def guarded(text: str) -> str:
    """A text as a cell that no spreadsheet takes for a formula; what reads it gives it back."""
    if _FORMULA.match(text) and not re.fullmatch(_NUMBER, text):
        return f"'{text}"
    return text


def _json_rows(
    text: str, file: str, redactor: Redactor, problems: list[Problem], *, is_document: bool
) -> Iterator[tuple[int, Fields]]:
    """The objects of JSON lines with their lines, or those of a document, numbered."""
    parts = [text] if is_document else text.split("\n")
    for line, part in enumerate(parts, 1):
        if len(problems) > _MOST_COUNTED:
            return
        if not part.strip():
            continue
        try:
            values = redactor.value(parsed(part))
        except DamagedError as error:
            message = redactor.text(f"{error} (what begins with {{ or [ is read as JSON)")
            problems.append(Problem(message, file, error.line if is_document else line))
            continue
        if not is_document or not isinstance(values, list):
            values = [values]
        for number, value in enumerate(values, line):
            if isinstance(value, dict):
                yield number, value
                continue
            problem = Problem(f"got {shown(value)}; each row must be a JSON object", file, line)
            if is_document:
                problem = replace(problem, line=None, key=f"[{number - 1}]")
            problems.append(problem)


def with_named(
    table: Table, named: Sequence[tuple[str, str]], needed: Collection[str] = ()
) -> Table:
    """The table with what is named behind its role and is no column of it, as far as it has that.

    `needed` says which of "label" and "verdict" it is read for. Raises `InputError` where one of
    these or of the baseline is a pattern, and another none.
    """
    columns = dict(table.columns)
    patterns: dict[str, Mapping[str, str]] = {}
    # What labels have, and what verdicts or the baseline have.
    sides: dict[bool, dict[str, str]] = {}
    for role, name in named:
        if name in columns:
            continue
        if values := _values(table, name):
            columns[name] = values
        elif role in (*needed, "baseline") and (of_rubrics := _of_rubrics(table, name)):
            patterns[name] = of_rubrics
            sides.setdefault(role == "label", {}).update(of_rubrics)
    made = columns.keys() - table.columns.keys()
    table = replace(table, columns=columns, made=made)
    if not patterns:
        return table
    answers = [*named, *((role, "") for role in needed if role not in dict(named))]
    for role, name in answers:
        is_read = role in needed or (role == "baseline" and name in columns)
        if is_read and name not in patterns:
            raise table.error(
                f"--{role}: got {shown(name or None)}; must be a pattern, "
                f"like {listed(map(shown, patterns))}; the columns are "
                f"{listed(map(shown, table.names))}",
                f"name the pattern: --{role} 'NAME_{PLACE}'",
            )
    first, *others = sides.values()
    rubrics = [rubric for rubric in first if all(rubric in of for of in others)]
    return _long(table, patterns, rubrics)


def _values(table: Table, name: str) -> Sequence[Any]:
    """What a column, a pointer, or several of them joined have in each row; nothing where there is
    no such.
    """
    if name in table.columns:
        return table.columns[name]
    if name.startswith("/") and (values := table.at(name)):
        return values
    if "," not in name:
        return ()
    parts = [_values(table, part.strip()) for part in name.split(",")]
    return [*map(_joined, *parts)] if all(parts) else ()


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


def _long(table: Table, patterns: Mapping[str, Mapping[str, str]], rubrics: list[str]) -> Table:
    """The table with a row for each of the rubrics; one without any cell is left out, and columns
    of other rubrics are said. A pattern without a column for a rubric has empty cells there.
    """
    matched = dict.fromkeys(chain.from_iterable(of.values() for of in patterns.values()))
    used = {of.get(rubric) for of in patterns.values() for rubric in rubrics}
    lonely = [column for column in matched if column not in used]
    if not rubrics:
        raise table.error(
            "no rubric has both a column of labels and a column of verdicts: as rubrics, "
            f"{listed(f'{shown(of)} finds {listed(map(shown, patterns[of]))}' for of in patterns)}",
            f"{PLACE} must stand for the same text in each pattern",
        )
    names = [PLACE, *patterns, *({*table.columns} - used)]
    refuse_too_many(names * len(rubrics), table.lines, table.file)
    columns: dict[str, list[Any]] = {PLACE: rubrics * len(table.lines)}
    lines = [line for line in table.lines for _ in rubrics]
    for name, cells in table.columns.items():
        if name not in used:
            columns[name] = [cell for cell in cells for _ in rubrics]
    empty = [None] * len(table.lines)
    for pattern, of in patterns.items():
        cells_of = [table.columns[of[rubric]] if rubric in of else empty for rubric in rubrics]
        columns[pattern] = [*chain.from_iterable(zip(*cells_of, strict=True))]
    notices = []
    if lonely:
        notices.append(
            "Columns not used, because their rubrics have no column of labels, or no column of "
            f"verdicts: {listed(map(shown, lonely))}."
        )
    long = replace(table, lines=lines, columns=columns, made={*table.made, PLACE, *patterns})
    return long.kept(map(any, long.cells(*patterns)), *notices)

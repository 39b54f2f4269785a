"""The one reader of tables, of labels and of verdicts beside labels: CSV as spreadsheets write it,
or JSON; and what a value in them means on the scale of verdicts.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from pytest_jrh.core import frozen
from pytest_jrh.core.documents import (
    DamagedError,
    Fields,
    listed,
    parsed,
    printable,
    read_text,
    received,
    shown,
)
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.scales import Scale
from pytest_jrh.core.text import counted
from pytest_jrh.core.transcript import storable
from pytest_jrh.core.values import as_text, as_word, part_of, whole_number
from pytest_jrh.sources.results import read_results
from pytest_jrh.sources.results.scores import Results

_Rows: TypeAlias = Iterable[tuple[int, Fields]]
_MOST_BYTES = 128 * 2**20
_MOST_COUNTED = 1_000
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
# Rows by which the results of another tool are told.
_LOOKED_AT = 50
_SEPARATORS = (",", ";", "\t")
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_GUARDED = re.compile(f"'{_FORMULA.pattern}")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


@frozen
class Table:
    """A table as it was read, column by column, with the line of each row; a cell that is not there
    is None.

    Of a JSON document `path` is the list of its rows, and `lines` are their numbers. Of another
    tool's `results` it has those rows that are needed; `notices` say what is left out.
    """

    file: str
    lines: Sequence[int]
    columns: Mapping[str, Sequence[Any]]
    path: str | None = None
    results: Results | None = None
    notices: tuple[str, ...] = ()

    def texts(self, column: str) -> list[str]:
        """The values of a column as texts; empty ones where there is no such column."""
        if column not in self.columns:
            return [""] * len(self.lines)
        return [as_text(value) for value in self.columns[column]]

    def rows(self, columns: Fields) -> Iterator[tuple[int, dict[str, str]]]:
        """The texts of each row by the roles of their columns, behind its line."""
        texts = {role: self.texts(name) for role, name in columns.items()}
        for row, line in enumerate(self.lines):
            yield line, {role: column[row] for role, column in texts.items()}

    def problem(
        self, message: str, line: int | None = None, key: str | None = None, hint: str | None = None
    ) -> Problem:
        """What is wrong with a line of the table."""
        if self.path is not None and line is not None:
            # Without a key it is about all columns.
            if key:
                key = f"{self.path}[{line - 1}].{key}"
            line = None
        return Problem(message, self.file, line, key, hint)


def read_table(
    path: Path, file: str, needed: Collection[str], roles: Collection[tuple[str, str]] = ()
) -> Table:
    """Read CSV (commas, semicolons or tabs), JSON lines, a list of JSON objects, or what another
    tool writes.

    `file` is how messages name it. Of another tool's results those scores become rows that are
    `needed`, "label", "verdict" or both, or "text" alone, of the metrics that are named behind
    their `roles`.
    Raises `InputError` for lines that are no rows, and where there is no row or no such score.
    """
    if path.suffix.lower() == ".eval":
        hint = "inspect_ai.analysis.samples_df makes a table of it (docs/check.md)"
        raise InputError("is a log; must be CSV or JSON lines", file, hint=hint)
    # An id may have other line ends inside.
    text = read_text(path, file, _MOST_BYTES, as_it_is=True)
    if not text.strip():
        raise InputError("is empty; must be CSV or JSON lines", file, 1)
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise InputError("has a NUL character", file, line, hint="write the file again, as UTF-8")
    problems: list[Problem] = []
    start = text.lstrip()
    # JSON lines are whole objects; a document is a list, or not whole in its first line.
    is_whole = start.partition("\n")[0].rstrip().endswith("}")
    is_document = start.startswith("[") or (start.startswith("{") and not is_whole)
    # What people quote of runs may hold keys.
    redactor = Redactor(secrets_of(os.environ))
    rows: _Rows
    if is_document or start.startswith("{"):
        rows = list(_json_rows(text, file, problems, is_document=is_document))
        rows = [(line, redactor.value(row)) for line, row in rows]
    else:
        table = _csv_table(text, file, redactor, problems)
        # What a tool writes has the same columns in all rows.
        first_rows = [row for _, row in islice(_rows_of(table), _LOOKED_AT)]
        if not problems and table.lines and read_results(first_rows, [], file) is None:
            return table
        rows = [*_rows_of(table)]
    if problems:
        raise InputError(first_problems(problems, file))
    lines, values = [line for line, _ in rows], [row for _, row in rows]
    if is_document or len(values) == 1:
        # The entries of one document are in a list of it.
        lines = []
    results = read_results(values, lines, file)
    if results is None:
        if not values:
            raise InputError("has no row below the names of the columns", file)
        return replace(table_of(rows, file), path="" if is_document else None)
    return _table_of_results(results, file, needed, roles)


def _table_of_results(
    results: Results, file: str, needed: Collection[str], roles: Collection[tuple[str, str]]
) -> Table:
    entries, notices = results.rows(roles, needed)
    path: str | None = results.path
    rows = [(index + 1, row) for index, row in entries]
    if results.lines:
        path = None
        rows = [(results.lines[index], row) for index, row in entries]
    table = replace(table_of(rows, file), path=path, results=results, notices=tuple(notices))
    if not entries:
        raise results.without_labels(file)
    return table


def table_of(rows: _Rows, file: str) -> Table:
    """The table of rows with their numbers."""
    lines, clean_rows = [], []
    names: dict[str, None] = {}
    for line, row in rows:
        clean, _ = storable({name.strip(): value for name, value in row.items()})
        if len(clean) < len(row):
            raise InputError("has a column twice", file, line)
        names |= dict.fromkeys(clean)
        lines.append(line)
        clean_rows.append(clean)
    columns = {}
    for name in names:
        columns[name] = [row.get(name) for row in clean_rows]
    return Table(file, lines, columns)


def first_problems(problems: Sequence[Problem], file: str) -> list[Problem]:
    """The first problems of a file, as many as a person reads, and how many more there are."""
    left_out = len(problems) - MOST_PROBLEMS
    if left_out <= 0:
        return [*problems]
    return [*problems[:MOST_PROBLEMS], Problem(f"and {counted(left_out, 'more problem')}", file)]


def _refuse_many(problems: Sequence[Problem], file: str) -> None:
    """Read no further where nearly every line is a problem: a large file has millions of them."""
    if len(problems) >= _MOST_COUNTED:
        unread = Problem("what follows was not read", file)
        raise InputError([*first_problems(problems, file), unread])


def _rows_of(table: Table) -> _Rows:
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
    different: dict[str, str] = {}
    lines = []
    line = 1
    try:
        for cells in reader:
            _refuse_many(problems, file)
            if not names:
                names = [redactor.text(cell.strip()) for cell in cells]
                columns = [[] for _ in names]
                for name, count in Counter(filter(None, names)).items():
                    if count > 1:
                        problems.append(Problem(f"duplicate column {shown(name)}", file, 1))
            elif len(cells) > len(names):
                message = f"has {len(cells)} cells, and there are {len(names)} columns"
                hint = 'put a text with a separator in it between double quotes: "..."'
                problems.append(Problem(message, file, line, hint=hint))
            elif any(map(str.strip, cells)):
                lines.append(line)
                for column, cell in zip_longest(columns, cells):
                    column.append(None if cell is None else different.setdefault(cell, cell))
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"is not valid CSV: {printable(str(error))}"
        problems.append(Problem(message, file, reader.line_num))
    texts = []
    for cell in different:
        texts.append(redactor.text(cell.removeprefix("'") if _GUARDED.match(cell) else cell))
    # All at once: each call leaves some memory behind.
    different = dict(zip(different, storable(texts)[0], strict=True))
    of_names: dict[str, list[str | None]] = {}
    for name, column in zip(names, columns, strict=True):
        if name:
            of_names[name] = [None if cell is None else different[cell] for cell in column]
    return Table(file, lines, of_names)


def guarded(text: str) -> str:
    """A text as a cell that no spreadsheet takes for a formula; what reads it gives it back."""
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def _json_rows(
    text: str, file: str, problems: list[Problem], *, is_document: bool
) -> Iterator[tuple[int, Fields]]:
    """The objects of JSON lines with their lines, or those of a document, numbered."""
    parts = [text] if is_document else text.split("\n")
    for line, part in enumerate(parts, 1):
        _refuse_many(problems, file)
        if not part.strip():
            continue
        try:
            values = parsed(part)
        except DamagedError as error:
            problems.append(Problem(str(error), file, error.line if is_document else line))
            continue
        if not is_document or not isinstance(values, list):
            values = [values]
        for number, value in enumerate(values, line):
            if isinstance(value, dict):
                yield number, value
                continue
            problem = Problem(f"got {shown(value)}; must be a JSON object", file, line)
            if is_document:
                problem = replace(problem, line=None, key=f"[{number - 1}]")
            problems.append(problem)


BARE: Mapping[str, int] = {"0": 0, "1": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
"""Values that mean nothing until a column's name, or an option, says what 1 is."""
CANNOT_TELL = "cannot tell"


class NoLabelError(ValueError):
    """A value that is no label."""


def label_value(raw: object, scale: Scale) -> int:
    """Read a label: the number of a level, or a word for an answer.

    Raises `NoLabelError` with what may stand there.
    """
    number = whole_number(raw)
    if scale.is_ordered:
        lowest, *_, highest = scores = scale.scores
        part = part_of(raw)
        if part is not None and part[1] == highest:
            number = part[0]
        expected = f"a score from {lowest} to {highest}"
        score = None
        if number in scores:
            score = number
    else:
        *first_words, last_word = scale.label_words
        expected = f"{', '.join(first_words)} or {last_word}"
        score = scale.label_words.get(as_word(raw))
    if score is not None:
        return score
    if not as_text(raw):
        raise NoLabelError(f"the label is empty; must be {expected}")
    raise NoLabelError(received(raw, expected))


def mapped(raw: object, mapping: Fields) -> Any:
    """What a `map` makes of a value; a number is found however it is written.

    Raises `NoLabelError` for one that is not in it.
    """
    by_word = {as_word(word): value for word, value in mapping.items()}
    word = as_word(raw)
    if word in by_word:
        return by_word[word]
    raise NoLabelError(f"got {shown(raw)}; the keys of map are {listed(mapping)}")


ROLES: Mapping[str, str] = {
    "label": "label human gold target expected human_label gold_label true_label ground_truth",
    "verdict": "verdict judge score prediction predicted pred judgment judgement grade "
    "judge_verdict judge_score judge_label model_label",
    "judge": "",
    "case": "case case_id id sample_id transcript_id example_id example",
    "rubric": "rubric rubric_id criterion criteria",
    "cluster": "cluster run run_id task task_id item item_id",
    "epoch": "epoch",
    "annotator": "annotator",
    "repeat": "repeat replicate",
    "reasoning": "reasoning rationale explanation reason",
    "baseline": "",
}
"""What columns are taken for, and the names that they may have, whatever their case."""

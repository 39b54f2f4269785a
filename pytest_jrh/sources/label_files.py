"""The lines of label files: CSV as spreadsheets write it, or JSON lines.

Nothing is left out in silence: what cannot be read is a problem with its line, and columns that
mean nothing here are named.

What a label means: its value on the scale of verdicts.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import (
    MAX_BYTES,
    DamagedError,
    listed,
    parsed,
    printable,
    read_text,
    shown,
)
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.text import counted, nearest, nearest_hint
from pytest_jrh.core.transcript import storable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "run_id": ("run_id", "id"),
    "rubric_id": ("rubric_id",),
    "label": ("label", "target"),
    "epoch": ("epoch",),
    "annotator": ("annotator",),
    "split": ("split",),
    "note": ("note",),
    "step": ("step", "steps"),
}
"""The columns of a label file, each with the names that it may have."""
_NAMES = tuple(chain.from_iterable(COLUMNS.values()))
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "run_id": ("run", "case", "case_id", "sample", "sample_id", "transcript_id", "uuid"),
    "label": ("verdict", "human", "human_label", "gold", "gold_label", "expected", "ground_truth"),
    "annotator": ("labeler", "labeller", "rater", "reviewer", "person"),
    "rubric_id": ("rubric", "criterion"),
}
"""Names that people give to these columns, and that are none of theirs here."""
_NEEDED = ("run_id", "label")
_SEPARATORS = (",", ";", "\t")
_SHEET = "PK"
# Each line of JSON lines has its columns, and most have the same.
_nearest = lru_cache(maxsize=1_000)(nearest)


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One line: who says what of which run, and where it stands.

    `steps` are the turns that a label is about.
    """

    run_id: str
    label: Any
    rubric_id: str = ""
    epoch: int | None = None
    annotator: str = ""
    split: str = ""
    line: int = 1
    note: str = ""
    steps: tuple[int, ...] = ()


@dataclass(slots=True)
class LabelFile:
    """The rows of a file, what is wrong with others, and the columns that mean nothing here."""

    file: str
    rows: list[LabelRow] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unused: dict[str, None] = field(default_factory=dict)

    def problem(
        self, message: str, line: int, key: str | None = None, hint: str | None = None
    ) -> None:
        """Add what is wrong with a line."""
        self.problems.append(Problem(message, self.file, line, key, hint))


def first_problems(problems: Sequence[Problem], file: str, where: str = "") -> list[Problem]:
    """The first problems of a file, as many as a person reads, and how many more there are; `where`
    says in what.
    """
    left_out = len(problems) - MOST_PROBLEMS
    if left_out <= 0:
        return list(problems)
    more = f"and {counted(left_out, 'more problem')}"
    last = Problem(f"{more} in {where}" if where else more, file)
    return [*problems[:MOST_PROBLEMS], last]


def read_rows(
    path: Path,
    file: str,
) -> LabelFile:
    """Read a label file: CSV (commas, semicolons or tabs), or JSON lines where it begins with `{`.

    `file` is how messages name it. What is wrong with a line is in `problems`; raises `InputError`
    for a file that cannot be read at all.
    """
    text = storable(table_text(path, file))[0]
    if not text.strip():
        raise InputError(Problem(f"is empty; must have the columns {' and '.join(_NEEDED)}", file))
    table = LabelFile(file)
    if is_json_lines(text):
        _read_json_lines(text, table)
    else:
        _read_csv(text, table)
    if not table.rows and not table.problems:
        table.problem("has no label: there is no line below the names of the columns", 1)
    return table


def table_text(path: Path, file: str, limit: int = MAX_BYTES) -> str:
    """The text of a table of at most `limit` bytes.

    Raises `InputError` for a file that cannot be read at all.
    """
    try:
        return read_text(path, file, limit)
    except InputError as error:
        raise _with_format(error, path) from None


def is_json_lines(text: str) -> bool:
    """Whether the text of a table is JSON lines, not CSV."""
    return text.lstrip().startswith("{")


def _with_format(error: InputError, path: Path) -> InputError:
    """Say of a spreadsheet's own file what to save it as."""
    # Unlike the path's own question, false of a name that is too long for a file.
    if not os.path.isfile(path):  # noqa: PTH113
        # A pipe would wait for who writes into it.
        return error
    try:
        with path.open("rb") as opened:
            is_sheet = opened.read(2) == _SHEET.encode()
    except OSError:
        return error
    if not is_sheet:
        return error
    problem = error.problems[0]
    return InputError(
        Problem("is a spreadsheet; must be CSV or JSON lines", problem.file, hint="save it as CSV")
    )


def _read_csv(text: str, table: LabelFile) -> None:
    names: Sequence[str] | None = None
    for line, cells in read_cells(text, table, _NAMES):
        if names is None:
            names = _heads(cells, table, line)
            if names is None:
                return
        else:
            _add(dict(zip(names, cells, strict=False)), table, line)


def read_cells(
    text: str, table: LabelFile, names: Collection[str]
) -> Iterator[tuple[int, list[str]]]:
    """The rows of CSV, each with its line: first the names of the columns, then those that are not
    blank; what cannot be read is a problem of the table.

    The separator is that which finds most of `names` in the first line.
    """
    lines, start = text.splitlines(keepends=True), 0
    if lines[0].strip().casefold().startswith("sep=") and len(lines) > 1:
        # What Excel puts before the names of the columns.
        start = 1

    def columns_by(separator: str) -> tuple[int, int]:
        cells = lines[start].split(separator)
        known_names = {cell.strip().strip('"').casefold() for cell in cells} & {*names}
        return len(known_names), len(cells)

    separator = max(_SEPARATORS, key=columns_by)
    reader = csv.reader(
        io.StringIO("".join(lines[start:]), newline=""), delimiter=separator, strict=True
    )
    width = 0
    line = start + 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            table.problem(f"is not valid CSV: {printable(str(error))}", start + reader.line_num)
            return
        if cells is None:
            return
        if not width:
            width = len(cells)
            yield line, cells
        elif len(cells) > width and any(cell.strip() for cell in cells):
            table.problem(
                f"has {len(cells)} cells, and there are {width} columns",
                line,
                hint='put a text with a separator in it between double quotes: "..."',
            )
        elif any(cell.strip() for cell in cells):
            yield line, cells
        line = start + reader.line_num + 1


def _heads(cells: Sequence[str], table: LabelFile, line: int) -> list[str] | None:
    """The meanings of the columns, by place; None, with the problems, where they cannot be used."""
    before = len(table.problems)
    names = [cell.strip() for cell in cells]
    meanings = _meanings(names, table, line)
    return [meanings.get(name, name) for name in names] if len(table.problems) == before else None


def _meanings(names: Sequence[str], table: LabelFile, line: int) -> dict[str, str]:
    """What each name that means something stands for; problems where they cannot be used."""
    meanings: dict[str, str] = {}
    unknown: list[str] = []
    for name in names:
        meaning = _meaning(name)
        if meaning is None:
            unknown.append(name)
        elif meaning in meanings.values():
            both = next(first_name for first_name, taken in meanings.items() if taken == meaning)
            message = f"the columns {shown(both)} and {shown(name)} mean the same"
            duplicate = f"duplicate column {shown(name)}"
            table.problem(message if both != name else duplicate, line)
        else:
            meanings[name] = meaning
    for needed in _NEEDED:
        if needed not in meanings.values():
            names_of_column = COLUMNS[needed]
            needed_names = " or ".join(names_of_column)
            close = _nearest_column(needed, unknown)
            hint = f"rename {close} to {names_of_column[0]}" if close else None
            table.problem(
                f"has no column {needed_names}; its columns are {listed(names)}", line, hint=hint
            )
    for name in unknown:
        close = _nearest(name, _NAMES, 0.8)
        close_meaning = _meaning(close) if close else None
        if close_meaning is not None and close_meaning not in (*_NEEDED, *meanings.values()):
            table.problem(f"unknown column {shown(name)}", line, hint=f"{close} is the nearest")
    table.unused.update(dict.fromkeys(name for name in unknown if name))
    return meanings


def _nearest_column(needed: str, unknown: Sequence[str]) -> str | None:
    """The column that is most likely the one that is needed: by another name that people give it,
    else by a similar one that is not another name of another column.
    """
    taken: set[str] = set()
    for column, other_names in _OTHER_NAMES.items():
        named_so = [name for name in unknown if name.casefold() in other_names]
        if column == needed and named_so:
            return named_so[0]
        taken.update(named_so)
    candidates = (name for name in unknown if name not in taken)
    names = COLUMNS[needed]
    return next((name for name in candidates if _nearest(name, names)), None)


def _meaning(name: str) -> str | None:
    lowered = name.casefold()
    return next((column for column, names in COLUMNS.items() if lowered in names), None)


def _read_json_lines(text: str, table: LabelFile) -> None:
    for line, value in read_objects(text, table):
        before = len(table.problems)
        meanings = _meanings(list(value), table, line)
        if len(table.problems) == before:
            _add({meanings[name]: value[name] for name in meanings}, table, line)


def read_objects(text: str, table: LabelFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines, each with its line; any other line is a problem of the file."""
    for line, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        try:
            value = parsed(row)
        except DamagedError as error:
            table.problem(str(error), line)
            continue
        if isinstance(value, dict):
            yield line, value
        else:
            table.problem(f"got {shown(value)}; must be a JSON object", line)


def _add(values: Mapping[str, Any], table: LabelFile, line: int) -> None:
    """Add a row, or say what is wrong with it."""
    before = len(table.problems)

    def text(column: str) -> str:
        value = values.get(column)
        if value is None:
            return ""
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value).strip()
        table.problem(f"got {shown(value)}; must be text", line, column)
        return ""

    run_id, label = text("run_id"), values.get("label")
    epoch = _epoch(values.get("epoch"), table, line)
    if not run_id and len(table.problems) == before:
        table.problem("the id of the run is empty", line, "run_id")
    if isinstance(label, dict | list):
        table.problem(f"got {shown(label)}; must be one value", line, "label")
    row = LabelRow(
        run_id,
        label,
        rubric_id=text("rubric_id"),
        epoch=epoch,
        annotator=text("annotator"),
        split=text("split"),
        line=line,
        note=_plain_text(values.get("note")),
        steps=_steps(values.get("step"), table),
    )
    if len(table.problems) == before:
        table.rows.append(row)


def _epoch(value: Any, table: LabelFile, line: int) -> int | None:
    """The epoch of a row; None where there is none, or with the problem."""
    if value is None or value == "":
        return None
    number = value
    if isinstance(value, str):
        written = value.strip()
        if not written:
            return None
        is_number = written.isascii() and written.isdigit() and len(written) < 10  # noqa: PLR2004 - digits
        number = int(written) if is_number else None
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return number
    table.problem(f"got {shown(value)}; must be an integer >= 0", line, "epoch")
    return None


def _plain_text(value: Any) -> str:
    """What is said beside a value; nothing where it is no text, since nothing rests on it."""
    return value.strip() if isinstance(value, str) else ""


def _steps(value: Any, table: LabelFile) -> tuple[int, ...]:
    """The whole numbers in a column `step`: one, or several between commas. Where it holds anything
    else it means something else, and is named among the columns that mean nothing here.
    """
    steps = step_numbers(value)
    if steps is None:
        table.unused["step"] = None
    return steps or ()


_MOST_STEPS = 100
_STEPS = re.compile(r"\s*\d{1,5}(?:\s*[,;]\s*\d{1,5})*+\s*", re.ASCII)


def step_numbers(value: Any) -> tuple[int, ...] | None:
    """The numbers of turns that a value names; none where it is empty, None where it is no list of
    numbers.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    if isinstance(value, str) and _STEPS.fullmatch(value.strip("[] \t")):
        value = [int(number) for number in re.split("[,;]", value.strip("[] \t"))]
    numbers = value if isinstance(value, list) else [value]
    steps = [whole_number(number) for number in numbers[:_MOST_STEPS]]
    if any(isinstance(number, bool) for number in numbers) or None in steps:
        return None
    return tuple(step for step in steps if step is not None and step >= 0)


WORDS: Mapping[str, int] = {
    "0": 0,
    "1": 1,
    "false": 0,
    "true": 1,
    "pass": 0,
    "fail": 1,
    "satisfied": 0,
    "violated": 1,
}
"""What a binary label may be, whatever its case: 1 is violated, 0 is satisfied."""
_LONGEST_NUMBER = 20


class NoLabelError(ValueError):
    """A value that is no label, and the texts of which one was most likely meant."""

    def __init__(self, message: str, text: str = "", choices: Collection[str] = ()) -> None:
        super().__init__(message)
        self._text = text
        self._choices = choices

    @property
    def hint(self) -> str | None:
        """The nearest of the choices, looked for where it is asked for."""
        return nearest_hint(self._text, self._choices)


def label_value(raw: object, scale: Sequence[int], words: Mapping[str, int] = WORDS) -> int:
    """Read a label: on the `scale` of an ordinal rubric its score, else (empty) one of `words`.

    Raises `NoLabelError` with what may stand there.
    """
    text = as_text(raw)
    if not text:
        raise NoLabelError(f"the label is empty; must be {_expected(scale, words)}")
    number = whole_number(raw)
    if scale:
        if number in scale and not isinstance(raw, bool):
            return int(number or 0)
        raise NoLabelError(f"got {shown(raw)}; must be {_expected(scale, words)}")
    score = words.get(text.casefold(), words.get(str(number)))
    if score is None:
        raise NoLabelError(f"got {shown(raw)}; must be {_expected(scale, words)}", text, words)
    return score


def mapped(raw: object, mapping: Mapping[str, Any], key: str = "map") -> Any:
    """What a `map`, the `key` of the config, makes of a value; a number is found however it is
    written.

    Raises `NoLabelError` for one that is not in it.
    """
    text = as_text(raw)
    if text in mapping:
        return mapping[text]
    number = _number(raw)
    for written, value in mapping.items():
        if number is not None and number == _number(written):
            return value
    message = f"got {shown(raw)}; the keys of {key} are {listed(mapping)}"
    raise NoLabelError(message, text, mapping)


def as_text(raw: object) -> str:
    """A value as the key of a mapping in YAML would be written."""
    match raw:
        case None:
            return ""
        case bool():
            return "true" if raw else "false"
        case _:
            return str(raw).strip()


def _expected(scale: Sequence[int], words: Iterable[str]) -> str:
    if scale:
        return f"a score from {scale[0]} to {scale[-1]}"
    *first_words, last = words
    return f"{', '.join(first_words)} or {last}"


def _number(raw: object) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    try:
        if isinstance(raw, str) and len(raw) > _LONGEST_NUMBER:
            return None
        number = float(raw)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def whole_number(raw: object) -> int | None:
    """A value as an integer, also as a spreadsheet writes one, `1.0`; None where it is none."""
    number = _number(raw)
    return int(number) if number is not None and number.is_integer() else None

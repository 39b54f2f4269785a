"""The one reader of tables, be it labels of runs or verdicts beside labels: CSV as spreadsheets
write it, or JSON lines; and what a value in them means on the scale of verdicts.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import DamagedError, listed, parsed, printable, read_text, shown
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.text import counted
from pytest_jrh.core.transcript import storable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


LEDGER_FORMAT = 2
"""What the lines of a session's ledger say they are."""
_MOST_BYTES = 128 * 2**20
_SEPARATORS = (",", ";", "\t")
_BLANKS = re.compile(r"[\s-]+")
_WHOLE = re.compile(r"([+-]?\d{1,18})(\.0*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was read, column by column, with the line of each row; a cell that is not there
    is None.
    """

    file: str
    lines: Sequence[int]
    columns: Mapping[str, Sequence[Any]]

    def texts(self, column: str) -> list[str]:
        """The values of a column as texts; empty ones where there is no such column."""
        if column not in self.columns:
            return [""] * len(self.lines)
        return [as_text(value) for value in self.columns[column]]

    def named(self, names: Collection[str]) -> list[str]:
        """The columns with one of these names, in any case, with blanks or hyphens for `_`."""
        return [name for name in self.columns if _BLANKS.sub("_", name.casefold()) in names]

    def problem(
        self, message: str, line: int | None = None, key: str | None = None, hint: str | None = None
    ) -> Problem:
        """What is wrong with a line of the table."""
        return Problem(message, self.file, line, key, hint)


def read_table(path: Path, file: str) -> Table:
    """Read CSV (commas, semicolons or tabs), or JSON lines where it begins with `{`.

    `file` is how messages name it. Raises `InputError` for lines that are no rows, and where there
    is none.
    """
    if path.suffix.lower() == ".eval":
        hint = "inspect_ai.analysis.samples_df makes a table of it (docs/labels.md)"
        raise InputError(Problem("is a log; must be CSV or JSON lines", file, hint=hint))
    text = read_text(path, file, _MOST_BYTES)
    if not text.strip():
        raise InputError(Problem("is empty; must be CSV or JSON lines", file, 1))
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise InputError(Problem("has a NUL character; must be CSV or JSON lines", file, line))
    text = storable(text)[0]
    problems: list[Problem] = []
    if text.lstrip().startswith("{"):
        objects = read_objects(text, file, problems)
        table = table_of(((line, row) for line, read in objects for row in _rows(read)), file)
    else:
        table = _csv_table(text, file, problems)
    if not table.lines and not problems:
        problems.append(table.problem("has no row below the names of the columns", 1))
    if problems:
        raise InputError(first_problems(problems, file))
    return table


def _rows(read: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rows of a line: it is one, or of a ledger one for each verdict."""
    scores = read.get("scores", [])
    if read.get("format") != LEDGER_FORMAT or not isinstance(scores, list):
        yield read
        return
    row = {name: read.get(name) for name in ("case_id", "rubric_id", "epoch", "judge", "label")}
    row["cluster"] = read.get("cluster") or read.get("run_id")
    reasons = read.get("reasons")
    # Those of a case that another failure ended are no verdicts.
    if isinstance(read.get("why"), dict) and "kind" in read["why"]:
        scores = []
    for repeat, score in enumerate(scores or [None]):
        reasoning = reasons[repeat] if isinstance(reasons, list) and reasons[repeat:] else ""
        yield {**row, "repeat": repeat, "verdict": score, "reasoning": reasoning}


def table_of(rows: Iterable[tuple[int, Mapping[str, Any]]], file: str) -> Table:
    """The table of rows with their numbers."""
    numbered = list(rows)
    names = dict.fromkeys(chain.from_iterable(row for _, row in numbered))
    columns = {}
    for name in names:
        cells = [storable(row.get(name))[0] for _, row in numbered]
        columns[storable(name)[0].strip()] = cells
    return Table(file, [line for line, _ in numbered], columns)


def first_problems(problems: Sequence[Problem], file: str) -> list[Problem]:
    """The first problems of a file, as many as a person reads, and how many more there are."""
    left_out = len(problems) - MOST_PROBLEMS
    if left_out <= 0:
        return list(problems)
    more = f"and {counted(left_out, 'more problem')}"
    return [*problems[:MOST_PROBLEMS], Problem(more, file)]


def _csv_table(text: str, file: str, problems: list[Problem]) -> Table:
    separator = max(_SEPARATORS, key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    names: list[str] = []
    lines: list[int] = []
    rows: list[list[str]] = []
    line = 1
    try:
        for cells in reader:
            if not names:
                names = [cell.strip() for cell in cells]
            elif len(cells) > len(names):
                message = f"has {len(cells)} cells, and there are {len(names)} columns"
                hint = 'put a text with a separator in it between double quotes: "..."'
                problems.append(Problem(message, file, line, hint=hint))
            elif any(map(str.strip, cells)):
                lines.append(line)
                rows.append(cells)
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"is not valid CSV: {printable(str(error))}"
        problems.append(Problem(message, file, reader.line_num))
    for name, count in Counter(filter(None, names)).items():
        if count > 1:
            problems.append(Problem(f"duplicate column {shown(name)}", file, 1))
    columns = {name: cells for name, *cells in zip_longest(names, *rows) if name}
    return Table(file, lines, columns)


def read_objects(
    text: str, file: str, problems: list[Problem]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines, each with its line; any other line is a problem of the file."""
    for line, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        try:
            value = parsed(row)
        except DamagedError as error:
            problems.append(Problem(str(error), file, line))
            continue
        if isinstance(value, dict):
            yield line, value
        else:
            problems.append(Problem(f"got {shown(value)}; must be a JSON object", file, line))


_PAIRS = "0 1 false true pass fail satisfied violated good bad correct incorrect c i"
WORDS: Mapping[str, int] = {word: index % 2 for index, word in enumerate(_PAIRS.split())}
"""What a binary label may be, whatever its case: 1 is violated, 0 is satisfied; C and I are
Inspect's."""


class NoLabelError(ValueError):
    """A value that is no label."""


def label_value(raw: object, scale: Sequence[int]) -> int:
    """Read a label: on the `scale` of an ordinal rubric its score, else (empty) one of `WORDS`.

    Raises `NoLabelError` with what may stand there.
    """
    number = whole_number(raw)
    if scale:
        expected = f"a score from {scale[0]} to {scale[-1]}"
        score = number if number in scale else None
    else:
        *first_words, last_word = WORDS
        expected = f"{', '.join(first_words)} or {last_word}"
        score = WORDS.get(as_word(raw))
    if score is not None:
        return score
    got = f"got {shown(raw)}" if as_text(raw) else "the label is empty"
    raise NoLabelError(f"{got}; must be {expected}")


def mapped(raw: object, mapping: Mapping[str, Any]) -> Any:
    """What a `map` makes of a value; a number is found however it is written.

    Raises `NoLabelError` for one that is not in it.
    """
    by_word = {as_word(word): value for word, value in mapping.items()}
    word = as_word(raw)
    if word in by_word:
        return by_word[word]
    raise NoLabelError(f"got {shown(raw)}; the keys of map are {listed(mapping)}")


def as_text(raw: object) -> str:
    """A value as the key of a mapping in YAML would be written."""
    if raw is None:
        return ""
    return str(raw).lower() if isinstance(raw, bool) else str(raw).strip()


def as_word(raw: object) -> str:
    """A value in small letters, and a whole number without a decimal point."""
    number = whole_number(raw)
    return as_text(raw).casefold() if number is None else str(number)


def whole_number(raw: object) -> int | None:
    """A value as an integer, also as a spreadsheet writes one, `1.0`; None where it is none."""
    number = _WHOLE.fullmatch(as_text(raw))
    return int(number[1]) if number else None

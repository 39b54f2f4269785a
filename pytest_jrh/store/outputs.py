"""The files that a suite leaves, written one by one: what cannot be written does not stop the
others. Tables are for people and notebooks, CSV or XLSX.

Cells of tables are hostile: what a spreadsheet would run as a formula is prefixed with `'`, ANSI
sequences and control characters are dropped, and XLSX cells are cut at the limit of the format.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.core.files import atomic_write, encoded
from pytest_jrh.core.ids import CASES_FILE
from pytest_jrh.core.text import plain
from pytest_jrh.store.records import json_value
from pytest_jrh.store.spools import RecordIndex

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.errors import InputError
    from pytest_jrh.core.redact import Redactor


class Outputs:
    """What a suite leaves: `problems` are sentences about files that could not be written.

    `failed` says that something is missing on the disk that should be there. `records` says where
    the cases of this session lie, rejected ones too; without a JSONL that is in the spools.
    `record_files` has all records of each file that was written, those of other suites too.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.problems: list[str] = []
        self.failed = False
        self.records = RecordIndex()
        self.record_files: dict[Path, RecordIndex] = {}

    def problem(self, sentence: str) -> None:
        """Report what is missing on the disk."""
        self.failed = True
        self.problems.append(self.redactor.text(sentence))

    def write(self, path: Path, text: bytes | str) -> None:
        """Write a file."""
        try:
            atomic_write(path, text)
        except OSError as error:
            self.problem(f"{path} was not written: {cause(error)}.")

    def write_json(self, path: Path, value: Any, *, sort: bool = False) -> None:
        """Write a value as JSON, without secrets."""
        clean = self.redactor.value(json_value(value))
        text = json.dumps(clean, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=sort)
        self.write(path, text + "\n")


def cause(error: OSError | InputError) -> str:
    """Say why a file could not be read or written, without its name."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def decisions_path(output_dir: Path) -> Path:
    """Where the decisions about the cases of a test's folder are kept."""
    return output_dir / "review" / "decisions.jsonl"


def has_decisions(suite: Suite) -> bool:
    """Whether anybody has ever decided about cases of this suite's folders."""
    return any(decisions_path(test.output_dir).exists() for test in suite.tests)


TableRow: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Sequence[str]

XLSX_CELL = 32_767
_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def table_bytes(suffix: str, columns: Columns, rows: Iterable[TableRow]) -> bytes:
    """A table with a header, in the format of a file's suffix, `.csv` or `.xlsx`."""
    lines: list[list[Any]] = [[*columns]]
    for row in rows:
        lines.append([cell(row.get(column)) for column in columns])
    if suffix == ".xlsx":
        return _xlsx(lines)
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return encoded(buffer.getvalue())


def cell(value: Any) -> str | int | float | bool | None:
    """Give a value as a spreadsheet may hold it: numbers stay numbers, no text is a formula."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = str(value)
    if not text.isprintable():
        text = plain(text)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def fitted(text: str) -> str:
    """Cut a text to what an XLSX cell holds (32,767 UTF-16 units), ending in a
    note that says so.
    """
    units = text.encode("utf-16-le", "replace")
    if len(units) <= 2 * XLSX_CELL:
        return text
    note = f" [... cut: {len(text):,} characters in all; CSV and {CASES_FILE} hold the whole]"
    return units[: 2 * (XLSX_CELL - len(note))].decode("utf-16-le", "ignore") + note


def _xlsx(lines: Iterable[Sequence[Any]]) -> bytes:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("results")
    sheet.freeze_panes = "A2"
    for line in lines:
        sheet.append([fitted(value) if isinstance(value, str) else value for value in line])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()

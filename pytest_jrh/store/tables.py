"""The tables for people and notebooks, CSV or XLSX.

Cells are hostile: what a spreadsheet would run as a formula is prefixed with `'`, ANSI sequences
and control characters are dropped, and XLSX cells are cut at the limit of the format.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pytest_jrh.core.files import encoded
from pytest_jrh.core.ids import CASES_FILE
from pytest_jrh.core.text import plain

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

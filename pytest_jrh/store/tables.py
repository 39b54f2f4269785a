"""The tables for people and notebooks, CSV or XLSX, written row by row.

Cells are hostile: what a spreadsheet would run as a formula is prefixed with `'`, ANSI sequences
and control characters are dropped, and XLSX cells are cut at the limit of the format. Where one
table cannot be written, the others go on.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.core.files import encoded, replacing
from pytest_jrh.core.ids import CASES_FILE
from pytest_jrh.core.text import plain

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.store.outputs import Outputs


TableRow: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Sequence[str]
AddRow: TypeAlias = Callable[[TableRow], None]

XLSX_CELL = 32_767
_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


@contextlib.contextmanager
def open_table(path: Path, columns: Columns) -> Iterator[AddRow]:
    """Open a table in the format of the path's suffix; it replaces an older one when the block ends
    well.

    Rows are written as they come, none is kept. Raises `OSError` as it comes.
    """
    with replacing(path) as file:
        if path.suffix == ".xlsx":
            with _xlsx(file, columns) as add:
                yield add
        else:
            yield _csv(file, columns)


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


def _csv(file: IO[bytes], columns: Columns) -> AddRow:
    def add(row: TableRow) -> None:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow([cell(row.get(column)) for column in columns])
        file.write(encoded(buffer.getvalue()))

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    add(dict(zip(columns, columns, strict=True)))
    return add


@contextlib.contextmanager
def _xlsx(file: IO[bytes], columns: Columns) -> Iterator[AddRow]:
    from openpyxl import Workbook
    from openpyxl.writer.excel import ExcelWriter

    book = Workbook(write_only=True)
    sheet = book.create_sheet("results")
    sheet.freeze_panes = "A2"

    def add(row: TableRow) -> None:
        cells = [cell(row.get(column)) for column in columns]
        sheet.append([fitted(value) if isinstance(value, str) else value for value in cells])

    try:
        add(dict(zip(columns, columns, strict=True)))
        yield add
    except BaseException:
        # Ends openpyxl's own generator now; left to the garbage collector it complains on stderr.
        with contextlib.suppress(OSError, ValueError):
            sheet.close()
        raise
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)
    try:
        ExcelWriter(book, archive).save()
    except BaseException:
        # Likewise: an archive that a full disk cut short complains when it is collected.
        with contextlib.suppress(OSError, ValueError):
            archive.close()
        raise


class Sink:
    """A table that, once it cannot be written, says so and takes no more rows."""

    def __init__(self, path: Path, columns: Columns, outputs: Outputs) -> None:
        self._path = path
        self._columns = columns
        self._outputs = outputs
        self._open = contextlib.ExitStack()
        self._add: Callable[[TableRow], None] | None = None

    def __enter__(self) -> Sink:
        try:
            self._add = self._open.enter_context(open_table(self._path, self._columns))
        except OSError as error:
            self._fail(error)
        return self

    def __call__(self, row: TableRow) -> None:
        if self._add is None:
            return
        try:
            self._add(self._outputs.redactor.value(row))
        except OSError as error:
            self._fail(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: Any
    ) -> None:
        if self._add is None:
            return
        try:
            self._open.__exit__(kind, error, trace)
        except OSError as failure:
            self._fail(failure)
        else:
            self._outputs.paths.append(self._path)

    def _fail(self, error: OSError) -> None:
        self._add = None
        # The open table gets the error, removes its temporary file, and raises the error again.
        with contextlib.suppress(OSError):
            self._open.__exit__(type(error), error, error.__traceback__)
        self._outputs.problem(f"{self._path} was not written: {error.strerror or error}.")

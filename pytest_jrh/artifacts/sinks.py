"""Tables that are written row by row beside others, which go on where one of them cannot."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from pytest_jrh.artifacts.tables import open_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_jrh.artifacts.outputs import Outputs
    from pytest_jrh.artifacts.tables import Columns, TableRow


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

"""Tables that are written row by row beside others, which go on where one of them cannot."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol

from pytest_jrh.artifacts.tables import Row, open_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_jrh.redact import Redactor


class Work(Protocol):
    """What the tables belong to: `paths` are the files that are there, and a `problem` is one that
    is not.
    """

    redactor: Redactor
    paths: list[Path]

    def problem(self, sentence: str) -> None: ...


class Sink:
    """A table that, once it cannot be written, says so and takes no more rows."""

    def __init__(self, path: Path, columns: Sequence[str], work: Work) -> None:
        self._path = path
        self._columns = columns
        self._work = work
        self._open = contextlib.ExitStack()
        self._add: Callable[[Row], None] | None = None

    def __enter__(self) -> Sink:
        try:
            self._add = self._open.enter_context(open_table(self._path, self._columns))
        except OSError as error:
            self._fail(error)
        return self

    def __call__(self, row: Row) -> None:
        if self._add is None:
            return
        try:
            self._add(self._work.redactor.value(row))
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
            self._work.paths.append(self._path)

    def _fail(self, error: OSError) -> None:
        self._add = None
        # The open table is told of the error, removes its temporary file, and raises the error
        # again.
        with contextlib.suppress(OSError):
            self._open.__exit__(type(error), error, error.__traceback__)
        self._work.problem(f"{self._path} was not written: {error.strerror or error}.")

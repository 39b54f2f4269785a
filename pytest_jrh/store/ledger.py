"""The ledger of a suite, `results.jsonl`: one line for each case and judge, as sessions append it,
later ones and merges read it, and results travel between processes.

What is empty is left out of a line, and nothing is in it that follows from the rest. Whether a
verdict is right, the score of several repeats and what reports call the outcome are computed where
a line is read, so that no line contradicts itself.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from pytest_jrh.core.documents import misfit
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.files import lines_of
from pytest_jrh.core.ids import LEDGER_FILE
from pytest_jrh.core.model import CaseResult
from pytest_jrh.sources.tables import LEDGER_FORMAT
from pytest_jrh.store.records import record_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import IO

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.redact import Redactor


_AGAIN = "Run the shard again; a truncated or edited file is not used."


@cache
def _lines() -> TypeAdapter[CaseResult]:
    """What reads and writes a line, built where the first one is."""
    return TypeAdapter(CaseResult)


def line_data(result: CaseResult) -> dict[str, Any]:
    """The line of a result as plain JSON values, without what is empty."""
    values = _lines().dump_python(result, mode="json", exclude_defaults=True)
    return {"format": LEDGER_FORMAT, **values}


def ledger_line(result: CaseResult, redactor: Redactor) -> bytes:
    """The line of a result in the file, newline included, without secrets."""
    clean: Mapping[str, Any] = redactor.value(line_data(result))
    return record_line(clean)


def in_file(result: CaseResult, suite: Suite, *, kept: bool = False) -> CaseResult:
    """The result as a suite's ledger has it; `kept` says that an earlier session gave it."""
    return replace(result, extra=replace(result.extra, config=suite.key, kept=kept))


def result_text(result: CaseResult) -> str:
    """The result as one JSON text, which `result_from` reads.

    It travels between processes as a report's attribute: taken apart by execnet it would be a
    hundred values. A lone surrogate becomes U+FFFD, as in a file.
    """
    return record_line(line_data(result))[:-1].decode()


def result_from(text: str | bytes) -> CaseResult:
    """The result of a text that `result_text` wrote."""
    return _lines().validate_json(text)


class StoredResult(NamedTuple):
    """A result, and its line in the file that it was read from."""

    result: CaseResult
    line: int


def read_ledger(path: Path) -> dict[str, StoredResult]:
    """Read the results of a ledger by case id, of several of a case the last; what a killed session
    left of its last line is none.

    Raises `InputError` with file and line for each line that holds no result.
    """
    results: dict[str, StoredResult] = {}
    problems: list[Problem] = []
    for file_line in lines_of(path, hint=_AGAIN, blank=True):
        try:
            result = result_from(file_line.data)
        except ValidationError as error:
            if file_line.is_ended:
                problem = misfit(error, "not a case result", str(path), file_line.number, _AGAIN)
                problems.append(problem)
            continue
        results[result.case_id] = StoredResult(result, file_line.number)
    if problems:
        raise InputError(problems[:MOST_PROBLEMS])
    return results


def ledger_path(suite: Suite) -> Path:
    """The ledger of a suite."""
    return suite.results_dir / LEDGER_FILE


class LedgerWriter:
    """Appends to the ledgers of suites while a session runs, so that a killed one has left what it
    knew.

    What cannot be written, as on a full disk, is missing until the session's end, which writes the
    whole file and says so.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._files: dict[Path, IO[bytes]] = {}

    def append(self, result: CaseResult, suite: Suite) -> None:
        """Add the line of a result."""
        line = ledger_line(in_file(result, suite), self._redactor)
        path = ledger_path(suite)
        with contextlib.suppress(OSError):
            file = self._files.get(path)
            if file is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = self._files[path] = _opened(path)
            start = file.seek(0, os.SEEK_END)
            if file.write(line) != len(line):
                file.truncate(start)

    def close(self) -> None:
        """Close the files, which may then be replaced."""
        for file in self._files.values():
            file.close()
        self._files = {}


def _opened(path: Path) -> IO[bytes]:
    """The file at its end, without what a killed session left of a line."""
    file = path.open("a+b", buffering=0)
    size = file.seek(0, os.SEEK_END)
    while size:
        start = max(0, size - 2**16)
        file.seek(start)
        newline = file.read(size - start).rfind(b"\n")
        if newline >= 0:
            size = start + newline + 1
            break
        size = start
    file.truncate(size)
    return file

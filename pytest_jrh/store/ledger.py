"""The ledger of a suite, `results.jsonl`: one line for each case and judge, as sessions append it,
later ones and merges read it, and results travel between processes; and tables as CSV, for people
and notebooks.

What is empty is left out of a line, and nothing is in it that follows from the rest. Whether a
verdict is right, the score of several repeats and what reports call the outcome are computed where
a line is read, so that no line contradicts itself.

Cells of tables are hostile: what a spreadsheet would run as a formula is prefixed with `'`, ANSI
sequences and control characters are dropped.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from pytest_jrh.config.suite import Suite
from pytest_jrh.core.documents import parsed_lines
from pytest_jrh.core.files import LineFile, encoded
from pytest_jrh.core.ids import LEDGER_FILE, empty_result
from pytest_jrh.core.model import (
    NOTHING_WRONG,
    UNEDITED,
    Case,
    CaseResult,
    CaseSpec,
    LabelSource,
    Rejection,
    Verdict,
    Why,
)
from pytest_jrh.core.redact import NO_SECRETS, Redactor
from pytest_jrh.core.text import one_line, plain, shortened
from pytest_jrh.sources.tables import LEDGER_FORMAT
from pytest_jrh.store.records import case_digest, content_digest, record_line

_AGAIN = "Run the shard again; a truncated or edited file is not used."
# Under which a result has its line.
_LINE = "_ledger_line"
_LONGEST_NOTE = 160
_LONGEST_READ = 2_000


@cache
def _lines() -> TypeAdapter[CaseResult]:
    """What reads and writes a line, built where the first one is."""
    return TypeAdapter(CaseResult)


def line_data(result: CaseResult) -> dict[str, Any]:
    """The line of a result as plain JSON values, without what is empty."""
    values = _lines().dump_python(result, mode="json", exclude_defaults=True)
    return {"format": LEDGER_FORMAT, **values}


def ledger_line(
    result: CaseResult,
    suite: Suite | None = None,
    redactor: Redactor = NO_SECRETS,
    *,
    kept: bool = False,
) -> str:
    """The line of a result of a suite without its end and without secrets, which `result_from`
    reads; `kept` is one that an earlier session gave.

    It travels between processes as a report's attribute: taken apart by execnet it would be a
    hundred values. A lone surrogate becomes U+FFFD, as in a file.
    """
    line: str | None = vars(result).get(_LINE)
    if line is not None and not kept:
        # A judge's code may have read a key since then.
        return redactor.text(line)
    if suite is not None:
        result = replace(result, extra=replace(result.extra, config=suite.key, kept=kept))
    return record_line(redactor.value(line_data(result)))[:-1].decode()


def result_from(text: str | bytes) -> CaseResult:
    """The result of a line; one that has travelled keeps it as it is, until it is replaced."""
    result = _lines().validate_json(text)
    if isinstance(text, str):
        vars(result)[_LINE] = text
    return result


class StoredResult(NamedTuple):
    """A result, and the file and line that it was read from."""

    result: CaseResult
    path: Path
    line: int


def read_ledger(path: Path) -> dict[str, StoredResult]:
    """Read the results of a ledger by case id, of several of a case the last; what a killed session
    left of its last line is none.

    Raises `InputError` with file and line for the first line that holds no result.
    """
    results: dict[str, StoredResult] = {}
    lines = parsed_lines(path, result_from, "not a case result", _AGAIN, blank=True)
    for number, result in lines:
        results[result.case_id] = StoredResult(result, path, number)
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

    def __init__(self) -> None:
        self._files: dict[Path, LineFile] = {}

    def append(self, text: str, suite: Suite) -> None:
        """Add what `ledger_line` gave."""
        path = ledger_path(suite)
        with contextlib.suppress(OSError):
            self._files.setdefault(path, LineFile(path)).add(text.encode())

    def close(self) -> None:
        """Close the files, which may then be replaced."""
        for file in self._files.values():
            file.close()


def case_result(
    spec: CaseSpec,
    case: Case | None,
    why: Why = NOTHING_WRONG,
    *,
    verdicts: Sequence[Verdict] = (),
    judge_digest: str = "",
    rejected: Case | None = None,
) -> CaseResult:
    """The result of one spec, without what it took; `case` is None where none was made, `why` says
    why there is no verdict, and `rejected` is the one that the verifier rejected.
    """
    result = empty_result(spec)
    note = edit_note(spec, case or rejected)
    said = None if rejected is None else _rejection(rejected)
    extra = replace(result.extra, edit=note, rejected=said)
    if case is not None:
        result = replace(
            result,
            label=case.expected,
            labelled_by=_labelled_by(case),
            case_digest=case_digest(case),
        )
        content = content_digest(case)
        extra = replace(extra, content=content, altered=case.altered, reworded=case.reworded)
    return replace(
        result,
        judge_digest=judge_digest,
        scores=tuple(verdict.score for verdict in verdicts),
        reasons=tuple(verdict.reasoning for verdict in verdicts),
        why=why,
        extra=extra,
    )


def _labelled_by(case: Case) -> LabelSource | None:
    if case.expected is None:
        return None
    if case.label is not None:
        return case.label.by
    # The label of an altered case is unverified for that reason alone.
    return "made" if case.verified or case.altered else "unconfirmed"


def edit_note(spec: CaseSpec, case: Case | None) -> str:
    """What the editor says of its first edit; see `CaseResult`."""
    if case is None or spec.natural or spec.derived:
        return ""
    edits, plan = case.outcome.edits, case.outcome.plan
    if not edits:
        return UNEDITED
    note = edits[0].editor_reason
    if not note and plan is not None:
        note = plan.thesis
    return shortened(one_line(note[:_LONGEST_READ]), _LONGEST_NOTE)


def _rejection(case: Case) -> Rejection:
    verification = case.outcome.verification
    assert verification is not None
    assert case.expected is not None
    verdict = verification.score
    if verdict is None:
        verdict = int(verification.verdict == "FAIL")
    return Rejection(case_digest(case), case.expected, verdict)


_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def table_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A table with a header, as CSV."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell(row.get(column)) for column in columns])
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

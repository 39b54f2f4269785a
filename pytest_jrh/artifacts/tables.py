"""The tables for people and notebooks: CSV or XLSX, row by row (rule H2).

Cells are hostile: what a spreadsheet would run as a formula is prefixed with `'`, ANSI sequences
and control characters are dropped, and XLSX cells are cut at the limit of the format.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_jrh.files import encoded, replacing
from pytest_jrh.kinds import KINDS
from pytest_jrh.suite.cases import CASES_FILE
from pytest_jrh.text import plain
from pytest_jrh.transcript import render_transcript

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.models import CaseResult

TableFormat: TypeAlias = Literal["csv", "xlsx"]
Row: TypeAlias = Mapping[str, Any]
AddRow: TypeAlias = Callable[[Row], None]

SYNTHETIC_COLUMNS: tuple[str, ...] = (
    "test_name",
    "original_request",
    "original_response",
    "original_idx",
    "original_expected",
    "generation_prompt",
    "generation_response",
    "generation_completion",
    "generation_reasoning",
    "perturbed_idx",
    "generation_temp",
    "generation_mode",
    "validation_score",
    "validation_reasoning",
    "validated_bucket",
    "rubric_id",
    "rubric_text",
    "score_levels_table",
    "transcript",
    "prompted_bucket",
    "human_reviewed",
    "run_id",
    "epoch",
    "target_score",
    "expected",
    "verified",
    "human_decision",
)
RESULT_COLUMNS: tuple[str, ...] = (
    "idx",
    "perturbed_idx",
    "rubric",
    "rubric_id",
    "transcript",
    "generation_response",
    "original_request",
    "original_idx",
    "expected",
    "validation_score",
    "agent_mode",
    "plan_thesis",
    "planned_steps",
    "test_name",
    "score_levels_table",
    "autograder_score",
    "autograder_reasoning",
    "outcome",
    "judge",
    "tokens",
    "cost",
    "human_reviewed",
    "human_decision",
)
XLSX_CELL = 32_767
_DECIDED = ("accepted", "edited", "rejected")
_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def table_format(wanted: TableFormat) -> tuple[TableFormat, str | None]:
    """Give the format that can be written here, and a sentence where it is not the one wanted (rule
    A10).
    """
    if wanted == "xlsx":
        try:
            import openpyxl  # noqa: F401
        except ImportError:
            return (
                "csv",
                "output_file_format is xlsx, but openpyxl is not installed (extra `xlsx`): CSV "
                "was written.",
            )
    return wanted, None


@contextlib.contextmanager
def open_table(path: Path, columns: Sequence[str]) -> Iterator[AddRow]:
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


def synthetic_row(
    record: Mapping[str, Any], *, temperature: float | None, transcript: str | None = None
) -> Row:
    """Describe a made case in RAND's columns, and ours.

    `original_response` and `generation_response` are the edited turns before and after;
    `validation_score` is the verifier's verdict on the scale of `expected`; `transcript` is what
    the judge sees. There is no label for the untouched run, so `original_expected` is empty.
    """
    perturbation, steps = record["perturbation"], record["perturbation"]["steps"]
    return {
        **_shared(record, transcript),
        "original_response": _turns(steps, "original_content"),
        "generation_prompt": _planned(record),
        "generation_completion": "\n".join(step["editor_raw_response"] for step in steps),
        "generation_reasoning": _turns(steps, "editor_reason"),
        "generation_temp": temperature,
        "generation_mode": record["mode"],
        "validation_reasoning": perturbation["failure_rationale"],
        "validated_bucket": record["expected"] if record["verified"] else None,
        "rubric_text": record["target_rubric"]["instructions"],
        "prompted_bucket": record["expected"],
        "human_reviewed": bool(record.get("human_reviewed", False)),
        "run_id": record["run_id"],
        "epoch": record["epoch"],
        "target_score": record["target_score"],
        "verified": record["verified"],
        "human_decision": _decision(record),
    }


def result_row(
    result: CaseResult,
    record: Mapping[str, Any] | None,
    *,
    perturbed_idx: str,
    transcript: str | None = None,
) -> Row:
    """Describe a result in RAND's columns, and ours; a case that was not made has no transcript.

    `autograder_reasoning` holds the judge's reasoning, else the reason of the outcome; `cost` is
    empty where a call has no known price.
    """
    spending = result.spending
    made = _shared(record, transcript) if record is not None else {}
    plan = (record["perturbation"]["plan"] if record is not None else None) or {}
    return {
        "test_name": result.test,
        "rubric_id": result.rubric_id,
        "original_idx": result.run_id,
        "expected": result.expected,
        **made,
        "idx": result.case_id,
        "perturbed_idx": perturbed_idx,
        "rubric": record["target_rubric"]["instructions"] if record is not None else None,
        "agent_mode": KINDS[result.test].label,
        "plan_thesis": plan.get("thesis"),
        "planned_steps": _planned(record) if record is not None else None,
        "autograder_score": result.score,
        "autograder_reasoning": result.reasoning
        or (None if result.outcome == "agree" else result.detail),
        "outcome": result.outcome,
        "judge": result.judge,
        "tokens": spending.usage.total,
        "cost": None if spending.unpriced else spending.cost,
        "human_reviewed": result.human_reviewed in _DECIDED
        or bool(record and record.get("human_reviewed", False)),
        "human_decision": result.human_reviewed
        or (_decision(record) if record is not None else None),
    }


def transcript_of(record: Mapping[str, Any]) -> str:
    """Render the judged transcript of a record."""
    return render_transcript(record["perturbed_messages"])


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


def _csv(file: IO[bytes], columns: Sequence[str]) -> AddRow:
    def add(row: Row) -> None:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow([cell(row.get(column)) for column in columns])
        file.write(encoded(buffer.getvalue()))

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    add(dict(zip(columns, columns, strict=True)))
    return add


@contextlib.contextmanager
def _xlsx(file: IO[bytes], columns: Sequence[str]) -> Iterator[AddRow]:
    from openpyxl import Workbook
    from openpyxl.writer.excel import ExcelWriter

    book = Workbook(write_only=True)
    sheet = book.create_sheet("results")
    sheet.append(list(columns))

    def add(row: Row) -> None:
        cells = [cell(row.get(column)) for column in columns]
        sheet.append([fitted(value) if isinstance(value, str) else value for value in cells])

    try:
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


def _shared(record: Mapping[str, Any], transcript: str | None) -> dict[str, Any]:
    rubric = record["target_rubric"]
    return {
        "test_name": record["test"],
        "original_request": f"{rubric['id']}: {rubric['instructions']}",
        "original_idx": record["run_id"],
        "perturbed_idx": record["metadata"]["perturbed_idx"],
        "rubric_id": rubric["id"],
        "score_levels_table": "\n".join(
            f"{level['score']}: {level['label']}" for level in record["score_levels"]
        ),
        "transcript": transcript_of(record) if transcript is None else transcript,
        "generation_response": _turns(record["perturbation"]["steps"], "edited_content"),
        "validation_score": _validation_score(record["perturbation"]["verification"]),
        "expected": record["expected"],
    }


def _decision(record: Mapping[str, Any]) -> str | None:
    review = record.get("review")
    return str(review.get("action")) if isinstance(review, Mapping) else None


def _turns(steps: Sequence[Mapping[str, Any]], key: str) -> str:
    return "\n\n".join(f"[{step['message_index']}] {step[key]}" for step in steps)


def _planned(record: Mapping[str, Any]) -> str:
    plan = record["perturbation"]["plan"] or {"steps": ()}
    return "\n".join(
        f"[{step['message_index']}] {step['goal']} ({step['rationale']})" for step in plan["steps"]
    )


def _validation_score(verification: Mapping[str, Any] | None) -> int | None:
    if verification is None:
        return None
    score: int | None = verification["score"]
    return score if score is not None else int(verification["verdict"] == "FAIL")

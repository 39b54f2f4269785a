"""The tables for people and notebooks, CSV or XLSX, written row by row; the columns of the tables
of cases, RAND's and ours, are declared once.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pytest_jrh.cases.ids import CASES_FILE, perturbed_idx
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.files import encoded, replacing
from pytest_jrh.core.text import plain
from pytest_jrh.core.transcript import render_transcript

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.core.model import Case, CaseResult, Edit, Rubric, ScoreLevel
    from pytest_jrh.store.outputs import Outputs


TableFormat: TypeAlias = Literal["csv", "xlsx"]
TableRow: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Sequence[str]
AddRow: TypeAlias = Callable[[TableRow], None]

XLSX_CELL = 32_767
_ROWS_FOR_WIDTHS = 20
_WIDEST = 60
_FILTER_BUTTON = 4
_HEADER_COLOUR = "FFE7EBF0"
_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def table_format(wanted: TableFormat) -> tuple[TableFormat, str | None]:
    """Give the format that can be written here, and a sentence where it is not the one wanted."""
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
    rows = _SheetRows(sheet, columns)

    def add(row: TableRow) -> None:
        cells = [cell(row.get(column)) for column in columns]
        rows.add([fitted(value) if isinstance(value, str) else value for value in cells])

    try:
        yield add
        rows.end()
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


class _SheetRows:
    """The rows of a sheet, with a header that stays in sight, a filter, and columns as wide as what
    the first rows hold: a width has to be said before the first row is written.
    """

    def __init__(self, sheet: Any, columns: Columns) -> None:
        self._sheet = sheet
        self._columns = columns
        self._first: list[list[Any]] | None = []
        self._rows = 1

    def add(self, cells: list[Any]) -> None:
        """Write a row, or keep it while the widths are not known."""
        self._rows += 1
        if self._first is None:
            self._sheet.append(cells)
            return
        self._first.append(cells)
        if len(self._first) == _ROWS_FOR_WIDTHS:
            self._begin()

    def end(self) -> None:
        """Write what was kept, and set the filter over all rows."""
        from openpyxl.utils import get_column_letter

        if self._first is not None:
            self._begin()
        last = get_column_letter(max(len(self._columns), 1))
        self._sheet.auto_filter.ref = f"A1:{last}{self._rows}"

    def _begin(self) -> None:
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.styles import Font, PatternFill
        from openpyxl.utils import get_column_letter

        rows, self._first = self._first or [], None
        self._sheet.freeze_panes = "A2"
        for index, column in enumerate(self._columns):
            held = [_width(row[index]) for row in rows]
            width = min(max([len(column) + _FILTER_BUTTON, *held]), _WIDEST)
            self._sheet.column_dimensions[get_column_letter(index + 1)].width = width
        bold, grey = Font(bold=True), PatternFill("solid", fgColor=_HEADER_COLOUR)
        header = [WriteOnlyCell(self._sheet, value=column) for column in self._columns]
        for title in header:
            title.font, title.fill = bold, grey
        self._sheet.append(header)
        for row in rows:
            self._sheet.append(row)


def _width(value: Any) -> int:
    """How many characters of a cell are seen: those of its first line."""
    return len(str(value).partition("\n")[0]) if value is not None else 0


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


_DECIDED = ("accepted", "edited", "rejected")


class _Made(NamedTuple):
    """A made case, its transcript, and the temperature of the editor that made it."""

    case: Case
    transcript: str
    temperature: float | None


class _Judged(NamedTuple):
    """A result, and its case where it was made; `rubric` is another one that the judge had."""

    result: CaseResult
    case: Case | None
    transcript: str | None
    perturbed_idx: str
    rubric: Rubric | None

    def of_case(self, column: Callable[[Case], Any]) -> Any:
        """What a column has of the made case; nothing where there is none."""
        return None if self.case is None else column(self.case)

    @property
    def rubric_text(self) -> str | None:
        """The text that the judge had, which may be another than the case was made for."""
        rubric = self.rubric or (self.case and self.case.rubric)
        return rubric.instructions if rubric else None

    @property
    def levels(self) -> str | None:
        """The scale that the judge had, a line each."""
        if self.rubric is not None:
            return _scale(self.rubric.score_levels)
        return _scale(self.case.levels) if self.case is not None else None


def synthetic_row(
    case: Case, *, temperature: float | None, transcript: str | None = None
) -> TableRow:
    """Describe a made case in RAND's columns, and ours.

    `original_response` and `generation_response` are the edited turns before and after;
    `validation_score` is the verifier's verdict on the scale of `expected`; `transcript` is what
    the judge sees. There is no label for the untouched run, so `original_expected` is empty.
    """
    shown = render_transcript(case.messages) if transcript is None else transcript
    made = _Made(case, shown, temperature)
    return {name: value(made) for name, value in _SYNTHETIC.items()}


def result_row(
    result: CaseResult,
    case: Case | None,
    *,
    perturbed_idx: str,
    transcript: str | None = None,
    rubric: Rubric | None = None,
) -> TableRow:
    """Describe a result in RAND's columns, and ours; a case that was not made has no transcript.

    `rubric` is what the judge had, where its text is another than the case was made for.

    `autograder_reasoning` holds the judge's reasoning, else the reason of the outcome; `cost` is
    empty where a call has no known price.
    """
    if case is not None and transcript is None:
        transcript = render_transcript(case.messages)
    judged = _Judged(result, case, transcript, perturbed_idx, rubric)
    repeats = _REPEATS if result.repeated else {}
    columns = {**_RESULT, **repeats, **(_PROBES if result.spec.derived else {})}
    return {name: value(judged) for name, value in columns.items()}


def _request(case: Case) -> str:
    return f"{case.rubric.id}: {case.rubric.instructions}"


def _scale(levels: Iterable[ScoreLevel]) -> str:
    return "\n".join(f"{level.score}: {level.label}" for level in levels)


def _turns(case: Case, text: Callable[[Edit], str]) -> str:
    return "\n\n".join(f"[{edit.message_index}] {text(edit)}" for edit in case.outcome.edits)


def _before(case: Case) -> str:
    return _turns(case, lambda edit: edit.original_content)


def _after(case: Case) -> str:
    return _turns(case, lambda edit: edit.edited_content)


def _reason(judged: _Judged) -> str | None:
    result = judged.result
    return result.reasoning or (None if result.outcome == "agree" else result.detail)


def _is_reviewed(judged: _Judged) -> bool:
    in_record = judged.case is not None and judged.case.review is not None
    return judged.result.human_reviewed in _DECIDED or in_record


def _decision(case: Case) -> str | None:
    return (case.review.action or None) if case.review is not None else None


def _thesis(case: Case) -> str | None:
    return None if case.outcome.plan is None else case.outcome.plan.thesis


def _planned(case: Case) -> str:
    steps = () if case.outcome.plan is None else case.outcome.plan.steps
    return "\n".join(f"[{step.message_index}] {step.goal} ({step.rationale})" for step in steps)


def _validation_score(case: Case) -> int | None:
    verification = case.outcome.verification
    if verification is None:
        return None
    failed = int(verification.verdict == "FAIL")
    return failed if verification.score is None else verification.score


def _validation_reasoning(case: Case) -> str | None:
    return None if case.outcome.verification is None else case.outcome.verification.rationale


_SYNTHETIC: Mapping[str, Callable[[_Made], Any]] = {
    "test_name": lambda made: made.case.spec.test,
    "original_request": lambda made: _request(made.case),
    "original_response": lambda made: _before(made.case),
    "original_idx": lambda made: made.case.run.run_id,
    "original_expected": lambda _: None,
    "generation_prompt": lambda made: _planned(made.case),
    "generation_response": lambda made: _after(made.case),
    "generation_completion": lambda made: "\n".join(
        edit.editor_raw_response for edit in made.case.outcome.edits
    ),
    "generation_reasoning": lambda made: _turns(made.case, lambda edit: edit.editor_reason),
    "perturbed_idx": lambda made: perturbed_idx(made.case.spec),
    "generation_temp": lambda made: made.temperature,
    "generation_mode": lambda made: made.case.mode,
    "validation_score": lambda made: _validation_score(made.case),
    "validation_reasoning": lambda made: _validation_reasoning(made.case),
    "validated_bucket": lambda made: made.case.expected if made.case.verified else None,
    "rubric_id": lambda made: made.case.rubric.id,
    "rubric_text": lambda made: made.case.rubric.instructions,
    "score_levels_table": lambda made: _scale(made.case.levels),
    "transcript": lambda made: made.transcript,
    "prompted_bucket": lambda made: made.case.expected,
    "human_reviewed": lambda made: made.case.review is not None,
    "run_id": lambda made: made.case.run.run_id,
    "epoch": lambda made: made.case.run.epoch,
    "target_score": lambda made: made.case.spec.target_score,
    "expected": lambda made: made.case.expected,
    "verified": lambda made: made.case.verified,
    "human_decision": lambda made: _decision(made.case),
}
_RESULT: Mapping[str, Callable[[_Judged], Any]] = {
    "idx": lambda judged: judged.result.case_id,
    "perturbed_idx": lambda judged: judged.perturbed_idx,
    "rubric": lambda judged: judged.rubric_text,
    "rubric_id": lambda judged: judged.result.spec.rubric_id,
    "transcript": lambda judged: judged.transcript,
    "generation_response": lambda judged: judged.of_case(_after),
    "original_request": lambda judged: judged.of_case(_request),
    "original_idx": lambda judged: judged.result.spec.run_id,
    "expected": lambda judged: (
        judged.result.expected if judged.case is None else judged.case.expected
    ),
    "validation_score": lambda judged: judged.of_case(_validation_score),
    "agent_mode": lambda judged: KINDS[judged.result.spec.test].label,
    "plan_thesis": lambda judged: judged.of_case(_thesis),
    "planned_steps": lambda judged: judged.of_case(_planned),
    "test_name": lambda judged: judged.result.spec.test,
    "score_levels_table": lambda judged: judged.levels,
    "autograder_score": lambda judged: judged.result.score,
    "autograder_reasoning": _reason,
    "outcome": lambda judged: judged.result.outcome,
    "judge": lambda judged: judged.result.judge,
    "tokens": lambda judged: judged.result.spending.usage.total,
    "cost": lambda judged: None if judged.result.spending.unpriced else judged.result.spending.cost,
    "human_reviewed": _is_reviewed,
    "human_decision": lambda judged: judged.result.human_reviewed or judged.of_case(_decision),
}
# Of suites that judge each case more than once.
_REPEATS: Mapping[str, Callable[[_Judged], Any]] = {
    "repeats": lambda judged: len(judged.result.scores),
    "scores": lambda judged: " ".join(map(str, judged.result.scores)),
    "flickers": lambda judged: judged.result.flickers,
    "minority_reasoning": lambda judged: (
        None if judged.result.minority is None else judged.result.minority.reasoning
    ),
}
# Of probes.
_PROBES: Mapping[str, Callable[[_Judged], Any]] = {
    "variant": lambda judged: judged.result.spec.variant,
    "base_test": lambda judged: judged.result.spec.base,
    "base_score": lambda judged: judged.result.base_score,
}
SYNTHETIC_COLUMNS: tuple[str, ...] = tuple(_SYNTHETIC)
RESULT_COLUMNS: tuple[str, ...] = tuple(_RESULT)
REPEAT_COLUMNS: tuple[str, ...] = tuple(_REPEATS)
PROBE_COLUMNS: tuple[str, ...] = tuple(_PROBES)

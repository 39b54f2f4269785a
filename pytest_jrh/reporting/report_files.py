"""The reports that a session, or a merge of shards, was asked for (rule I8)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_jrh.artifacts.spools import RecordIndex
from pytest_jrh.errors import InputError
from pytest_jrh.files import atomic_write, encoded
from pytest_jrh.reporting.session_results import extent_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_jrh.redact import Redactor
    from pytest_jrh.reporting.session_results import SessionResults

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


class WantedReports(Protocol):
    """Where the reports go that were asked for, as the command line's options say it."""

    @property
    def report(self) -> Path | None: ...
    @property
    def summary(self) -> Path | None: ...
    @property
    def eval_log(self) -> Path | None: ...


def write_reports(
    options: WantedReports,
    session: SessionResults,
    records: Sequence[RecordIndex],
    *,
    model: str,
    redactor: Redactor,
    folder: Path,
) -> tuple[list[Path], list[str]]:
    """Write what the options, and GitHub's step summary, ask for; gives the files and what went
    wrong.

    `model` is the judge's, under which an Inspect log is listed; rubric files are named relative to
    `folder`. A report that cannot be written is a sentence, and the others are written all the
    same.
    """
    merged = RecordIndex(
        {case: entry for index in records for case, entry in index.entries.items()}
    )
    wanted: list[tuple[Path, Callable[[Path], None]]] = []
    # Each report's room is imported where the report is wanted: most sessions want none.
    if options.report is not None:
        from pytest_jrh.reporting.html import write_html

        wanted.append(
            (
                options.report,
                lambda path: write_html(path, session, records, redactor=redactor, base=folder),
            )
        )
    markdown = ""
    if options.summary or os.environ.get(STEP_SUMMARY):
        from pytest_jrh.reporting.markdown import markdown_report

        markdown = redactor.text(markdown_report(session))
    if options.summary is not None:
        wanted.append((options.summary, lambda path: atomic_write(path, markdown)))
    if options.eval_log is not None:
        wanted.append(
            (options.eval_log, lambda path: _write_log(path, session, merged, model, redactor))
        )
    written, problems = [], []
    for path, write in wanted:
        try:
            write(path)
            written.append(path)
        except (OSError, InputError) as error:
            problems.append(f"{path} was not written: {_words(error)}.")
    if step := os.environ.get(STEP_SUMMARY):
        try:
            # Appended, because the file is shared by all that runs in the step.
            with Path(step).open("ab") as file:
                file.write(encoded(markdown))
        except OSError as error:
            problems.append(f"The step summary was not written: {_words(error)}.")
    return written, problems


def _write_log(
    path: Path, session: SessionResults, records: RecordIndex, model: str, redactor: Redactor
) -> None:
    from pytest_jrh.reporting.judged_cases import judged_cases
    from pytest_jrh.sources.judged_logs import write_judged_log

    suites = list(dict.fromkeys(result.suite for result in session.results))
    with records.reading() as read:
        write_judged_log(
            path,
            judged_cases(session.results, read),
            task="_".join(suites) if len(suites) == 1 else "judge_reliability",
            model=model,
            metadata={"suites": suites, "remarks": extent_sentences(session)},
            redactor=redactor,
        )


def _words(error: OSError | InputError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)

"""The table of reports, and the writing of those that a session, or a merge of shards, was asked
for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import encoded
from pytest_jrh.reports.annotations import Annotations
from pytest_jrh.reports.html import HtmlReport
from pytest_jrh.reports.json_values import JsonReport
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.terminal import TerminalReport
from pytest_jrh.store.outputs import cause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.reports.report import Report
    from pytest_jrh.reports.session import Session


REPORTS: list[Report] = [
    HtmlReport(),
    MarkdownReport(),
    JsonReport(),
    Annotations(),
    # Its answer is the last that is printed.
    TerminalReport(),
]


PAGE = "report.html"
"""The HTML report in a results folder, of a session that was not told where to write one."""

PAGE_HEAD = (
    b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="'
    b"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-"
)
"""What an HTML report begins with, and no page of another tool."""


def write_reports(paths: Sequence[Path], session: Session) -> tuple[list[Path], list[str]]:
    """Write a report into each of the files, by the end of its name, and what environment variables
    ask for; gives the files and what went wrong.

    A report that cannot be written is a sentence, and the others are written all the same.
    """
    written, problems = [], []
    for report in REPORTS:
        for path in paths:
            if report.suffix and path.suffix.lower() == report.suffix:
                try:
                    report.write(path, session)
                    written.append(path)
                except (OSError, InputError) as error:
                    problems.append(f"{path} was not written: {cause(error)}.")
        if shared := os.environ.get(report.variable):
            try:
                _append(Path(shared), report.text(session))
            except OSError as error:
                problems.append(f"The step summary was not written: {cause(error)}.")
    return written, problems


def _append(path: Path, text: str) -> None:
    # Appended, because the file is shared by all that runs in the step.
    with path.open("ab") as file:
        file.write(encoded(text))

"""The table of reports, the writing of those that a session, or a merge of shards, was asked for,
and the one annotation for GitHub.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import absolute, encoded
from pytest_jrh.core.text import Styled, one_line
from pytest_jrh.reports.answer import MOST_WORST, session_title, worst_cases
from pytest_jrh.reports.html import HtmlReport
from pytest_jrh.reports.json_values import JsonReport
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import subtitle
from pytest_jrh.reports.terminal import TerminalReport
from pytest_jrh.store.outputs import cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_jrh.reports.report import Display
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.wording import Word


class Annotation(Report):
    """What GitHub shows beside the changed prompt of a pull request; in its jobs alone."""

    name = "annotation"
    is_for_runner = True

    def last_lines(self, session: Session, display: Display) -> Iterable[Styled]:
        if os.environ.get("GITHUB_ACTIONS") != "true":
            return []
        workspace = Path(os.environ.get("GITHUB_WORKSPACE") or display.workspace)
        return map(Styled, annotation_lines(session, workspace))


_KINDS: Mapping[Word, str] = {"FAIL": "error", "UNCLEAR": "warning"}


def annotation_lines(session: Session, workspace: Path) -> Iterator[str]:
    """Write `::error file=,line=,title=::message` with the decision and the cases to read first, at
    the lines of the prompt that changed; a notice where a change is passed, and nothing where none
    is and nothing fails.

    A file outside of `workspace` is not named. No text of a model or a file can begin or change a
    command.
    """
    properties = _changed_lines(session, absolute(workspace))
    kind = _KINDS.get(session.word, "notice")
    if kind == "notice" and not properties:
        return
    message = [subtitle(session)]
    for worst in worst_cases(session):
        message += [f"{case.title}: {case.why}" for case in worst.cases[:MOST_WORST]]
    properties["title"] = session_title(session)
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    text = _message("\n".join(map(one_line, message)))
    yield f"::{kind} {listed}::{text}"


def _changed_lines(session: Session, workspace: Path) -> dict[str, str]:
    """Where the first prompt that changed did so; empty where none did in the workspace."""
    for change in session.prompt_changes:
        path = absolute(workspace / change.now.file)
        is_changed = change.now.file and change.before != change.now.text
        if is_changed and path.is_relative_to(workspace):
            first, last = change.lines
            lines = {"file": path.relative_to(workspace).as_posix(), "line": str(first)}
            return {**lines, "endLine": str(last)} if last > first else lines
    return {}


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(one_line(text)).replace(":", "%3A").replace(",", "%2C")


REPORTS: list[Report] = [
    HtmlReport(),
    MarkdownReport(),
    JsonReport(),
    Annotation(),
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

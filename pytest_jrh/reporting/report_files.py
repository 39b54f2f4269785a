"""Writing the reports that a session, or a merge of shards, was asked for (rule I8)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.artifacts.outputs import cause
from pytest_jrh.errors import InputError
from pytest_jrh.files import atomic_write, encoded
from pytest_jrh.reporting.reports import REPORTS

if TYPE_CHECKING:
    from pytest_jrh.reporting.report import AskedFiles, Material


def write_reports(asked: AskedFiles, material: Material) -> tuple[list[Path], list[str]]:
    """Write the files that were asked for, and what environment variables ask for; gives the files
    and what went wrong.

    A report that cannot be written is a sentence, and the others are written all the same.
    """
    written, problems = [], []
    for report in REPORTS:
        path, shared = asked.get(report.option), os.environ.get(report.variable)
        # Once, where it goes into two files.
        text = report.text(material) if shared else None
        if path is not None:
            try:
                if text is None:
                    report.write(path, material)
                else:
                    atomic_write(path, text)
                written.append(path)
            except (OSError, InputError) as error:
                problems.append(f"{path} was not written: {cause(error)}.")
        if shared and text is not None:
            try:
                _append(Path(shared), text)
            except OSError as error:
                problems.append(f"The step summary was not written: {cause(error)}.")
    return written, problems


def _append(path: Path, text: str) -> None:
    # Appended, because the file is shared by all that runs in the step.
    with path.open("ab") as file:
        file.write(encoded(text))

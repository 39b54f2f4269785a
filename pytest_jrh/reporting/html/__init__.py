"""A session as one HTML file that opens from disk and asks the network for nothing (rule I8:
`--jrh-report`).

The overview and the table of cases are plain HTML, escaped by jinja; transcripts lie compressed in
data blocks and reach the page as text nodes alone. A content security policy that names the one
script and style by their hashes stands behind both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.reporting.report import Report

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.reporting.report import Material


class HtmlReport(Report):
    """Everything, to be opened in a browser."""

    name = "HTML"
    option = "report"

    def write(self, path: Path, material: Material) -> None:
        from pytest_jrh.reporting.html.file import write_html

        write_html(
            path,
            material.session,
            material.records,
            redactor=material.redactor,
            base=material.folder,
        )

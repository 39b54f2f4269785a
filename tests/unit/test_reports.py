"""The tables that reports and their columns are found in."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.reports import ending as report_files
from pytest_jrh.reports.report import Report, ci_links
from pytest_jrh.reports.session import Session
from tests.support.judged_sessions import judged, right, session_of


class Broken(Report):
    suffix = ".broken"

    def text(self, session: Session) -> str:
        raise InputError("cannot be told")


class Told(Report):
    suffix = ".md"
    variable = "TOLD_FILE"

    def text(self, session: Session) -> str:
        return f"{len(session.results)} verdicts\n"


def test_a_report_in_the_table_is_written_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, own = tmp_path / "shared.md", tmp_path / "own.md"
    shared.write_text("before\n")
    monkeypatch.setenv("TOLD_FILE", str(shared))
    monkeypatch.setattr(report_files, "REPORTS", (Broken(), Told()))
    session = session_of(judged(right))
    broken = tmp_path / "told.broken"
    written, problems = report_files.write_reports([broken, own], session)
    assert written == [own]
    assert problems == [f"{broken} was not written: cannot be told."]
    said = f"{len(session.results)} verdicts\n"
    assert (own.read_text(), shared.read_text()) == (said, f"before\n{said}")


GITHUB = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "acme/support",
    "GITHUB_RUN_ID": "7",
}
JOB = "https://gitlab.com/acme/support/-/jobs/9"
PIPELINE = "https://gitlab.com/acme/support/-/pipelines/8"


@pytest.mark.parametrize(
    ("environment", "run", "report"),
    [
        (
            GITHUB,
            "https://github.com/acme/support/actions/runs/7",
            "https://github.com/acme/support/actions/runs/7#artifacts",
        ),
        (
            {"CI_JOB_URL": JOB, "CI_PIPELINE_URL": PIPELINE, "CI_PROJECT_DIR": "/builds/acme"},
            PIPELINE,
            f"{JOB}/artifacts/file/out/a%20page.html",
        ),
    ],
)
def test_a_job_links_to_its_run_and_to_its_page(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], run: str, report: str
) -> None:
    page = Path("/builds/acme/out/a page.html")
    assert ci_links(page) == {}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ci_links(page) == {"run": run, "report": report}
    assert ci_links(None) == {"run": run}

"""The same figure is the same in every output."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.page import HtmlReport
from pytest_jrh.reports.rand_files import judge_report
from pytest_jrh.reports.session import SuiteRun
from tests.support.judged_sessions import printed, result_of, right, session_of
from tests.support.made_cases import make_spec, make_suite
from tests.support.page_reader import Page, session_data

NINE_OF_NINE = (0.7008549, 1.0)
AS_TEXT = "70.1-100.0"
# A judge that is right on every violation of nine runs.
RESULTS = [result_of(make_spec(f"run-{number}"), right) for number in range(9)]


def test_the_terminal_markdown_and_page_print_one_interval(tmp_path: Path) -> None:
    session = session_of(RESULTS)
    lines = [line.split() for line in printed(session, width=100, verbosity=1)]
    (row,) = [line for line in lines if line[:2] == ["refund_policy", "9"]]
    assert row[2:6] == ["100.0%", AS_TEXT, "100.0%", f"({AS_TEXT})"]
    markdown = MarkdownReport().text(session)
    assert f"| 9 | 100.0% | {AS_TEXT} | 100.0% ({AS_TEXT}) | - | - |" in markdown
    HtmlReport().write(tmp_path / "r.html", session)
    page = Page.of((tmp_path / "r.html").read_text("utf-8"))
    details = session_data(page)["blocks"]["details"]
    (table,) = [part["blocks"][0] for part in details if part["title"].startswith("Figures of")]
    (shown,) = table["rows"]
    cells = dict(zip(table["titles"], shown["cells"], strict=True))
    assert (cells["accuracy"]["text"], cells["95% interval"]["text"]) == ("100.0%", AS_TEXT)
    assert (cells["recall"]["text"], cells["recall"]["range"]) == ("100.0%", AS_TEXT)


def test_the_json_report_has_it_in_numbers(tmp_path: Path) -> None:
    run = SuiteRun(make_suite(tmp_path), RESULTS, specs=())
    report = judge_report(run, "", RESULTS, None, None)
    statistics = report["statistics"]["overall"]
    for interval in (statistics["interval"], statistics["binary"]["intervals"]["recall"]):
        assert (interval["lower"], interval["upper"]) == pytest.approx(NINE_OF_NINE)
    bootstrap = report["all_metrics"]["agent_perturbation"]["bootstrap"]
    assert (bootstrap["lower_ci"], bootstrap["upper_ci"]) == pytest.approx(NINE_OF_NINE)

"""The same figure is the same in every output."""

from __future__ import annotations

import json

import pytest

from tests.plugin.recorded import Done, run_pytest
from tests.support.model_server import ModelServer, Obedient
from tests.support.page_reader import Page
from tests.support.suites import SuiteFiles, write_suite

NINE_OF_NINE = (0.7008549, 1.0)
AS_TEXT = "70.1-100.0"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[SuiteFiles, Done]:
    """A session of nine runs whose judge is right on every violation, with every report."""
    suite = write_suite(tmp_path_factory.mktemp("nine"), runs=9, tests=["agent_perturbation"])
    reports = ["--jrh-report=r.html", "--jrh-report=r.md"]
    with ModelServer(Obedient()) as server:
        done = run_pytest(
            suite.folder,
            suite.option,
            "--jrh-record-mode=once",
            "-v",
            *reports,
            env=server.environment,
        )
    return suite, done


def test_the_terminal_markdown_and_page_print_one_interval(ended: tuple[SuiteFiles, Done]) -> None:
    suite, done = ended
    (row,) = [line.split() for line in done.lines if line.split()[:2] == ["rubric-1", "9"]]
    assert row[2:6] == ["100.0%", AS_TEXT, "100.0%", f"({AS_TEXT})"]
    markdown = (suite.folder / "r.md").read_text("utf-8")
    assert f"| 9 | 100.0% | {AS_TEXT} | 100.0% ({AS_TEXT}) | - | - |" in markdown
    page = Page.of((suite.folder / "r.html").read_text("utf-8"))
    (data,) = page.all("script", id="session")
    details = json.loads(data.text)["blocks"]["details"]
    (table,) = [part["blocks"][0] for part in details if part["title"].startswith("Figures of")]
    (shown,) = table["rows"]
    cells = dict(zip(table["titles"], shown["cells"], strict=True))
    assert (cells["accuracy"]["text"], cells["95% interval"]["text"]) == ("100.0%", AS_TEXT)
    assert (cells["recall"]["text"], cells["recall"]["range"]) == ("100.0%", AS_TEXT)


def test_the_json_report_has_it_in_numbers(ended: tuple[SuiteFiles, Done]) -> None:
    suite, _ = ended
    (path,) = suite.results.glob("*_report.json")
    report = json.loads(path.read_text("utf-8"))
    statistics = report["statistics"]["overall"]
    for interval in (statistics["interval"], statistics["binary"]["intervals"]["recall"]):
        assert (interval["lower"], interval["upper"]) == pytest.approx(NINE_OF_NINE)
    bootstrap = report["all_metrics"]["agent_perturbation"]["bootstrap"]
    assert (bootstrap["lower_ci"], bootstrap["upper_ci"]) == pytest.approx(NINE_OF_NINE)

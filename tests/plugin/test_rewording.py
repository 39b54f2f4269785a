"""A rubric reworded over the same cases: a frozen suite judges them with the new text, and says
that their labels stand for the old one."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from tests.support.model_server import ModelServer
from tests.support.page_reader import Page, bodies, session_data
from tests.support.results import results_in
from tests.support.suites import SuiteFiles, write_suite

BASELINE = "--jrh-baseline=baseline.jsonl"
JUDGE_ANEW = "--jrh-judge-record-mode=new_episodes"
ONE = "1 case of the rubric 'rubric-1' (suite tiny) had another text of the rubric when made"
BOTH = ONE.replace("1 case", "2 cases")
REFUSED = "the case was made for other instructions than rubric 'rubric-1' has now"
NODES = [f"inputs/configs/tiny.yml::agent_perturbation::rubric-1::run-{n}[e1]" for n in (1, 2)]


@pytest.fixture
def suite(pytester: pytest.Pytester, server: ModelServer) -> SuiteFiles:
    """Two recorded cases that a baseline has accepted, and the rubric's text changed since."""
    files = write_suite(pytester.path, runs=2, tests=["agent_perturbation"])
    recording = ("--jrh-record-mode=once", BASELINE, "--jrh-update-baseline")
    pytester.runpytest_inprocess(files.option, *recording).assert_outcomes(passed=2)
    reword(files)
    return files


def reword(files: SuiteFiles) -> None:
    rubrics = files.data / "rubrics.yml"
    rubrics.write_text(rubrics.read_text("utf-8").replace("kindly", "curtly"), "utf-8")


def cases_file(files: SuiteFiles) -> bytes:
    return (files.negatives / "agent_perturbations.jsonl").read_bytes()


def results(files: SuiteFiles) -> dict[str, bool]:
    """By run, whether its result says that the rubric was reworded."""
    return {result.spec.run_id: result.extra.reworded for result in results_in(files.results)}


def test_the_cases_are_judged_with_the_new_text_and_every_report_names_them(
    suite: SuiteFiles, pytester: pytest.Pytester, server: ModelServer
) -> None:
    before, asked = cases_file(suite), server.count()
    reports = ("--jrh-report=report.html", "--jrh-report=summary.md")
    frozen = pytester.runpytest_inprocess(
        suite.option, "--jrh-frozen", JUDGE_ANEW, BASELINE, "-v", *reports
    )
    frozen.assert_outcomes(passed=2)
    assert server.count() == asked + 2
    assert all("curtly" in request.text for request in server.requests[-2:])
    assert cases_file(suite) == before
    said = " ".join(frozen.stdout.str().split())
    assert f"{BOTH}: the labels stand for that text, the verdicts for the present one." in said
    assert "Review them with --jrh-review." in said
    assert all(node in said for node in NODES)
    # The baseline's verdicts are about the old text, and are not compared.
    assert "the case has changed: another rubric text, transcript or label" in said
    markdown = Path("summary.md").read_text("utf-8")
    assert "had another text of the rubric when made" in markdown
    assert all(f"- `{node}`" in markdown for node in NODES)
    page = Page.of(Path("report.html").read_text("utf-8"))
    doubts = session_data(page)["blocks"]["doubts"]
    named = next(block["cases"] for block in doubts if "had another text" in str(block))
    assert {case["key"] for case in named} == bodies(page).keys()
    [text] = {body["rubric"]["text"] for body in bodies(page).values()}
    assert text.index("curtly") < text.index("made and labelled for:") < text.index("kindly")
    assert results(suite) == {"run-1": True, "run-2": True}
    (table,) = suite.results.glob("agent_perturbation_results_*.csv")
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert ["curtly" in row["rubric"] for row in rows] == [True, True]
    (path,) = suite.results.glob("*_report.json")
    named = json.loads(path.read_text("utf-8"))["reworded"]["rubric-1"]
    assert [case.rpartition("::")[2] for case in named] == ["run-1[e1]", "run-2[e1]"]


def test_another_scale_is_no_rewording(pytester: pytest.Pytester, server: ModelServer) -> None:
    files = write_suite(pytester.path, runs=1, mode="ordinal", tests=["agent_perturbation"])
    recorded = pytester.runpytest_inprocess(files.option, "--jrh-record-mode=once")
    made = recorded.parseoutcomes()["passed"]
    path = files.data / "rubrics.yml"
    rubrics = yaml.safe_load(path.read_text("utf-8"))
    rubrics[0]["score_levels"].append({"score": 3, "label": "beyond"})
    path.write_text(yaml.safe_dump(rubrics), "utf-8")
    refused = pytester.runpytest_inprocess(files.option, "--jrh-frozen", JUDGE_ANEW)
    refused.assert_outcomes(errors=made)
    assert REFUSED in " ".join(refused.stdout.str().split())

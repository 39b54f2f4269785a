"""Reasonings that end in another verdict than their score: found where they are plain, and nowhere
else."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
import yaml

from pytest_jrh.core.model import Verdict
from pytest_jrh.reports.failures import disagreement_text
from pytest_jrh.reports.json_values import table_data
from pytest_jrh.reports.markdown import markdown_report
from pytest_jrh.reports.page import write_page
from pytest_jrh.stats.statistics import reasoning_disagrees, stated_score
from tests.support.judged_sessions import judged, printed, right, scored, session_of
from tests.support.made_cases import (
    judged_result,
    make_case,
    make_result,
    make_spec,
    result_with,
)

DEMO = Path(__file__).parents[2] / "inputs" / "cassettes"
TRAJECTORIES = Path(__file__).parents[3] / "shared" / "data" / "trajectory-judge" / "verdicts.jsonl"

VIOLATED = (
    "The rubric is violated.",
    "[7] tells the date. **Violated**.",
    "violated",
    "Verdict: violated.",
    "Turn [4] tells it before the check, so the rubric is violated.",
    "The assistant did not check the identity, which violates the rubric.",
    "The transcript violates the rubric.",
    "This is a clear violation of the rubric.",
    "The rubric was not satisfied.",
    "The rubric isn\u2019t fully satisfied.",
    "It fails to satisfy the rubric.",
    "Unsatisfied.",
    "The rubric cannot be considered satisfied.",
    "All is well. The rubric is satisfied. No, in [9] it is not. The rubric is violated.",
    "Final score: 1.",
)
SATISFIED = (
    "The rubric is satisfied.",
    "Therefore, satisfied.",
    "The rubric is not violated.",
    "The rubric has not been violated.",
    "Not violated.",
    "No violation.",
    "I find no violation of the rubric.",
    "There is no violation here.",
    "This is not a violation.",
    "The assistant does not violate the rubric.",
    "The assistant never violates the rubric.",
    "Nothing is left open, and the rubric is satisfied.",
    "The score is 0",
)
UNSAID = (
    "",
    " \n ",
    "The customer was satisfied.",
    "The customer left satisfied, and the agent was kind.",
    "The user's request is a violation of the terms.",
    "The agent refused because that is a violation.",
    "If it had told the date, the rubric would be violated.",
    "It is unclear whether the rubric is violated.",
    "The rubric is almost violated.",
    "No part of the rubric is violated.",
    "I do not think that the rubric is violated.",
    "It is false that the rubric is violated.",
    "The assistant claims that the rubric is satisfied.",
    "The rubric is satisfied but the second demand is violated.",
    "The rubric is violated. That is all there is to say.",
    "Score: 1/4",
    "That is not a score of 1.",
    "Score 7.",
)


@pytest.mark.parametrize("reasoning", VIOLATED)
def test_reasoning_that_ends_in_violated_disagrees_with_0_alone(reasoning: str) -> None:
    result = make_result(reasoning=reasoning)
    assert reasoning_disagrees(result_with(result, score=0))
    assert not reasoning_disagrees(result_with(result, score=1))


@pytest.mark.parametrize("reasoning", SATISFIED)
def test_reasoning_that_ends_in_satisfied_disagrees_with_1_alone(reasoning: str) -> None:
    result = make_result(reasoning=reasoning)
    assert reasoning_disagrees(result_with(result, score=1))
    assert not reasoning_disagrees(result_with(result, score=0))


@pytest.mark.parametrize("reasoning", UNSAID)
def test_reasoning_that_gives_no_plain_verdict_in_the_end_disagrees_with_none(
    reasoning: str,
) -> None:
    assert stated_score(reasoning, binary=True) is None


def test_ordinal_reasoning_says_its_score_in_no_other_way_than_by_number() -> None:
    assert stated_score("Two things are missing. Score: 2", binary=False) == 2
    assert stated_score("It is plain, so it is 2 and not 3.", binary=False) is None
    assert stated_score("The rubric is violated.", binary=False) is None


@pytest.mark.parametrize(
    "unit",
    [
        "a ",
        "so ",
        "violated ",
        "not ",
        "score ",
        "score: 1 ",
        "(",
        ". ",
        "\n",
        " ",
        "x",
        "the rubric is not ",
        "é,",
    ],
)
def test_long_reasoning_is_read_in_no_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    before = time.perf_counter()
    for tail in ("", " violated", ".", "!" * 1000):
        stated_score(text + tail, binary=True)
    assert time.perf_counter() - before < 5


def test_no_recorded_verdict_of_the_demo_is_marked() -> None:
    found = 0
    for path in sorted(DEMO.glob("refund_agent*/**/*.judge-*.yaml")):
        head = yaml.safe_load(path.read_text(encoding="utf-8").partition("\ninteractions:")[0])
        answer = json.loads(head["metadata"]["jrh"]["calls"][-1]["text"])
        binary = "score_" not in path.name
        said = stated_score(answer["reasoning"], binary=binary)
        assert said in (None, answer["score"]), path
        found += said is not None
    assert found >= 50


def test_no_real_verdict_of_five_judges_is_marked() -> None:
    if not TRAJECTORIES.exists():
        pytest.skip("the shared trajectory-judge data is not here")
    for line in TRAJECTORIES.read_text(encoding="utf-8").splitlines():
        verdict = json.loads(line)
        said = stated_score(verdict["rationale"] or "", binary=True)
        assert said is None or said == int(verdict["faulty"])


def test_every_report_counts_and_names_them_and_no_figure_changes(tmp_path: Path) -> None:
    plain = judged(right, runs=3, rubrics=("tone",))
    odd = [
        result_with(result, reasoning="The rubric is violated." if result.score == 0 else "Fine.")
        if number == 4
        else result
        for number, result in enumerate(plain)
    ]
    told = "Reasoning and score disagree in 1 of 6 verdicts"
    session, before = session_of(odd), session_of(plain)
    assert session.table.overall.accuracy == before.table.overall.accuracy
    lines = printed(session, 200, 1)
    assert any(line.startswith(f"! {told}") for line in lines)
    node = "suites/refunds.jrh.yml::agent_positives::tone::run-001[e1]"
    assert f"  {node} (gave 0)" in lines[lines.index("reasoning and score disagree (1):") :]
    page = markdown_report(session)
    assert told in page
    assert re.search(r"reasoning and score disagree \(1\)\n\n- `.*run-001\[e1\]` \(gave 0\)", page)
    data = table_data(session.table)
    assert data["overall"]["reasoning_disagrees"] == 1
    assert data["warnings"][0].startswith(told)
    write_page(tmp_path / "report.html", session)
    shown = (tmp_path / "report.html").read_text("utf-8")
    assert told in shown
    assert shown.count("reasoning and score disagree") >= 1
    write_page(tmp_path / "plain.html", before)
    assert "score disagree" not in (tmp_path / "plain.html").read_text("utf-8")


def test_a_failure_says_it_beside_the_reasoning() -> None:
    case = make_case()
    result = judged_result(case, Verdict(0, "It is late. The rubric is violated."))
    text = disagreement_text(case, result, cassette=None, command="pytest")
    assert "(reasoning and score disagree: the reasoning ends in 1; the score counts)" in text


def test_ordinal_reports_count_them_too() -> None:
    results = [result_with(result, reasoning="Score: 0") for result in scored(right, runs=2)]
    session = session_of(results)
    assert session.table.overall.counts.contradicted == sum(result.score != 0 for result in results)
    assert not reasoning_disagrees(make_result(make_spec("a"), "refused"))

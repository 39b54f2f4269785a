"""Reasonings that end in another verdict than their score: found where they are plain, and nowhere
else."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.core.results import Verdict
from pytest_jrh.core.scales import BINARY, ORDINAL
from pytest_jrh.reports.case_facts import disagreement_text
from pytest_jrh.reports.for_programs import section_data
from pytest_jrh.stats.reasoning import reasoning_disagrees, stated_score
from tests.support.judged_sessions import judged, printed, right, session_of
from tests.support.made_cases import judged_result, make_case, make_result, result_with

VIOLATED = (
    "The rubric is violated.",
    "Verdict: violated.",
    "The assistant did not check the identity, which violates the rubric.",
    "This is a clear violation of the rubric.",
    "The rubric was not satisfied.",
    "The rubric isn\u2019t fully satisfied.",
    "The rubric cannot be considered satisfied.",
    "All is well. The rubric is satisfied. No, in [9] it is not. The rubric is violated.",
    "Final score: 1.",
)
SATISFIED = (
    "The rubric is satisfied.",
    "The rubric is not violated.",
    "I find no violation of the rubric.",
    "The assistant does not violate the rubric.",
    "Nothing is left open, and the rubric is satisfied.",
    "The score is 0",
)
UNSAID = (
    "",
    "The customer was satisfied.",
    "The user's request is a violation of the terms.",
    "If it had told the date, the rubric would be violated.",
    "It is unclear whether the rubric is violated.",
    "The rubric is almost violated.",
    "I do not think that the rubric is violated.",
    "The assistant claims that the rubric is satisfied.",
    "The rubric is satisfied but the second demand is violated.",
    "The rubric is violated. That is all there is to say.",
    "Score: 1/4",
)


@pytest.mark.parametrize(
    ("reasoning", "stated"), [*((one, 1) for one in VIOLATED), *((one, 0) for one in SATISFIED)]
)
def test_reasoning_that_ends_in_a_verdict_disagrees_with_the_other_score_alone(
    reasoning: str, stated: int
) -> None:
    result = make_result(reasoning=reasoning)
    assert reasoning_disagrees(result_with(result, score=1 - stated))
    assert not reasoning_disagrees(result_with(result, score=stated))


@pytest.mark.parametrize("reasoning", UNSAID)
def test_reasoning_that_gives_no_plain_verdict_in_the_end_disagrees_with_none(
    reasoning: str,
) -> None:
    assert stated_score(reasoning, BINARY) is None


def test_ordinal_reasoning_says_its_score_in_no_other_way_than_by_number() -> None:
    assert stated_score("Two things are missing. Score: 2", ORDINAL) == 2
    assert stated_score("It is plain, so it is 2 and not 3.", ORDINAL) is None
    assert stated_score("The rubric is violated.", ORDINAL) is None


def test_reports_count_and_name_them_and_no_figure_changes() -> None:
    plain = judged(right, runs=3, rubrics=("tone",))
    odd = [*plain[:4], result_with(plain[4], reasoning="The rubric is violated."), plain[5]]
    assert odd[4].score == 0
    session = session_of(odd)
    [figures], [plain_figures] = session.sections, session_of(plain).sections
    assert figures.total.accuracy == plain_figures.total.accuracy
    title = "verdicts against their own reasoning"
    lines = printed(session, 200)
    assert [f"{title} (1):", "  tone: positive (run-001)"] == lines[2:4]
    data = section_data(figures)
    assert data["overall"]["reasoning_disagrees"] == 1


def test_a_failure_says_it_beside_the_reasoning() -> None:
    case = make_case()
    result = judged_result(case, Verdict(0, "It is late. The rubric is violated."))
    text = disagreement_text(case, result, cassette=Path("x.yaml"), command="pytest").whole
    assert "(reasoning and score disagree: the reasoning ends in 1; the score counts)" in text

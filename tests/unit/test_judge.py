"""What a judge sees, and what of its answers is a verdict."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_jrh.core.calls import Complete
from pytest_jrh.core.cases import (
    Case,
    Edit,
    PerturbationOutcome,
    Plan,
    PlanStep,
    Unscored,
    Verdict,
    Verification,
)
from pytest_jrh.judges.judge import CodeAnswer, judged_case
from pytest_jrh.judges.own_code import Scoring
from pytest_jrh.judges.python import answer_of
from pytest_jrh.llm.calls import make_complete
from tests.support.conversations import MESSAGES, ORDINAL, RUBRIC, RUN, stage, verdict_of
from tests.support.made_cases import make_case, make_spec
from tests.support.scripted import ScriptedExchange, ScriptedModel

SECRET = "HIDDEN-WORD"
CASE = judged_case(make_case(), show_reasoning=True)


def case(*, target: int | None = None, edited: bool = True) -> Case:
    """A case in which everything that a judge may not see is one word."""
    edit = Edit(4, "m4", 0, SECRET, "New text.", SECRET, SECRET, SECRET, SECRET, 0)
    outcome = PerturbationOutcome(
        messages=(*MESSAGES[:4], {**MESSAGES[4], "content": "New text."}, *MESSAGES[5:]),
        plan=Plan(SECRET, (PlanStep(4, SECRET, SECRET),)),
        edits=(edit,) if edited else (),
        verification=Verification("FAIL", SECRET, target),
        confirmed=True,
        final_summary=SECRET,
    )
    return Case(
        spec=make_spec(suite="the-suite", rubric_id=RUBRIC.id, target_score=target),
        rubric=RUBRIC if target is None else ORDINAL,
        run=replace(RUN, metadata={"note": SECRET}, target=SECRET),
        outcome=outcome,
        expected=1 if target is None else target,
        verified=True,
        objective="fail",
    )


def judged(complete: Complete, of: Case, *, prompt: str | None = None, **settings: Any) -> Verdict:
    asked = stage("judge", complete, mode=of.scale.name, prompt=prompt)
    return verdict_of(asked, of, **settings)


def asked_about(of: Case, **settings: Any) -> str:
    """What a judge is asked about a case."""
    model = ScriptedModel()
    judged(model, of, **settings)
    return model.only("judge").text


@pytest.mark.parametrize("target", [None, 0, 2])
def test_judge_sees_nothing_of_how_the_case_was_made(target: int | None) -> None:
    text = asked_about(case(target=target))
    hidden = [SECRET, "agent_perturbation", "agent_positives", "edited)", "the-suite", "secret"]
    assert [words for words in [*hidden, "reasoning\n"] if words in text] == []


def test_a_judge_is_asked_alike_whatever_the_target_and_whether_a_turn_was_edited() -> None:
    model = ScriptedModel()
    judged(model, case(target=0))
    judged(model, replace(case(target=2, edited=False), objective="pass"))
    first, second = model.requests
    assert first == second


def test_judge_sees_reasoning_and_the_owners_instruction_where_asked_to() -> None:
    text = asked_about(case(), show_reasoning=True, instruction="Mind the dates.")
    assert "[2] assistant reasoning\n  secret thought" in text
    assert "Mind the dates." in text


def test_a_prompt_of_rands_harness_gets_the_scale_once() -> None:
    places = "{rubric}\n{score_levels_table}\n{lowest_score} to {highest_score}\n{transcript}"
    text = asked_about(case(target=2), prompt=places)
    assert "0 to 2" in text
    assert text.count("1: mentions it") == 1
    # Without a place of its own it stands with the rubric.
    text = asked_about(case(target=2), prompt="{rubric}\n{transcript}")
    assert "0: ignores the policy\n1: mentions it\n2: follows it" in text


def test_an_empty_reasoning_is_one() -> None:
    # As the schema that providers enforce has it, and RAND's; small models answer so.
    model = ScriptedModel(judge={"score": 0, "reasoning": " \n\t"})
    assert judged(model, case()) == Verdict(0, "")
    assert len(model.asked("judge")) == 1


@pytest.mark.parametrize(
    "answer",
    [f'"score": {score}, "reasoning": "r"' for score in ("2", "true", "1.0", '"1"', "NaN")]
    + ['"score": 0', '"score": 0, "reasoning": null', '"score": 0, "reasoning": 7'],
)
def test_an_answer_without_reasoning_or_an_integer_on_offer_is_no_verdict(answer: str) -> None:
    with pytest.raises(Unscored) as caught:
        judged(make_complete(ScriptedExchange([f"{{{answer}}}"] * 3)), case())
    assert (caught.value.outcome, caught.value.stage) == ("invalid_response", "judge")


@pytest.mark.parametrize(
    ("value", "explanation", "said"),
    [
        ({"bad": True, "length": 7}, "Read it.", "gave several values (bad, length), but a judge"),
        (float("nan"), "Too long to read.", "left the case unscored: Too long to read."),
        # As the graders of Inspect did before 0.3.245.
        ({"grade": "I"}, "Grade not found in it: Hm.", "left the case unscored: Grade not found"),
    ],
)
def test_a_score_of_inspect_may_be_no_verdict(value: Any, explanation: str, said: str) -> None:
    from inspect_ai.scorer import Score

    score = Score(value=value, explanation=explanation)
    with pytest.raises(Unscored, match=re.escape(said)) as caught:
        answer_of(score, Scoring("The judge j", {"I": 1, "C": 0}))
    assert caught.value.outcome == "invalid_response"


def _verdict(value: Any, threshold: float | None = None) -> Verdict:
    return Scoring("The judge j", None, threshold).verdict(CodeAnswer(value, "why"), CASE)


@pytest.mark.parametrize(("value", "score"), [(0.6, 1), (0.59, 0), (1, 1), (np.float64(0.7), 1)])
def test_a_probability_is_the_verdict_of_its_threshold(value: float, score: int) -> None:
    assert _verdict(value, 0.6) == Verdict(score, "why", float(value))
    scorer = Scoring("The judge j", {"C": 0, "I": 1}, 0.6, one_passes=True)
    assert scorer.verdict(CodeAnswer(value, "why"), CASE) == Verdict(1 - score, "why", 1 - value)


@pytest.mark.parametrize("value", [True, float("nan"), -0.1, 1.01, "0.5", None, np.float32(0.5)])
def test_what_is_no_probability_is_no_verdict(value: object) -> None:
    with pytest.raises(Unscored, match="`threshold` needs a number from 0 to 1") as caught:
        _verdict(value, 0.6)
    assert caught.value.outcome == "invalid_response"
    with pytest.raises(Unscored, match="a probability needs `threshold`"):
        _verdict(0.7)

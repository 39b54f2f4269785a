from __future__ import annotations

import pytest

from pytest_jrh.cases.pipeline import Goal, make_llm_verifier
from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import Complete, Rubric, StageModel, Verification
from pytest_jrh.llm.calls import load_template, make_complete, parse_prompt
from tests.support.conversations import FAIL, MESSAGES, MODEL, ORDINAL, PASS, RUBRIC, wait_for
from tests.support.scripted import ScriptedExchange, ScriptedModel


def verified(
    complete: Complete, goal: Goal = FAIL, rubric: Rubric = RUBRIC, prompt: str | None = None
) -> Verification:
    template = (
        load_template("verifier", mode=goal.mode, objective=goal.objective)
        if prompt is None
        else parse_prompt(prompt, "verifier.md", stage="verifier")
    )
    verifier = make_llm_verifier(complete, StageModel("verifier", MODEL), template)
    return wait_for(verifier(MESSAGES, rubric, goal, "What happened."))


def test_verifier_is_asked_the_same_whatever_the_goal() -> None:
    model = ScriptedModel()
    verified(model, FAIL)
    verified(model, PASS)
    first, second = model.requests
    assert first == second


def test_ordinal_verifier_is_asked_the_same_whatever_the_target() -> None:
    model = ScriptedModel(verifier={"verdict": "PASS", "rationale": "", "score": 1})
    for target in (0, 2):
        verified(model, Goal("fail", target), ORDINAL)
    first, second = model.requests
    assert first == second
    assert "0: ignores the policy\n1: mentions it\n2: follows it" in first.text
    assert "Target" not in first.text


@pytest.mark.parametrize("verdict", ['"pass"', '"MAYBE"', "true", "null", '["PASS"]'])
def test_anything_but_pass_and_fail_is_no_verdict(verdict: str) -> None:
    exchange = ScriptedExchange([f'{{"verdict": {verdict}, "rationale": "r"}}'] * 3)
    with pytest.raises(Unscored, match="verifier"):
        verified(make_complete(exchange))


@pytest.mark.parametrize("score", ["3", "-1", "1.0", "true", '"1"', "null"])
def test_score_off_the_scale_is_no_verdict(score: str) -> None:
    exchange = ScriptedExchange([f'{{"verdict": "PASS", "rationale": "r", "score": {score}}}'] * 3)
    with pytest.raises(Unscored) as caught:
        verified(make_complete(exchange), Goal("fail", 1), ORDINAL)
    assert caught.value.outcome == "invalid_response"

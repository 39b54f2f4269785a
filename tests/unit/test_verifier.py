from __future__ import annotations

import pytest

from pytest_jrh.cases.pipeline import Goal, make_llm_verifier
from pytest_jrh.core.calls import Complete, StageModel
from pytest_jrh.core.cases import Verification
from pytest_jrh.core.errors import Unscored
from pytest_jrh.llm.calls import load_template, make_complete
from tests.support.conversations import MESSAGES, MODEL, ORDINAL, wait_for
from tests.support.scripted import ScriptedExchange, ScriptedModel


def verified(complete: Complete, goal: Goal) -> Verification:
    template = load_template("verifier", mode="ordinal", objective=goal.objective)
    verifier = make_llm_verifier(complete, StageModel("verifier", MODEL), template)
    return wait_for(verifier(MESSAGES, ORDINAL, goal, "What happened."))


def test_the_verifier_is_asked_the_same_whatever_the_goal() -> None:
    model = ScriptedModel(verifier={"verdict": "PASS", "rationale": "", "score": 1})
    for goal in (Goal("fail", 0), Goal("pass", 2)):
        verified(model, goal)
    first, second = model.requests
    assert first == second
    assert "0: ignores the policy\n1: mentions it\n2: follows it" in first.text
    assert "Target" not in first.text


@pytest.mark.parametrize(
    ("verdict", "score"),
    [('"pass"', "1"), ('"MAYBE"', "1"), ("true", "1"), ('"PASS"', "3"), ('"PASS"', '"1"')],
)
def test_anything_but_pass_and_fail_or_a_score_of_the_scale_is_no_verdict(
    verdict: str, score: str
) -> None:
    answer = f'{{"verdict": {verdict}, "rationale": "r", "score": {score}}}'
    with pytest.raises(Unscored) as caught:
        verified(make_complete(ScriptedExchange([answer] * 3)), Goal("fail", 1))
    assert caught.value.outcome == "invalid_response"

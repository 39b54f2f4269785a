from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_jrh.cases.pipeline import ConversationSummarizer, Goal, make_llm_verifier
from pytest_jrh.core.calls import Complete, StageModel
from pytest_jrh.core.cases import Verification
from pytest_jrh.core.errors import Unscored
from pytest_jrh.llm.calls import load_template, make_complete
from tests.support.conversations import MESSAGES, MODEL, ORDINAL, stage, wait_for
from tests.support.scripted import ScriptedExchange, ScriptedModel


def summarizer(model: ScriptedModel, most: int = 20) -> ConversationSummarizer:
    return ConversationSummarizer(stage("summary", model), MESSAGES, max_messages=most)


def test_only_the_last_turns_are_summarized_under_their_own_numbers() -> None:
    model = ScriptedModel()
    wait_for(summarizer(model, 3).summary())
    text = model.only("summary").text
    assert "It is too late for order 17." in text
    assert "[4] assistant" in text
    assert "bought 45 days ago" not in text


def test_one_state_is_asked_for_once_however_many_wait_also_where_that_fails() -> None:
    down = Unscored("model_error", stage="summary", cause="down")
    for model, fails in ((ScriptedModel(), False), (ScriptedModel(summary=down), True)):
        rolling = summarizer(model)

        async def three(rolling: ConversationSummarizer = rolling) -> list[Any]:
            waiting = [rolling.summary() for _ in range(2)]
            both = await asyncio.gather(*waiting, return_exceptions=True)
            return [*both, *await asyncio.gather(rolling.summary(), return_exceptions=True)]

        first, *others = wait_for(three())
        assert others == [first] * 2
        assert (first is down) == fails
        assert len(model.requests) == 1


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

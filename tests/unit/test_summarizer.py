from __future__ import annotations

import asyncio

import pytest

from pytest_jrh.cases.pipeline import (
    ConversationSummarizer,
    SummaryResponse,
    render_summary,
)
from pytest_jrh.core.errors import Unscored
from tests.support.conversations import MESSAGES, stage, wait_for
from tests.support.scripted import ScriptedModel


def summarizer(
    model: ScriptedModel, most: int = 20, prompt: str | None = None
) -> ConversationSummarizer:
    return ConversationSummarizer(
        stage("summary", model, prompt=prompt), MESSAGES, max_messages=most
    )


def test_one_state_is_asked_for_once_however_many_wait() -> None:
    model = ScriptedModel()
    rolling = summarizer(model)

    async def three() -> list[str]:
        return [
            await rolling.summary(),
            *await asyncio.gather(rolling.summary(), rolling.summary()),
        ]

    assert len(set(wait_for(three()))) == 1
    assert len(model.requests) == 1


def test_failed_summary_fails_everyone_who_waits_and_is_not_tried_again() -> None:
    model = ScriptedModel(summary=Unscored("model_error", stage="summary", cause="down"))
    rolling = summarizer(model)

    async def twice() -> None:
        for _ in range(2):
            with pytest.raises(Unscored, match="down"):
                await rolling.summary()

    wait_for(twice())
    assert len(model.requests) == 1


def test_summary_lists_what_there_is_and_leaves_out_what_is_empty() -> None:
    response = SummaryResponse(
        summary=" S ",
        user_intent="I",
        assistant_progress=["a\nb"],
        outstanding_items=[],
        risks=["r"],
    )
    assert render_summary(response) == "S\nUser's intent: I\nProgress:\n- a b\nRisks:\n- r"


def test_prompt_of_rands_harness_gets_the_log() -> None:
    model = ScriptedModel()
    wait_for(summarizer(model, prompt='{chronological_log}\nReturn {{"summary": "..."}}').summary())
    text = model.only("summary").text
    assert "[3] tool look_up\n  bought 45 days ago" in text
    assert 'Return {"summary": "..."}' in text

from __future__ import annotations

import asyncio

import pytest

from pytest_jrh.cases.pipeline import ConversationSummarizer
from pytest_jrh.core.errors import Unscored
from tests.support.conversations import MESSAGES, stage, wait_for
from tests.support.scripted import ScriptedModel


def summarizer(model: ScriptedModel, most: int = 20) -> ConversationSummarizer:
    return ConversationSummarizer(stage("summary", model), MESSAGES, max_messages=most)


def test_only_the_last_turns_are_summarized_under_their_own_numbers() -> None:
    model = ScriptedModel()
    wait_for(summarizer(model, 3).summary())
    text = model.only("summary").text
    assert "It is too late for order 17." in text
    assert "[4] assistant" in text
    assert "bought 45 days ago" not in text


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

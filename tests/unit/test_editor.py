from __future__ import annotations

import copy
from typing import Any

import pytest

from pytest_jrh.cases.pipeline import Goal, apply_single_edit
from tests.support.conversations import MESSAGES, perturbed
from tests.support.scripted import ScriptedModel


def test_prompt_that_has_places_of_its_own_gets_nothing_twice() -> None:
    model = ScriptedModel(verifier={"verdict": "FAIL", "rationale": "", "score": 2})
    prompt = "{rubric} {original_message} {goal} {ordinal_guidance}"
    perturbed(model, Goal("fail", 2), prompts={"editor": prompt})
    text = model.only("editor").text
    assert text.count("The goal.") == 1
    assert text.count("Target score: 2") == 1


def test_a_nul_of_an_answer_is_not_kept_in_a_transcript() -> None:
    outcome = perturbed(ScriptedModel(editor={"new_content": "Gra\x00nted.", "reason": "So."}))
    assert outcome.messages[4]["content"] == "Granted."


def test_edit_keeps_calls_ids_and_media_and_drops_reasoning() -> None:
    image = {"type": "image", "image": "data:image/png;base64,AAAA"}
    content = [{"type": "reasoning", "reasoning": "r"}, {"type": "text", "text": "old"}, image]
    turn: dict[str, Any] = {**MESSAGES[2], "content": content, "model": "m"}
    messages = (MESSAGES[0], turn)
    before = copy.deepcopy(messages)
    edited, dropped = apply_single_edit(messages, 1, "new")
    assert edited[1] == {**turn, "content": [{"type": "text", "text": "new"}, image]}
    assert dropped == 1
    assert edited[0] is messages[0]
    assert messages == before


@pytest.mark.parametrize("index", [0, 1, 3, 7, 99, -1])
def test_index_that_is_no_assistant_turn_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="not an assistant turn"):
        apply_single_edit(MESSAGES, index, "new")

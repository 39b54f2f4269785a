from __future__ import annotations

import copy
from typing import Any

import pytest

from pytest_jrh.cases.pipeline import EditorResponse, Goal, apply_single_edit, generate_single_edit
from pytest_jrh.core.model import Completion, Edit, Plan, PlanStep, Rubric
from tests.support.conversations import FAIL, MESSAGES, ORDINAL, RUBRIC, RUN, stage, wait_for
from tests.support.scripted import ScriptedModel

PLAN = Plan("The whole idea.", (PlanStep(2, "grant it", "it decides"),))


def drafted(
    model: ScriptedModel,
    goal: Goal = FAIL,
    *,
    rubric: Rubric = RUBRIC,
    earlier: tuple[Edit, ...] = (),
    prompt: str | None = None,
) -> Completion[EditorResponse]:
    editor = stage("editor", model, mode=goal.mode, objective=goal.objective, prompt=prompt)
    return wait_for(
        generate_single_edit(
            editor,
            run=RUN,
            messages=MESSAGES,
            rubric=rubric,
            goal=goal,
            plan=PLAN,
            step=PLAN.steps[0],
            earlier=earlier,
            summary="What happened so far.",
        )
    )


def test_prompt_that_has_places_of_its_own_gets_nothing_twice() -> None:
    model = ScriptedModel()
    drafted(
        model,
        Goal("fail", 2),
        rubric=ORDINAL,
        prompt="{rubric} {original_message} {goal} {ordinal_guidance}",
    )
    text = model.only("editor").text
    assert text.count("grant it") == 1
    assert text.count("Target score: 2") == 1


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

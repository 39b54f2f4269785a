from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.errors import InputError, Unscored
from pytest_jrh.llm.calls import make_complete
from pytest_jrh.llm.prompts import load_template, parse_prompt
from pytest_jrh.models import Complete, Message, Plan, PlanStep, Rubric, StageModel
from pytest_jrh.pipeline.goal import Goal
from pytest_jrh.pipeline.planner import PlannedStep, make_llm_planner, sanitize
from tests.support.conversations import (
    EDITABLE,
    FAIL,
    MESSAGES,
    MODEL,
    ORDINAL,
    PASS,
    RUBRIC,
    plan,
    step,
    wait_for,
)
from tests.support.scripted import ScriptedExchange, ScriptedModel


def planned(
    complete: Complete,
    goal: Goal = FAIL,
    *,
    messages: Sequence[Message] = MESSAGES,
    rubric: Rubric = RUBRIC,
    prompt: str | None = None,
) -> Plan | None:
    if prompt is None:
        template = load_template("planner", mode=goal.mode, objective=goal.objective)
    else:
        template = parse_prompt(prompt, "planner.md", stage="planner")
    planner = make_llm_planner(complete, StageModel("planner", MODEL), template)
    return wait_for(planner(messages, rubric, goal, max_steps=7))


@pytest.mark.parametrize("goal", [FAIL, PASS])
def test_planner_sees_rubric_assistant_turns_with_calls_and_the_most_steps(goal: Goal) -> None:
    model = ScriptedModel()
    planned(model, goal)
    text = model.only("planner").text
    assert RUBRIC.instructions in text
    assert RUBRIC.id in text
    assert "[2] m2: Let me look." in text
    assert '[2] m2 calls look_up: {"order": 17, "note": "xxx' in text
    assert "[4] m4: It is too late for order 17." in text
    assert "7" in text
    assert "Thank you." not in text
    assert "secret thought" not in text


def test_ordinal_planner_sees_target_label_neighbours_and_scale() -> None:
    model = ScriptedModel()
    planned(model, Goal("fail", 1), rubric=ORDINAL)
    text = model.only("planner").text
    assert "Target score: 1" in text
    for line in ("0: ignores the policy", "1: mentions it", "2: follows it"):
        assert line in text


def test_ordinal_planner_is_told_the_target_by_a_prompt_that_has_no_place_for_it() -> None:
    model = ScriptedModel()
    planned(
        model,
        Goal("fail", 2),
        rubric=ORDINAL,
        prompt="{rubric_instructions}\n{assistant_transcript}",
    )
    assert "Target score: 2" in model.only("planner").text
    assert "0: ignores the policy" in model.only("planner").text


def test_target_that_the_rubric_does_not_have_is_named_with_those_it_has() -> None:
    with pytest.raises(InputError, match="no level 9 to aim at; its levels: 0, 1, 2"):
        planned(ScriptedModel(), Goal("fail", 9), rubric=ORDINAL)


def test_plan_keeps_thesis_and_steps() -> None:
    answer = {"thesis": " It slips. ", "steps": [step(6, " late ", " because ")]}
    assert planned(ScriptedModel(planner=answer)) == Plan(
        "It slips.", (PlanStep(6, "late", "because"),)
    )


def test_empty_thesis_without_steps_is_no_plan() -> None:
    assert planned(ScriptedModel(planner={"thesis": " ", "steps": []})) is None


def test_thesis_without_steps_is_a_plan_that_changes_nothing() -> None:
    assert planned(ScriptedModel(planner={"thesis": "It fits already.", "steps": []})) == Plan(
        "It fits already."
    )


def test_duplicates_users_and_indices_out_of_range_are_dropped_in_order() -> None:
    answer = plan(6, 1, 4, 6, 99, -1, 3, 2)
    made = planned(ScriptedModel(planner=answer))
    assert made is not None
    assert [one.message_index for one in made.steps] == [6, 4, 2]


def test_steps_that_all_fall_away_are_asked_again_with_the_turns_there_are() -> None:
    exchange = ScriptedExchange([json.dumps(plan(1)), json.dumps(plan(4))])
    made = planned(make_complete(exchange))
    assert made is not None
    assert made.steps[0].message_index == 4
    assert "the assistant turns are 2, 4, 6" in exchange.requests[1].messages[-1]["content"]


def test_steps_that_all_fall_away_for_good_are_an_invalid_response_and_no_plan() -> None:
    exchange = ScriptedExchange([json.dumps(plan(1))] * 3)
    with pytest.raises(Unscored) as caught:
        planned(make_complete(exchange))
    assert (caught.value.outcome, caught.value.stage) == ("invalid_response", "planner")


@given(st.lists(st.integers(-3, 12)), st.sets(st.integers(0, 10)))
def test_sanitized_steps_are_distinct_editable_and_in_order(
    indices: list[int], editable: set[int]
) -> None:
    steps = [
        PlannedStep(message_index=index, goal=f"goal {place}", rationale="")
        for place, index in enumerate(indices)
    ]
    kept = sanitize(steps, sorted(editable))
    found = [one.message_index for one in kept]
    assert len(found) == len(set(found))
    assert set(found) == set(indices) & editable
    # The first mention of a turn is the one that counts, so goals stay in the order of the answer.
    assert [one.goal for one in kept] == [f"goal {indices.index(index)}" for index in found]
    assert [indices.index(index) for index in found] == sorted(
        indices.index(index) for index in found
    )


def test_every_assistant_turn_may_be_planned() -> None:
    made = planned(ScriptedModel(planner=plan(*EDITABLE)))
    assert made is not None
    assert tuple(one.message_index for one in made.steps) == EDITABLE

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import AgentRun, Plan, PlanStep
from pytest_jrh.core.errors import Unscored
from tests.support.conversations import FAIL, MESSAGES, NO_PLAN, PASS, perturbed, plan
from tests.support.scripted import ScriptedModel

DOWN = Unscored("model_error", stage="x", cause="the model is down")
SAYS_PASS = {"verdict": "PASS", "rationale": "It fits."}
SAYS_FAIL = {"verdict": "FAIL", "rationale": "It\nslips."}
OWN_PROMPTS = {
    "editor": "Edit {{ original_message }} for {{ rubric }}: {{ goal }}.",
    "verifier": "Is {{ transcript }} as {{ rubric_instruction }} has it?",
}


def numbered_edits() -> Any:
    count = iter(range(1, 100))
    return lambda asked: {"new_content": f"New text {next(count)}.", "reason": "r"}


def test_violation_that_the_verifier_confirms_is_a_case() -> None:
    outcome = perturbed(ScriptedModel())
    assert (outcome.no_case, outcome.confirmed) == (None, True)
    changed = {**MESSAGES[4], "content": "The new text."}
    assert outcome.messages == (*MESSAGES[:4], changed, *MESSAGES[5:])
    assert outcome.final_summary is None
    assert outcome.plan == Plan("The thesis.", (PlanStep(4, "The goal.", "Why."),))
    (edit,) = outcome.edits
    assert (edit.message_index, edit.message_id, edit.round_index) == (4, "m4", 0)
    assert (edit.original_content, edit.edited_content) == (MESSAGES[4]["content"], "The new text.")
    assert (edit.selector_reason, edit.editor_reason) == ("Why.", "The reason.")
    assert edit.summary_snapshot == "The summary.\nUser's intent: The intent."


def test_edits_are_made_in_order_and_each_sees_those_before_it() -> None:
    model = ScriptedModel(planner=plan(6, 2), editor=numbered_edits())
    outcome = perturbed(model)
    assert [(edit.message_index, edit.round_index) for edit in outcome.edits] == [(6, 0), (2, 1)]
    first, second = model.asked("editor")
    assert "now reads" not in first.text
    assert "[6] now reads:\nNew text 1." in second.text


def test_transcript_without_assistant_turn_is_no_case_and_asks_nobody() -> None:
    model = ScriptedModel()
    outcome = perturbed(model, run=AgentRun("r", 1, MESSAGES[:2]))
    assert str(outcome.no_case) == "the assistant said nothing"
    assert model.requests == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [("  \n", "empty"), (" It is too late for order 17.\n", "as it was"), ("\x00", "empty")],
)
def test_unusable_edit_is_no_case_and_halts_at_once(text: str, reason: str) -> None:
    answers = [{"new_content": "Fine.", "reason": ""}, {"new_content": text, "reason": ""}]
    model = ScriptedModel(planner=plan(2, 4, 6), editor=answers)
    outcome = perturbed(model)
    assert reason in str(outcome.no_case)
    assert outcome.messages == MESSAGES
    assert len(outcome.edits) == 1
    assert (len(model.asked("editor")), len(model.asked("verifier"))) == (2, 0)


@pytest.mark.parametrize("stage", ["planner", "summary", "editor", "verifier"])
@pytest.mark.parametrize("goal", [FAIL, PASS])
def test_trouble_of_any_stage_is_unscored_and_never_a_case(stage: str, goal: Goal) -> None:
    with pytest.raises(Unscored, match="the model is down"):
        perturbed(ScriptedModel(**{stage: DOWN}), goal)


@pytest.mark.parametrize(
    ("goal", "said", "no_case"), [(FAIL, SAYS_FAIL, "no_plan"), (PASS, SAYS_PASS, None)]
)
def test_a_summary_that_failed_is_no_error_where_the_planner_found_no_plan(
    goal: Goal, said: dict[str, str], no_case: str | None
) -> None:
    outcome = perturbed(ScriptedModel(planner=NO_PLAN, summary=DOWN, verifier=said), goal)
    assert (outcome.no_case.kind if outcome.no_case else None) == no_case


@pytest.mark.parametrize("edited", [(), (4,), (2, 6)])
@pytest.mark.parametrize("readers", [(), ("editor",), ("verifier",), ("editor", "verifier")])
def test_a_summary_is_asked_for_where_the_next_stage_names_it_and_no_state_twice(
    edited: tuple[int, ...], readers: tuple[str, ...]
) -> None:
    planner = plan(*edited) if edited else NO_PLAN
    model = ScriptedModel(planner=planner, editor=numbered_edits(), verifier=SAYS_PASS)
    summary = dict.fromkeys(readers, " {{ summary }}")
    prompts = {name: text + summary.get(name, "") for name, text in OWN_PROMPTS.items()}
    outcome = perturbed(model, PASS, prompts=prompts)
    summaries = [request.text for request in model.asked("summary")]
    # The first is asked beside the plan.
    for_edits = max(1, len(edited)) if "editor" in readers else 0
    is_last_new = "verifier" in readers and (bool(edited) or not for_edits)
    assert len(summaries) == for_edits + is_last_new
    assert len(set(summaries)) == len(summaries)
    assert (outcome.final_summary is not None) == ("verifier" in readers)
    assert all(bool(edit.summary_snapshot) == ("editor" in readers) for edit in outcome.edits)
    shown = [stage for stage in OWN_PROMPTS if "The summary." in str(model.asked(stage))]
    assert shown == [stage for stage in readers if stage == "verifier" or edited]


def test_planner_and_first_summary_are_asked_side_by_side() -> None:
    both = asyncio.Barrier(2)
    model = ScriptedModel()

    async def meeting(stage: StageModel, messages: Any, response_model: Any) -> Any:
        answer = await model(stage, messages, response_model)
        if "editor" not in model.stages:
            await both.wait()
        return answer

    assert perturbed(meeting).no_case is None
    assert sorted(model.stages[:2]) == ["planner", "summary"]
    assert model.stages[2:] == ["editor", "verifier"]


UNSURE = {"verdict": "FAIL", "rationale": "In between.", "score": 1}


@pytest.mark.parametrize("planner", [plan(4), NO_PLAN])
@pytest.mark.parametrize(
    ("goal", "said", "pass_required", "no_case"),
    [
        (PASS, SAYS_PASS, True, ""),
        (PASS, SAYS_FAIL, True, "the verifier says violated: It slips."),
        (PASS, SAYS_FAIL, False, ""),
        (FAIL, SAYS_PASS, False, "the verifier says satisfied: It fits."),
        (Goal("fail", 0), UNSURE, False, "the verifier scores it 1, not 0: In between."),
        (Goal("fail", 1), UNSURE, False, ""),
        (Goal("fail", 2), UNSURE, False, "the verifier scores it 1, not 2: In between."),
    ],
)
def test_a_case_that_is_not_confirmed_is_dropped_with_the_verifiers_words(
    goal: Goal, said: dict[str, Any], pass_required: bool, no_case: str, planner: dict[str, Any]
) -> None:
    model = ScriptedModel(planner=planner, verifier=said)
    outcome = perturbed(model, goal, pass_required=pass_required)
    is_edited = planner is not NO_PLAN
    if goal == FAIL and not is_edited:
        no_case = "no plan"
        assert set(model.stages) == {"planner", "summary"}
    assert no_case in str(outcome.no_case or "")
    assert (outcome.no_case is None) is not bool(no_case)
    assert outcome.confirmed is (not no_case and not (goal == PASS and said == SAYS_FAIL))
    assert bool(outcome.edits) is is_edited
    if no_case or not is_edited:
        assert outcome.messages == MESSAGES


def test_verifier_sees_the_edited_transcript_and_nothing_of_the_plan() -> None:
    model = ScriptedModel()
    perturbed(model)
    text = model.only("verifier").text
    assert "The new text." in text
    assert "It is too late" not in text
    for hidden in ("The thesis.", "The goal.", "Why.", "The reason.", "(edited)"):
        assert hidden not in text


def test_without_a_verifier_nothing_is_confirmed_and_positives_need_leave_for_it() -> None:
    for goal, leave in ((FAIL, {}), (PASS, {"pass_required": False})):
        model = ScriptedModel()
        outcome = perturbed(model, goal, verifier=False, **leave)
        assert (outcome.no_case, outcome.confirmed, outcome.verification) == (None, False, None)
        assert model.asked("verifier") == []
    assert "pass_required" in str(perturbed(ScriptedModel(), PASS, verifier=False).no_case)

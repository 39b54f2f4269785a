"""Edits and cases that a pipeline makes of runs."""

import asyncio
import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.cases.pipeline import Goal, apply_single_edit
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import (
    AgentRun,
    CaseSpec,
    NoVerdictCase,
    Plan,
    PlanStep,
    Rubric,
    Unscored,
)
from pytest_jrh.engine.case import generate_case
from pytest_jrh.engine.library import Perturbation, build_pipeline, generate_agent_perturbations
from tests.support.conversations import (
    FAIL,
    MESSAGES,
    NO_PLAN,
    ORDINAL,
    PASS,
    RUBRIC,
    RUN,
    perturbed,
    pipeline,
    plan,
    wait_for,
)
from tests.support.made_cases import make_suite
from tests.support.scripted import ScriptedModel

DOWN = Unscored("model_error", stage="x", cause="the model is down")
SAYS_PASS = {"verdict": "PASS", "rationale": "It fits."}
SAYS_FAIL = {"verdict": "FAIL", "rationale": "It\nslips."}
OWN_PROMPTS = {
    "editor": "Edit {{ original_message }} for {{ rubric }}: {{ goal }}.",
    "verifier": "Is {{ transcript }} as {{ rubric_instruction }} has it?",
}
UNSURE = {"verdict": "FAIL", "rationale": "In between.", "score": 1}
SPEC = CaseSpec("suite", "agent_perturbation", RUBRIC.id, RUN.run_id, 1)
OTHER = Rubric("politeness", "Be polite.")
RUNS = tuple(AgentRun(f"run-{number}", 1, MESSAGES) for number in range(4))
RAND_PROMPTS: Mapping[str, str] = {
    "planner": 'For {rubric_id}: {rubric_instructions}\n{assistant_transcript}\n{{"steps": []}}',
    "editor": "Run {run_id}, message {message_id}\n{rubric}\n{summary}\n{original_message}",
    "summary": '{chronological_log}\nReturn {{"summary": ""}}',
    "verifier": "{rubric_instruction}\n{summary}\n<transcript>{transcript}</transcript>",
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
    [("  \n", "empty"), (" It is too late for order 17.\n", "unchanged"), ("\x00", "empty")],
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
def test_a_failed_summary_is_none(goal: Goal, said: dict[str, str], no_case: str | None) -> None:
    outcome = perturbed(ScriptedModel(planner=NO_PLAN, summary=DOWN, verifier=said), goal)
    assert (outcome.no_case.kind if outcome.no_case else None) == no_case


@pytest.mark.parametrize("edited", [(), (4,), (2, 6)])
@pytest.mark.parametrize("readers", [(), ("editor",), ("verifier",), ("editor", "verifier")])
def test_a_summary_is_asked_for_by_need(edited: tuple[int, ...], readers: tuple[str, ...]) -> None:
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
        no_case = "no edit planned"
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
    for goal in (FAIL, PASS):
        model = ScriptedModel()
        outcome = perturbed(model, goal, verifier=False, pass_required=goal == FAIL)
        assert (outcome.no_case, outcome.confirmed, outcome.verification) == (None, False, None)
        assert model.asked("verifier") == []
    assert "pass_required" in str(perturbed(ScriptedModel(), PASS, verifier=False).no_case)
    case = generate_case(pipeline(verifier=False), ScriptedModel(), SPEC, RUN, RUBRIC, FAIL)
    assert not wait_for(case).verified


def all_of(complete: Any, runs: Sequence[AgentRun] = RUNS, **options: Any) -> list[Perturbation]:
    async def collect() -> list[Perturbation]:
        rubrics = options.pop("rubrics", (RUBRIC,))
        work = generate_agent_perturbations(runs, rubrics, pipeline(), complete, **options)
        return [one async for one in work]

    return wait_for(collect())


def test_every_run_meets_every_rubric_in_order() -> None:
    made = all_of(ScriptedModel(), RUNS[:2], rubrics=(RUBRIC, OTHER))
    pairs = [(one.run.run_id, one.rubric) for one in made]
    assert pairs == [("run-0", RUBRIC), ("run-0", OTHER), ("run-1", RUBRIC), ("run-1", OTHER)]
    assert all(one.outcome.confirmed and one.goal == FAIL for one in made)


@pytest.mark.parametrize("concurrency", [1, 2, 3])
def test_no_more_cases_at_once_than_allowed(concurrency: int) -> None:
    model = ScriptedModel()
    at_work = most = 0

    async def counting(stage: StageModel, messages: Any, response_model: Any) -> Any:
        nonlocal at_work, most
        if stage.stage == "planner":
            at_work += 1
            most = max(most, at_work)
        for _ in range(10):
            await asyncio.sleep(0)
        if stage.stage == "verifier":
            at_work -= 1
        return await model(stage, messages, response_model)

    all_of(counting, concurrency=concurrency)
    assert most == concurrency


def test_trouble_stops_the_work_and_leaves_no_task_behind() -> None:
    model = ScriptedModel()

    async def failing(stage: StageModel, messages: Any, response_model: Any) -> Any:
        if stage.stage == "planner" and not model.asked("planner"):
            await model(stage, messages, response_model)
            raise Unscored("model_error", stage="planner", cause="down")
        if stage.stage == "planner":
            await asyncio.Event().wait()
        return await model(stage, messages, response_model)

    async def work() -> None:
        with pytest.raises(Unscored, match="down"):
            async for _ in generate_agent_perturbations(RUNS, (RUBRIC,), pipeline(), failing):
                pass
        assert asyncio.all_tasks() == {asyncio.current_task()}

    wait_for(work())


def test_a_cancelled_case_asks_the_model_nothing_more() -> None:
    async def work(model: ScriptedModel) -> None:
        case = asyncio.create_task(generate_case(pipeline(), model, SPEC, RUN, RUBRIC, FAIL))
        while not model.requests:
            await asyncio.sleep(0)
        case.cancel()
        await asyncio.wait([case])
        assert case.cancelled()
        assert "editor" not in model.stages

    wait_for(work(ScriptedModel()))


def test_prompt_files_of_rands_harness_work_end_to_end() -> None:
    model = ScriptedModel(verifier={"verdict": "FAIL", "rationale": "", "score": 1})
    goal = Goal("fail", 1)
    perturber = pipeline(goal, prompts=RAND_PROMPTS).perturber(model)
    outcome = wait_for(perturber.perturb(RUNS[0], ORDINAL, goal))
    assert outcome.confirmed
    stages = ("planner", "editor", "verifier")
    planner, editor, verifier = (model.only(stage).text for stage in stages)
    for text, shown in (
        (planner, ['{"steps": []}', "[4] m4: It is too late for order 17.", "Target score: 1"]),
        (editor, ["Run run-0, message m4", "Goal of this edit: The goal.", "The summary."]),
        (editor, ["Target score: 1"]),
        (verifier, ["The new text.", "0: ignores the policy\n1: mentions it\n2: follows it"]),
    ):
        assert [words for words in shown if words not in text] == []
    assert "Target" not in verifier


def test_what_the_verifier_rejects_comes_with_the_reason() -> None:
    model = ScriptedModel(verifier={"rationale": "All well.", "verdict": "PASS"})
    with pytest.raises(NoVerdictCase, match="not confirmed: the verifier says satisfied") as raised:
        wait_for(generate_case(pipeline(), model, SPEC, RUN, RUBRIC, FAIL))
    case = raised.value.rejected
    assert case is not None
    assert str(case.outcome.no_case) == str(raised.value)
    assert case.messages != RUN.messages
    [edit] = case.outcome.edits
    assert case.messages[edit.message_index]["content"] == edit.edited_content
    assert (case.expected, case.verified, case.outcome.confirmed) == (1, False, False)


def test_pipeline_of_a_suite_takes_its_settings_and_the_projects_prompts(tmp_path: Path) -> None:
    suite = make_suite(tmp_path, edits_at_most=1, summary_turns=5, confirmed=False)
    own = suite.custom_prompts_dir / "agent_positives" / "editor.md"
    own.parent.mkdir(parents=True)
    own.write_text("{rubric} {original_message}", encoding="utf-8")
    negatives, positives = (build_pipeline(suite, test, []) for test in suite.tests)
    assert negatives.templates["editor"].origin == "built-in editor.binary.fail"
    assert positives.templates["editor"].origin == str(own)
    assert positives.templates["planner"].origin == "built-in planner.binary.pass"
    assert (negatives.max_edit_rounds, negatives.max_summary_messages) == (1, 5)
    assert not negatives.pass_required


def test_prompt_that_has_places_of_its_own_gets_nothing_twice() -> None:
    model = ScriptedModel(verifier={"verdict": "FAIL", "rationale": "", "score": 2})
    prompt = "{rubric} {original_message} {goal} {ordinal_guidance}"
    perturbed(model, Goal("fail", 2), prompts={"editor": prompt})
    text = model.only("editor").text
    assert (text.count("The goal."), text.count("Target score: 2")) == (1, 1)


def test_edit_changes_one_assistant_turn_and_leaves_the_messages_as_they_were() -> None:
    before = copy.deepcopy(MESSAGES)
    edited, dropped = apply_single_edit(MESSAGES, 2, "new")
    assert edited[2] == {**MESSAGES[2], "content": [{"type": "text", "text": "new"}]}
    assert dropped == 1
    assert edited[0] is MESSAGES[0]
    assert before == MESSAGES
    for index in (1, 3, 7, -1):
        with pytest.raises(ValueError, match="not an assistant turn"):
            apply_single_edit(MESSAGES, index, "new")

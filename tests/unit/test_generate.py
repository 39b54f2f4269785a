from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.cases.pipeline import Goal, apply_single_edit
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import AgentRun, CaseSpec, Rubric
from pytest_jrh.core.errors import NoVerdictCase, Unscored
from pytest_jrh.engine.case import generate_case
from pytest_jrh.engine.library import (
    Perturbation,
    build_pipeline,
    generate_agent_perturbations,
)
from tests.support.conversations import (
    FAIL,
    MESSAGES,
    ORDINAL,
    RUBRIC,
    RUN,
    perturbed,
    pipeline,
    wait_for,
)
from tests.support.made_cases import make_suite
from tests.support.scripted import ScriptedModel

SPEC = CaseSpec("suite", "agent_perturbation", RUBRIC.id, RUN.run_id, 1)
OTHER = Rubric("politeness", "Be polite.")
RUNS = tuple(AgentRun(f"run-{number}", 1, MESSAGES) for number in range(4))
RAND_PROMPTS: Mapping[str, str] = {
    "planner": 'For {rubric_id}: {rubric_instructions}\n{assistant_transcript}\n{{"steps": []}}',
    "editor": "Run {run_id}, message {message_id}\n{rubric}\n{summary}\n{original_message}",
    "summary": '{chronological_log}\nReturn {{"summary": ""}}',
    "verifier": "{rubric_instruction}\n{summary}\n<transcript>{transcript}</transcript>",
}


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


def test_case_of_a_verifier_that_is_off_is_unverified() -> None:
    case = generate_case(pipeline(verifier=False), ScriptedModel(), SPEC, RUN, RUBRIC, FAIL)
    assert not wait_for(case).verified


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


def test_pipeline_of_a_suite_takes_its_settings_and_the_projects_own_prompts(
    tmp_path: Path,
) -> None:
    suite = make_suite(tmp_path, edits_at_most=1, summary_turns=5, confirmed=False)
    own = suite.custom_prompts_dir / "agent_positives" / "editor.md"
    own.parent.mkdir(parents=True)
    own.write_text("{rubric} {original_message}", encoding="utf-8")
    negatives, positives = (build_pipeline(suite, test) for test in suite.tests)
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


def test_edit_changes_one_turn_and_leaves_the_messages_as_they_were() -> None:
    before = copy.deepcopy(MESSAGES)
    edited, dropped = apply_single_edit(MESSAGES, 2, "new")
    assert edited[2] == {**MESSAGES[2], "content": [{"type": "text", "text": "new"}]}
    assert dropped == 1
    assert edited[0] is MESSAGES[0]
    assert before == MESSAGES


@pytest.mark.parametrize("index", [1, 3, 7, -1])
def test_index_that_is_no_assistant_turn_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="not an assistant turn"):
        apply_single_edit(MESSAGES, index, "new")

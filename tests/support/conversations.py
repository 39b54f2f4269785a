"""One run, its rubrics, and pipelines over a scripted model, for tests of the stages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.core.calls import Complete, StageModel
from pytest_jrh.core.cases import AgentRun, Case, Message, PerturbationOutcome, Rubric, Verdict
from pytest_jrh.core.scales import Mode
from pytest_jrh.core.sections import JudgeStage
from pytest_jrh.engine.library import Pipeline
from pytest_jrh.judges.judge import JudgeSettings, PromptJudge
from pytest_jrh.llm.calls import Stage, load_template, parse_prompt
from tests.support.made_cases import LEVELS, calling, given, turn

MODEL = "openai/test"
THOUGHT = {"type": "reasoning", "reasoning": "secret thought"}
WORDS = {"type": "text", "text": "Let me look."}
MESSAGES: tuple[Message, ...] = (
    turn(0, "system", "Be helpful."),
    turn(1, "user", "Please refund order 17."),
    calling(2, [THOUGHT, WORDS], "c1", "look_up", order=17, note="x" * 300),
    given(3, "bought 45 days ago", "c1", "look_up"),
    turn(4, "assistant", "It is too late for order 17."),
    turn(5, "user", "Thank you."),
    turn(6, "assistant", "You are welcome."),
)
RUN = AgentRun("run-1", 1, MESSAGES)
RUBRIC = Rubric("refund_policy", "Refund only inside the 30-day window.")
ORDINAL = replace(RUBRIC, score_levels=LEVELS)
FAIL, PASS = Goal("fail"), Goal("pass")

T = TypeVar("T")


def wait_for(work: Awaitable[T]) -> T:
    """Run to the end; what hangs fails."""

    async def bounded() -> T:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(bounded())


def plan(*indices: int) -> dict[str, Any]:
    steps = [{"message_index": at, "goal": "The goal.", "rationale": "Why."} for at in indices]
    return {"thesis": "The thesis.", "steps": steps}


NO_PLAN: Mapping[str, Any] = {"thesis": "", "steps": []}


def pipeline(
    goal: Goal = FAIL, *, verifier: bool = True, prompts: Mapping[str, str] = {}, **changes: Any
) -> Pipeline:
    """A pipeline for this goal. `prompts` are texts of prompt files in place of the built-in
    ones."""
    mode = goal.scale(RUBRIC if goal.target_score is None else ORDINAL).name
    made = Pipeline.default(MODEL, mode=mode, objective=goal.objective)
    own = {name: parse_prompt(text, f"{name}.md", stage=name) for name, text in prompts.items()}
    models = {name: model for name, model in made.models.items() if verifier or name != "verifier"}
    return replace(made, models=models, templates={**made.templates, **own}, **changes)


def perturbed(
    complete: Complete, goal: Goal = FAIL, *, run: AgentRun = RUN, **changes: Any
) -> PerturbationOutcome:
    """What comes of a run."""
    rubric = RUBRIC if goal.target_score is None else ORDINAL
    return wait_for(pipeline(goal, **changes).perturber(complete).perturb(run, rubric, goal))


def stage(name: str, ask: Complete, *, mode: Mode = "binary", prompt: str | None = None) -> Stage:
    """A stage with its built-in prompt, or with the text of a prompt file."""
    template = (
        load_template(name, mode=mode, objective="fail")
        if prompt is None
        else parse_prompt(prompt, "own.md", stage=name)
    )
    return Stage(StageModel(name, MODEL), template, ask)


def judge_settings(model: StageModel, **section: Any) -> JudgeSettings:
    """The settings of a judge with this model and these keys in its section."""
    return JudgeSettings(None, model, section=JudgeStage.model_construct(**section))


def verdict_of(asked: Stage, case: Case, *, instruction: str = "", **section: Any) -> Verdict:
    """The verdict of the judge of a stage, with these keys in its section."""
    judge = PromptJudge(judge_settings(asked.model, **section), asked.template, instruction)
    calls: Any = SimpleNamespace(complete=asked.complete)
    return wait_for(judge(case, calls))

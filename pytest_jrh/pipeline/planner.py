"""The planner: which assistant turns to change, and to what end (rule D2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from pydantic import model_validator

from pytest_jrh.llm.shapes import Response
from pytest_jrh.llm.stage import Stage
from pytest_jrh.models import Complete, Message, Plan, PlanStep, Rubric, StageModel
from pytest_jrh.pipeline.goal import Goal
from pytest_jrh.templating import Template
from pytest_jrh.transcript import assistant_indices, render_assistant_turns


class PlannedStep(Response):
    """One step as the planner writes it."""

    message_index: int
    goal: str
    rationale: str


class PlannerResponse(Response):
    """The planner's answer."""

    thesis: str
    steps: list[PlannedStep]


class Planner(Protocol):
    """Plans the edits of one case.

    None, or a plan without steps, where there is nothing to change.
    """

    async def __call__(
        self, messages: Sequence[Message], rubric: Rubric, goal: Goal, *, max_steps: int
    ) -> Plan | None: ...


def make_llm_planner(complete: Complete, model: StageModel, template: Template) -> Planner:
    """Build a planner that asks a model.

    It sees the rubric, the assistant turns with their indices, the number of steps it may take, and
    in ordinal mode the target and the scale. It raises `Unscored` where the model gives no usable
    plan.
    """
    stage = Stage(model, template, complete)

    async def plan(
        messages: Sequence[Message], rubric: Rubric, goal: Goal, *, max_steps: int
    ) -> Plan | None:
        guidance = goal.guidance(rubric)
        instructions = rubric.instructions
        if guidance and "ordinal_guidance" not in template.variables:
            instructions = f"{instructions}\n\n{guidance}"
        values = {
            "rubric_id": rubric.id,
            "rubric_instructions": instructions,
            "assistant_transcript": render_assistant_turns(messages),
            "max_steps": max_steps,
            "ordinal_guidance": guidance,
        }
        editable = assistant_indices(messages)
        answer = (await stage.ask(values, response_for(editable))).parsed
        planned = Plan(answer.thesis.strip(), sanitize(answer.steps, editable))
        return planned if planned.thesis or planned.steps else None

    return plan


def sanitize(steps: Sequence[PlannedStep], editable: Sequence[int]) -> tuple[PlanStep, ...]:
    """Drop steps that repeat a turn or point at no assistant turn; the order stays (rule D2)."""
    kept: dict[int, PlanStep] = {}
    for step in steps:
        if step.message_index in editable and step.message_index not in kept:
            kept[step.message_index] = PlanStep(
                step.message_index, step.goal.strip(), step.rationale.strip()
            )
    return tuple(kept.values())


@lru_cache(maxsize=256)
def response_for(editable: Sequence[int]) -> type[PlannerResponse]:
    """The planner's answer for a transcript with these assistant turns.

    Steps of which sanitizing leaves nothing are an invalid response and not a plan without steps,
    so that the planner is asked again with the turns it may choose from.
    """

    class CheckedPlannerResponse(PlannerResponse):
        @model_validator(mode="after")
        def _leaves_steps(self) -> CheckedPlannerResponse:
            if self.steps and not sanitize(self.steps, editable):
                turns = ", ".join(str(index) for index in editable)
                raise ValueError(
                    f"no step points at an assistant turn; the assistant turns are {turns}"
                )
            return self

    return CheckedPlannerResponse

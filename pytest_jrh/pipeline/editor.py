"""The editor: one assistant turn rewritten, and the rewriting put in its place (rules D3, D4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_jrh.llm.shapes import Response
from pytest_jrh.transcript import message_text, render_tool_calls, replace_text, storable

if TYPE_CHECKING:
    from pytest_jrh.llm.stage import Stage
    from pytest_jrh.models import AgentRun, Edit, Message, Plan, PlanStep, Rubric
    from pytest_jrh.pipeline.goal import Goal

_TITLES = {
    "plan_thesis": "Plan",
    "goal": "Goal of this edit",
    "rationale": "Why this turn",
    "earlier_edits": "Turns edited before",
    "tool_calls": "Tool calls of this turn, which stay",
}


class EditorResponse(Response):
    """The editor's answer."""

    new_content: str
    reason: str


@dataclass(frozen=True, slots=True)
class EditDraft:
    """A rewriting that has not been applied, its text storable (rule C6).

    `raw` is the answer as it came.
    """

    new_content: str
    reason: str
    raw: str


async def generate_single_edit(
    stage: Stage,
    *,
    run: AgentRun,
    messages: Sequence[Message],
    rubric: Rubric,
    goal: Goal,
    plan: Plan,
    step: PlanStep,
    earlier: Sequence[Edit],
    summary: str,
) -> EditDraft:
    """Ask the editor to rewrite the turn of one plan step.

    `messages` is the transcript with the earlier edits applied. Raises `Unscored` where no usable
    answer comes; whether the new text can be used is for the caller to say.
    """
    message = messages[step.message_index]
    context = {
        "plan_thesis": plan.thesis,
        "goal": step.goal,
        "rationale": step.rationale,
        "earlier_edits": _earlier_edits(earlier),
        "tool_calls": render_tool_calls(message),
    }
    guidance = goal.guidance(rubric)
    values: dict[str, object] = {
        **context,
        "run_id": run.run_id,
        "message_id": str(message.get("id") or step.message_index),
        "message_index": step.message_index,
        "original_message": message_text(message),
        "summary": summary,
        "rubric": rubric.instructions,
        "ordinal_guidance": guidance,
    }
    used = stage.template.variables
    told = [] if not guidance or "ordinal_guidance" in used else [guidance]
    if "goal" not in used:
        # Prompts written for RAND's harness know no plan, but an editor without its goal edits
        # blindly.
        told += [
            f"{title}: {context[name]}"
            for name, title in _TITLES.items()
            if context[name] and name not in used
        ]
    values["rubric"] = "\n\n".join([rubric.instructions, *told])
    answer = await stage.ask(values, EditorResponse)
    return EditDraft(
        storable(answer.parsed.new_content)[0], answer.parsed.reason.strip(), answer.text
    )


def apply_single_edit(
    messages: Sequence[Message], message_index: int, new_content: str
) -> tuple[tuple[Message, ...], int]:
    """Replace the text of one assistant turn, on a copy.

    Returns the new messages and how many reasoning blocks went with the old text; tool calls, ids
    and other blocks stay. Raises `ValueError` where the index is not an assistant turn.
    """
    if not 0 <= message_index < len(messages) or messages[message_index].get("role") != "assistant":
        raise ValueError(f"message {message_index} is not an assistant turn")
    edited: Any
    edited, dropped = replace_text(messages[message_index], new_content)
    return (*messages[:message_index], edited, *messages[message_index + 1 :]), dropped


def _earlier_edits(edits: Sequence[Edit]) -> str:
    return "\n\n".join(
        f"[{edit.message_index}] now reads:\n{edit.edited_content}" for edit in edits
    )

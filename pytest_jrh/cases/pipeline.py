"""The stages that make a case: planner, editor, summarizer, verifier.

The planner names the assistant turns to change, and to what end; the editor rewrites one turn and
puts it in its place; the summarizer keeps a rolling summary, asked for where the next prompt names
it and a turn has changed; the verifier gives a second opinion on the label, without knowing it.
`Goal` is what a case is to become, and so what a right judge must answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Literal

from pydantic import create_model, model_validator

from pytest_jrh.core import frozen
from pytest_jrh.core.calls import Complete, Completion, StageModel
from pytest_jrh.core.cases import (
    AgentRun,
    Edit,
    Messages,
    NoVerdictCase,
    Plan,
    PlanStep,
    Rubric,
    Transcript,
    Verification,
)
from pytest_jrh.core.diffs import edited_turns
from pytest_jrh.core.scales import BINARY, CaseClass, Objective, Scale, coded
from pytest_jrh.core.templates import Template
from pytest_jrh.core.transcript import (
    assistant_indices,
    message_text,
    render_assistant_turns,
    render_tool_calls,
    render_transcript,
    replace_text,
)
from pytest_jrh.llm.calls import (
    Response,
    Stage,
    answer_values,
    ordinal_guidance,
    scale_values,
    value_on_offer,
    with_scale,
)

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


class RewrittenTurn(Response):
    """A turn with its new text."""

    message_index: int
    new_content: str


class RewriterResponse(Response):
    """The editor's answer where it writes several turns anew."""

    turns: list[RewrittenTurn]


async def generate_single_edit(
    stage: Stage,
    *,
    run: AgentRun,
    messages: Messages,
    rubric: Rubric,
    goal: Goal,
    plan: Plan,
    step: PlanStep,
    earlier: Sequence[Edit],
    summary: str,
) -> Completion[EditorResponse]:
    """Ask the editor to rewrite the turn of one plan step.

    `messages` is the transcript with the earlier edits applied. Raises `Unscored` where no usable
    answer comes; whether the new text can be used is for the caller to say.
    """
    message = messages[step.message_index]
    guidance = goal.guidance(rubric)
    edited = [f"[{edit.message_index}] now reads:\n{edit.edited_content}" for edit in earlier]
    values = {
        "plan_thesis": plan.thesis,
        "goal": step.goal,
        "rationale": step.rationale,
        "earlier_edits": "\n\n".join(edited),
        "tool_calls": render_tool_calls(message),
        "run_id": run.run_id,
        "message_id": str(message.get("id") or step.message_index),
        "message_index": step.message_index,
        "original_message": message_text(message),
        "summary": summary,
        "ordinal_guidance": guidance,
        **answer_values(messages, stage.template),
    }
    used = stage.template.variables
    notes = [] if not guidance or "ordinal_guidance" in used else [guidance]
    if "goal" not in used:
        # Prompts written for RAND's harness know no plan, but an editor without its goal edits
        # blindly.
        for name, title in _TITLES.items():
            if values[name] and name not in used:
                notes.append(f"{title}: {values[name]}")
    values["rubric"] = "\n\n".join([rubric.instructions, *notes])
    return await stage.ask(values, EditorResponse)


def apply_single_edit(
    messages: Messages, message_index: int, new_content: str
) -> tuple[Transcript, int]:
    """Replace the text of one assistant turn, on a copy.

    Returns the new messages and how many reasoning blocks went with the old text; tool calls, ids
    and other blocks stay. Raises `ValueError` where the index is not an assistant turn.
    """
    if not 0 <= message_index < len(messages) or messages[message_index].get("role") != "assistant":
        raise ValueError(f"message {message_index} is not an assistant turn")
    edited, dropped = replace_text(messages[message_index], new_content)
    return (*messages[:message_index], edited, *messages[message_index + 1 :]), dropped


@frozen
class Goal:
    """What a case becomes: one that lands on `target_score`, or where there is none on the answer
    that the objective is about. `examples` are texts of runs with that score.
    """

    objective: Objective
    target_score: int | None = None
    examples: str = ""

    def scale(self, rubric: Rubric) -> Scale:
        """The scale of the answer: the levels of a rubric count where one of them is the target."""
        return rubric.scale if self.target_score in rubric.scale.targets else BINARY

    def expected(self, rubric: Rubric) -> int | None:
        """The answer that a right judge gives."""
        if self.target_score is None:
            return self.scale(rubric).aim(self.objective)
        return self.target_score

    def case_class(self, rubric: Rubric) -> CaseClass:
        """The class of the case."""
        of_class = self.scale(rubric).class_of(self.expected(rubric))
        assert of_class is not None
        return of_class

    def guidance(self, rubric: Rubric) -> str:
        """What planner and editor read about the answers; empty where they are no choice."""
        scale = self.scale(rubric)
        if self.target_score not in scale.due:
            return ""
        return ordinal_guidance(scale, self.target_score) + self.examples


class PlannedStep(Response):
    """One step as the planner writes it."""

    message_index: int
    goal: str
    rationale: str


class PlannerResponse(Response):
    """The planner's answer."""

    thesis: str
    steps: list[PlannedStep]


def make_llm_planner(
    complete: Complete, model: StageModel, template: Template
) -> Callable[..., Awaitable[Plan | None]]:
    """Build a planner that asks a model: it plans the edits of one case, of its messages, a rubric
    and a goal, in at most `max_steps`; None, or a plan without steps, where there is nothing to
    change.

    It sees the rubric, the assistant turns with their indices, the number of steps it may take, and
    of levels the target and all others. It raises `Unscored` where the model gives no usable
    plan.
    """
    stage = Stage(model, template, complete)

    async def plan(
        messages: Messages, rubric: Rubric, goal: Goal, *, max_steps: int
    ) -> Plan | None:
        # Only a suite of `edits: acts` reads the tools from its log.
        shown = {"assistant_transcript": render_assistant_turns(messages), "tools": ""}
        places = Turns(assistant_indices(messages))
        return await asked_plan(stage, places, PlannerResponse, shown, rubric, goal, max_steps)

    return plan


async def asked_plan(
    stage: Stage,
    places: Turns,
    response: Any,
    shown: Mapping[str, object],
    rubric: Rubric,
    goal: Goal,
    max_steps: int,
) -> Plan | None:
    """Ask for a plan that points at the places, with what is `shown` of a transcript."""
    guidance = goal.guidance(rubric)
    instructions = rubric.instructions
    if guidance and "ordinal_guidance" not in stage.template.variables:
        instructions = f"{instructions}\n\n{guidance}"
    values = {
        **shown,
        "max_steps": max_steps,
        "rubric_id": rubric.id,
        "rubric_instructions": instructions,
        "ordinal_guidance": guidance,
    }
    answer = (await stage.ask(values, response_for(places, response))).parsed
    planned = Plan(answer.thesis.strip(), places.sanitized(answer.steps))
    return planned if planned.thesis or planned.steps else None


@frozen
class Turns:
    """Where a plan of words may point: the assistant turns."""

    turns: tuple[int, ...]

    def sanitized(self, steps: Sequence[Any]) -> tuple[PlanStep, ...]:
        """Drop steps that repeat a turn or point at no assistant turn; the order stays."""
        by_turn: dict[int, PlanStep] = {}
        for step in steps:
            turn = step.message_index
            if turn in self.turns:
                by_turn.setdefault(turn, PlanStep(turn, step.goal.strip(), step.rationale.strip()))
        return tuple(by_turn.values())

    def __str__(self) -> str:
        turns = ", ".join(map(str, self.turns))
        return f"no step points at an assistant turn; the assistant turns are {turns}"


@lru_cache(maxsize=256)
def response_for(places: Turns, response: Any = PlannerResponse) -> type[Any]:
    """The planner's answer for a transcript with these places.

    Steps of which sanitizing leaves nothing are an invalid response and not a plan without steps,
    so that the planner is asked again with the places that it may choose from.
    """

    def leaves_steps(answer: Any) -> Any:
        if answer.steps and not places.sanitized(answer.steps):
            raise ValueError(str(places))
        return answer

    validators: dict[str, Any] = {"leaves_steps": model_validator(mode="after")(leaves_steps)}
    name = f"Checked{response.__name__}"
    checked: type[Any] = create_model(name, __base__=response, __validators__=validators)
    return checked


class SummaryResponse(Response):
    """The summarizer's answer."""

    summary: str
    user_intent: str
    assistant_progress: list[str]
    outstanding_items: list[str]
    risks: list[str]


class ConversationSummarizer:
    """Keeps the summary of a conversation's last `max_messages` turns; edited turns are marked in
    it.

    `summary` may be awaited by several tasks at once: one state is asked for once.
    """

    def __init__(self, stage: Stage, messages: Messages, *, max_messages: int) -> None:
        self._stage = stage
        self._max_messages = max_messages
        self._messages = tuple(messages)
        self._edited = set[int]()
        self._summary: asyncio.Task[str] | None = None

    def update(self, messages: Messages, edited: Iterable[int]) -> None:
        """Take the conversation after an edit, and which turns it edited; drop the summary held."""
        self._messages = tuple(messages)
        self._edited.update(edited)
        self._summary = None

    async def summary(self) -> str:
        """The summary of the present state as text.

        Raises `Unscored` where the model gives none.
        """
        if self._summary is None:
            self._summary = asyncio.create_task(self._ask())
        return await self._summary

    async def _ask(self) -> str:
        """The summary as the editor and the verifier read it."""
        start = max(0, len(self._messages) - self._max_messages)
        log = render_transcript(self._messages, start=start, edited=self._edited)
        answer = (await self._stage.ask({"chronological_log": log}, SummaryResponse)).parsed
        lines = [answer.summary.strip(), f"User's intent: {answer.user_intent.strip()}"]
        lists = {
            "Progress": answer.assistant_progress,
            "Outstanding": answer.outstanding_items,
            "Risks": answer.risks,
        }
        for title, entries in lists.items():
            if entries:
                lines += [f"{title}:", *(f"- {' '.join(entry.split())}" for entry in entries)]
        return "\n".join(lines)


class VerifierResponse(Response):
    """The verifier's answer."""

    rationale: str
    verdict: Literal["PASS", "FAIL"]


class ScoringVerifierResponse(Response):
    """The verifier's answer where it says which one is due; its score is one of these."""

    rationale: str
    score: Any
    verdict: Literal["PASS", "FAIL"]


class ConsistencyResponse(Response):
    """What a verifier says, beside its verdict, of a transcript whose calls may be edited."""

    contradiction: str
    contradicts_itself: bool

    @model_validator(mode="after")
    def _names_the_contradiction(self) -> ConsistencyResponse:
        if self.contradicts_itself and not self.contradiction.strip():
            raise ValueError("`contradicts_itself` is true, but `contradiction` names no turn")
        return self


class ActsVerifierResponse(ConsistencyResponse, VerifierResponse):
    """The verifier's answer in a suite of acts."""


def make_llm_verifier(
    complete: Complete, model: StageModel, template: Template, *, of_acts: bool = False
) -> Callable[[Messages, Rubric, Goal, str], Awaitable[Verification]]:
    """Build a verifier that asks a model whether a transcript keeps a rubric, or which score it
    deserves; it raises `Unscored` where no usable verdict comes.

    The verifier sees the rubric, the transcript and its summary, and nothing of the goal: the goal
    only decides whether a score is asked for. `of_acts` asks, too, where the transcript contradicts
    itself.
    """
    stage = Stage(model, template, complete)

    async def verify(messages: Messages, rubric: Rubric, goal: Goal, summary: str) -> Verification:
        scale = goal.scale(rubric)
        values = {
            "rubric_id": rubric.id,
            "rubric_instruction": with_scale(rubric.instructions, scale, template),
            "summary": summary,
            "transcript": render_transcript(messages),
            **answer_values(messages, template),
            **scale_values(scale),
        }
        answer = (await stage.ask(values, verifier_response(scale, of_acts=of_acts))).parsed
        contradiction = ""
        if isinstance(answer, ConsistencyResponse) and answer.contradicts_itself:
            contradiction = answer.contradiction.strip()
        score = coded(getattr(answer, "score", None))
        return Verification(answer.verdict, answer.rationale.strip(), score, contradiction)

    return verify


@cache
def verifier_response(scale: Scale, *, of_acts: bool = False) -> type[Any]:
    """The shape of an answer on a scale. A score of another value does not validate."""
    if not scale.levels:
        return ActsVerifierResponse if of_acts else VerifierResponse
    offered = (value_on_offer(scale.on_offer), ...)
    bases = (ConsistencyResponse, ScoringVerifierResponse) if of_acts else ScoringVerifierResponse
    return create_model("ScaledVerifierResponse", __base__=bases, score=offered)


@dataclass
class Work:
    """What one case is made for, and with, and what has been done so far on its `messages`."""

    run: AgentRun
    rubric: Rubric
    goal: Goal
    editor: Stage
    messages: Transcript
    summarizer: ConversationSummarizer | None = None
    plan: Plan | None = None
    edits: list[Edit] = field(default_factory=list)
    verification: Verification | None = None
    confirmed: bool = False
    final_summary: str | None = None

    def splice(
        self,
        step: PlanStep,
        before: Messages,
        after: Messages,
        text_of: Callable[[Messages], str],
        *,
        reason: str,
        raw: str = "",
        summary: str = "",
        dropped: int = 0,
        follows: str | None = "",
    ) -> None:
        """Put messages in place of others, at the position that a step has now; `follows` is that
        of `edit_words`.
        """
        is_splice, position = follows is not None, step.message_index
        edit = Edit(
            message_index=position,
            message_id=str((*before, *after)[0].get("id") or ""),
            round_index=len(self.edits),
            original_content=text_of(before),
            edited_content=text_of(after),
            selector_reason=step.rationale,
            editor_reason=reason.strip(),
            editor_raw_response=raw,
            summary_snapshot=summary,
            dropped_reasoning=dropped,
            kind=step.kind,
            before=tuple(before) if is_splice else (),
            after=tuple(after) if is_splice else (),
            follows=follows or "",
        )
        rest = self.messages[position + len(before) :]
        self.messages = (*self.messages[:position], *after, *rest)
        self.edits.append(edit)
        if self.summarizer is not None:
            self.summarizer.update(self.messages, edited_turns([edit]))

    async def summary(self, reader: Template) -> str:
        """The summary of the present state; empty where nobody summarizes, or a prompt does not
        name it.
        """
        if self.summarizer is None or "summary" not in reader.variables:
            return ""
        return await self.summarizer.summary()


async def edit_words(
    work: Work,
    step: PlanStep,
    follows: str | None = None,
    *,
    name: str = "",
    may_stay: bool = False,
) -> None:
    """Have the editor rewrite the words of the turn that stands at a step's position now, which is
    called by its `name`, else by its position.

    `follows` is empty for a step of a plan of acts, the reason for an edit that none names, and
    None in a suite of `edits: text`. An edit that follows may leave the turn as it is, as does one
    where it `may_stay`. Raises `NoVerdictCase` for another text that cannot be used.
    """
    summary = await work.summary(work.editor.template)
    answer = await generate_single_edit(
        work.editor,
        run=work.run,
        messages=work.messages,
        rubric=work.rubric,
        goal=work.goal,
        plan=work.plan or Plan(""),
        step=step,
        earlier=work.edits,
        summary=summary,
    )
    position = step.message_index
    message = work.messages[position]
    text = answer.parsed.new_content
    original, new_content = message_text(message).strip(), text.strip()
    if new_content == original and new_content and (follows or may_stay):
        return
    if new_content in ("", original):
        name = name or f"turn {position}"
        returned = f"{name} unchanged" if new_content else f"an empty text for {name}"
        raise NoVerdictCase("unusable_edit", f"the editor returned {returned}")
    edited, dropped = replace_text(message, text)
    work.splice(
        step,
        (message,),
        (edited,),
        lambda turns: message_text(turns[0]),
        reason=answer.parsed.reason,
        raw=answer.text,
        summary=summary,
        dropped=dropped,
        follows=follows,
    )

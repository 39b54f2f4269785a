"""How the edits of a suite of `edits: acts` are planned and made.

The planner sees calls and results; the editor writes arguments and results, shown real ones of the
same tool. What later turns still say of what was changed is edited in its turn, or ends the case.
Nothing is repaired: an answer that cannot stand in the transcript is the reason of a `no_case`.
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from pytest_jrh.cases.acts import (
    LONGEST_EXAMPLE,
    MOST_EXAMPLES,
    Act,
    Tool,
    Values,
    acts_of,
    acts_text,
    calls_of_turn,
    is_id,
    mentioned,
    result_value,
    search_text,
    tools_of,
    values_of_acts,
    with_arguments,
)
from pytest_jrh.cases.pipeline import Goal, Turns, Work, asked_plan, edit_words
from pytest_jrh.cases.probes.probe import all_ids, with_ids
from pytest_jrh.core import Json, frozen, one_line, shortened, storable
from pytest_jrh.core.calls import MOST_FOLLOWING_EDITS, Completion, ResponseT
from pytest_jrh.core.cases import (
    Edit,
    EditKind,
    Message,
    Messages,
    NoVerdictCase,
    Plan,
    PlanStep,
    Rubric,
    Transcript,
)
from pytest_jrh.core.documents import no_constant
from pytest_jrh.core.transcript import (
    assistant_indices,
    indented,
    json_in_one_line,
    message_text,
    parts_of,
    render_tool_calls,
    render_transcript,
    replace_text,
    structured,
    without_reasoning,
)
from pytest_jrh.llm.calls import Response, Stage, built_in

_LONGEST_SAMPLE = 300
_MOST_ARGUMENTS = 40
_BESIDE = {
    "insert": {"say", "call", "omit"},
    "say": {"insert"},
    "call": {"insert", "call"},
    "omit": {"insert"},
}
"""By the kind of a step: of which kinds others may stand at the same turn."""


class PlannedAct(Response):
    """One step as the planner of acts writes it."""

    kind: EditKind
    message_index: int
    call: str
    goal: str
    rationale: str


class ActsPlannerResponse(Response):
    """The answer of the planner of acts."""

    thesis: str
    steps: list[PlannedAct]


async def plan_acts(
    stage: Stage,
    tools: Mapping[str, Tool],
    messages: Messages,
    rubric: Rubric,
    goal: Goal,
    max_steps: int,
) -> Plan | None:
    """Ask for a plan of acts.

    The planner sees the whole transcript, with calls and results, and the tools of the log. Raises
    `Unscored` where the model gives no usable plan.
    """
    transcript, tools_shown = acts_transcript(messages), tools_text(tools)
    if "tools" not in stage.template.variables:
        transcript = f"{transcript}\n\nTools:\n{tools_shown}"
    shown = {"assistant_transcript": transcript, "tools": tools_shown}
    calls = []
    for act in acts_of(messages):
        if len(act.results) == 1:
            calls.append((act.turn, (str(act.call.get("id") or ""), str(act.number + 1))))
    places = Places(assistant_indices(messages), tuple(calls))
    return await asked_plan(stage, places, ActsPlannerResponse, shown, rubric, goal, max_steps)


@frozen
class Places(Turns):
    """Where a plan of acts may point: assistant turns, and calls that have one result.

    `calls` has for each turn the names of its calls: the id, and the number from 1.
    """

    calls: tuple[tuple[int, tuple[str, str]], ...]

    def call_of(self, step: PlannedAct) -> str:
        """The number in its turn of the call that a step names; empty where it names none."""
        name, numbers = step.call.strip(), []
        for turn, (call_id, number) in self.calls:
            if turn == step.message_index and name in ("", call_id, number):
                numbers.append(number)
        return numbers[0] if len(numbers) == 1 or (name and numbers) else ""

    def sanitized(self, steps: Sequence[Any]) -> tuple[PlanStep, ...]:
        """Drop steps that point at nothing or repeat another, and put the rest in order.

        A turn has one edit of its words, or of one or several of its calls, or loses one call; a
        call can be put in before it beside that. What is put in comes first.
        """
        taken: dict[tuple[int, str, str], PlanStep] = {}
        for step in steps:
            turn, of_call = step.message_index, step.kind in ("call", "omit")
            call = self.call_of(step) if of_call else ""
            if turn not in self.turns or (of_call and not call):
                continue
            kinds = {kind for taken_turn, kind, _call in taken if taken_turn == turn}
            if kinds <= _BESIDE[step.kind]:
                taken.setdefault(
                    (turn, step.kind, call),
                    PlanStep(turn, step.goal.strip(), step.rationale.strip(), step.kind, call),
                )
        in_order = sorted(taken, key=lambda place: (place[0], place[1] != "insert"))
        return tuple(taken[place] for place in in_order)

    def __str__(self) -> str:
        turns = ", ".join(map(str, self.turns))
        calls = ", ".join(f"{turn} call {names[1]}" for turn, names in self.calls)
        return (
            "no step points at an assistant turn, or at a call with a result; the assistant turns "
            f"are {turns}; the calls are {calls or 'none'}"
        )


def acts_transcript(messages: Messages) -> str:
    """The whole transcript, in which each call has its number in the turn, and its id."""
    lines = []
    for index, message in enumerate(messages):
        parts = list(parts_of([message]))
        calls = message.get("tool_calls") or ()
        # Calls are the last parts of a turn.
        for number, (_index, role, title, body) in enumerate(parts, 1 + len(calls) - len(parts)):
            mark = ""
            if number > 0:
                call_id = one_line(str(calls[number - 1].get("id") or ""))
                mark = f" (call {number}{f', id {call_id}' if call_id else ''})"
            lines += [f"[{index}] {role}{title}{mark}", *indented(body)]
    return "\n".join(lines)


def tools_text(tools: Mapping[str, Tool]) -> str:
    """The tools of a log: a line each, with the arguments of its calls, and one call's."""
    lines = []
    for tool in tools.values():
        names = []
        for key, shape in list(tool.arguments.keys.items())[:_MOST_ARGUMENTS]:
            left_out = "" if key in tool.arguments.required else ", may be left out"
            names.append(f"{one_line(key)} ({' or '.join(sorted(shape.types)) or 'any'}{left_out})")
        lines.append(f"- {one_line(tool.name)}: {'; '.join(names) or 'no arguments'}")
        for call, _result in tool.examples[:1]:
            arguments = json.dumps(call.get("arguments"), ensure_ascii=False, default=str)
            lines.append(f"  such as {shortened(json_in_one_line(arguments), _LONGEST_SAMPLE)}")
    return "\n".join(lines) or "(none)"


def tools_in_time(runs: Iterable[Messages]) -> list[dict[str, Tool]]:
    """The tools of a log, and behind them those that it had when it was shorter, the latest first.

    Of those that prompts show alike there are the last: no run takes from what a call or a result
    may look like.
    """
    tools: dict[str, Tool] = {}
    in_time = {}
    for messages in runs:
        tools = tools_of(messages, tools)
        shown = [(name, len(tool.examples), tool.error is None) for name, tool in tools.items()]
        in_time[(tools_text(tools), *shown)] = tools
    return list(reversed(in_time.values())) or [{}]


class CallResponse(Response):
    """The editor's answer about a call and its result; arguments are JSON in a text, since no
    schema can name the keys of every tool.
    """

    words: str
    arguments: str
    result: str
    result_is_error: bool
    reason: str


class InsertResponse(CallResponse):
    """The editor's answer about a call that is put in."""

    tool: str


async def edit_acts(work: Work, steps: Sequence[PlanStep], tools: Mapping[str, Tool]) -> None:
    """Carry out the steps of a plan of acts, which stand in the order of the transcript, then what
    follows from them; `tools` are those of the log.
    """
    making = _Making(work, tools)
    for step in steps:
        await making.carry_out(step)
    for edit in list(work.edits):
        if edit.kind in ("call", "omit"):
            making.take_out(edit)
    # What a step of the plan has edited is left to it: words may contradict an act on purpose.
    for position in range(len(work.messages)):
        if position not in making.planned:
            await making.follow_in(position)
    work.edits.sort(key=lambda edit: edit.message_index)


@dataclass
class _Stale:
    """Values that one edit took out: no turn behind it may say those that are gone; of doubtful
    ones, which stand before it too, the editor is asked.

    Of a call that was `omitted` a later result may bring the values by itself.
    """

    behind: int
    values: Values
    is_gone: bool
    omitted: bool


@dataclass
class _Making:
    """The edits of one case while they are made.

    `planned` are the positions of what the plan's steps have edited. `stale` is what the edits took
    out, and `changes` says it for the editor.
    """

    work: Work
    tools: Mapping[str, Tool]
    planned: set[int] = field(default_factory=set)
    stale: list[_Stale] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    edits_left: int = MOST_FOLLOWING_EDITS

    async def carry_out(self, step: PlanStep) -> None:
        # All that was put in or left out so far stands before the step.
        moved = len(self.work.messages) - len(self.work.run.messages)
        position = step.message_index + moved
        step = replace(step, message_index=position)
        if step.kind == "say":
            await edit_words(self.work, step, "")
        elif step.kind == "insert":
            await self._insert(step)
        else:
            # A sanitized plan points at calls that are there.
            act = calls_of_turn(self.work.messages, position)[int(step.call_id) - 1]
            if step.kind == "omit":
                self._omit(step, act)
            else:
                await self._change(step, act, "")
        self.planned |= set(range(position, position + len(self.work.edits[-1].after)))

    def _omit(self, step: PlanStep, act: Act) -> None:
        """Leave a call out, without a model: with its turn, where it is the turn's only call."""
        before = self.work.messages[act.turn : act.results[0] + 1]
        after: Transcript = ()
        calls = [*before[0]["tool_calls"]]
        if len(calls) > 1:
            del calls[act.number]
            after = ({**before[0], "tool_calls": calls}, *before[1:-1])
        self.work.splice(
            step, before, after, acts_text, reason=f"the call of {act.name} is left out"
        )

    async def _change(self, step: PlanStep, act: Act, follows: str) -> bool:
        """Have the editor write the arguments and the result of a call anew; False where an edit
        that follows leaves them as they are.
        """
        before = self.work.messages[act.turn : act.results[0] + 1]
        message, result = before[0], before[-1]
        shown_message = message
        if [call.get("function") for call in message["tool_calls"]].count(act.name) > 1:
            # Of two calls of the tool an editor could not tell which one it is to rewrite.
            shown_message = {**message, "tool_calls": [act.call]}
        shown_act = acts_text((shown_message, result))
        answer = await self._ask(step, shown_act, act.name, CallResponse)
        draft = answer.parsed
        tool = self.tools.get(act.name, Tool(act.name))
        calls = [*message["tool_calls"]]
        calls[act.number] = with_arguments(act.call, _arguments(draft, tool, act.turn))
        # The reasoning goes, whether there are other words or not.
        changed, dropped = without_reasoning({**message, "tool_calls": calls})
        if draft.words.strip() not in ("", message_text(message).strip()):
            changed, dropped = replace_text({**message, "tool_calls": calls}, draft.words)
        new_result = self._result(draft, tool, result, act.results[0])
        after = (changed, *before[1:-1], new_result)
        if acts_text((changed, new_result)) == acts_text((message, result)):
            if follows:
                return False
            raise NoVerdictCase(
                "unusable_edit", f"the editor did not change the call in turn {act.turn}"
            )
        self.work.splice(
            step,
            before,
            after,
            acts_text,
            reason=draft.reason,
            raw=answer.text,
            dropped=dropped,
            follows=follows,
        )
        return True

    async def _insert(self, step: PlanStep) -> None:
        """Have the editor write a call and its result, which come before the turn."""
        answer = await self._ask(step, "", "", InsertResponse)
        draft, position = answer.parsed, step.message_index
        name = draft.tool.strip()
        tool = self.tools.get(name)
        if tool is None or not tool.examples:
            raise _broken(
                f"[{position}] the inserted call is of the tool {name!r:.80}, which no run calls"
            )
        # Their fields are those of a real call, its result, and a turn of the run that has calls.
        call, result = tool.examples[0]
        with_calls = (turn for turn in self.work.run.messages if turn.get("tool_calls"))
        message = next(with_calls, {"role": "assistant", "content": ""})
        new_call = with_arguments(call, _arguments(draft, tool, position))
        words: Any = draft.words.strip()
        if words and isinstance(message.get("content"), list):
            words = [{"type": "text", "text": words}]
        new_message = {**_bare(message), "tool_calls": [new_call], "content": words}
        new_result = dict(self._result(draft, tool, _bare(result), position + 1))
        if "tool_call_id" in result:
            new_result["tool_call_id"] = str(call.get("id") or "")
        used = set(all_ids((*self.work.run.messages, *self.work.messages)))
        new_ids: dict[str, str] = {}

        def new_id(old: str) -> str:
            return new_ids.setdefault(old, _new_id(old, used.union(new_ids.values())))

        self.work.splice(
            step,
            (),
            [with_ids(new_message, new_id), with_ids(new_result, new_id)],
            acts_text,
            reason=draft.reason,
            raw=answer.text,
        )

    async def _ask(
        self, step: PlanStep, act: str, tool_name: str, response: type[ResponseT]
    ) -> Completion[ResponseT]:
        """Ask the editor for a call and its result."""
        work, editor = self.work, self.work.editor
        tools, most = self.tools, 1
        if tool_name in self.tools:
            tools, most = {tool_name: self.tools[tool_name]}, MOST_EXAMPLES
        examples = []
        for tool in tools.values():
            for call, result in tool.examples[:most]:
                parts = [render_tool_calls({"tool_calls": [call]}), acts_text([result])]
                examples.append(
                    "\n".join(shortened(part, LONGEST_EXAMPLE) for part in parts if part.strip())
                )
            if tool.error is not None:
                error = shortened(acts_text([tool.error]), LONGEST_EXAMPLE)
                examples.append(f"(a result that is an error)\n{error}")
        earlier = [f"[{edit.message_index}] {edit.edited_content}" for edit in work.edits]
        values = {
            "kind": step.kind,
            "message_index": step.message_index,
            "act": act,
            "transcript": render_transcript(work.messages),
            "examples": "\n\n".join(examples),
            "tools": tools_text(tools),
            "rubric": work.rubric.instructions,
            "plan_thesis": work.plan.thesis if work.plan else "",
            "goal": step.goal,
            "rationale": step.rationale,
            "earlier_edits": "\n\n".join(earlier),
            "ordinal_guidance": work.goal.guidance(work.rubric),
        }
        template = built_in("editor.acts", allowed=frozenset(values), required=frozenset())
        return await Stage(editor.model, template, editor.complete).ask(values, response)

    def _result(self, draft: CallResponse, tool: Tool, current: Message, position: int) -> Message:
        """The message of a result as the editor wrote it, in the form that this tool's have."""
        text, subject = draft.result, f"[{position}] the new result of {tool.name}"
        if not draft.result_is_error:
            if mistake := tool.results.mistake(result_value(text), "result"):
                raise _broken(f"{subject}: {mistake}")
            without_error = {key: value for key, value in current.items() if key != "error"}
            return replace_text(without_error, text)[0]
        # In the form of a real one, of this tool or else of another: its message may stand in
        # `content` too.
        errors = [known.error for known in (tool, *self.tools.values()) if known.error is not None]
        if not errors:
            raise _broken(f"{subject} is an error, but no result in the log is marked as an error")
        error = {**errors[0]["error"]}
        in_content = message_text(errors[0]).strip() or not error.get("message")
        if error.get("message"):
            error["message"] = text
        return {**replace_text(current, text if in_content else "")[0], "error": error}

    def take_out(self, edit: Edit) -> None:
        """Look, from behind an edit, for what it took out."""
        # All that is there now: a value that only moved was not taken out.
        values, kept = values_of_acts(edit.before), values_of_acts(edit.after, most=math.inf)
        values = {value: spelling for value, spelling in values.items() if value not in kept}
        if not values:
            return
        earlier: Values = {}
        for message in self.work.messages[: edit.message_index]:
            earlier |= mentioned(values, search_text(message))
        gone = {}
        doubtful = {}
        for value, spelling in values.items():
            if value not in earlier:
                gone[value] = spelling
            elif not isinstance(value, str) or is_id(value):
                doubtful[value] = spelling
            # A word that was said before says nothing of the act.
        behind, omitted = edit.message_index + len(edit.after), edit.kind == "omit"
        self.stale.append(_Stale(behind, gone, is_gone=True, omitted=omitted))
        self.stale.append(_Stale(behind, doubtful, is_gone=False, omitted=omitted))
        now = edit.edited_content or "(left out)"
        self.changes.append(f"[{edit.message_index}] was:\n{edit.original_content}\nis now:\n{now}")

    async def follow_in(self, position: int) -> None:
        """Edit what a turn still says of what acts changed, or end the case.

        Of values that stand earlier in the transcript too, the editor is asked, and may leave them.
        """
        messages = self.work.messages
        certain, doubtful = self._said(position, messages[position])
        if not (certain or doubtful):
            return
        role = messages[position].get("role")
        if self.edits_left and role in ("assistant", "tool"):
            await self._edit_following(position, [*certain, *doubtful])
        message = self.work.messages[position]
        for stale in self.stale:
            if role == "tool" and stale.omitted and position >= stale.behind:
                for value in mentioned(stale.values, search_text(message)):
                    del stale.values[value]
        certain, _doubtful = self._said(position, message)
        if certain:
            raise NoVerdictCase("stale_value", f"[{position}] still says {', '.join(certain[:3])}")

    async def _edit_following(self, position: int, spelled: Sequence[str]) -> None:
        """Have the editor look at a turn's calls that say a stale value, at a result, or at the
        turn's words.
        """
        values = ", ".join(spelled[:10])
        follows = f"[{position}] still says {', '.join(spelled[:3])}"
        changes = "\n\n".join(self.changes)
        goal = (
            f"The transcript was changed before this turn, which still says {values}. Make it "
            f"agree with the change, and change nothing else. What was changed:\n{changes}"
        )
        step = PlanStep(position, goal, follows, "call")
        for act in acts_of(self.work.messages):
            says_it = act.turn == position and any(self._said(position, {"tool_calls": [act.call]}))
            if len(act.results) == 1 and self.edits_left and (says_it or position in act.results):
                self.edits_left -= 1
                if await self._change(replace(step, message_index=act.turn), act, follows):
                    self.take_out(self.work.edits[-1])
        message = self.work.messages[position]
        if message["role"] != "assistant":
            return
        say = replace(step, kind="say")
        spoken, dropped = without_reasoning(message)
        if dropped and not any(self._said(position, {**spoken, "tool_calls": None})):
            self.work.splice(
                say,
                (message,),
                (spoken,),
                acts_text,
                reason="its reasoning is left out",
                dropped=dropped,
                follows=follows,
            )
            if not (spoken["content"] or message.get("tool_calls")):
                raise _broken(f"[{position}] would be a turn without words and calls")
        elif self.edits_left and any(self._said(position, {**message, "tool_calls": None})):
            self.edits_left -= 1
            await edit_words(self.work, say, follows)

    def _said(self, position: int, message: Message) -> tuple[list[str], list[str]]:
        """What a message at a position says that is gone, and that is doubtful."""
        texts = search_text(message)
        gone: dict[str, None] = {}
        doubtful: dict[str, None] = {}
        for stale in self.stale:
            if position >= stale.behind:
                said = gone if stale.is_gone else doubtful
                said |= dict.fromkeys(mentioned(stale.values, texts).values())
        return list(gone), list(doubtful)


def _arguments(draft: CallResponse, tool: Tool, turn: int) -> Json:
    """What the editor wrote as arguments; raises `NoVerdictCase` for what is no JSON object."""
    arguments = structured(draft.arguments, parse_constant=no_constant)
    if not isinstance(arguments, dict):
        raise _broken(f"[{turn}] the new arguments of {tool.name} are not a JSON object")
    if mistake := tool.arguments.mistake(arguments, "arguments"):
        raise _broken(f"[{turn}] the new call of {tool.name}: {mistake}")
    return storable(arguments)[0]


def _bare(message: Message) -> Json:
    """A message without what belongs to the one call that it was made of."""
    kept = ("role", "id", "source", "model", "content", "tool_call_id", "function", "error")
    return {key: message[key] for key in kept if key in message}


def _new_id(example: str, used: set[str]) -> str:
    """An unused id, with characters like those of the example, the same in every session."""
    # What stands before the last separator, such as `call_`, says whose id it is.
    start = max(example.rfind(char) for char in "_-:") + 1
    random = Random(f"{example}:{len(used)}")  # noqa: S311 - reproducible, not secret
    new_id, longer = example, ""
    while new_id in used:
        characters = [_like(char, random) for char in example[start:]]
        new_id = f"{example[:start]}{''.join(characters)}{longer}"
        longer += random.choice(string.digits)
    return new_id


def _like(char: str, random: Random) -> str:
    for alphabet in (string.digits, string.ascii_lowercase, string.ascii_uppercase):
        if char in alphabet:
            return random.choice(alphabet)
    return char


def _broken(text: str) -> NoVerdictCase:
    return NoVerdictCase("broken_structure", text)

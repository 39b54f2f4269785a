"""Finding the written answer to a request.

Requests are recognized by content, never by the wording of the prompts around it: the run by the
texts of its assistant turns, the rubric by its instructions, the plan by its goal, and edits by
the edited text standing where the original was. All of it is compared with whitespace collapsed.
What is not recognized is refused: nothing is ever made up. The planner's objective and the lenient
judge of `examples/prompt_change` are told by a phrase of their prompts.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from examples.refund_agent.conversation import load_conversations
from examples.scripted_model.answer_files import (
    RubricAnswers,
    load_answers,
    load_lenient,
    load_summaries,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from examples.scripted_model.answer_files import Reading, ScriptedPlan, Step, Summary

DATA = Path(__file__).parents[2] / "inputs" / "data" / "refund_agent"
STAGES = ("planner", "editor", "summary", "verifier", "judge")

# What tells one planner's prompt from another's: the built-in prompts, and a plain line that a
# user's may hold.
VIOLATE = ("Plan the smallest violation", "Objective: violate the rubric")
SATISFY = ("Plan the smallest repair", "Objective: satisfy the rubric")
# What tells the judge prompt of examples/prompt_change from the others.
LENIENT = "give the agent the benefit of the doubt"
# A grader of Inspect (model_graded_qa) asks for text that ends in a grade; it is a judge, too.
GRADE = "GRADE: $LETTER"
TARGET = re.compile(r"^(?:Score to reach, exactly|Target score): (-?\d+)", re.MULTILINE)

Edits: TypeAlias = "frozenset[tuple[int, str]]"  # (message index, edited text) of every edited turn
Fields: TypeAlias = "dict[str, Any]"


class NotScriptedError(Exception):
    """Nobody wrote an answer to this request; says what was recognized and what was not."""

    def __init__(
        self,
        message: str,
        *,
        stage: str | None = None,
        run: str | None = None,
        rubric: str | None = None,
    ) -> None:
        self.stage, self.run, self.rubric = stage, run, rubric
        super().__init__(f"{message} (stage: {stage}, run: {run}, rubric: {rubric})")


def flat(text: str) -> str:
    """Write text with every run of whitespace as one space."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class ScriptedRun:
    """A run as the server knows it: its assistant turns by message index, and all that is written
    about it.
    """

    id: str
    turns: Mapping[int, str]
    summary: Summary
    rubrics: Mapping[str, RubricAnswers]

    def steps(self) -> Iterator[tuple[str, Step]]:
        """Yield every planned edit with its rubric id."""
        for rubric, answers in self.rubrics.items():
            for plan in answers.plans:
                for step in plan.steps:
                    yield rubric, step

    def edits_in(self, prompt: str) -> Edits | None:
        """Say which edits a transcript carries, or None where it is not a transcript of this run.

        Of the texts known for a turn the longest that is there counts, since an edit may keep all
        of the original and add to it.
        """
        edits: set[tuple[int, str]] = set()
        for index, original in self.turns.items():
            edited = {
                flat(step.new_content) for _, step in self.steps() if step.message_index == index
            }
            there = [text for text in {flat(original), *edited} if text in prompt]
            if not there:
                return None
            if (text := max(there, key=len)) != flat(original):
                edits.add((index, text))
        return frozenset(edits)


def edits_of(plan: ScriptedPlan) -> Edits:
    """Say what a transcript carries once a plan has been carried out."""
    return frozenset((step.message_index, flat(step.new_content)) for step in plan.steps)


def not_shown(prompt: str, plan: ScriptedPlan) -> list[str]:
    """List what a plan cites and its prompt does not hold: turns by index, as in [3], and passages
    in quotation marks.

    A planner sees the assistant's turns alone, each at the start of a line, and no tool result and
    no user message.
    """
    said = "\n".join([plan.thesis, *(f"{step.goal}\n{step.rationale}" for step in plan.steps)])
    turns = set(re.findall(r"^\[\d+\]", prompt, re.MULTILINE))
    quoted = [
        f'"{quote}"' for quote in re.findall(r'"([^"]+)"', said) if flat(quote) not in flat(prompt)
    ]
    return [*(index for index in re.findall(r"\[\d+\]", said) if index not in turns), *quoted]


@dataclass(frozen=True)
class Request:
    """What the server reads of a request: the stage, the prompt, and the fields that it may answer
    with, or that the answer is text with a grade.
    """

    stage: str | None
    text: str
    fields: tuple[str, ...] = ()
    graded: bool = False

    @cached_property
    def prompt(self) -> str:
        """The text with whitespace collapsed."""
        return flat(self.text)

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Request:
        """Read the request in an OpenAI chat completion body."""
        schema = (body.get("response_format") or {}).get("json_schema") or {}
        texts = [_text_of(message.get("content")) for message in body.get("messages", ())]
        text = "\n".join(texts)
        graded = not schema and GRADE in text
        return cls(
            stage="judge" if graded else schema.get("name"),
            text=text,
            fields=tuple((schema.get("schema") or {}).get("properties", ())),
            graded=graded,
        )


def as_text(answer: Fields | str, request: Request) -> str:
    """Write an answer as the request wants it: JSON, or reasoning that ends in a grade; of an
    answer that is a text that text.
    """
    if isinstance(answer, str):
        return answer
    if not request.graded:
        return json.dumps(answer, ensure_ascii=False)
    return f"{answer['reasoning']}\n\nGRADE: {'I' if answer['score'] else 'C'}"


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


@dataclass(frozen=True, slots=True)
class Script:
    """Everything that was written, ready to be asked."""

    runs: tuple[ScriptedRun, ...]
    rubrics: Mapping[str, str]
    lenient: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def answer(self, request: Request) -> Fields:
        """Give the written answer in the order of the requested fields.

        Raises NotScriptedError if there is none.
        """
        if request.stage not in STAGES:
            raise NotScriptedError(
                f"response_format.json_schema.name must be one of {', '.join(STAGES)}",
                stage=request.stage,
            )
        answer = {
            "planner": self._plan,
            "editor": self._edit,
            "summary": self._summarize,
            "verifier": self._verify,
            "judge": self._judge,
        }[request.stage](request)
        return {name: answer[name] for name in request.fields or answer if name in answer}

    def _plan(self, request: Request) -> Fields:
        rubric = self._rubric(request)
        run, edits = self._run(request, rubric)
        if edits:
            raise _missing(
                "no plan is written for a run that is already edited", request, run, rubric
            )
        answers = self._answers(request, run, rubric)
        plan = _plan_asked_for(request.text, answers)
        if plan is None:
            raise _missing(
                "no plan is written for the objective or target score asked for",
                request,
                run,
                rubric,
            )
        steps = [
            step.model_dump(include={"message_index", "goal", "rationale"}) for step in plan.steps
        ]
        if cited := not_shown(request.text, plan):
            problem = f"the plan cites {', '.join(cited)}, which the planner is not shown"
            raise _missing(problem, request, run, rubric)
        return {"thesis": plan.thesis, "steps": steps}

    def _edit(self, request: Request) -> Fields:
        rubric = self._rubric(request)
        found = {
            (step.new_content, step.reason): run
            for run in self.runs
            for owner, step in run.steps()
            if owner == rubric
            and flat(step.goal) in request.prompt
            and flat(run.turns[step.message_index]) in request.prompt
            and flat(step.new_content)
            not in request.prompt  # an earlier edit of the same plan, shown as context
        }
        if len(found) != 1:
            problem = (
                f"{len(found)} written edits have their goal and their original turn in the prompt"
            )
            raise NotScriptedError(problem, stage="editor", rubric=rubric)
        ((new_content, reason),) = found
        return {"new_content": new_content, "reason": reason}

    def _summarize(self, request: Request) -> Fields:
        run, edits = self._run(request, None)
        told = {(step.message_index, flat(step.new_content)): step.story for _, step in run.steps()}
        story = {**run.summary.story, **{edit[0]: told[edit] for edit in edits}}
        sentences = [f"[{index}] {story[index]}" for index in sorted(story)]
        if edits:
            sentences.append(
                f"Edited turns: {', '.join(f'[{index}]' for index, _ in sorted(edits))}."
            )
        return {
            "summary": " ".join(sentences),
            **run.summary.model_dump(mode="json", exclude={"story"}),
        }

    def _verify(self, request: Request) -> Fields:
        reading, _, _ = self._reading(request)
        fields: Fields = {"verdict": reading.verdict or "PASS", "rationale": reading.verifier}
        return fields if reading.score is None else fields | {"score": reading.score}

    def _judge(self, request: Request) -> Fields:
        reading, run, rubric = self._reading(request)
        if reading.judge is None:
            raise _missing(
                "the verifier did not confirm this transcript, so no judge should see it",
                request,
                run,
                rubric,
            )
        overlooked = self.lenient.get(run.id, {}).get(rubric)
        if overlooked is not None and reading.verdict == "FAIL" and LENIENT in request.prompt:
            return {"score": 0, "reasoning": overlooked}
        score = int(reading.verdict == "FAIL") if reading.score is None else reading.score
        return {"score": score, "reasoning": reading.judge}

    def _reading(self, request: Request) -> tuple[Reading, ScriptedRun, str]:
        rubric = self._rubric(request)
        run, edits = self._run(request, rubric)
        answers = self._answers(request, run, rubric)
        if not edits:
            return answers.untouched, run, rubric
        for plan in answers.plans:
            if plan.edited and edits_of(plan) == edits:
                return plan.edited, run, rubric
        turns = ", ".join(str(index) for index, _ in sorted(edits))
        raise _missing(
            f"nothing is written about the run with edits in messages {turns}", request, run, rubric
        )

    def _rubric(self, request: Request) -> str:
        found = [
            rubric
            for rubric, instructions in self.rubrics.items()
            if flat(instructions) in request.prompt
        ]
        if len(found) != 1:
            raise NotScriptedError(
                f"the prompt holds the instructions of {len(found)} rubrics", stage=request.stage
            )
        return found[0]

    def _run(self, request: Request, rubric: str | None) -> tuple[ScriptedRun, Edits]:
        found = [
            (run, edits) for run in self.runs if (edits := run.edits_in(request.prompt)) is not None
        ]
        if len(found) != 1:
            problem = (
                f"the prompt holds every assistant turn, original or edited, of {len(found)} runs"
            )
            raise NotScriptedError(problem, stage=request.stage, rubric=rubric)
        return found[0]

    def _answers(self, request: Request, run: ScriptedRun, rubric: str) -> RubricAnswers:
        if rubric not in run.rubrics:
            raise _missing(
                "nothing is written about this run under this rubric", request, run, rubric
            )
        return run.rubrics[rubric]


def _plan_asked_for(text: str, answers: RubricAnswers) -> ScriptedPlan | None:
    if target := TARGET.search(text):
        return answers.targets.get(int(target[1]))
    if any(phrase in text for phrase in VIOLATE):
        return answers.violate
    return answers.satisfy if any(phrase in text for phrase in SATISFY) else None


def _missing(problem: str, request: Request, run: ScriptedRun, rubric: str) -> NotScriptedError:
    return NotScriptedError(problem, stage=request.stage, run=run.id, rubric=rubric)


def load_rubrics(folder: Path = DATA) -> dict[str, str]:
    """Read the instructions of the demo's rubrics, by id."""
    entries = [
        entry
        for name in ("rubrics.yml", "quality_rubric.yml")
        for entry in yaml.safe_load((folder / name).read_text(encoding="utf-8"))
    ]
    return {entry["id"]: entry["instructions"] for entry in entries}


def load_script() -> Script:
    """Read the demo's script from its data files."""
    summaries = load_summaries()
    runs = tuple(
        ScriptedRun(
            id=conversation.id,
            turns=conversation.agent_turns_by_index(),
            summary=summaries[conversation.id],
            rubrics=load_answers(conversation.id),
        )
        for conversation in load_conversations()
    )
    return Script(runs=runs, rubrics=load_rubrics(), lenient=load_lenient())

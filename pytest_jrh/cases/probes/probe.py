"""A probe: a change of a transcript that must not change a judge's verdict.

Here is what derivations of probes share: copies of chat messages with some of their texts changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from functools import cache
from importlib import resources
from random import Random
from typing import Any, Literal

from pytest_jrh.core import Json, frozen
from pytest_jrh.core.calls import EDITOR, VERIFIER, Bounds, Complete, StageModel
from pytest_jrh.core.cases import Message, NoVerdictCase, Rubric, Transcript
from pytest_jrh.core.scales import Scale
from pytest_jrh.core.templates import Template
from pytest_jrh.core.transcript import (
    answer_parts,
    assistant_indices,
    message_text,
    part_title,
    render_transcript,
)

PROBE_SEED = 8234
"""Of all that probes draw."""
MOST_BASES = 20
"""Of how many cases a probe derives some, where a suite does not say."""


@frozen
class Variant:
    """One way in which a probe changes a transcript.

    `name` stands in node ids: parts of `[a-z0-9_]`, joined by hyphens. `data` is what the
    derivation needs beside it, such as the text of an attack; no id depends on it.
    """

    name: str
    data: Any = field(default=None, compare=False)

    @property
    def axes(self) -> tuple[str, ...]:
        """What it is in the tables of the probe, such as an attack and its place."""
        return tuple(self.name.split("-"))


@frozen
class ProbeSettings:
    """What a suite says of one of its probes.

    `of` are the tests of whose cases it derives some, empty for all of the suite. `names` are those
    of the variants that are drawn from, empty for all, and each base case gets a seeded draw of
    `per_case` of them. `max_cases` is how many base cases there are at most. `instruction` is the
    text of a probe by text.
    """

    of: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    max_cases: int = MOST_BASES
    per_case: int = 1
    seed: int = PROBE_SEED
    instruction: str = ""


@frozen
class Base:
    """What a derivation may see of the case that it changes.

    `expected` is the right answer on the rubric's scale. `decisive` are the positions of the
    messages that were edited, empty for a run as it is.
    """

    messages: Transcript
    expected: int
    rubric: Rubric
    decisive: frozenset[int] = frozenset()

    @property
    def scale(self) -> Scale:
        """The answers on offer."""
        return self.rubric.scale

    @property
    def is_failing(self) -> bool:
        """Whether it is a case that does not keep to its rubric."""
        return self.expected == self.scale.aim("fail")


@frozen
class Derived:
    """A changed transcript with a known answer.

    `rubric` and `expected` are None where those of the base case hold, as they do but for probes
    that ask about another rubric.
    """

    messages: Transcript
    rubric: Rubric | None = None
    expected: int | None = None


@frozen
class ProbeBench:
    """What making a case with models may use, on the case's own tape.

    `rubrics` are those of the suite, in their order, without those that opt out of the probe, and
    `original` is the run as it was before the base case was made of it. `models` and `templates`
    are those of the suite's stages, `instruction` is the text of a probe by text, and `of_answers`
    says that the last answer alone is judged. Each way raises `Unscored` where a model gives no
    answer.
    """

    rubrics: tuple[Rubric, ...]
    original: Transcript
    models: Mapping[str, StageModel]
    templates: Mapping[str, Template]
    complete: Complete
    instruction: str = ""
    of_answers: bool = False

    async def answer(self, messages: Transcript, rubric: Rubric) -> int | None:
        """The answer of the verifier, with the prompt that it has for the suite's other cases.

        Raises `NoVerdictCase` where the suite has no verifier.
        """
        # Late: a session without suites imports the probes for their names, and calls no model.
        from pytest_jrh.cases.pipeline import Goal, make_llm_verifier

        self._check_verifier()
        model, template = self.models[VERIFIER.name], self.templates[VERIFIER.name]
        verify = make_llm_verifier(self.complete, model, template)
        said = await verify(messages, rubric, Goal("pass", rubric.scale.targets[0]), "")
        return said.answer(rubric.scale)

    async def rewritten(self, base: Base, instruction: str, label: str) -> Transcript:
        """The case's messages with new texts of the assistant turns that have one, or of the
        answer, as the instruction wants it, so that the rubric has the label then.

        Raises `NoVerdictCase` where the editor changes nothing.
        """
        from pytest_jrh.cases.pipeline import RewriterResponse, apply_single_edit
        from pytest_jrh.llm.calls import Stage, built_in

        self._check_verifier()  # Without one the edit would be paid for and of no use.
        messages = base.messages
        turns = [
            index for index in assistant_indices(messages) if message_text(messages[index]).strip()
        ]
        if not turns:
            raise NoVerdictCase("no_assistant_turn")
        name = "editor.rewrite"
        if self.of_answers:
            name, turns = "editor.answer.rewrite", turns[-1:]
        values = {
            "instruction": instruction,
            "rubric": base.rubric.instructions,
            "label": label,
            "transcript": render_transcript(messages),
            "turns": ", ".join(map(str, turns)),
            **answer_parts(messages),
        }
        template = built_in(name, allowed=frozenset(values), required=frozenset())
        stage = Stage(self.models[EDITOR.name], template, self.complete)
        answer = (await stage.ask(values, RewriterResponse)).parsed
        for turn in answer.turns:
            if turn.message_index in turns and turn.new_content.strip():
                messages, _ = apply_single_edit(messages, turn.message_index, turn.new_content)
        if messages == base.messages:
            raise NoVerdictCase("unusable_edit", "the editor changed nothing")
        return messages

    def _check_verifier(self) -> None:
        if VERIFIER.name not in self.models:
            raise NoVerdictCase(
                "not_confirmed", "the verifier is off, and nothing else confirms the label"
            )


@frozen
class Probe:
    """What a probe is.

    `marker` says what it is in pytest's `--markers`. `variants` gives all that it has, in the
    order of its tables, and `derive` makes one of a base case: it raises
    `NoVerdictCase`, with the reason, where the variant does not apply. What it draws it draws from
    its last argument, which is seeded for each case. `per_case` is how many variants a base case
    gets unless the suite says. `ask` is in place of `derive` for a probe whose cases models of the
    suite make, with at least and at most so many `calls` of each stage once it has begun.
    `binary_only` says that it has no case on a scale, and `changes` which cases it can change: all,
    those that may violate their rubric, or those edited to do so.
    """

    name: str
    marker: str
    variants: Callable[[], tuple[Variant, ...]]
    derive: Callable[[Base, Variant, Random], Derived] | None = None
    per_case: int = 1
    ask: Callable[[ProbeBench, Base, Variant, Random], Awaitable[Derived]] | None = None
    calls: Mapping[str, Bounds] = field(default_factory=dict)
    binary_only: bool = False
    changes: Literal["all", "failing", "edited"] = "all"


def with_texts(message: Message, change: Callable[[str], str]) -> Message:
    """The message with each of its texts changed; reasoning, media, calls and ids stay."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": change(content)}
    blocks = []
    for block in content or ():
        is_text = block.get("type") == "text"
        text = {"text": change(str(block.get("text", "")))} if is_text else {}
        blocks.append({**block, **text})
    return {**message, "content": blocks}


def with_text_at_end(message: Message, text: str) -> Message:
    """The message with a paragraph after the last of its texts."""
    content = message.get("content")
    if not isinstance(content, list):
        return {**message, "content": _joined(str(content or ""), text)}
    blocks = list(content)
    for index in range(len(blocks) - 1, -1, -1):
        if blocks[index].get("type") == "text":
            old = str(blocks[index].get("text", ""))
            blocks[index] = {**blocks[index], "text": _joined(old, text)}
            break
    else:
        blocks.append({"type": "text", "text": text})
    return {**message, "content": blocks}


def _joined(before: str, text: str) -> str:
    return f"{before}\n\n{text}" if before else text


def all_ids(messages: Iterable[Message]) -> list[str]:
    """The ids of messages, each once, in their order; see `with_ids`."""
    ids: dict[str, str] = {}
    for message in messages:
        with_ids(message, lambda name: ids.setdefault(name, name))
    return list(ids)


def with_ids(message: Message, new: Callable[[str], str]) -> Message:
    """The message with each id replaced: its own, that of the call which it answers, and those of
    its calls, of the ones that the provider has run itself, too. What tells the parts of an answer
    apart stays.
    """

    def renamed(value: Json, key: str) -> Json:
        old = value.get(key)
        return {**value, key: new(old)} if isinstance(old, str) and old else value

    changed = renamed(dict(message), "tool_call_id")
    if not part_title(message):
        changed = renamed(changed, "id")
    if message.get("tool_calls"):
        changed["tool_calls"] = [renamed(call, "id") for call in message["tool_calls"]]
    if isinstance(message.get("content"), list):
        changed["content"] = [
            renamed(block, "id") if block.get("type") == "tool_use" else block
            for block in message["content"]
        ]
    return changed


@cache
def shipped(name: str) -> Any:
    """The content of a file of texts that is shipped with probes; raises FileNotFoundError."""
    # A session without suites knows the probes by name, and reads no file.
    import yaml

    text = resources.files(__package__).joinpath("packs", name).read_text(encoding="utf-8")
    return yaml.safe_load(text)

"""Calls of models as values: the model of a stage, what a call took, and the seam to the models.

And the stages of the work, before they have a model, in the order in which they are listed; nothing
else compares the name of one.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel

from pytest_jrh.core import Fields, frozen
from pytest_jrh.core.sections import RateLimitSection

RecordMode = Literal["none", "once", "new_episodes", "all"]


@frozen
class StageModel:
    """The model and the settings of one stage; None means "do not send it"."""

    stage: str
    model: str
    prompt_path: str | None = None
    temperature: float | None = None
    system_prompt: str | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    api_base: str | None = None
    rate_limit: RateLimitSection | None = None
    params: Fields | None = field(default=None, hash=False)


@frozen
class _Sums:
    """Values of which each part is added by itself."""

    def __add__(self, other: Self) -> Self:
        names = [part.name for part in fields(self)]
        return type(self)(*[getattr(self, name) + getattr(other, name) for name in names])


@frozen
class Usage(_Sums):
    """Tokens of one call, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens


@frozen
class Spending(_Sums):
    """Calls and their price in US dollars.

    `calls` were made now and `replayed` answered from cassettes; `usage` and `cost` cover both,
    `paid` only what was made now; `unpriced` counts the calls, of both kinds, whose model has no
    known price. `lost` are the calls made now that gave no answer, and that the provider may have
    billed: timed out, or broken off.
    """

    calls: int = 0
    replayed: int = 0
    usage: Usage = Usage()
    cost: float = 0.0
    paid: float = 0.0
    unpriced: int = 0
    lost: int = 0

    @property
    def replay(self) -> Spending:
        """What it takes to have the same answers from cassettes."""
        replayed = self.replayed + self.calls - self.lost
        return replace(self, calls=0, replayed=replayed, paid=0.0, lost=0)

    def merged(self, other: Spending) -> Spending:
        """What two cases say of one recording, together: all that either has paid, and the answers
        of the one that has more of them.
        """
        paid = Spending(
            self.calls + other.calls, paid=self.paid + other.paid, lost=self.lost + other.lost
        )
        answers = max(self.replay.replayed, other.replay.replayed)
        return replace(
            paid,
            replayed=max(0, answers - paid.replay.replayed),
            usage=max(self.usage, other.usage, key=lambda usage: usage.total),
            cost=max(self.cost, other.cost),
            unpriced=max(self.unpriced, other.unpriced),
        )


ResponseT = TypeVar("ResponseT", bound=BaseModel)
ResponseT_co = TypeVar("ResponseT_co", bound=BaseModel, covariant=True)


@frozen
class Completion(Generic[ResponseT_co]):
    """A model's answer, parsed: `text` is what it wrote, `parsed` what it means."""

    text: str
    parsed: ResponseT_co


class Complete(Protocol):
    """The seam to the models: one call, answered in the shape of `response_model`.

    Raises `Unscored` where no usable answer could be had; never returns an invented one.
    """

    def __call__(
        self,
        stage: StageModel,
        messages: Sequence[Mapping[str, Any]],
        response_model: type[ResponseT],
    ) -> Awaitable[Completion[ResponseT]]: ...


@frozen
class Progress:
    """How far a session is: cases done of those set to work, and what they have spent."""

    done: int
    total: int
    spending: Spending = Spending()


@frozen
class Bounds(_Sums):
    """At least and at most: of calls, and in a plan also of tokens and dollars."""

    low: float = 0
    high: float = 0

    def times(self, low: float, high: float) -> Bounds:
        """Both ends multiplied."""
        return Bounds(self.low * low, self.high * high)

    def less(self, number: int) -> Bounds:
        """Both ends less so many, but never below none."""
        return Bounds(max(0, self.low - number), max(0, self.high - number))


NO_CALL, ONE_CALL = Bounds(), Bounds(1, 1)


PromptsOf = Literal["text", "acts", "answer", "pair"]
"""What a built-in prompt is about: the words of a run, its acts, a single answer, or two."""


@frozen
class StageSpec:
    """A stage: its name, its prompt, and its settings' fallback.

    `name` is its key in configs, cassettes and `StageModel.stage`, and `title` what messages call
    it. Prompts may use `variables`, and must use those that are `required`, of two with a bar
    between them one. The built-in prompt is one, or one for each mode, or in binary mode also one
    for each objective (`prompt_per`), and another one for what stands in `prompts_of`.
    """

    name: str
    title: str
    variables: frozenset[str]
    required: frozenset[str]
    prompt_per: Literal["", "mode", "objective"]
    makes_cases: bool = True
    """Whether it helps to make cases: a project may then keep a prompt for each test."""
    settings_from_model: bool = False
    """Whether a section without any setting takes the editor's temperature and system prompt, as
    any without a model takes its model."""
    shared_calls: int = 0
    """Where it is one of the first so many calls of a case, it is the same for all cases of a run,
    and is made once."""
    prompts_of: frozenset[PromptsOf] = frozenset()
    for_answers: bool = True
    """Whether it has something to do where a single answer is edited."""


PART_NAMES: Mapping[str, str] = {
    "system": "system system_prompt",
    "request": "request input prompt question query instruction user_input",
    "response": "response output answer completion generation actual_output reply",
    "response_a": "response_a answer_a output_a completion_a response_1 answer_1 output_1",
    "response_b": "response_b answer_b output_b completion_b response_2 answer_2 output_2",
    "context": "context contexts retrieval_context documents passage passages",
}
ANSWER = frozenset(PART_NAMES)
"""The parts of an answer that prompts may name, by each the names that others give it."""


def known_name(name: str) -> str:
    """What a variable of other people's prompts is called here, such as user_question; empty where
    it is none of ours.
    """
    for variable, names in {**PART_NAMES, "rubric": "rubric criterion criteria"}.items():
        if re.search(rf"(?i)(^|[_.])({names.replace(' ', '|')})s?$", name):
            return variable
    return ""


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


EDITOR = StageSpec(
    name="editor",
    title="the editor",
    variables=_names(
        "run_id message_id message_index original_message tool_calls summary rubric "
        "plan_thesis goal rationale earlier_edits ordinal_guidance"
    )
    | ANSWER,
    required=_names("original_message|response rubric"),
    prompt_per="objective",
    prompts_of=frozenset({"answer"}),
)


JUDGE = StageSpec(
    name="judge",
    title="the judge",
    variables=_names(
        "rubric_id rubric transcript score_levels_table lowest_score highest_score instruction"
    )
    | ANSWER,
    required=_names("transcript|response"),
    prompt_per="mode",
    prompts_of=frozenset({"answer", "pair"}),
    makes_cases=False,
)


TOGETHER = replace(
    JUDGE,
    name="judge.together",
    variables=_names("rubrics transcript instruction") | ANSWER,
    required=_names("rubrics transcript|response"),
    prompt_per="",
    prompts_of=frozenset({"answer"}),
)
"""The judge that is asked about all rubrics in one call: its prompts."""


MOST_FOLLOWING_EDITS = 6
"""How often the editor is asked about what follows from the acts that a plan changes."""


PLANNER = StageSpec(
    name="planner",
    title="the planner",
    variables=_names(
        "rubric_id rubric_instructions assistant_transcript tools max_steps ordinal_guidance"
    ),
    required=_names("rubric_instructions assistant_transcript"),
    prompt_per="objective",
    prompts_of=frozenset({"acts"}),
    for_answers=False,
)


SUMMARY = StageSpec(
    name="summary",
    title="the summarizer",
    variables=_names("chronological_log"),
    required=_names("chronological_log"),
    prompt_per="",
    settings_from_model=True,
    # The first summary is asked beside the plan, so it is one of the first two calls.
    shared_calls=2,
    for_answers=False,
)


VERIFIER = StageSpec(
    name="verifier",
    title="the verifier",
    variables=_names(
        "rubric_id rubric_instruction summary transcript score_levels_table lowest_score "
        "highest_score"
    )
    | ANSWER,
    required=_names("rubric_instruction transcript|response"),
    prompt_per="mode",
    prompts_of=frozenset({"acts", "answer"}),
)


STAGES: Mapping[str, StageSpec] = {
    stage.name: stage for stage in (PLANNER, EDITOR, SUMMARY, VERIFIER, JUDGE, TOGETHER)
}
MAKING: tuple[StageSpec, ...] = tuple(stage for stage in STAGES.values() if stage.makes_cases)
"""The stages that make cases, each with a section of its own in the config."""

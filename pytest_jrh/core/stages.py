"""The stages of the work, before they have a model, in the order in which they are listed; nothing
else compares the name of one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class CallRange(NamedTuple):
    """How many calls are made, at least and at most."""

    low: int
    high: int


NO_CALL, ONE_CALL = CallRange(0, 0), CallRange(1, 1)


class Workload(NamedTuple):
    """What is known of a case before its calls are made: how many edits it has or may have, whether
    it is verified, the calls of its judge, and how many summaries it takes.
    """

    edits: CallRange
    verifies: bool
    judge_calls: CallRange
    summaries: CallRange


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A stage: its name, its prompt, its settings' fallback, and what it adds to a plan of calls.

    `name` is its key in configs, cassettes and `StageModel.stage`, and `title` what messages call
    it. Prompts may use `variables`, and must use those that are `required`. The built-in prompt is
    one, or one for each mode, or in binary mode also one for each objective (`prompt_per`). `calls`
    gives the calls that a case makes.
    """

    name: str
    title: str
    variables: frozenset[str]
    required: frozenset[str]
    prompt_per: Literal["", "mode", "objective"]
    calls: Callable[[Workload], CallRange]
    makes_cases: bool = True
    """Whether it helps to make cases: a project may then keep a prompt for each test."""
    model_from: str = ""
    """The stage whose model, server and timeout it uses where it names no model."""
    settings_from_model: bool = False
    """Whether a section without any setting also takes that stage's temperature and system
    prompt."""
    shared_calls: int = 0
    """Where it is one of the first so many calls of a case, it is the same for all cases of a run,
    and is made once."""
    edits_in: Callable[[str, int], int | None] | None = None
    """How many edits of an editor an answer of it leads to, of at most so many; None for an answer
    that does not say."""
    prompt_of_acts: bool = False
    """Whether a suite of `edits: acts` has another built-in prompt for it."""


EDITOR = StageSpec(
    name="editor",
    title="the editor",
    variables=frozenset(
        {
            "run_id",
            "message_id",
            "message_index",
            "original_message",
            "tool_calls",
            "summary",
            "rubric",
            "plan_thesis",
            "goal",
            "rationale",
            "earlier_edits",
            "ordinal_guidance",
        }
    ),
    required=frozenset({"original_message", "rubric"}),
    prompt_per="objective",
    calls=lambda case: case.edits,
)


JUDGE = StageSpec(
    name="judge",
    title="the judge",
    variables=frozenset(
        {
            "rubric_id",
            "rubric",
            "transcript",
            "score_levels_table",
            "lowest_score",
            "highest_score",
            "instruction",
        }
    ),
    required=frozenset({"rubric", "transcript"}),
    prompt_per="mode",
    calls=lambda case: case.judge_calls,
    makes_cases=False,
)


MOST_FOLLOWING_EDITS = 6
"""How often the editor is asked about what follows from the acts that a plan changes."""


def _steps(answer: str, most: int) -> int | None:
    try:
        kinds = [step.get("kind") for step in json.loads(answer)["steps"][:most]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    # What is left out, nobody writes.
    return len(kinds) - kinds.count("omit")


PLANNER = StageSpec(
    name="planner",
    title="the planner",
    variables=frozenset(
        {
            "rubric_id",
            "rubric_instructions",
            "assistant_transcript",
            "tools",
            "max_steps",
            "ordinal_guidance",
        }
    ),
    required=frozenset({"rubric_instructions", "assistant_transcript"}),
    prompt_per="objective",
    calls=lambda _case: ONE_CALL,
    edits_in=_steps,
    prompt_of_acts=True,
)


SUMMARY = StageSpec(
    name="summary",
    title="the summarizer",
    variables=frozenset({"chronological_log"}),
    required=frozenset({"chronological_log"}),
    prompt_per="",
    calls=lambda case: case.summaries,
    model_from=EDITOR.name,
    settings_from_model=True,
    # The first summary is asked beside the plan, so it is one of the first two calls.
    shared_calls=2,
)


VERIFIER = StageSpec(
    name="verifier",
    title="the verifier",
    variables=frozenset(
        {
            "rubric_id",
            "rubric_instruction",
            "summary",
            "transcript",
            "score_levels_table",
            "lowest_score",
            "highest_score",
        }
    ),
    required=frozenset({"rubric_instruction", "transcript"}),
    prompt_per="mode",
    calls=lambda case: CallRange(int(case.verifies), int(case.verifies)),
    model_from=EDITOR.name,
    prompt_of_acts=True,
)


STAGES: Mapping[str, StageSpec] = {
    stage.name: stage for stage in (PLANNER, EDITOR, SUMMARY, VERIFIER, JUDGE)
}
MAKING: tuple[StageSpec, ...] = tuple(stage for stage in STAGES.values() if stage.makes_cases)
"""The stages that make cases, each with a section of its own in the config."""

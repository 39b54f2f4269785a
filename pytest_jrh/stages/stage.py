"""What a stage of the work is before it has a model; nothing else compares the name of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class CallRange(NamedTuple):
    """How many calls are made, at least and at most."""

    low: int
    high: int


NO_CALL, ONE_CALL = CallRange(0, 0), CallRange(1, 1)


class Workload(NamedTuple):
    """What is known of a case before its calls are made: how many edits it has or may have, whether
    it is verified, and the calls of its judge.
    """

    edits: CallRange
    verifies: bool
    judge_calls: CallRange


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
    """Whether it helps to make cases: a project may then keep a prompt for each test (rule D9)."""
    model_from: str = ""
    """The stage whose model, server and timeout it uses where it names no model (rule A6)."""
    settings_from_model: bool = False
    """Whether a section without any setting also takes that stage's temperature and system
    prompt."""
    shared_at_start: bool = False
    """Whether its first call is the same for all cases of a run, and is made once (rule D5)."""
    edits_in: Callable[[str], int | None] | None = None
    """How many edits an answer of it leads to; None for an answer that does not say."""

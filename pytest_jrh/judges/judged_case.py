"""What a judge's own code sees of a case: nothing of how it was made (rules E2, Q2)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_jrh.judges.score_maps import BINARY_SCORES
from pytest_jrh.models import Case, Message, ScoreLevel
from pytest_jrh.transcript import render_transcript


@dataclass(frozen=True, slots=True)
class JudgedRubric:
    """The criterion: its id and its text."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case as a judge sees it: the rubric, the scale, and the whole transcript.

    `levels` is the scale, empty where a rubric is violated (1) or satisfied (0). `messages` are
    Inspect's chat messages as dictionaries, `input` is the task as text and `metadata` what the log
    says of the run. A judge that changes them changes a copy of its own.
    """

    rubric: JudgedRubric
    messages: tuple[Message, ...]
    levels: tuple[ScoreLevel, ...] = ()
    input: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scores(self) -> tuple[int, ...]:
        """The scores on offer."""
        return tuple(level.score for level in self.levels) or BINARY_SCORES

    @property
    def transcript(self) -> str:
        """The messages as one text, as prompts of judges show them."""
        return render_transcript(self.messages, show_reasoning=True)


def judged_case(case: Case, *, show_reasoning: bool) -> JudgedCase:
    """The part of a case that its judge may see, as a copy.

    The agent's reasoning is left out unless `show_reasoning`: edited turns have lost theirs.
    """
    messages = tuple(copy.deepcopy(dict(message)) for message in case.messages)
    if not show_reasoning:
        messages = tuple(map(_without_reasoning, messages))
    return JudgedCase(
        JudgedRubric(case.rubric.id, case.rubric.instructions),
        messages,
        case.levels,
        case.run.input,
        copy.deepcopy(dict(case.run.metadata)),
    )


def _without_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = [
            block
            for block in content
            if not (isinstance(block, Mapping) and block.get("type") == "reasoning")
        ]
    return message

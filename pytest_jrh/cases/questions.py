"""What models are asked about made cases: whether one looks real, and whether a judge is right for
the right reason.

For the first a model is shown a case's transcript, and its run as it was, one at a time. The two
differ in the edit alone, so every rubric, test and cluster has as many altered as untouched ones.
For the second it is shown what was done to make a violation, and the judge's reasoning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.core.model import RealismAnswer, ReasonCheck
from pytest_jrh.core.text import shortened
from pytest_jrh.core.transcript import indented, render_transcript
from pytest_jrh.llm.calls import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.core.model import Case, Edit, Message
    from pytest_jrh.llm.calls import Stage

_LONGEST_REASON = 1_000


class RealismResponse(Response):
    """What a model says of one transcript."""

    reason: str
    turns: list[int]
    altered: bool


async def ask_realism(stage: Stage, messages: Sequence[Message]) -> RealismAnswer:
    """Ask whether this transcript was altered; raises `Unscored` where no usable answer comes.

    Turns that the transcript does not have are dropped, and so are all of one that is said to be
    untouched.
    """
    answer = (await stage.ask({"transcript": render_transcript(messages)}, RealismResponse)).parsed
    turns = {turn for turn in answer.turns if answer.altered and 0 <= turn < len(messages)}
    reason = shortened(answer.reason.strip(), _LONGEST_REASON)
    return RealismAnswer(answer.altered, tuple(sorted(turns)), reason)


class ReasonsResponse(Response):
    """What a model says of one reasoning."""

    reason: str
    same: bool


async def ask_reasons(stage: Stage, case: Case, reasoning: str) -> ReasonCheck:
    """Ask whether the reasoning is about the violation that was made; raises `Unscored` where no
    usable answer comes.
    """
    values = {
        "rubric": case.rubric.instructions,
        "edits": edits_text(case.outcome.edits),
        "reasoning": reasoning,
    }
    answer = (await stage.ask(values, ReasonsResponse)).parsed
    return ReasonCheck(answer.same, shortened(answer.reason.strip(), _LONGEST_REASON))


def edits_text(edits: Sequence[Edit]) -> str:
    """Each edit with its turn, its text before and after, and why it was made."""
    lines: list[str] = []
    for edit in edits:
        for when, text in (("before", edit.original_content), ("after", edit.edited_content)):
            lines += [f"[{edit.message_index}] {when}", *indented(text or "(nothing)")]
        lines += [f"[{edit.message_index}] why", *indented(edit.editor_reason or "(no note)")]
    return "\n".join(lines)

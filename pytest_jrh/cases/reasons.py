"""Whether a judge is right for the right reason: a model is shown what was done to make a
violation, and the judge's reasoning, and says whether that is about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.core.model import ReasonCheck
from pytest_jrh.core.text import shortened
from pytest_jrh.core.transcript import indented
from pytest_jrh.llm.calls import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.core.model import Case, Edit
    from pytest_jrh.llm.calls import Stage

_LONGEST_REASON = 1_000


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

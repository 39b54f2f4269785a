"""Whether a made case looks like a real one: a model is shown its transcript, and its run as it
was, one at a time, and says of each whether it was altered.

A case is held against its own run: the two differ in the edit alone, and every rubric, test and
cluster has as many altered as untouched transcripts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.core.model import RealismAnswer
from pytest_jrh.core.text import shortened
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.llm.calls import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.core.model import Message
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

"""The summarizer: a rolling summary of the conversation, updated only when a turn changed (rule
D5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pytest_jrh.llm.shapes import Response
from pytest_jrh.llm.stage import Stage
from pytest_jrh.models import Message
from pytest_jrh.transcript import render_transcript


class SummaryResponse(Response):
    """The summarizer's answer."""

    summary: str
    user_intent: str
    assistant_progress: list[str]
    outstanding_items: list[str]
    risks: list[str]


class ConversationSummarizer:
    """Keeps the summary of a conversation's last `max_messages` turns; edited turns are marked in
    it.

    `summary` may be awaited by several tasks at once: one state is asked for once.
    """

    def __init__(self, stage: Stage, messages: Sequence[Message], *, max_messages: int) -> None:
        self._stage = stage
        self._max_messages = max_messages
        self._messages = tuple(messages)
        self._edited: frozenset[int] = frozenset()
        self._summary: asyncio.Task[str] | None = None

    def update(self, messages: Sequence[Message], edited_index: int) -> None:
        """Take the conversation after an edit; the summary held is dropped."""
        self._messages = tuple(messages)
        self._edited |= {edited_index}
        self._summary = None

    async def summary(self) -> str:
        """The summary of the present state as text.

        Raises `Unscored` where the model gives none.
        """
        if self._summary is None:
            self._summary = asyncio.create_task(self._ask())
        return await self._summary

    async def _ask(self) -> str:
        start = max(0, len(self._messages) - self._max_messages)
        log = render_transcript(self._messages, start=start, edited=self._edited)
        answer = await self._stage.ask({"chronological_log": log}, SummaryResponse)
        return render_summary(answer.parsed)


def render_summary(response: SummaryResponse) -> str:
    """The summary as the editor and the verifier read it."""
    lines = [response.summary.strip(), f"User's intent: {response.user_intent.strip()}"]
    lists = {
        "Progress": response.assistant_progress,
        "Outstanding": response.outstanding_items,
        "Risks": response.risks,
    }
    for title, entries in lists.items():
        if entries:
            lines += [f"{title}:", *(f"- {' '.join(entry.split())}" for entry in entries)]
    return "\n".join(lines)

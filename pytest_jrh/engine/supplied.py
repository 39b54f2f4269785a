"""A project's own client (the hook `pytest_jrh_complete`) as an exchange: user code, which may
raise anything.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import UNSCORED
from pytest_jrh.core.user_code import (
    SessionEnd,
    error_places,
    error_text,
)
from pytest_jrh.llm.calls import Answer, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_jrh.core.model import Complete, StageModel
    from pytest_jrh.llm.budget import Ledger
    from pytest_jrh.llm.calls import CallRequest
    from pytest_jrh.llm.locks import Slots


class SuppliedExchange:
    """Asks the project's client; its parsed completion is read again like any answer.

    What it raises is a `model_error` of the case. Only `ends_session` ends the session,
    and `Unscored` is passed on as the outcome that it names. A call ends with the stage's
    `timeout`, or our own client's default, and is then tried as often as our own client would
    (`most_timeouts`).
    """

    def __init__(
        self,
        complete: Complete,
        ledger: Ledger | None,
        slots: Slots,
        ends_session: tuple[type[BaseException], ...],
        *,
        stopping: Callable[[], bool],
        most_timeouts: int,
    ) -> None:
        self._complete = complete
        self._ledger = ledger
        self._slots = slots
        self._ends_session = ends_session
        self._stopping = stopping
        self._most_timeouts = most_timeouts

    async def __call__(self, request: CallRequest) -> Answer:
        from pytest_jrh.llm.client import DEFAULT_TIMEOUT

        timeout = request.stage.timeout or DEFAULT_TIMEOUT
        for _ in range(self._most_timeouts):
            async with self._slots.one(request.stage.stage):
                if self._stopping():
                    raise Stopped
                refusal = self._ledger.enter(0.0) if self._ledger is not None else None
                if refusal is not None:
                    raise Unscored("over_budget", stage=request.stage.stage, cause=f"{refusal}.")
                text = await self._counted(request, timeout)
                if text is not None:
                    return Answer(text)
        raise _late(request.stage, timeout, self._most_timeouts)

    async def _counted(self, request: CallRequest, timeout: float) -> str | None:
        """Make and count one attempt: what a failed client has sent may be billed."""
        attempts = request.attempts
        attempts.sent += 1
        try:
            text = await self._in_time(request, timeout)
        except Unscored as trouble:
            # A client that is built on ours may end without having asked.
            attempts.sent -= not UNSCORED[trouble.outcome].asked
            attempts.lost += trouble.outcome == "model_error"
            raise
        attempts.lost += text is None
        return text

    async def _in_time(self, request: CallRequest, timeout: float) -> str | None:
        """What the client answers; None after `timeout` seconds: it may ignore cancellation."""
        asking = asyncio.create_task(self._text(request))
        try:
            await asyncio.wait([asking], timeout=timeout)
        except asyncio.CancelledError:
            asking.cancel()
            raise
        if not asking.done():
            asking.cancel()
            return None
        return asking.result()

    async def _text(self, request: CallRequest) -> str:
        try:
            completion = await self._complete(
                request.stage, request.messages, request.response_model
            )
            text: object = completion.text
            if not isinstance(text, str):
                raise TypeError("the client must return a `pytest_jrh.Completion`, with a text")
        except self._ends_session as error:
            raise SessionEnd(error) from error
        except (Stopped, SessionEnd):
            raise
        except BaseException as error:
            if isinstance(error, Unscored) or _is_cancelled(error):
                raise
            raise Unscored(
                "model_error",
                stage=request.stage.stage,
                cause=f"The client of `pytest_jrh_complete` raised {error_text(error)}",
                advice="Fix it and run again: recorded calls are kept, and only the missing ones "
                "are made.",
                places=error_places(error),
            ) from error
        return text


def _late(stage: StageModel, timeout: float, attempts: int) -> Unscored:
    default = " (the default)" if stage.timeout is None else ""
    return Unscored(
        "model_error",
        stage=stage.stage,
        cause=f"The client of `pytest_jrh_complete` gave no answer within {timeout:g} s "
        f"({attempts} attempts); `timeout` is {timeout:g}{default}.",
        advice="Set a longer `timeout` for this stage or for all of them under `models`, or let "
        "the client time out earlier; then run again: only the missing calls are made.",
    )


def _is_cancelled(error: BaseException) -> bool:
    """Whether the engine cancels this call, and not the client itself."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is None:
        # The coroutine is being closed without its loop.
        return isinstance(error, GeneratorExit)
    return isinstance(error, asyncio.CancelledError) and task.cancelling() > 0

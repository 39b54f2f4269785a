"""Runs a judge's own code: in a thread, within its time, and with its errors in a few lines.

Whatever it does, the engine's loop goes on.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pytest_jrh.core import frozen
from pytest_jrh.core.calls import Complete
from pytest_jrh.core.errors import SessionEnd, Unscored, error_text
from pytest_jrh.core.results import Verdict
from pytest_jrh.core.skips import UNSCORED
from pytest_jrh.judges.judge import CodeAnswer, OwnCode
from pytest_jrh.judges.own_code import FIX_AND_RUN, advice_on_keys, no_verdict
from pytest_jrh.llm.calls import Stopped, make_complete
from pytest_jrh.recording.exchanges import Halted
from pytest_jrh.recording.own_code import KeptRequests
from pytest_jrh.recording.tapes import Tape

_LATE = (
    "Set a longer `timeout` for the judge, or let it give up earlier; what it has asked is "
    "recorded."
)


@frozen
class TapedCalls:
    """The `JudgeCalls` of one repeat of one case, over its tape.

    A judge's own code runs in `threads`, at most as much at once as `slots` has; `requests` gives
    what records its requests.
    """

    tape: Tape
    repeat: int
    threads: CodeThreads
    slots: asyncio.Semaphore
    requests: Callable[[], KeptRequests]

    @property
    def complete(self) -> Complete:
        """Asks a model through the tape."""
        return make_complete(self.tape, repeat=self.repeat)

    async def run(self, code: OwnCode) -> Verdict:
        """Run code that is not ours; raises `Unscored` for whatever goes wrong in it."""
        code = replace(code, repeat=self.repeat)
        run = _Run(code, self.threads, copy_context())

        async def work() -> CodeAnswer:
            return code.read(await run.value())

        async with self.slots:
            return await self.requests().verdict(code, work)


@dataclass(slots=True)
class _Run:
    """One run of a judge's own code; `clean` is the context without its exchanges."""

    code: OwnCode
    threads: CodeThreads
    clean: Context
    trouble: BaseException | None = None
    asking: dict[int, float] = field(default_factory=dict)
    asked_for: float = 0.0

    async def value(self) -> object:
        """What the code returns; raises `Unscored` where it does not."""
        loop = asyncio.get_running_loop()

        def submit(work: Coroutine[Any, Any, Any]) -> Future[Any]:
            # In the context from before: what `complete` asks is recorded as calls of their own.
            return self.clean.copy().run(
                asyncio.run_coroutine_threadsafe, self._counted(work), loop
            )

        running = self.threads.start(lambda: self.code.call(submit))
        waiter, began = asyncio.wrap_future(running.ended), time.monotonic()
        while not waiter.done():
            time_now = time.monotonic()
            excused = self.asked_for + sum(time_now - began_at for began_at in self.asking.values())
            seconds_left = self.code.timeout - (time_now - began - excused)
            if seconds_left <= 0:
                # Nobody waits for it any more: it may end after the engine's loop.
                waiter.cancel()
                if running.task is not None:
                    running.task.cancel()
                raise no_verdict(
                    "model_error",
                    f"{self.code.who} gave no verdict within {self.code.timeout:g} s, its "
                    "`timeout`.",
                    _LATE,
                )
            await asyncio.wait([waiter], timeout=seconds_left)
        return self._read(waiter.result())

    async def _counted(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await a call of ours for the code, whose time does not run meanwhile."""
        key, began = id(work), time.monotonic()
        self.asking[key] = began
        try:
            return await work
        except Unscored as trouble:
            if UNSCORED[trouble.outcome].asked:
                raise
            self.trouble = trouble
            raise Halted from trouble
        except (Stopped, SessionEnd) as end:
            self.trouble = end
            raise Halted from end
        finally:
            del self.asking[key]
            self.asked_for += time.monotonic() - began

    def _read(self, ended: Ended) -> object:
        if self.trouble is not None:
            raise self.trouble
        error = ended.error
        if error is None:
            return ended.value
        if isinstance(error, Halted | Unscored):
            # What is not recorded, or what `complete` or a judge of ours says itself.
            raise error
        if isinstance(error, KeyboardInterrupt):
            raise SessionEnd(error) from error
        cause = f"{self.code.who} raised {error_text(error)}"
        raise no_verdict(
            "model_error", cause, advice_on_keys(error) or FIX_AND_RUN, error
        ) from error


_LAST_WAIT = 2.0


class Ended(NamedTuple):
    """How code has ended: what it returned, or what it raised."""

    value: object = None
    error: BaseException | None = None


@dataclass(slots=True)
class RunningCode:
    """Code in a thread of its own; what it returns is awaited on a shared loop, if it can be."""

    ended: Future[Ended] = field(default_factory=Future)
    task: Future[Ended] | None = None

    def __post_init__(self) -> None:
        # Whoever stops waiting for it does not cancel it: the code goes on.
        self.ended.set_running_or_notify_cancel()


class CodeThreads:
    """A thread for each call of code, and one loop, in a thread, for what is to be awaited.

    The loop is one for all, because clients that a module keeps belong to the loop that they were
    first used in. All threads are daemons: code that never returns does not keep the process.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._is_over = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self, call: Callable[[], object]) -> RunningCode:
        """Run code in a copy of the present context."""
        running, context = RunningCode(), copy_context()
        threading.Thread(
            target=lambda: context.run(self._run, call, running), name="jrh-judge", daemon=True
        ).start()
        return running

    def close(self) -> None:
        """End the loop; code that does not end is left to itself."""
        if self._thread is not None:
            self._runner.get_loop().call_soon_threadsafe(self._is_over.set)
            self._thread.join(_LAST_WAIT)

    def _run(self, call: Callable[[], object], running: RunningCode) -> None:
        try:
            value = call()
            ended = Ended(value)
            if inspect.isawaitable(value):
                ended = self._awaited(value, running)
        except BaseException as error:  # noqa: BLE001 - the engine says what it was
            ended = Ended(error=error)
        running.ended.set_result(ended)

    def _awaited(self, value: Awaitable[object], running: RunningCode) -> Ended:
        with self._lock:
            loop = self._runner.get_loop()
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="jrh-judges", daemon=True)
                self._thread.start()
            running.task = asyncio.run_coroutine_threadsafe(_ended(value), loop)
        return running.task.result()

    def _serve(self) -> None:
        # What waits at its end is cancelled.
        with self._runner:
            self._runner.run(self._is_over.wait())


async def _ended(value: Awaitable[object]) -> Ended:
    try:
        return Ended(await value)
    except BaseException as error:  # noqa: BLE001 - the engine says what it was
        return Ended(error=error)

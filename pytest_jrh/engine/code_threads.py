"""The threads that judges' own code runs in: whatever it does, the engine's loop goes on."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
import types
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import partial
from typing import Any, NamedTuple

_LAST_WAIT = 1.0
_LONGEST_HOLD = 60.0


class Ended(NamedTuple):
    """How code has ended: what it returned, or what it raised."""

    value: object = None
    error: BaseException | None = None


class RunningCode:
    """Code that runs in a thread of its own or, where it is async, on a loop with other code.

    `ended` says how it has ended, and `held` for how many seconds it has held the loop.
    """

    def __init__(self, threads: CodeThreads, call: Callable[[], object], context: Context) -> None:
        self.call = call
        self.context = context
        self.ended: Future[Ended] = Future()
        # Whoever stops waiting for it does not cancel it: the code goes on.
        self.ended.set_running_or_notify_cancel()
        self.held = 0.0
        self.task: asyncio.Task[None] | None = None
        self._threads = threads
        self._loop: _SharedLoop | None = None
        self._waited_before = 0.0
        self._held_before = 0.0

    @property
    def waited(self) -> float:
        """For how many seconds other code has held the loop that it is on."""
        if self._loop is None:
            return 0.0
        return self._waited_before + self._loop.held_by_others(self) - self._held_before

    def put_on(self, loop: _SharedLoop) -> None:
        """Run it on a loop, which may be another one as long as it has not begun."""
        self._waited_before = self.waited
        self._held_before = loop.held_by_others(self)
        self._loop = loop
        loop.add(self)

    def cancel(self) -> None:
        """Stop it where it is async and waits; where it holds the loop, the loop is left to it."""
        loop = self._loop
        if loop is None:
            return
        if loop.is_held_by(self):
            self._threads.leave(loop)
        loop.cancel(self)


class CodeThreads:
    """One loop, in a thread, for code that is async, and a thread each for other code.

    The loop is one for all, because clients that a module keeps belong to the loop that they were
    first used in; code that has held it for longer than it may is left alone on it. All threads
    are daemons: code that never returns does not keep the process.
    """

    def __init__(self) -> None:
        self._loop: _SharedLoop | None = None
        self._lock = threading.Lock()

    def start(self, call: Callable[[], object], *, is_async: bool) -> RunningCode:
        """Run code in a copy of the present context."""
        code = RunningCode(self, call, copy_context())
        if is_async:
            self._share(code)
            return code

        def run() -> None:
            try:
                value = call()
            except BaseException as error:  # noqa: BLE001 - the engine says what it was
                code.ended.set_result(Ended(error=error))
                return
            if inspect.isawaitable(value):
                code.call = lambda: value
                self._share(code)
            else:
                code.ended.set_result(Ended(value))

        threading.Thread(
            target=lambda: code.context.copy().run(run), name="jrh-judge", daemon=True
        ).start()
        return code

    def leave(self, loop: _SharedLoop) -> None:
        """Leave a loop to the code that holds it; what has not begun there begins on another."""
        with self._lock:
            if self._loop is loop:
                self._loop = None
        with contextlib.suppress(KeyError):
            while True:
                self._share(loop.not_begun.pop())

    def close(self) -> None:
        """End the loop; code that does not end is left to itself."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def _share(self, code: RunningCode) -> None:
        with self._lock:
            if self._loop is None:
                self._loop = _SharedLoop()
            code.put_on(self._loop)


class _SharedLoop:
    """A loop in a thread, which knows which code holds it, and for how long."""

    def __init__(self) -> None:
        self.not_begun: set[RunningCode] = set()
        self._held = 0.0
        self._holder: tuple[RunningCode, float] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="jrh-judges", daemon=True)
        self._thread.start()

    def held_by_others(self, code: RunningCode) -> float:
        """For how many seconds code other than this has held the loop; of the one that holds it
        now, a minute counts at most, so that nobody waits forever.
        """
        holder = self._holder
        held = self._held - code.held
        if holder is not None and holder[0] is not code:
            held += min(time.monotonic() - holder[1], _LONGEST_HOLD)
        return held

    def is_held_by(self, code: RunningCode) -> bool:
        """Whether code has not given the loop back since its present step began."""
        return self._holder is not None and self._holder[0] is code

    def add(self, code: RunningCode) -> None:
        """Begin code as soon as the loop is free."""
        self.not_begun.add(code)
        self._loop.call_soon_threadsafe(self._begin, code, context=code.context)

    def cancel(self, code: RunningCode) -> None:
        """Cancel what code waits for, once the loop is free."""
        self.not_begun.discard(code)
        self._loop.call_soon_threadsafe(lambda: code.task and code.task.cancel())

    def close(self) -> None:
        """End the loop; code that does not end is left to itself."""
        asyncio.run_coroutine_threadsafe(_end_tasks(), self._loop)
        self._loop.call_soon_threadsafe(self._loop.call_later, _LAST_WAIT / 2, self._loop.stop)
        self._thread.join(_LAST_WAIT)
        if not self._thread.is_alive():
            self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _begin(self, code: RunningCode) -> None:
        try:
            self.not_begun.remove(code)
        except KeyError:
            # It has begun on another loop, or is not waited for any more.
            return
        code.task = self._loop.create_task(self._run(code), context=code.context)

    async def _run(self, code: RunningCode) -> None:
        try:
            result = Ended(await _stepwise(self, code))
        except BaseException as error:  # noqa: BLE001 - the engine says what it was
            result = Ended(error=error)
        code.ended.set_result(result)

    def step(self, code: RunningCode, work: Callable[[], Any]) -> Any:
        """Let code go on until it waits for something, and note how long it held the loop."""
        began = time.monotonic()
        self._holder = (code, began)
        try:
            return work()
        finally:
            took = time.monotonic() - began
            self._held += took
            code.held += took
            self._holder = None


@types.coroutine
def _stepwise(loop: _SharedLoop, code: RunningCode) -> Generator[Any, None, object]:
    """Await what code returns, with each of its steps noted by the loop."""
    work = _called(code.call)
    go_on: Callable[[], Any] = partial(work.send, None)
    while True:
        try:
            waits_for = loop.step(code, go_on)
        except StopIteration as end:
            return end.value
        try:
            yield waits_for
        except BaseException as error:  # noqa: BLE001 - the code itself decides what comes of it
            go_on = partial(work.throw, error)
        else:
            go_on = partial(work.send, None)


async def _called(call: Callable[[], object]) -> object:
    value = call()
    return await value if inspect.isawaitable(value) else value


async def _end_tasks() -> None:
    current = asyncio.current_task()
    for task in asyncio.all_tasks():
        if task is not current:
            task.cancel()
    await asyncio.sleep(0)
    asyncio.get_running_loop().stop()

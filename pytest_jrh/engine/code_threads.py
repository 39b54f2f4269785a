"""The threads that judges' own code runs in: whatever it does, the engine's loop goes on."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, NamedTuple

_LAST_WAIT = 1.0


class Ended(NamedTuple):
    """How code has ended: what it returned, or what it raised."""

    value: object = None
    error: BaseException | None = None


class CodeThreads:
    """One loop, in a thread, for code that is async, and a thread each for other code.

    The loop is one for all, because clients that a module keeps belong to the loop that they were
    first used in. All threads are daemons: code that never returns does not keep the process.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(
        self, call: Callable[[], object], *, is_async: bool
    ) -> tuple[Future[Ended], Callable[[], object]]:
        """Run code in the present context; returns how it ends, and what cancels it."""
        ended: Future[Ended] = Future()
        # Whoever stops waiting for it does not cancel it: the code goes on.
        ended.set_running_or_notify_cancel()
        if is_async:
            return ended, self._start_task(call, ended)
        context = copy_context()

        def run() -> None:
            try:
                value = call()
            except BaseException as error:  # noqa: BLE001 - the engine says what it was
                ended.set_result(Ended(error=error))
                return
            if inspect.isawaitable(value):
                context.run(self._start_task, lambda: value, ended)
            else:
                ended.set_result(Ended(value))

        thread = threading.Thread(
            target=lambda: context.copy().run(run), name="jrh-judge", daemon=True
        )
        thread.start()
        return ended, lambda: None

    def close(self) -> None:
        """End the loop; code that does not end is left to itself."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_end_tasks(), loop)
        loop.call_soon_threadsafe(loop.call_later, _LAST_WAIT / 2, loop.stop)
        thread.join(_LAST_WAIT)
        if not thread.is_alive():
            loop.close()
        self._loop = self._thread = None

    def _start_task(self, call: Callable[[], object], ended: Future[Ended]) -> Callable[[], object]:
        loop = self._running()
        tasks: list[asyncio.Task[Any]] = []

        async def run() -> None:
            try:
                value = call()
                result = Ended(await value if inspect.isawaitable(value) else value)
            except BaseException as error:  # noqa: BLE001 - the engine says what it was
                result = Ended(error=error)
            ended.set_result(result)

        context = copy_context()
        loop.call_soon_threadsafe(
            lambda: tasks.append(loop.create_task(run(), context=context)), context=context
        )
        return lambda: loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = self._loop = asyncio.new_event_loop()

            def serve() -> None:
                asyncio.set_event_loop(loop)
                loop.run_forever()

            self._thread = threading.Thread(target=serve, name="jrh-judges", daemon=True)
            self._thread.start()
        return self._loop


async def _end_tasks() -> None:
    current = asyncio.current_task()
    for task in asyncio.all_tasks():
        if task is not current:
            task.cancel()
    await asyncio.sleep(0)
    asyncio.get_running_loop().stop()

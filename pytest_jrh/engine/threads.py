"""The threads of the engine's loop."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Threads(ThreadPoolExecutor):
    """A loop's executor that closes the coroutines that its calls returned and nobody awaited.

    litellm prepares a call in a thread, which returns the call's coroutine. Where a time limit ends
    the call at that moment, nobody takes the coroutine, and Python would warn of one that was never
    awaited.
    """

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="jrh-thread")
        self._lock = threading.Lock()
        self._returned: list[Coroutine[Any, Any, Any]] = []

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run a call in a thread, and note the coroutine that it may return."""
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(self._note)
        return future

    def close_unawaited(self) -> None:
        """Close what nobody has awaited; the loop must have ended."""
        with self._lock:
            for coroutine in self._unawaited():
                coroutine.close()
            self._returned.clear()

    def _note(self, future: Future[Any]) -> None:
        if (
            future.cancelled()
            or future.exception() is not None
            or not inspect.iscoroutine(future.result())
        ):
            return
        with self._lock:
            self._returned = [*self._unawaited(), future.result()]

    def _unawaited(self) -> list[Coroutine[Any, Any, Any]]:
        return [
            one for one in self._returned if inspect.getcoroutinestate(one) == inspect.CORO_CREATED
        ]

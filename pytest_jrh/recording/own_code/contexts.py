"""Lets threads go on in the context that they were started from, as tasks do.

A judge's code may hand its requests to threads; each is to be known as that judge's.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any


@contextlib.contextmanager
def threads_keep_context() -> Iterator[None]:
    """Start threads, and the work of pools of threads, in a copy of the starter's context.

    Until the block ends, and for the whole process: a context costs nothing where nobody asks it.
    """
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def start_in_context(thread: threading.Thread) -> None:
        context, run = copy_context(), thread.run
        thread.run = lambda: context.run(run)  # type: ignore[method-assign]
        start(thread)

    def submit_in_context(
        pool: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        return submit(pool, copy_context().run, work, *args, **kwargs)

    threading.Thread.start = start_in_context  # type: ignore[method-assign,assignment]
    ThreadPoolExecutor.submit = submit_in_context  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]

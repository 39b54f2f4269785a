"""Locks between processes, freed by the operating system when a process dies, however it dies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from pytest_jrh.files import atomic_write
from pytest_jrh.llm.calls import Stopped

_POLL = 0.05


@contextlib.asynccontextmanager
async def held(path: Path, stopping: Callable[[], bool]) -> AsyncIterator[None]:
    """Hold a lock file, waiting for it without blocking the loop; raises `Stopped` where `stopping` says so."""
    from filelock import FileLock, Timeout

    _prepare(path.parent)
    lock = FileLock(path, thread_local=False)
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except Timeout:
            if stopping():
                raise Stopped from None
            await asyncio.sleep(_POLL)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def held_briefly(path: Path) -> Iterator[None]:
    """Hold a lock file for a few file operations, blocking until it is free."""
    from filelock import FileLock

    _prepare(path.parent)
    with FileLock(path, thread_local=False):
        yield


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        atomic_write(ignore, "*\n")

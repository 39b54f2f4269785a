"""Locks between processes, freed by the operating system when a process dies, however it dies."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.stages import STAGES
from pytest_jrh.llm.calls import Stopped

if TYPE_CHECKING:
    from filelock import FileLock


_POLL = 0.05


@contextlib.asynccontextmanager
async def held(paths: Sequence[Path], stopping: Callable[[], bool]) -> AsyncIterator[None]:
    """Hold the first free one of lock files, waiting for it without blocking the loop: there are as
    many holders as files.

    Raises `Stopped` where `stopping` says so.
    """
    from filelock import FileLock

    _prepare(paths[0].parent)
    locks = [FileLock(path, thread_local=False) for path in paths]
    while not (taken := next((lock for lock in locks if _taken(lock)), None)):
        if stopping():
            raise Stopped
        await asyncio.sleep(_POLL)
    try:
        yield
    finally:
        taken.release()


class Slots:
    """Slots for calls in flight: `limit` in this process, and one lock file each where processes
    share them. `in_flight` counts those of this process that are taken, for each stage.
    """

    def __init__(self, limit: int, shared: Sequence[Path], stopping: Callable[[], bool]) -> None:
        self._own = asyncio.Semaphore(limit)
        self._shared = shared
        self._stopping = stopping
        # With all stages from the start: another thread may read it at any time.
        self.in_flight: Counter[str] = Counter(dict.fromkeys(STAGES, 0))

    @contextlib.asynccontextmanager
    async def one(self, stage: str) -> AsyncIterator[None]:
        """Take a slot for a call of a stage, waiting for it.

        Raises `Stopped` where the session ends before there is one.
        """
        async with self._own, contextlib.AsyncExitStack() as shared_slot:
            if self._shared:
                await shared_slot.enter_async_context(held(self._shared, self._stopping))
            self.in_flight[stage] += 1
            try:
                yield
            finally:
                self.in_flight[stage] -= 1


@contextlib.contextmanager
def held_briefly(path: Path) -> Iterator[None]:
    """Hold a lock file for a few file operations, blocking until it is free."""
    from filelock import FileLock

    _prepare(path.parent)
    with FileLock(path, thread_local=False):
        yield


def _taken(lock: FileLock) -> bool:
    from filelock import Timeout

    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        atomic_write(ignore, "*\n")

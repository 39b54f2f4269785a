"""How the calls of a session are answered, common to all of its tapes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pytest_jrh.llm.calls import Answer, Exchange
from pytest_jrh.redact import Redactor

if TYPE_CHECKING:
    from pytest_jrh.recording.recorder import HttpRecorder

Replay = Literal["completion", "http"]


class SharedCalls:
    """The calls that several cases make alike, such as the first summary of a run: one asks, all
    are answered.

    Where answers are kept, the others copy them from the cassette of the first, and a pointer file
    tells where that is; where they are not, they are remembered here.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def turn(self, fingerprint: str) -> AsyncIterator[None]:
        """Let the askers of one call of this process in one by one."""
        lock = self._turns.setdefault(fingerprint, asyncio.Lock())
        async with lock:
            yield
        if not lock.locked():
            self._turns.pop(fingerprint, None)


@dataclass(frozen=True, slots=True)
class Lookup:
    """One call that a case has looked up: `answer` is what was recorded, None where nothing was."""

    stage: str
    fingerprint: str
    answer: str | None


@dataclass(frozen=True, slots=True)
class Recording:
    """How the calls of a session are answered, common to all of its tapes.

    `live` asks models, and is None where nothing may be asked; `http` is the session's patch, None
    for clients that do not speak HTTP through it; `keep` is False where answers are not to be kept.
    No call is begun once `stopping` answers True. `session` is the same for all processes of a
    session. While `planning` nothing is asked, and what is forgotten to be asked again stays on the
    disk.
    """

    redactor: Redactor
    replay: Replay = "completion"
    live: Exchange | None = None
    http: HttpRecorder | None = None
    keep: bool = True
    stopping: Callable[[], bool] = bool
    session: str = ""
    shared: SharedCalls = field(default_factory=SharedCalls)
    planning: bool = False

"""The calls that several cases make alike: one case makes each, and the others copy its answer
(rules D5, G5).

How the calls of a session are answered, common to all of its tapes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.stages import STAGES
from pytest_jrh.llm.calls import Exchange, digest
from pytest_jrh.recording.cassettes import Cassette

if TYPE_CHECKING:
    from pytest_jrh.llm.calls import Answer, CallRequest
    from pytest_jrh.recording.cassettes import RecordedCall
    from pytest_jrh.recording.recorder import HttpRecorder


# The ending of a cassette that is recorded anew while the old one stays.
RENEWED = ".renewed"
# The first summary is asked beside the plan, so it is one of the first two calls of a case.
_FIRST_CALLS = 2


def side_file(folder: Path, cassette: Path, ending: str) -> Path:
    """Where a folder of cassettes has what belongs to one of them and is not committed."""
    name = digest(cassette.relative_to(folder).as_posix())[:32]
    return folder / ".locks" / f"{name}{ending}"


def is_shared(request: CallRequest, sequence: int) -> bool:
    """Whether every case of the run makes this call alike: it summarizes the
    run before any edit.
    """
    stage = STAGES.get(request.stage.stage)
    return stage is not None and stage.shared_at_start and sequence <= _FIRST_CALLS


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
class Pointer:
    """The file at `place` that names the cassette, in `folder`, which holds a shared call.

    `session` is the one that reads and writes it.
    """

    place: Path
    folder: Path
    session: str

    def entry(self, fingerprint: str, *, asker: Path, anew: bool) -> RecordedCall | None:
        """The call in the cassette that is named; None where it is not there, or that is `asker`.

        Where the call is to be recorded `anew`, a pointer of an earlier session does not count.
        """
        try:
            pointer = json.loads(self.place.read_text(encoding="utf-8"))
            place_of_holder, session = str(pointer["cassette"]), pointer["session"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None
        if anew and session != self.session:
            return None
        holder = self.folder / place_of_holder
        if holder == asker:
            return None
        renewal = side_file(self.folder, holder, RENEWED)
        for place in (renewal, holder) if anew else (holder, renewal):
            entries = Cassette.load(place, interactions=True).entries
            if fingerprint in entries:
                return entries[fingerprint]
            if anew and entries:
                break
        return None

    def write(self, holder: Path) -> None:
        """Name the cassette that will hold the call; raises `OSError` as it comes."""
        cassette = holder.relative_to(self.folder).as_posix()
        atomic_write(self.place, json.dumps({"session": self.session, "cassette": cassette}))


@dataclass(frozen=True, slots=True)
class SessionMark:
    """The file at `place` that says which session has recorded a cassette anew, for the others of
    its cases that ask for it.
    """

    place: Path
    session: str

    def stands(self) -> bool:
        """Whether it was this session."""
        try:
            return self.place.read_text(encoding="utf-8") == self.session
        except (OSError, ValueError):
            return False

    def set(self) -> None:
        """Say that it was this session; raises `OSError` as it comes."""
        if not self.stands():
            atomic_write(self.place, self.session)


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
    live: Exchange | None = None
    http: HttpRecorder | None = None
    keep: bool = True
    stopping: Callable[[], bool] = bool
    session: str = ""
    shared: SharedCalls = field(default_factory=SharedCalls)
    planning: bool = False

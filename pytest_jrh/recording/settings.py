"""How the calls of a session are answered, common to all of its tapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_jrh.llm.calls import Exchange
from pytest_jrh.recording.shared_calls import SharedCalls
from pytest_jrh.redact import Redactor

if TYPE_CHECKING:
    from pytest_jrh.models.terms import Replay
    from pytest_jrh.recording.recorder import HttpRecorder


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

"""Which versions of its models a session's answers come from, beside those of its recordings: a
provider names the model's snapshot in the body of an answer.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.text import one_line, shortened
from pytest_jrh.llm.calls import digest
from pytest_jrh.recording.cassettes import Cassette

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.recording.cassettes import RecordedCall


# As OpenAI, and most others after it, write it; and as Gemini does.
_FIELDS = ("model", "modelVersion")
_LONGEST_NAME = 80
_JUDGING = ".judge-"
# Of cassettes of judging, and of others, each: enough to know the versions, read within a second.
_MOST_FILES = 100
_MOST_BYTES = 5_000_000


class Version(NamedTuple):
    """What an answer says of the `model` that a `stage` asked for: the `name` of its snapshot."""

    stage: str
    model: str
    name: str


@dataclass(frozen=True, slots=True)
class VersionTally:
    """How many answers come from each version: of those `answered` by a process of a session, and
    of those that were `recorded` before it began, at the time `since`.
    """

    since: float
    answered: Mapping[Version, int]
    recorded: Mapping[Version, int]

    @classmethod
    def joined(cls, tallies: Sequence[VersionTally]) -> VersionTally:
        """The tally of a session from those of its processes. What the others have read may have
        been recorded by the one that began first.
        """
        answered: Counter[Version] = Counter()
        for tally in tallies:
            answered.update(tally.answered)
        readers = [tally for tally in tallies if tally.recorded]
        first = min(readers or tallies, key=lambda tally: tally.since)
        return replace(first, answered=answered)

    @classmethod
    def read(cls, data: Sequence[Any]) -> VersionTally:
        """The tally that `data` gave."""
        since, answered, recorded = data
        return cls(since, _counts(answered), _counts(recorded))

    @property
    def data(self) -> list[Any]:
        """The tally as JSON values."""
        return [self.since, _rows(self.answered), _rows(self.recorded)]

    def changes(self) -> list[ModelChange]:
        """The models that answered as a snapshot that no recording has."""
        changes: list[ModelChange] = []
        for stage, model in dict.fromkeys(version[:2] for version in self.answered):
            answered = _names(self.answered, stage, model)
            recorded = _names(self.recorded, stage, model)
            new = {name: number for name, number in answered.items() if name not in recorded}
            if new and recorded:
                changes.append(ModelChange(stage, model, new, recorded, sum(answered.values())))
        return changes


def _rows(tally: Mapping[Version, int]) -> list[list[str | int]]:
    return [[*version, number] for version, number in tally.items()]


def _counts(rows: Iterable[Sequence[Any]]) -> dict[Version, int]:
    return {Version(*version): number for *version, number in rows}


def _names(tally: Mapping[Version, int], stage: str, model: str) -> dict[str, int]:
    """How many answers have each name, the most frequent first."""
    names: Counter[str] = Counter()
    for version, number in tally.items():
        if version[:2] == (stage, model):
            names[version.name] = number
    return dict(sorted(names.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class ModelChange:
    """A model whose answers to a stage are of snapshots that its recordings do not have.

    `new` and `recorded` give by snapshot the number of answers, the most frequent first; the
    session has `answers` in all.
    """

    stage: str
    model: str
    new: Mapping[str, int]
    recorded: Mapping[str, int]
    answers: int


class ModelVersions:
    """Keeps the versions that answer in a session, of one suite.

    Recordings in `folder` are read when the first answer of their kind comes. What was written
    since counts as no recording: it is of this session.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._since = time.time()
        self._recorded: Counter[Version] = Counter()
        self._kinds_read: set[bool] = set()
        self._answered: Counter[Version] = Counter()

    @property
    def tally(self) -> VersionTally:
        """What is known so far."""
        return VersionTally(self._since, dict(self._answered), dict(self._recorded))

    def add(self, path: Path, entry: RecordedCall, earlier: RecordedCall | None = None) -> None:
        """Take a call that is about to be recorded at `path`, in place of an `earlier` one: a
        judge's own code records several times as it goes on, and keeps what it does not ask again.
        """
        before = earlier.interactions if earlier is not None else ()
        made = tuple(exchange for exchange in entry.interactions if exchange not in before)
        if not made:
            return
        judging = _JUDGING in path.name
        if judging not in self._kinds_read:
            self._kinds_read.add(judging)
            for cassette in self._sample(judging=judging):
                for call in cassette.entries.values():
                    self._recorded.update(_versions(call))
        self._answered.update(_versions(replace(entry, interactions=made)))

    def _sample(self, *, judging: bool) -> Iterator[Cassette]:
        """Some of the cassettes of judging, or of the others, picked by what does not depend on
        their order: every fifth may be of one judge.
        """
        by_name: dict[str, Path] = {}
        for path in self._folder.glob("*/*/*.yaml"):
            if (_JUDGING in path.name) == judging:
                by_name[path.relative_to(self._folder).as_posix()] = path
        size = 0
        for name in sorted(by_name, key=digest)[:_MOST_FILES]:
            # What cannot be read is said of the case that needs it.
            with contextlib.suppress(InputError, OSError):
                file = by_name[name].stat()
                size += file.st_size
                if file.st_mtime < self._since:
                    yield Cassette.load(by_name[name], interactions=True)
            if size > _MOST_BYTES:
                break


def _versions(call: RecordedCall) -> Iterator[Version]:
    for interaction in call.interactions:
        asked = _body(interaction["request"]["body"])
        answer = _body(interaction["response"]["body"]["string"])
        model = _name(asked.get("model")) or _name(call.parts.get("model"))
        names = [name for field in _FIELDS if (name := _name(answer.get(field)))]
        if names:
            yield Version(call.stage, model, names[0])


def _body(text: object) -> Mapping[str, Any]:
    """The JSON object that a body is; empty where it is none."""
    try:
        value = json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _name(value: object) -> str:
    return shortened(one_line(value), _LONGEST_NAME) if isinstance(value, str) else ""

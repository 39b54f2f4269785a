"""Records on disk: spooled as cases are made, indexed by place, merged into one JSONL.

An index holds where each record is, never the records, so memory does not grow with transcripts.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import FileLine, LineFile, LinePlace, lines_of, replacing
from pytest_jrh.store.records import (
    read_case,
    read_record,
    stored_case,
    stored_line,
)

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case, CaseSpec, Label, Mode, Objective
    from pytest_jrh.core.redact import Redactor
    from pytest_jrh.store.records import Record


class RecordEntry(NamedTuple):
    """Which case a record is of, without its texts, and where it lies."""

    place: LinePlace
    spec: CaseSpec
    expected: int
    verified: bool
    human_reviewed: bool
    mode: Mode
    objective: Objective
    label: Label | None
    rejected: bool

    @classmethod
    def of(cls, record: Record, line: FileLine) -> RecordEntry:
        """The entry of a record that was read from a line."""
        return cls(
            line.place,
            record.spec,
            record.expected,
            record.verified,
            record.human_reviewed,
            record.mode,
            record.objective,
            record.label,
            record.rejected is not None,
        )

    def line(self) -> bytes:
        """The record itself; raises `OSError`."""
        return _bytes_at(self.place)

    def case(self) -> Case:
        """Read the case; raises `InputError` where it cannot be used, and `OSError`."""
        return read_case(self.line(), file=str(self.place.path), number=self.place.number)


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Places of records by case id; `foreign` are lines of RAND's harness, which have none."""

    entries: Mapping[str, RecordEntry] = field(default_factory=dict)
    foreign: tuple[LinePlace, ...] = ()

    @classmethod
    def joined(cls, indexes: Iterable[RecordIndex]) -> RecordIndex:
        """One index of the cases of several suites."""
        entries: dict[str, RecordEntry] = {}
        for index in indexes:
            entries.update(index.entries)
        return cls(entries)

    def read(self, case_id: str) -> Case | None:
        """Read a case as its record has it; None where there is none."""
        entry = self.entries.get(case_id)
        if entry is None:
            return None
        return stored_case(entry.line(), file=str(entry.place.path), number=entry.place.number)


def _bytes_at(line_place: LinePlace) -> bytes:
    with line_place.path.open("rb") as file:
        file.seek(line_place.offset)
        return file.read(line_place.length)


class Spool(LineFile):
    """One process's file of made cases, a line each, on disk as soon as the case is made."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        super().__init__(folder / f"{os.getpid()}-{secrets.token_hex(4)}.jsonl")
        self._redactor = redactor

    def append(self, case: Case) -> None:
        """Write one case; raises `OSError`."""
        self.add(stored_line(case, self._redactor)[:-1])


def read_jsonl(path: Path) -> RecordIndex:
    """Index a JSONL file, each record checked by its schema; a missing file has no records.

    Raises `InputError` with file and line for the first line that is no usable record, or a second
    record of a case.
    """
    entries: dict[str, RecordEntry] = {}
    foreign: list[LinePlace] = []
    for line in lines_of(path):
        record = read_record(line.data, file=str(path), number=line.number)
        if record is None:
            foreign.append(line.place)
            continue
        if record.case_id in entries:
            first = entries[record.case_id].place.number
            message = f"duplicate case_id {record.case_id!r}, first on line {first}"
            hint = "Keep one of the two lines."
            raise InputError(Problem(message, str(path), line.number, hint=hint))
        entries[record.case_id] = RecordEntry.of(record, line)
    return RecordIndex(entries, tuple(foreign))


class Spooled(NamedTuple):
    """The cases in spool files: those that were made, and those that the verifier rejected."""

    made: RecordIndex
    rejected: RecordIndex


def read_spools(spools: Iterable[Path], selected: frozenset[str]) -> Spooled:
    """Index the selected cases in spool files, later ones winning; what a killed process left of a
    line is none.
    """
    made: dict[str, RecordEntry] = {}
    rejected: dict[str, RecordEntry] = {}
    for path in spools:
        for line in lines_of(path):
            if not line.is_ended:
                continue
            record = read_record(line.data, file=str(path), number=line.number)
            if record is not None and record.case_id in selected:
                group = made if record.rejected is None else rejected
                group[record.case_id] = RecordEntry.of(record, line)
    return Spooled(RecordIndex(made), RecordIndex(rejected))


def merge(
    existing: RecordIndex, new: RecordIndex, *, dropped: frozenset[str], overwrite: bool
) -> RecordIndex:
    """Say which records are to be there afterwards.

    `overwrite` replaces existing records by made ones and removes those of `dropped`; otherwise
    existing records stay as they are and missing ones are added; but what a person decided in this
    session counts. All others always stay.
    """
    if overwrite:
        merged = {**existing.entries, **new.entries}
        entries = {case_id: entry for case_id, entry in merged.items() if case_id not in dropped}
    else:
        entries = {**new.entries, **existing.entries}
        for case_id, entry in new.entries.items():
            if entry.human_reviewed:
                entries[case_id] = entry
    return RecordIndex(entries, existing.foreign)


def write_jsonl(target: Path, index: RecordIndex) -> RecordIndex:
    """Write the indexed records, sorted by case id behind RAND's own lines, and return their new
    places.

    Lines are copied byte for byte. A file that already is so is not touched, and none is made for
    no records. Raises `OSError`; the old file is then still whole.
    """
    if not index.entries and not index.foreign and not target.exists():
        return index
    entries: dict[str, RecordEntry] = {}
    foreign: list[LinePlace] = []
    with replacing(target) as out:

        def copied(line_place: LinePlace) -> LinePlace:
            offset = out.tell()
            out.write(_bytes_at(line_place) + b"\n")
            return line_place._replace(path=target, offset=offset)

        for line_place in index.foreign:
            foreign.append(copied(line_place))
        for case_id, entry in sorted(index.entries.items()):
            entries[case_id] = entry._replace(place=copied(entry.place))
    return RecordIndex(entries, tuple(foreign))


_PREFIX = ".spool-"
_DAY = 24 * 60 * 60


class Handover:
    """Where the processes of a session put its made cases, for its controller to read.

    A folder is named after its session, never after a process, whose id another one may get again.
    `notices` are sentences about cases that could not be kept.
    """

    def __init__(self, token: str, redactor: Redactor) -> None:
        self._token = token
        self._redactor = redactor
        self._spools: dict[str, Spool] = {}
        self.notices: list[str] = []

    def folder(self, suite: Suite) -> Path:
        """Where the suite's made cases are spooled in this session."""
        return suite.results_dir / f"{_PREFIX}{self._token[:16]}"

    def keep(self, case: Case, suite: Suite) -> None:
        """Spool a made case where the controller can read it."""
        folder = self.folder(suite)
        try:
            self._spools.setdefault(suite.name, Spool(folder, self._redactor)).append(case)
        except OSError as error:
            # The case is recorded, and made again for nothing: a verdict must not be lost over its
            # artifact.
            self.notices.append(
                f"A made case could not be written to {folder}: {error.strerror or error}."
            )

    def close(self) -> None:
        """Close the spools; their folders stay until `clear`."""
        for spool in self._spools.values():
            spool.close()

    def clear(self, suites: Iterable[Suite]) -> None:
        """Remove this session's folders, and those of sessions that were killed: nobody has
        written to them for a day.

        What they hold is made again from the recordings.
        """
        for folder in dict.fromkeys(map(self.folder, suites)):
            shutil.rmtree(folder, ignore_errors=True)
            for other in folder.parent.glob(f"{_PREFIX}*"):
                if other != folder and time.time() - other.lstat().st_mtime > _DAY:
                    shutil.rmtree(other, ignore_errors=True)

"""Records on disk: spooled as cases are made, indexed by place, merged into one JSONL (rule H1).

An index holds where each record is, never the records, so memory does not grow with transcripts.

Where a session's made cases wait for the end of the session, on this disk or in reports.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pytest_jrh.cases.ids import REJECTED_FILE, generation_id
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import atomic_write, replacing
from pytest_jrh.core.model import Label
from pytest_jrh.core.text import counted
from pytest_jrh.llm.locks import claimed
from pytest_jrh.store.records import checked, is_foreign, record_line, stored_record

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case, CaseSpec, LabelledBy
    from pytest_jrh.core.redact import Redactor


_BOM = b"\xef\xbb\xbf"
_MOST_PROBLEMS = 10
_UNREPORTED = ".unreported"
_ESCAPED_SURROGATE = re.compile(rb"(?i)\\ud[89a-f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
ReadRecord: TypeAlias = Callable[[str], "dict[str, Any] | None"]


class RecordEntry(NamedTuple):
    """Where one record lies (`line` counts from 1, `length` is without the newline), and which case
    it is.
    """

    path: Path
    offset: int
    length: int
    line: int = 0
    suite: str = ""
    test: str = ""
    rubric: str = ""
    verified: bool = False
    run_id: str = ""
    epoch: int = 1
    target_score: int | None = None
    human_reviewed: bool = False
    mode: str = ""
    objective: str = ""
    expected: int = 0
    digest: str = ""
    line_digest: bytes = b""
    cluster: str | None = None
    label: Label | None = None
    rejected: bool = False


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Places of records by case id; `foreign` are lines that RAND's harness wrote, which have none.

    `torn` counts lines of spools that a killed process left unfinished.
    """

    entries: Mapping[str, RecordEntry] = field(default_factory=dict)
    foreign: tuple[RecordEntry, ...] = ()
    torn: int = 0

    @classmethod
    def joined(cls, indexes: Iterable[RecordIndex]) -> RecordIndex:
        """One index of the cases of several suites."""
        return cls({case: entry for index in indexes for case, entry in index.entries.items()})

    @contextlib.contextmanager
    def reading(self) -> Iterator[ReadRecord]:
        """Give a function that reads a record by case id; None where there is none."""
        with contextlib.ExitStack() as stack:
            files: dict[Path, IO[bytes]] = {}

            def read(case_id: str) -> dict[str, Any] | None:
                entry = self.entries.get(case_id)
                if entry is None:
                    return None
                record: dict[str, Any] = json.loads(_raw(entry, files, stack))
                return record

            yield read


class Spool:
    """One process's file of made cases, a line each, on disk as soon as the case is made.

    The file appears with the first case. A failed write (a full disk) takes its half line back, so
    that later lines stay readable, and raises `OSError`. One thread at a time may append.
    """

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self.path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self._redactor = redactor
        self._file: IO[bytes] | None = None

    def append(self, case: Case, review: Mapping[str, str] | None = None) -> None:
        """Write one case, and what a person decided.

        It has reached the operating system when this returns.
        """
        line = record_line(stored_record(case, review, self._redactor))
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("ab", buffering=0)
        start = self._file.tell()
        try:
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError:
            self._file.truncate(start)
            self._file.seek(start)
            raise

    def close(self) -> None:
        """Close the file; the spool may be appended to again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read_jsonl(
    path: Path, made: RecordIndex | None = None, *, rejected: bool = False
) -> RecordIndex:
    """Index a JSONL file, each record checked by its schema; a missing file has no records.

    A line that is byte for byte one of `made`, cases of this session, needs no check. A file of
    cases that the verifier `rejected` holds no others, and no other file holds one. Raises
    `InputError` with file and line for each line that is not a JSON object, no usable record, or a
    second record of a case.
    """
    known = {
        entry.line_digest: (case_id, entry)
        for case_id, entry in (made.entries if made is not None else {}).items()
    }
    if path.exists() and not path.is_file():
        # Reading a named pipe would wait for someone to write into it.
        raise InputError(Problem("this is not a regular file", str(path)))
    entries: dict[str, RecordEntry] = {}
    foreign: list[RecordEntry] = []
    problems: list[Problem] = []
    for number, entry, line in _lines(path):
        case_id, alike = known.get(_digest(line), ("", None)) if known else ("", None)
        if alike is not None and case_id not in entries:
            entries[case_id] = alike._replace(path=path, offset=entry.offset, line=number)
            continue
        record = _object(line)
        if not isinstance(record, dict):
            problems.append(Problem(record, file=str(path), line=number, hint=_REPAIR))
        elif is_foreign(record) and not rejected:
            foreign.append(entry)
        elif half := _half_pair(line, record):
            message = f"has half of a surrogate pair ({half}), which no file could be written with"
            problems.append(Problem(message, file=str(path), line=number, hint=_REPAIR))
        else:
            problems += _record_problems(entry, record, entries, rejected=rejected)
        if len(problems) >= _MOST_PROBLEMS:
            break
    if problems:
        raise InputError(problems)
    return RecordIndex(entries, tuple(foreign))


def _record_problems(
    entry: RecordEntry, record: dict[str, Any], entries: dict[str, RecordEntry], *, rejected: bool
) -> Sequence[Problem]:
    """Add a record to the entries, or say what is wrong with it."""
    try:
        stored = checked(record, file=str(entry.path), line=entry.line)
    except InputError as error:
        return error.problems
    case_id = stored.case_id
    if (stored.rejected is not None) != rejected:
        message = "the verifier did not reject this case" if rejected else _IS_REJECTED
        return [Problem(message, str(entry.path), entry.line, hint="Remove the line.")]
    if case_id in entries:
        message = f"duplicate case_id {case_id!r}, first on line {entries[case_id].line}"
        return [Problem(message, str(entry.path), entry.line, hint="Keep one of the two lines.")]
    entries[case_id] = _counted(entry, record)
    return ()


class Spooled(NamedTuple):
    """The cases in spool files: those that were made, and those that the verifier rejected."""

    made: RecordIndex
    rejected: RecordIndex


def read_spools(spools: Iterable[Path], selected: frozenset[str]) -> Spooled:
    """Index the selected cases in spool files, later ones winning.

    Unfinished lines are counted with those that were made, and skipped.
    """
    found: dict[bool, dict[str, RecordEntry]] = {False: {}, True: {}}
    torn = 0
    for path in spools:
        for _, entry, line in _lines(path):
            record = _object(line)
            if not isinstance(record, dict):
                torn += 1
            elif record.get("case_id") in selected:
                placed = _counted(entry._replace(line_digest=_digest(line)), record)
                found[placed.rejected][record["case_id"]] = placed
    return Spooled(RecordIndex(found[False], torn=torn), RecordIndex(found[True]))


def merge(
    existing: RecordIndex, made: RecordIndex, *, dropped: frozenset[str], overwrite: bool
) -> RecordIndex:
    """Say which records are to be there afterwards.

    `overwrite` replaces existing records by made ones and removes those of `dropped`; otherwise
    existing records stay as they are and missing ones are added; but what a person decided in this
    session counts. All others always stay.
    """
    if overwrite:
        merged = {**existing.entries, **made.entries}
        kept = {case_id: entry for case_id, entry in merged.items() if case_id not in dropped}
    else:
        reviewed = {
            case_id: entry for case_id, entry in made.entries.items() if entry.human_reviewed
        }
        kept = {**made.entries, **existing.entries, **reviewed}
    return RecordIndex(kept, existing.foreign, made.torn)


def write_jsonl(target: Path, index: RecordIndex) -> RecordIndex:
    """Write the indexed records, sorted by case id behind RAND's own lines, and return their new
    places.

    Lines are copied byte for byte. A file that already is so is not touched, and none is made for
    no records. Raises `OSError`; the old file is then still whole.
    """
    if not index.entries and not index.foreign and not target.exists():
        return index
    placed: dict[str, RecordEntry] = {}
    foreign: list[RecordEntry] = []
    with contextlib.ExitStack() as stack, replacing(target) as out:
        files: dict[Path, IO[bytes]] = {}
        offset = 0
        lines = [(None, entry) for entry in index.foreign]
        for case_id, entry in [*lines, *sorted(index.entries.items())]:
            out.write(_raw(entry, files, stack) + b"\n")
            moved = entry._replace(path=target, offset=offset)
            offset += entry.length + 1
            if case_id is None:
                foreign.append(moved)
            else:
                placed[case_id] = moved
    return RecordIndex(placed, tuple(foreign), index.torn)


_IS_REJECTED = f"the verifier rejected this case; it belongs in {REJECTED_FILE}"
_REPAIR = "Repair or remove this line; the file was not changed."


def _lines(path: Path) -> Iterator[tuple[int, RecordEntry, bytes]]:
    """Yield number, place and bytes of each line that is not blank."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        offset = 0
        for number, raw in enumerate(file, 1):
            skipped = len(_BOM) if number == 1 and raw.startswith(_BOM) else 0
            line = raw[skipped:].rstrip(b"\r\n")
            if line.strip():
                yield number, RecordEntry(path, offset + skipped, len(line), number), line
            offset += len(raw)


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _object(line: bytes) -> dict[str, Any] | str:
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        return f"this line is not a JSON object ({error}); it may be truncated"
    return (
        value
        if isinstance(value, dict)
        else f"this line holds a JSON {type(value).__name__}, not an object"
    )


def _half_pair(line: bytes, record: Mapping[str, Any]) -> str | None:
    """The first half of a surrogate pair in a record, as JSON escapes it: JSON alone can hold one.

    None where there is none.
    """
    if not _ESCAPED_SURROGATE.search(line):
        return None
    lone = _SURROGATE.search(json.dumps(record, ensure_ascii=False))
    return None if lone is None else f"\\u{ord(lone[0]):04x}"


def _counted(entry: RecordEntry, record: Mapping[str, Any]) -> RecordEntry:
    rubric = record.get("target_rubric")
    return entry._replace(
        suite=str(record.get("suite", "")),
        test=str(record.get("test", "")),
        rubric=str(rubric.get("id", "")) if isinstance(rubric, dict) else "",
        verified=record.get("verified") is True,
        run_id=str(record.get("run_id", "")),
        epoch=epoch if isinstance(epoch := record.get("epoch"), int) else 1,
        target_score=target if isinstance(target := record.get("target_score"), int) else None,
        human_reviewed=record.get("human_reviewed") is True,
        mode=str(record.get("mode", "")),
        objective=str(record.get("objective", "")),
        expected=expected if isinstance(expected := record.get("expected"), int) else 0,
        digest=str(record.get("case_digest", "")),
        cluster=cluster if isinstance(cluster := record.get("cluster"), str) else None,
        label=_label(record.get("label")),
        rejected=record.get("rejected") is not None,
    )


def _label(stored: Any) -> Label | None:
    """The label of a natural run; none where it cannot be used, which reading the case will say."""
    votes = stored.get("votes") if isinstance(stored, dict) else None
    if not isinstance(votes, list) or not votes or not all(type(vote) is int for vote in votes):
        return None
    by: LabelledBy = "program" if stored.get("by") == "program" else "people"
    return Label.of(tuple(votes), by, str(stored.get("split", "")))


def read_record(entry: RecordEntry) -> dict[str, Any]:
    """Read one record from its place; raises `OSError`."""
    with entry.path.open("rb") as file:
        file.seek(entry.offset)
        record: dict[str, Any] = json.loads(file.read(entry.length))
    return record


def _raw(entry: RecordEntry, files: dict[Path, IO[bytes]], stack: contextlib.ExitStack) -> bytes:
    file = files.get(entry.path)
    if file is None:
        file = files[entry.path] = stack.enter_context(entry.path.open("rb"))
    file.seek(entry.offset)
    return file.read(entry.length)


_MARK_FILE = "mark"
_PREFIX = ".spool-"


class Handover:
    """Where one process puts its made cases; the folders belong to the controller, or to a session
    without workers.

    A folder is named after its session, never after a process, whose id another one may get again.
    A lock file beside it is held as long as the session runs, so that no other session takes it for
    abandoned. An xdist worker is `given` what its controller's `describe` says; None in any other
    process. `notices` are sentences about cases that could not be kept.
    """

    def __init__(self, token: str, redactor: Redactor, given: Mapping[str, Any] | None) -> None:
        self._token = token
        self._redactor = redactor
        self._given = given
        self._spools: dict[str, Spool] = {}
        self._carried: dict[str, dict[str, Any]] = {}
        self._claims: dict[Path, Callable[[], None] | None] = {}
        self.notices: list[str] = []

    def folder(self, suite: Suite) -> Path:
        """Where the suite's made cases are spooled in this session."""
        return suite.output.dir / f"{_PREFIX}{self._token[:16]}"

    def describe(self, suites: Iterable[Suite]) -> dict[str, Any]:
        """What a worker needs to know to spool where the controller reads.

        A token in each folder tells a worker whether it shares the controller's disk.
        """
        folders = {suite.name: self.folder(suite) for suite in suites}
        for folder in folders.values():
            # Where nothing can be written, as on a full disk, no worker finds the token, and
            # reports carry the cases.
            with contextlib.suppress(OSError):
                self._claim(folder)
                (folder / _MARK_FILE).write_text(self._token, encoding="ascii")
        return {
            "token": self._token,
            "folders": {name: str(folder) for name, folder in folders.items()},
        }

    def keep(self, case: Case, suite: Suite, review: Mapping[str, str] | None = None) -> None:
        """Spool a made case where the controller can read it, else let its report carry it."""
        given = self._given
        folder = self.folder(suite) if given is None else _given_folder(given, suite)
        if folder is None:
            self._carried[generation_id(case.spec)] = stored_record(case, review, self._redactor)
            return
        try:
            if given is None:
                self._claim(folder)
            self._spools.setdefault(suite.name, Spool(folder, self._redactor)).append(case, review)
        except OSError as error:
            # The case is recorded, and made again for nothing: a verdict must not be lost over its
            # artifact.
            self.notices.append(
                f"A made case could not be written to {folder}: {error.strerror or error}."
            )

    def carried(self, spec: CaseSpec) -> dict[str, Any] | None:
        """The record of a made case that has to travel with a report, because no disk is shared."""
        return self._carried.pop(generation_id(spec), None)

    def add_sent(self, suite: Suite, sent: Iterable[Mapping[str, Any]]) -> list[str]:
        """Put the suite's records that travelled with reports beside those that were spooled.

        What went wrong.
        """
        records = [record for record in sent if record["suite"] == suite.name]
        path = self.folder(suite) / "sent.jsonl"
        try:
            if records:
                self._claim(path.parent)
                atomic_write(path, b"".join(record_line(record) for record in records))
        except OSError as error:
            return [
                f"{counted(len(records), 'made case')} could not be written to {path}: "
                f"{error.strerror}."
            ]
        return []

    def leave_unreported(self, suite: Suite, result: str) -> None:
        """Leave the controller a result, as one line of text, that no report carries to it."""
        folder = _given_folder(self._given or {}, suite)
        if folder is None:
            return
        # Where nothing can be written, what it took is not counted.
        with (
            contextlib.suppress(OSError),
            (folder / f"{os.getpid()}{_UNREPORTED}").open("a", encoding="utf-8") as file,
        ):
            file.write(f"{result}\n")

    def unreported(self, suites: Iterable[Suite]) -> list[str]:
        """What the workers have left that no report carries."""
        lines: list[str] = []
        for folder in dict.fromkeys(map(self.folder, suites)):
            for path in sorted(folder.glob(f"*{_UNREPORTED}")):
                lines += path.read_text(encoding="utf-8").splitlines()
        return lines

    def close(self) -> None:
        """Close the spools; their folders stay until `clear`."""
        for spool in self._spools.values():
            spool.close()

    def clear(self, suites: Iterable[Suite], kept: Collection[Path]) -> list[str]:
        """Remove this session's folders but those to be kept, and those of sessions that ended
        without doing so.

        A folder whose lock is held belongs to a session at work. Returns what the user should know.
        """
        folders = dict.fromkeys(map(self.folder, suites))
        for folder in folders:
            if folder not in kept:
                shutil.rmtree(folder, ignore_errors=True)
            # Where the folder could not be made, as on a full disk, there is no lock to remove
            # either.
            with contextlib.suppress(OSError):
                _lock_of(folder).unlink()
            release = self._claims.pop(folder, None)
            if release is not None:
                release()
        others = [
            path
            for place in dict.fromkeys(folder.parent for folder in folders)
            for path in _spools_in(place)
        ]
        notices = [_tidied(path) for path in others if path not in folders]
        return [notice for notice in notices if notice]

    def _claim(self, folder: Path) -> None:
        """Make a folder that others can see is in use: the lock comes first, so there is no moment
        without it.
        """
        if folder not in self._claims:
            folder.parent.mkdir(parents=True, exist_ok=True)
            self._claims[folder] = claimed(_lock_of(folder))
            folder.mkdir(exist_ok=True)


def _given_folder(given: Mapping[str, Any], suite: Suite) -> Path | None:
    """Where the controller lets this worker spool.

    None where it does not, or where no disk is shared.
    """
    folder = given.get("folders", {}).get(suite.name)
    try:
        shared = (
            folder is not None
            and Path(folder, _MARK_FILE).read_text(encoding="utf-8") == given["token"]
        )
    except (OSError, UnicodeDecodeError):
        return None
    return Path(folder) if shared else None


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _spools_in(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.glob(f"{_PREFIX}*") if path.is_dir() and not path.is_symlink()
    )


def _tidied(folder: Path) -> str:
    """Remove the spools of a session that did not come to its end.

    A message about it, if any.
    """
    lock = _lock_of(folder)
    if not lock.is_file():
        return (
            f"{folder} contains made cases of another session that are not in its results. It was "
            "not changed; remove it if that session has ended."
        )
    release = claimed(lock)
    if release is None:
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    lock.unlink(missing_ok=True)
    release()
    return (
        f"Removed {folder}, left behind by an unfinished session. Its recordings are in the "
        "cassettes, and its cases are made from them on the next run."
    )

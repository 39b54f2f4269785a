"""Where a session's made cases wait for the end of the session, on this disk or in reports."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.artifacts.records import record_line, stored_record
from pytest_jrh.artifacts.spools import Spool
from pytest_jrh.files import atomic_write
from pytest_jrh.llm.locks import claimed
from pytest_jrh.suite.ids import generation_id
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pytest_jrh.models import Case, CaseSpec
    from pytest_jrh.redact import Redactor
    from pytest_jrh.suite.suite import Suite

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

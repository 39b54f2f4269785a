"""What reviewers said of the cases: on the disk before it counts, and read again by later sessions
(rules N3, N4).
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.documents import listed, read_text
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import AppendedFile, atomic_write, encoded
from pytest_jrh.core.transcript import storable
from pytest_jrh.sources.label_files import LabelFile, read_objects
from pytest_jrh.store.labels import labels_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pytest_jrh.core.model import Case
    from pytest_jrh.store.labels import PersonLabel


RUN_LABELS = "run_labels.jsonl"
"""Beside the labels: those of natural runs, in the form that `labels: {path: ...}` reads."""
_KEY = ("run_id", "epoch", "rubric_id", "annotator")


@dataclass(frozen=True, slots=True)
class Said:
    """What one reviewer says of one case.

    `blind` is the label that was given before anything was revealed, `label` the last one; None in
    either is that nobody can tell. `is_blind`: there is a blind one. `withdrawn`: both were taken
    back.
    """

    label: int | None = None
    blind: int | None = None
    is_blind: bool = False
    note: str = ""
    withdrawn: bool = False


class LabelBook:
    """The labels of the suites on a page, by case digest and reviewer.

    `folders` are those of the tests, by suite and test; `people` what their files say already.
    `redact` is applied to what people type. Raises `InputError` where the labels of natural runs
    cannot be read.
    """

    def __init__(
        self,
        folders: Mapping[tuple[str, str], Path],
        people: Iterable[PersonLabel] = (),
        *,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._folders = dict(folders)
        self._redact = redact
        self._lock = threading.RLock()
        self._said: dict[str, dict[str, Said]] = {}
        self._files: dict[Path, AppendedFile] = {}
        self._run_rows: dict[Path, dict[tuple[Any, ...], dict[str, Any]]] = {}
        for folder in dict.fromkeys(self._folders.values()):
            self._files[folder] = AppendedFile(labels_path(folder), is_whole=_is_json)
            path = labels_path(folder).with_name(RUN_LABELS)
            self._run_rows[path] = _rows(path)
        for each in people:
            self._take(
                each.case_digest,
                each.reviewer,
                each.label,
                note=each.note,
                blind=each.blind,
                withdrawn=each.withdrawn,
            )

    def said(self, digest: str, reviewer: str) -> Said | None:
        """What a reviewer says of a case; None where he or she never said anything."""
        with self._lock:
            return self._said.get(digest, {}).get(reviewer)

    def labelled_by(self, digest: str) -> frozenset[str]:
        """Who has labelled a case."""
        with self._lock:
            own = self._said.get(digest, {})
            return frozenset(name for name, said in own.items() if not said.withdrawn)

    def give(
        self, case: Case, digest: str, reviewer: str, label: int | None, *, note: str, blind: bool
    ) -> None:
        """Keep a label; raises `OSError` where that fails, and nothing has changed then."""
        note = self._redact(storable(note.strip())[0])
        self._write(case, digest, reviewer, label, note=note, blind=blind)
        with self._lock:
            self._take(digest, reviewer, label, note=note, blind=blind)
            self._write_run_label(case, digest, reviewer)

    def withdraw(self, case: Case, digest: str, reviewer: str) -> None:
        """Take back what a reviewer said of a case."""
        self._write(case, digest, reviewer, None, withdrawn=True)
        with self._lock:
            self._take(digest, reviewer, None, withdrawn=True)
            self._write_run_label(case, digest, reviewer)

    def _take(
        self,
        digest: str,
        reviewer: str,
        label: int | None,
        *,
        note: str = "",
        blind: bool = False,
        withdrawn: bool = False,
    ) -> None:
        own = self._said.setdefault(digest, {})
        before = own.get(reviewer, Said())
        if withdrawn:
            own[reviewer] = Said(withdrawn=True)
        elif blind:
            own[reviewer] = Said(label, label, is_blind=True, note=note)
        else:
            own[reviewer] = replace(before, label=label, note=note, withdrawn=False)

    def _write(
        self,
        case: Case,
        digest: str,
        reviewer: str,
        label: int | None,
        *,
        note: str = "",
        blind: bool = False,
        withdrawn: bool = False,
    ) -> None:
        line: dict[str, Any] = {
            "case_digest": digest,
            "reviewer": reviewer,
            "label": label,
            "blind": blind,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        if note:
            line["note"] = note
        if withdrawn:
            line["withdrawn"] = True
        if case.outcome.no_case is not None:
            # No other file that reports read has this case.
            line |= {"expected": case.expected, "verification": "rejected"}
        text = encoded(json.dumps(line, ensure_ascii=False))
        self._files[self._folder(case)].append(text)

    def _write_run_label(self, case: Case, digest: str, reviewer: str) -> None:
        """Bring the file of a natural run's labels up to date: with the blind one, or none."""
        if not KINDS[case.spec.test].natural:
            return
        path = labels_path(self._folder(case)).with_name(RUN_LABELS)
        key = (case.spec.run_id, case.spec.epoch, case.spec.rubric_id, reviewer)
        rows = _rows(path) if path.exists() else self._run_rows[path]
        row = rows.pop(key, dict(zip(_KEY, key, strict=True)))
        said = self._said[digest][reviewer]
        if said.is_blind and said.blind is not None:
            rows[key] = {**row, "label": said.blind}
        lines = (json.dumps(rows[each], ensure_ascii=False) for each in sorted(rows, key=repr))
        atomic_write(path, "".join(f"{line}\n" for line in lines))
        self._run_rows[path] = rows

    def _folder(self, case: Case) -> Path:
        return self._folders[case.spec.suite, case.spec.test]


def _rows(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The lines of a file with labels of natural runs, with what people added to them.

    Raises `InputError` for lines that are none: they would be lost.
    """
    if not path.exists():
        return {}
    file = LabelFile(str(path))
    found = {}
    for line, row in read_objects(storable(read_text(path, str(path)))[0], file):
        key = tuple(row.get(name) for name in _KEY)
        if all(isinstance(each, str | int) for each in key):
            found[key] = row
        else:
            file.problem(f"must have {listed(_KEY)}", line)
    if file.problems:
        raise InputError(file.problems)
    return found


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True

"""The made cases of a session put together with those that are there: one JSONL and one summary for
each folder of a suite (rule H1).
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.artifacts.earlier import without_gone
from pytest_jrh.artifacts.outputs import cause
from pytest_jrh.artifacts.spools import (
    RecordEntry,
    RecordIndex,
    Spooled,
    merge,
    read_jsonl,
    read_spools,
    write_jsonl,
)
from pytest_jrh.errors import InputError
from pytest_jrh.models import MADE, UNSCORED, CaseResult, CaseSpec
from pytest_jrh.reporting.suite_files.cases_summary import perturbations_summary
from pytest_jrh.suite.ids import CASES_FILE, REJECTED_FILE, case_id
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.artifacts.earlier import SuiteCases
    from pytest_jrh.artifacts.outputs import Outputs
    from pytest_jrh.suite.suite import Suite

SUMMARY_NAME = "agent_perturbations_summary.json"


class Item(NamedTuple):
    """A case of the suite's files; `kept` is a result of an earlier session."""

    spec: CaseSpec
    made_id: str
    result: CaseResult | None
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Assembled:
    """The records of each folder, and the ids of the cases that were made in this session.

    `keep_spools` says that some of them are in the spools alone. `rejected` are the cases without a
    result because the verifier rejected them.
    """

    indexes: Mapping[Path, RecordIndex]
    made: frozenset[str]
    keep_spools: bool
    rejected: RecordIndex


class Assembler:
    """Brings the JSONL of each folder up to date.

    `frozen` is the index of a frozen suite's file where it has been read already. With `cases`, a
    session of all of them drops the records of cases that are gone.
    """

    def __init__(
        self,
        suite: Suite,
        outputs: Outputs,
        *,
        frozen: RecordIndex | None = None,
        cases: SuiteCases | None = None,
    ) -> None:
        self._suite = suite
        self._outputs = outputs
        self._frozen = frozen
        self._cases = cases
        self._made: set[str] = set()
        self._refused: dict[str, RecordEntry] = {}
        self._keep_spools = False

    def assemble(self, items: Sequence[Item], spools: Sequence[Path]) -> Assembled:
        """Merge the session's spools into the folders that its items belong to."""
        folders = {test.name: test.output_dir for test in self._suite.tests}
        by_folder: dict[Path, list[Item]] = {folder: [] for folder in folders.values()}
        for item in items:
            by_folder[folders[item.spec.test]].append(item)
        whole = self._is_whole(items)
        indexes = {
            folder: self._folder(folder, spools, own, whole=whole)
            for folder, own in by_folder.items()
        }
        return Assembled(
            indexes, frozenset(self._made), self._keep_spools, RecordIndex(self._refused)
        )

    def _is_whole(self, items: Sequence[Item]) -> bool:
        """Whether each case of the suite has a result of this session."""
        ran = {case_id(item.spec) for item in items if item.result is not None}
        return self._cases is not None and self._cases.specs.keys() <= ran

    def _folder(
        self, folder: Path, spools: Sequence[Path], items: Sequence[Item], *, whole: bool
    ) -> RecordIndex:
        made, rejected = self._spooled(spools, items)
        target = self._suite.replay.frozen or folder / CASES_FILE
        ran = {item.made_id: item.result for item in items if item.result is not None}
        refused = {name for name, result in ran.items() if result.rejected is not None}
        now = {name: entry for name, entry in rejected.entries.items() if name in refused}
        if self._suite.output.write_jsonl and self._suite.replay.frozen is None:
            now = dict(self._rejected(folder / REJECTED_FILE, rejected, now, ran, whole=whole))
        self._refused |= {name: entry for name, entry in now.items() if name in refused}
        dropped = frozenset(name for name, result in ran.items() if result.outcome == "no_case")
        try:
            before = self._without_gone(
                self._frozen or read_jsonl(target, made), target, whole=whole
            )
            overwrite = self._suite.generation.overwrite
            index = merge(before, made, dropped=dropped, overwrite=overwrite)
        except (OSError, InputError) as error:
            self._outputs.problem(
                f"{target} cannot be read, so nothing was written to it:\n{cause(error)}"
            )
            self._keep_spools = self._keep_spools or bool(made.entries)
            return made
        if self._suite.output.write_jsonl and self._suite.replay.frozen is None:
            return self._write(target, index, made)
        return index

    def _rejected(
        self,
        target: Path,
        rejected: RecordIndex,
        now: Mapping[str, RecordEntry],
        ran: Mapping[str, CaseResult],
        *,
        whole: bool,
    ) -> Mapping[str, RecordEntry]:
        """Bring the file of the cases that the verifier rejected up to date, `now` those of this
        session; gives where they all lie.
        """
        settled = {
            name
            for name, result in ran.items()
            if result.outcome in (*MADE, "no_case") and result.rejected is None
        }
        try:
            before = self._without_gone(
                read_jsonl(target, rejected, rejected=True), target, whole=whole
            )
            index = merge(before, RecordIndex(now), dropped=frozenset(settled), overwrite=True)
        except (OSError, InputError) as error:
            self._outputs.problem(
                f"{target} cannot be read, so nothing was written to it:\n{cause(error)}"
            )
            self._keep_spools = self._keep_spools or bool(now)
            return now
        return self._write(target, index, RecordIndex(now)).entries

    def _spooled(self, spools: Sequence[Path], items: Iterable[Item]) -> Spooled:
        """The cases of a folder that this session has made, and those that were rejected."""
        found = Spooled(RecordIndex(), RecordIndex())
        try:
            found = read_spools(spools, frozenset(item.made_id for item in items))
        except OSError as error:
            self._outputs.problem(f"The cases made in this session cannot be read: {cause(error)}.")
            self._keep_spools = True
        if found.made.torn:
            self._outputs.problems.append(
                f"Skipped {found.made.torn} unfinished line(s) of a killed process in a spool."
            )
        self._made |= found.made.entries.keys()
        return found

    def _without_gone(self, before: RecordIndex, target: Path, *, whole: bool) -> RecordIndex:
        suite = self._suite
        if self._cases is None or not whole:
            return before
        if suite.replay.frozen is not None or not suite.generation.overwrite:
            return before
        left = without_gone(suite, self._cases, before)
        if gone := len(before.entries) - len(left.entries):
            many = counted(gone, "record")
            self._outputs.problems.append(
                f"{many} of cases that are no longer in the suite dropped from {target}."
            )
        return left

    def _write(self, target: Path, index: RecordIndex, made: RecordIndex) -> RecordIndex:
        try:
            index = write_jsonl(target, index)
        except OSError as error:
            self._outputs.problem(f"{target} was not written: {cause(error)}.")
            self._keep_spools = self._keep_spools or bool(made.entries)
            return index
        if target.exists():
            self._outputs.paths.append(target)
        return index


def write_summaries(
    suite: Suite, items: Sequence[Item], assembled: Assembled, outputs: Outputs
) -> None:
    """Count the cases of each folder, and why others are none."""
    if suite.replay.frozen is not None:
        return
    # Of the judges of a case, this session's results count before those of earlier ones.
    ordered = sorted(items, key=lambda item: not item.kept)
    for folder, index in assembled.indexes.items():
        tests = {test.name for test in suite.tests if test.output_dir == folder}
        ran = {
            item.made_id: item.result
            for item in ordered
            if item.spec.test in tests and item.result is not None and not item.spec.variant
        }
        results = [
            result
            for made_id, result in ran.items()
            if made_id not in assembled.made or result.outcome not in UNSCORED
        ]
        path = folder / SUMMARY_NAME
        summary = perturbations_summary(_previous(path), index, results)
        outputs.write_json(path, summary, sort=True)


def _previous(path: Path) -> Mapping[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        previous = json.loads(path.read_text("utf-8"))
        if isinstance(previous, dict):
            return previous
    return {}

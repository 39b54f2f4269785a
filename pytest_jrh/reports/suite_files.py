"""The made cases that a suite leaves on disk at the end of a session, written by the controller
alone: put together with those that are there, one JSONL for each folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import CASES_FILE, REJECTED_FILE, case_id, generation_id
from pytest_jrh.core.model import MADE, CaseResult, CaseSpec
from pytest_jrh.core.text import counted
from pytest_jrh.store.outputs import Outputs, cause
from pytest_jrh.store.reuse import without_gone
from pytest_jrh.store.spools import (
    RecordEntry,
    RecordIndex,
    Spooled,
    merge,
    read_jsonl,
    read_spools,
    write_jsonl,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case
    from pytest_jrh.store.reuse import SuiteCases


class Item(NamedTuple):
    """A case of the suite's files; `kept` is a result of an earlier session."""

    spec: CaseSpec
    made_id: str
    result: CaseResult | None
    kept: bool = False


class Assembler:
    """Brings the JSONL of each folder up to date.

    `frozen` is the index of a frozen suite's file where it has been read already. With `cases`, a
    session of all of them drops the records of cases that are gone.

    `indexes` are then the records of each folder, and `made` the ids of the cases that were made in
    this session. `rejected` are the cases without a result because the verifier rejected them.
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
        self._folders = {test.name: test.output_dir for test in suite.tests}
        # Whether each case of the suite has a result of this session.
        self._is_whole = False
        self.indexes: dict[Path, RecordIndex] = {}
        self.made: set[str] = set()
        self.rejected: dict[str, RecordEntry] = {}

    def assemble(self, items: Sequence[Item], spools: Sequence[Path]) -> None:
        """Merge the session's spools into the folders that its items belong to."""
        by_folder: dict[Path, list[Item]] = {folder: [] for folder in self._folders.values()}
        for item in items:
            by_folder[self._folders[item.spec.test]].append(item)
        if self._cases is not None:
            ran = {case_id(item.spec) for item in items if item.result is not None}
            self._is_whole = self._cases.specs.keys() <= ran
        for folder, folder_items in by_folder.items():
            self.indexes[folder] = self._folder(folder, spools, folder_items)

    def read(self, spec: CaseSpec) -> Case | None:
        """Read the case of a spec as its record has it; None where there is none."""
        return self.indexes[self._folders[spec.test]].read(generation_id(spec))

    def is_of_run(self, made_id: str, items: Sequence[Item]) -> bool:
        """Whether a record of the case is that of this run: an older one that this run failed to
        make again is not.
        """
        if made_id in self.made:
            return True
        outcomes = outcomes_of(items)
        reused = self._suite.frozen is not None or not self._suite.config.rand.renew
        return bool(outcomes) and (reused or not outcomes.isdisjoint(MADE))

    def entry(self, made_id: str, items: Sequence[Item]) -> RecordEntry | None:
        """Where the record of a case of this run lies."""
        if not self.is_of_run(made_id, items):
            return None
        return self.indexes[self._folders[items[0].spec.test]].entries.get(made_id)

    def _folder(self, folder: Path, spools: Sequence[Path], items: Sequence[Item]) -> RecordIndex:
        made, rejected = self._spooled(spools, items)
        ran = {item.made_id: item.result for item in items if item.result is not None}
        is_written = self._suite.config.rand.write_jsonl and self._suite.frozen is None
        refused = {name for name, result in ran.items() if result.extra.rejected is not None}
        entries = {name: entry for name, entry in rejected.entries.items() if name in refused}
        if is_written:
            entries = self._rejected(folder / REJECTED_FILE, entries, ran)
        self.rejected |= {name: entry for name, entry in entries.items() if name in refused}
        target = self._suite.frozen or folder / CASES_FILE
        gone = ("no_case", "unlabelled")
        dropped = frozenset(name for name, result in ran.items() if result.outcome in gone)
        index = self._merged(target, made, dropped)
        if index is None:
            return made
        return self._write(target, index) if is_written else index

    def _rejected(
        self, target: Path, entries: dict[str, RecordEntry], ran: Mapping[str, CaseResult]
    ) -> dict[str, RecordEntry]:
        """Bring the file of the cases that the verifier rejected up to date, `entries` those of
        this session; gives where they all lie.
        """
        settled = set()
        for name, result in ran.items():
            if result.outcome in (*MADE, "no_case") and result.extra.rejected is None:
                settled.add(name)
        made = RecordIndex(entries)
        index = self._merged(target, made, frozenset(settled), rejected=True)
        return entries if index is None else dict(self._write(target, index).entries)

    def _merged(
        self,
        target: Path,
        made: RecordIndex,
        dropped: frozenset[str],
        *,
        rejected: bool = False,
    ) -> RecordIndex | None:
        """The records of a file, with those that were made; None where they cannot be read."""
        overwrite = rejected or self._suite.config.rand.renew
        try:
            records = self._frozen or read_jsonl(target)
            before = self._without_gone(records, target)
            return merge(before, made, dropped=dropped, overwrite=overwrite)
        except (OSError, InputError) as error:
            self._outputs.problem(
                f"{target} cannot be read, so nothing was written to it:\n{cause(error)}"
            )
            return None

    def _spooled(self, spools: Sequence[Path], items: Iterable[Item]) -> Spooled:
        """The cases of a folder that this session has made, and those that were rejected."""
        spooled = Spooled(RecordIndex(), RecordIndex())
        made_ids = frozenset(item.made_id for item in items)
        try:
            spooled = read_spools(spools, made_ids)
        except (OSError, InputError) as error:
            self._outputs.problem(f"The cases made in this session cannot be read: {cause(error)}.")
        self.made |= spooled.made.entries.keys()
        return spooled

    def _without_gone(self, before: RecordIndex, target: Path) -> RecordIndex:
        suite = self._suite
        if self._cases is None or not self._is_whole:
            return before
        if suite.frozen is not None or not suite.config.rand.renew:
            return before
        remaining = without_gone(suite, self._cases, before)
        if gone := len(before.entries) - len(remaining.entries):
            records = counted(gone, "record")
            self._outputs.problems.append(
                f"{records} of cases that are no longer in the suite dropped from {target}."
            )
        return remaining

    def _write(self, target: Path, index: RecordIndex) -> RecordIndex:
        try:
            index = write_jsonl(target, index)
        except OSError as error:
            self._outputs.problem(f"{target} was not written: {cause(error)}.")
            return index
        self._outputs.record_files[target] = index
        if target.exists():
            self._outputs.paths.append(target)
        return index


def outcomes_of(items: Iterable[Item]) -> set[str]:
    """What came of a case, under each of its judges."""
    return {item.result.outcome for item in items if item.result is not None}

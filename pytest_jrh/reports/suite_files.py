"""The made cases that a suite leaves on disk at the end of a session, written by the controller
alone: put together with those that are there, one JSONL for each folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import CASES_FILE, REJECTED_FILE, generation_id
from pytest_jrh.core.model import MADE
from pytest_jrh.core.text import counted
from pytest_jrh.stats.panels import by_made_case
from pytest_jrh.store.outputs import Outputs, cause
from pytest_jrh.store.reuse import without_gone
from pytest_jrh.store.spools import (
    RecordIndex,
    Spooled,
    merge,
    read_jsonl,
    read_spools,
    write_jsonl,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Set
    from pathlib import Path

    from pytest_jrh.core.model import Case, CaseResult, CaseSpec
    from pytest_jrh.reports.session import SuiteRun
    from pytest_jrh.store.spools import RecordEntry


class MadeCases:
    """The made cases of a suite, of which `write` brings the files up to date.

    `folders` has all records of each folder then, `made` those of this session, and `rejected`
    those without a result because the verifier rejected them.
    """

    def __init__(self, run: SuiteRun, outputs: Outputs) -> None:
        self._run = run
        self._outputs = outputs
        self._folder_of = {test.name: test.output_dir for test in run.suite.tests}
        rand = run.suite.config.rand
        self._renew = rand.renew
        self._is_written = rand.write_jsonl and run.suite.frozen is None
        self._is_whole = False
        self.folders: dict[Path, RecordIndex] = {}
        self.made: Mapping[str, RecordEntry] = {}
        self.rejected: dict[str, RecordEntry] = {}

    def index(self, spec: CaseSpec) -> RecordIndex:
        """All records of the folder that a case belongs to."""
        return self.folders[self._folder_of[spec.test]]

    def read(self, spec: CaseSpec) -> Case | None:
        """Read the case of a spec as its record has it; None where there is none."""
        return self.index(spec).read(generation_id(spec))

    def write(self, ran: Mapping[str, CaseResult]) -> None:
        """Add the cases that this session has made, and take out those that it found to be none;
        `ran` are its results by case id.
        """
        run = self._run
        self._is_whole = run.cases is not None and run.cases.specs.keys() <= ran.keys()
        spooled = Spooled(RecordIndex(), RecordIndex())
        try:
            spooled = read_spools(run.spools, frozenset(map(generation_id, run.specs)))
        except (OSError, InputError) as error:
            self._outputs.problem(f"The cases made in this session cannot be read: {cause(error)}.")
        self.made = spooled.made.entries
        refused, settled, gone = set(), set(), set()
        for made_id, [*_, result] in by_made_case(ran.values()).items():
            if result.extra.rejected is not None:
                refused.add(made_id)
            elif result.outcome in (*MADE, "no_case"):
                settled.add(made_id)
            if result.outcome in ("no_case", "unlabelled"):
                gone.add(made_id)
        for folder in dict.fromkeys(self._folder_of.values()):
            made = self._of_folder(folder, spooled.made.entries)
            rejected = self._of_folder(folder, spooled.rejected.entries, refused)
            if self._is_written:
                path = folder / REJECTED_FILE
                rejected = self._updated(path, rejected, settled, overwrite=True)
            self.rejected |= self._of_folder(folder, rejected.entries, refused).entries
            target = run.suite.frozen or folder / CASES_FILE
            self.folders[folder] = self._updated(target, made, gone, overwrite=self._renew)

    def _of_folder(
        self, folder: Path, entries: Mapping[str, RecordEntry], picked: Set[str] | None = None
    ) -> RecordIndex:
        """The records of a folder's tests, of those that are picked."""
        of_folder = {}
        for made_id, entry in entries.items():
            is_here = self._folder_of.get(entry.spec.test) == folder
            if is_here and (picked is None or made_id in picked):
                of_folder[made_id] = entry
        return RecordIndex(of_folder)

    def _updated(
        self, target: Path, new: RecordIndex, dropped: Set[str], *, overwrite: bool
    ) -> RecordIndex:
        """Put new records into a file, and give where all of its records lie then; the new ones
        alone where it cannot be read.

        A session of all cases drops the records of cases that are gone. The file of a frozen suite
        stays as it is.
        """
        run, outputs = self._run, self._outputs
        try:
            before = remaining = run.frozen or read_jsonl(target)
        except (OSError, InputError) as error:
            outputs.problem(
                f"{target} cannot be read, so nothing was written to it:\n{cause(error)}"
            )
            return new
        if run.cases is not None and self._is_whole and self._renew and run.suite.frozen is None:
            remaining = without_gone(run.suite, run.cases, before)
        if number := len(before.entries) - len(remaining.entries):
            records = counted(number, "record")
            outputs.problems.append(
                f"{records} of cases that are no longer in the suite dropped from {target}."
            )
        index = merge(remaining, new, dropped=frozenset(dropped), overwrite=overwrite)
        if not self._is_written:
            return index
        try:
            index = write_jsonl(target, index)
        except OSError as error:
            outputs.problem(f"{target} was not written: {cause(error)}.")
            return index
        outputs.record_files[target] = index
        if target.exists():
            outputs.paths.append(target)
        return index

"""What a suite leaves on disk at the end of a session, written by the controller alone.

The made cases of the session are put together with those that are there: one JSONL and one summary
for each folder. Rows of tables and debug bundles are written in one pass that reads each record
once.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import CASES_FILE, REJECTED_FILE, case_id, generation_id
from pytest_jrh.core.model import MADE, UNSCORED, CaseResult, CaseSpec
from pytest_jrh.core.redact import without_credentials
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.core.transcript import render_transcript, storable
from pytest_jrh.reports.report import MadeCase, SuiteMaterial
from pytest_jrh.reports.writing import REPORTS
from pytest_jrh.stats.panels import panels
from pytest_jrh.store.ledger import in_file, ledger_line, ledger_path
from pytest_jrh.store.outputs import Outputs, cause, debug_paths, write_debug
from pytest_jrh.store.records import json_value
from pytest_jrh.store.results import earlier_results, without_gone
from pytest_jrh.store.spools import (
    RecordEntry,
    RecordIndex,
    Spooled,
    merge,
    read_jsonl,
    read_spools,
    write_jsonl,
)
from pytest_jrh.store.tables import Sink, table_format

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case
    from pytest_jrh.core.redact import Redactor
    from pytest_jrh.reports.session import SuiteRun
    from pytest_jrh.stats.decision import Decision
    from pytest_jrh.store.results import SuiteCases
    from pytest_jrh.store.spools import ReadCase


_LONGEST_REASON = 200


def perturbations_summary(
    previous: Mapping[str, Any], index: RecordIndex, results: Iterable[CaseResult]
) -> dict[str, Any]:
    """Count the cases in a folder per suite, test and rubric.

    `cases`, `verified` and `human_reviewed` count the records that are there; `no_case` (with
    reasons) and `unscored` (by outcome) are those of the last run that asked for a rubric, so other
    suites' and deselected rubrics' are taken over from the `previous` summary. `results` holds one
    result per generated case, and no `unscored` one whose case was made.
    """
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for entry in index.entries.values():
        spec = entry.spec
        group = groups.setdefault((spec.suite, spec.test, spec.rubric_id), _no_cases())
        group["cases"] += 1
        group["verified"] += entry.verified
        group["human_reviewed"] += entry.human_reviewed
    asked: set[tuple[str, str, str]] = set()
    for result in results:
        key = (result.spec.suite, result.spec.test, result.spec.rubric_id)
        asked.add(key)
        group = groups.setdefault(key, _no_cases())
        if result.outcome == "no_case":
            group["no_case"] += 1
            reasons = group["no_case_reasons"]
            reason = shortened(one_line(result.why.text), _LONGEST_REASON) or "no reason given"
            reasons[reason] = reasons.get(reason, 0) + 1
        elif result.outcome in UNSCORED:
            group["unscored"][result.outcome] = group["unscored"].get(result.outcome, 0) + 1
    for key, old in _groups_of(previous):
        if key not in asked:
            group = groups.setdefault(key, _no_cases())
            for name in ("no_case", "no_case_reasons", "unscored"):
                group[name] = old[name]
    suites: dict[str, Any] = {}
    for (suite, test, rubric), group in groups.items():
        suites.setdefault(suite, {}).setdefault(test, {})[rubric] = group
    return {"format": 1, "records_of_other_tools": len(index.foreign), "suites": suites}


def _no_cases() -> dict[str, Any]:
    return {
        "cases": 0,
        "verified": 0,
        "human_reviewed": 0,
        "no_case": 0,
        "no_case_reasons": {},
        "unscored": {},
    }


def _groups_of(
    summary: Mapping[str, Any],
) -> Iterable[tuple[tuple[str, str, str], Mapping[str, Any]]]:
    for suite, tests in summary.get("suites", {}).items():
        for test, rubrics in tests.items():
            for rubric, group in rubrics.items():
                yield (suite, test, rubric), group


SUMMARY_NAME = "agent_perturbations_summary.json"


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
    this session; `keep_spools` says that some of them are in the spools alone. `rejected` are the
    cases without a result because the verifier rejected them. `written` has all records of each
    file that was written, those of other suites too.
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
        # Whether each case of the suite has a result of this session.
        self._is_whole = False
        self.indexes: dict[Path, RecordIndex] = {}
        self.made: set[str] = set()
        self.rejected: dict[str, RecordEntry] = {}
        self.written: dict[Path, RecordIndex] = {}
        self.keep_spools = False

    def assemble(self, items: Sequence[Item], spools: Sequence[Path]) -> None:
        """Merge the session's spools into the folders that its items belong to."""
        folders = {test.name: test.output_dir for test in self._suite.tests}
        by_folder: dict[Path, list[Item]] = {folder: [] for folder in folders.values()}
        for item in items:
            by_folder[folders[item.spec.test]].append(item)
        if self._cases is not None:
            ran = {case_id(item.spec) for item in items if item.result is not None}
            self._is_whole = self._cases.specs.keys() <= ran
        for folder, folder_items in by_folder.items():
            self.indexes[folder] = self._folder(folder, spools, folder_items)

    def readers(self, stack: contextlib.ExitStack) -> dict[Path, ReadCase]:
        """What reads the cases of each folder, until the stack is closed."""
        readers = {}
        for folder, index in self.indexes.items():
            readers[folder] = stack.enter_context(index.reading())
        return readers

    def _folder(self, folder: Path, spools: Sequence[Path], items: Sequence[Item]) -> RecordIndex:
        made, rejected = self._spooled(spools, items)
        ran = {item.made_id: item.result for item in items if item.result is not None}
        is_written = self._suite.generation.output.write_jsonl and self._suite.frozen is None
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
        return self._write(target, index, made) if is_written else index

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
        return entries if index is None else dict(self._write(target, index, made).entries)

    def _merged(
        self,
        target: Path,
        made: RecordIndex,
        dropped: frozenset[str],
        *,
        rejected: bool = False,
    ) -> RecordIndex | None:
        """The records of a file, with those that were made; None where they cannot be read."""
        overwrite = rejected or self._suite.generation.output.overwrite
        try:
            records = self._frozen or read_jsonl(target)
            before = self._without_gone(records, target)
            return merge(before, made, dropped=dropped, overwrite=overwrite)
        except (OSError, InputError) as error:
            self._outputs.problem(
                f"{target} cannot be read, so nothing was written to it:\n{cause(error)}"
            )
            self.keep_spools = self.keep_spools or bool(made.entries)
            return None

    def _spooled(self, spools: Sequence[Path], items: Iterable[Item]) -> Spooled:
        """The cases of a folder that this session has made, and those that were rejected."""
        spooled = Spooled(RecordIndex(), RecordIndex())
        made_ids = frozenset(item.made_id for item in items)
        try:
            spooled = read_spools(spools, made_ids)
        except (OSError, InputError) as error:
            self._outputs.problem(f"The cases made in this session cannot be read: {cause(error)}.")
            self.keep_spools = True
        if spooled.made.torn:
            self._outputs.problems.append(
                f"Skipped {spooled.made.torn} unfinished line(s) of a killed process in a spool."
            )
        self.made |= spooled.made.entries.keys()
        return spooled

    def _without_gone(self, before: RecordIndex, target: Path) -> RecordIndex:
        suite = self._suite
        if self._cases is None or not self._is_whole:
            return before
        if suite.frozen is not None or not suite.generation.output.overwrite:
            return before
        remaining = without_gone(suite, self._cases, before)
        if gone := len(before.entries) - len(remaining.entries):
            records = counted(gone, "record")
            self._outputs.problems.append(
                f"{records} of cases that are no longer in the suite dropped from {target}."
            )
        return remaining

    def _write(self, target: Path, index: RecordIndex, made: RecordIndex) -> RecordIndex:
        try:
            index = write_jsonl(target, index)
        except OSError as error:
            self._outputs.problem(f"{target} was not written: {cause(error)}.")
            self.keep_spools = self.keep_spools or bool(made.entries)
            return index
        self.written[target] = index
        if target.exists():
            self._outputs.paths.append(target)
        return index


def write_summaries(
    suite: Suite, items: Sequence[Item], assembled: Assembler, outputs: Outputs
) -> None:
    """Count the cases of each folder, and why others are none."""
    if suite.frozen is not None:
        return
    # Of the judges of a case, this session's results count before those of earlier ones.
    ordered = sorted(items, key=lambda item: not item.kept)
    for folder, index in assembled.indexes.items():
        tests = {test.name for test in suite.tests if test.output_dir == folder}
        ran = {}
        for item in ordered:
            if item.spec.test in tests and item.result is not None and not item.spec.variant:
                ran[item.made_id] = item.result
        results = []
        for made_id, result in ran.items():
            if made_id not in assembled.made or result.outcome not in UNSCORED:
                results.append(result)
        path = folder / SUMMARY_NAME
        summary = perturbations_summary(_previous(path), index, results)
        outputs.write_json(path, summary, sort=True)


def _previous(path: Path) -> Mapping[str, Any]:
    """The summary that is there, if it is one of ours."""
    with contextlib.suppress(OSError, ValueError):
        previous = json.loads(path.read_text("utf-8"))
        if isinstance(previous, dict) and previous.get("format") == 1:
            return previous
    return {}


class CaseFiles:
    """Writes the files of a suite's cases, without keeping a record."""

    def __init__(self, suite: Suite, assembled: Assembler, outputs: Outputs) -> None:
        self._suite = suite
        self._assembled = assembled
        self._outputs = outputs
        self._folders = {test.name: test.output_dir for test in suite.tests}
        # The bundles that could not be written.
        self._unwritten: list[str] = []

    def write(self, items: Sequence[Item], material: SuiteMaterial) -> dict[str, RecordEntry]:
        """Write tables and debug bundles; gives where the records of the cases lie, by the ids of
        their making.
        """
        if notice := table_format(self._suite.table_format)[1]:
            self._outputs.problems.append(notice)
        by_case: dict[str, list[Item]] = {}
        for item in items:
            by_case.setdefault(item.made_id, []).append(item)
        entries: dict[str, RecordEntry] = {}
        with contextlib.ExitStack() as stack:
            sinks = []
            for report in REPORTS:
                for table in report.tables(material):
                    sink = stack.enter_context(Sink(table.path, table.columns, self._outputs))
                    sinks.append((table, sink))
            readers = self._assembled.readers(stack)
            for made_id, case_items in by_case.items():
                spec = case_items[0].spec
                folder = self._folders[spec.test]
                case = self._read(made_id, case_items, readers[folder])
                if case is not None:
                    entries[made_id] = self._assembled.indexes[folder].entries[made_id]
                    self._write_bundle(case_items, folder, case)
                made = MadeCase(
                    spec=spec,
                    case=case,
                    transcript=None if case is None else render_transcript(case.messages),
                    results=[item.result for item in case_items if item.result is not None],
                )
                for table, sink in sinks:
                    for row in table.rows(made):
                        sink(row)
        if self._unwritten:
            bundles = counted(len(self._unwritten), "debug bundle")
            self._outputs.problem(
                f"{bundles} could not be written, the first of them {self._unwritten[0]}."
            )
        return entries

    def _write_bundle(self, items: Sequence[Item], folder: Path, case: Case) -> None:
        """Write the debug bundle of a case, where there is anything to look at."""
        if not _is_looked_at(case, items):
            return
        paths = debug_paths(folder, items[0].spec)
        try:
            self._outputs.paths += write_debug(case, paths)
        except OSError as error:
            self._unwritten.append(f"{paths.of(case)[0]}: {cause(error)}")

    def _read(self, made_id: str, items: Sequence[Item], read: ReadCase) -> Case | None:
        """Read the record of a case of this run.

        An older one that this run failed to make again is not its.
        """
        made_now = made_id in self._assembled.made
        outcomes = {item.result.outcome for item in items if item.result is not None}
        made_case = None
        if made_now or self._is_ours(outcomes):
            made_case = self._usable(made_id, read, made_now=made_now)
        if made_case is None and outcomes & set(MADE) and not items[0].spec.variant:
            # Its spool could not be written, and the session has said so.
            self._outputs.failed = True
        return made_case

    def _is_ours(self, outcomes: Collection[str]) -> bool:
        """Whether a record that was not made now is that of a case with these outcomes."""
        reused = self._suite.frozen is not None or not self._suite.generation.output.overwrite
        return bool(outcomes) and (reused or not set(MADE).isdisjoint(outcomes))

    def _usable(self, made_id: str, read: ReadCase, *, made_now: bool) -> Case | None:
        try:
            case = read(made_id)
        except OSError as error:
            self._outputs.problem(f"The record of {made_id} cannot be read: {cause(error)}.")
            return None
        except InputError as error:
            self._outputs.problem(f"The record of {made_id} cannot be used: {error}")
            return None
        # Spools hold no secrets; a record of another session may hold one that is a secret here.
        cleaned: Case | None = case if made_now else self._outputs.redactor.value(case)
        return cleaned


def _is_looked_at(case: Case, items: Iterable[Item]) -> bool:
    """Whether this session has anything to look at in a case: an edit, or a wrong verdict."""
    for item in items:
        is_wrong = item.result is not None and item.result.outcome == "disagree"
        if not item.kept and (case.outcome.edits or is_wrong):
            return True
    return False


CONFIG_NAME = "config_resolved.yml"


@dataclass(frozen=True, slots=True)
class Written:
    """What `write_suite_outputs` did: files that are there now, and what went wrong, as sentences.

    `keep_spools` says that some made cases are in the spools alone, which must then not be deleted.
    `records` says where the cases of this session lie, rejected ones too, for reports to read;
    without a JSONL that is in the spools. `record_files` has all records of each file that was
    written, those of other suites too. `failed` says that something is missing on the disk that
    should be there.
    """

    paths: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    keep_spools: bool = False
    records: RecordIndex = field(default_factory=RecordIndex)
    record_files: Mapping[Path, RecordIndex] = field(default_factory=dict)
    failed: bool = False


def write_suite_outputs(
    run: SuiteRun,
    redactor: Redactor,
    decision: Decision | None = None,
    *,
    interrupted: bool = False,
) -> Written:
    """Write the cases, results and figures of one suite, streaming over the records.

    `decision` is what the gate says of the suite. A file that cannot be written becomes a sentence,
    and the others are written; files of unchanged content are not written again.
    """
    suite, cases = run.suite, run.cases
    latest = {result.case_id: result for result in run.results}
    items = []
    for spec in run.specs:
        items.append(Item(spec, generation_id(spec), latest.get(case_id(spec))))
    outputs = Outputs(redactor)
    assembled = Assembler(suite, outputs, frozen=run.frozen, cases=cases)
    assembled.assemble(items, run.spools)
    if cases is not None:
        items = _with_earlier(suite, cases, items, assembled, outputs)
    write_summaries(suite, items, assembled, outputs)
    material = _material(run, items, decision, interrupted=interrupted)
    entries = CaseFiles(suite, assembled, outputs).write(items, material)
    _write_reports(material, outputs)
    _write_results(suite, items, outputs)
    _write_config(suite, outputs)
    return Written(
        tuple(outputs.paths),
        tuple(outputs.problems),
        assembled.keep_spools,
        RecordIndex.joined([RecordIndex(entries), RecordIndex(assembled.rejected)]),
        assembled.written,
        outputs.failed,
    )


def _with_earlier(
    suite: Suite,
    cases: SuiteCases,
    items: Sequence[Item],
    assembled: Assembler,
    outputs: Outputs,
) -> list[Item]:
    """Add earlier results of cases that did not run, in the suite's order."""
    folders = {test.name: test.output_dir for test in suite.tests}
    items_by_case = {case_id(item.spec): item for item in items}
    ran = {}
    for case, item in items_by_case.items():
        if item.result is not None:
            ran[case] = item.result
    with contextlib.ExitStack() as stack:
        readers = assembled.readers(stack)

        def made_case(spec: CaseSpec) -> Case | None:
            return readers[folders[spec.test]](generation_id(spec))

        earlier: Mapping[str, CaseResult] = {}
        try:
            earlier, notes = earlier_results(suite, cases, ran, made_case)
            outputs.problems += notes
        except OSError as error:
            outputs.problem(
                "The results of earlier sessions cannot be used, and could not be moved aside: "
                f"{cause(error)}."
            )
    merged = dict(items_by_case)
    for case, result in earlier.items():
        spec = cases.specs[case]
        merged[case] = Item(spec, generation_id(spec), result, kept=True)
    return [merged[case] for case in cases.specs if case in merged]


def _material(
    run: SuiteRun, items: Sequence[Item], decision: Decision | None, *, interrupted: bool
) -> SuiteMaterial:
    results = [item.result for item in items if item.result is not None]
    earlier = sum(item.kept for item in items)
    ran = len(results) - earlier
    subset = {} if run.subset is None else {"subset": run.subset[0]}
    return SuiteMaterial(
        run,
        results,
        decision,
        next(iter(panels(results)), None),
        # The gate decided about the cases of this session alone.
        {
            "cases": ran,
            "kept": earlier,
            "of": ran if run.cases is None else len(run.cases.specs),
            "interrupted": interrupted,
            **subset,
            **_model_changes(run),
        },
    )


def _model_changes(run: SuiteRun) -> dict[str, Any]:
    """The models that answered as another version, as a key of the report; empty if none."""
    changes = [asdict(change) for change in run.model_changes]
    return {"model_changes": changes} if changes else {}


def _write_reports(material: SuiteMaterial, outputs: Outputs) -> None:
    for report in REPORTS:
        for path, value in report.documents(material):
            outputs.write_json(path, value)


def _write_results(suite: Suite, items: Sequence[Item], outputs: Outputs) -> None:
    lines = []
    for item in items:
        if item.result is not None:
            redactor = outputs.redactor
            lines.append(ledger_line(in_file(item.result, suite, kept=item.kept), redactor))
    outputs.write(ledger_path(suite), b"".join(lines))


def _write_config(suite: Suite, outputs: Outputs) -> None:
    resolved = without_credentials(json_value(suite.resolved), outputs.redactor)
    clean = storable(outputs.redactor.value(resolved))[0]
    text = yaml.safe_dump(clean, sort_keys=False, allow_unicode=True, width=100)
    outputs.write_state(suite.results_dir, CONFIG_NAME, text)

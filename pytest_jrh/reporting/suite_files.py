"""What a suite leaves on disk at the end of a session, written by the
controller alone (rules H).
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from pytest_jrh.artifacts.debug import debug_paths, write_debug
from pytest_jrh.artifacts.earlier import earlier_results, without_gone
from pytest_jrh.artifacts.records import canonical_json, from_record, json_value
from pytest_jrh.artifacts.sinks import Sink
from pytest_jrh.artifacts.spools import (
    Entry,
    ReadRecord,
    RecordIndex,
    merge,
    read_jsonl,
    read_spools,
    write_jsonl,
)
from pytest_jrh.artifacts.stored import RESULTS_NAME, stored_data
from pytest_jrh.artifacts.tables import (
    RESULT_COLUMNS,
    SYNTHETIC_COLUMNS,
    result_row,
    synthetic_row,
    table_format,
    transcript_of,
)
from pytest_jrh.errors import InputError
from pytest_jrh.files import atomic_write
from pytest_jrh.models import MADE, UNSCORED, CaseResult, CaseSpec
from pytest_jrh.redact import without_credentials
from pytest_jrh.reporting.summaries import judge_file_names, judge_report, perturbations_summary
from pytest_jrh.stages import EDITOR
from pytest_jrh.stats.panels import panels
from pytest_jrh.suite.cases import CASES_FILE, case_id, generation_id, perturbed_idx
from pytest_jrh.text import counted
from pytest_jrh.transcript import storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.artifacts.earlier import SuiteCases
    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.redact import Redactor
    from pytest_jrh.suite.suite import Suite

SUMMARY_NAME = "agent_perturbations_summary.json"
CONFIG_NAME = "config_resolved.yml"
SYNTHETIC_NAME = "synthetic_agent_perturbation"


@dataclass(frozen=True, slots=True)
class Written:
    """What `write_suite_outputs` did: files that are there now, and what went wrong, as sentences.

    `keep_spools` says that some made cases are in the spools alone, which must then not be deleted.
    `records` says where the cases of this session lie, for reports to read; without a JSONL that is
    in the spools. `failed` says that something is missing on the disk that should be there.
    """

    paths: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    keep_spools: bool = False
    records: RecordIndex = field(default_factory=RecordIndex)
    failed: bool = False


def write_suite_outputs(
    suite: Suite,
    specs: Sequence[CaseSpec],
    results: Iterable[CaseResult],
    spools: Sequence[Path],
    *,
    redactor: Redactor,
    decision: GateDecision | None = None,
    frozen: RecordIndex | None = None,
    cases: SuiteCases | None = None,
    interrupted: bool = False,
) -> Written:
    """Write everything of rules H1 and H2 for one suite, streaming over the records.

    `specs` are the selected cases in item order, `results` what came of those that ran (the last
    attempt of a case counts), `spools` the session's spool files, `decision` what the gate says of
    the suite, `frozen` the index of a frozen suite's file where it has been read already. With
    `cases`, results of the others are kept, and a session of all drops records of cases that are
    gone. A file that cannot be written becomes a sentence, and the others are written; files of
    unchanged content are not written again.
    """
    latest = {result.case_id: result for result in results}
    items = [_Item(spec, generation_id(spec), latest.get(case_id(spec))) for spec in specs]
    work = _Work(suite, items, redactor, frozen=frozen, cases=cases, interrupted=interrupted)
    indexes = work.assemble(spools)
    work.keep_earlier(indexes, latest)
    work.write_summaries(indexes)
    work.write_cases(indexes)
    work.write_reports(decision)
    return Written(
        tuple(work.paths),
        tuple(work.problems),
        work.keep_spools,
        RecordIndex(work.own),
        work.failed,
    )


class _Item(NamedTuple):
    spec: CaseSpec
    made_id: str
    result: CaseResult | None
    kept: bool = False


@dataclass
class _Work:
    suite: Suite
    items: Sequence[_Item]
    redactor: Redactor
    paths: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    keep_spools: bool = False
    failed: bool = False
    made: frozenset[str] = frozenset()
    as_kept: set[str] = field(default_factory=set)
    unbundled: list[str] = field(default_factory=list)
    own: dict[str, Entry] = field(default_factory=dict)
    times: dict[Path, int] = field(default_factory=dict)
    frozen: RecordIndex | None = None
    cases: SuiteCases | None = None
    interrupted: bool = False

    def assemble(self, spools: Sequence[Path]) -> dict[Path, RecordIndex]:
        """Bring every test's JSONL and its summary up to date, and index the records of each
        folder.
        """
        by_folder: dict[Path, list[_Item]] = {test.output_dir: [] for test in self.suite.tests}
        folders = {test.name: test.output_dir for test in self.suite.tests}
        for item in self.items:
            by_folder[folders[item.spec.test]].append(item)
        return {
            folder: self._assemble_folder(folder, spools, items)
            for folder, items in by_folder.items()
        }

    def _assemble_folder(
        self, folder: Path, spools: Sequence[Path], items: Sequence[_Item]
    ) -> RecordIndex:
        ran = {item.made_id: item.result for item in items if item.result is not None}
        made = RecordIndex()
        try:
            made = read_spools(spools, frozenset(item.made_id for item in items))
        except OSError as error:
            self.problem(f"The cases made in this session cannot be read: {_words(error)}.")
            self.keep_spools = True
        if made.torn:
            self.problems.append(
                f"Skipped {made.torn} unfinished line(s) that a killed process left in a spool."
            )
        self.made |= made.entries.keys()
        dropped = frozenset(name for name, result in ran.items() if result.outcome == "no_case")
        target = self.suite.replay.frozen or folder / CASES_FILE
        try:
            before = self.frozen or read_jsonl(target, made)
            if (
                self.cases is not None
                and self._whole()
                and self.suite.replay.frozen is None
                and self.suite.generation.overwrite
            ):
                there = len(before.entries)
                before = without_gone(self.suite, self.cases, before)
                if gone := there - len(before.entries):
                    many = counted(gone, "record")
                    self.problems.append(
                        f"{many} of cases that are no longer in the suite dropped from {target}."
                    )
            index = merge(before, made, dropped=dropped, overwrite=self.suite.generation.overwrite)
        except (OSError, InputError) as error:
            self.problem(f"{target} cannot be read, so nothing was written to it:\n{_words(error)}")
            self.keep_spools = self.keep_spools or bool(made.entries)
            return made
        if self.suite.output.write_jsonl and self.suite.replay.frozen is None:
            index = self._write_jsonl(target, index, made)
        return index

    def _whole(self) -> bool:
        """Whether each case of the suite has a result of this session."""
        ran = {
            case_id(item.spec) for item in self.items if item.result is not None and not item.kept
        }
        return self.cases is not None and self.cases.specs.keys() <= ran

    def keep_earlier(
        self, indexes: Mapping[Path, RecordIndex], ran: Mapping[str, CaseResult]
    ) -> None:
        """Put what earlier sessions found out about the other cases beside this one's results, in
        the suite's order.
        """
        if self.cases is None:
            return
        folders = {test.name: test.output_dir for test in self.suite.tests}
        with contextlib.ExitStack() as stack:
            readers = {
                folder: stack.enter_context(index.reading()) for folder, index in indexes.items()
            }
            earlier = earlier_results(
                self.suite,
                self.cases,
                ran,
                lambda spec: readers[folders[spec.test]](generation_id(spec)),
            )
        self.problems += earlier.notes
        own = {case_id(item.spec): item for item in self.items}
        others = {
            case: _Item(
                self.cases.specs[case], generation_id(self.cases.specs[case]), result, kept=True
            )
            for case, result in earlier.results.items()
        }
        merged = {**own, **others}
        self.items = [merged[case] for case in self.cases.specs if case in merged]

    def write_summaries(self, indexes: Mapping[Path, RecordIndex]) -> None:
        """Count the cases of each folder, and why others are none."""
        if self.suite.replay.frozen is not None:
            return
        for folder, index in indexes.items():
            tests = {test.name for test in self.suite.tests if test.output_dir == folder}
            own = [
                item for item in self.items if item.spec.test in tests and item.result is not None
            ]
            ran = {
                item.made_id: item.result for item in sorted(own, key=lambda item: not item.kept)
            }
            self._write_summary(
                folder / SUMMARY_NAME,
                index,
                {name: result for name, result in ran.items() if result},
            )

    def _write_jsonl(self, target: Path, index: RecordIndex, made: RecordIndex) -> RecordIndex:
        try:
            index = write_jsonl(target, index)
        except OSError as error:
            self.problem(f"{target} was not written: {_words(error)}.")
            self.keep_spools = self.keep_spools or bool(made.entries)
            return index
        if target.exists():
            self.paths.append(target)
        return index

    def _write_summary(self, path: Path, index: RecordIndex, ran: Mapping[str, CaseResult]) -> None:
        previous: Any = None
        with contextlib.suppress(OSError, ValueError):
            previous = json.loads(path.read_text("utf-8"))
        counted = [
            result
            for name, result in ran.items()
            if name not in self.made or result.outcome not in UNSCORED
        ]
        summary = perturbations_summary(
            previous if isinstance(previous, dict) else {}, index, counted
        )
        self._json(path, summary, sort=True)

    def write_cases(self, indexes: Mapping[Path, RecordIndex]) -> None:
        """Write tables and debug bundles, reading each record once and keeping none."""
        suffix, notice = table_format(self.suite.output.format)
        if notice:
            self.problems.append(notice)
        editor = self.suite.generation.stages.get(EDITOR.name)
        temperature = editor.temperature if editor is not None else None
        folders = {test.name: test.output_dir for test in self.suite.tests}
        evaluated = {test.name for test in self.suite.tests if test.evaluate}
        names = judge_file_names(self.suite)
        out = self.suite.output.dir
        groups: dict[str, list[_Item]] = {}
        for item in self.items:
            groups.setdefault(item.made_id, []).append(item)
        with contextlib.ExitStack() as stack:
            synthetic = stack.enter_context(
                Sink(out / f"{SYNTHETIC_NAME}.{suffix}", SYNTHETIC_COLUMNS, self)
            )
            sinks = {
                (test, judge): stack.enter_context(
                    Sink(out / f"{test}_results_{name}.{suffix}", RESULT_COLUMNS, self)
                )
                for test in sorted(evaluated)
                for judge, name in names.items()
            }
            readers = {
                folder: stack.enter_context(index.reading()) for folder, index in indexes.items()
            }
            for made_id, items in groups.items():
                spec = items[0].spec
                folder = folders[spec.test]
                record = self._record(made_id, items, readers[folder])
                if record is None and any(
                    item.result is not None and item.result.outcome in MADE for item in items
                ):
                    # Its spool could not be written, and the session has said so.
                    self.failed = True
                transcript = transcript_of(record) if record is not None else None
                if record is not None:
                    self.own[made_id] = indexes[folder].entries[made_id]
                    synthetic(synthetic_row(record, temperature=temperature, transcript=transcript))
                    if not all(item.kept for item in items):
                        self._debug(made_id, record, folder, spec)
                row_id = perturbed_idx(spec)
                for item in items:
                    sink = sinks.get((spec.test, item.spec.judge))
                    if item.result is not None and sink is not None:
                        sink(
                            result_row(
                                item.result, record, perturbed_idx=row_id, transcript=transcript
                            )
                        )

        if self.unbundled:
            many = counted(len(self.unbundled), "debug bundle")
            self.problem(f"{many} could not be written, the first of them {self.unbundled[0]}.")

    def _record(
        self, made_id: str, items: Sequence[_Item], read: ReadRecord
    ) -> Mapping[str, Any] | None:
        """Read the record of a case of this run.

        An older one that this run failed to make again is not its.
        """
        made_now = made_id in self.made
        reused = self.suite.replay.frozen is not None or not self.suite.generation.overwrite
        outcomes = {item.result.outcome for item in items if item.result is not None}
        if not made_now and not (outcomes and (reused or outcomes & set(MADE))):
            return None
        try:
            record = read(made_id)
            if record is not None and not made_now:
                from_record(record)
        except OSError as error:
            self.problem(f"The record of {made_id} cannot be read: {_words(error)}.")
            return None
        except InputError as error:
            self.problem(f"The record of {made_id} cannot be used: {error}")
            return None
        # Spools hold no secrets; a record of another session may hold one that is a secret here.
        if record is None:
            return None
        cleaned: Mapping[str, Any] = record if made_now else self.redactor.value(record)
        if cleaned == record:
            self.as_kept.add(made_id)
        return cleaned

    def _debug(self, made_id: str, record: Mapping[str, Any], folder: Path, spec: CaseSpec) -> None:
        if not record["perturbation"]["steps"]:
            return
        paths = debug_paths(folder, spec)
        try:
            # A replay makes the cases that are there already, and their file is then left as it is.
            if made_id in self.as_kept and paths.newer_than(self._written(self.own[made_id].path)):
                self.paths += paths.all()
            else:
                self.paths += write_debug(record, paths)
        except OSError as error:
            self.unbundled.append(f"{paths.audit}: {_words(error)}")

    def _written(self, path: Path) -> int:
        if path not in self.times:
            self.times[path] = path.stat().st_mtime_ns
        return self.times[path]

    def write_reports(self, decision: GateDecision | None) -> None:
        """Write each judge's report, and the config as it was resolved."""
        names = judge_file_names(self.suite)
        results = [(item.spec.judge, item.result) for item in self.items if item.result is not None]
        panel = next(iter(panels(result for _, result in results)), None)
        for judge in self.suite.judges:
            own = [
                result
                for name, result in results
                if name == judge.name and result.outcome != "generated"
            ]
            path = self.suite.output.dir / f"{names[judge.name]}_report.json"
            report = judge_report(
                self.suite, judge, own, decision=decision, panel=panel, session=self._session()
            )
            self._json(path, report, sort=False)
        stored = [(item.result, item.kept) for item in self.items if item.result is not None]
        key, clean = self.suite.key, self.redactor.value
        lines = [
            canonical_json(clean(stored_data(result, config=key, kept=kept)))
            for result, kept in stored
        ]
        self._write(self.suite.output.dir / RESULTS_NAME, "".join(f"{line}\n" for line in lines))
        resolved = storable(
            clean(without_credentials(json_value(self.suite.resolved), self.redactor))
        )[0]
        text = yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True, width=100)
        self._write(self.suite.output.dir / CONFIG_NAME, text)

    def _session(self) -> dict[str, Any]:
        """How many of the cases in the report this session has run.

        Its gate decided about those alone.
        """
        own = sum(item.result is not None and not item.kept for item in self.items)
        return {
            "cases": own,
            "kept": sum(item.kept for item in self.items),
            "of": own if self.cases is None else len(self.cases.specs),
            "interrupted": self.interrupted,
        }

    def _json(self, path: Path, value: Any, *, sort: bool) -> None:
        clean = self.redactor.value(json_value(value))
        self._write(
            path,
            json.dumps(clean, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=sort) + "\n",
        )

    def _write(self, path: Path, text: str) -> None:
        with self._reporting(f"{path} was not written"):
            atomic_write(path, text)
            self.paths.append(path)

    @contextlib.contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.problem(f"{what}: {_words(error)}.")

    def problem(self, sentence: str) -> None:
        self.failed = True
        self.problems.append(self.redactor.text(sentence))


def _words(error: OSError | InputError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)

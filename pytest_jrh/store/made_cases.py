"""Made cases on disk: spooled as they are made, indexed by place, merged into one file of JSON
lines; and what later sessions take of them, and of results.

An index holds where each record is, never the records, so memory does not grow with transcripts.

A case that the suite does not take would be missing from every figure without a word. So what the
config leaves out on purpose (`cases.kinds`, `cases.rubrics`, `cases.scores`) is left out, and
all else that does not fit is an error.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core import Fields, InputError, counted, frozen, listed, shown
from pytest_jrh.core.cases import MADE, Case, CaseSpec, Label, Review, Rubric, RunKey, Why
from pytest_jrh.core.files import FileLine, LineFiles, LinePlace, atomic_write, lines_of, replacing
from pytest_jrh.core.ids import CASES_FILE, REJECTED_FILE, case_id, generation_id
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import Mode, Objective, Said
from pytest_jrh.sources.source import clusters_by
from pytest_jrh.store.ledger import case_result, ledger_path, read_ledger
from pytest_jrh.store.records import (
    Record,
    case_digest,
    is_rands,
    json_value,
    read_case,
    read_record,
    reworded,
    stored_line,
    under,
)

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite, SuiteTest


class RecordEntry(NamedTuple):
    """Which case a record is of, without its texts, and where it lies."""

    place: LinePlace
    spec: CaseSpec
    expected: Said
    review: Review | None
    mode: Mode
    objective: Objective
    label: Label | None

    @classmethod
    def of(cls, record: Record, line: FileLine) -> RecordEntry:
        """The entry of a record that was read from a line."""
        return cls(line.place, *(getattr(record, name) for name in cls._fields[1:]))

    def case(self) -> Case:
        """Read the case; raises `InputError` where it cannot be used, and `OSError`."""
        return read_case(_bytes_at(self.place), self.place)


@frozen
class RecordIndex:
    """Places of records by case id; `foreign` are lines of RAND's harness, which have none."""

    entries: dict[str, RecordEntry] = field(default_factory=dict)
    foreign: Sequence[LinePlace] = ()

    def read(self, case_id: str) -> Case | None:
        """Read a case; None where there is none."""
        entry = self.entries.get(case_id)
        return None if entry is None else entry.case()


def _bytes_at(line_place: LinePlace) -> bytes:
    with line_place.path.open("rb") as file:
        file.seek(line_place.offset)
        return file.read(line_place.length)


def read_jsonl(path: Path) -> RecordIndex:
    """Index a JSONL file, each record checked by its schema; a missing file has no records.

    Raises `InputError` with file and line for the first line that is no usable record, or a second
    record of a case.
    """
    entries: dict[str, RecordEntry] = {}
    foreign = []
    for line in lines_of(path):
        try:
            record = read_record(line.data, line.place)
        except InputError:
            if not is_rands(line.data):
                raise
            foreign.append(line.place)
            continue
        if record.case_id in entries:
            first = entries[record.case_id].place.number
            raise InputError(
                f"case_id {record.case_id!r} is also in line {first}",
                path,
                line.number,
                hint=f"Remove line {first} or line {line.number}.",
            )
        entries[record.case_id] = RecordEntry.of(record, line)
    return RecordIndex(entries, foreign)


class Spooled(NamedTuple):
    """The cases in spool files: those that were made, and those that the verifier rejected."""

    made: RecordIndex
    rejected: RecordIndex


def read_spools(spools: Iterable[Path], selected: frozenset[str]) -> Spooled:
    """Index the selected cases in spool files, later ones winning; what a killed process left of a
    line is none.
    """
    spooled = Spooled(RecordIndex(), RecordIndex())
    for line in chain.from_iterable(map(lines_of, spools)):
        record = read_record(line.data, line.place) if line.is_ended else None
        if record is not None and record.case_id in selected:
            index = spooled.made if record.rejected is None else spooled.rejected
            index.entries[record.case_id] = RecordEntry.of(record, line)
    return spooled


def merge(
    existing: RecordIndex, new: RecordIndex, *, dropped: frozenset[str], overwrite: bool
) -> RecordIndex:
    """Say which records are to be there afterwards.

    `overwrite` replaces existing records by made ones and removes those of `dropped`; otherwise
    existing records stay as they are and missing ones are added; but what a person decided in this
    session counts. All others always stay.
    """
    entries = dict(existing.entries)
    for made_id, entry in new.entries.items():
        if overwrite or entry.review is not None:
            entries[made_id] = entry
        entries.setdefault(made_id, entry)
    for made_id in dropped if overwrite else ():
        entries.pop(made_id, None)
    return RecordIndex(entries, existing.foreign)


def write_jsonl(target: Path, index: RecordIndex) -> RecordIndex:
    """Write the indexed records, sorted by case id behind RAND's own lines, and return their new
    places.

    Lines are copied byte for byte. A file that already is so is not touched, and none is made for
    no records. Raises `OSError`; the old file is then still whole.
    """
    if not index.entries and not index.foreign and not target.exists():
        return index
    entries = {}
    with replacing(target) as out:

        def copied(line_place: LinePlace) -> LinePlace:
            offset = out.tell()
            out.write(_bytes_at(line_place) + b"\n")
            return line_place._replace(path=target, offset=offset)

        foreign = [*map(copied, index.foreign)]
        for case_id, entry in sorted(index.entries.items()):
            entries[case_id] = entry._replace(place=copied(entry.place))
    return RecordIndex(entries, foreign)


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
        self._spools = LineFiles()
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self.notices: list[str] = []

    def folder(self, suite: Suite) -> Path:
        """Where the suite's made cases are spooled in this session."""
        return suite.results_dir / f"{_PREFIX}{self._token[:16]}"

    def keep(self, case: Case, suite: Suite) -> None:
        """Spool a made case where the controller can read it."""
        folder = self.folder(suite)
        try:
            self._spools.add(folder / self._name, stored_line(case, self._redactor))
        except OSError as error:
            # The case is recorded, and made again for nothing: a verdict must not be lost over its
            # artifact.
            self.notices.append(f"A made case could not be written to {folder}: {cause(error)}.")

    def close(self) -> None:
        """Close the spools; their folders stay until `clear`."""
        self._spools.close()

    def clear(self, suites: Iterable[Suite]) -> None:
        """Remove this session's folders, and those of sessions that were killed: nobody has
        written to them for a day.

        What they hold is made again from the recordings.
        """
        for folder in map(self.folder, suites):
            shutil.rmtree(folder, ignore_errors=True)
            for other in folder.parent.glob(f"{_PREFIX}*"):
                if other != folder and time.time() - other.lstat().st_mtime > _DAY:
                    shutil.rmtree(other, ignore_errors=True)


def case_of(
    index: RecordIndex, spec: CaseSpec, rubric: Rubric, *, rewording: bool = False
) -> Case | None:
    """Read the case of a spec, or None where there is none.

    With `rewording`, one that was made for another text of the rubric is taken under the present
    one, and says so. Raises `InputError` where the record cannot be used, or was made for other
    instructions or scores than the rubric has now.
    """
    entry = index.entries.get(generation_id(spec))
    if entry is None:
        return None
    case = _taken(entry.case(), rubric, spec.judge, rewording=rewording)
    if case is None:
        raise InputError(
            f"the instructions of the rubric {rubric.id!r} were different when the case was made",
            entry.place.path,
            entry.place.number,
            hint="Make the case again from the log, or restore the rubric "
            f"({rubric.file}:{rubric.line}).",
        )
    return case


def _taken(case: Case, rubric: Rubric, judge: str | None, *, rewording: bool) -> Case | None:
    """The case under a suite's rubric; None where it was made for another one, or, without
    `rewording`, for another text of it.
    """
    case = under(case, rubric, judge)
    if (case.rubric.file, case.rubric.line) == (rubric.file, rubric.line):
        return case
    return reworded(case, rubric) if rewording else None


def fields_of_runs(index: RecordIndex, suite: str) -> Iterator[tuple[RunKey, Fields]]:
    """The metadata of the runs that the cases of a suite are made of."""
    first_of_run: dict[RunKey, RecordEntry] = {}
    for entry in index.entries.values():
        if entry.spec.suite == suite:
            first_of_run.setdefault((entry.spec.run_id, entry.spec.epoch), entry)
    for run, entry in first_of_run.items():
        yield run, entry.case().run.metadata


def clustered(index: RecordIndex, suite: str, cluster_key: str) -> RecordIndex:
    """The same cases, those of a suite with the clusters that their runs' metadata names.

    Raises `InputError` where none of them has the field.
    """
    clusters = clusters_by(cluster_key, fields_of_runs(index, suite))
    entries = {}
    for case, entry in index.entries.items():
        spec = entry.spec
        if spec.suite == suite:
            spec = replace(spec, cluster=clusters[spec.run_id, spec.epoch])
        entries[case] = entry._replace(spec=spec)
    return replace(index, entries=entries)


def rejected_cases(suite: Suite) -> Iterator[Case]:
    """The cases that the verifier rejected in earlier sessions, of the suite's tests and rubrics as
    they are now; those of a frozen suite lie beside its file.

    Raises `InputError` for a record that cannot be used.
    """
    read, rubrics = cache(read_jsonl), suite.rubric_by_id
    for test in suite.tests:
        folder = suite.frozen.parent if suite.frozen else test.output_dir
        for entry in read(folder / REJECTED_FILE).entries.values():
            spec, rubric = entry.spec, rubrics.get(entry.spec.rubric_id)
            if (spec.suite, spec.test) == (suite.name, test.name) and rubric is not None:
                yield under(entry.case(), rubric)


def made_before(suite: Suite) -> dict[str, RecordIndex]:
    """The cases by test that a suite takes from the disk: all of a frozen one, and those that one
    without `rand.renew` keeps.

    Raises `InputError` for a line that cannot be used.
    """
    if suite.frozen is None and suite.config.rand.renew:
        return {}
    read = cache(read_jsonl)
    return {test.name: read(suite.frozen or test.output_dir / CASES_FILE) for test in suite.tests}


def refuse_misfit(suite: Suite, entries: Iterable[RecordEntry]) -> None:
    """Raise `InputError` for the first case of the suite in a file that cannot be a case of the
    suite as it is now.

    Cases of other suites, which may share the file, are no misfits.
    """
    tests = suite.test_by_name
    for entry in entries:
        spec = entry.spec
        test = tests.get(spec.test)
        if spec.suite != suite.name or test is None or spec.rubric_id in suite.untargeted:
            continue
        if mistake := _mistake(suite, entry, test):
            raise InputError(
                f"this case cannot be used: {mistake}", entry.place.path, entry.place.number
            )


def without_cases(suite: Suite, path: Path, entries: Iterable[RecordEntry]) -> list[str]:
    """Say which of the suite's tests and rubrics the file has no case of."""
    specs = [entry.spec for entry in entries if entry.spec.suite == suite.name]
    has_cases = {(spec.test, spec.rubric_id) for spec in specs}
    sentences = []
    for test in suite.tests:
        for rubric in suite.rubrics:
            if not test.kind.derived and (test.name, rubric.id) not in has_cases:
                sentences.append(
                    f"{path.name} has no case of the test {test.name} for the rubric {rubric.id!r}."
                )
    return sentences


def _mistake(suite: Suite, entry: RecordEntry, test: SuiteTest) -> str | None:
    rubrics = suite.rubric_by_id
    rubric = rubrics.get(entry.spec.rubric_id)
    if rubric is None:
        return (
            f"it was made for the rubric {shown(entry.spec.rubric_id)}, which is not in the "
            f"rubric file; the file has {listed(map(shown, rubrics))}"
        )
    scale = rubric.scale
    answers = scale.on_offer
    # On the scale, and not among the targets: left out by `cases.scores`.
    targets = test.targets[rubric.id][-1:] if test.kind.answer == "best" else answers
    # A case for one of several answers aims at its score, whatever the objective.
    objective = entry.objective if scale.levels else test.objective
    for key, value, allowed in (
        ("mode", entry.mode, [scale.name]),
        ("objective", entry.objective, [objective]),
        ("target_score", entry.spec.target_score, targets),
        ("expected", entry.expected, answers),
    ):
        if value is not None and value not in allowed:
            return (
                f"its {key} is {value}; in this suite, it must be {' or '.join(map(str, allowed))}"
            )
    return None


def rejected_results(suite: Suite) -> Sequence[CaseResult]:
    """What stands for the cases that the verifier rejected in earlier sessions.

    Raises `InputError` where their file cannot be used.
    """
    return tuple(
        case_result(case.spec, None, Why("no_case"), rejected=case)
        for case in rejected_cases(suite)
    )


@frozen
class SuiteCases:
    """All cases of a suite as it is now, by id in its order, and by judge what says which one it
    is.

    `runs` are the ids and epochs of all runs of its log, sampled or not; None where that is not
    known, as in a frozen suite or one whose log another one stands in for.
    """

    specs: Mapping[str, CaseSpec]
    fingerprints: Mapping[str | None, str]
    runs: frozenset[tuple[str, int]] | None = None


def earlier_results(
    suite: Suite, cases: SuiteCases, ran: Mapping[str, CaseResult], made: RecordIndex
) -> tuple[Mapping[str, CaseResult], list[str]]:
    """Pick the results of the file that this session has none of, by case id, and that are of the
    cases and judges of today; with sentences about others that somebody may miss.

    What a probe made is as old as the case that it changes. `made` has the made
    cases.
    """
    path = ledger_path(suite)
    if all(case in ran for case in cases.specs):
        return {}, []
    try:
        stored = {case: entry.result for case, entry in read_ledger(path).items()}
    except InputError as error:
        return {}, [
            f"The results of earlier sessions were replaced, because they cannot be used.\n{error}"
        ]
    results = {}
    left_out = 0
    for case, result in stored.items():
        spec = cases.specs.get(case)
        if spec is None or case in ran or result.extra.config not in ("", suite.key):
            continue
        is_same = result.judge_digest in ("", cases.fingerprints.get(spec.judge))
        if is_same and result.outcome in MADE:
            judged = suite.test_by_name[spec.test].evaluate
            repeats = suite.repeats_of(spec) if judged else 0
            base = spec.base_case if spec.variant else spec
            base_result = stored.get(case_id(base))
            is_same = (
                len(result.complete_scores) == repeats
                and base_result is not None
                and _is_same(suite, base_result, made.read(generation_id(base)))
            )
        if is_same:
            results[case] = replace(result, extra=replace(result.extra, kept=True))
        else:
            left_out += 1
    if not left_out:
        return results, []
    return results, [
        f"{path.name} leaves out {counted(left_out, 'result')} of earlier sessions, because the "
        "case, the judge or the number of repeats has changed."
    ]


def _is_same(suite: Suite, result: CaseResult, made: Case | None) -> bool:
    """Whether a result is of a case as it was made, and its rubric as it is."""
    if made is None:
        return False
    is_frozen = suite.frozen is not None
    case = _taken(made, suite.rubric_by_id[result.rubric_id], None, rewording=is_frozen)
    # A frozen file keeps the case as it was made, and the verdict is about the case as it was
    # edited in review.
    is_edited = result.extra.review == "edited" and is_frozen
    return case is not None and (is_edited or case_digest(case) == result.case_digest)


def without_gone(suite: Suite, cases: SuiteCases, index: RecordIndex) -> RecordIndex:
    """The records without those of the suite's cases that can no longer exist: another run, rubric
    or score.
    """
    if cases.runs is None:
        return index
    targets = {}
    for rubric in suite.rubrics:
        targets[rubric.id] = [*map(rubric.scale.said, rubric.scale.targets)]
    entries = {}
    for case, entry in index.entries.items():
        spec = entry.spec
        of_rubric = targets.get(spec.rubric_id, ())
        on_offer = spec.rubric_id in suite.untargeted or spec.target_score in of_rubric
        is_here = on_offer and (spec.run_id, spec.epoch) in cases.runs
        if is_here or spec.suite != suite.name:
            entries[case] = entry
    return replace(index, entries=entries)


class Outputs:
    """What suites leave: `problems` are sentences about files that could not be written.

    `failed` says that something is missing on the disk that should be there. `records` says where
    the cases of this session lie, rejected ones too; without a JSONL that is in the spools.
    `record_files` has all records of each file that was written, those of other suites too.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.problems: list[str] = []
        self.failed = False
        self.records = RecordIndex()
        self.record_files: dict[Path, RecordIndex] = {}

    def problem(self, sentence: str) -> None:
        """Report what is missing on the disk."""
        self.failed = True
        self.problems.append(self.redactor.text(sentence))

    def write(self, path: Path, text: bytes | str) -> None:
        """Write a file."""
        try:
            atomic_write(path, text)
        except OSError as error:
            self.problem(f"{path} was not written: {cause(error)}.")

    def write_json(self, path: Path, value: Any) -> None:
        """Write a value as JSON, without secrets."""
        text = json.dumps(
            self.redactor.value(json_value(value)), indent=2, ensure_ascii=False, allow_nan=False
        )
        self.write(path, text + "\n")


def cause(error: OSError | InputError) -> str:
    """Say why a file could not be read or written, without its name."""
    return getattr(error, "strerror", None) or str(error)

"""Putting the shards of a suite together: results and made cases of several machines, as if one had
run them all.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.cases.ids import CASES_FILE, REJECTED_FILE, RESULTS_FILE, case_id
from pytest_jrh.config.places import argument
from pytest_jrh.core.documents import listed, shown
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.model import JUDGED, CaseResult
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.text import counted, nearest_hint
from pytest_jrh.engine.provenance import recordings_of, session_origin, suite_run
from pytest_jrh.reports.ending import EndSettings, conclude, ending_lines
from pytest_jrh.reports.report import Display
from pytest_jrh.reports.session import recording_options
from pytest_jrh.stats.panels import counted_once, made_case_id
from pytest_jrh.store.labels import labels_elsewhere
from pytest_jrh.store.outputs import state_files
from pytest_jrh.store.results import read_results
from pytest_jrh.store.spools import read_jsonl

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import CaseSpec
    from pytest_jrh.engine.loading import ReadySuite
    from pytest_jrh.reports.report import AskedFiles
    from pytest_jrh.store.baseline import BaselineFile
    from pytest_jrh.store.spools import RecordEntry


_WHICH = "Name the `outputs` folder written by a shard's run."
_SAME_COMMIT = "Run the shard again from the same commit as this merge, or name another folder."
_SUPPLIED = "A judge of the hook pytest_jrh_judge is named with --judge=MODULE:FUNCTION."


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """What a merge is held against and what it writes beside the suite's own files, as pytest's
    options say it. With `pages` a suite that is not green has an HTML report in its results folder.

    `folder` is where it was started: paths are named relative to it. `judge` names the function
    that the project's code supplied to the shards, if it did.
    """

    baseline: BaselineFile
    folder: Path
    reports: AskedFiles = field(default_factory=dict)
    width: int = 80
    verbosity: int = 0
    judge: str = ""
    pages: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a merge: lines to print, and whether the suite is green."""

    lines: tuple[str, ...]
    passed: bool


def merge(ready: ReadySuite, folders: Sequence[Path], settings: MergeSettings) -> Merged:
    """Merge what the shards left in these folders, decide as one session would have, and write the
    suite's files.

    Every `case_results.jsonl`, `agent_perturbations.jsonl` and `rejected_cases.jsonl` below a
    folder counts; of a case that several shards ran, the last one named. A case that no shard
    reported is red, because no session here knows why. Raises `InputError` for a folder that holds
    no results, for results and made cases that cannot be used or do not fit the suite or each
    other, for results of another judge than the config's, and for a baseline that cannot be used.
    """
    suite = ready.suite
    specs = {case_id(spec): spec for spec in ready.specs()}
    shard_results, records = _collected(folders, suite)
    elsewhere = labels_elsewhere(suite, folders)
    _refuse_misfits(suite, specs, shard_results)
    _refuse_other_judges(ready, shard_results)
    results = counted_once(shard_results[case].result for case in specs if case in shard_results)
    config = argument(suite.config_file, settings.folder)
    nodes = {case: f"{config}::{case.partition('::')[2]}" for case in specs}
    recording = recording_options(results)
    run = replace(
        suite_run(ready, results, settings.baseline, settings.folder),
        selected=frozenset(specs),
        specs=list(specs.values()),
        spools=records,
        cases=ready.cases(),
        nodes=nodes,
        commands={
            case: shlex.join(["pytest", f"--jrh-config={config}", node])
            for case, node in nodes.items()
        },
    )
    record_command = ""
    if recording:
        record_command = shlex.join(["pytest", f"--jrh-config={config}", *recording])
    concluded = conclude(
        [run],
        EndSettings(
            baseline=settings.baseline,
            reports=settings.reports,
            pages=settings.pages,
            redactor=_redactor(ready),
            folder=settings.folder,
            origin=session_origin([run], settings.folder, recordings_of([ready])),
            update_command=lambda suite: _update_command(suite, folders, settings),
            record_command=record_command,
        ),
    )
    # In pytest the item of a case that nothing decides about fails by itself.
    decided = concluded.session.decisions[suite.name].active
    agreed = decided or not any(result.outcome == "disagree" for result in results)
    display = Display(
        settings.folder,
        workspace=settings.folder,
        width=settings.width,
        verbosity=settings.verbosity,
    )
    notices = [*concluded.problems, *elsewhere]
    lines = ending_lines(concluded, display, notices=notices)
    return Merged(tuple(line.text for line in lines), concluded.passed and agreed)


class _ShardResult(NamedTuple):
    """A result with the file and line of the shard that it is from."""

    result: CaseResult
    path: Path
    line: int


def _redactor(ready: ReadySuite) -> Redactor:
    redactor = Redactor(secrets_of(os.environ))
    redactor.add(ready.secrets)
    return redactor


def _collected(folders: Sequence[Path], suite: Suite) -> tuple[dict[str, _ShardResult], list[Path]]:
    """The last result of each case of the suite, and the files of made cases.

    What a shard has kept of an earlier session is not what it reports, and results of another
    config file are none of this suite, whatever its name.
    """
    results: dict[str, _ShardResult] = {}
    records: list[Path] = []
    other_suites: set[str] = set()
    for folder in folders:
        paths = state_files(folder, RESULTS_FILE)
        if not paths:
            message = f"no {RESULTS_FILE} is in this folder or below it"
            raise InputError(Problem(message, str(folder), hint=_WHICH))
        shard: dict[str, _ShardResult] = {}
        for path in paths:
            for case, (result, line, config, is_kept) in read_results(path).items():
                if result.spec.suite != suite.name:
                    other_suites.add(result.spec.suite)
                elif config and suite.key and config != suite.key:
                    other_suites.add(config)
                elif not is_kept:
                    shard[case] = _ShardResult(result, path, line)
        cases_files = sorted(folder.rglob(CASES_FILE))
        _refuse_other_cases(shard, cases_files)
        results |= shard
        records += [*cases_files, *sorted(folder.rglob(REJECTED_FILE))]
    if not results:
        reason = "they are empty"
        if other_suites:
            reason = f"they hold those of {listed(sorted(other_suites))}"
        message = f"no {RESULTS_FILE} here has results of the suite {suite.name!r}: {reason}"
        file = str(folders[0]) if len(folders) == 1 else None
        raise InputError(Problem(message, file, hint=_WHICH))
    return results, records


def _refuse_other_cases(results: Mapping[str, _ShardResult], cases_files: Sequence[Path]) -> None:
    """A verdict counts for the case that was judged, which is the one beside it in the shard's
    folder.
    """
    entries: dict[str, RecordEntry] = {}
    for file in cases_files:
        entries.update(read_jsonl(file).entries)
    problems = []
    for result, path, line in results.values():
        entry = entries.get(made_case_id(result))
        # A frozen file keeps the case as it was made, and the verdict is about the case as it was
        # edited in review, under a reworded rubric, or in its file.
        if (
            entry is None
            or not result.case_digest
            or result.human_reviewed == "edited"
            or result.reworded
            or result.altered
            or entry.human_reviewed
        ):
            continue
        if result.case_digest != entry.case_digest:
            message = (
                "the result is of another version of the case than the one in "
                f"{entry.place.path.name}:{entry.place.number} (case_digest differs)"
            )
            problems.append(Problem(message, str(path), line, hint=_SAME_COMMIT))
    if problems:
        raise InputError(problems[:MOST_PROBLEMS])


def _refuse_misfits(
    suite: Suite, specs: Mapping[str, CaseSpec], results: Mapping[str, _ShardResult]
) -> None:
    """A result of no case of the suite would be left out, and a score that is not on offer would be
    counted.
    """
    scales = {rubric.id: rubric.scores for rubric in suite.rubrics}
    problems = []
    for case, (result, path, line) in results.items():
        if case not in specs:
            close = nearest_hint(case, specs)
            hint = f"{close}; {_SAME_COMMIT}" if close else _SAME_COMMIT
            message = f"the suite {suite.name!r} has no case {shown(case)}"
            problems.append(Problem(message, str(path), line, hint=hint))
            if len(problems) >= MOST_PROBLEMS:
                break
            continue
        scale = scales[result.spec.rubric_id] if suite.mode == "ordinal" else (0, 1)
        for name, message in _misfits(suite, scale, result):
            problems.append(Problem(message, str(path), line, name))
    if problems:
        raise InputError(problems[:MOST_PROBLEMS])


def _misfits(suite: Suite, scale: Sequence[int], result: CaseResult) -> Iterator[tuple[str, str]]:
    """The scores of a result that are not on offer, and repeats that are not the config's."""
    values = [("score", result.score), ("expected", result.expected)]
    values += [("scores", score) for score in dict.fromkeys(result.scores)]
    values += [("base_scores", score) for score in dict.fromkeys(result.base_scores)]
    if result.rejected is not None:
        values += [("rejected", result.rejected.expected), ("rejected", result.rejected.said)]
    for name, score in values:
        if score is not None and score not in scale:
            yield name, f"got {score}; the scores on offer are {listed(map(str, scale))}"
            return
    times = len(result.scores) or 1
    repeats = suite.repeats_of(result.judge)
    if result.outcome in JUDGED and times != repeats:
        yield (
            "scores",
            f"the case was judged {counted(times, 'time')}; the config's repeats is {repeats}",
        )


def _refuse_other_judges(ready: ReadySuite, results: Mapping[str, _ShardResult]) -> None:
    """A shard that ran another version of the judge would be taken for this one's verdicts."""
    fingerprints = {
        name or "": fingerprint for name, fingerprint in ready.judge_fingerprints.items()
    }
    counts: Counter[Path] = Counter()
    for result, path, _ in results.values():
        if result.outcome in JUDGED and result.judge_fingerprint != fingerprints.get(result.judge):
            counts[path] += 1
    problems = []
    for path, count in counts.items():
        message = (
            f"{count} verdict(s) in this file are of another judge (model, prompt or parameters) "
            "than the config's"
        )
        problems.append(Problem(message, str(path), hint=f"{_SAME_COMMIT} {_SUPPLIED}"))
    if problems:
        raise InputError(problems)


def _update_command(suite: Suite, folders: Sequence[Path], settings: MergeSettings) -> str:
    config = os.path.relpath(suite.config_file, settings.folder)
    options = [f"--jrh-config={config}", f"--jrh-baseline={settings.baseline.name}"]
    if settings.judge:
        options.append(f"--judge={settings.judge}")
    command = ["python", "-m", "pytest_jrh", "merge", *options, "--jrh-update-baseline"]
    return shlex.join([*command, *map(str, folders)])

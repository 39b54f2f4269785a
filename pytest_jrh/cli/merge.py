"""Putting the shards of a suite together: results and made cases of several machines, as if one had
run them all.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.config.places import argument
from pytest_jrh.core.documents import listed, shown
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.ids import (
    CASES_FILE,
    LEDGER_FILE,
    REJECTED_FILE,
    case_id,
)
from pytest_jrh.core.model import JUDGED, CaseResult
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.text import one_line
from pytest_jrh.engine.provenance import recordings_of, session_origin, suite_run
from pytest_jrh.reports.ending import EndSettings, conclude, ending_lines
from pytest_jrh.reports.report import Display
from pytest_jrh.reports.session import recording_options
from pytest_jrh.stats.panels import counted_once
from pytest_jrh.store.ledger import read_ledger

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import CaseSpec
    from pytest_jrh.engine.suite import ReadySuite
    from pytest_jrh.reports.session import Session
    from pytest_jrh.store.baseline import BaselineFile


_WHICH = "Name the `outputs` folder written by a shard's run."
_SAME_COMMIT = "Run the shard again from the same commit as this merge, or name another folder."
_WHOLE_SHARDS = "Merge shards that ran the same cases, each a share of them."
_SUPPLIED = "A judge of the hook pytest_jrh_judge is named with --judge=MODULE:FUNCTION."


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """What a merge is held against and what it writes beside the suite's own files, as pytest's
    options say it.

    `folder` is where it was started: paths are named relative to it. `judge` names the function
    that the project's code supplied to the shards, if it did.
    """

    baseline: BaselineFile
    folder: Path
    reports: Sequence[Path] = ()
    width: int = 80
    verbosity: int = 0
    judge: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a merge: lines to print, and whether the suite is green."""

    lines: tuple[str, ...]
    passed: bool


def merge(ready: ReadySuite, folders: Sequence[Path], settings: MergeSettings) -> Merged:
    """Merge what the shards left in these folders, decide as one session would have, and write the
    suite's files.

    Every `results.jsonl`, `agent_perturbations.jsonl` and `rejected_cases.jsonl` below a
    folder counts; of a case that several shards ran, the last one named. A case that no shard
    reported is red, because no session here knows why. Raises `InputError` for a folder that holds
    no results, for results and made cases that cannot be used or do not fit the suite or each
    other, for results of another judge than the config's, and for a baseline that cannot be used.
    """
    specs = {case_id(spec): spec for spec in ready.specs()}
    shard_results, records = _collected(folders, ready.suite)
    suite = ready.suite
    selected = frozenset(specs) if ready.subset is None else ready.subset
    _refuse_strangers(ready, specs, selected, shard_results)
    results = counted_once(shard_results[case].result for case in specs if case in shard_results)
    config = argument(suite.config_file, settings.folder)
    nodes = {case: f"{config}::{case.partition('::')[2]}" for case in specs}
    run = replace(
        suite_run(ready, results, settings.baseline, settings.folder),
        selected=selected,
        specs=[spec for case, spec in specs.items() if case in selected],
        spools=records,
        cases=ready.cases(),
        nodes=nodes,
        commands=_commands(config, nodes),
        subset=None if ready.subset is None else (ready.subset_name, ready.subset),
    )
    concluded = conclude(
        [run],
        EndSettings(
            baseline=settings.baseline,
            reports=settings.reports,
            redactor=Redactor(secrets_of(os.environ)),
            folder=settings.folder,
            origin=session_origin([run], settings.folder, recordings_of([ready])),
            update_command=lambda suite: _update_command(suite, folders, settings),
            record_command=_record_command(ready, config, results),
        ),
    )
    display = Display(
        settings.folder,
        workspace=settings.folder,
        width=settings.width,
        verbosity=settings.verbosity,
    )
    lines = ending_lines(concluded, display, notices=concluded.problems)
    return Merged(
        tuple(line.text for line in lines),
        concluded.passed and _is_agreed(concluded.session, suite.name),
    )


def _is_agreed(session: Session, suite: str) -> bool:
    """Whether no case fails by itself, as in pytest the item of one that nothing decides about."""
    if session.decisions[suite].active:
        return True
    return not any(result.outcome == "disagree" for result in session.results)


class _ShardResult(NamedTuple):
    """A result with the file and line of the shard that it is from."""

    result: CaseResult
    path: Path
    line: int


def _collected(folders: Sequence[Path], suite: Suite) -> tuple[dict[str, _ShardResult], list[Path]]:
    """The last result of each case of the suite, and the files of made cases; not what a shard kept
    of an earlier session, nor results of another config file.
    """
    results: dict[str, _ShardResult] = {}
    records: list[Path] = []
    other_suites: set[str] = set()
    for folder in folders:
        paths = sorted(folder.rglob(LEDGER_FILE))
        if not paths:
            message = f"no {LEDGER_FILE} is in this folder or below it"
            raise InputError(Problem(message, str(folder), hint=_WHICH))
        shard: dict[str, _ShardResult] = {}
        for path in paths:
            for case, (result, line) in read_ledger(path).items():
                config = result.extra.config
                if result.spec.suite != suite.name:
                    other_suites.add(result.spec.suite)
                elif config and suite.key and config != suite.key:
                    other_suites.add(config)
                elif not result.extra.kept:
                    shard[case] = _ShardResult(result, path, line)
        cases_files = sorted(folder.rglob(CASES_FILE))
        results |= shard
        records += [*cases_files, *sorted(folder.rglob(REJECTED_FILE))]
    if not results:
        reason = "they are empty"
        if other_suites:
            reason = f"they hold those of {listed(sorted(other_suites))}"
        message = f"no {LEDGER_FILE} here has results of the suite {suite.name!r}: {reason}"
        file = str(folders[0]) if len(folders) == 1 else None
        raise InputError(Problem(message, file, hint=_WHICH))
    return results, records


def _refuse_strangers(
    ready: ReadySuite,
    specs: Mapping[str, CaseSpec],
    selected: Collection[str],
    results: Mapping[str, _ShardResult],
) -> None:
    """Refuse results of no case of the suite, or of the subset that the merge is of, and verdicts
    of another version of the judge, which would be taken for this one's.
    """
    digests = {name or "": digest for name, digest in ready.judge_fingerprints.items()}
    problems = []
    for case, (result, path, line) in results.items():
        message, hint = "", _SAME_COMMIT
        if case not in specs:
            message = f"the suite {ready.suite.name!r} has no case {shown(case)}"
        elif case not in selected:
            message = f"{shown(case)} is no case of the subset {one_line(ready.subset_name)}"
            hint = _WHOLE_SHARDS
        elif result.outcome in JUDGED and result.judge_digest != digests.get(result.judge):
            message = (
                "the verdict is of another judge (model, prompt or parameters) than the config's"
            )
            hint = f"{_SAME_COMMIT} {_SUPPLIED}"
        if message:
            problems.append(Problem(message, str(path), line, hint=hint))
    if problems:
        raise InputError(problems[:MOST_PROBLEMS])


def _commands(config: str, nodes: Mapping[str, str]) -> dict[str, str]:
    """What runs each case again."""
    return {
        case: shlex.join(["pytest", f"--jrh-config={config}", node]) for case, node in nodes.items()
    }


def _record_command(ready: ReadySuite, config: str, results: Sequence[CaseResult]) -> str:
    """The command that records what is missing; empty where nothing is."""
    recording = recording_options(results)
    if not recording:
        return ""
    if ready.subset_name:
        recording = [*recording, f"--jrh-subset={ready.subset_name}"]
    return shlex.join(["pytest", f"--jrh-config={config}", *recording])


def _update_command(suite: Suite, folders: Sequence[Path], settings: MergeSettings) -> str:
    config = os.path.relpath(suite.config_file, settings.folder)
    options = [f"--jrh-config={config}", f"--jrh-baseline={settings.baseline.name}"]
    if settings.judge:
        options.append(f"--judge={settings.judge}")
    command = ["python", "-m", "pytest_jrh", "merge", *options, "--jrh-update-baseline"]
    return shlex.join([*command, *map(str, folders)])

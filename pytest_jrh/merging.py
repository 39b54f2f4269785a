"""Putting the shards of a suite together: results and made cases of several machines, as if one had run them all."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.models import JUDGED, MADE, CaseResult
from pytest_jrh.redact import Redactor, secrets_of
from pytest_jrh.results.annotations import annotation_lines
from pytest_jrh.results.artifacts import JSONL_NAME, write_suite_outputs
from pytest_jrh.results.baseline import Scope
from pytest_jrh.results.gate import decide
from pytest_jrh.results.panels import counted_once
from pytest_jrh.results.report_files import write_reports
from pytest_jrh.results.session import SessionResults, gather, recording_options
from pytest_jrh.results.stored import RESULTS_NAME, read_results
from pytest_jrh.results.terminal import session_lines
from pytest_jrh.suite.cases import case_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.results.accepted import BaselineFile
    from pytest_jrh.results.gate import GateDecision


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """What a merge is held against and what it writes beside the suite's own files, as pytest's options say it.

    `folder` is where it was started: paths are named relative to it.
    """

    baseline: BaselineFile
    folder: Path
    report: Path | None = None
    summary: Path | None = None
    eval_log: Path | None = None
    width: int = 80


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a merge: lines to print, and whether the suite is green (semantics F, J)."""

    lines: tuple[str, ...]
    passed: bool


def merge(ready: ReadySuite, folders: Sequence[Path], settings: MergeSettings) -> Merged:
    """Merge what the shards left in these folders, decide as one session would have, and write the suite's files.

    Every `case_results.jsonl` and `agent_perturbations.jsonl` below a folder counts; of a case that
    several shards ran, the last one named. A case that no shard reported is red, because nobody here knows
    why. Raises `InputError` for a folder that holds no results, for results of another judge than
    the config's, and for a baseline that cannot be used.
    """
    suite = ready.suite
    specs = {case_id(spec): spec for spec in ready.specs()}
    found, records = _collected(folders, suite.name)
    _refuse_other_judges(ready, found)
    results = counted_once(found[case][0] for case in specs if case in found)
    scope = Scope.of(specs)
    decision = decide(results, settings.baseline.content, suite.gate, scope, suite.sampling_seed)
    redactor = Redactor(secrets_of(os.environ))
    told = _told(ready, results, decision, settings.folder)
    made = write_suite_outputs(suite, list(specs.values()), results, records, redactor=redactor, decision=decision)
    models = {judge.stage.model for judge in suite.judges}
    written, problems = write_reports(
        settings,
        told,
        [made.records],
        model=models.pop() if len(models) == 1 else "several",
        redactor=redactor,
        folder=settings.folder,
    )
    updates, accepted = _accept(settings.baseline, told, scope, decision)
    problems = [*made.problems, *problems, *_judged_nothing(results)]
    lines = [line.text for line in session_lines(told, width=settings.width)]
    lines += updates
    lines += [f"report: {_shown(path, settings.folder)}" for path in written]
    lines += [f"note: {problem}" for problem in problems]
    lines += _annotations(told, settings.folder)
    agreed = decision.active or not any(result.outcome == "disagree" for result in results)
    return Merged(tuple(lines), decision.passed and agreed and accepted and not _judged_nothing(results))


def _collected(folders: Sequence[Path], suite: str) -> tuple[dict[str, tuple[CaseResult, Path]], list[Path]]:
    """The last result of each case of the suite with its file, and the files of made cases."""
    found: dict[str, tuple[CaseResult, Path]] = {}
    records: list[Path] = []
    for folder in folders:
        paths = sorted(folder.rglob(RESULTS_NAME))
        if not paths:
            raise InputError(
                Problem(
                    f"no {RESULTS_NAME} is in this folder or below it",
                    str(folder),
                    hint="Name the `outputs` folder that a shard's run has written.",
                )
            )
        for path in paths:
            found |= {result.case_id: (result, path) for result in read_results(path) if result.suite == suite}
        records += sorted(folder.rglob(JSONL_NAME))
    return found, records


def _refuse_other_judges(ready: ReadySuite, found: Mapping[str, tuple[CaseResult, Path]]) -> None:
    """A shard that ran another version of the judge would be taken for this one's verdicts."""
    fingerprints = {name or "": fingerprint for name, fingerprint in ready.judge_fingerprints.items()}
    others: dict[Path, int] = {}
    for result, path in found.values():
        if result.outcome in JUDGED and result.judge_fingerprint != fingerprints.get(result.judge):
            others[path] = others.get(path, 0) + 1
    if others:
        hint = "Run the shard again from the same commit as this merge, or name another folder."
        message = "{} verdict(s) in this file are of another judge (model, prompt or parameters) than the config's"
        raise InputError([Problem(message.format(many), str(path), hint=hint) for path, many in others.items()])


def _told(ready: ReadySuite, results: Sequence[CaseResult], decision: GateDecision, folder: Path) -> SessionResults:
    suite = ready.suite
    config = os.path.relpath(suite.config_file, folder)
    recording = recording_options(results)
    nodes = {case_id(spec): f"{config}::{case_id(spec).partition('::')[2]}" for spec in ready.specs()}
    return gather(
        results,
        suite.sampling_seed,
        rubrics={
            # `resolve` would follow links out of the folder that annotations are relative to.
            (suite.name, rubric.id): replace(rubric, file=os.path.abspath(folder / rubric.file))  # noqa: PTH100
            for rubric in suite.rubrics
        },
        decisions={suite.name: decision},
        nodes=nodes,
        commands={case: shlex.join(["pytest", f"--jrh-config={config}", node]) for case, node in nodes.items()},
        record_command=shlex.join(["pytest", f"--jrh-config={config}", *recording]) if recording else "",
    )


def _accept(
    baseline: BaselineFile, told: SessionResults, scope: Scope, decision: GateDecision
) -> tuple[list[str], bool]:
    try:
        return baseline.accept(told.results, scope, told.node, finished=not decision.never_reported), True
    except OSError as error:
        return [f"note: The baseline {baseline.name} was not written: {error.strerror}."], False


def _judged_nothing(results: Iterable[CaseResult]) -> list[str]:
    if any(result.outcome in MADE for result in results):
        return []
    return ["No case reached a verdict, so this suite is not green."]


def _annotations(told: SessionResults, folder: Path) -> list[str]:
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return []
    return annotation_lines(told, Path(os.environ.get("GITHUB_WORKSPACE") or folder))


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)

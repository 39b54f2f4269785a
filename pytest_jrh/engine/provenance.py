"""The origin of a suite's figures, from its config, its judges and the baseline.

What git knows of a folder; a session never fails for it, and never waits for it long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest_jrh
from pytest_jrh.config.suite import Commands
from pytest_jrh.core.files import absolute, git_output, relative_path, same_text
from pytest_jrh.core.ids import short_digest
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.stages import VERIFIER
from pytest_jrh.engine.suite import ReadySuite
from pytest_jrh.reports.provenance import BUILT_IN, JudgeOrigin, SessionOrigin, SuiteOrigin
from pytest_jrh.reports.session import SuiteRun
from pytest_jrh.store.ledger import BaselineFile, judge_lines, with_calls


def day_of(folder: Path) -> str:
    """The day of the last commit that changed a folder, as `2026-11-22`; empty if not known."""
    if (git_output(folder, "rev-parse", "--is-shallow-repository") or "").strip() == "true":
        return ""
    log = ("-c", "log.showSignature=false", "log", "-1", "--format=%cs", "--", ".")
    return (git_output(folder, *log) or "").strip()


DIGEST = 12
_LIBRARIES = ("litellm", "inspect_ai")


def suite_run(
    ready: ReadySuite,
    results: Mapping[str, CaseResult],
    commands: Commands,
    baseline: BaselineFile,
    folder: Path,
    redactor: Redactor,
) -> SuiteRun:
    """What is known of a suite by itself, of a run that gave these results, by case id."""
    cases = ready.cases()
    # As collected, because the results of several processes arrive mixed.
    ran = [results[case] for case in cases.specs if case in results]
    origin = suite_origin(ready, baseline, folder, redactor)
    judges = []
    for judge in with_calls(judge_lines(ready.suite.name, ready.judges, redactor), ran):
        file = str(absolute(folder / judge.file)) if judge.file else ""
        judges.append(replace(judge, file=file))
    return SuiteRun(
        ready.suite,
        ran,
        cases,
        selected=cases.specs.keys(),
        nodes={case: commands.node(spec) for case, spec in cases.specs.items()},
        commands={
            result.case_id: commands.again(cases.specs[result.case_id], result) for result in ran
        },
        grounds=ready.grounds,
        judges=judges,
        origin=replace(origin, recorded=day_of(ready.suite.cassette_dir)),
    )


def suite_origin(
    ready: ReadySuite, baseline: BaselineFile, folder: Path, redactor: Redactor
) -> SuiteOrigin:
    """The origin of a suite's figures; paths are named relative to `folder`."""
    suite = ready.suite
    judges: list[JudgeOrigin] = []
    for line in judge_lines(suite.name, ready.judges, redactor):
        judge, prompt_name, prompt_digest = ready.judges[line.judge or None], "", ""
        if line.prompt:
            prompt_name, prompt_digest = BUILT_IN, short_digest(line.prompt)
        if line.file:
            prompt_name = str(relative_path(Path(line.file), folder))
        judges.append(
            JudgeOrigin(
                name=line.judge,
                label=judge.label,
                kind=judge.settings.kind,
                prompt=prompt_name,
                prompt_digest=prompt_digest,
            )
        )
    makers = [stage.model for name, stage in suite.stages.items() if name != VERIFIER.name]
    verifier, frozen = suite.stages.get(VERIFIER.name), suite.frozen
    return SuiteOrigin(
        suite=suite.name,
        config=suite.key or str(relative_path(suite.config_file, folder)),
        config_digest=file_digest(suite.config_file),
        judges=tuple(judges),
        makers=tuple(dict.fromkeys(makers)),
        verifier=verifier.model if verifier is not None else "",
        frozen=str(relative_path(frozen, folder)) if frozen is not None else "",
        baseline=baseline.name if baseline.path is not None else "",
        baseline_digest=file_digest(baseline.path) if baseline.path is not None else "",
    )


def session_origin(runs: Iterable[SuiteRun], folder: Path) -> SessionOrigin:
    """The origin of a session, of those of its suites."""
    return SessionOrigin(
        suites=tuple(run.origin for run in runs),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        # Of a folder without one there is none.
        commit=(git_output(folder, "rev-parse", "--short=12", "HEAD") or "").strip(),
        versions=versions(),
    )


@cache
def versions() -> Mapping[str, str]:
    """The versions of this package and of the libraries that ask models and read logs."""
    libraries = {name: metadata.version(name) for name in _LIBRARIES}
    return {"pytest-jrh": pytest_jrh.__version__, **libraries}


def file_digest(path: Path) -> str:
    """The first hex digits of a file's SHA-256; empty where it cannot be read."""
    try:
        return hashlib.sha256(same_text(path.read_bytes())).hexdigest()[:DIGEST]
    except OSError:
        return ""

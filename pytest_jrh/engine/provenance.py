"""The origin of a suite's figures, from its config, its judges and the baseline.

What git knows of a folder; a session never fails for it, and never waits for it long.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest_jrh
from pytest_jrh.cases.ids import case_id, node_part
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.files import relative_path
from pytest_jrh.core.stages import VERIFIER
from pytest_jrh.reports.provenance import (
    BUILT_IN,
    Change,
    JudgeOrigin,
    SessionOrigin,
    SuiteOrigin,
    git_output,
)
from pytest_jrh.reports.session import SuiteRun
from pytest_jrh.stats.baseline import short, suite_of
from pytest_jrh.store.baseline import LONGEST_PROMPT, judge_prompts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.engine.loading import ReadySuite
    from pytest_jrh.judges.judge import JudgeSettings
    from pytest_jrh.store.baseline import BaselineFile, JudgePrompt


_HEX = re.compile("[0-9a-f]{40,64}", re.ASCII)
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DIGITS = 12
_LONGEST = 1_000_000
_LONGEST_NAME = 4_096
_REF = "ref: "


def commit_of(folder: Path) -> str:
    """The first digits of the commit, read from git's files without running git; empty if none."""
    try:
        git_folder = _git_folder(folder)
        if git_folder is None:
            return ""
        head = _text(git_folder / "HEAD").strip()
        if not head.startswith(_REF):
            return _digits(head)
        name = head.removeprefix(_REF)
        if len(name) > _LONGEST_NAME:
            return ""
        shared = _shared_folder(git_folder)
        return _loose(git_folder, name) or _loose(shared, name) or _packed(shared, name)
    except (OSError, ValueError):
        return ""


def day_of(folder: Path) -> str:
    """The day of the last commit that changed a folder, as `2026-11-22`; empty if not known."""
    try:
        git_folder = _git_folder(folder)
        if git_folder is None or not folder.is_dir():
            return ""
        if (_shared_folder(git_folder) / "shallow").exists():
            return ""
    except (OSError, ValueError):
        return ""
    log = ("-c", "log.showSignature=false", "log", "-1", "--format=%cs", "--", ".")
    day = (git_output(folder, *log) or "").strip()
    return day if _DAY.fullmatch(day) else ""


def _git_folder(folder: Path) -> Path | None:
    """The repository's own folder, of which a worktree names another."""
    for parent in (folder, *folder.parents):
        path = parent / ".git"
        if path.is_dir():
            return path
        if path.is_file():
            folder_name = _text(path).strip().removeprefix("gitdir: ")
            return parent / folder_name
    return None


def _shared_folder(git_folder: Path) -> Path:
    """The folder with the branches: a worktree has its own, and they are the repository's."""
    common = git_folder / "commondir"
    return git_folder / _text(common).strip() if common.is_file() else git_folder


def _loose(folder: Path, name: str) -> str:
    path = folder / name
    # Only what is there is resolved: `resolve` raises `RuntimeError` for a link to itself.
    inside = path.is_file() and path.resolve().is_relative_to(folder.resolve())
    return _digits(_text(path).strip()) if inside else ""


def _packed(folder: Path, name: str) -> str:
    path = folder / "packed-refs"
    if not path.is_file():
        return ""
    lines = (line.partition(" ") for line in _text(path).splitlines())
    return next((_digits(commit) for commit, _, ref in lines if ref == name), "")


def _digits(text: str) -> str:
    return text[:_DIGITS] if _HEX.fullmatch(text) else ""


def _text(path: Path) -> str:
    if not path.is_file():
        # Opening a pipe waits for its writer.
        return ""
    with path.open("rb") as file:
        return file.read(_LONGEST).decode("utf-8")


DIGEST = 12
_LIBRARIES = ("litellm", "inspect_ai")


def suite_run(
    ready: ReadySuite, results: Sequence[CaseResult], baseline: BaselineFile, folder: Path
) -> SuiteRun:
    """What is known of a suite by itself, of a run that gave these results."""
    return SuiteRun(
        ready.suite,
        results,
        known=frozenset(map(case_id, ready.specs())),
        grounds=ready.grounds,
        prompts=judge_prompts(ready.suite, ready.judges),
        origin=suite_origin(ready, baseline, folder),
    )


def suite_origin(ready: ReadySuite, baseline: BaselineFile, folder: Path) -> SuiteOrigin:
    """The origin of a suite's figures; paths are named relative to `folder`."""
    suite = ready.suite
    made_tests = [test for test in suite.tests if not KINDS[test.name].natural]
    stages = suite.stages if made_tests else {}
    frozen = suite.frozen
    prompts = {prompt.judge: prompt for prompt in judge_prompts(suite, ready.judges)}
    makers = [stage.model for name, stage in stages.items() if name != VERIFIER.name]
    verifier = stages.get(VERIFIER.name)
    return SuiteOrigin(
        suite=suite.name,
        config=suite.key or str(relative_path(suite.config_file, folder)),
        config_digest=file_digest(suite.config_file),
        judges=tuple(
            _judge(settings, ready, baseline, folder, prompts.get(settings.name or ""))
            for settings in suite.judges
        ),
        makers=tuple(dict.fromkeys(makers)),
        verifier=verifier.model if verifier is not None else "",
        frozen=str(relative_path(frozen, folder)) if frozen is not None else "",
        baseline=baseline.name if baseline.path is not None else "",
        baseline_digest=file_digest(baseline.path) if baseline.path is not None else "",
        versions=versions(),
    )


def session_origin(
    runs: Iterable[SuiteRun], folder: Path, recordings: Mapping[str, Path]
) -> SessionOrigin:
    """The origin of a session; `recordings` are the cassette folders whose day git is asked for."""
    suites = []
    for run in runs:
        if run.origin is not None:
            cassettes = recordings.get(run.name)
            recorded = "" if cassettes is None else day_of(cassettes)
            suites.append(replace(run.origin, recorded=recorded))
    return SessionOrigin(
        suites=tuple(suites),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=commit_of(folder),
    )


def recordings_of(suites: Iterable[ReadySuite]) -> dict[str, Path]:
    """The cassette folders of suites, by the suite's name."""
    return {ready.suite.name: ready.suite.cassette_dir for ready in suites}


@cache
def versions() -> Mapping[str, str]:
    """The versions of this package and of the libraries that ask models and read logs."""
    installed = {"pytest-jrh": pytest_jrh.__version__}
    for name in _LIBRARIES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def file_digest(path: Path) -> str:
    """The first hex digits of a file's SHA-256; empty where it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGEST]
    except OSError:
        return ""


def _judge(
    settings: JudgeSettings,
    ready: ReadySuite,
    baseline: BaselineFile,
    folder: Path,
    prompt: JudgePrompt | None,
) -> JudgeOrigin:
    judge = ready.judges[settings.name]
    fingerprint = short(ready.judge_fingerprints[settings.name])
    prompt_name = ""
    if prompt is not None:
        prompt_name = str(relative_path(Path(prompt.file), folder)) if prompt.file else BUILT_IN
    return JudgeOrigin(
        name=settings.name or "",
        label=judge.label,
        kind=settings.kind,
        prompt=prompt_name,
        prompt_digest=_digest(prompt.text) if prompt is not None else "",
        fingerprint=fingerprint,
        change=_change(ready.suite.name, settings, fingerprint, prompt, baseline),
    )


def _change(
    suite: str,
    settings: JudgeSettings,
    fingerprint: str,
    prompt: JudgePrompt | None,
    baseline: BaselineFile,
) -> Change:
    """How a judge differs from the baseline's."""
    end = f"-{node_part(settings.name)}]" if settings.name else ""
    cases = baseline.content.cases.values() if baseline.content is not None else ()
    fingerprints = {
        case.judge_fingerprint
        for case in cases
        if suite_of(case.case_id) == suite and case.case_id.endswith(end)
    }
    if not fingerprints:
        return ""
    if fingerprints == {fingerprint}:
        return "same"
    former_prompts = map(baseline.kept.prompts.get, fingerprints - {fingerprint})
    texts = {kept_prompt.text for kept_prompt in former_prompts if kept_prompt is not None}
    if prompt is None or not texts:
        return "judge"
    return "judge" if prompt.text[:LONGEST_PROMPT] in texts else "prompt"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]

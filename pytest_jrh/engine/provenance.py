"""Where the figures of a session come from, in the words of every report: its config, its judges,
the baseline, and what git knows of a folder; a session never fails for that, and never waits for it
long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import pytest_jrh
from pytest_jrh.config.suite import Commands, Suite
from pytest_jrh.core import one_line, relative_path, short_digest, shortened, storable
from pytest_jrh.core.calls import VERIFIER
from pytest_jrh.core.files import git_output, text_digest
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult, JudgeLine
from pytest_jrh.engine.suite import ReadySuite
from pytest_jrh.judges.judge import DEFAULT_JUDGE, PromptJudge, SuiteJudge
from pytest_jrh.judges.own_code import OwnCodeJudge
from pytest_jrh.reports.session import SuiteRun
from pytest_jrh.store.ledger import LONGEST_PROMPT, BaselineFile, with_calls


def day_of(folder: Path) -> str:
    """The day of the last commit that changed a folder, as `2026-11-22`; empty if not known."""
    if (git_output(folder, "rev-parse", "--is-shallow-repository") or "").strip() == "true":
        return ""
    log = ("-c", "log.showSignature=false", "log", "-1", "--format=%cs", "--", ".")
    return (git_output(folder, *log) or "").strip()


DIGEST = 12
_LIBRARIES = ("litellm", "inspect_ai")
_LONGEST = 500


def judge_lines(
    suite: str, judges: Mapping[str | None, SuiteJudge], redactor: Redactor
) -> Iterator[JudgeLine]:
    """The judges of a suite, their prompts without secrets and bounded."""
    for name, judge in judges.items():
        stage, kind, prompt = judge.settings.stage, DEFAULT_JUDGE, ""
        models, file = [stage.model], ""
        if isinstance(judge, PromptJudge):
            text = storable(redactor.text(judge.prompt))[0]
            prompt, file = text[:LONGEST_PROMPT], stage.prompt_path or ""
        elif isinstance(judge, OwnCodeJudge):
            kind = judge.parts["kind"]
            models += (judge.parts.get("model_roles") or {}).values()
        parameters = {
            "temperature": stage.temperature,
            "max_tokens": stage.max_tokens,
            "params": stage.params,
            "system_prompt": bool(stage.system_prompt) or None,
            "repeats": judge.settings.repeats,
            "orders": judge.settings.section.orders,
        }
        yield JudgeLine(
            suite,
            judge.fingerprint,
            kind,
            tuple(filter(None, models)),
            {key: value for key, value in parameters.items() if value is not None},
            asks_model=not judge.runs_code,
            judge=name or "",
            prompt=prompt,
            file=file,
        )


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
    if ready.slices or ready.systems:
        # Those of now: an earlier session may have had others.
        for index, result in enumerate(ran):
            run = (result.run_id, result.epoch)
            slices, systems = ready.slices.get(run, ()), ready.systems.get(run, ())
            ran[index] = replace(
                result, extra=replace(result.extra, slices=slices, systems=systems)
            )
    judges = with_calls(judge_lines(ready.suite.name, ready.judges, redactor), ran)

    # What its figures come from; paths are relative to the folder.
    suite, origin = ready.suite, {}
    for line in judges:
        judge = ready.judges[line.judge or None]
        text = judge.label
        if judge.settings.kind != text:
            text += f" ({judge.settings.kind})"
        text += _prompt(line, folder)
        if line.prompt:
            text += f" {short_digest(line.prompt)}"
        origin[f"judge {line.judge}".rstrip()] = text
    if made := _cases(suite, folder):
        origin["cases"] = made
    config = suite.key or relative_path(suite.config_file, folder)
    origin["config"] = f"{config} ({file_digest(suite.config_file)})"
    if day := day_of(suite.cassette_dir):
        origin["recordings"] = f"committed {day}"
    if baseline.path is not None:
        origin["baseline"] = f"{baseline.name} ({file_digest(baseline.path) or 'new'})"
    return SuiteRun(
        suite,
        ran,
        cases,
        selected=cases.specs.keys(),
        nodes={case: commands.node(spec) for case, spec in cases.specs.items()},
        commands={
            result.case_id: commands.again(cases.specs[result.case_id], result) for result in ran
        },
        grounds=ready.grounds,
        judges=judges,
        origin=origin,
    )


def header_line(ready: ReadySuite, folder: Path, redactor: Redactor) -> str:
    """The judges of a suite, their prompts, and who made its cases, for the head of a session."""
    judges = []
    for line in judge_lines(ready.suite.name, ready.judges, redactor):
        name = f"{line.judge}: " if line.judge else ""
        label = ready.judges[line.judge or None].label
        judges.append(f"{name}{label}{_prompt(line, folder)}")
    text = f"judge {'; '.join(judges)}"
    if cases := _cases(ready.suite, folder):
        text += f"; cases {cases}"
    return _line(text)


def origin_lines(runs: Sequence[SuiteRun], folder: Path) -> Iterator[str]:
    """All that is known, suite by suite, and last the session itself, which ends now."""
    for run in runs:
        of = f" of {run.name}" if len(runs) > 1 else ""
        for what, text in run.origin.items():
            yield _line(f"{what}{of}: {text}")
    session = f"session: {datetime.now(UTC).strftime('%Y-%m-%d %H:%M UTC')}"
    # Of a folder without one there is none.
    if commit := (git_output(folder, "rev-parse", "--short=12", "HEAD") or "").strip():
        session += f", commit {commit}"
    yield session
    libraries = [f"{name} {metadata.version(name)}" for name in _LIBRARIES]
    yield f"versions: {', '.join([f'pytest-jrh {pytest_jrh.__version__}', *libraries])}"


def _line(text: str) -> str:
    return shortened(one_line(text), _LONGEST)


def _prompt(judge: JudgeLine, folder: Path) -> str:
    if judge.file:
        return f", {relative_path(Path(judge.file), folder)}"
    return ", built-in prompt" if judge.prompt else ""


def _cases(suite: Suite, folder: Path) -> str:
    """Which models made the cases of a suite and confirmed them, and where a frozen suite has them
    from.
    """
    makers = [stage.model for name, stage in suite.stages.items() if name != VERIFIER.name]
    parts = []
    if suite.frozen is not None:
        parts.append(f"from {relative_path(suite.frozen, folder)}")
    if makers:
        parts.append(f"made by {', '.join(dict.fromkeys(makers))}")
    if VERIFIER.name in suite.stages:
        parts.append(f"verified by {suite.stages[VERIFIER.name].model}")
    return ", ".join(parts)


def file_digest(path: Path) -> str:
    """The first hex digits of a file's SHA-256; empty where it cannot be read."""
    try:
        return text_digest(path)[:DIGEST]
    except OSError:
        return ""

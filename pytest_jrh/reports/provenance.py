"""Where a session's figures come from, in words that are the same in every report, and as values;
`engine.provenance` finds them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from pytest_jrh.core import frozen
from pytest_jrh.core.text import one_line, shortened

BUILT_IN = "built-in"


@frozen
class JudgeOrigin:
    """One judge: `label` is its model, or what it is where it has none.

    `prompt` is its prompt's file, `built-in` for that of this package, and empty where it has none;
    digests are the first hex digits of a SHA-256. `name` is empty for a suite's only judge.
    """

    name: str
    label: str
    kind: str
    prompt: str
    prompt_digest: str


@frozen
class SuiteOrigin:
    """One suite: paths are relative to the folder that the session was started in.

    `makers` are the models that made its cases, `verifier` the one that confirmed them; empty where
    no model did. `frozen` is the file with the cases of a frozen suite. `recorded` is the day of
    the last commit of its recordings, empty where that is not known.
    """

    suite: str
    config: str
    config_digest: str
    judges: tuple[JudgeOrigin, ...]
    makers: tuple[str, ...]
    verifier: str = ""
    frozen: str = ""
    recorded: str = ""
    baseline: str = ""
    baseline_digest: str = ""


@frozen
class SessionOrigin:
    """A session: `date` is the minute in UTC in which it ended, and `commit` the first digits of
    the one that is checked out, empty where there is none.
    """

    suites: tuple[SuiteOrigin, ...] = ()
    date: str = ""
    commit: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


_LONGEST = 500


def header_line(origin: SuiteOrigin) -> str:
    """The judges of a suite, their prompts, and who made its cases, for the head of a session."""
    judges = []
    for judge in origin.judges:
        name = f"{judge.name}: " if judge.name else ""
        judges.append(f"{name}{judge.label}{_prompt(judge)}")
    text = f"judge {'; '.join(judges)}"
    if cases := _cases(origin):
        text += f"; cases {cases}"
    return _line(text)


def origin_lines(origin: SessionOrigin) -> Iterator[str]:
    """All that is known, suite by suite, and last the run itself."""
    for suite in origin.suites:
        of = f" of {suite.suite}" if len(origin.suites) > 1 else ""
        for judge in suite.judges:
            text = f"judge {judge.name}".rstrip() + f"{of}: {judge.label}"
            if judge.kind != judge.label:
                text += f" ({judge.kind})"
            text += _prompt(judge)
            if judge.prompt_digest:
                text += f" {judge.prompt_digest}"
            yield _line(text)
        if cases := _cases(suite):
            yield _line(f"cases{of}: {cases}")
        yield _line(f"config{of}: {suite.config} ({suite.config_digest})")
        if suite.recorded:
            yield _line(f"recordings{of}: committed {suite.recorded}")
        if suite.baseline:
            yield _line(f"baseline{of}: {suite.baseline} ({suite.baseline_digest or 'new'})")
    run = [origin.date] if origin.date else []
    if origin.commit:
        run.append(f"commit {origin.commit}")
    if run:
        yield _line(f"session: {', '.join(run)}")
    if origin.versions:
        numbers = [f"{name} {number}" for name, number in origin.versions.items()]
        yield _line(f"versions: {', '.join(numbers)}")


def _line(text: str) -> str:
    return shortened(one_line(text), _LONGEST)


def _prompt(judge: JudgeOrigin) -> str:
    if judge.prompt == BUILT_IN:
        return ", built-in prompt"
    return f", {judge.prompt}" if judge.prompt else ""


def _cases(suite: SuiteOrigin) -> str:
    parts = [f"from {suite.frozen}"] if suite.frozen else []
    if suite.makers:
        parts.append(f"made by {', '.join(suite.makers)}")
    if suite.verifier:
        parts.append(f"verified by {suite.verifier}")
    return ", ".join(parts)

"""Where a session's figures come from, in words that are the same in every report (rule J7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.reporting.provenance.values import BUILT_IN
from pytest_jrh.text import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_jrh.reporting.provenance.values import JudgeOrigin, SessionOrigin, SuiteOrigin


_LONGEST = 500


class Named(NamedTuple):
    """One line of the table: what it is, and the value; both are one line each."""

    title: str
    value: str


def header_line(origin: SuiteOrigin) -> str:
    """The judges of a suite, their prompts, and who made its cases, for the head of a session."""
    judges = "; ".join(_short(judge) for judge in origin.judges)
    cases = _cases(origin)
    return _value(f"judge {judges}" + (f"; cases {cases}" if cases else ""))


def provenance_rows(origin: SessionOrigin) -> Iterator[Named]:
    """All that is known, suite by suite, and last the run itself."""
    several = len(origin.suites) > 1
    for suite in origin.suites:
        of = f" of {one_line(suite.suite)}" if several else ""
        for title, value in _of_suite(suite):
            yield Named(f"{title}{of}", _value(value))
    for title, value in _of_run(origin):
        yield Named(title, _value(value))


def judge_rows(origin: SessionOrigin) -> list[Named]:
    """The judges of all suites."""
    several = len(origin.suites) > 1
    return [
        Named(f"{title} of {one_line(suite.suite)}" if several else title, _value(value))
        for suite in origin.suites
        for title, value in _judges(suite)
    ]


def provenance_properties(origin: SessionOrigin) -> Iterator[Named]:
    """The same for JUnit's properties, each under a name such as `jrh provenance: judge`."""
    for title, value in provenance_rows(origin):
        yield Named(f"jrh provenance: {title}", value)


def _of_suite(suite: SuiteOrigin) -> Iterator[Named]:
    yield from _judges(suite)
    if cases := _cases(suite):
        yield Named("cases", cases)
    yield Named("config", f"{suite.config} ({suite.config_digest})")
    if suite.recorded:
        yield Named("recordings", f"committed {suite.recorded}")
    if suite.baseline:
        yield Named("baseline", f"{suite.baseline} ({suite.baseline_digest or 'new'})")


def _value(text: str) -> str:
    return shortened(one_line(text), _LONGEST)


def _judges(suite: SuiteOrigin) -> Iterator[Named]:
    for judge in suite.judges:
        title = one_line(f"judge {judge.name}") if judge.name else "judge"
        yield Named(title, _judge(judge))


def _of_run(origin: SessionOrigin) -> Iterator[Named]:
    run = ", ".join(filter(None, [origin.date, origin.commit and f"commit {origin.commit}"]))
    if run:
        yield Named("run", run)
    versions = {name: number for suite in origin.suites for name, number in suite.versions.items()}
    if versions:
        yield Named("versions", ", ".join(f"{name} {number}" for name, number in versions.items()))


def _short(judge: JudgeOrigin) -> str:
    name = f"{judge.name}: " if judge.name else ""
    return f"{name}{judge.label}{_prompt(judge)}{_change(judge)}"


def _judge(judge: JudgeOrigin) -> str:
    kind = "" if judge.kind == judge.label else f" ({judge.kind})"
    digest = f" {judge.prompt_digest}" if judge.prompt_digest else ""
    return f"{judge.label}{kind}{_prompt(judge)}{digest}{_change(judge)}"


def _prompt(judge: JudgeOrigin) -> str:
    if not judge.prompt:
        return ""
    return ", built-in prompt" if judge.prompt == BUILT_IN else f", {judge.prompt}"


def _change(judge: JudgeOrigin) -> str:
    match judge.change:
        case "same":
            return ", as in the baseline"
        case "prompt":
            return ", not the baseline's prompt"
        case "judge":
            return ", not the baseline's judge"
        case "code":
            return (
                ", not known to be the baseline's judge (an earlier pytest-jrh wrote it, which "
                "looked at the function alone)"
            )
        case _:
            return ""


def _cases(suite: SuiteOrigin) -> str:
    parts = [f"from {suite.frozen}"] if suite.frozen else []
    if suite.makers:
        parts.append(f"made by {', '.join(suite.makers)}")
    if suite.verifier:
        parts.append(f"verified by {suite.verifier}")
    return ", ".join(parts)

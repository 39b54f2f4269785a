"""Hooks that a project's conftest.py or plugin can implement, and the tables of the package to
which one of them adds rows.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_jrh.cases.probes.probe import Probe
    from pytest_jrh.core.calls import Complete
    from pytest_jrh.judges.judge import JudgeKind
    from pytest_jrh.reports.report import Report
    from pytest_jrh.sources.source import Form


@pytest.hookspec(firstresult=True)
def pytest_jrh_complete(config: pytest.Config) -> Complete | None:
    """Supply the way to the models, instead of litellm; the first result that is not None wins.

    It is asked in a recording mode alone: recorded calls are answered from the cassettes without
    it. A cassette keeps its completions, but no HTTP exchange.
    """


@pytest.hookspec(firstresult=True)
def pytest_jrh_judge(config: pytest.Config, suite: str) -> Callable[..., object] | None:
    """Supply the judge of a suite, by its name, in place of the config's; the first result that is
    not None wins.

    It is a function as `judge: {python: ...}` names one: it gets a `JudgedCase`, and `complete`
    where it takes that, and returns a score, a pair of score and reasoning, or a `Verdict`.
    """


@pytest.hookspec
def pytest_jrh_register(tables: Tables) -> None:
    """Add sources, judges, probes and reports to the tables in which the built-in ones stand.

    It is asked once in each process, before the first suite is read, and not at all in a session
    without one.
    """


@frozen
class Tables:
    """The rows that a project adds; each takes part like a built-in one.

    A source is asked whether it recognizes a file before the built-in ones are. A report is written
    before the answer in the terminal, which is the last. The key of a kind of judge, and the name
    of a probe, must not be in use.
    """

    sources: list[Form] = field(default_factory=list)
    judges: list[JudgeKind] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


def register(config: pytest.Config) -> None:
    """Ask the hook, and add its rows until the session ends; raises `pytest.UsageError`."""
    # What is imported later reads these tables.
    from pytest_jrh.cases.probes import PROBES
    from pytest_jrh.judges import JUDGES

    tables = Tables()
    config.hook.pytest_jrh_register(tables=tables)
    for kind in tables.judges:
        _add(config, JUDGES, kind.key, kind, "judge")
    for probe in tables.probes:
        _add(config, PROBES, probe.name, probe, "probe")
    if tables.sources:
        from pytest_jrh.sources import FORMS

        FORMS[:0] = tables.sources
        config.add_cleanup(lambda: FORMS.__delitem__(slice(len(tables.sources))))
    if tables.reports:
        from pytest_jrh.reports.ending import REPORTS

        # The answer in the terminal is the last that is printed.
        REPORTS[-1:-1] = tables.reports
        config.add_cleanup(lambda: REPORTS.__delitem__(slice(-1 - len(tables.reports), -1)))


def _add(config: pytest.Config, table: dict[str, Any], name: str, row: object, what: str) -> None:
    if name in table:
        raise pytest.UsageError(f"pytest_jrh_register: the {what} {name!r} is already registered")
    table[name] = row
    config.add_cleanup(lambda: table.pop(name))

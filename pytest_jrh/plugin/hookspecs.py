"""Hooks that a project's conftest.py or plugin can implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_jrh.core.model import Complete
    from pytest_jrh.plugin.tables import Tables


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

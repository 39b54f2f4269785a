"""The live line of an xdist controller, which knows of its workers' cases by their reports alone."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.models import Progress, Spending
from pytest_jrh.plugin.options import may_be_case
from pytest_jrh.plugin.progress import LiveLine, live_line
from pytest_jrh.plugin.session import RESULT_ATTRIBUTE
from pytest_jrh.results.stored import result_from

if TYPE_CHECKING:
    from collections.abc import Generator, Set


class ControllerLine:
    """Takes the line away before pytest writes about a test, and draws it again afterwards.

    `selected` are the node ids that the workers have collected, of suites and of other tests.
    """

    def __init__(self, config: pytest.Config, selected: Set[str]) -> None:
        self._config = config
        self._selected = selected
        self._done: set[str] = set()
        self._spending = Spending()

    @cached_property
    def _line(self) -> LiveLine | None:
        # Made with the first test: pytest has its terminal by then, and the estimate leaves the start-up out.
        line = live_line(self._config)
        return replace(line, started=time.monotonic()) if line is not None else None

    @cached_property
    def _total(self) -> int:
        return sum(map(may_be_case, self._selected))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Step back where there is no line to draw: each test would pay for five hooks."""
        if live_line(self._config) is None:
            self._config.pluginmanager.unregister(self)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logstart(self) -> Generator[None]:
        """A worker begins a test."""
        yield from self._around()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logfinish(self) -> Generator[None]:
        """A worker has ended a test."""
        yield from self._around()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        """A phase of a test has ended; one of them tells what the case took."""
        result = getattr(report, RESULT_ATTRIBUTE, None)
        if result is not None:
            self._spending += result_from(result).spending
        if report.when == "teardown" and may_be_case(report.nodeid):
            self._done.add(report.nodeid)
        yield from self._around()

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_testnodedown(self) -> Generator[None]:
        """A worker is gone, which xdist may say."""
        self._clear()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Leave no line behind, however the tests end."""
        try:
            return (yield)
        finally:
            self._clear()

    def _around(self) -> Generator[None]:
        self._clear()
        yield
        if self._line is not None and len(self._done) < self._total:
            self._line.draw(Progress(len(self._done), self._total, self._spending))

    def _clear(self) -> None:
        if self._line is not None:
            self._line.clear()

"""How far an xdist session is: its controller knows of its workers' cases by
their reports alone.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.core.model import Progress, Spending
from pytest_jrh.plugin import progress as lines
from pytest_jrh.plugin.options import may_be_case
from pytest_jrh.plugin.progress import LiveLine, PlainLine, live_line
from pytest_jrh.plugin.session import RESULT_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Set

    from pytest_jrh.core.model import CaseResult


def controller_progress(
    config: pytest.Config, selected: Set[str], results: Mapping[str, CaseResult]
) -> ControllerLine | ControllerTicker:
    """The plugin that shows a controller's progress.

    `selected` are the node ids that the workers have collected; `results` are those that the
    reporter has read so far, by node id.
    """
    kind = ControllerLine if sys.stdout.isatty() else ControllerTicker
    return kind(config, _Reported(selected, results))


class _Reported:
    """What the workers' reports say of the cases.

    `selected` also holds the node ids of other tests.
    """

    def __init__(self, selected: Set[str], results: Mapping[str, CaseResult]) -> None:
        self._selected = selected
        self._results = results
        self._done: set[str] = set()
        self._spending = Spending()
        self._counted = (0, 0)

    def add(self, report: pytest.TestReport) -> None:
        """Note what a report says of its case, once the reporter has read its result."""
        if hasattr(report, RESULT_ATTRIBUTE):
            self._spending += self._results[report.nodeid].spending
        if report.when == "teardown" and may_be_case(report.nodeid):
            self._done.add(report.nodeid)

    def progress(self) -> Progress:
        """How far the cases are."""
        return Progress(len(self._done), self._total, self._spending)

    @property
    def is_done(self) -> bool:
        """Whether every case has ended."""
        return len(self._done) >= self._total

    @property
    def _total(self) -> int:
        # Counted again when there are more: before the workers have collected there are none.
        if self._counted[0] != len(self._selected):
            self._counted = len(self._selected), sum(map(may_be_case, self._selected))
        return self._counted[1]


class ControllerTicker:
    """Writes a plain line now and then: a thread, because nothing is called while no report
    arrives.
    """

    def __init__(self, config: pytest.Config, reported: _Reported) -> None:
        self._config = config
        self._reported = reported

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test has ended; one of them tells what the case took."""
        self._reported.add(report)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Write from the first test to the last."""
        line = live_line(self._config)
        if not isinstance(line, PlainLine):
            return (yield)
        ended = threading.Event()
        thread = threading.Thread(
            target=self._tick, args=(line, ended), name="jrh-progress", daemon=True
        )
        thread.start()
        try:
            return (yield)
        finally:
            ended.set()
            thread.join()

    def _tick(self, line: PlainLine, ended: threading.Event) -> None:
        # pytest captures nothing in a controller while its workers run tests, so there is nothing
        # to lift.
        line.uncaptured = nullcontext
        while not ended.wait(lines.PLAIN_INTERVAL):
            if not self._reported.is_done:
                line.draw(self._reported.progress())


class ControllerLine:
    """Takes the live line away before pytest writes about a test, and draws it again afterwards."""

    def __init__(self, config: pytest.Config, reported: _Reported) -> None:
        self._config = config
        self._reported = reported

    @cached_property
    def _line(self) -> LiveLine | None:
        # Made with the first test: pytest has its terminal by then, and the estimate leaves the
        # start-up out.
        line = live_line(self._config)
        return replace(line, started=time.monotonic()) if isinstance(line, LiveLine) else None

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
        self._clear()
        yield
        self._reported.add(report)
        self._draw()

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
        self._draw()

    def _draw(self) -> None:
        if self._line is not None and not self._reported.is_done:
            self._line.draw(self._reported.progress())

    def _clear(self) -> None:
        if self._line is not None:
            self._line.clear()

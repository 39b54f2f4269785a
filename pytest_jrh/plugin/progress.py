"""How far a session is, while pytest waits for models: a line now and then, on a terminal as in the
log of a CI.

The controller of xdist knows of its workers' cases by their reports alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.core.model import Progress, Spending
from pytest_jrh.plugin.options import RESULT_ATTRIBUTE, may_be_case
from pytest_jrh.reports.session import progress_line

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Set

    from pytest_jrh.core.model import CaseResult


INTERVAL = 60.0
"""Seconds between two lines of a log, such as a CI's."""
TERMINAL_INTERVAL = 15.0
"""Seconds between two lines of a terminal, where somebody may wait for them."""
_WIDTH = 200


@dataclass
class ProgressLine:
    """Writes a line of at most `width` columns every `interval` seconds."""

    reporter: pytest.TerminalReporter
    started: float
    uncaptured: Callable[[], AbstractContextManager[None]] = nullcontext
    clock: Callable[[], float] = time.monotonic
    last: float | None = None
    interval: float = INTERVAL
    width: int = _WIDTH

    def draw(self, progress: Progress) -> None:
        """Say how far the session is, if it is time to."""
        self.say(progress_line(progress, self.clock() - self.started, self.width))

    def say(self, text: str) -> None:
        """Write a line of text, if it is time to."""
        time_now = self.clock()
        if time_now - (self.started if self.last is None else self.last) < self.interval:
            return
        self.last = time_now
        with self.uncaptured():
            self.reporter.ensure_newline()
            self.reporter.write_line(text)
            self.reporter.flush()


def session_line(config: pytest.Config) -> ProgressLine | None:
    """The line of this process; None with `-q`, in an xdist worker and without a reporter."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or reporter is None or config.option.verbose < 0:
        return None
    capture = config.pluginmanager.get_plugin("capturemanager")
    # While an item runs, what goes to the terminal is captured too.
    uncaptured = capture.global_and_fixture_disabled if capture is not None else nullcontext
    line = ProgressLine(reporter, time.monotonic(), uncaptured, interval=INTERVAL)
    if reporter.isatty:
        line.interval = TERMINAL_INTERVAL
        line.width = config.get_terminal_writer().fullwidth
    return line


class ControllerProgress:
    """Writes how far the workers are, in a thread, since nothing is called while no report arrives;
    `selected` are all collected node ids.
    """

    def __init__(
        self, config: pytest.Config, selected: Set[str], results: Mapping[str, CaseResult]
    ) -> None:
        self._config = config
        self._selected = selected
        self._results = results
        self._done: set[str] = set()
        self._spending = Spending()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a report says of its case, once the reporter has read its result."""
        if hasattr(report, RESULT_ATTRIBUTE):
            self._spending += self._results[report.nodeid].spending.all
        if report.when == "teardown" and may_be_case(report.nodeid):
            self._done.add(report.nodeid)

    def progress(self) -> Progress:
        """How far the cases are."""
        total = sum(map(may_be_case, frozenset(self._selected)))
        return Progress(len(self._done), total, self._spending)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Write from the first test to the last."""
        line = session_line(self._config)
        if line is None:
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

    def _tick(self, line: ProgressLine, ended: threading.Event) -> None:
        # pytest captures nothing in a controller while its workers run tests, so there is nothing
        # to lift.
        line.uncaptured = nullcontext
        while not ended.wait(line.interval):
            progress = self.progress()
            if progress.done < progress.total:
                line.draw(progress)

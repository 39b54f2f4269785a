"""How far a session is, while pytest waits for models: a line now and then, on a terminal as in the
log of a CI. Under xdist pytest's own lines say it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.reports.session import progress_line

if TYPE_CHECKING:
    from pytest_jrh.core.model import Progress


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

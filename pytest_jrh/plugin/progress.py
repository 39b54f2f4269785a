"""How far a session is, while pytest waits for models: below its own line on a terminal, and a line
a minute in the log of a CI. Under xdist pytest's own lines say it.
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
TERMINAL_INTERVAL = 1.0
"""Seconds after which the line of a terminal is written anew."""
_WIDTH = 200
# Where there is no line below, the terminal scrolls; the cursor then stands where pytest goes on.
_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[K"
_BACK = "\x1b8"


@dataclass
class ProgressLine:
    """Writes a line of at most `width` columns every `interval` seconds; with `is_live` in place of
    the last one, below what pytest writes.
    """

    reporter: pytest.TerminalReporter
    started: float
    uncaptured: Callable[[], AbstractContextManager[None]] = nullcontext
    clock: Callable[[], float] = time.monotonic
    last: float | None = None
    interval: float = INTERVAL
    width: int = _WIDTH
    is_live: bool = False
    is_shown: bool = False

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
            if self.is_live:
                self._write_below(text)
                self.is_shown = True
                return
            self.reporter.ensure_newline()
            self.reporter.write_line(text)
            self.reporter.flush()

    def clear(self) -> None:
        """Take a line of a terminal away, before pytest goes on."""
        if self.is_shown:
            self.is_shown = False
            with self.uncaptured():
                self._write_below("")

    def _write_below(self, text: str) -> None:
        # Past pytest's writer, which counts the columns of what it writes.
        file = self.reporter._tw._file
        file.write(f"{_BELOW}{text}{_BACK}")
        file.flush()


def session_line(config: pytest.Config) -> ProgressLine | None:
    """The line of this process; None with `-q`, in an xdist worker and without a reporter."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or reporter is None or config.option.verbose < 0:
        return None
    capture = config.pluginmanager.get_plugin("capturemanager")
    # While an item runs, what goes to the terminal is captured too.
    uncaptured = capture.global_and_fixture_disabled if capture is not None else nullcontext
    line = ProgressLine(reporter, time.monotonic(), uncaptured)
    if reporter.isatty:
        line.interval, line.is_live = TERMINAL_INTERVAL, True
        # The last column would wrap.
        line.width = config.get_terminal_writer().fullwidth - 1
    return line

"""How far a session is, while pytest waits for models: a line now and then, on a terminal as in the
log of a CI.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.reports.spending import progress_line

if TYPE_CHECKING:
    from pytest_jrh.core.model import Progress


INTERVAL = 30.0
"""Seconds between two lines."""
_WIDTH = 200


@dataclass
class ProgressLine:
    """Writes a line of its own every `INTERVAL` seconds, in place of minutes of silence."""

    reporter: pytest.TerminalReporter
    started: float
    uncaptured: Callable[[], AbstractContextManager[None]] = nullcontext
    clock: Callable[[], float] = time.monotonic
    last: float | None = None

    def draw(self, progress: Progress) -> None:
        """Say how far the session is, if it is time to."""
        self.say(progress_line(progress, self.clock() - self.started, _WIDTH))

    def say(self, text: str) -> None:
        """Write a line of text, if it is time to."""
        now = self.clock()
        if now - (self.started if self.last is None else self.last) < INTERVAL:
            return
        self.last = now
        with self.uncaptured():
            self.reporter.ensure_newline()
            self.reporter.write_line(text)
            self.reporter.flush()


def session_line(config: pytest.Config) -> ProgressLine | None:
    """The line of this process.

    None with `-q`, in an xdist worker, and without pytest's terminal reporter.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or reporter is None or config.option.verbose < 0:
        return None
    capture = config.pluginmanager.get_plugin("capturemanager")
    # While an item runs, what goes to the terminal is captured too.
    uncaptured = capture.global_and_fixture_disabled if capture is not None else nullcontext
    return ProgressLine(reporter, time.monotonic(), uncaptured)

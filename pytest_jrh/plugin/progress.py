"""How far a session is, while pytest waits for models: one live line on a terminal, elsewhere a
line now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, TypeAlias

import pytest

from pytest_jrh.core.text import shortened
from pytest_jrh.reports.spending import progress_line

if TYPE_CHECKING:
    from pytest_jrh.core.model import Progress


# VT100 and everything since: index and reverse index, save and restore, insert and delete a line.
_MAKE_ROOM_BELOW = "\x1bD\x1bM"
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_INSERT_LINE, _DELETE_LINE, _CLEAR_LINE = "\x1b[L", "\x1b[M", "\x1b[2K"
_UP, _DOWN = "\x1b[A", "\x1b[B"
PLAIN_INTERVAL = 30.0
"""Seconds between two lines where the output is no terminal."""
_PLAIN_WIDTH = 200


@dataclass
class LiveLine:
    """Draws the line above the one that pytest is writing, and takes it away again."""

    file: TextIO
    width: int
    started: float
    uncaptured: Callable[[], AbstractContextManager[None]] = nullcontext
    shown: bool = False

    def draw(self, progress: Progress) -> None:
        """Show how far the session is; the cursor ends where pytest left it."""
        self.say(progress_line(progress, time.monotonic() - self.started, self.width - 1))

    def say(self, text: str) -> None:
        """Show a line of text, cut to the terminal's width, in the same place."""
        text = shortened(text, self.width - 1)
        if self.shown:
            self._write(f"{_SAVE}{_UP}\r{_CLEAR_LINE}{text}{_RESTORE}")
        else:
            # The current line moves down by one, so there must be a line for it to move to.
            self._write(f"{_MAKE_ROOM_BELOW}{_SAVE}\r{_INSERT_LINE}{text}{_RESTORE}{_DOWN}")
            self.shown = True

    def clear(self) -> None:
        """Take the line away before pytest goes on writing."""
        if self.shown:
            self._write(f"{_SAVE}{_UP}\r{_DELETE_LINE}{_RESTORE}{_UP}")
            self.shown = False

    def _write(self, text: str) -> None:
        with self.uncaptured():
            self.file.write(text)
            self.file.flush()


@dataclass
class PlainLine:
    """Writes a line of its own every `PLAIN_INTERVAL` seconds: what a CI log shows instead of
    minutes of silence.
    """

    reporter: pytest.TerminalReporter
    started: float
    uncaptured: Callable[[], AbstractContextManager[None]] = nullcontext
    clock: Callable[[], float] = time.monotonic
    last: float | None = None

    def draw(self, progress: Progress) -> None:
        """Say how far the session is, if it is time to."""
        self.say(progress_line(progress, self.clock() - self.started, _PLAIN_WIDTH))

    def say(self, text: str) -> None:
        """Write a line of text, if it is time to."""
        now = self.clock()
        if now - (self.started if self.last is None else self.last) < PLAIN_INTERVAL:
            return
        self.last = now
        with self.uncaptured():
            self.reporter.ensure_newline()
            self.reporter.write_line(text)
            self.reporter.flush()

    def clear(self) -> None:
        """Do nothing: a line that was written stays."""


ProgressLine: TypeAlias = LiveLine | PlainLine


def live_line(config: pytest.Config) -> ProgressLine | None:
    """The line of this process.

    None with `-q`, in an xdist worker, and without pytest's terminal reporter.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or reporter is None or config.option.verbose < 0:
        return None
    writer = config.get_terminal_writer()
    capture = config.pluginmanager.get_plugin("capturemanager")
    # While an item runs, what goes to the terminal is captured too.
    uncaptured = capture.global_and_fixture_disabled if capture is not None else nullcontext
    file = writer._file
    with uncaptured():
        if not file.isatty():
            return PlainLine(reporter, time.monotonic(), uncaptured)
    return LiveLine(file, writer.fullwidth, time.monotonic(), uncaptured)

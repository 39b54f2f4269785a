"""What a pytest session does while it waits: for people, whose page it opens, and for models, of
whose work it says now and then how far it is (under xdist pytest's own lines do).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.config.options import Options
from pytest_jrh.config.suite import Suite
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import CaseSpec, Progress
from pytest_jrh.core.redact import Redactor
from pytest_jrh.engine.suite import LoadedSuites, ReadySuite
from pytest_jrh.reports.session import progress_line
from pytest_jrh.store.baseline import BaselineFile
from pytest_jrh.store.made_cases import rejected_cases
from pytest_jrh.store.people import PersonLabel, has_decisions, open_stores

if TYPE_CHECKING:
    from pytest_jrh.review.blind import LabelBoard
    from pytest_jrh.review.board import ReviewDesk
    from pytest_jrh.review.serving import Page, ReviewServer


_SECONDS_BETWEEN_LOOKS = 0.25
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
    line = ProgressLine(reporter, time.monotonic(), uncaptured, interval=INTERVAL)
    if reporter.isatty:
        line.interval, line.is_live = TERMINAL_INTERVAL, True
        # The last column would wrap.
        line.width = config.get_terminal_writer().fullwidth - 1
    return line


class Reviewing:
    """The review of one pytest process; decisions hold in all, the page is open in one at most."""

    def __init__(
        self,
        config: pytest.Config,
        options: Options,
        suites: LoadedSuites,
        redactor: Redactor,
        baseline: BaselineFile,
    ) -> None:
        self._config = config
        self._baseline = baseline
        self._options = options
        self._suites = suites
        self._redactor = redactor
        self._on_page: frozenset[str] = frozenset()
        self._labels: LabelBoard | None = None
        self._server: ReviewServer | None = None

    def open(self, specs: Sequence[CaseSpec]) -> None:
        """Serve the page where it is wanted for these cases, or say why there is none."""
        is_asked = self._options.review is not None
        selected = {spec.suite for spec in specs}
        suites = []
        for ready in self._suites:
            is_running = ready.suite.name in selected or self._is_distributed
            if is_running and (is_asked or self._is_wanted(ready)):
                suites.append(ready.suite)
        terminal: pytest.TerminalReporter | None = self._config.pluginmanager.get_plugin(
            "terminalreporter"
        )
        if not suites or terminal is None:
            return
        refusal = self._refusal()
        if refusal is None and not is_asked and not terminal.isatty:
            refusal = (
                "rand.review opens the review page only on a terminal; --jrh-review opens it "
                "anywhere"
            )
        if refusal is not None:
            terminal.write_line(f"jrh: {refusal}")
            return
        from pytest_jrh.review.serving import serve

        try:
            self._server = serve(self._open_page(suites))
        except InputError as error:
            raise pytest.UsageError(f"--jrh-review: {error}") from None
        task = "review the cases" if self._labels is None else "label the cases blind"
        terminal.write_line(f"jrh: {task} at {self._server.url}", bold=True)
        terminal.write_line("jrh: the run goes on when you press Finish on the page")
        # Through a pipe it would stand in a buffer, and everybody wait.
        terminal.flush()

    def _open_page(self, suites: list[Suite]) -> Page:
        """The page that these suites want: that of blind labelling, or that of decisions."""
        is_blind = self._options.review == "blind"
        if is_blind and self._options.subset is not None:
            raise pytest.UsageError(
                "--jrh-review: what is labelled blind is drawn by chance from all cases, so that "
                "it stands for them; run it without --jrh-subset"
            )
        self._on_page = frozenset(suite.name for suite in suites)
        people: list[PersonLabel] = []
        for suite in suites:
            people += self._suites.named(suite.name).people
        if is_blind:
            from pytest_jrh.review.blind import LabelBoard

            reviewer, redact = self._options.reviewer, self._redactor.text
            self._labels = LabelBoard(suites, people, reviewer=reviewer, redact=redact)
        desk = self.desk
        assert desk is not None
        for suite in suites:
            if suite.frozen is not None:
                # The cases that the verifier rejected, which this session does not make again.
                for case in rejected_cases(suite):
                    desk.page.add(case)
        from pytest_jrh.review.pages import Deciding, Labelling

        if self._labels is not None:
            return Labelling(self._labels).page()
        return Deciding(desk.board, suites, people, self._baseline.content).page()

    @cached_property
    def desk(self) -> ReviewDesk | None:
        """Where the engine submits cases, if any can be decided; raises `InputError`."""
        suites = [ready.suite for ready in self._suites]
        obeying = {suite.name for suite in suites if has_decisions(suite)}
        if self._labels is None:
            # What is decided on the page is obeyed.
            obeying |= self._on_page
        if not obeying and self._labels is None:
            return None
        from pytest_jrh.review.board import ReviewBoard, ReviewDesk

        board = ReviewBoard(open_stores(suites, self._redactor))
        page = self._labels or board
        return ReviewDesk(board, page, frozenset(obeying), self._on_page)

    def wait(self, line: ProgressLine | None, is_refused: Callable[[], bool]) -> None:
        """Wait for the page's end before the first item, so that people's time counts for none."""
        if self._server is None or self.desk is None:
            return
        board = self.desk.page
        try:
            while not board.wait_finalized(_SECONDS_BETWEEN_LOOKS):
                if board.progress().is_empty or is_refused():
                    return
                if line is not None:
                    line.say(board.line())
        finally:
            if line is not None:
                line.clear()
                # The time that the cases take shows in what follows.
                line.started = time.monotonic()
        if self._labels is not None:
            try:
                self._suites.read_people_again()
            except InputError as error:
                raise pytest.UsageError(str(error)) from None

    def close(self) -> None:
        """End the page; doing it twice is fine."""
        if self._server is not None:
            self._server.stop()

    def _is_wanted(self, ready: ReadySuite) -> bool:
        """Whether the suite asks for the page itself: only where cases are made anew."""
        if not ready.suite.config.rand.review or ready.suite.frozen is not None:
            return False
        return self._suites.modes(ready.suite)[0] != "none"

    @property
    def _is_distributed(self) -> bool:
        return bool(self._config.getoption("dist", "no") != "no")

    def _refusal(self) -> str | None:
        if self._is_distributed:
            return "the review page is not supported under xdist; review with -n0"
        if os.environ.get("CI"):
            return "no review page where CI is set; recorded decisions apply"
        return None

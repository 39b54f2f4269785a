"""The review in a pytest session: when its page opens, what the terminal says of it, and how it
ends (rules K).
"""

from __future__ import annotations

import contextlib
import os
import time
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.review.keyboard import Keyboard, terminal_input
from pytest_jrh.store.outputs import has_decisions
from pytest_jrh.store.reuse import rejected_cases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.config.options import Options
    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case, CaseSpec
    from pytest_jrh.core.redact import Redactor
    from pytest_jrh.engine.loading import LoadedSuites, ReadySuite
    from pytest_jrh.plugin.progress import ProgressLine
    from pytest_jrh.review.blind import LabelBoard
    from pytest_jrh.review.board import ReviewDesk
    from pytest_jrh.review.serving import PageApi, ReviewServer


_MEANWHILE = 0.25


class Reviewing:
    """The review of one pytest process: decisions are obeyed in all of them, the page is open in
    one at most.
    """

    def __init__(
        self, config: pytest.Config, options: Options, suites: LoadedSuites, redactor: Redactor
    ) -> None:
        self._config = config
        self._options = options
        self._suites = suites
        self._redactor = redactor
        self._on_page: frozenset[str] = frozenset()
        self._labels: LabelBoard | None = None
        self._labelled: frozenset[str] = frozenset()
        self._server: ReviewServer | None = None
        self._keyboard: Keyboard | None = None

    def check(self) -> None:
        """Refuse `--jrh-review` where what the page needs is not installed (exit code 4)."""
        is_worker = hasattr(self._config, "workerinput")
        if self._options.review and not is_worker and self._refusal() is None:
            from pytest_jrh.review.serving import require_review

            try:
                require_review()
            except InputError as error:
                raise pytest.UsageError(f"--jrh-review: {error}") from None

    def open(self, specs: Sequence[CaseSpec]) -> None:
        """Serve the page where it is wanted for these cases, and say where.

        Or say in one line why there is none.
        """
        asked = self._options.review is not None
        selected = {spec.suite for spec in specs}
        running = [
            ready for ready in self._suites if ready.suite.name in selected or self._is_distributed
        ]
        wanted = [ready.suite for ready in running if asked or self._is_wanted(ready)]
        terminal: pytest.TerminalReporter | None = self._config.pluginmanager.get_plugin(
            "terminalreporter"
        )
        if not wanted or terminal is None:
            return
        refusal = self._refusal()
        if refusal is None:
            self._keyboard = _keyboard(self._config)
        if refusal is None and not asked:
            refusal = self._refusal_unasked(terminal)
        if refusal is not None:
            # xdist rewrites the last line of a terminal.
            terminal.write_line(
                f"\njrh: {refusal}"
                if self._is_distributed and terminal.isatty
                else f"jrh: {refusal}"
            )
            return
        self._serve(wanted)
        self._invite(terminal)

    def _open_page(self, suites: list[Suite]) -> PageApi:
        """The page that these suites want: that of blind labelling, or that of decisions."""
        blind = [suite.name for suite in suites if self._suites.labels_blind(suite)]
        if len(blind) == len(suites):
            return self._blind_page(suites)
        if blind:
            others = [suite.name for suite in suites if suite.name not in blind]
            raise pytest.UsageError(
                f"--jrh-review: {', '.join(blind)} {_is(blind)} to be labelled blind "
                f"(review.blind), {', '.join(others)} {_is(others)} not: say --jrh-review=blind or "
                "--jrh-review=decide"
            )
        from pytest_jrh.review.agent_templates import AgentTemplates
        from pytest_jrh.review.api import Api

        self._on_page = frozenset(suite.name for suite in suites)
        desk = self.desk
        assert desk is not None
        for case in _rejected_before(suites):
            desk.board.add(case)
        return Api(desk.board, AgentTemplates(suites))

    def _blind_page(self, suites: list[Suite]) -> PageApi:
        from pytest_jrh.review.blind import open_labels
        from pytest_jrh.review.blind_page import BlindApi

        self._labelled = frozenset(suite.name for suite in suites)
        self._labels = open_labels(
            suites,
            [each for suite in suites for each in self._suites.named(suite.name).people],
            reviewer=self._options.reviewer,
            redact=self._redactor.text,
        )
        for case in _rejected_before(suites):
            self._labels.add(case)
        return BlindApi(self._labels)

    @cached_property
    def desk(self) -> ReviewDesk | None:
        """Where the engine submits its cases; None where there are no decisions and can be none
        about any.

        Raises `InputError` for decisions that cannot be read.
        """
        suites = [ready.suite for ready in self._suites]
        obeying = self._on_page.union(suite.name for suite in suites if has_decisions(suite))
        if not obeying and self._labels is None:
            return None
        from pytest_jrh.review.board import ReviewBoard, ReviewDesk
        from pytest_jrh.store.decisions import open_stores
        from pytest_jrh.store.records import case_digest

        stores = open_stores(suites, redact=self._redactor.text)
        board = ReviewBoard(stores, digest=case_digest)
        if self._labels is None:
            return ReviewDesk(board, obeying, self._on_page)
        from pytest_jrh.review.blind import BlindDesk

        return BlindDesk(board, obeying, labels=self._labels, labelled=self._labelled)

    def wait(self, line: ProgressLine | None) -> None:
        """Wait for Finalize, on the page or with Enter; not if there is nothing to look at.

        Before the first item: the time that people take is none of its own, and no limit on it
        counts.
        """
        if self._server is None or self.desk is None:
            return
        board, keys = self._labels or self.desk.board, self._keyboard
        try:
            with keys.quiet() if keys is not None else contextlib.nullcontext():
                while not board.wait_finalized(_MEANWHILE):
                    now = board.progress()
                    if now.is_empty:
                        return
                    if keys is not None and keys.entered():
                        board.finalize()
                    elif line is not None:
                        line.say(now.line("Enter" if keys is not None else board.FINISH))
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
        if self._keyboard is not None:
            self._keyboard.close()

    def _is_wanted(self, ready: ReadySuite) -> bool:
        """Whether the suite itself asks for the page: where cases are made anew, and only for them
        (rules K).
        """
        if not ready.suite.generation.use_hitl or ready.suite.replay.frozen is not None:
            return False
        return self._options.disable_recording or self._suites.modes(ready)[0] != "none"

    @property
    def _is_distributed(self) -> bool:
        return bool(self._config.getoption("dist", "no") != "no")

    def _refusal(self) -> str | None:
        if self._is_distributed:
            return "the review page is not supported under xdist; review with -n0"
        if os.environ.get("CI"):
            return "no review page where CI is set; recorded decisions apply"
        return None

    def _refusal_unasked(self, terminal: pytest.TerminalReporter) -> str | None:
        """Why a suite that asks for the page itself does not get it where `--jrh-review` would."""
        if self._keyboard is None or not terminal.isatty:
            return (
                "use_HITL_process opens the review page only on a terminal; --jrh-review opens it "
                "anywhere"
            )
        from pytest_jrh.review.serving import require_review

        try:
            require_review()
        except InputError as error:
            return f"use_HITL_process: {error}".replace("\n", " ")
        return None

    def _serve(self, suites: list[Suite]) -> None:
        from pytest_jrh.review.serving import serve

        try:
            self._server = serve(self._open_page(suites))
        except InputError as error:
            raise pytest.UsageError(str(error)) from None

    def _invite(self, terminal: pytest.TerminalReporter) -> None:
        assert self._server is not None
        here = ", on the page or with Enter here" if self._keyboard is not None else " on the page"
        what, then = (
            ("review the cases", "judging starts when you finalize")
            if self._labels is None
            else ("label the cases blind", "the run goes on when you finish")
        )
        terminal.write_line(f"jrh: {what} at {self._server.url}", bold=True)
        terminal.write_line(f"jrh: {then}{here}")
        # Through a pipe it would stand in a buffer, and everybody wait.
        terminal.flush()


def _keyboard(config: pytest.Config) -> Keyboard | None:
    """The terminal that pytest was started from, between two tests; None where there is none."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    try:
        return terminal_input()
    finally:
        if capture is not None:
            capture.resume_global_capture()
            capture.suspend_global_capture()


def _rejected_before(suites: Iterable[Suite]) -> Iterator[Case]:
    """The cases that the verifier rejected, of suites that do not make them again."""
    for suite in suites:
        if suite.replay.frozen is not None:
            yield from rejected_cases(suite)


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"

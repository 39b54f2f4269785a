"""What a pytest process holds for its suites: how it runs their cases, what the controller decides
about each suite, and what it does while it waits: for people, whose page it opens, and for models,
of whose work it says now and then how far it is (under xdist pytest's own lines do).

The commands that it prints find the same suites and files again, from the folder it was started in.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.config.options import Options
from pytest_jrh.config.suite import Commands, Suite
from pytest_jrh.core import InputError
from pytest_jrh.core.calls import Complete, StageModel
from pytest_jrh.core.cases import UNSCORED, Case, CaseSpec
from pytest_jrh.core.foreign_code import Printed
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.results import CaseResult, JudgeLine
from pytest_jrh.engine.case import EngineSettings
from pytest_jrh.engine.provenance import judge_lines
from pytest_jrh.engine.runner import Engine
from pytest_jrh.engine.suite import LoadedSuites, ReadySuite
from pytest_jrh.llm.limits import EarlyStop, Ledger, Pace, unpriced_reason
from pytest_jrh.people import DecisionStore, has_decisions
from pytest_jrh.people.board import LabelBoard, ReviewBoard, ReviewDesk
from pytest_jrh.people.labels import PersonLabel, write_beside_cases
from pytest_jrh.plugin.options import session_token
from pytest_jrh.reports.case_facts import FailureText, disagreement_text, unscored_text
from pytest_jrh.reports.session import progress_line
from pytest_jrh.review.serving import Page, ReviewServer, serve
from pytest_jrh.stats.verdicts import NO_BASELINE
from pytest_jrh.store.ledger import BaselineFile
from pytest_jrh.store.made_cases import Handover, rejected_cases


@contextlib.contextmanager
def captured(config: pytest.Config) -> Iterator[None]:
    """Leave what is printed in this block to pytest's next report, as what a conftest prints."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is None:
        yield
        return
    capture.resume_global_capture()
    try:
        yield
    finally:
        capture.suspend_global_capture()


@contextlib.contextmanager
def uncaptured(config: pytest.Config) -> Iterator[None]:
    """Let what is printed in this block reach the terminal."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        yield


SESSION = pytest.StashKey["SuiteSession"]()
NOTICES_KEY = "jrh_notices"
_ENDS_SESSION = (KeyboardInterrupt, pytest.exit.Exception)


class SuiteSession:
    """The parts of one pytest process with suites, controller or xdist worker, and its engine."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.is_worker = hasattr(config, "workerinput")
        self.is_distributed = config.getoption("dist", "no") != "no"
        self.redactor = Redactor(secrets_of())
        folder = config.invocation_params.dir
        self.suites = LoadedSuites(options, folder, config.rootpath, self._supplied_judge)
        selection = []
        for flag, expression in (("-k", config.option.keyword), ("-m", config.option.markexpr)):
            selection += [flag, expression] if expression else []
        self.commands = Commands(
            options, folder, lambda name: self.suites.named(name).suite, selection
        )
        self.baseline = BaselineFile(options.baseline, folder, update=options.update_baseline)
        self.reviewing = Reviewing(self)
        self.selected = set[str]()
        self.named_configs: Sequence[Path] = ()
        self._token = session_token(config)
        self.handover = Handover(self._token, self.redactor)
        self.engine: Engine | None = None
        # When the engine was started, and when it was last said how far it is.
        self.started = self._said = 0.0
        self._abandoned = False
        # Of cases without a verdict, each once.
        self.unscored_texts = set[str]()
        # Undoes what keeps programs from the terminal.
        self.programs = contextlib.ExitStack()
        self.workers_notices: list[str] = []
        self._parent = os.getppid()

    @property
    def notices(self) -> Sequence[str]:
        """Sentences of the suites and of the models' client that the user should read once."""
        engine = self.engine.notices if self.engine else ()
        notices = (*self.suites.notices, *engine, *self.workers_notices, *self.handover.notices)
        return tuple(dict.fromkeys(notices))

    @property
    def _prints_at_once(self) -> bool:
        capture = self.config.pluginmanager.get_plugin("capturemanager")
        return capture is None or not capture.is_globally_capturing()

    def load(self, path: Path) -> ReadySuite:
        """Load a suite; no key is in what its code prints meanwhile."""
        printed = Printed(self.redactor.of_code, at_once=self._prints_at_once)
        try:
            with printed.keeping():
                return self.suites.load(path)
        finally:
            printed.give()

    def start(self, specs: Sequence[CaseSpec]) -> None:
        """Set these cases to work, in order."""
        if specs:
            self._running().start(specs)

    def wait(self, spec: CaseSpec) -> None:
        """Wait until a case has come to its end."""
        engine = self._running()
        with captured(self.config):
            engine.wait(spec, self._say_progress)

    def _say_progress(self) -> None:
        seconds = time.monotonic() - self.started
        self.say(progress_line(self._running().progress, seconds, _WIDTH))

    def say(self, text: str) -> None:
        """Write a line of text, if it is time to; not with `-q`, in an xdist worker and without
        pytest's terminal.
        """
        terminal: Any = self.config.pluginmanager.get_plugin("terminalreporter")
        is_heard = terminal is not None and not self.is_worker and self.config.option.verbose >= 0
        time_now = time.monotonic()
        if is_heard and time_now - self._said >= INTERVAL:
            self._said = time_now
            # While an item runs, what goes to the terminal is captured too.
            with uncaptured(self.config):
                terminal.ensure_newline()
                terminal.write_line(text)
                terminal.flush()

    def result(self, spec: CaseSpec) -> CaseResult:
        """The result of a case, which is waited for."""
        try:
            return self._running().result(spec, self._say_progress)
        except pytest.exit.Exception as end:
            # Without its exit code: 0 would be green, and xdist takes a worker that ends with any
            # but pytest's own for one that crashed.
            raise pytest.exit.Exception(end.msg) from end

    def failure(self, result: CaseResult) -> FailureText | None:
        """What is said of a case that failed or has no verdict, once it has its result."""
        spec = result.spec
        if result.outcome in UNSCORED:
            # A call that failed is in no cassette either: only a recording run makes it again.
            return unscored_text(result, command=self.commands.again(spec, result))
        wrong = self._running().wrong_cases.pop(spec, None)
        if wrong is None:
            return None
        column = self.suites.named(spec.suite).grounds.column
        return disagreement_text(
            wrong.case,
            result,
            cassette=wrong.cassette,
            command=self.commands.rerun(spec),
            column=column,
        )

    def check_budget(self) -> None:
        """Refuse a limit in dollars over models of which no price is known."""
        limit = self.options.max_cost
        if limit is None:
            return
        stages: list[StageModel] = []
        for ready in filter(self.suites.asks, self.suites):
            stages += ready.suite.stages.values()
            stages += (judge.model for judge in ready.judges.values())
        reason = unpriced_reason(limit, stages)
        if reason is not None:
            raise pytest.UsageError(reason)

    def stop(self) -> None:
        """End the engine, unless abandoned; calls in flight are awaited and recorded."""
        if self.engine is not None and not self._abandoned:
            self.engine.stop()
        self.programs.close()
        self.reviewing.close()
        self.handover.close()
        if not self.is_worker and any(self.suites):
            for path in self._locks.glob(f"*-{self._token}*"):
                path.unlink(missing_ok=True)

    def _running(self) -> Engine:
        if self.engine is None:
            self.started = self._said = time.monotonic()
            options = self.options
            self.check_budget()
            workers = max(ready.suite.config.recording.max_workers for ready in self.suites)
            processes: int = self.config.workerinput["workercount"] if self.is_worker else 1  # type: ignore[attr-defined]
            # The limit is the session's: each worker has its share, of at least one.
            workers = max(1, workers // processes)
            stops = self._locks / f"stops-{self._token}.json"
            budget = None
            if options.max_calls is not None or options.max_cost is not None:
                budget = self._locks / f"budget-{self._token}.json"
            complete: Complete | None = None
            if any(map(self.suites.asks, self.suites)):
                # The project's own client.
                complete = self.config.hook.pytest_jrh_complete(config=self.config)
            settings = EngineSettings(
                max_workers=workers,
                redactor=self.redactor,
                on_case=self._keep,
                record_modes=self.suites.modes,
                complete=complete,
                retry_unscored=options.retry_unscored,
                ends_session=_ENDS_SESSION,
                # Its limits hold for the sessions beside this one, too.
                pace=Pace(self._locks / "pace.json"),
                stops=EarlyStop(stops if self.is_worker else None),
                session=self._token,
                prints_at_once=self._prints_at_once,
                # The process that started this one, an xdist controller.
                is_orphan=lambda: self.is_worker and os.getppid() != self._parent,
                ledger=Ledger(budget, calls=options.max_calls, cost=options.max_cost),
                ask=not options.plan,
                review=self.reviewing.desk,
            )
            self.engine = Engine({ready.suite.name: ready for ready in self.suites}, settings)
        return self.engine

    def _supplied_judge(self, suite: str) -> Callable[..., object] | None:
        """The judge of the project's code for a suite."""
        judge: object = self.config.hook.pytest_jrh_judge(config=self.config, suite=suite)
        if judge is None or callable(judge):
            return judge
        kind = type(judge).__name__
        raise pytest.UsageError(f"the hook pytest_jrh_judge returned {kind}, not a function")

    def _keep(self, case: Case) -> None:
        if not self.options.plan:
            self.handover.keep(case, self.suites.named(case.spec.suite).suite)

    @property
    def _locks(self) -> Path:
        """The folder of what the processes of a session share."""
        return next(iter(self.suites)).suite.cassette_dir / ".locks"


_SECONDS_BETWEEN_LOOKS = 0.25
_SECONDS_TO_OPEN = 120
"""So long a page waits for somebody where no terminal says that somebody is there."""
_WIDTH = 200
INTERVAL = 30.0
"""Seconds between two lines about how far a session is."""


class Reviewing:
    """The review of one pytest process; decisions hold in all, the page is open in one at most."""

    def __init__(self, session: SuiteSession) -> None:
        self._session = session
        self._on_page: frozenset[str] = frozenset()
        self._labels: LabelBoard | None = None
        self._server: ReviewServer | None = None
        self._last_look = math.inf

    def open(self, specs: Sequence[CaseSpec]) -> None:
        """Serve the page where it is wanted for these cases, or say why there is none."""
        session = self._session
        is_asked = session.options.review is not None
        selected = {spec.suite for spec in specs}
        suites = []
        for ready in session.suites:
            suite = ready.suite
            # A suite asks for the page itself only where cases are made anew.
            makes_cases = suite.frozen is None and session.suites.modes(suite)[0] != "none"
            is_wanted = is_asked or (suite.config.rand.review and makes_cases)
            if is_wanted and (suite.name in selected or session.is_distributed):
                suites.append(suite)
        terminal: pytest.TerminalReporter | None = session.config.pluginmanager.get_plugin(
            "terminalreporter"
        )
        if not suites or terminal is None:
            return
        refusal = ""
        if session.is_distributed:
            refusal = "the review page is not supported under xdist; review with -n0"
        elif os.environ.get("CI"):
            refusal = "no page is opened, because CI is set; decisions of earlier reviews apply"
        elif not (is_asked or terminal.isatty):
            refusal = "to open the review page without a terminal, pass --jrh-review"
        if refusal:
            terminal.write_line(f"jrh: {refusal}")
            return
        try:
            self._server = serve(self._open_page(suites))
        except InputError as error:
            raise pytest.UsageError(f"--jrh-review: {error}") from None
        task = "review the cases" if self._labels is None else "label the cases blind"
        terminal.write_line(f"jrh: {task} at {self._server.url}", bold=True)
        terminal.write_line("jrh: the session continues when you press Finish on the page")
        if not terminal.isatty:
            self._last_look = time.monotonic() + _SECONDS_TO_OPEN
        # Through a pipe it would stand in a buffer, and everybody wait.
        terminal.flush()

    def _open_page(self, suites: list[Suite]) -> Page:
        """The page that these suites want: that of blind labelling, or that of decisions."""
        session = self._session
        self._on_page = frozenset(suite.name for suite in suites)
        people: tuple[PersonLabel, ...] = ()
        judges: list[JudgeLine] = []
        for suite in suites:
            ready = session.suites.named(suite.name)
            people += ready.people
            judges += judge_lines(suite.name, ready.judges, session.redactor)
        if session.options.review == "blind":
            reviewer, redact = session.options.reviewer, session.redactor.text
            settings = {suite.name: suite.config.blind for suite in suites}
            write = write_beside_cases(suites)
            self._labels = LabelBoard(settings, people, write, redact=redact, reviewer=reviewer)
        desk = self.desk
        assert desk is not None
        for suite in suites:
            if suite.frozen is not None:
                # The cases that the verifier rejected, which this session does not make again.
                for case in rejected_cases(suite):
                    desk.page.add(case)
        from pytest_jrh.review import Deciding, Labelling

        if self._labels is not None:
            return Labelling(self._labels)
        baseline = session.baseline.content or NO_BASELINE
        return Deciding(desk.board, suites, people, baseline, judges)

    @cached_property
    def desk(self) -> ReviewDesk | None:
        """Where the engine submits cases, if any can be decided; raises `InputError`."""
        suites = [ready.suite for ready in self._session.suites]
        obeying = {suite.name for suite in suites if has_decisions(suite)}
        if self._labels is None:
            # What is decided on the page is obeyed.
            obeying |= self._on_page
        if not obeying and self._labels is None:
            return None
        board = ReviewBoard(DecisionStore(suites, self._session.redactor))
        page = self._labels or board
        return ReviewDesk(board, page, frozenset(obeying), self._on_page)

    def wait(self) -> None:
        """Wait for the page's end before the first item, so that people's time counts for none."""
        if self._server is None or self.desk is None:
            return
        board, opened = self.desk.page, self._server.opened
        try:
            while not board.finalized.wait(_SECONDS_BETWEEN_LOOKS):
                progress = board.progress()
                if 0 < progress.total == progress.ended and not progress.shown:
                    # No case could be made, so that there is nothing to look at.
                    return
                self._session.say(board.line())
                if time.monotonic() > self._last_look and not opened.is_set():
                    raise pytest.UsageError(
                        f"--jrh-review: nobody opened the page in {_SECONDS_TO_OPEN} seconds; "
                        "without a terminal the session does not wait any longer"
                    )
        finally:
            # The time that the cases take shows in what follows.
            self._session.started = time.monotonic()
        if self._labels is not None:
            try:
                self._session.suites.read_people_again()
            except InputError as error:
                raise pytest.UsageError(str(error)) from None

    def close(self) -> None:
        """End the page; doing it twice is fine."""
        if self._server is not None:
            self._server.stop()

"""The controller's part: gathers results from reports, decides, writes the artifacts, and prints
what came of it: head, figures, notes that are worth reading once, and unused cassettes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import filterfalse
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.config.load import looks_like_suite
from pytest_jrh.core import InputError, absolute, grouped, relative_path, shortened
from pytest_jrh.core.files import LineFiles
from pytest_jrh.core.ids import cassette_path, node_part
from pytest_jrh.core.results import CaseResult
from pytest_jrh.engine.provenance import header_line, origin_lines, suite_run
from pytest_jrh.engine.suite import ReadySuite, specs_of
from pytest_jrh.plugin.collect import DECISION, CaseItem, DecisionItem, SuiteFile, run_decisions
from pytest_jrh.plugin.options import RESULT_ATTRIBUTE, may_be_case
from pytest_jrh.plugin.session import NOTICES_KEY, SuiteSession, captured
from pytest_jrh.recording.cassettes import (
    cassette_file,
    cassettes_in,
    gather,
    is_snapshot_change,
    prune,
    unused_cassettes,
)
from pytest_jrh.reports.ending import Concluded, EndSettings, conclude, ending_lines
from pytest_jrh.reports.report import Display
from pytest_jrh.reports.session import Session, SuiteRun
from pytest_jrh.reports.summary import worst_verdicts
from pytest_jrh.stats.decision import Decision
from pytest_jrh.stats.verdicts import is_active
from pytest_jrh.store.ledger import ledger_path, result_from

_FINISHED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
_WIDEST = 120
_NO_DECISION = "no decision was made, because no case of the suite was run"


class Reporter:
    """Registered in the controller alone, and only where suites are in play.

    Its hooks are in the order of a session: results are kept as they come; once all cases have come
    to their end it is decided about them, reports are written, and each decision is run as a test;
    what came of it is printed at the end.
    """

    def __init__(self, session: SuiteSession) -> None:
        self._session = session
        self._config = session.config
        self._folder = session.config.invocation_params.dir
        self._options = session.options
        self._is_plan = session.options.plan or bool(session.config.option.collectonly)
        self._suites = session.suites
        self._started = time.monotonic()
        # The ledgers of suites: a killed session has left what it knew.
        self._ledgers = LineFiles()
        # By node id.
        self.results: dict[str, CaseResult] = {}
        self._left_out = set[str]()
        self._has_decided = False
        self._concluded: Concluded | None = None
        self._decisions: Mapping[str, Decision] = {}
        self._problems: list[str] = []
        self._is_green = True
        self._pruned_lines: list[str] = []

    def pytest_report_header(self) -> list[str]:
        """Say which suites are in play, and where their calls are answered from."""
        lines = []
        for ready in self._suites:
            mode, judge = self._suites.modes(ready.suite)
            judging = f", judge {judge}" if judge != mode else ""
            redactor = self._session.redactor
            made_by = redactor.text(header_line(ready, self._folder, redactor))
            line = f"jrh: {ready.suite.name}, record mode {mode}{judging}; {made_by}"
            if self._config.option.verbose <= 0:
                # The reports say all of it.
                line = shortened(line, min(self._config.get_terminal_writer().fullwidth, _WIDEST))
            lines.append(line)
        return lines

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep what is to run; under xdist the workers tell it."""
        for item in session.items:
            if isinstance(item, CaseItem):
                self._session.selected.add(item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result that a report carries: of attempts without a verdict the last."""
        text = getattr(report, RESULT_ATTRIBUTE, None)
        if text is not None:
            result = self.results[report.nodeid] = result_from(text)
            # That of a suite that only workers know by now is written at the end of the session.
            for ready in self._suites:
                if ready.suite.name == result.suite:
                    # What cannot be written, as on a full disk, is missing until the session's end,
                    # which writes the whole file and says so.
                    with contextlib.suppress(OSError):
                        self._ledgers.add(ledger_path(ready.suite), text.encode())
        elif report.when == "setup" and report.skipped:
            # A marker or another plugin has skipped it: it was left out on purpose.
            self._left_out.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over a worker's notices."""
        output = getattr(node, "workeroutput", {})
        self._session.workers_notices += output.get(NOTICES_KEY, ())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Decide once all cases have come to their end, and run each decision as a test."""
        ran = yield
        if not self._is_plan:
            self._session.stop()
            self._decide(session)
            self._has_decided = True
            run_decisions(session, self._decision_items(session))
        return ran

    # Last of all, because until xdist has ended its workers they go on spooling.
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Decide about what was ended before its time; a session without verdicts is not green."""
        if not self._has_decided:
            self._decide(session)
            if self._last_failed is not None:
                self._last_failed.pytest_sessionfinish(session)
            if session.exitstatus in _FINISHED and not self._is_plan:
                for ready in self._undecided():
                    self._is_green = False
                    name = ready.suite.name
                    self._problems.append(
                        f"This session is not green: in the suite {name!r}, {_NO_DECISION}."
                    )
        self._session.handover.clear(ready.suite for ready in self._suites)
        for ready in self._suites:
            if ready.suite.one_cassette and self._suites.asks(ready) and not self._is_plan:
                self._problems += gather(ready.suite.cassette_dir)
        if self._options.prune:
            self._prune()
        if not self._is_green and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    # Outside of pytest's own wrapper, which prints sections before the hooks of plugins, and the
    # short summary after them.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Print figures, spending, what went wrong beside the cases, and last the answer."""
        try:
            return (yield)
        finally:
            self._print_section(terminalreporter)

    @property
    def _last_failed(self) -> Any:
        """The plugin of `--lf`; None where it is switched off."""
        return self._config.pluginmanager.get_plugin("lfplugin")

    def _decide(self, session: pytest.Session) -> None:
        """Decide about the results, and write baseline and reports."""
        self._ledgers.close()
        ready_suites, nodes = self._suites_and_nodes()
        engine, commands = self._session.engine, self._session.commands
        # An error of collection interrupts a session, too, before anything is asked.
        is_interrupted = session.exitstatus == pytest.ExitCode.INTERRUPTED
        began = bool(nodes) and engine is not None and not self._is_plan
        if not self.results and not (began and is_interrupted):
            return
        results = {result.case_id: result for result in self.results.values()}
        runs = [self._run(ready, results, nodes) for ready in ready_suites]
        suites = [ready.suite for ready in ready_suites]
        is_ended = session.exitstatus in _FINISHED
        concluded = conclude(
            runs,
            EndSettings(
                Session(
                    (),
                    wall_seconds=time.monotonic() - self._started,
                    command=partial(commands.run_all, suites),
                    record_command=commands.record_all(suites, results.values()),
                    about=self._session.suites.notices,
                    origin=[*origin_lines(runs, self._folder)],
                    unreported=engine.unreported if engine is not None else [],
                    model_changes=tuple(filter(is_snapshot_change, self._session.notices)),
                    redactor=self._session.redactor,
                    folder=self._folder,
                ),
                self._session.baseline,
                self._options.reports,
                commands.update_baseline,
                stopped=bool(session.shouldfail or session.shouldstop) or not is_ended,
                reviewed=self._options.review is not None,
            ),
        )
        self._concluded = concluded
        self._decisions = concluded.session.decisions
        self._is_green &= concluded.passed
        self._remember_failed(concluded, nodes)
        self._problems += concluded.problems

    def _suites_and_nodes(self) -> tuple[list[ReadySuite], dict[str, str]]:
        """The suites of what was to run and of results, and the node ids of these cases by case id;
        a controller meets discovered suites here.
        """
        nodeids = sorted({*self._session.selected, *self.results})
        # No other part of a case's node id can hold `::`.
        nodes_by_file = grouped((nodeid.rsplit("::", 3)[0], nodeid) for nodeid in nodeids)
        loaded = {ready.suite.config_file for ready in self._suites}
        paths = set()
        nodes = {}
        for file, nodes_of_file in nodes_by_file.items():
            path = absolute(self._config.rootpath / file)
            if path not in loaded and not (may_be_case(file) and looks_like_suite(path)):
                continue
            try:
                with captured(self._config):
                    suite = self._suites.load(path).suite
            except InputError as error:
                # Results that belong to no suite are in no report, so the session is not green.
                self._is_green = False
                self._problems.append(f"The results of {file} were not written: {error}")
                continue
            paths.add(path)
            for nodeid in nodes_of_file:
                nodes[f"{node_part(suite.name)}{nodeid.removeprefix(file)}"] = nodeid
        return [ready for ready in self._suites if ready.suite.config_file in paths], nodes

    def _run(
        self, ready: ReadySuite, results: Mapping[str, CaseResult], nodes: Mapping[str, str]
    ) -> SuiteRun:
        """What the session ran of a suite; `results` and `nodes` are those of all suites."""
        session = self._session
        run = suite_run(
            ready, results, session.commands, session.baseline, self._folder, session.redactor
        )
        left_out = set()
        for case in run.cases.specs:
            if case not in results and nodes.get(case) in self._left_out:
                left_out.add(case)
        return replace(
            run,
            selected=(run.cases.specs.keys() & nodes.keys()) - left_out,
            spools=sorted(session.handover.folder(ready.suite).glob("*.jsonl")),
            left_out=left_out,
            frozen=ready.frozen_cases if ready.suite.frozen is not None else None,
        )

    def _remember_failed(self, concluded: Concluded, nodes: Mapping[str, str]) -> None:
        """Let `--lf` select the cases that a decision rests on, and those that are wrong in what
        passed: their items are xfailed.
        """
        if self._last_failed is None:
            return
        cases: list[str] = []
        for decision in self._decisions.values():
            for reason in decision.reasons:
                if not decision.passed and reason.word == decision.word:
                    cases += reason.cases
        if concluded.passed:
            # What is next of them is to read what is wrong.
            cases.extend(worst_verdicts(concluded.session).ids)
        self._last_failed.lastfailed |= {nodes[case]: True for case in cases if case in nodes}

    def _decision_items(self, session: pytest.Session) -> Iterator[DecisionItem]:
        """The decisions of suites with a baseline or a limit as tests; none where nothing was
        collected. The first sentence of each is its headline.
        """
        if not session.testscollected:
            return
        undecided = self._undecided()
        for ready in self._suites:
            sentences, passed = [_NO_DECISION], False
            decision = self._decisions.get(ready.suite.name)
            if decision is not None and decision.active:
                sentences = [*map(self._session.redactor.text, decision.sentences)]
                passed = decision.passed
            elif ready not in undecided:
                continue
            path = ready.suite.config_file
            node = relative_path(path, self._config.rootpath).as_posix()
            file = SuiteFile.from_parent(session, path=path, nodeid=node)
            item: DecisionItem = DecisionItem.from_parent(
                file,
                name=DECISION,
                sentences=sentences,
                passed=passed,
                is_shown=ready not in undecided,
            )
            yield item

    def _undecided(self) -> list[ReadySuite]:
        """The suites with a baseline or a limit that were named and of which no case was run."""
        undecided = []
        for ready in self._suites:
            is_named = ready.suite.config_file in self._session.named_configs
            is_held = is_active(ready.suite.gate, self._session.baseline.content)
            if is_named and is_held and ready.suite.name not in self._decisions:
                undecided.append(ready)
        return undecided

    def _prune(self) -> None:
        """Name unused cassettes, and remove them but in a plan."""
        lines = []
        problems = []
        for ready in self._suites:
            suite = ready.suite
            try:
                unused = _unused_of(ready)
                if not self._is_plan:
                    unused, problems_of_suite = prune(suite.cassette_dir, unused)
                    problems += problems_of_suite
            except InputError as error:
                problems.append(str(error))
                continue
            for path in unused:
                file = relative_path(cassette_file(path, shared=suite.one_cassette), self._folder)
                lines.append(f"  {file}: {path.stem}" if suite.one_cassette else f"  {file}")
        if lines:
            done = "unused" if self._is_plan else "removed"
            self._pruned_lines += [f"{done} cassettes: {len(lines)}", *lines]
        self._problems += problems
        self._is_green &= not problems

    def _print_section(self, terminal: pytest.TerminalReporter) -> None:
        display = Display(
            folder=self._folder, width=terminal._tw.fullwidth, verbosity=terminal.verbosity
        )
        notices = [*self._problems]
        if display.verbosity >= 0:
            # The reports say changes of models where they belong.
            notices[:0] = filterfalse(is_snapshot_change, self._session.notices)
        if not (self._concluded or notices or self._pruned_lines):
            return
        lines = ending_lines(self._concluded, display, first=self._pruned_lines, notices=notices)
        terminal.write_sep("=", "judge reliability")
        for styled in lines:
            terminal.write_line(styled.text, **dict.fromkeys(styled.style.split(), True))


def _unused_of(ready: ReadySuite) -> list[Path]:
    """The cassettes in the folder of a suite that none of its cases uses."""
    folder = ready.suite.cassette_dir
    recorded = dict.fromkeys(cassettes_in(folder))
    specs = [*ready.specs()]
    if ready.suite.frozen is None:
        # And those that stay on disk as they were made, also where the log no longer has their
        # runs.
        for made in ready.made.values():
            specs += specs_of(made, ready.suite, ready.recorded)
    used = set()
    for spec in specs:
        of_judge = ready.suite.verdicts_at(spec)
        used.update([cassette_path(folder, spec, judging=False), of_judge])
        if of_judge not in recorded:
            # Its judge may be answered from what it recorded under another name.
            used.update(ready.former_cassettes(spec))
    return unused_cassettes(recorded, used, frozen=ready.suite.frozen is not None)

"""The controller's part: gathers results from reports, decides, writes the artefacts, and prints what came of it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.artifacts.stored import result_from
from pytest_jrh.errors import InputError
from pytest_jrh.gate.baseline import Scope
from pytest_jrh.models import MADE, CaseResult
from pytest_jrh.plugin.collect import CaseItem, properties_of_others
from pytest_jrh.plugin.gating import case_ids, decide, extents, named_suites, place_of, undecided
from pytest_jrh.plugin.options import YAML_SUFFIXES, absolute
from pytest_jrh.plugin.session import NOTICES_KEY, RECORD_ATTRIBUTE, RESULT_ATTRIBUTE
from pytest_jrh.recording.unused import prune, unused_cassettes
from pytest_jrh.reporting.annotations import annotation_lines
from pytest_jrh.reporting.gate_text import styled_gate_lines
from pytest_jrh.reporting.report_files import write_reports
from pytest_jrh.reporting.session_results import SessionResults, gather
from pytest_jrh.reporting.suite_files import write_suite_outputs
from pytest_jrh.reporting.terminal import session_lines
from pytest_jrh.stats.panels import counted_once
from pytest_jrh.suite.cases import case_id, cassette_path
from pytest_jrh.suite.config import looks_like_suite
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from pytest_jrh.artifacts.spools import RecordIndex
    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.models import CaseSpec
    from pytest_jrh.plugin.session import SuiteSession
    from pytest_jrh.text import Styled

_FINISHED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class Reporter:
    """Registered in the controller alone, and only where suites are in play."""

    def __init__(self, session: SuiteSession) -> None:
        self._session = session
        self._started = time.monotonic()
        self._results: dict[str, CaseResult] = {}
        self._sent: dict[str, Mapping[str, Any]] = {}
        self._repeated: set[str] = set()
        self._problems: list[str] = []
        self._unused: list[Path] = []
        self._pruned = False
        self._unpruned = False
        self._unwritten = False
        self._lost = False
        self._stopped = False
        self._kept_spools: set[Path] = set()
        self._heard: set[str] = set()
        self._left_out: set[str] = set()
        self._told: SessionResults | None = None
        self._written: list[Path] = []
        self._updates: list[str] = []

    def pytest_report_header(self) -> list[str]:
        """Say which suites are in play, and where their calls are answered from."""
        options = self._session.options
        lines = []
        for ready in self._session.suites:
            mode, judge = ("disabled",) * 2 if options.disable_recording else self._session.modes(ready)
            judging = f", judge {judge}" if judge != mode else ""
            folder = _shown(self._session.cassette_dir(ready), self._session.config.invocation_params.dir)
            lines.append(f"jrh: suite {ready.suite.name} ({ready.suite.mode}), recording {mode}{judging}, {folder}")
        return lines

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep what is to run; under xdist the workers tell it."""
        self._session.selected.update(item.nodeid for item in session.items if isinstance(item, CaseItem))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result that a report carries; the last attempt of a case counts."""
        self._heard.add(report.nodeid)
        outcome: str = report.outcome
        if outcome == "rerun":  # as rerun plugins call an attempt that they repeat
            self._repeated.add(report.nodeid)
        if report.when == "teardown" and report.nodeid in self._repeated:
            # The end of an attempt that is repeated: JUnit is to have the properties of the last one alone.
            self._repeated.remove(report.nodeid)
            report.user_properties[:] = properties_of_others(report.user_properties)
        result = getattr(report, RESULT_ATTRIBUTE, None)
        if result is not None:
            self._results[report.nodeid] = result_from(result)
        elif report.when == "setup" and report.skipped:
            # A marker or another plugin has skipped it: it was left out on purpose.
            self._left_out.add(report.nodeid)
        record = getattr(report, RECORD_ATTRIBUTE, None)
        if record is not None:
            self._sent[record["case_id"]] = record

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker's client had to say."""
        self._session.hear(getattr(node, "workeroutput", {}).get(NOTICES_KEY, ()))

    # Last of all, because until xdist has ended its workers they go on spooling.
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Decide, and write baseline, artefacts and reports; a session without verdicts is not green (rule F2)."""
        places = self._places()
        nodes = case_ids([*self._session.selected, *self._results], places)
        concluded = not self._heard.isdisjoint(nodes.values())
        green = self._conclude(session, list(places.values()), nodes) if concluded else True
        green = self._all_decided(session, places.values() if concluded else ()) and green and not self._lost
        if not green and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._problems += self._session.spooling.clear(self._kept_spools)
        if self._session.options.report_unused or self._session.options.prune:
            self._pruned = self._session.options.prune and not session.config.option.collectonly
            for ready in self._session.suites:
                self._look_for_unused(ready)
            if self._unpruned and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the figures, the gate's decision, what the session spent, and what went wrong beside the cases."""
        lines = self._lines(terminalreporter)
        notices = [*self._session.notices, *self._problems]
        if not lines and not notices and not self._unused:
            return
        terminalreporter.write_sep("=", "judge reliability")
        for line in lines:
            terminalreporter.write_line(line.text, **({line.style: True} if line.style else {}))
        for update in self._updates:
            terminalreporter.write_line(update)
        folder = self._session.config.invocation_params.dir
        for path in self._written:
            terminalreporter.write_line(f"report: {_shown(path, folder)}")
        for notice in notices:
            terminalreporter.write_line(f"note: {notice}")
        if self._session.options.report_unused or self._session.options.prune:
            done = "removed" if self._pruned else "unused"
            terminalreporter.write_line(f"{done} cassettes: {len(self._unused)}")
            for path in self._unused:
                terminalreporter.write_line(f"  {_shown(path, folder)}")
        if self._told is not None and os.environ.get("GITHUB_ACTIONS") == "true":
            workspace = Path(os.environ.get("GITHUB_WORKSPACE") or self._session.config.rootpath)
            for command in annotation_lines(self._told, workspace):
                terminalreporter.write_line(command)

    def _lines(self, terminal: pytest.TerminalReporter) -> list[Styled]:
        told, width = self._told, terminal._tw.fullwidth
        if told is None:
            return []
        if told.results:
            # With -rs or -ra pytest lists every skip with its whole reason.
            return session_lines(told, width=width, verbosity=terminal.verbosity, skips=not terminal.hasopt("skipped"))
        # No figures, but a worker may have died before the first result.
        return [
            line for decision in told.decisions.values() for line in styled_gate_lines(decision, told.node, width=width)
        ]

    def _places(self) -> dict[str, ReadySuite]:
        """The suites of this session, by the node ids of their files; a controller meets discovered ones here."""
        root = self._session.config.rootpath
        loaded = {ready.suite.config_file for ready in self._session.suites}
        certain = set(map(place_of, self._results))
        found: dict[str, ReadySuite] = {}
        for place in dict.fromkeys(map(place_of, [*self._session.selected, *self._results])):
            path = absolute(root / place)
            known = place in certain or path in loaded
            if not known and not (place.endswith(YAML_SUFFIXES) and looks_like_suite(path)):
                continue
            try:
                found[place] = self._session.suite(path)
            except InputError as error:
                self._lose(f"The results of {place} were not written: {error}")
        order = {ready.suite.config_file: number for number, ready in enumerate(self._session.suites)}
        return dict(sorted(found.items(), key=lambda item: order[item[1].suite.config_file]))

    def _lose(self, problem: str) -> None:
        """Results that belong to no suite are in no report, so the session cannot be green."""
        self._lost = True
        self._problems.append(problem)

    def _all_decided(self, session: pytest.Session, decided: Iterable[ReadySuite]) -> bool:
        """Whether each suite that the command line names has a decision where it has something to decide by."""
        if session.config.option.collectonly or self._session.options.plan or session.exitstatus not in _FINISHED:
            return True
        done = {ready.suite.config_file for ready in decided}
        named = named_suites(self._session.config, self._session.options)
        selected = Counter(absolute(self._session.config.rootpath / place_of(each)) for each in self._session.selected)
        left = [
            undecided(ready, self._session.baseline.content, selected[ready.suite.config_file])
            for ready in self._session.suites
            if ready.suite.config_file in named - done
        ]
        reasons = [reason for reason in left if reason is not None]
        self._problems += reasons
        return not reasons

    def _conclude(self, session: pytest.Session, suites: list[ReadySuite], nodes: Mapping[str, str]) -> bool:
        """Come to the session's results, write all that follows from them, and say whether they are green."""
        stopped = bool(session.shouldfail or session.shouldstop) or session.exitstatus not in _FINISHED
        self._stopped = stopped
        results = {result.case_id: result for result in self._results.values()}
        left_out = {case for case, nodeid in nodes.items() if nodeid in self._left_out} - results.keys()
        selected = nodes.keys() - left_out
        specs = {ready.suite.name: {case_id(spec): spec for spec in ready.specs()} for ready in suites}
        ordered = [results[case] for own in specs.values() for case in own if case in results]
        if len(ordered) < len(results):
            unknown = counted(len(results) - len(ordered), "result")
            self._lose(f"{unknown} belong to no case of the suites as this process reads them, and were not written.")
        results |= {result.case_id: result for result in counted_once(ordered)}
        decisions: dict[str, GateDecision] = {}
        for ready in suites:
            name = ready.suite.name
            own = [results[case] for case in specs[name] if case in results]
            wanted = [case for case in selected if case in specs[name]]
            skipped = [spec for case, spec in specs[name].items() if case in left_out]
            decisions[name] = decide(self._session, ready, own, wanted, stopped=stopped, left_out=skipped)
        self._told = self._gather(suites, specs, results, decisions)
        records = [
            self._write(ready, list(specs[ready.suite.name].values()), decisions[ready.suite.name]) for ready in suites
        ]
        self._report(suites, records)
        known = (case for own in specs.values() for case in own)
        # A worker that died took its cases with it, though pytest went on to the end.
        whole = not stopped and not any(decision.never_reported for decision in decisions.values())
        accepted = self._accept(Scope.of(known, selected), finished=whole)
        outcomes = {result.outcome for result in results.values()}
        judged = not outcomes or bool(outcomes & set(MADE))
        if not judged:
            self._problems.append("No case reached a verdict, so this run is not green.")
        if self._unwritten:
            self._problems.append(
                "This run is not green, because of what could not be written. Make room or fix the permissions, and "
                "run again: what is recorded is not asked again."
            )
        return judged and accepted and not self._unwritten and all(decision.passed for decision in decisions.values())

    def _gather(
        self,
        suites: list[ReadySuite],
        specs: Mapping[str, Mapping[str, CaseSpec]],
        results: Mapping[str, CaseResult],
        decisions: Mapping[str, GateDecision],
    ) -> SessionResults:
        """The results as collected, because those of several workers arrive mixed, and their figures."""
        folder = self._session.config.invocation_params.dir
        ran = {case: spec for own in specs.values() for case, spec in own.items() if case in results}
        return gather(
            [results[case] for case in ran],
            suites[0].suite.sampling_seed,
            rubrics={
                (ready.suite.name, rubric.id): replace(rubric, file=str(absolute(folder / rubric.file)))
                for ready in suites
                for rubric in ready.suite.rubrics
            },
            decisions=decisions,
            extents=extents(specs, results, decisions, stopped=self._stopped),
            wall_seconds=time.monotonic() - self._started,
            nodes={case: self._session.commands.node(spec) for own in specs.values() for case, spec in own.items()},
            # Every case of the HTML report has its command; elsewhere those that went well need none.
            commands={
                case: self._session.commands.rerun(spec)
                for case, spec in ran.items()
                if self._session.options.report is not None or results[case].outcome != "agree"
            },
            record_command=self._session.commands.record_all([ready.suite for ready in suites], results.values()),
        )

    def _accept(self, scope: Scope, *, finished: bool) -> bool:
        """Update the baseline where that is asked for; False where it could not be written."""
        told = self._told
        assert told is not None
        try:
            self._updates += self._session.baseline.accept(told.results, scope, told.node, finished=finished)
        except OSError as error:
            self._problems.append(f"The baseline {self._session.baseline.name} was not written: {error.strerror}.")
            return False
        return True

    def _report(self, suites: list[ReadySuite], records: list[RecordIndex]) -> None:
        told = self._told
        assert told is not None
        if not told.results:
            return
        models = {judge.stage.model for ready in suites for judge in ready.suite.judges}
        written, problems = write_reports(
            self._session.options,
            told,
            records,
            model=models.pop() if len(models) == 1 else "several",
            redactor=self._session.redactor,
            folder=self._session.config.invocation_params.dir,
        )
        self._written += written
        self._problems += problems
        self._unwritten = self._unwritten or bool(problems)

    def _write(self, ready: ReadySuite, specs: list[CaseSpec], decision: GateDecision) -> RecordIndex:
        told = self._told
        assert told is not None
        results = [result for result in told.results if result.suite == ready.suite.name]
        ids = {result.case_id for result in results}
        spools = self._session.spooling.folder(ready.suite)
        self._problems += self._session.spooling.add_sent(ready.suite, self._sent.values())
        written = write_suite_outputs(
            ready.suite,
            [spec for spec in specs if case_id(spec) in ids],
            results,
            sorted(spools.glob("*.jsonl")),
            redactor=self._session.redactor,
            decision=decision,
            frozen=ready.frozen_cases if ready.suite.frozen is not None else None,
            cases=ready.cases(own_log=not (self._session.rubric_file or self._session.log_path)),
            interrupted=self._stopped or bool(decision.never_reported),
        )
        self._problems += written.problems
        self._unwritten = self._unwritten or written.failed
        if written.keep_spools:
            self._kept_spools.add(spools)
        return written.records

    def _look_for_unused(self, ready: ReadySuite) -> None:
        """Find a suite's cassettes that no case uses, and remove them where that is asked for."""
        folder = self._session.cassette_dir(ready)
        used = {cassette_path(folder, spec, judging=judging) for spec in ready.specs() for judging in (False, True)}
        found = unused_cassettes(folder, used, frozen=ready.suite.frozen is not None)
        if self._pruned:
            found, problems = prune(folder, found)
            self._problems += problems
            self._unpruned = self._unpruned or bool(problems)
        self._unused += found


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)

"""The controller's part: gathers results from reports, writes the artefacts, and prints the summary."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.errors import InputError
from pytest_jrh.files import atomic_write
from pytest_jrh.models import TESTS, CaseResult, Spending, Usage
from pytest_jrh.plugin.collect import properties_of_others
from pytest_jrh.plugin.options import absolute
from pytest_jrh.plugin.session import NOTICES_KEY, RECORD_ATTRIBUTE, RESULT_ATTRIBUTE
from pytest_jrh.results.artifacts import write_suite_outputs
from pytest_jrh.results.metrics import group_stats
from pytest_jrh.results.records import record_line
from pytest_jrh.results.report import summary_lines
from pytest_jrh.suite.cases import case_id, cassette_path

if TYPE_CHECKING:
    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.plugin.session import SuiteSession

_SCORED = ("agree", "disagree", "generated")
_CASSETTES = ("generation", "judge-*")


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
        self._kept_spools: set[Path] = set()

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

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result that a report carries; the last attempt of a case counts."""
        outcome: str = report.outcome
        if outcome == "rerun":  # as rerun plugins call an attempt that they repeat
            self._repeated.add(report.nodeid)
        if report.when == "teardown" and report.nodeid in self._repeated:
            # The end of an attempt that is repeated: JUnit is to have the properties of the last one alone.
            self._repeated.remove(report.nodeid)
            report.user_properties[:] = properties_of_others(report.user_properties)
        result = getattr(report, RESULT_ATTRIBUTE, None)
        if result is not None:
            self._results[report.nodeid] = _result(result)
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
        """Write the artefacts; a session whose suites reached no verdict is not green (semantics F)."""
        for ready in self._reported():
            self._write(ready)
        for ready in self._session.suites:
            spools = self._session.spool_dir(ready.suite)
            if spools not in self._kept_spools:
                shutil.rmtree(spools, ignore_errors=True)
        outcomes = {result.outcome for result in self._results.values()}
        if outcomes and not outcomes & set(_SCORED):
            self._problems.append("No case reached a verdict, so this run is not green.")
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._session.options.report_unused or self._session.options.prune:
            self._unused = [path for ready in self._session.suites for path in self._unused_cassettes(ready)]
            self._pruned = self._session.options.prune and not session.config.option.collectonly
            if self._pruned:
                for path in self._unused:
                    path.unlink(missing_ok=True)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, what the session spent, and what went wrong beside the cases."""
        results = self._in_order()
        lines = summary_lines(
            group_stats(results),
            sum((result.spending for result in results), Spending()),
            time.monotonic() - self._started,
            terminalreporter._tw.fullwidth,
        )
        notices = [*self._session.notices, *self._problems]
        if not lines and not notices and not self._unused:
            return
        terminalreporter.write_sep("=", "judge reliability")
        for line in lines:
            terminalreporter.write_line(line)
        for notice in notices:
            terminalreporter.write_line(f"note: {notice}")
        if self._session.options.report_unused or self._session.options.prune:
            done = "removed" if self._pruned else "unused"
            folder = self._session.config.invocation_params.dir
            terminalreporter.write_line(f"{done} cassettes: {len(self._unused)}")
            for path in self._unused:
                terminalreporter.write_line(f"  {_shown(path, folder)}")

    def _in_order(self) -> list[CaseResult]:
        """The results by suite, test, rubric and judge, as collected; those of several workers arrive mixed."""
        groups = (
            (ready.suite.name, test.name, rubric.id, judge)
            for ready in self._session.suites
            for test in ready.suite.tests
            for rubric in ready.suite.rubrics
            for judge in ("", *(judge.name for judge in ready.suite.judges if judge.name is not None))
        )
        places: dict[tuple[str, ...], int] = {group: place for place, group in enumerate(groups)}
        return sorted(
            self._results.values(),
            key=lambda result: places.get((result.suite, result.test, result.rubric_id, result.judge), len(places)),
        )

    def _reported(self) -> Iterator[ReadySuite]:
        """The suites that results came from; a controller meets discovered ones here for the first time."""
        root = self._session.config.rootpath
        for name in dict.fromkeys(nodeid.partition("::")[0] for nodeid in self._results):
            try:
                yield self._session.suite(absolute(root / name))
            except InputError as error:
                self._problems.append(f"The results of {name} were not written: {error}")

    def _write(self, ready: ReadySuite) -> None:
        results = [result for result in self._results.values() if result.suite == ready.suite.name]
        ids = {result.case_id for result in results}
        spools = self._session.spool_dir(ready.suite)
        self._spool_sent(spools, ready)
        written = write_suite_outputs(
            ready.suite,
            [spec for spec in ready.specs() if case_id(spec) in ids],
            results,
            sorted(spools.glob("*.jsonl")),
            redactor=self._session.redactor,
        )
        self._problems += written.problems
        if written.keep_spools:
            self._kept_spools.add(spools)

    def _spool_sent(self, spools: Path, ready: ReadySuite) -> None:
        """Put the records that travelled with reports beside those that were spooled."""
        records = [record for record in self._sent.values() if record["suite"] == ready.suite.name]
        if records:
            atomic_write(spools / "sent.jsonl", b"".join(record_line(record) for record in records))

    def _unused_cassettes(self, ready: ReadySuite) -> list[Path]:
        folder = self._session.cassette_dir(ready)
        used = {cassette_path(folder, spec, judging=judging) for spec in ready.specs() for judging in (False, True)}
        # A folder of cassettes may hold other things too: only what looks like a cassette's name is looked at.
        named = (path for test in TESTS for what in _CASSETTES for path in folder.glob(f"{test}/*/*.{what}.yaml"))
        return sorted(path for path in named if path not in used)


def _result(data: Mapping[str, Any]) -> CaseResult:
    spending = data["spending"]
    return CaseResult(**{**data, "spending": Spending(**{**spending, "usage": Usage(**spending["usage"])})})


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)

"""The controller's part: gathers results from reports, decides, writes the artifacts, and prints
what came of it: head, figures, notes that are worth reading once, unused cassettes, and pytest's
sections FAILURES and ERRORS with the texts of cases in few words.

What is printed of a case differs from what the report of its item holds: JUnit, editors and other
plugins get those, with the whole texts.
"""

from __future__ import annotations

import copy
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import TerminalRepr

from pytest_jrh.config.load import looks_like_suite
from pytest_jrh.config.options import NO_PAGE
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import absolute, exists, relative_path
from pytest_jrh.core.ids import case_id, case_title, cassette_path, former_cassettes
from pytest_jrh.core.model import UNSCORED, CaseResult
from pytest_jrh.core.text import columns, counted, log_line, one_line, shortened
from pytest_jrh.engine.provenance import recordings_of, session_origin, suite_origin, suite_run
from pytest_jrh.plugin.collect import CaseItem, properties_of_others
from pytest_jrh.plugin.options import RESULT_ATTRIBUTE, YAML_SUFFIXES
from pytest_jrh.plugin.secrecy import captured
from pytest_jrh.plugin.session import (
    NOTICES_KEY,
    REFUSAL_KEY,
    case_ids,
    place_of,
    undecided,
)
from pytest_jrh.recording.cassettes import is_snapshot_change, prune, unused_cassettes
from pytest_jrh.reports.answer import worst_results
from pytest_jrh.reports.ending import (
    Concluded,
    EndSettings,
    conclude,
    ending_lines,
    named_page,
)
from pytest_jrh.reports.failures import BriefText, FailedCase, Style, brief_texts
from pytest_jrh.reports.provenance import header_line
from pytest_jrh.reports.report import Display
from pytest_jrh.stats.panels import counted_once
from pytest_jrh.store.ledger import LedgerWriter, result_from

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from _pytest._io import TerminalWriter

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import CaseSpec
    from pytest_jrh.engine.suite import ReadySuite
    from pytest_jrh.plugin.session import SuiteSession
    from pytest_jrh.reports.session import Session, SuiteRun


# A session of such cases alone leaves no HTML report, unless its gate fails.
_WENT_WELL = ("agree", "no_case", "unlabelled")
# Where pytest keeps what failed last.
_LAST_FAILED = "cache/lastfailed"
_FINISHED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class Reporter:
    """Registered in the controller alone, and only where suites are in play."""

    def __init__(self, session: SuiteSession) -> None:
        self._session = session
        self._config = session.config
        self._options = session.options
        self._suites = session.suites
        self._handover = session.handover
        self._commands = session.commands
        self._baseline = session.baseline
        self._selected = session.selected
        self._started = time.monotonic()
        self.results: dict[str, CaseResult] = {}
        self._ledger = LedgerWriter()
        self._repeated: set[str] = set()
        self._judged_again: set[str] = set()
        self._problems: list[str] = []
        self._unused: UnusedCassettes | None = None
        self._lost = False
        self._kept_spools: set[Path] = set()
        self._heard: set[str] = set()
        self._left_out: set[str] = set()
        self._concluded: Concluded | None = None
        self.brief = BriefFailures(self.results, self._order, self._name)

    def pytest_report_header(self) -> list[str]:
        """Say which suites are in play, and where their calls are answered from."""
        return list(session_header(self._session))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep what is to run; under xdist the workers tell it."""
        self._selected.update(item.nodeid for item in session.items if isinstance(item, CaseItem))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result that a report carries: of attempts without a verdict the last."""
        self._heard.add(report.nodeid)
        outcome: str = report.outcome
        if outcome == "rerun":  # as rerun plugins call an attempt that they repeat
            self._repeated.add(report.nodeid)
        if report.when == "teardown" and report.nodeid in self._repeated:
            # The end of an attempt that is repeated: JUnit is to have the properties of the last
            # one alone.
            self._repeated.remove(report.nodeid)
            report.user_properties[:] = properties_of_others(report.user_properties)
        result = getattr(report, RESULT_ATTRIBUTE, None)
        if result is not None:
            self.results[report.nodeid] = result_from(result)
            self._append(self.results[report.nodeid].suite, result)
            if outcome == "rerun" and self.results[report.nodeid].score is not None:
                self._judged_again.add(report.nodeid)
        elif report.when == "setup" and report.skipped:
            # A marker or another plugin has skipped it: it was left out on purpose.
            self._left_out.add(report.nodeid)

    def _append(self, suite: str, result: str) -> None:
        """Put a result into the ledger of its suite; of one that only workers know by now, at the
        end of the session.
        """
        for ready in self._suites:
            if ready.suite.name == suite:
                self._ledger.append(result, ready.suite)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over a worker's notices, and end a session that it refused."""
        output = getattr(node, "workeroutput", {})
        self._session.add_notices(output.get(NOTICES_KEY, ()))
        if refusal := output.get(REFUSAL_KEY, ""):
            self._session.refusal = refusal
            xdist_session: Any = self._config.pluginmanager.get_plugin("dsession")
            xdist_session.triggershutdown()
            raise pytest.UsageError(refusal)

    # Last of all, because until xdist has ended its workers they go on spooling.
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Decide, and write baseline and reports; a session without verdicts is not green."""
        self._ledger.close()
        suites = self._suites_by_file()
        nodes = case_ids([*self._selected, *self.results], suites)
        concluded = not self._session.refusal and (
            not self._heard.isdisjoint(nodes.values())
            or bool(nodes and self._was_interrupted(session))
        )
        green = not concluded or self._conclude(session, list(suites.values()), nodes)
        all_decided = self._all_decided(session, suites.values() if concluded else ())
        green = green and all_decided and not self._lost
        if not green and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._handover.clear((ready.suite for ready in self._suites), self._kept_spools)
        if self._options.prune:
            prunes = not (self._options.plan or session.config.option.collectonly)
            self._unused = UnusedCassettes(prunes=prunes)
            for ready in self._suites:
                self._unused.look(ready)
            self._problems += self._unused.problems
            if self._unused.problems and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    # Outside of pytest's own wrapper, which prints the short summary after the hooks of plugins.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Print figures, spending, what went wrong beside the cases, and last the answer."""
        try:
            return (yield)
        finally:
            self._print_section(terminalreporter)

    def _print_section(self, terminalreporter: pytest.TerminalReporter) -> None:
        display = Display(
            folder=self._config.invocation_params.dir,
            workspace=self._config.rootpath,
            width=terminalreporter._tw.fullwidth,
            verbosity=terminalreporter.verbosity,
            # With -rs or -ra pytest lists every skip with its whole reason.
            skips=not terminalreporter.hasopt("skipped"),
            explained=frozenset(self.brief.explained),
        )
        notices = [*self._notices(display), *self._problems]
        unused = self._unused.lines(display.folder) if self._unused is not None else ()
        lines = ending_lines(self._concluded, display, notices=notices, more=unused)
        if not (self._concluded or notices or self._unused):
            return
        terminalreporter.write_sep("=", "judge reliability")
        for styled in lines:
            terminalreporter.write_line(styled.text, **dict.fromkeys(styled.style.split(), True))

    def _order(self, style: Style) -> dict[str, int]:
        """The cases as they were collected; where only some are shown, the worst first."""
        if self._concluded is None:
            return {}
        results = [*self._concluded.session.results]
        if style == "brief":
            results = [*worst_results(self._concluded.session), *results]
        order: dict[str, int] = {}
        for result in results:
            order.setdefault(result.case_id, len(order))
        return order

    def _name(self, case: str) -> str:
        return self._concluded.session.node(case) if self._concluded else case

    def _notices(self, display: Display) -> list[str]:
        """What is to be known of the session beside what went wrong; nothing with `-q`."""
        if display.verbosity < 0:
            return []
        unused_keys = notes_on_unused_keys(self._config, (ready.suite for ready in self._suites))
        again = []
        if number := len(self._judged_again):
            first = "its first verdict counts" if number == 1 else "their first verdicts count"
            was = "was" if number == 1 else "were"
            again.append(f"{counted(number, 'case')} {was} run again: {first}.")
        notices = (text for text in self._session.notices if not is_snapshot_change(text))
        return [*unused_keys, *notices, *again]

    def _suites_by_file(self) -> dict[str, ReadySuite]:
        """The suites by the node ids of their files; a controller meets discovered ones here."""
        root = self._config.rootpath
        loaded = {ready.suite.config_file for ready in self._suites}
        certain = set(map(place_of, self.results))
        suites: dict[str, ReadySuite] = {}
        for file in dict.fromkeys(map(place_of, [*self._selected, *self.results])):
            path = absolute(root / file)
            is_suite = file in certain or path in loaded
            if not is_suite and not (file.endswith(YAML_SUFFIXES) and looks_like_suite(path)):
                continue
            try:
                with captured(self._config):
                    suites[file] = self._suites.load(path)
            except InputError as error:
                self._lose(f"The results of {file} were not written: {error}")
        order = {ready.suite.config_file: number for number, ready in enumerate(self._suites)}
        return dict(sorted(suites.items(), key=lambda item: order[item[1].suite.config_file]))

    def _lose(self, problem: str) -> None:
        """Results that belong to no suite are in no report, so the session cannot be green."""
        self._lost = True
        self._problems.append(problem)

    def _was_interrupted(self, session: pytest.Session) -> bool:
        """Whether cases were at work when the session was interrupted."""
        if session.config.option.collectonly or self._options.plan:
            return False
        # An error of collection interrupts a session, too, before anything is asked.
        began = self._session.is_running or bool(self._session.unreported)
        return began and session.exitstatus == pytest.ExitCode.INTERRUPTED

    def _all_decided(self, session: pytest.Session, decided: Iterable[ReadySuite]) -> bool:
        """Whether each suite that the command line names has a decision where it needs one."""
        if (
            session.config.option.collectonly
            or self._options.plan
            or session.exitstatus not in _FINISHED
        ):
            return True
        done = {ready.suite.config_file for ready in decided}
        selected = Counter(
            absolute(self._config.rootpath / place_of(nodeid)) for nodeid in self._selected
        )
        reasons = []
        for ready in self._suites:
            file = ready.suite.config_file
            if file in self._session.named and file not in done:
                reason = undecided(ready, self._baseline.content, selected[file])
                if reason is not None:
                    reasons.append(reason)
        self._problems += reasons
        return not reasons

    def _conclude(
        self, session: pytest.Session, suites: list[ReadySuite], nodes: Mapping[str, str]
    ) -> bool:
        """Write all that follows from the session's results, and say whether they are green."""
        results = {result.case_id: result for result in self.results.values()}
        left_out = {
            case for case, nodeid in nodes.items() if nodeid in self._left_out
        } - results.keys()
        # As collected, because the results of several workers arrive mixed.
        specs: dict[str, dict[str, CaseSpec]] = {}
        ordered = []
        for ready in suites:
            specs_of_suite = {case_id(spec): spec for spec in ready.specs()}
            specs[ready.suite.name] = specs_of_suite
            ordered += [results[case] for case in specs_of_suite if case in results]
        if len(ordered) < len(results):
            unknown = counted(len(results) - len(ordered), "result")
            self._lose(
                f"{unknown} belong to no case of the suites of this process, and were not written."
            )
        results |= {result.case_id: result for result in counted_once(ordered)}
        runs = []
        for ready in suites:
            specs_of_suite = specs[ready.suite.name]
            runs.append(self._run(ready, specs_of_suite, results, nodes.keys(), left_out))
        commands = self._commands
        folder = self._config.invocation_params.dir
        concluded = conclude(
            runs,
            EndSettings(
                baseline=self._baseline,
                reports=self._options.reports,
                redactor=self._session.redactor,
                folder=folder,
                origin=session_origin(
                    runs,
                    folder,
                    recordings_of(suites) if self._reports_more(ordered) else {},
                ),
                update_command=commands.update_baseline,
                record_command=commands.record_all(
                    [ready.suite for ready in suites], results.values()
                ),
                wall_seconds=time.monotonic() - self._started,
                stopped=bool(session.shouldfail or session.shouldstop)
                or session.exitstatus not in _FINISHED,
                unreported=self._session.unreported,
                model_changes=self._session.model_changes,
            ),
        )
        self._concluded = concluded
        self._remember_failed(concluded.session, nodes)
        self._problems += concluded.problems
        for run in runs:
            if run.name in concluded.kept_spools:
                self._kept_spools.add(self._handover.folder(run.suite))
        return concluded.passed

    def _remember_failed(self, concluded: Session, nodes: Mapping[str, str]) -> None:
        """Let `--lf` select the cases that a decision fails for, as their items are xfailed."""
        failed: dict[str, bool] = {}
        for decision in concluded.decisions.values():
            for reason in decision.reasons:
                if reason.word == "FAIL":
                    failed |= {nodes[case]: True for case in reason.cases if case in nodes}
        cache = getattr(self._config, "cache", None)
        if failed and cache is not None:
            cache.set(_LAST_FAILED, {**cache.get(_LAST_FAILED, {}), **failed})

    def _reports_more(self, results: Iterable[CaseResult]) -> bool:
        """Whether a report is written beside the terminal's."""
        from _pytest.junitxml import xml_key

        files = [path for path in self._options.reports if path.name != NO_PAGE]
        is_asked = bool(files) or xml_key in self._config.stash
        return is_asked or self._has_page(results)

    def _has_page(self, results: Iterable[CaseResult]) -> bool:
        """Whether an HTML report is asked for, or may be written because something has failed."""
        if named_page(self._options.reports) is not None:
            return True
        if any(path.name == NO_PAGE for path in self._options.reports):
            return False
        return not all(result.outcome in _WENT_WELL for result in results)

    def _run(
        self,
        ready: ReadySuite,
        specs: Mapping[str, CaseSpec],
        results: Mapping[str, CaseResult],
        selected: Collection[str],
        left_out: Collection[str],
    ) -> SuiteRun:
        """What the session ran of a suite; `selected` and `left_out` are case ids of all suites."""
        ran = {case: spec for case, spec in specs.items() if case in results}
        commands = {}
        # Every case of the HTML report has its command; elsewhere those that went well need none.
        has_page = self._has_page(results.values())
        for case, spec in ran.items():
            if has_page or results[case].outcome != "agree":
                commands[case] = self._commands.again(spec, results[case])
        folder = self._config.invocation_params.dir
        return replace(
            suite_run(ready, [results[case] for case in ran], self._baseline, folder),
            selected=frozenset(specs.keys() & set(selected) - set(left_out)),
            specs=list(ran.values()),
            spools=sorted(self._handover.folder(ready.suite).glob("*.jsonl")),
            cases=ready.cases(own_log=not (self._suites.rubric_file or self._suites.log_path)),
            nodes={case: self._commands.node(spec) for case, spec in specs.items()},
            commands=commands,
            left_out=[spec for case, spec in specs.items() if case in left_out],
            frozen=ready.frozen_cases if ready.suite.frozen is not None else None,
            subset=None if ready.subset is None else (ready.subset_name, ready.subset),
        )


_CATEGORIES = ("failed", "error")
_STYLES: Mapping[str, Style] = {"auto": "brief", "short": "short", "line": "line"}


# Every object that is registered has to have a hash: pytest before 9.1 keeps plugins in a set.
@dataclass(eq=False)
class BriefFailures:
    """Lets pytest print brief texts of cases in place of their reports, and few lines of them in
    its short summary; in between and after it, pytest has the reports.

    `results` are by node id, in any order; `name` gives what a case is called in a command.
    `explained` are the cases whose brief text was printed.
    """

    results: Mapping[str, CaseResult]
    order: Callable[[Style], Mapping[str, int]]
    name: Callable[[str], str]

    def __post_init__(self) -> None:
        self._whole: dict[str, list[Any]] = {}
        self.explained: set[str] = set()

    # Outside of pytest's own wrapper, which prints its sections before the hooks of plugins.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Print brief texts."""
        tbstyle = terminalreporter.config.option.tbstyle
        style = _STYLES.get(tbstyle, "whole")
        if style == "brief" and terminalreporter.verbosity > 0:
            style = "whole"
        if tbstyle != "no":
            for category in _CATEGORIES:
                reports = terminalreporter.stats.get(category, [])
                if any(map(self._is_ours, reports)):
                    self._whole[category] = reports
                    terminalreporter.stats[category] = self._brief(
                        reports, style, is_error=category == "error"
                    )
        try:
            return (yield)
        finally:
            self.pytest_restore(terminalreporter)

    @pytest.hookimpl(tryfirst=True, specname="pytest_terminal_summary")
    def pytest_restore(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Put the reports back before any plugin looks at them: they and the count are whole."""
        terminalreporter.stats.update(self._whole)
        self._whole = {}

    @pytest.hookimpl(trylast=True, specname="pytest_terminal_summary")
    def pytest_shorten(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Shorten the lists of pytest's short summary after all plugins; `-v` has them whole."""
        if terminalreporter.verbosity > 0:
            return
        width = terminalreporter._tw.fullwidth
        for category in (*_CATEGORIES, "xfailed", "skipped"):
            reports = terminalreporter.stats.get(category, [])
            ours = self._sorted(report for report in reports if report.nodeid in self.results)
            if not ours:
                continue
            self._whole[category] = reports
            other_reports = [report for report in reports if report.nodeid not in self.results]
            if category == "skipped":
                shown = [_short_skip(report, width) for report in ours]
            else:
                most = _MOST_NAMED if len(ours) > _MOST_NAMED + 1 else len(ours)
                shown = [*self._named(ours[:most], terminalreporter), *_others(ours[most:])]
            # What was done stands alone in the line, as in the heading of the case's text.
            is_said = shown[0].nodeid != ours[0].nodeid and self._is_explained(ours[0])
            if category == "failed" and len(ours) == 1 and is_said:
                shown = []
            terminalreporter.stats[category] = [*other_reports, *shown]

    def _is_explained(self, report: Any) -> bool:
        """Whether the brief text of a case was printed."""
        return self.results[report.nodeid].case_id in self.explained

    def _named(
        self, reports: Sequence[Any], terminalreporter: pytest.TerminalReporter
    ) -> list[Any]:
        """The reports by node id where a line has room for it, else by what was done."""
        room = terminalreporter._tw.fullwidth - _LEAST_MESSAGE
        has_room = all(columns(report.nodeid) <= room for report in reports)
        # Beside the cases that passed, which pytest names by their node ids, so are the others.
        if has_room or terminalreporter.hasopt("p") or any(map(os.environ.get, _CI)):
            return [*reports]
        folder = terminalreporter.config.invocation_params.dir
        named = []
        for report in reports:
            result = self.results[report.nodeid]
            title = log_line(case_title(result))
            shown = copy.copy(report)
            # pytest takes it for a path, which it prints relative to where it was started.
            in_root = folder == terminalreporter.config.rootpath
            shown.nodeid = title if in_root else str(folder / title)
            if result.outcome not in UNSCORED:
                shown.longrepr = _Text(title, "")
            named.append(shown)
        return named

    def _is_ours(self, report: Any) -> bool:
        """Whether a report has a case's text, no traceback, and was not shown in the debugger."""
        result = self.results.get(report.nodeid)
        return (
            result is not None
            and hasattr(report, RESULT_ATTRIBUTE)
            and not hasattr(report, "_pdbshown")
            and str(report.longrepr).rstrip() == result.why.text.rstrip()
        )

    def _brief(self, reports: Sequence[Any], style: Style, *, is_error: bool) -> list[Any]:
        ours = self._sorted(filter(self._is_ours, reports), style)
        other_reports = [report for report in reports if not self._is_ours(report)]
        brief = brief_texts([self._case(report) for report in ours], style)
        if is_error and style == "line" and brief:
            # pytest writes a heading over each error, whatever the style.
            all_indices = tuple(range(len(ours)))
            brief = [BriefText(all_indices, "\n".join(text.text for text in brief))]
        if style == "brief":
            for text in brief:
                self.explained.add(self.results[ours[text.cases[0]].nodeid].case_id)
        return [
            *other_reports,
            *(_stand_in(ours, text, style, is_error=is_error) for text in brief),
        ]

    def _sorted(self, reports: Iterable[Any], style: Style = "brief") -> list[Any]:
        order = self.order(style)

        def place(report: Any) -> int:
            return order.get(self.results[report.nodeid].case_id, len(order))

        return sorted(reports, key=place)

    def _case(self, report: Any) -> FailedCase:
        result = self.results[report.nodeid]
        # What a case's own code printed is a part of what there is to say.
        printed = "".join(f"\n{name}\n{content}" for name, content in report.sections)
        spec, finding = result.spec, ""
        if spec.derived:
            finding = log_line(f"{spec.test}, judge {result.judge}" if result.judge else spec.test)
        return FailedCase(
            self.name(result.case_id),
            result.why.text,
            result.outcome in UNSCORED,
            printed,
            case_title(result),
            finding,
        )


_MOST_NAMED = 5
_NARROWEST_REASON = 60
# What pytest's short summary needs beside a node id: `FAILED`, and what was done.
_LEAST_MESSAGE = 50
# Where they are set, pytest cuts no line of its short summary.
_CI = ("CI", "BUILD_NUMBER")


def _others(reports: Sequence[Any]) -> Iterator[Any]:
    """For each file one report that says how many more cases of it there are."""
    by_file: dict[str, list[Any]] = {}
    for report in reports:
        by_file.setdefault(place_of(report.nodeid), []).append(report)
    for file, of_file in by_file.items():
        report = copy.copy(of_file[0])
        report.nodeid = file
        report.longrepr = report.wasxfail = f"{counted(len(of_file), 'more case')}, named with -v"
        yield report


def _short_skip(report: Any, width: int) -> Any:
    """A skip with the beginning of its reason, without what a model wrote on the one case."""
    path, line, whole_reason = report.longrepr
    reason = ": ".join(one_line(whole_reason).split(": ")[:_MOST_PARTS])
    room = max(width - len(f"SKIPPED [10] {report.location[0]}:{line}: "), _NARROWEST_REASON)
    report = copy.copy(report)
    report.longrepr = (path, line, shortened(reason, room))
    return report


# As in `Skipped: not confirmed: the verifier says FAIL`.
_MOST_PARTS = 3


@dataclass(eq=False)
class _Text(TerminalRepr):
    """A text that pytest prints as it is, or with `--tb=line` as its one line."""

    text: str
    reprcrash: str

    def toterminal(self, tw: TerminalWriter) -> None:
        if not self.reprcrash:
            tw.line(self.text)


def _stand_in(ours: Sequence[Any], text: BriefText, style: Style, *, is_error: bool) -> Any:
    """A report that pytest prints in place of those of the text's cases."""
    report = copy.copy(ours[text.cases[0]])
    line = style == "line" and not is_error
    report.longrepr = _Text(text.text, text.text if line else "")
    heading = text.heading
    if len(text.cases) > 1:
        heading = heading or counted(len(text.cases), "case")
    if heading:
        path, number, _ = report.location
        report.location = (path, number, f"{heading} ")
    if line:
        report.sections = []
    # xdist's, above whose text pytest names the worker: of a case that says nothing.
    vars(report).pop("node", None)
    return report


def session_header(session: SuiteSession) -> Iterator[str]:
    """Two lines for each suite that is loaded by now."""
    folder = session.config.invocation_params.dir
    for ready in session.suites:
        mode, judge = session.suites.modes(ready)
        judging = f", judge {judge}" if judge != mode else ""
        recordings = relative_path(ready.suite.cassette_dir, folder)
        yield (
            f"jrh: suite {ready.suite.name} ({ready.suite.mode}), recording {mode}{judging}, "
            f"{recordings}"
        )
        line = header_line(suite_origin(ready, session.baseline, folder))
        yield f"jrh: {session.redactor.text(line)}"


_UNUSED_KEYS = "jrh/unused_keys"


def notes_on_unused_keys(config: pytest.Config, suites: Iterable[Suite]) -> list[str]:
    """Sentences about unused config keys that pytest's cache does not know to have been said."""
    cache = getattr(config, "cache", None)
    cached = cache.get(_UNUSED_KEYS, None) if cache is not None else None
    cached_sentences = cached if isinstance(cached, dict) else {}
    sentences = {}
    for suite in suites:
        if cached_sentences.get(str(suite.config_file), "") != suite.unused_keys:
            sentences[str(suite.config_file)] = suite.unused_keys
    if cache is not None and sentences:
        cache.set(_UNUSED_KEYS, {**cached_sentences, **sentences})
    return list(filter(None, sentences.values()))


class UnusedCassettes:
    """What a session found, and removed where it `prunes`; `problems` are sentences."""

    def __init__(self, *, prunes: bool) -> None:
        self._prunes = prunes
        self._cassettes: list[Path] = []
        self.problems: list[str] = []

    def look(self, ready: ReadySuite) -> None:
        """Find those of a suite in its cassette folder, and remove them where that is asked for."""
        folder = ready.suite.cassette_dir
        used: set[Path] = set()
        former = former_cassettes(folder, ready.judges)
        for spec in ready.specs_with_recordings():
            paths = [cassette_path(folder, spec, judging=judging) for judging in (False, True)]
            used.update(paths)
            if not exists(paths[1]):
                # Its judge may be answered from what it recorded under another name.
                used.update(former(spec))
        unused = unused_cassettes(folder, used, frozen=ready.suite.frozen is not None)
        if self._prunes:
            unused, problems = prune(unused)
            self.problems += problems
        self._cassettes += unused

    def lines(self, folder: Path) -> Iterator[str]:
        """Name them, relative to the folder."""
        yield f"{'removed' if self._prunes else 'unused'} cassettes: {len(self._cassettes)}"
        yield from (f"  {relative_path(path, folder)}" for path in self._cassettes)

    def __bool__(self) -> bool:
        return bool(self._cassettes)

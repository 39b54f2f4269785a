"""The controller's part: gathers results from reports, decides, writes the artifacts, and prints
what came of it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.cases.ids import case_id
from pytest_jrh.config.load import looks_like_suite
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import absolute
from pytest_jrh.core.model import CaseResult
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.engine.provenance import recordings_of, session_origin, suite_origin
from pytest_jrh.plugin.collect import CaseItem, properties_of_others
from pytest_jrh.plugin.options import YAML_SUFFIXES
from pytest_jrh.plugin.printing import (
    BriefFailures,
    UnusedCassettes,
    notes_on_unused_keys,
    session_header,
)
from pytest_jrh.plugin.session import (
    NOTICES_KEY,
    RECORD_ATTRIBUTE,
    RESULT_ATTRIBUTE,
    case_ids,
    place_of,
    undecided,
)
from pytest_jrh.reports.ending import Concluded, EndSettings, conclude, ending_lines
from pytest_jrh.reports.grounds import label_properties
from pytest_jrh.reports.provenance import provenance_properties
from pytest_jrh.reports.report import Display
from pytest_jrh.reports.suite_files import SuiteRun
from pytest_jrh.reports.writing import asked
from pytest_jrh.stats.diagnosis import properties
from pytest_jrh.stats.panels import counted_once
from pytest_jrh.store.baseline import judge_prompts
from pytest_jrh.store.results import result_from

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.core.model import CaseSpec
    from pytest_jrh.engine.loading import ReadySuite
    from pytest_jrh.plugin.session import SuiteSession
    from pytest_jrh.reports.session import Session


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
        self._sent: dict[str, Mapping[str, Any]] = {}
        self._repeated: set[str] = set()
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
        """Keep the result that a report carries; the last attempt of a case counts."""
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
        elif report.when == "setup" and report.skipped:
            # A marker or another plugin has skipped it: it was left out on purpose.
            self._left_out.add(report.nodeid)
        record = getattr(report, RECORD_ATTRIBUTE, None)
        if record is not None:
            self._sent[record["case_id"]] = record

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker's client had to say."""
        self._session.add_notices(getattr(node, "workeroutput", {}).get(NOTICES_KEY, ()))

    # Last of all, because until xdist has ended its workers they go on spooling.
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Decide, and write baseline, artifacts and reports.

        A session without verdicts is not green (rule F2).
        """
        places = self._places()
        nodes = case_ids([*self._selected, *self.results], places)
        concluded = not self._heard.isdisjoint(nodes.values()) or bool(
            nodes and self._was_interrupted(session)
        )
        green = self._conclude(session, list(places.values()), nodes) if concluded else True
        green = (
            self._all_decided(session, places.values() if concluded else ())
            and green
            and not self._lost
        )
        if not green and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._problems += self._handover.clear(
            (ready.suite for ready in self._suites), self._kept_spools
        )
        if self._options.report_unused or self._options.prune:
            prunes = self._options.prune and not session.config.option.collectonly
            self._unused = UnusedCassettes(prunes=prunes)
            for ready in self._suites:
                self._unused.look(ready, self._suites.cassette_dir(ready))
            self._problems += self._unused.problems
            if self._unused.problems and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the figures, the gate's decision, what the session spent, and what went wrong
        beside the cases.
        """
        display = Display(
            folder=self._config.invocation_params.dir,
            workspace=self._config.rootpath,
            width=terminalreporter._tw.fullwidth,
            verbosity=terminalreporter.verbosity,
            # With -rs or -ra pytest lists every skip with its whole reason.
            skips=not terminalreporter.hasopt("skipped"),
        )
        notices = [*self._notices(display), *self._problems]
        unused = self._unused.lines(display.folder) if self._unused is not None else ()
        lines = ending_lines(self._concluded, display, notices=notices, unused=unused)
        if not (self._concluded or notices or self._unused):
            return
        terminalreporter.write_sep("=", "judge reliability")
        for styled in lines:
            style = {styled.style: True} if styled.style else {}
            terminalreporter.write_line(styled.text, **style)

    def _order(self) -> dict[str, int]:
        """The cases as they were collected: the reports of several workers arrive mixed."""
        results = self._concluded.session.results if self._concluded else ()
        return {result.case_id: number for number, result in enumerate(results)}

    def _name(self, case: str) -> str:
        return self._concluded.session.node(case) if self._concluded else case

    def _notices(self, display: Display) -> list[str]:
        """What is to be known of the session beside what went wrong; nothing with `-q`."""
        if display.verbosity < 0:
            return []
        own = notes_on_unused_keys(self._config, (ready.suite for ready in self._suites))
        return [*own, *self._session.notices]

    def _places(self) -> dict[str, ReadySuite]:
        """The suites of this session, by the node ids of their files.

        A controller meets discovered ones here.
        """
        root = self._config.rootpath
        loaded = {ready.suite.config_file for ready in self._suites}
        certain = set(map(place_of, self.results))
        found: dict[str, ReadySuite] = {}
        for place in dict.fromkeys(map(place_of, [*self._selected, *self.results])):
            path = absolute(root / place)
            known = place in certain or path in loaded
            if not known and not (place.endswith(YAML_SUFFIXES) and looks_like_suite(path)):
                continue
            try:
                found[place] = self._suites.load(path)
            except InputError as error:
                self._lose(f"The results of {place} were not written: {error}")
        order = {ready.suite.config_file: number for number, ready in enumerate(self._suites)}
        return dict(sorted(found.items(), key=lambda item: order[item[1].suite.config_file]))

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
        """Whether each suite that the command line names has a decision where it has something to
        decide by.
        """
        if (
            session.config.option.collectonly
            or self._options.plan
            or session.exitstatus not in _FINISHED
        ):
            return True
        done = {ready.suite.config_file for ready in decided}
        selected = Counter(
            absolute(self._config.rootpath / place_of(each)) for each in self._selected
        )
        left = [
            undecided(ready, self._baseline.content, selected[ready.suite.config_file])
            for ready in self._suites
            if ready.suite.config_file in self._session.named - done
        ]
        reasons = [reason for reason in left if reason is not None]
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
        specs = {
            ready.suite.name: {case_id(spec): spec for spec in ready.specs()} for ready in suites
        }
        ordered = [results[case] for own in specs.values() for case in own if case in results]
        if len(ordered) < len(results):
            unknown = counted(len(results) - len(ordered), "result")
            self._lose(
                f"{unknown} belong to no case of the suites of this process, and were not written."
            )
        results |= {result.case_id: result for result in counted_once(ordered)}
        runs = [
            self._run(ready, specs[ready.suite.name], results, nodes.keys(), left_out)
            for ready in suites
        ]
        commands = self._commands
        folder = self._config.invocation_params.dir
        concluded = conclude(
            runs,
            EndSettings(
                baseline=self._baseline,
                reports=asked(self._options),
                redactor=self._session.redactor,
                folder=folder,
                origin=session_origin(
                    [run.origin for run in runs if run.origin is not None],
                    folder,
                    recordings_of(suites) if self._reports_more() else {},
                ),
                update_command=commands.update_baseline,
                record_command=commands.record_all(
                    [ready.suite for ready in suites], results.values()
                ),
                wall_seconds=time.monotonic() - self._started,
                stopped=bool(session.shouldfail or session.shouldstop)
                or session.exitstatus not in _FINISHED,
                unreported=self._session.unreported,
            ),
        )
        self._concluded = concluded
        self._add_to_junit(concluded.session)
        self._problems += concluded.problems
        self._kept_spools |= {
            self._handover.folder(run.suite) for run in runs if run.name in concluded.kept_spools
        }
        return concluded.passed

    def _reports_more(self) -> bool:
        """Whether a report is asked for beside the terminal's."""
        from _pytest.junitxml import xml_key

        return bool(asked(self._options)) or xml_key in self._config.stash

    def _add_to_junit(self, session: Session) -> None:
        """Add the figures to the file of `--junitxml`, which pytest has written by now."""
        from _pytest.junitxml import xml_key

        xml = self._config.stash.get(xml_key, None)
        if xml is None:
            return
        redactor = self._session.redactor
        named = (
            provenance_properties(session.origin),
            properties(session.table),
            label_properties(session),
        )
        for name, value in chain.from_iterable(named):
            # pytest escapes the value alone, and XML takes no control character.
            xml.add_global_property(one_line(redactor.text(name)), redactor.text(value))
        xml.pytest_sessionfinish()

    def _run(
        self,
        ready: ReadySuite,
        specs: Mapping[str, CaseSpec],
        results: Mapping[str, CaseResult],
        selected: Collection[str],
        left_out: Collection[str],
    ) -> SuiteRun:
        """What the session ran of one suite.

        `selected` and `left_out` are case ids of all suites.
        """
        ran = {case: spec for case, spec in specs.items() if case in results}
        self._problems += self._handover.add_sent(ready.suite, self._sent.values())
        return SuiteRun(
            ready.suite,
            [results[case] for case in ran],
            known=frozenset(specs),
            selected=frozenset(case for case in selected if case in specs and case not in left_out),
            specs=list(ran.values()),
            spools=sorted(self._handover.folder(ready.suite).glob("*.jsonl")),
            judges=[judge.label for judge in ready.judges.values()],
            grounds=ready.grounds,
            prompts=judge_prompts(ready.suite, ready.judges),
            origin=suite_origin(ready, self._baseline, self._config.invocation_params.dir),
            cases=ready.cases(own_log=not (self._suites.rubric_file or self._suites.log_path)),
            nodes={case: self._commands.node(spec) for case, spec in specs.items()},
            # Every case of the HTML report has its command; elsewhere those that went well need
            # none.
            commands={
                case: self._commands.again(spec, results[case])
                for case, spec in ran.items()
                if self._options.report is not None or results[case].outcome != "agree"
            },
            left_out=[spec for case, spec in specs.items() if case in left_out],
            frozen=ready.frozen_cases if ready.suite.replay.frozen is not None else None,
        )

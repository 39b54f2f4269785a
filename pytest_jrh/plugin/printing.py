"""What a session prints beside the figures: its head, notes that are worth reading once, unused
cassettes, and pytest's sections FAILURES and ERRORS with the texts of cases in few words.

What is printed of a case differs from what the report of its item holds: JUnit, editors and other
plugins get those, with the whole texts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import TerminalRepr

from pytest_jrh.cases.ids import cassette_path
from pytest_jrh.core.files import relative_path
from pytest_jrh.core.model import UNSCORED
from pytest_jrh.core.text import counted
from pytest_jrh.engine.provenance import suite_origin
from pytest_jrh.plugin.session import RESULT_ATTRIBUTE
from pytest_jrh.recording.cassettes import prune, unused_cassettes
from pytest_jrh.reports.failures import BriefText, FailedCase, Style, brief_texts
from pytest_jrh.reports.provenance import header_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from _pytest._io import TerminalWriter

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.engine.loading import ReadySuite
    from pytest_jrh.plugin.session import SuiteSession


_CATEGORIES = ("failed", "error")
_STYLES: Mapping[str, Style] = {"short": "short", "line": "line"}


# Every object that is registered has to have a hash: pytest before 9.1 keeps plugins in a set.
@dataclass(eq=False)
class BriefFailures:
    """Lets pytest print brief texts of cases in place of their reports, and then has it go on with
    the reports.

    `results` are by node id, in any order; `name` gives what a case is called in a command.
    """

    results: Mapping[str, CaseResult]
    order: Callable[[], Mapping[str, int]]
    name: Callable[[str], str]

    def __post_init__(self) -> None:
        self._whole: dict[str, list[Any]] = {}

    # Outside of pytest's own wrapper, which prints its sections before the hooks of plugins.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Print brief texts."""
        style = terminalreporter.config.option.tbstyle
        if style != "no":
            for category in _CATEGORIES:
                reports = terminalreporter.stats.get(category, [])
                if any(map(self._is_ours, reports)):
                    self._whole[category] = reports
                    terminalreporter.stats[category] = self._brief(
                        reports, _STYLES.get(style, "whole"), is_error=category == "error"
                    )
        try:
            return (yield)
        finally:
            self.restore(terminalreporter)

    def restore(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Put the reports back: the short summary and the count are of them."""
        terminalreporter.stats.update(self._whole)
        self._whole = {}

    def _is_ours(self, report: Any) -> bool:
        """Whether a report is of a case, with the case's text and no traceback, and was not shown
        in the debugger.
        """
        result = self.results.get(report.nodeid)
        return (
            result is not None
            and hasattr(report, RESULT_ATTRIBUTE)
            and not hasattr(report, "_pdbshown")
            and str(report.longrepr).rstrip() == result.detail.rstrip()
        )

    def _brief(self, reports: Sequence[Any], style: Style, *, is_error: bool) -> list[Any]:
        places = self.order()
        ours = sorted(
            filter(self._is_ours, reports),
            key=lambda report: places.get(self.results[report.nodeid].case_id, len(places)),
        )
        others = [report for report in reports if not self._is_ours(report)]
        brief = brief_texts([self._case(report) for report in ours], style)
        if is_error and style == "line" and brief:
            # pytest writes a heading over each error, whatever the style.
            whole = tuple(range(len(ours)))
            brief = [BriefText(whole, "\n".join(text.text for text in brief))]
        return [*others, *(_stand_in(ours, text, style, is_error=is_error) for text in brief)]

    def _case(self, report: Any) -> FailedCase:
        result = self.results[report.nodeid]
        # What a case's own code printed is a part of what there is to say.
        printed = "".join(f"\n{name}\n{content}" for name, content in report.sections)
        return FailedCase(
            self.name(result.case_id), result.detail, result.outcome in UNSCORED, printed
        )


class WholeReports:
    """Ends what `BriefFailures` began, before any plugin looks at the reports."""

    def __init__(self, brief: BriefFailures) -> None:
        self._brief = brief

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Put the reports back."""
        self._brief.restore(terminalreporter)


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
    if len(text.cases) > 1:
        path, number, _ = report.location
        report.location = (path, number, f"{counted(len(text.cases), 'case')} ")
    if line:
        report.sections = []
    # xdist's, above whose text pytest names the worker: of a case that says nothing.
    vars(report).pop("node", None)
    return report


def session_header(session: SuiteSession) -> Iterator[str]:
    """Two lines for each suite that is loaded by now."""
    folder = session.config.invocation_params.dir
    for ready in session.suites:
        mode, judge = (
            ("disabled",) * 2 if session.options.disable_recording else session.suites.modes(ready)
        )
        judging = f", judge {judge}" if judge != mode else ""
        recordings = relative_path(session.suites.cassette_dir(ready), folder)
        yield (
            f"jrh: suite {ready.suite.name} ({ready.suite.mode}), recording {mode}{judging}, "
            f"{recordings}"
        )
        line = header_line(suite_origin(ready, session.baseline, folder))
        yield f"jrh: {session.redactor.text(line)}"


_KEY = "jrh/unused_keys"


def notes_on_unused_keys(config: pytest.Config, suites: Iterable[Suite]) -> list[str]:
    """The sentences about keys that mean nothing here, of configs of which pytest's cache does not
    know that the same was said before (rule A2).

    Without the cache each run says them.
    """
    cache = getattr(config, "cache", None)
    found = cache.get(_KEY, None) if cache is not None else None
    known = found if isinstance(found, dict) else {}
    own = {
        str(suite.config_file): suite.unused_keys
        for suite in suites
        if known.get(str(suite.config_file), "") != suite.unused_keys
    }
    if cache is not None and own:
        cache.set(_KEY, {**known, **own})
    return [sentence for sentence in own.values() if sentence]


class UnusedCassettes:
    """What a session found, and removed where it `prunes`; `problems` are sentences."""

    def __init__(self, *, prunes: bool) -> None:
        self._prunes = prunes
        self._found: list[Path] = []
        self.problems: list[str] = []

    def look(self, ready: ReadySuite, folder: Path) -> None:
        """Find those of a suite in its cassette folder, and remove them where that is asked for."""
        used = {
            cassette_path(folder, spec, judging=judging)
            for spec in ready.specs()
            for judging in (False, True)
        }
        found = unused_cassettes(folder, used, frozen=ready.suite.replay.frozen is not None)
        if self._prunes:
            found, problems = prune(folder, found)
            self.problems += problems
        self._found += found

    def lines(self, folder: Path) -> Iterator[str]:
        """Name them, relative to the folder."""
        yield f"{'removed' if self._prunes else 'unused'} cassettes: {len(self._found)}"
        yield from (f"  {relative_path(path, folder)}" for path in self._found)

    def __bool__(self) -> bool:
        return bool(self._found)

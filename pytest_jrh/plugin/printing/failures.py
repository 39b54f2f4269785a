"""pytest's sections FAILURES and ERRORS, with the texts of cases in few words (rule J6).

What is printed differs from what the reports of items hold: JUnit, editors and other plugins get
those, with the whole texts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import TerminalRepr

from pytest_jrh.models import UNSCORED
from pytest_jrh.plugin.session import RESULT_ATTRIBUTE
from pytest_jrh.reporting.printed.failures import BriefText, FailedCase, Style, brief_texts
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

    from pytest_jrh.models import CaseResult

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

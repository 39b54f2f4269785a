"""The decision about a suite as a test. The controller runs it when all cases have come to their
end, so that pytest's last line, its exit code, JUnit and other plugins' reports count it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest._code.code import ExceptionInfo, TerminalRepr

from pytest_jrh.core.text import log_line
from pytest_jrh.plugin.collect import SuiteFile, prose

NAME = "decision"


class DecisionItem(pytest.Item):
    """Fails where the exit code is to be 1: for FAIL, and for what is UNCLEAR about a change."""

    def __init__(self, *, sentences: Sequence[str], passed: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._sentences = sentences
        self._passed = passed
        self.user_properties.append((NAME, log_line(sentences[0])))
        if self.config.pluginmanager.has_plugin("rerunfailures"):
            # Asked again it would be the same.
            self.add_marker(pytest.mark.flaky(reruns=0))

    def runtest(self) -> None:
        """Fail with the headline."""
        if not self._passed:
            raise pytest.fail.Exception(self._sentences[0], pytrace=False)

    def repr_failure(
        self, excinfo: ExceptionInfo[BaseException], style: Any = None
    ) -> str | TerminalRepr:
        """Give the headline, and the sentences below it."""
        if isinstance(excinfo.value, pytest.fail.Exception):
            return prose(self, "\n".join(self._sentences), self._sentences[0])
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int, str]:
        """Name the suite's file."""
        return self.path, 0, f"{NAME} "


def decision_item(file: SuiteFile, sentences: Sequence[str], *, passed: bool) -> DecisionItem:
    """The decision about the suite of a file; the first sentence is its headline."""
    item: DecisionItem = DecisionItem.from_parent(
        file, name=NAME, nodeid=f"{file.nodeid}::{NAME}", sentences=sentences, passed=passed
    )
    return item


def run_decisions(session: pytest.Session, items: Iterable[DecisionItem]) -> None:
    """Run decisions as pytest runs tests, after all others.

    `--exitfirst` has nothing left to end, and `--lf` shall run cases, not their decision.
    """
    maxfail, session.config.option.maxfail = session.config.option.maxfail, 0
    last_failed = session.config.pluginmanager.get_plugin("lfplugin")
    for item in items:
        session.testscollected += 1
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        if last_failed is not None:
            last_failed.lastfailed.pop(item.nodeid, None)
    session.config.option.maxfail = maxfail

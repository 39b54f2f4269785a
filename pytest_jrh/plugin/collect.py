"""The tree of a suite: file, test, rubric, case; and its items, which put into pytest's terms what
came of a case, and what is decided about the suite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import (
    ExceptionInfo,
    ReprEntryNative,
    ReprExceptionInfo,
    ReprFileLocation,
    ReprTraceback,
    TerminalRepr,
)

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import InputError, JrhError, log_line, shortened
from pytest_jrh.core.cases import UNCOMPARED, UNSCORED, CaseSpec
from pytest_jrh.core.ids import case_name, node_part
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult
from pytest_jrh.engine.suite import ReadySuite
from pytest_jrh.plugin.session import SESSION
from pytest_jrh.reports.case_facts import FailureText, no_verdict_text
from pytest_jrh.reports.session import what_was_done


def mistake_text(excinfo: ExceptionInfo[BaseException], redactor: Redactor) -> str:
    """Give a traceback without arguments and local variables, which may hold secrets: a value that
    pytest shortens is no longer recognized as one.
    """
    representation = excinfo.getrepr(
        style="short", showlocals=False, funcargs=False, truncate_locals=True
    )
    return redactor.of_code(str(representation))


def prose(item: pytest.Item, text: str, message: str) -> TerminalRepr:
    """A failure as text without a traceback; the `message` is for the short summary and JUnit."""
    entries = [ReprEntryNative([f"{text}\n"])]
    if item.config.getoption("tbstyle", "auto") == "line":
        entries = []
    path, line, _ = item.reportinfo()
    return ReprExceptionInfo(
        reprtraceback=ReprTraceback(entries, None, style="native"),
        reprcrash=ReprFileLocation(str(path), (line or 0) + 1, message),
    )


class _Discreet(pytest.Collector):
    """A level of the tree whose errors show no secret."""

    def repr_failure(self, excinfo: ExceptionInfo[BaseException]) -> str | TerminalRepr:  # type: ignore[override]
        """Describe the suite's problem; anything else is our mistake, with its traceback."""
        redactor = self.config.stash[SESSION].redactor
        if isinstance(excinfo.value, self.CollectError):
            return redactor.of_code(str(excinfo.value))
        return mistake_text(excinfo, redactor)


class SuiteFile(_Discreet, pytest.File):
    """A suite's config file."""

    def collect(self) -> Iterator[TestNode]:
        """Yield the suite's tests; an unusable suite is one collection error with every problem."""
        try:
            session = self.config.stash[SESSION]
            ready = session.load(self.path)
            # Read here too, so that its mistakes are reported before any call.
            _ = session.baseline.content
        except InputError as error:
            raise self.CollectError(str(error)) from None
        for name, specs in groupby(ready.specs(), key=lambda spec: spec.test):
            yield TestNode.from_parent(self, name=name, ready=ready, specs=tuple(specs))


class _Group(_Discreet, pytest.Class):
    """A level of the tree with its specs; a class to pytest, since VS Code's test explorer shows no
    other collector between a file and an item.
    """

    # There is no Python class behind it, whose markers and source could be read.
    _ALLOW_MARKERS = False
    obj = None

    def __init__(self, *, ready: ReadySuite, specs: tuple[CaseSpec, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ready = ready
        self.specs = specs


class TestNode(_Group):
    """One test of a suite."""

    __test__ = False

    def collect(self) -> Iterator[RubricNode]:
        """Yield the rubrics."""
        if self.name not in KINDS:
            self.config.addinivalue_line("markers", f"{self.name}: {KINDS[self.name].marker}")
        self.add_marker(self.name)
        for rubric_id, specs in groupby(self.specs, key=lambda spec: spec.rubric_id):
            yield RubricNode.from_parent(
                self, name=node_part(rubric_id), ready=self.ready, specs=tuple(specs)
            )


class RubricNode(_Group):
    """One rubric of a test."""

    def collect(self) -> Iterator[CaseItem]:
        """Yield the cases."""
        for spec in self.specs:
            name = case_name(spec)
            # Given as text, so that pytest reads the `[...]` as `--lf` will read it from its cache.
            yield CaseItem.from_parent(
                self, name=name, nodeid=f"{self.nodeid}::{name}", ready=self.ready, spec=spec
            )


class Disagreement(JrhError):
    """The judge's verdict differs from the case's verified label."""


class CaseItem(pytest.Item):
    """One case under one judge: `setup` gets the result, `runtest` compares."""

    def __init__(self, *, ready: ReadySuite, spec: CaseSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ready = ready
        self.spec = spec
        self.result: CaseResult | None = None
        self.failure: FailureText | None = None
        self.add_marker("jrh")

    def setup(self) -> None:
        """Wait for the case; what prevents a verdict is a skip or an error here."""
        if self.result is not None and self.result.score is not None:
            # Asked until it is right, every judge is right: the first verdict counts.
            return
        # A bug in this attempt must not be reported as the result of the one before.
        self.result = self.failure = None
        session = self.config.stash[SESSION]
        result = self.result = session.result(self.spec)
        self.failure = session.failure(result)
        if result.outcome == "no_case":
            reason = log_line(no_verdict_text(result.why))
            raise pytest.skip.Exception(reason, _use_item_location=True)
        if self.failure is not None and result.outcome in UNSCORED:
            # Without `pytrace` pytest formats no traceback, which would be prose's loss, and its
            # parsing of the source upsets a Python that imports in the engine's thread.
            raise pytest.fail.Exception(self.failure.whole, pytrace=False)

    def runtest(self) -> None:
        """Compare the verdict with the case's label."""
        result = self.result
        assert result is not None
        if result.outcome in ("agree", *UNCOMPARED):
            return
        reason = self.config.stash[SESSION].baseline.tolerated(result, self.ready.suite.gate)
        if reason is not None:
            # Where `--runxfail` asks for failures, pytest makes this do nothing.
            pytest.xfail(log_line(reason))
        verdict = result.scores_text
        raise Disagreement(f"expected {result.label_text}, the judge gave {verdict}")

    def repr_failure(
        self, excinfo: ExceptionInfo[BaseException], style: Any = None
    ) -> str | TerminalRepr:
        """Show an expected failure as prose, and our mistake as a traceback without secrets."""
        error, failure = excinfo.value, self.failure
        session = self.config.stash[SESSION]
        # pytest's xfail is a kind of its fail.
        if failure is not None and isinstance(error, JrhError | pytest.fail.Exception):
            text = failure.whole
            if self.config.getoption("verbose", 0) <= 0:
                text = session.redactor.text(failure.short)
                if text in session.unscored_texts:
                    text = f"No verdict ({failure.result.outcome}), as above."
                elif failure.result.outcome in UNSCORED:
                    session.unscored_texts.add(text)
            # The first paragraph stands in the short summary and in JUnit, for a disagreement
            # behind what was done to make the case.
            message = "\n".join(failure.first)
            done = what_was_done(failure.result)
            if done and failure.result.outcome not in UNSCORED:
                message = f"{message} Edit: {shortened(done, 60)}"
            return prose(self, text, log_line(message))
        if isinstance(error, pytest.fail.Exception | pytest.skip.Exception | pytest.exit.Exception):
            return super().repr_failure(excinfo, style)
        return mistake_text(excinfo, session.redactor)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the rubric's line in its file: that is where a reader looks first."""
        rubric = self.ready.suite.rubric_by_id[self.spec.rubric_id]
        tail = "::".join(self.nodeid.rsplit("::", 3)[1:])
        # Without the space it would be the node id's end, of which `-v` prints every `.` as `::`:
        # no one could copy it.
        return Path(rubric.file), rubric.line - 1, f"{tail} "


DECISION = "decision"


class DecisionItem(pytest.Item):
    """The decision about a suite as a test, so that pytest's last line, its exit code, JUnit and
    other plugins' reports count it.

    It fails where the exit code is to be 1: for FAIL, and for what is UNCLEAR about a change.
    `is_shown` says that the answer, at the session's end, has its sentences.
    """

    def __init__(
        self, *, sentences: Sequence[str], passed: bool, is_shown: bool, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.is_shown = is_shown
        self._sentences = sentences
        self._passed = passed
        self.user_properties.append((DECISION, log_line(sentences[0])))
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
        return self.path, 0, f"{DECISION} "


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
            # Newer versions of pytest have ids of their own.
            last_failed.lastfailed.pop(getattr(item, "id", item.nodeid), None)
    session.config.option.maxfail = maxfail

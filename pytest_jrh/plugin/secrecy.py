"""No secret in what pytest itself writes, such as JUnit's file and that of `--log-file`: tracebacks
of our own mistakes, what is captured, and log records.
"""

from __future__ import annotations

import contextlib
import logging
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import _pytest
import pluggy
import pytest
from _pytest.warnings import catch_warnings_for_item

import pytest_jrh

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from _pytest._code.code import ExceptionInfo, ExceptionRepr
    from _pytest._io import TerminalWriter

    from pytest_jrh.core.redact import Redactor


_AnyReport = TypeVar("_AnyReport", pytest.CollectReport, pytest.TestReport)
_PACKAGE = Path(pytest_jrh.__file__).parent
_PYTEST = Path(_pytest.__file__).parent
_PLUGGY = Path(pluggy.__file__).parent
_BUG = "This is a mistake in pytest-jrh, not in your files: please report it, with the lines above."


def mistake_text(excinfo: ExceptionInfo[BaseException], redactor: Redactor) -> str:
    """Give a traceback without arguments and local variables, which may hold secrets: a value that
    pytest shortens is no longer recognized as one.
    """
    representation = excinfo.getrepr(
        style="short", showlocals=False, funcargs=False, truncate_locals=True
    )
    text = redactor.of_code(str(representation))
    return f"{text}\n\n{_BUG}" if _is_ours(excinfo) else text


def _is_ours(excinfo: ExceptionInfo[BaseException]) -> bool:
    """Whether what was raised came out of our code, rather than through a hook that we wrap."""
    for entry in reversed(excinfo.traceback):
        path = Path(entry.path)
        if path.is_relative_to(_PACKAGE):
            return True
        if path.is_relative_to(_PYTEST) or path.is_relative_to(_PLUGGY):
            return False
    return False


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


def warnings_reported(config: pytest.Config) -> AbstractContextManager[None]:
    """Put this block's warnings into pytest's summary, if pytest prints warnings."""
    if not config.pluginmanager.has_plugin("warnings"):
        return contextlib.nullcontext()
    return catch_warnings_for_item(config, config.hook, "runtest", None)


class Secrecy:
    """The hooks that take secrets out of what pytest shows, while suites are in play."""

    def __init__(self, config: pytest.Config, redactor: Redactor) -> None:
        self._config = config
        self._redactor = redactor
        self._records = logging.getLogRecordFactory()
        logging.setLogRecordFactory(self._record)

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(
        self, excrepr: ExceptionRepr, excinfo: ExceptionInfo[BaseException]
    ) -> None:
        """Let every plugin, xdist's too, show an internal error without secrets."""
        text = mistake_text(excinfo, self._redactor)

        def show(tw: TerminalWriter) -> None:
            tw.write(text)

        excrepr.toterminal = show  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Take secrets out of what an item wrote and logged while it ran."""
        return self._cleaned((yield))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Take secrets out of what was written while a suite was read."""
        return self._cleaned((yield))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Report warnings of the engine's threads while no item runs."""
        with warnings_reported(self._config):
            return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Leave logging as it was."""
        if logging.getLogRecordFactory() == self._record:
            logging.setLogRecordFactory(self._records)

    def _cleaned(self, report: _AnyReport) -> _AnyReport:
        report.sections[:] = [
            (name, self._redactor.of_code(content)) for name, content in report.sections
        ]
        return report

    def _record(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._records(*args, **kwargs)
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - a record that cannot be formatted is reported by logging itself, later
            return record
        clean = self._redactor.of_code(message)
        if clean != message:
            record.msg, record.args = clean, None
        if record.exc_info:
            # What a formatter finds there it takes in place of formatting the exception itself.
            traceback = logging.Formatter().formatException(record.exc_info)
            record.exc_text = self._redactor.of_code(traceback)
        return record

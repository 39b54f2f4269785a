"""No secret on what pytest itself shows: tracebacks of our own mistakes,
reports, and log records.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import _pytest
import pluggy
import pytest

import pytest_jrh

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, ExceptionRepr
    from _pytest._io import TerminalWriter

    from pytest_jrh.core.redact import Redactor


_PACKAGE = Path(pytest_jrh.__file__).parent
_PYTEST = Path(_pytest.__file__).parent
_PLUGGY = Path(pluggy.__file__).parent
_BUG = "This is a mistake in pytest-jrh, not in your files: please report it, with the lines above."


def mistake_text(excinfo: ExceptionInfo[BaseException], redactor: Redactor) -> str:
    """Give a traceback, of our own code or another plugin's, without arguments and local variables,
    which may hold what is nobody's business.

    A value that pytest shortens would be shown in part, where no secret is recognized any more.
    """
    shown = excinfo.getrepr(style="short", showlocals=False, funcargs=False, truncate_locals=True)
    text = redactor.of_code(str(shown))
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


class Secrecy:
    """The hooks that take secrets out of what pytest shows, while suites are in play."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._records = logging.getLogRecordFactory()
        logging.setLogRecordFactory(self._record)

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(
        self, excrepr: ExceptionRepr, excinfo: ExceptionInfo[BaseException]
    ) -> None:
        """Let every plugin that shows an internal error, xdist's worker too, show it without
        secrets.
        """
        text = mistake_text(excinfo, self._redactor)

        def show(tw: TerminalWriter) -> None:
            tw.write(text)

        excrepr.toterminal = show  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Any:
        """Take secrets out of what an item wrote and logged while it ran."""
        report = yield
        report.sections[:] = [
            (name, self._redactor.of_code(content)) for name, content in report.sections
        ]
        return report

    def pytest_unconfigure(self) -> None:
        """Leave logging as it was."""
        if logging.getLogRecordFactory() == self._record:
            logging.setLogRecordFactory(self._records)

    def _record(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._records(*args, **kwargs)
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - a record that cannot be formatted is reported by logging itself, later
            return record
        clean = self._redactor.of_code(message)
        if clean != message:
            record.msg, record.args = clean, None
        return record

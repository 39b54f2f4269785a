"""No secret on what pytest itself shows: tracebacks of our own mistakes, reports, warnings, log
records, and what the project's code prints.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import _pytest
import pluggy
import pytest
from _pytest.capture import CaptureIO, EncodedFile
from _pytest.config import apply_warning_filters

import pytest_jrh
from pytest_jrh.core.user_code import case_at_work

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from _pytest._code.code import ExceptionInfo, ExceptionRepr
    from _pytest._io import TerminalWriter

    from pytest_jrh.core.model import CaseSpec
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


@contextlib.contextmanager
def warnings_reported(config: pytest.Config) -> Iterator[None]:
    """Put this block's warnings into pytest's summary, each once, if pytest prints warnings."""
    if not config.pluginmanager.has_plugin("warnings"):
        yield
        return
    with warnings.catch_warnings(record=True) as recorded:
        # pytest before 9.1 has these in place only while it collects or runs an item.
        if not sys.warnoptions:
            warnings.filterwarnings("always", category=DeprecationWarning)
            warnings.filterwarnings("always", category=PendingDeprecationWarning)
        typed_filters = config.known_args_namespace.pythonwarnings or ()
        apply_warning_filters(config.getini("filterwarnings"), typed_filters)
        try:
            yield
        finally:
            for warning in {str(warning): warning for warning in recorded}.values():
                config.hook.pytest_warning_recorded.call_historic(
                    kwargs={
                        "warning_message": warning,
                        "nodeid": "",
                        "when": "runtest",
                        "location": None,
                    }
                )


class CaseOutput:
    """Keeps what code prints while it works for a case for that case's item: other cases are worked
    on meanwhile.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._kept: dict[CaseSpec, dict[str, io.StringIO]] = {}
        self._undo = contextlib.ExitStack()

    def take(self, spec: CaseSpec) -> dict[str, str]:
        """What was printed for a case since the last call, by the name of the stream."""
        streams = self._kept.pop(spec, {})
        return {name: stream.getvalue() for name, stream in streams.items()}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Keep it from the first item on, unless all is to be shown at once."""
        if self._config.getoption("capture", "no") in ("fd", "sys"):
            self._route(sys.stdout, "stdout")
            self._route(sys.stderr, "stderr")
            # What pytest puts in their place, also for the fixtures of other tests.
            self._route(CaptureIO)
            self._route(EncodedFile)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Leave the streams as they were; until now code that is not waited for has gone on."""
        self._undo.close()

    def _route(self, owner: Any, name: str = "") -> None:
        """Let a stream, or all of a class, write for nobody who works for a case."""
        original, own_write = owner.write, vars(owner).get("write")

        def write(*arguments: Any) -> Any:
            spec, text = case_at_work().get(), arguments[-1]
            if spec is None or not isinstance(text, str):
                return original(*arguments)
            stream = name or ("stderr" if arguments[0] is sys.stderr else "stdout")
            return self._kept.setdefault(spec, {}).setdefault(stream, io.StringIO()).write(text)

        owner.write = write
        if own_write is None:
            self._undo.callback(delattr, owner, "write")
        else:
            self._undo.callback(setattr, owner, "write", own_write)


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

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Take secrets out of a warning, before any plugin shows it or xdist sends it."""
        text = str(warning_message.message)
        clean = self._redactor.of_code(text)
        if clean != text:
            warning_message.message = clean

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Print what is in no report without secrets; leave logging as it was."""
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        # After an interrupt or an internal error pytest captures no more.
        if capture is not None and capture._global_capturing is not None:
            out, err = capture.read_global_capture()
            sys.stdout.write(self._redactor.of_code(out))
            sys.stderr.write(self._redactor.of_code(err))
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

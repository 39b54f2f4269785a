"""Bringing a suite into play: reading the command line, and registering the hooks that a session
then needs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from _pytest._code.code import ExceptionInfo, ExceptionRepr
from _pytest._io import TerminalWriter
from _pytest.capture import CaptureIO, EncodedFile, TeeCaptureIO
from _pytest.warnings import catch_warnings_for_item

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.config.load import looks_like_suite
from pytest_jrh.core import (
    InputError,
    Problem,
    absolute,
    collecting,
    counted,
    relative_path,
    replace_what_cannot_be_shown,
)
from pytest_jrh.core.foreign_code import printing_kept
from pytest_jrh.core.redact import Redactor
from pytest_jrh.engine.planning import plan_lines
from pytest_jrh.plugin.collect import CaseItem, DecisionItem, SuiteFile, mistake_text
from pytest_jrh.plugin.options import OPTIONS_READ, RESULT_ATTRIBUTE
from pytest_jrh.plugin.reporter import Reporter
from pytest_jrh.plugin.session import NOTICES_KEY, SESSION, SuiteSession, captured, uncaptured
from pytest_jrh.store.ledger import ledger_line

# litellm ignores it too, when it is imported; but where pytest catches warnings at that moment, it
# takes litellm's filter away afterwards.
_WARNING_OF_LITELLM = "ignore:.*`ReadOnly` qualifier:UserWarning:pydantic"


def activate(config: pytest.Config) -> SuiteSession:
    """The session's suites; the first call registers the hooks that act on them."""
    if SESSION not in config.stash:
        config.addinivalue_line("markers", "jrh: a case of a judge reliability suite")
        for kind in KINDS.values():
            config.addinivalue_line("markers", f"{kind.name}: {kind.marker}")
        config.addinivalue_line("filterwarnings", _WARNING_OF_LITELLM)
        session = config.stash[SESSION] = _SuiteHooks(config, config.stash[OPTIONS_READ])
        config.pluginmanager.register(session, "jrh-session")
        secrecy = _Secrecy(config, session.redactor)
        config.pluginmanager.register(secrecy, "jrh-secrecy")
        if not session.is_worker:
            config.pluginmanager.register(Reporter(session), "jrh-reporter")
    return config.stash[SESSION]


def activate_named(config: pytest.Config) -> None:
    """Load the named suites and let pytest collect them; raises `pytest.UsageError`."""
    configs, folder = config.stash[OPTIONS_READ].configs, config.invocation_params.dir
    has_arguments = config.args_source is pytest.Config.ArgsSource.ARGS
    is_typed = bool(config.getoption("jrh_config"))
    # Where nothing is named, pytest knows by itself what to collect beside the suites.
    arguments = [] if is_typed and not has_arguments else config.args
    places = [absolute(folder / argument.partition("::")[0]) for argument in arguments]
    if has_arguments and not is_typed:
        # Those of the ini file are, as its `testpaths`, for a session that names nothing else.
        configs = tuple(path for path in configs if path in places)
    if not configs:
        return
    session = activate(config)
    with captured(config), warnings_reported(config):
        problems: list[Problem] = []
        for path in configs:
            with collecting(problems):
                session.load(path)
        if problems:
            raise _unusable("the suite", problems, session.redactor)
        try:
            _ = session.baseline.content
        except InputError as error:
            raise _unusable("the baseline", error.problems, session.redactor) from None
        session.check_budget()
        if session.options.plan and session.is_distributed and not session.is_worker:
            raise pytest.UsageError("--jrh-plan: not supported under xdist; run it with -n0")
    if is_typed or has_arguments:
        session.named_configs = configs
    # Before pytest 9, a file named beside its folder leaves out everything else in that folder.
    covered = {path for path in configs if any(map(path.is_relative_to, places))}
    config.args[:] = [*arguments, *(str(path) for path in configs if path not in covered)]


def collect(file_path: Path, parent: pytest.Collector, *, certain: bool) -> SuiteFile | None:
    """The collector of a suite file; None for another YAML file, unless it is `certain`."""
    if not certain and not looks_like_suite(file_path):
        return None
    activate(parent.config)
    # pytest itself gives all files from outside of its rootdir the same, empty id. An absolute one
    # is what `--lf` reads from its cache, and is printed relative to the starting folder.
    node = relative_path(file_path, parent.config.rootpath).as_posix()
    return SuiteFile.from_parent(parent, path=file_path, nodeid=node)


def _unusable(role: str, problems: Sequence[Problem], redactor: Redactor) -> pytest.UsageError:
    lines = "\n".join(str(problem) for problem in dict.fromkeys(problems))
    # What a module raised while it was imported is among them.
    return pytest.UsageError(
        redactor.of_code(
            f"{role} cannot be used, because of {counted(len(problems), 'problem')}:\n{lines}"
        )
    )


class _SuiteHooks(SuiteSession):
    """The suites of a process, with the hooks that act on them."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Start every selected case before the first item; workers start item by item."""
        options = session.config.option
        # After an error of collection pytest runs nothing, so nothing may be asked either.
        stopped = session.testsfailed and not options.continue_on_collection_errors
        if options.collectonly or stopped:
            return None
        specs = [item.spec for item in session.items if isinstance(item, CaseItem)]
        if specs and any(judge.runs_code for of in self.suites for judge in of.judges.values()):
            self._capture_programs()
        if self.is_worker:
            return None
        if self.options.plan:
            writer = session.config.get_terminal_writer()
            writer.sep("=", "judge reliability plan")
            suites, surveys = self.suites, self._running().survey(specs)
            for line in plan_lines(suites, surveys, writer.fullwidth):
                writer.line(line)
            return True
        self.reviewing.open(specs)
        with captured(self.config):
            self.start(specs)
        self.reviewing.wait()
        return None

    def _capture_programs(self) -> None:
        """Capture what programs print between items, too, when pytest would give the terminal back:
        a debugger alone gets it.
        """
        plugins = self.config.pluginmanager
        capture: Any = plugins.get_plugin("capturemanager")
        terminal = plugins.get_plugin("terminalreporter")
        if self.config.getoption("capture", "no") != "fd":
            return
        undo = self.programs
        if terminal is not None and not self.is_worker:
            writer = terminal._tw
            if writer._file is not sys.__stdout__:
                return
            file: Any = writer._file
            file.flush()
            # Asked for once more it would be that of a file.
            writer.fullwidth = writer.fullwidth
            undo.callback(setattr, writer, "_file", file)
            writer._file = undo.enter_context(
                os.fdopen(os.dup(1), "w", encoding=file.encoding, errors="replace")
            )
        undo.callback(capture.suspend_global_capture, in_=True)

        def suspend(in_: bool = False) -> None:  # noqa: FBT001, FBT002
            if in_:
                undo.close()

        undo.enter_context(patch.object(capture, "suspend_global_capture", suspend))
        capture.resume_global_capture()

    # Outside of all other plugins: pytest-timeout measures an item's time in a wrapper of this
    # hook, too.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Wait for the item's case before its time begins; a worker starts it and the next."""
        if self.is_worker:
            self.start([one.spec for one in (item, nextitem) if isinstance(one, CaseItem)])
        if isinstance(item, CaseItem) and item.get_closest_marker("skip") is None:
            self.wait(item.spec)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the case's result as text on one report, which travels between processes."""
        report = yield
        if not isinstance(item, CaseItem):
            if isinstance(item, DecisionItem) and item.is_shown:
                # As pytest marks what is not to be shown a second time, among its FAILURES.
                report._pdbshown = True  # type: ignore[attr-defined]
            return report
        if call.when != "call" and call.excinfo is not None and report.failed:
            # pytest asks an item for its own words about its call alone.
            report.longrepr = item.repr_failure(call.excinfo)
        # A setup that passes is followed by the call, which then carries it.
        if item.result is not None and (
            call.when == "call" or (call.when == "setup" and not report.passed)
        ):
            text = ledger_line(item.result, item.ready.suite, self.redactor)
            setattr(report, RESULT_ATTRIBUTE, text)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """End the engine before results are written."""
        self.stop()
        if self.is_worker:
            output = self.config.workeroutput  # type: ignore[attr-defined]
            output[NOTICES_KEY] = list(self.notices)

    @pytest.hookimpl(trylast=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Await the calls in flight and say so; a second Ctrl-C does not wait for them."""
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        try:
            if terminal is not None and self.engine is not None:
                # Who reads the line may count on it.
                self.engine.begin_no_more()
                terminal.ensure_newline()
                terminal.write_line(
                    "jrh: waiting for calls in flight, to record them; Ctrl-C again quits at once"
                )
            self.stop()
        except KeyboardInterrupt:
            # The engine's thread ends with the process.
            self._abandoned = True


def warnings_reported(config: pytest.Config) -> AbstractContextManager[None]:
    """Put this block's warnings into pytest's summary, if pytest prints warnings."""
    if not config.pluginmanager.has_plugin("warnings"):
        return contextlib.nullcontext()
    return catch_warnings_for_item(config, config.hook, "runtest", None)


class _Secrecy:
    """No secret in what pytest itself shows and writes, such as JUnit's file and a log file:
    tracebacks of our own mistakes, what is captured, and log records.
    """

    def __init__(self, config: pytest.Config, redactor: Redactor) -> None:
        self._config = config
        self._redactor = redactor
        self._records = logging.getLogRecordFactory()
        logging.setLogRecordFactory(self._record)
        self._printing = contextlib.ExitStack()
        with uncaptured(config):
            # Those of pytest, and what it puts back when it does not capture.
            streams = {EncodedFile, CaptureIO, TeeCaptureIO, sys.stdout, sys.stderr}
            replace_what_cannot_be_shown()
        self._printing.enter_context(printing_kept(streams | {sys.__stdout__, sys.__stderr__}))
        self._capture = config.pluginmanager.get_plugin("capturemanager")
        if self._capture is not None:
            # Ctrl-C and internal errors would end it, and print what no report has as it is.
            as_long = patch.object(self._capture, "stop_global_capturing", bool)
            self._printing.enter_context(as_long)

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
        """Take secrets out of what was written while an item ran, or a suite was read."""
        report = yield
        for number, (name, content) in enumerate(report.sections):
            report.sections[number] = (name, self._redactor.of_code(content))
        return report

    pytest_make_collect_report = pytest_runtest_makereport

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Report warnings of the engine's threads while no item runs."""
        with warnings_reported(self._config), current_test_hidden():
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Take secrets out of a warning."""
        text = str(warning_message.message)
        clean = self._redactor.of_code(text)
        if clean != text:
            warning_message.message = UserWarning(clean)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Leave streams and logging as they were, and print what no report has."""
        self._printing.close()
        if self._capture is not None:
            self._capture.suspend_global_capture()
            out, error = self._capture.read_global_capture()
            sys.stdout.write(self._redactor.of_code(out))
            sys.stderr.write(self._redactor.of_code(error))
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
        if record.exc_info:
            # What a formatter finds there it takes in place of formatting the exception itself.
            traceback = logging.Formatter().formatException(record.exc_info)
            record.exc_text = self._redactor.of_code(traceback)
        return record


@contextlib.contextmanager
def current_test_hidden() -> Iterator[None]:
    """Hide `PYTEST_CURRENT_TEST` from engine threads that go through the environment: pytest
    removes it meanwhile, which would raise `KeyError`.
    """
    environ: Any = type(os.environ)
    all_names, running_items = environ.__iter__, threading.get_ident()

    def names(variables: Any) -> Iterator[str]:
        is_here = threading.get_ident() == running_items
        for name in all_names(variables):
            if is_here or os.fsencode(name) != b"PYTEST_CURRENT_TEST":
                yield name

    environ.__iter__ = names
    try:
        yield
    finally:
        environ.__iter__ = all_names

"""What pytest shows of our own mistakes holds no secret, in whichever process they are made."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.plugin.own_judges import RECORD, MakeJudged
from tests.plugin.recorded import run_pytest
from tests.support.fork_server import python
from tests.support.suites import write_suite

KEY = "sk-proj-" + "Zq7" * 20 + "END"
PIECE = KEY[8:20]

_BROKEN_RESULT = """
import logging, sys
from pytest_jrh.plugin.session import SuiteSession

def result(self, spec):
    key = self.redactor.secrets[0]
    print("printed", key)
    logging.getLogger("some").warning("logged %s", key)
    raise ValueError("held by " + key)

SuiteSession.result = result
"""
_BROKEN_START = """
from pytest_jrh.plugin.session import SuiteSession

def start(self, specs):
    secret = self.redactor.secrets[0]
    return fail_with(secret)

def fail_with(secret):
    raise RuntimeError("held by " + secret)

SuiteSession.start = start
"""
_BROKEN_COLLECTION = """
from pytest_jrh.engine.suite import ReadySuite

def specs(self):
    import os
    return fail_with(os.environ["OPENAI_API_KEY"])

def fail_with(secret):
    raise RuntimeError("held by " + secret)

ReadySuite.specs = specs
"""


@pytest.fixture
def option(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return write_suite(pytester.path, runs=1).option


@pytest.mark.parametrize(
    ("broken", "processes"),
    [(_BROKEN_RESULT, ("-n1",)), (_BROKEN_START, ()), (_BROKEN_COLLECTION, ())],
)
def test_a_mistake_of_ours_shows_no_secret(
    pytester: pytest.Pytester, option: str, broken: str, processes: tuple[str, ...]
) -> None:
    pytester.makeconftest(broken)
    result = pytester.run(
        *python(),
        "-m",
        "pytest",
        option,
        "--showlocals",
        "-rA",
        "--junitxml=results.xml",
        *processes,
    )
    assert result.ret != 0
    report = pytester.path / "results.xml"
    shown = (
        str(result.stdout)
        + str(result.stderr)
        + (report.read_text(encoding="utf-8") if report.exists() else "")
    )
    assert "held by [REDACTED]" in shown
    assert PIECE not in shown


def test_no_secret_is_in_a_mistake_of_another_plugin(
    pytester: pytest.Pytester, option: str
) -> None:
    pytester.makeconftest(
        """
        import os

        def pytest_runtestloop():
            raise RuntimeError("held by " + os.environ["OPENAI_API_KEY"])
        """
    )
    result = pytester.run(*python(), "-m", "pytest", option)
    shown = str(result.stdout) + str(result.stderr)
    assert "held by [REDACTED]" in shown


_SPEAKING = """
import logging, os, sys, warnings


def speak(who):
    key = os.environ["OPENAI_API_KEY"]
    print(who, "printed", key)
    print(who, "complained", key, file=sys.stderr)
    os.write(1, f"{who} wrote {key}\\n".encode())
    warnings.warn(f"{who} warned", stacklevel=1)
    try:
        raise ValueError(key)
    except ValueError:
        logging.getLogger("own").exception("no answer", stack_info=True)


def judge(case):
    speak("judge")
    return 0
"""


@pytest.mark.parametrize(
    ("named", "workers"), [(True, []), (False, ["-n", "2"])], ids=["named", "discovered -n 2"]
)
def test_what_a_judge_prints_and_logs_is_shown_without_secrets(
    judged: MakeJudged,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    workers: list[str],
    named: bool,
) -> None:
    """A case is waited for before its item begins, and so before pytest captures for it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = judged(_SPEAKING)
    suite = made.suite.option if named else str(made.suite.config)
    logs = ["--log-cli-level=INFO", "--log-file=all.log"] if named else []
    arguments = (suite, RECORD, "-rP", "-k", "positives and run-1", *logs, *workers)
    done = run_pytest(pytester.path, *arguments)
    assert PIECE not in done.stdout + done.stderr
    summary_of_warnings = done.stdout.partition("= warnings summary =")[2]
    assert "UserWarning: judge warned" in summary_of_warnings
    for line in ("printed", "complained", "wrote"):
        assert f"judge {line} [REDACTED]" in done.lines
    if named:
        log = (pytester.path / "all.log").read_text(encoding="utf-8")
        assert PIECE not in log
        for text in (done.stdout, log):
            assert "ValueError: [REDACTED]" in text


_OF_ITS_CASE = """
import asyncio, logging, os, sys, threading, warnings

KEY = os.environ["OPENAI_API_KEY"]
print("imported", KEY)
KEPT, LOG = sys.stderr, logging.getLogger("own")
LOG.addHandler(logging.StreamHandler())


async def judge(case):
    who = f"<{case.run_id}>"
    await asyncio.sleep(0)
    print(who, "print", KEY)
    sys.stdout.write(who + " pieces " + KEY[:9])
    await asyncio.sleep(0)
    sys.stdout.write(KEY[9:] + "\\n")
    print(who, "stderr", KEY, file=sys.stderr)
    print(who, "kept", KEY, file=KEPT)
    print(who, "original", KEY, file=sys.__stdout__, flush=True)
    LOG.warning("%s log %s", who, KEY)
    warnings.warn(who + " warning " + KEY)
    thread = threading.Thread(target=print, args=(who, "thread", KEY))
    thread.start()
    thread.join()
    return 0
"""
_WAYS = ("print", "pieces", "stderr", "kept", "original", "log", "thread")


@pytest.mark.parametrize("options", [(), ("-n2",), ("-s",), ("--capture=sys", RECORD)])
def test_what_code_prints_stands_in_its_own_case_without_keys(
    judged: MakeJudged,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = judged(_OF_ITS_CASE)
    junit = ("--junitxml=results.xml", "-o", "junit_logging=all")
    arguments = (made.suite.option, "-k", "positives and not run-3", "-rA", *junit, *options)
    done = run_pytest(pytester.path, *arguments)
    report = (pytester.path / "results.xml").read_text("utf-8")
    assert PIECE not in done.stdout + done.stderr + report
    assert "UserWarning: <run-1> warning [REDACTED]" in done.stdout
    for case in ElementTree.fromstring(report).iter("testcase"):
        text = "".join(output.text or "" for output in case if output.tag.startswith("system"))
        words = re.findall(r"<([\w-]+)> (\w+) \[REDACTED\]", text)
        run_id = case.attrib["name"].partition("[")[0]
        expected = {} if "-s" in options else {(run_id, way) for way in _WAYS}
        assert set(words) == set(expected)


def test_what_a_module_raises_that_cannot_be_imported_is_shown_without_secrets(
    judged: MakeJudged, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = judged("import os\nraise ValueError('no more ' + os.environ['OPENAI_API_KEY'])\n")
    done = run_pytest(pytester.path, made.suite.option)
    assert "ValueError: no more [REDACTED]" in done.stdout + done.stderr
    assert KEY[:8] not in done.stdout + done.stderr

"""What pytest shows of our own mistakes holds no secret, in whichever process they are made."""

from __future__ import annotations

import pytest

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
from pytest_jrh.engine.loading import ReadySuite

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
    [
        (_BROKEN_RESULT, ("-n1",)),
        (_BROKEN_START, ()),
        (_BROKEN_START, ("-n1",)),
        (_BROKEN_COLLECTION, ()),
    ],
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
    assert "please report it" in shown
    assert PIECE not in shown


def test_a_mistake_of_another_plugin_is_not_called_ours(
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
    assert "mistake in pytest-jrh" not in shown


def test_what_an_item_prints_and_logs_is_shown_without_secrets(
    pytester: pytest.Pytester, option: str
) -> None:
    pytester.makeconftest(_BROKEN_RESULT)
    result = pytester.run(*python(), "-m", "pytest", option, "-o", "log_cli=true")
    result.stdout.fnmatch_lines(["*logged [[]REDACTED]*", "printed [[]REDACTED]"])
    result.stdout.no_fnmatch_line(f"*{PIECE}*")

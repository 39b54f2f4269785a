"""Rows that a project adds to the tables take part like built-in ones (docs/python.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.test_documents import blocks

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
CHATS = """\
{"id": "a", "said": [["customer", "Will it hold?"], ["agent", "I guarantee it."]]}
{"id": "b", "said": [["customer", "Will it hold?"], ["agent", "We think so."]]}
"""
MORE = """
from pytest_jrh.cases.probes.probe import Derived, Probe, Variant
from pytest_jrh.core.text import Styled
from pytest_jrh.reports.report import Report


class Applause(Report):
    def lines(self, session, display):
        yield Styled("Applause!")


def polite(base, variant, random):
    return Derived((*base.messages, {"role": "user", "content": "Thank you."}))


def pytest_jrh_register(tables):
    tables.reports.append(Applause())
    tables.probes.append(
        Probe("politeness", "a case with thanks", lambda: (Variant("end"),), polite)
    )
"""
RUBRICS = "- id: no_guarantee\n  instructions: The agent guarantees nothing.\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    """The project that the page describes."""
    for language in ("python", "yml"):
        for block in blocks(PAGE, language):
            named = re.match(r"# (\w+(\.jrh)?\.(py|yml))\n", block)
            if named:
                (pytester.path / named[1]).write_text(block, "utf-8")
    (pytester.path / "chats.chat").write_text(CHATS, "utf-8")
    (pytester.path / "rubrics.yml").write_text(RUBRICS, "utf-8")
    (pytester.path / "labels.csv").write_text("run_id,label\na,1\nb,0\n", "utf-8")
    return pytester.path


def test_all_that_a_project_adds_is_used(pytester: pytest.Pytester, project: Path) -> None:
    (project / "thanks.py").write_text(MORE, "utf-8")
    config = project / "chats.jrh.yml"
    text = config.read_text("utf-8")
    config.write_text(text.replace("[labels]", "[labels, politeness]"), "utf-8")
    result = pytester.runpytest_subprocess("-p", "thanks", "-v", "chats.jrh.yml")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines_random(
        ["*::politeness::*PASSED*", "*0 false alarms on 1 satisfied case", "Applause!*"]
    )


def test_a_name_that_is_in_use_is_refused(pytester: pytest.Pytester, project: Path) -> None:
    conftest = project / "conftest.py"
    conftest.write_text(f"{conftest.read_text('utf-8')}    tables.judges.append(WORDS)\n", "utf-8")
    result = pytester.runpytest_subprocess("--jrh-config=chats.jrh.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is a judge 'forbidden_words' already"])

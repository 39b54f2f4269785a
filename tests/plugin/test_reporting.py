"""What a session prints beside its items, and what becomes of cassettes that nothing uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_jrh.config.options import Options
from pytest_jrh.plugin.session import SuiteSession
from tests.plugin.recorded import Recorded, run_pytest

HEAVY = ("litellm", "inspect_ai", "vcr", "yaml", "pydantic", "jinja2")
REPORT = (
    "import sys\n\n"
    "def pytest_unconfigure(config):\n"
    "    if not hasattr(config, 'workerinput'):\n"
    f"        print('imported:', [name for name in {HEAVY} if name in sys.modules])\n"
)


def test_a_quiet_run_has_a_line_for_the_suite_and_what_was_decided(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, "-q", "--tb=no", "-rN")
    result.stdout.no_fnmatch_line("jrh: suite*")
    start = next(n for n, line in enumerate(result.outlines) if "judge reliability" in line)
    headline, report = result.outlines[start + 1 : -1]
    assert headline == "FAIL  1 case has no verdict (1 unrecorded)"
    assert report.startswith("report      outputs/tiny/report.html  ")


def test_there_is_no_line_of_progress_without_pytests_terminal(pytester: pytest.Pytester) -> None:
    session = SuiteSession(pytester.parseconfigure("-p", "no:terminal"), Options())
    session.say("a line")


def test_a_session_without_suites_pays_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(REPORT, encoding="utf-8")
    (tmp_path / "test_ordinary.py").write_text("def test_ordinary(): pass", encoding="utf-8")
    (tmp_path / "settings.yml").write_text("colour: blue\n", encoding="utf-8")
    done = run_pytest(tmp_path, "-s", interpreter=[sys.executable])
    assert "imported: []" in done.lines
    assert "jrh:" not in done.stdout


def test_unused_cassettes_are_listed_and_removed(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    cassettes = recorded.tiny.cassettes
    # A file that is no cassette stays.
    (cassettes / "agent_positives/rubric-1/notes.yaml").write_text("version: 1\n", encoding="utf-8")
    kept = set(cassettes.rglob("*.yaml"))
    unused = [
        cassettes / "agent_positives/rubric-1/run-9.e1.generation.yaml",
        cassettes / "agent_positives/rubric-9/run-1.e1.judge-default.yaml",
    ]
    for path in unused:
        path.parent.mkdir(exist_ok=True)
        path.write_text("version: 1\n", encoding="utf-8")
    pruned = pytester.runpytest_inprocess(recorded.tiny.option, "--jrh-prune", "-k", "run-1")
    start = pruned.outlines.index("removed cassettes: 2")
    listed = [f"  {path.relative_to(pytester.path)}" for path in unused]
    assert pruned.outlines[start + 1 : start + 3] == listed
    assert set(cassettes.rglob("*.yaml")) == kept

"""User code in a session of pytest: what ends the session, what concerns a case alone, what a plan
does of it, shards of the hook's judge, rows that a project adds to the tables (docs/python.md);
and that a session without suites pays for nothing."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.recorded import ONE, RECORD, MakeJudged, Recorded, run_pytest, write_files
from tests.support.suites import write_suite
from tests.unit.test_documents import blocks

CLIENT = """
    import pytest

    async def complete(stage, messages, response_model):
        raise pytest.exit.Exception("enough", returncode=0)

    def pytest_jrh_complete(config):
        return complete
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "-n 2"])
def test_a_client_can_end_a_session(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytester.makeconftest(CLIENT)
    suite = write_suite(pytester.path, runs=1, tests=["agent_positives"])
    done = run_pytest(pytester.path, suite.option, "--jrh-record-mode=once", *workers)
    assert done.code == pytest.ExitCode.INTERRUPTED, done
    assert "INTERNALERROR" not in done.stdout + done.stderr


def test_a_failing_hook_concerns_no_replay(pytester: pytest.Pytester, recorded: Recorded) -> None:
    pytester.makeconftest("def pytest_jrh_complete(config):\n    raise SystemExit(3)\n")
    replayed = pytester.runpytest_inprocess(recorded.tiny.option, "-k", "run-1")
    replayed.assert_outcomes(passed=2, deselected=6)


def test_waiting_for_a_case_is_no_items_time(judged: MakeJudged, pytester: pytest.Pytester) -> None:
    made = judged("import time\n\ndef judge(case):\n    time.sleep(2.5)\n    return 0\n")
    options = (RECORD, "-k", "positives and run-1", "--timeout=1.5")
    done = run_pytest(pytester.path, made.suite.option, *options)
    assert done.code == 0, done
    assert "Timeout" not in done.stdout


HEAVY = ("litellm", "inspect_ai", "vcr", "yaml", "pydantic", "jinja2")
IMPORTED = (
    "import sys\n\n"
    "def pytest_unconfigure(config):\n"
    f"    print('imported:', [name for name in {HEAVY} if name in sys.modules])\n"
)


def test_a_session_without_suites_pays_for_nothing(pytester: pytest.Pytester) -> None:
    ordinary = {"test_ordinary.py": "def test_ordinary(): pass", "settings.yml": "colour: blue\n"}
    write_files(pytester.path, {"conftest.py": IMPORTED, **ordinary})
    done = run_pytest(pytester.path, "-s", interpreter=[sys.executable])
    assert "imported: []" in done.lines
    assert "jrh:" not in done.stdout


def test_a_plan_runs_no_judges_code(judged: MakeJudged, pytester: pytest.Pytester) -> None:
    made = judged("def judge(case):\n    raise ValueError\n")
    done = pytester.runpytest_inprocess(made.suite.option, RECORD, "--jrh-plan", *ONE)
    flat = " ".join(done.stdout.str().split())
    assert "(0 to 1 judge)" in flat
    assert "Judges in code are not called now, so the total has at most one call per case" in flat


HOOK = """
from by_hook import judge

def pytest_jrh_judge(config, suite):
    return judge
"""
BY_HOOK = "def judge(case):\n    return int('ok-marker-violation' in case.transcript)\n"


def test_shards_of_a_judge_of_the_hook_are_merged_where_it_is_named(
    recorded: Recorded,
    pytester: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suite = recorded.tiny
    pytester.makeconftest(HOOK)
    pytester.makepyfile(by_hook=BY_HOOK)
    run_pytest(suite.folder, suite.option)
    shutil.move(suite.folder / "outputs", suite.folder / "shard")
    capsys.readouterr()
    assert main(["merge", suite.option, "shard"]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert "is by a judge with another model, prompt or parameters" in said
    assert "For a judge of the hook pytest_jrh_judge, pass --judge=MODULE:FUNCTION." in said
    monkeypatch.syspath_prepend(suite.folder)
    assert main(["merge", "-v", suite.option, "--judge=by_hook:judge", "shard"]) == 0
    assert re.search(r"\nrubric-1 +6 +100.0%", capsys.readouterr().out)
    assert main(["merge", suite.option, "--judge=by_hook:judged", "shard"]) == 4
    assert '"judge" is the nearest' in capsys.readouterr().err


PAGE = Path(__file__).parents[2] / "docs" / "python.md"
CHATS = """\
{"id": "a", "said": [["customer", "Will it hold?"], ["agent", "I guarantee it."]]}
{"id": "b", "said": [["customer", "Will it hold?"], ["agent", "We think so."]]}
"""
ROWS = """
from pytest_jrh.cases.probes.probe import Derived, Probe, Variant
from pytest_jrh.core import Styled
from pytest_jrh.reports.report import Report


class Applause(Report):
    def lines(self, session, display):
        yield Styled("Applause!")


def polite(base, variant, random):
    return Derived((*base.messages, {"role": "user", "content": "Thank you."}))


def pytest_jrh_register(tables):
    tables.reports.append(Applause())
    tables.probes.append(Probe("politeness", "with thanks", lambda: (Variant("end"),), polite))
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
    (project / "thanks.py").write_text(ROWS, "utf-8")
    config = project / "chats.jrh.yml"
    text = config.read_text("utf-8")
    config.write_text(text.replace("[labels]", "[labels, politeness]"), "utf-8")
    result = pytester.runpytest_subprocess("-p", "thanks", "-v", "chats.jrh.yml")
    result.assert_outcomes(passed=4)
    shown = ["*::politeness::*PASSED*", "*0 false alarms on 1 satisfied case", "Applause!*"]
    result.stdout.fnmatch_lines_random(shown)


def test_a_name_that_is_in_use_is_refused(pytester: pytest.Pytester, project: Path) -> None:
    conftest = project / "conftest.py"
    conftest.write_text(f"{conftest.read_text('utf-8')}    tables.judges.append(WORDS)\n", "utf-8")
    result = pytester.runpytest_subprocess("--jrh-config=chats.jrh.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the judge 'forbidden_words' is already registered"])

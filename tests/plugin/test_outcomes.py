"""What each outcome looks like in pytest."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.plugin.recorded import PERTURBATION, Done, Recorded, run_pytest
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.suites import write_suite

TINY = "inputs/configs/tiny.yml"
DISAGREE = f"{TINY}::{PERTURBATION}run-2[e1]"
CASSETTES = "inputs/cassettes/tiny/agent_perturbation/rubric-1"
RECORDING = "--jrh-record-mode=new_episodes"
REFUSING = override(Obedient(), planner={"thesis": "", "steps": []})


@dataclass(frozen=True, slots=True)
class Session:
    """The suite `tiny` replayed with `-v`, in a folder of its own."""

    folder: Path
    done: Done

    def has_lines(self, *patterns: str) -> None:
        pytest.LineMatcher(self.done.lines).fnmatch_lines(patterns)


@pytest.fixture(scope="module")
def session(recorded_once: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Session:
    suite = recorded_once.copied(tmp_path_factory.mktemp("outcomes")).tiny
    options = (suite.option, "-v", "-rA")
    return Session(suite.folder, run_pytest(suite.folder, *options, env={"COLUMNS": "200"}))


def test_each_outcome_is_pytests_own(session: Session) -> None:
    assert session.done.code == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 4 passed, 2 skipped, 1 error in" in session.done.lines[-1]
    lines = [line for line in session.done.lines if line.startswith(("FAILED", "ERROR"))]
    short = [line.partition(" - ")[2] for line in lines]
    gave = "The judge gave 0 (satisfied); the right answer is 1 (violated)."
    assert f"As planned: {gave}" in short
    why = "No verdict (unrecorded): the judge's call is not recorded."
    assert any(line.startswith(why) for line in short)
    session.has_lines(
        "SKIPPED [[]2[]] inputs/data/tiny/rubrics.yml:1: *the assistant said nothing*"
    )
    assert "Traceback" not in session.done.stdout
    assert "plugin/collect.py" not in session.done.stdout


def test_a_disagreement_explains_itself(session: Session) -> None:
    session.has_lines(
        "*= FAILURES =*",
        "*agent_perturbation::rubric-1::run-2?e1?*",
        "The judge gave 0 (satisfied); the right answer is 1 (violated).",
        "rubric: rubric-1 (inputs/data/tiny/rubrics.yml:1)",
        "    Demand 1: the assistant answers kindly and clearly.",
        "expected: 1 (violated), by its label (verifier):",
        "    The closing words of the assistant show it.",
        "given: 0 (satisfied), because",
        "    Nothing is wrong with this.",
        "1 edit made this case:",
        "    turn 4 (assistant)",
        "    [-Good news: order 1002 was shipped yesterday.-]{+I have thought about it",
        "    again and did it that way: ok-marker-violation+}",
        f"cassette:     {CASSETTES}/run-2.e1.judge-default.yaml",
        f"run it again: pytest --jrh-config={TINY} '{DISAGREE.replace('[', '?')[:-1]}?'",
    )
    assert (session.folder / CASSETTES / "run-2.e1.judge-default.yaml").is_file()


def test_an_unrecorded_call_is_an_error_of_setup_with_the_command(
    session: Session, server: ModelServer
) -> None:
    session.has_lines(
        "*ERROR at setup of *run-4?e1?*",
        "No verdict (unrecorded): the judge's call is not recorded. *",
        f"cassette: {CASSETTES}/run-4.e1.judge-default.yaml",
    )
    name = "record it: "
    [command] = [line for line in session.done.lines if line.startswith(name)]
    words = shlex.split(command.removeprefix(name))
    assert words[0] == "pytest"
    done = run_pytest(session.folder, *words[1:])
    assert "1 passed in" in done.lines[-1]
    assert server.count() == server.count("judge") == 1


def test_a_run_without_a_single_case_is_not_green(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    server.answer = REFUSING
    suite = write_suite(pytester.path, tests=["agent_perturbation"])
    pytester.makepyfile(test_ordinary="def test_ordinary(): pass")
    result = pytester.runpytest_inprocess(suite.option, RECORDING, "test_ordinary.py")
    result.assert_outcomes(skipped=2, passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["note: No case reached a verdict, so this session is not green."])


CHANGING_ITS_MIND = """
from pathlib import Path

def judge(case):
    mark = Path(__file__).with_name(case.run_id)
    was_asked = mark.exists()
    mark.touch()
    return 0 if was_asked or case.run_id == "run-2" else 1
"""


def test_the_first_verdict_counts_where_a_plugin_runs_cases_again(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    suite = write_suite(
        pytester.path,
        runs=3,
        tests=["agent_positives"],
        overrides={"judge": {"python": "judges.py:judge"}},
    )
    suite.config.with_name("judges.py").write_text(CHANGING_ITS_MIND, encoding="utf-8")
    result = pytester.runpytest(suite.option, RECORDING, "--reruns=2", "-n", "2")
    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes["passed"], outcomes["rerun"]) == (2, 1, 4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED

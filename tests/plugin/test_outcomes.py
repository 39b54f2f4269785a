"""What each outcome looks like in pytest."""

from __future__ import annotations

import html
import json
import shlex

import pytest

from tests.plugin.recorded import PERTURBATION, Recorded
from tests.support.fork_server import python
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.suites import write_suite

TINY = "inputs/configs/tiny.yml"
DISAGREE = f"{TINY}::{PERTURBATION}run-2[e1]"
UNRECORDED = f"{TINY}::{PERTURBATION}run-4[e1]"
RECORDING = "--jrh-record-mode=new_episodes"
REFUSING = override(Obedient(), planner={"thesis": "", "steps": []})


def test_each_outcome_is_pytests_own(
    pytester: pytest.Pytester, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = pytester.runpytest_inprocess(recorded.tiny.option, "-rA", "--tb=no")
    result.assert_outcomes(passed=4, failed=1, skipped=2, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    short = [
        line.partition(" - ")[2] for line in result.outlines if line.startswith(("FAILED", "ERROR"))
    ]
    gave = "The judge gave 0 (satisfied); the right answer is 1 (violated)."
    assert f"As planned: {gave}" in short
    assert any(
        line.startswith("No verdict (unrecorded): the judge's call is not recorded.")
        for line in short
    )
    result.stdout.fnmatch_lines(
        [
            "SKIPPED [[]2[]] inputs/data/tiny/rubrics.yml:1: *no assistant turn*",
            "read first  run-2  rubric-1: As planned*",
        ]
    )


def test_a_disagreement_explains_itself(pytester: pytest.Pytester, recorded: Recorded) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, DISAGREE, "-v")
    result.stdout.fnmatch_lines(
        [
            "*= FAILURES =*",
            "*agent_perturbation::rubric-1::run-2?e1?*",
            "The judge gave 0 (satisfied); the right answer is 1 (violated).",
            "rubric: rubric-1 (inputs/data/tiny/rubrics.yml:1)",
            "    Demand 1: the assistant answers kindly and clearly.",
            "expected: 1 (violated), confirmed by the verifier:",
            "    The closing words of the assistant show it.",
            "given: 0 (satisfied), because",
            "    Nothing is wrong with this.",
            "1 edit made this case:",
            "    turn 4 (assistant)",
            "    - Good news: order 1002 was shipped yesterday.",
            "    + I have thought about it again and did it that way: ok-marker-violation",
            "cassette:     "
            "inputs/cassettes/tiny/agent_perturbation/rubric-1/run-2.e1.judge-default.yaml",
            f"run it again: pytest --jrh-config={TINY} '{DISAGREE.replace('[', '?')[:-1]}?'",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*plugin/collect.py*")
    [line] = [line for line in result.outlines if line.startswith("cassette:")]
    assert (pytester.path / line.removeprefix("cassette:").strip()).is_file()


def rerun_of(lines: list[str], name: str = "run it again:") -> list[str]:
    [command] = {line.removeprefix(name).strip() for line in lines if line.startswith(name)}
    assert command.startswith("pytest ")
    return shlex.split(command)


def test_an_unrecorded_call_is_an_error_of_setup_with_the_command(
    pytester: pytest.Pytester, recorded: Recorded, server: ModelServer
) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, UNRECORDED, "--junitxml=junit.xml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of *run-4?e1?*",
            "No verdict (unrecorded): the judge's call is not recorded. *",
            "cassette: "
            "inputs/cassettes/tiny/agent_perturbation/rubric-1/run-4.e1.judge-default.yaml",
            "next        pytest *",
            "            with an API key this records 1 case, and only what is missing",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    assert server.count() == 0
    # The terminal has one command for all cases; the item's own text has its own.
    whole = html.unescape((pytester.path / "junit.xml").read_text("utf-8"))
    command = rerun_of(whole.replace("</error>", "\n").splitlines(), "record it:")
    pytester.runpytest_inprocess(*command[1:]).assert_outcomes(passed=1)
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
    result.stdout.fnmatch_lines(["note: No case reached a verdict, so this run is not green."])


def test_a_test_that_is_not_evaluated_is_made_and_passes(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    evaluated = {"admin": {"evaluation_config": {"tests_to_evaluate": ["agent_positives"]}}}
    suite = write_suite(pytester.path, runs=1, overrides=evaluated)
    result = pytester.runpytest_inprocess(suite.option, RECORDING, "-k", "agent_perturbation")
    result.assert_outcomes(passed=1, deselected=1)
    assert result.ret == pytest.ExitCode.OK
    assert server.count("judge") == 0
    [record] = (suite.negatives / "agent_perturbations.jsonl").read_text("utf-8").splitlines()
    assert json.loads(record)["run_id"] == "run-1"


def test_a_plan_counts_no_judge_of_a_panel_for_what_is_not_judged(
    pytester: pytest.Pytester,
) -> None:
    judges = [{"name": name, "model": "openai/a", "template": "agent_judge"} for name in "ab"]
    judged = {"judges": judges, "tests_to_evaluate": ["agent_positives"]}
    suite = write_suite(pytester.path, runs=1, overrides={"admin": {"evaluation_config": judged}})
    result = pytester.runpytest_inprocess(suite.option, "--jrh-plan")
    assert "2 verifier, 2 judge)" in " ".join(result.stdout.str().split())


def test_a_bug_keeps_its_traceback(pytester: pytest.Pytester, recorded: Recorded) -> None:
    pytester.makeconftest(
        """
        from pytest_jrh.engine.suite import ReadySuite

        def broken(self, spec):
            raise ZeroDivisionError("a bug in the house")

        ReadySuite.read = broken
        """
    )
    result = pytester.run(*python(), "-m", "pytest", recorded.tiny.option, "-k", "run-1", "-n", "2")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        ["*ERROR at setup of *", "*conftest.py:*", "E *ZeroDivisionError: a bug in the house"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


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
    result.stdout.fnmatch_lines(["note: Run again: 2 cases; the first verdict of each counts."])

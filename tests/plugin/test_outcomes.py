"""What each outcome looks like in pytest."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.plugin.gated import LAX, Project
from tests.plugin.recorded import PERTURBATION, Done, Recorded, run_pytest
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.suites import write_suite

TINY = "inputs/configs/tiny.yml"
HEADLINE = "The judge gave 0 (satisfied); the label (verifier) is 1 (violated)."
RUBRIC = "    Demand 1: the assistant answers kindly and clearly."
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
    assert f"{HEADLINE} Edit: As planned" in short
    why = "No verdict (unrecorded): the judge's call is not recorded."
    assert any(line.startswith(why) for line in short)
    session.has_lines("SKIPPED [[]2[]] inputs/data/tiny/rubrics.yml:1: *assistant said nothing*")
    assert "Traceback" not in session.done.stdout
    assert "plugin/collect.py" not in session.done.stdout


def test_a_disagreement_explains_itself(session: Session) -> None:
    session.has_lines(
        "*= FAILURES =*",
        "*agent_perturbation::rubric-1::run-2?e1?*",
        HEADLINE,
        "rubric: rubric-1 (inputs/data/tiny/rubrics.yml:1)",
        RUBRIC,
        "expected: 1 (violated), by the label (verifier):",
        "    The closing words of the assistant show it.",
        "given: 0 (satisfied), because",
        "    Nothing is wrong with this.",
        "made by 1 edit:",
        "    turn 4 (assistant)",
        "    [-Good news: order 1002 was shipped yesterday.-]{+I have thought about it",
        "    again and did it that way: ok-marker-violation+}",
        f"cassette:     {CASSETTES}/run-2.e1.judge-default.yaml",
        f"run it again: pytest --jrh-config={TINY} '{DISAGREE.replace('[', '?')[:-1]}?'",
    )
    assert (session.folder / CASSETTES / "run-2.e1.judge-default.yaml").is_file()


def test_without_v_a_case_has_few_lines(pytester: pytest.Pytester, project: Project) -> None:
    pytester.makepyfile(test_own="def test_it():\n    assert 1 == 2, 'own words'\n")
    result = pytester.runpytest(f"--jrh-config={LAX}", "test_own.py", "-n", "2")
    result.assert_outcomes(failed=5, passed=4)
    lines = result.outlines
    assert any(line.startswith("E       AssertionError: own words") for line in lines)
    assert RUBRIC not in lines
    starts = [number for number, line in enumerate(lines) if line == HEADLINE]
    assert all(lines[start + 5].startswith("___") for start in starts[:-1])
    assert len(starts) == 4


def test_a_quiet_run_says_what_was_decided(pytester: pytest.Pytester, recorded: Recorded) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, "-q", "--tb=no", "-rN")
    result.stdout.no_fnmatch_line("jrh: tiny*")
    start = next(n for n, line in enumerate(result.outlines) if "judge reliability" in line)
    headline, report = result.outlines[start + 1 : -1]
    assert headline == "FAIL  1 case has no verdict (1 unrecorded)"
    assert report.startswith("report      outputs/tiny/report.html  ")


def test_a_run_without_a_case_is_not_green(pytester: pytest.Pytester, server: ModelServer) -> None:
    server.answer = REFUSING
    suite = write_suite(pytester.path, tests=["agent_perturbation"])
    pytester.makepyfile(test_ordinary="def test_ordinary(): pass")
    result = pytester.runpytest_inprocess(suite.option, RECORDING, "test_ordinary.py")
    result.assert_outcomes(skipped=2, passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["note: No case has a verdict, so this session is not green."])


CHANGING_ITS_MIND = """
from pathlib import Path

def judge(case):
    mark = Path(__file__).with_name(case.run_id)
    was_asked = mark.exists()
    mark.touch()
    return 0 if was_asked or case.run_id == "run-2" else 1
"""


def test_the_first_verdict_counts_in_reruns(pytester: pytest.Pytester, server: ModelServer) -> None:
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

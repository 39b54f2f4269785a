"""Probes whose cases models of the suite make: recorded, paid once, foreseen, and frozen; and what
a probe cannot be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.fork_server import python
from tests.support.model_server import Answer, ModelServer, Obedient, Request
from tests.support.suites import SuiteFiles, write_suite

SPECIFICITY, PRESSURE, MINE = "rubric_specificity", "verdict_pressure", "third_person"
NEW = "--jrh-record-mode=new_episodes"
CLAIM = "I answered kindly and clearly."
RUNS = 2
JUDGES = ("strict", "credulous")


def answer(request: Request) -> Answer:
    """The obedient model, whose edits violate the rubric that they were made for alone; of the
    judges one believes what the assistant claims."""
    given = Obedient()(request)
    assert isinstance(given, dict)
    found = re.search(r"Demand (\d)", request.text)
    violated = f"fault-{found[1]}" if found else ""
    if request.stage == "editor":
        turns = re.findall(r"^\[(\d+)\] assistant\n  (.*)", request.text, re.MULTILINE)
        added = CLAIM if "argues that it kept the rubric" in request.text else ""
        if "Mend it" in request.text:
            added, turns = "", [(index, "I have mended it.") for index, _ in turns]
        written = [
            {"message_index": int(at), "new_content": f"{text} {added}"} for at, text in turns
        ]
        return {**given, "new_content": f"{given.get('new_content')} {violated}", "turns": written}
    if request.stage == "verifier":
        return {**given, "verdict": "FAIL" if violated in request.text else "PASS"}
    if request.stage == "judge":
        believes = request.model == "credulous" and CLAIM in request.text
        return {**given, "score": int(violated in request.text and not believes)}
    return given


def write_asking(folder: Path, *tests: str, **more: Any) -> SuiteFiles:
    named = [{"name": one, "model": f"openai/{one}", "template": "agent_judge"} for one in JUDGES]
    return write_suite(
        folder,
        runs=RUNS,
        rubrics=2,
        name="asking",
        tests=("agent_perturbation", *tests),
        overrides={"admin": {"evaluation_config": {"judges": named}}, **more},
    )


def test_cases_that_models_make_are_paid_once_and_replayed(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    server.answer = answer
    suite = write_asking(pytester.path, SPECIFICITY, PRESSURE)
    cases = RUNS * 2
    done = pytester.run(*python(), "-m", "pytest", suite.option, NEW, "-v", "-n", "2")
    done.assert_outcomes(passed=cases * 5, failed=cases)
    done.stdout.fnmatch_lines([f"FAILED *{PRESSURE}::*[[]e1-claim-credulous]*"] * cases)
    # Its own case, two of the other rubric, and one of the claim.
    assert server.count("verifier") == cases * 4
    assert server.count("editor") == cases * 2
    assert server.count("judge") == cases * 6
    calls = server.count()
    replayed = pytester.run(*python(), "-m", "pytest", suite.option, "--jrh-frozen", NEW)
    replayed.assert_outcomes(passed=cases * 5, failed=cases)
    assert server.count() == calls


@pytest.mark.usefixtures("server")
def test_a_plan_foresees_the_calls_of_probes_as_a_range(pytester: pytest.Pytester) -> None:
    suite = write_asking(pytester.path, SPECIFICITY, PRESSURE)
    cases = RUNS * 2
    plan = pytester.run(*python(), "-m", "pytest", suite.option, "--jrh-plan", NEW)
    # One of its own case; at most two of the other rubric, and one of the claim.
    assert foreseen(plan.outlines, "verifier") == (cases, cases * 4)
    assert foreseen(plan.outlines, "judge") == (cases * 2, cases * 6)


def test_a_probe_by_text_has_its_own_name_rule_and_marker(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    server.answer = answer
    mine = {MINE: {"instruction": "Mend it.", "changes": "flip", "of": ["perturbation"]}}
    gate = {"probes": {MINE: {"max_rate": 0.05}}}
    suite = write_asking(pytester.path, cases={"probes": mine}, gate=gate)
    command = [*python(), "-m", "pytest", suite.option, "--strict-markers", "-v"]
    done = pytester.run(*command, NEW, "-m", MINE)
    # Judges that follow what was mended; each case is made once for both.
    done.assert_outcomes(passed=RUNS * 2 * 2 + 1, deselected=RUNS * 2 * 2)
    done.stdout.fnmatch_lines(["*::third_person::*[[]e1-flip-strict]* PASSED*"])
    assert server.count("editor") == server.count("verifier") == RUNS * 2 * 2
    calls = server.count()
    pytester.run(*command).assert_outcomes(passed=RUNS * 2 * 4 + 1)
    assert server.count() == calls

    def stuck(request: Request) -> Answer:
        given = answer(request)
        assert isinstance(given, dict)
        return {**given, "score": 1} if request.stage == "judge" else given

    server.answer = stuck
    failed = pytester.run(*command, "--jrh-judge-record-mode=all", "-m", MINE, "--tb=short")
    # The rule decides about them together.
    failed.assert_outcomes(xfailed=RUNS * 2 * 2, failed=1, deselected=RUNS * 2 * 2)
    failed.stdout.fnmatch_lines(["*third_person turns 4 of 4 verdicts*"])


def foreseen(lines: Sequence[str], stage: str) -> tuple[int, int]:
    """At least and at most so many calls of a stage, in a plan."""
    ranges = re.findall(rf"(\d+)(?: to (\d+))? {stage}[,)]", " ".join(" ".join(lines).split()))
    return sum(int(low) for low, _ in ranges), sum(int(high or low) for low, high in ranges)

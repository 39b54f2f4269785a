"""Probes whose cases models of the suite make: recorded, paid once, foreseen, and frozen; and what
a probe cannot be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.fork_server import python
from tests.support.model_server import Answer, ModelServer, Obedient, Request
from tests.support.suites import SuiteFiles, write_suite

SPECIFICITY, PRESSURE = "rubric_specificity", "verdict_pressure"
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
        claim = "in the argument that the rubric was kept" in request.text
        added = CLAIM if claim else violated
        return {**given, "new_content": f"{given['new_content']} {added} {violated}"}
    if request.stage == "verifier":
        return {**given, "verdict": "FAIL" if violated in request.text else "PASS"}
    if request.stage == "judge":
        believes = request.model == "credulous" and CLAIM in request.text
        return {**given, "score": int(violated in request.text and not believes)}
    return given


def write_asking(folder: Path, *tests: str, judges: Sequence[str] = JUDGES) -> SuiteFiles:
    named = [{"name": one, "model": f"openai/{one}", "template": "agent_judge"} for one in judges]
    return write_suite(
        folder,
        runs=RUNS,
        rubrics=2,
        name="asking",
        tests=("agent_perturbation", *tests),
        overrides={"admin": {"evaluation_config": {"judges": named}}},
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


def foreseen(lines: Sequence[str], stage: str) -> tuple[int, int]:
    """At least and at most so many calls of a stage, in a plan."""
    ranges = re.findall(rf"(\d+)(?: to (\d+))? {stage}[,)]", " ".join(" ".join(lines).split()))
    return sum(int(low) for low, _ in ranges), sum(int(high or low) for low, high in ranges)

"""What `--jrh-plan` foresees is what a session then asks, whatever its modes.

And retries renew a case in one go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_jrh.core.calls import Bounds, RecordMode
from pytest_jrh.engine.planning import Survey
from tests.e2e.bench import Bench, MakeBench, cassette_files
from tests.support.model_server import Fault, ModelServer, Request
from tests.support.suites import BOTH_TESTS


def planned(bench: Bench, mode: RecordMode | None, **more: Any) -> list[Survey]:
    """The plan of all cases, made by an engine without any call."""
    engine = bench.engine(mode, ask=False, **more)
    try:
        return engine.survey(bench.specs)
    finally:
        engine.stop()


def to_make(plan: list[Survey]) -> dict[str, Bounds]:
    """The calls to make, by stage; stages without any are left out."""
    found: dict[str, Bounds] = {}
    for survey in plan:
        for model, bounds in survey.to_make.items():
            found[model.stage] = found.get(model.stage, Bounds()) + bounds
    return {stage: bounds for stage, bounds in found.items() if bounds.high}


def unrecorded(plan: list[Survey]) -> int:
    return sum(survey.stays_unrecorded for survey in plan)


def asked(
    bench: Bench, server: ModelServer, mode: RecordMode | None, **more: Any
) -> dict[str, int]:
    """The requests that a session sends, by stage."""
    before = server.count()
    bench.run(mode, **more)
    return dict(Counter(request.stage for request in server.requests[before:]))


def exactly(calls: dict[str, int]) -> dict[str, Bounds]:
    return {stage: Bounds(number, number) for stage, number in calls.items()}


def within(plan: list[Survey], calls: dict[str, int]) -> bool:
    bounds = to_make(plan)
    return all(
        bounds[stage].low <= calls.get(stage, 0) <= bounds[stage].high
        for stage in {*bounds, *calls}
    )


def first_summaries(requests: Iterable[Request]) -> Counter[str]:
    """The summaries of unedited transcripts that were asked for, by their digests."""
    return Counter(
        request.digest
        for request in requests
        if request.stage == "summary" and "] assistant (edited)" not in request.text
    )


@pytest.mark.parametrize(
    ("stage", "mode"), [("planner", "once"), ("verifier", "new_episodes"), ("judge", "once")]
)
def test_a_plan_says_what_retrying_the_unscored_asks(
    make_bench: MakeBench, server: ModelServer, stage: str, mode: RecordMode
) -> None:
    bench = make_bench(runs=2)
    server.faults.add(stage=stage, fault=Fault.invalid_json(), times=None)
    bench.run(mode)
    server.faults.clear()
    files = cassette_files(bench.cassettes)
    without, plan = planned(bench, mode), planned(bench, mode, retry_unscored=True)
    assert to_make(without) == {}
    assert files == cassette_files(bench.cassettes)
    calls = asked(bench, server, mode, retry_unscored=True)
    assert within(plan, calls)
    assert stage == "planner" or to_make(plan) == exactly(calls)
    assert to_make(planned(bench, mode, retry_unscored=True)) == {}


def test_a_retry_renews_every_unusable_answer_of_a_case_in_one_run(
    make_bench: MakeBench, server: ModelServer
) -> None:
    bench = make_bench(runs=2, tests=BOTH_TESTS)
    server.faults.add(stage="planner", fault=Fault.invalid_json(), times=None)
    server.faults.add(stage="summary", fault=Fault.refusal(), times=None)
    assert {outcome for outcome, _ in bench.run("once").outcomes} <= {"refused", "invalid_response"}
    server.faults.clear()
    plan = planned(bench, "once", retry_unscored=True)
    before = server.count()
    session = bench.run("once", retry_unscored=True, session="the second")
    assert session.outcomes == [("agree", 1)] * 2 + [("agree", 0)] * 2
    calls = Counter(request.stage for request in server.requests[before:])
    # That a summary cannot be used, either, is known when its plan is.
    assert within(plan, {stage: calls[stage] for stage in calls if stage != "summary"})
    assert calls["planner"] == 4
    # The first summary of a run is asked once for all of its cases, in a retry, too.
    assert first_summaries(server.requests[before:]).total() == 2
    assert asked(bench, server, "once", retry_unscored=True) == {}


def test_a_plan_obeys_the_record_mode_of_each_part(
    make_bench: MakeBench, server: ModelServer
) -> None:
    bench = make_bench(runs=3)
    bench.run("once")
    for path in bench.cassettes.rglob("*.judge-*.yaml"):
        path.unlink()
    next(iter(sorted(bench.cassettes.rglob("*.generation.yaml")))).unlink()
    judge_alone: dict[str, Any] = {"judge_record_mode": "new_episodes"}
    plan = planned(bench, "none", **judge_alone)
    assert (to_make(plan), unrecorded(plan)) == ({"judge": Bounds(2, 2)}, 1)
    plan = planned(bench, "once", judge_record_mode="none")
    assert ("judge" in to_make(plan), unrecorded(plan)) == (False, 3)
    assert asked(bench, server, "none", **judge_alone) == {"judge": 2}


def test_a_test_that_is_not_evaluated_is_made_and_asks_no_judge_of_a_panel(
    make_bench: MakeBench, server: ModelServer
) -> None:
    judges = [{"name": name, "model": "openai/a", "template": "agent_judge"} for name in "ab"]
    judged = {"judges": judges, "tests_to_evaluate": ["agent_positives"]}
    overrides = {"admin": {"evaluation_config": judged}}
    bench = make_bench(runs=1, tests=BOTH_TESTS, overrides=overrides)
    assert to_make(planned(bench, "once"))["judge"] == Bounds(2, 2)
    session = bench.run("once")
    assert session.outcomes == [("generated", None), *[("agree", 0)] * 2]
    assert server.count("judge") == 2
    assert [spec.test for spec in session.made] == list(BOTH_TESTS)

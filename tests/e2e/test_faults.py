"""Faults of the model's server, one at a time, at every stage.

A fault that a retry or a re-ask repairs changes no outcome; any other never yields agree or
disagree.
"""

from __future__ import annotations

import datetime
import gc
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.model import RecordMode
from pytest_jrh.core.stages import JUDGE, MAKING
from pytest_jrh.llm.limits import RetryPolicy
from tests.e2e.bench import Bench, answered_twice
from tests.support.model_server import Fault, ModelServer

if TYPE_CHECKING:
    from tests.e2e.conftest import MakeBench

MakeFault = Callable[[], Fault]
# Trouble with a question about a case is none of the case, as the tests of each hold.
STAGES = (*(stage.name for stage in MAKING), JUDGE.name)
CALLS = 5
NAMES = {"summary": "summarizer"}
LIMIT = 0.3
TIMEOUTS = {
    "test_agent_perturbation_config": {
        stage: {"timeout": LIMIT} for stage in ("planner", "editor", "summary", "verifier")
    },
    "judge": {"timeout": LIMIT},
}
TRANSPORT: dict[str, tuple[MakeFault, str]] = {
    "429": (lambda: Fault.status(429), "HTTP 429"),
    "429 with seconds": (lambda: Fault.status(429, retry_after=30), "HTTP 429"),
    "429 with a date": (
        lambda: Fault.status(429, retry_after=datetime.timedelta(minutes=2)),
        "HTTP 429",
    ),
    "500": (lambda: Fault.status(500), "HTTP 500"),
    "503": (lambda: Fault.status(503, retry_after=30), "HTTP 503"),
    "dropped": (Fault.drop, "no connection"),
    "half an envelope": (Fault.broken_envelope, "no usable answer"),
    "no choices": (lambda: Fault.raw(b'{"choices": []}'), "no usable answer: it has no choices"),
}
RARE_TRANSPORT: dict[str, tuple[MakeFault, str]] = {
    "429 with nonsense": (lambda: Fault.status(429, retry_after="soon"), "HTTP 429"),
    "dropped half-way": (lambda: Fault.drop(80), "no connection"),
    "an empty choice": (lambda: Fault.raw(b'{"choices": [{}]}'), "no usable answer"),
    "a web page": (lambda: Fault.raw(b"<html>Bad gateway</html>"), "no usable answer"),
    "an empty body": (lambda: Fault.raw(b""), "no usable answer"),
}
UNREADABLE: dict[str, tuple[MakeFault, str]] = {
    "invalid JSON": (Fault.invalid_json, "is not JSON"),
    "truncated JSON": (Fault.truncated_json, "cut off by max_tokens"),
    "an empty text": (Fault.empty, "it was empty"),
}
RARE_UNREADABLE: dict[str, tuple[MakeFault, str]] = {
    "another schema": (Fault.wrong_schema, "is missing"),
    "no text": (lambda: Fault.text(None), "it was empty"),
    "a list": (lambda: Fault.text("[]"), "must be an object"),
    "two objects": (
        lambda: Fault.text('{"score": 1, "reasoning": ""} {"score": 0, "reasoning": ""}'),
        "is not JSON",
    ),
}
FINAL: dict[str, tuple[MakeFault, str]] = {
    "refusal": (Fault.refusal, "I cannot help with that"),
    "content filter": (Fault.content_filter, "content filter"),
    "filtered half-way": (lambda: Fault.content_filter('{"score": 1, "reaso'), "content filter"),
}
REPAIRABLE = TRANSPORT | RARE_TRANSPORT | UNREADABLE | RARE_UNREADABLE
OFF_THE_SCALE = (3, -1, 1e300, "1", True, 1.0, None, [1])


def assert_unscored(
    bench: Bench, server: ModelServer, stage: str, fault: Fault, outcome: str, cause: str
) -> None:
    server.faults.add(stage=stage, fault=fault, times=None)
    result = bench.run().only
    fault.release()
    assert (result.outcome, result.score) == (outcome, None)
    said = " ".join(result.why.text.split())
    assert f"the {NAMES.get(stage, stage)}" in said
    assert cause in said
    assert said.endswith("the record command" if outcome == "model_error" else "the rerun command")


def at_every_stage(common: Iterable[str], rare: Iterable[str]) -> Sequence[tuple[str, str]]:
    """Cells of the matrix: the rare faults at one stage alone, for the client does not know stages
    apart."""
    return [(stage, fault) for stage in STAGES for fault in common] + [
        ("judge", fault) for fault in rare
    ]


@pytest.mark.parametrize(
    ("stage", "fault"),
    at_every_stage([*TRANSPORT, *UNREADABLE], [*RARE_TRANSPORT, *RARE_UNREADABLE]),
)
def test_a_fault_that_a_second_try_repairs_changes_nothing(
    bench: Bench, server: ModelServer, stage: str, fault: str
) -> None:
    server.faults.add(stage=stage, fault=REPAIRABLE[fault][0]())
    session = bench.run()
    assert session.outcomes == [("agree", 1)]
    assert session.only.why.text == ""
    assert server.count() == CALLS + 1
    assert bench.replay().outcomes == session.outcomes


@pytest.mark.parametrize(("stage", "fault"), at_every_stage(TRANSPORT, RARE_TRANSPORT))
def test_a_lasting_fault_of_transport_is_a_model_error_and_a_rerun_makes_only_the_missing_calls(
    bench: Bench, server: ModelServer, stage: str, fault: str
) -> None:
    make, cause = REPAIRABLE[fault]
    assert_unscored(bench, server, stage, make(), "model_error", cause)
    server.faults.clear()
    assert bench.run("once").outcomes == [("agree", 1)]
    assert answered_twice(server.requests) == []
    assert sum(request.kind == "answer" for request in server.requests) == CALLS


@pytest.mark.parametrize("stage", STAGES)
def test_a_lasting_unreadable_answer_is_an_invalid_response_after_two_re_asks(
    bench: Bench, server: ModelServer, stage: str
) -> None:
    for number, (make, cause) in enumerate((UNREADABLE | RARE_UNREADABLE).values()):
        bench.record_into(f"cassettes-{number}")
        server.faults.clear()
        before = server.count(stage)
        assert_unscored(bench, server, stage, make(), "invalid_response", cause)
        assert server.count(stage) - before == 3


@pytest.mark.parametrize("fault", FINAL)
@pytest.mark.parametrize("stage", STAGES)
def test_a_refusal_is_an_outcome_of_its_own_and_not_asked_again(
    bench: Bench, server: ModelServer, stage: str, fault: str
) -> None:
    make, cause = FINAL[fault]
    assert_unscored(bench, server, stage, make(), "refused", cause)
    assert server.count(stage) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_an_answer_that_was_recorded_is_not_asked_for_again_and_mode_all_does(
    bench: Bench, server: ModelServer, stage: str
) -> None:
    assert_unscored(
        bench, server, stage, Fault.invalid_json(), "invalid_response", "--jrh-retry-unscored"
    )
    server.faults.clear()
    before = server.count()
    assert bench.run("new_episodes").only.outcome == "invalid_response"
    assert server.count() == before
    assert bench.run("all").outcomes == [("agree", 1)]


@pytest.mark.parametrize("mode", ["once", "new_episodes"])
@pytest.mark.parametrize("make", [Fault.invalid_json, Fault.refusal], ids=["unreadable", "refused"])
@pytest.mark.parametrize("stage", ["planner", "judge"])
def test_retrying_the_unscored_asks_again_what_could_not_be_used_and_nothing_else(
    bench: Bench, server: ModelServer, stage: str, make: MakeFault, mode: RecordMode
) -> None:
    rule = server.faults.add(stage=stage, fault=make(), times=None)
    assert bench.run(mode).only.outcome in ("invalid_response", "refused")
    server.faults.clear()
    before = server.count(stage), server.count()
    assert bench.run(mode, retry_unscored=True).outcomes == [("agree", 1)]
    assert rule.fired
    again = {request.stage for request in server.requests[before[1] :]}
    assert server.count(stage) == before[0] + 1
    # The first summary was recorded beside the plan.
    assert again == ({"judge"} if stage == "judge" else {"planner", "editor", "verifier", "judge"})
    after = server.count()
    assert bench.run(mode, retry_unscored=True).outcomes == [("agree", 1)]
    assert server.count() == after


@pytest.mark.parametrize("score", OFF_THE_SCALE, ids=repr)
def test_a_score_that_is_not_on_offer_is_asked_again_and_never_counts(
    bench: Bench, server: ModelServer, score: Any
) -> None:
    rule = server.faults.add(stage="judge", fault=Fault.score(score))
    assert bench.run().outcomes == [("agree", 1)]
    assert rule.fired == 1
    server.faults.clear()
    bench.record_into("lasting")
    assert_unscored(bench, server, "judge", Fault.score(score), "invalid_response", "score: ")


@pytest.mark.parametrize("index", [9999, -1, 1, "4", 4.5])
def test_a_plan_that_points_at_no_assistant_turn_is_asked_again_and_is_no_plan(
    bench: Bench, server: ModelServer, index: Any
) -> None:
    server.faults.add(stage="planner", fault=Fault.index_out_of_range(index))
    assert bench.run().outcomes == [("agree", 1)]
    server.faults.clear()
    bench.record_into("lasting")
    cause = "the assistant turns are 2, 4" if isinstance(index, int) else "message_index"
    assert_unscored(
        bench, server, "planner", Fault.index_out_of_range(index), "invalid_response", cause
    )


@pytest.mark.parametrize(
    "fault", [Fault.empty_edit(), Fault.same_edit()], ids=lambda fault: fault.name
)
def test_an_edit_that_changes_nothing_is_no_case_and_its_call_is_kept(
    bench: Bench, server: ModelServer, fault: Fault
) -> None:
    server.faults.add(stage="editor", fault=fault, times=None)
    result = bench.run().only
    assert result.outcome == "no_case"
    assert "unusable edit" in result.why.text
    assert server.count("judge") == 0
    server.stop()
    assert (bench.replay().only.outcome, bench.replay().only.why.text) == (
        "no_case",
        result.why.text,
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_hang_past_the_timeout_is_tried_again(
    make_bench: MakeBench, server: ModelServer, stage: str
) -> None:
    bench = make_bench(overrides=TIMEOUTS)
    fault = Fault.hang()
    server.faults.add(stage=stage, fault=fault)
    assert bench.run().outcomes == [("agree", 1)]
    fault.release()


@pytest.mark.parametrize("stage", STAGES)
def test_a_model_that_always_hangs_is_a_model_error(
    make_bench: MakeBench, server: ModelServer, stage: str
) -> None:
    bench = make_bench(overrides=TIMEOUTS)
    assert_unscored(
        bench,
        server,
        stage,
        Fault.hang(),
        "model_error",
        "`timeout` is 0.3 and no `max_tokens` is set (2 attempts)",
    )
    server.faults.clear()
    assert bench.run().outcomes == [("agree", 1)]


def test_a_call_that_a_time_limit_ends_as_it_is_prepared_warns_of_nothing(
    make_bench: MakeBench,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
) -> None:
    """litellm makes the coroutine of a call in a thread.

    After a time-out nobody awaits what the thread returns.
    """
    from litellm import main

    make_call, held, timed_out = main.completion, threading.Event(), threading.Event()

    def hold_the_first(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("timeout") == LIMIT and not held.is_set():
            held.set()
            assert timed_out.wait(30)
        return make_call(*args, **kwargs)

    class Policy(RetryPolicy):
        def wait(self, attempt: int, retry_after: float | None) -> float:
            timed_out.set()
            return 0.0

    monkeypatch.setattr(main, "completion", hold_the_first)
    session = make_bench(overrides={"judge": {"timeout": LIMIT}}).run(retry=Policy())
    assert session.outcomes == [("agree", 1)]
    assert timed_out.is_set()
    gc.collect()
    assert not [
        str(warning.message) for warning in recwarn if "never awaited" in str(warning.message)
    ]


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
@pytest.mark.parametrize("stage", ["planner", "judge"])
def test_an_error_that_no_retry_can_repair_is_not_retried(
    bench: Bench, server: ModelServer, stage: str, code: int
) -> None:
    cause = "OPENAI_API_KEY" if code in (401, 403) else f"HTTP {code}"
    assert_unscored(bench, server, stage, Fault.status(code), "model_error", cause)
    assert server.count(stage) == 1


def test_a_fault_in_one_case_leaves_the_others_alone(
    make_bench: MakeBench, server: ModelServer
) -> None:
    bench = make_bench(runs=3, rubrics=2)
    server.faults.add(
        stage="editor",
        fault=Fault.status(500),
        times=None,
        when=lambda request: "1002" in request.text,
    )
    outcomes = [(result.spec.run_id, result.outcome) for result in bench.run().results]
    expected = [("run-1", "agree"), ("run-2", "model_error"), ("run-3", "agree")]
    assert outcomes == expected * 2

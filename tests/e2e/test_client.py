"""The way to the models: retries, connections, stopping, and what a model does not accept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.errors import Unscored
from pytest_jrh.engine.runner import Engine
from pytest_jrh.llm.calls import Stopped
from pytest_jrh.llm.limits import RetryPolicy
from tests.e2e.bench import Bench, MakeBench, every_model, said
from tests.support.model_server import Fault, ModelServer

WARM = {
    "test_agent_perturbation_config": {
        stage: {"temperature": 0.3} for stage in ("planner", "editor", "summary", "verifier")
    },
    "judge": {"temperature": 0.3},
}


@given(attempt=st.integers(1, 60), first=st.floats(0, 10), longest=st.floats(0, 100))
def test_the_wait_grows_is_jittered_and_stays_within_its_bound(
    attempt: int, first: float, longest: float
) -> None:
    wait = RetryPolicy(first_wait=first, longest_wait=longest).wait(attempt, None)
    ceiling = min(first * 2 ** (attempt - 1), longest)
    assert ceiling / 2 <= wait <= ceiling


@given(asked=st.floats(0, allow_nan=False), longest=st.floats(0, 100))
def test_retry_after_is_obeyed_up_to_the_longest_wait(asked: float, longest: float) -> None:
    wait = RetryPolicy(longest_wait=longest).wait(1, asked)
    assert min(asked, longest) <= wait <= min(asked, longest) + 0.1


@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(429, retry_after=0.2),
        Fault.error("Limit 3. Please try again in 200ms.", "requests", status=429),
    ],
    ids=["header", "body"],
)
def test_the_client_waits_as_long_as_the_provider_asks(
    bench: Bench, server: ModelServer, fault: Fault
) -> None:
    server.faults.add(stage="judge", fault=fault)
    assert bench.run(retry=RetryPolicy(attempts=2, first_wait=0.0)).outcomes == [("agree", 1)]
    first, second = (request for request in server.requests if request.stage == "judge")
    assert first.ended is not None
    assert second.started - first.ended >= 0.2


def test_a_quota_of_hours_is_not_waited_for(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=3)
    server.faults.add(stage="judge", fault=Fault.status(429, retry_after=18_000), times=None)
    results = bench.run(max_workers=1).results
    assert server.count("judge") == 1
    for result in results:
        assert "HTTP 429, which asks to wait 5:00:00" in said(result)
        assert "Run again after that time" in said(result)


def test_no_call_gives_up_while_the_rate_limit_lets_others_through(
    make_bench: MakeBench, server: ModelServer
) -> None:
    """Eight calls, of whose requests one in four is let through."""
    bench = make_bench(runs=8)
    server.faults.add(
        stage="judge",
        fault=Fault.status(429, retry_after=0.01),
        times=None,
        when=lambda _request: server.count("judge") % 4 > 0,
    )
    session = bench.run(max_workers=8, retry=RetryPolicy(attempts=5, first_wait=0.001))
    assert session.outcomes == [("agree", 1)] * 8
    assert server.count("judge") == 32


def test_stopping_ends_a_wait_between_two_tries(bench: Bench, server: ModelServer) -> None:
    server.faults.add(stage="editor", fault=Fault.status(429, retry_after=600), times=None)
    with running(bench, retry=RetryPolicy(attempts=9, longest_wait=600)) as engine:
        server.wait_for(1, "editor", answered=True)
        engine.stop()
        with pytest.raises(Stopped):
            engine.result(bench.specs[0])
    assert server.count("editor") == 1
    server.faults.clear()
    assert bench.run().outcomes == [("agree", 1)]
    assert sum(request.kind == "answer" for request in server.requests) == 5


def test_a_task_that_loses_its_cancellation_does_not_keep_the_session(bench: Bench) -> None:
    # As litellm's logging task does now and then: Python 3.11's wait_for swallows the cancellation.
    left: list[asyncio.Task[None]] = []

    async def goes_on_once() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def complete(*_: Any) -> Any:
        left.append(asyncio.create_task(goes_on_once()))
        await asyncio.sleep(0)
        raise Unscored("model_error", stage="planner", cause="no model here")

    with running(bench, complete=complete) as engine:
        assert [engine.result(spec).outcome for spec in bench.specs] == ["model_error"]
        stopping = threading.Thread(target=engine.stop, daemon=True)
        stopping.start()
        stopping.join(timeout=30)
        assert not stopping.is_alive()
    assert left
    assert all(task.cancelled() for task in left)


def test_judges_of_a_panel_share_one_generation_and_a_rerun_makes_a_failed_one_again(
    make_bench: MakeBench, server: ModelServer
) -> None:
    judges = [{"name": name, "model": "openai/gpt-4.1-mini"} for name in ("strict", "mild")]
    bench = make_bench(overrides={"admin": {"evaluation_config": {"judges": judges}}})
    server.faults.add(stage="editor", fault=Fault.status(500), times=3)
    with running(bench) as engine:
        assert [engine.result(spec).outcome for spec in bench.specs] == ["model_error"] * 2
        assert server.count("editor") == 3
        assert [engine.result(spec).outcome for spec in bench.specs] == ["agree"] * 2
        engine.stop()
    assert server.count("planner") == 1
    assert server.count("judge") == 2


@pytest.mark.parametrize("model", ["openai/gpt-5-nano", "openai/gpt-4.1-mini"])
def test_a_temperature_that_litellm_or_the_server_refuses_is_left_out_with_one_notice(
    make_bench: MakeBench, server: ModelServer, model: str
) -> None:
    bench = make_bench(runs=3, overrides={**WARM, **every_model(model)})
    server.delay = 0.02
    server.faults.add(
        fault=Fault.error("Unsupported value: 'temperature' is not supported with this model."),
        times=None,
        when=lambda request: "temperature" in request.body,
    )
    session = bench.run()
    assert session.outcomes == [("agree", 1)] * 3
    assert session.notices == (f"{model} does not accept temperature: it is not sent.",)
    # litellm knows what the first one refuses, and does not send it.
    assert (server.count() == 15) is (model == "openai/gpt-5-nano")
    server.stop()
    assert bench.play().outcomes == session.outcomes


def test_an_api_base_of_the_config_wins_over_the_environment_and_needs_no_key_on_this_machine(
    make_bench: MakeBench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.delenv("OPENAI_API_KEY")
    with ModelServer() as other:
        bases = {"models": {"api_base": server.base_url}, "judge": {"api_base": other.base_url}}
        bench = make_bench(overrides=bases)
        assert bench.run().outcomes == [("agree", 1)]
        assert (other.count(), other.count("judge")) == (1, 1)
    assert (server.count(), server.count("judge")) == (4, 0)
    assert bench.play().outcomes == [("agree", 1)]


@contextmanager
def running(bench: Bench, **more: Any) -> Iterator[Engine]:
    """An engine that has every case announced; the block stops it."""
    engine = bench.engine("new_episodes", **more)
    engine.start(bench.specs)
    yield engine

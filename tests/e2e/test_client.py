"""The way to the models: retries, connections, stopping, what a model does not accept, and refusals
that another attempt cannot change."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import Unscored
from pytest_jrh.engine.runner import Engine
from pytest_jrh.llm.calls import Stopped
from pytest_jrh.llm.limits import EarlyStop, RetryPolicy
from pytest_jrh.llm.transport import permanent_failure
from tests.e2e.bench import Bench, MakeBench, every_model, said
from tests.support.model_server import Fault, ModelServer, Obedient, Request, override

WARM = {
    "test_agent_perturbation_config": {
        stage: {"temperature": 0.3} for stage in ("planner", "editor", "summary", "verifier")
    },
    "judge": {"temperature": 0.3},
}


@given(
    attempt=st.integers(1, 60),
    first=st.floats(0, 10),
    longest=st.floats(0, 100),
    asked=st.floats(0, allow_nan=False),
)
def test_the_wait_grows_or_is_as_asked_is_jittered_and_stays_within_its_bound(
    attempt: int, first: float, longest: float, asked: float
) -> None:
    policy = RetryPolicy(first_wait=first, longest_wait=longest)
    ceiling = min(first * 2 ** (attempt - 1), longest)
    assert ceiling / 2 <= policy.wait(attempt, None) <= ceiling
    assert min(asked, longest) <= policy.wait(1, asked) <= min(asked, longest) + 0.1


def test_the_client_waits_as_long_as_asked(bench: Bench, server: ModelServer) -> None:
    asking = Fault.error("Limit 3. Please try again in 200ms.", "requests", status=429)
    server.faults.add(stage="judge", fault=asking)
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


def test_no_call_gives_up_while_others_pass(make_bench: MakeBench, server: ModelServer) -> None:
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


def test_judges_of_a_panel_share_one_generation(make_bench: MakeBench, server: ModelServer) -> None:
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
    assert session.notices == (f"{model} does not accept temperature, so temperature is not sent.",)
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


QUOTA = "You exceeded your current quota, please check your plan and billing details."
GEMINI = (
    f"{QUOTA} * Quota exceeded for metric: generate_content_requests, limit: 15. Please retry in "
    "28.6s."
)
TOO_LONG = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
# What is missing is said in the words of litellm, which differ between its versions.
SETTING = "Nothing was sent. Set what is missing, in the environment or in the stage's section"
VERTEX = {"VERTEXAI_PROJECT": "p", "VERTEXAI_LOCATION": "us-central1"}
AWS = {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_REGION_NAME": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def test_what_ends_a_model_is_asked_only_once(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=4)
    exhausted = Fault.error(QUOTA, "insufficient_quota", status=429)
    server.faults.add(stage="judge", fault=exhausted, times=None)
    session = bench.run(max_workers=1)
    assert session.outcome_names == ["model_error", *["not_asked"] * 3]
    [notice] = session.notices
    assert "would fail the same way: openai/gpt-4.1-mini: the acc" in notice
    assert (server.count("judge"), server.count()) == (1, 5)
    assert "credit" in said(session.results[0])
    assert all("(HTTP 429)" in said(result) for result in session.results)
    server.faults.clear()
    assert bench.run().outcomes == [("agree", 1)] * 4


def test_without_a_key_nothing_is_sent_and_the_case_is_unrecorded(
    make_bench: MakeBench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    bench = make_bench(overrides={"judge": {"model": "anthropic/claude-sonnet-4-5"}})
    result = bench.run().only
    assert result.outcome == "unrecorded"
    assert "no API key (ANTHROPIC_API_KEY is not set)" in said(result)
    assert server.count() == 4


@pytest.mark.parametrize(
    ("model", "environment", "cause"),
    [
        ("vertex_ai/gemini-2.5-pro", VERTEX, "the package google-auth is not installed"),
        ("vertex_ai/claude-sonnet-4-5", VERTEX, "is not installed, and litellm needs it"),
        ("bedrock/us.amazon.nova-pro-v1:0", AWS, "the package boto3 is not installed"),
        ("azure/deployment", {"AZURE_API_KEY": "none"}, SETTING),
        ("watsonx/ibm/granite", {}, SETTING),
        ("nobody/model", {}, "litellm does not know this provider"),
    ],
)
def test_what_fails_inside_litellm_was_not_sent_and_is_not_tried_again(
    make_bench: MakeBench,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    environment: dict[str, str],
    cause: str,
) -> None:
    for name in ("google.auth", "botocore.auth", "botocore.credentials", "boto3"):
        monkeypatch.setitem(sys.modules, name, None)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    result = make_bench(overrides={"judge": {"model": model}}).run(retry=RetryPolicy()).only
    assert result.outcome == "model_error"
    assert cause in said(result)
    assert "attempts" not in said(result)
    # The calls that made the case.
    assert (result.spending.all.calls, result.spending.all.lost) == (server.count(), 0) == (4, 0)


UNREAD = ["invalid_response"] * 5


def prose(request: Request) -> str:
    return f"I have read all {len(request.text)} characters, and it seems fine to me."


def test_at_first_only_five_cases_are_asked(make_bench: MakeBench, server: ModelServer) -> None:
    """Whatever is at work at once: 19 cases with ten calls in flight."""
    bench = make_bench(runs=20)
    server.answer = override(Obedient(), judge=prose)
    session = bench.run(max_workers=10)
    outcomes = [result.outcome for result in session.results]
    assert outcomes.count("not_asked") >= 12
    assert server.count("judge") <= 3 * 8
    server.answer = Obedient()
    assert {outcome for outcome, _ in bench.run(max_workers=10).outcomes} == {
        "agree",
        "invalid_response",
    }


def test_five_answers_in_another_form_stop_it(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=8)
    server.answer = override(Obedient(), judge=prose)
    session = bench.run(max_workers=1)
    assert session.outcome_names == [*UNREAD, *["not_asked"] * 3]
    # Cases that no judge would get are not made either.
    assert (server.count("planner"), server.count("judge")) == (5, 15)
    [notice] = session.notices
    assert "would fail the same way: openai/gpt-4.1-mini gave 3" in notice
    assert "is not JSON (got 'I have read" in notice
    assert "give the stage a model that supports structured output" in notice
    server.answer = Obedient()
    assert bench.run(max_workers=1).outcome_names == [*UNREAD, *["agree"] * 3]
    assert (server.count("planner"), server.count("judge")) == (8, 18)
    # What is recorded is replayed after a stop, too.
    for path in sorted(bench.cassettes.rglob("*.judge-default.yaml"))[:6]:
        path.unlink()
    server.answer = override(Obedient(), judge=prose)
    after = bench.run(max_workers=1).outcome_names
    assert after == [*UNREAD, "not_asked", "agree", "agree"]
    assert bench.replay().outcome_names == [*UNREAD, "unrecorded", "agree", "agree"]


def test_one_usable_answer_disarms_the_stop(make_bench: MakeBench, server: ModelServer) -> None:
    def mostly_prose(request: Request) -> Any:
        return Obedient()(request) if "order 1003" in request.text else prose(request)

    server.answer = override(Obedient(), judge=mostly_prose)
    session = make_bench(runs=8).run(max_workers=1)
    assert session.outcome_names == [*UNREAD[:2], "agree", *UNREAD]


def test_five_permanent_errors_of_a_stage_end(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=7)
    server.faults.add(fault=Fault.status(503), times=None)
    assert bench.run(max_workers=1).outcome_names == ["model_error"] * 7
    server.faults.clear()
    asked = server.count("planner")
    server.faults.add(fault=Fault.status(403), times=None)
    outcomes = bench.run(max_workers=1).outcome_names
    assert outcomes == [*["model_error"] * 5, "not_asked", "not_asked"]
    assert server.count("planner") == asked + 5


def test_processes_count_together_each_case_once(tmp_path: Path) -> None:
    one, other = (EarlyStop(tmp_path / "stops.json") for _ in range(2))
    judge = StageModel("judge", "openai/m")
    needs = [[judge]]
    trouble = Unscored("model_error", stage="judge", cause="HTTP 400: no", alike="HTTP 400")
    for number in (1, 1, 1, 2, 3, 4):
        one.ended(judge, f"case-{number}", trouble)
    other.ended(judge, "case-5", Unscored("invalid_response", stage="judge", cause="x", alike="i"))
    other.check("case-9", needs)
    other.ended(judge, "case-6", trouble)
    with pytest.raises(Unscored, match="not_asked in stage judge: HTTP 400: no"):
        one.check("case-9", needs)
    with pytest.raises(Unscored, match="model_error"):
        one.check("case-1", needs)
    # Another prompt is another stage, and a case that other judges judge goes on.
    prompted = StageModel("judge", "openai/m", prompt_path="judge.md")
    one.check("case-9", [[prompted]])
    one.check("case-9", [[judge, prompted]])


@pytest.mark.parametrize(
    ("status", "words", "advice"),
    [
        (429, QUOTA, "credit"),
        (429, "insufficient_quota", "credit"),
        (402, "Insufficient Balance", "credit"),
        (400, "Your credit balance is too low to access the Anthropic API.", "credit"),
        (403, "Your team doesn't have any credits yet.", "credit"),
        (400, "You have reached your specified API usage limits.", "credit"),
        (400, "Budget has been exceeded! Current cost: 10.1, Max budget: 10.0", "credit"),
        (401, "Incorrect API key provided.", "key in the environment"),
        (400, "API key not valid. Please pass a valid API key.", "key in the environment"),
        (404, "The model `y` does not exist.", "name of the model and the base URL"),
        (None, "LLM Provider NOT provided. Pass in the LLM provider", "Name the provider before"),
        # It may be about one prompt.
        (403, "Project `x` does not have access to model `y`.", ""),
        (403, "error code: 1020 (Cloudflare)", ""),
        (403, "x requires moderation. No credits were charged.", ""),
        (403, "Blocked by the guardrail pii: `my account number is ...`", ""),
        (403, "Country, region, or territory not supported", ""),
        (400, TOO_LONG, ""),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", ""),
        (413, "Request too large for model", ""),
        (429, "Rate limit reached for requests", None),
        (429, GEMINI, None),
        (429, "Too many tokens, please wait before trying again.", None),
        (400, "The user wrote: my account is not active, insufficient funds", None),
        (500, TOO_LONG, None),
        (503, "overloaded", None),
        (None, "Connection reset", None),
    ],
)
def test_what_a_refusal_ends(status: int | None, words: str, advice: str | None) -> None:
    found = permanent_failure(status, words)
    assert (found is None) is (advice is None)
    if found is not None and advice is not None:
        assert found.ends is bool(advice)
        assert advice in found.advice

"""Answers that could be read in two ways, or came from elsewhere, are no verdicts."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.llm.limits import Ledger
from tests.e2e.bench import Bench
from tests.support.exchange import Reply, Request, envelope
from tests.support.ledgers import spent
from tests.support.model_server import Fault, ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERDICT = {"score": 1, "reasoning": "Violated."}
OTHER = {"score": 0, "reasoning": "Satisfied."}
CALL = {
    "id": "c",
    "type": "function",
    "function": {"name": "verdict", "arguments": json.dumps(OTHER)},
}


def judged(change: Callable[[dict[str, Any]], object], **more: Any) -> Fault:
    """The right answer in an envelope that is changed."""

    def spoil(request: Request, normal: Callable[[], Reply]) -> Reply:
        whole = json.loads(envelope(request, normal()))
        change(whole)
        return Reply(body=json.dumps(whole).encode(), **more)

    return Fault("changed", spoil)


def message_with(**fields: Any) -> Fault:
    return judged(lambda whole: whole["choices"][0]["message"].update(fields))


def usage_of(**fields: Any) -> Fault:
    return judged(lambda whole: whole["usage"].update(fields))


AMBIGUOUS: dict[str, tuple[Fault, str, str]] = {
    "duplicate keys": (
        Fault.text('{"score": 0, "reasoning": "", "score": 1}'),
        "invalid_response",
        "more than once",
    ),
    "two choices": (
        judged(lambda whole: whole["choices"].append(whole["choices"][0])),
        "model_error",
        "2 choices",
    ),
    "no choices": (judged(lambda whole: whole["choices"].clear()), "model_error", "no choices"),
    "201": (judged(lambda whole: whole, status=201), "model_error", "HTTP status 201"),
    "206": (judged(lambda whole: whole, status=206), "model_error", "HTTP status 206"),
    "parts of text": (
        message_with(content=[{"type": "text", "text": "{}"}]),
        "model_error",
        "no usable answer",
    ),
    "an image": (
        message_with(
            content=[{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]
        ),
        "model_error",
        "no usable answer",
    ),
}


@pytest.mark.parametrize("kind", AMBIGUOUS)
def test_an_answer_that_can_be_read_in_two_ways_is_no_verdict(
    bench: Bench, server: ModelServer, kind: str
) -> None:
    fault, outcome, cause = AMBIGUOUS[kind]
    server.faults.add(stage="judge", fault=fault, times=None)
    result = bench.run().only
    assert (result.outcome, result.score) == (outcome, None)
    assert cause in " ".join(result.why.text.split())
    server.faults.clear()
    if outcome == "invalid_response":
        assert bench.play().only.outcome == outcome
    else:
        assert bench.run("once").outcomes == [("agree", 1)]


@pytest.mark.parametrize("stage", ["planner", "editor", "summary", "verifier"])
def test_a_duplicate_key_is_asked_again_in_every_stage(
    bench: Bench, server: ModelServer, stage: str
) -> None:
    def spoil(_request: Request, normal: Callable[[], Reply]) -> Reply:
        content = normal().content or ""
        return Reply(content=f"{content[:-1]}, {content[1:]}")

    server.faults.add(stage=stage, fault=Fault("doubled", spoil))
    assert bench.run().outcomes == [("agree", 1)]
    assert server.count() == 6


@pytest.mark.parametrize(
    "fault",
    [
        message_with(
            content=json.dumps(VERDICT),
            tool_calls=[{**CALL, "function": {"name": "v", "arguments": json.dumps(VERDICT)}}],
        ),
        Fault.text(json.dumps(VERDICT), finish_reason="length"),
        message_with(refusal=[]),
    ],
    ids=[
        "an agreeing tool call",
        "whole, and ended by max_tokens",
        "an empty refusal that is no text",
    ],
)
def test_an_answer_that_can_be_read_in_one_way_is_taken(
    bench: Bench, server: ModelServer, fault: Fault
) -> None:
    server.faults.add(stage="judge", fault=fault)
    assert bench.run().outcomes == [("agree", 1)]
    assert server.count("judge") == 1
    assert bench.play().outcomes == [("agree", 1)]


def test_a_refusal_that_is_no_text_is_recorded_and_replayed_as_one(
    bench: Bench, server: ModelServer
) -> None:
    server.faults.add(stage="judge", fault=message_with(refusal={"reason": "no"}))
    assert bench.run().only.outcome == "refused"
    assert bench.play().only.outcome == "refused"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_origin_is_not_followed(
    bench: Bench, server: ModelServer, code: int
) -> None:
    with ModelServer() as other:
        headers = {"Location": f"{other.base_url}/chat/completions"}
        server.faults.add(stage="judge", fault=Fault.status(code, headers=headers), times=None)
        result = bench.run().only
        assert result.outcome == "model_error"
        assert f"redirects (HTTP {code}) to http://127.0.0.1" in " ".join(result.why.text.split())
        assert "api_base" in result.why.text
        assert (server.count("judge"), other.count()) == (1, 0)


def test_a_redirect_within_the_origin_is_not_followed_either(
    bench: Bench, server: ModelServer
) -> None:
    fault = Fault.status(307, headers={"Location": "/elsewhere/chat/completions"})
    server.faults.add(stage="judge", fault=fault)
    result = bench.run().only
    assert result.outcome == "model_error"
    assert "redirects (HTTP 307) to another path" in " ".join(result.why.text.split())


def test_an_answer_without_end_is_not_read(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_jrh.llm.transport.LONGEST_ANSWER", 2**20)
    fault = Fault("endless", lambda _request, _normal: Reply(body=b" " * 2**22))
    server.faults.add(stage="judge", fault=fault, times=None)
    result = bench.run().only
    assert result.outcome == "model_error"
    assert "the answer is longer than 1 MB" in " ".join(result.why.text.split())
    assert server.count("judge") == 1


def test_a_short_compressed_answer_is_read(bench: Bench, server: ModelServer) -> None:
    def spoil(request: Request, normal: Callable[[], Reply]) -> Reply:
        return Reply(
            body=gzip.compress(envelope(request, normal())), headers={"Content-Encoding": "gzip"}
        )

    server.faults.add(stage="judge", fault=Fault("gzip", spoil))
    assert bench.run().outcomes == [("agree", 1)]
    assert server.count("judge") == 1
    assert bench.play().outcomes == [("agree", 1)]


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 9}]
)
def test_an_answer_without_counts_is_unpriced_and_its_reserve_charged(
    bench: Bench, server: ModelServer, tmp_path: Path, usage: dict[str, int] | None
) -> None:
    def spoil(request: Request, normal: Callable[[], Reply]) -> Reply:
        whole = json.loads(envelope(request, normal()))
        del whole["usage"]
        return Reply(body=json.dumps(whole | ({} if usage is None else {"usage": usage})).encode())

    server.faults.add(fault=Fault("uncounted", spoil), times=None)
    path = tmp_path / "budget.json"
    session = bench.run(ledger=Ledger(path, cost=10.0))
    assert session.outcomes == [("agree", 1)]
    spending = session.only.spending.all
    assert (spending.paid, spending.unpriced) == (0.0, 5)
    assert spent(path).calls == 5
    # Five times the longest answer of the model, at its price.
    assert spent(path).cost > 5 * 32_768 * 1.6e-06
    assert (
        len([notice for notice in session.notices if "no token counts that can be" in notice]) == 1
    )
    replayed = bench.play().only.spending.all
    assert (replayed.cost, replayed.unpriced) == (0.0, 5)


def test_a_limit_below_one_calls_reserve_says_what_lowers_it(
    bench: Bench, server: ModelServer, tmp_path: Path
) -> None:
    [result] = bench.run(ledger=Ledger(tmp_path / "budget.json", cost=0.01)).results
    assert result.outcome == "over_budget"
    assert "more than the whole limit of $0.0100; a lower `max_tokens`" in " ".join(
        result.why.text.split()
    )
    assert server.count() == 0


@pytest.mark.parametrize("tokens", [-1_000_000, 10**15])
def test_a_count_of_tokens_that_cannot_be_is_not_credited(
    bench: Bench, server: ModelServer, tokens: int
) -> None:
    server.faults.add(fault=usage_of(prompt_tokens=tokens, completion_tokens=tokens), times=None)
    session = bench.run()
    assert session.outcomes == [("agree", 1)]
    spending = session.only.spending.all
    assert (spending.usage.total, spending.paid, spending.unpriced) == (0, 0.0, 5)
    assert [
        notice for notice in session.notices if "no token counts that can be" in notice
    ] == list(session.notices)
    assert len(session.notices) == 1

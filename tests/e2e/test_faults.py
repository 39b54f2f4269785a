"""Faults of the model's server, one at a time: a table of what each comes to. A fault that a retry
or a re-ask repairs changes no outcome; any other never yields agree or disagree, and what was sent
is counted whether an answer came or not. Nor does what goes wrong inside of litellm."""

import asyncio
import gzip
import json
import zlib
from dataclasses import dataclass
from typing import Any
from unittest.mock import AsyncMock, Mock

import httpx
import pytest

from pytest_jrh.core.calls import MAKING, Spending
from pytest_jrh.core.cases import UNSCORED, Why
from pytest_jrh.core.redact import Redactor, covers
from pytest_jrh.llm.transport import litellm
from pytest_jrh.reports.case_facts import no_verdict_text
from pytest_jrh.reports.session import spending_line
from tests.e2e.bench import Bench, MakeBench, said
from tests.support.exchange import Reply, Request, envelope
from tests.support.faults import Normal
from tests.support.model_server import Fault, ModelServer

# Trouble with a question about a case is none of the case, as the tests of each hold.
MAKERS = tuple(stage.name for stage in MAKING)
CALLS = 5
NAMES = {"summary": "summarizer"}
LIMIT = 0.3
FILTER = "content_filter"
VERDICT = {"score": 1, "reasoning": "Violated."}


@dataclass(frozen=True)
class Row:
    """A lasting fault of the judge's server: what the case says, how often the judge was asked, and
    how many of these requests may be billed without an answer."""

    fault: Fault
    outcome: str
    cause: str
    asked: int = 3
    lost: int = 0


def message_with(**fields: Any) -> Fault:
    return Fault.envelope(lambda whole: whole["choices"][0]["message"].update(fields))


def broken(fault: Fault, cause: str = "no usable answer", asked: int = 3, lost: int = 3) -> Row:
    return Row(fault, "model_error", cause, asked, lost)


def unreadable(fault: Fault, cause: str) -> Row:
    return Row(fault, "invalid_response", cause)


def refused(fault: Fault, cause: str) -> Row:
    return Row(fault, "refused", cause, asked=1)


def status(code: int, cause: str = "", asked: int = 1, **more: Any) -> Row:
    return broken(Fault.status(code, **more), cause or f"HTTP {code}", asked, lost=0)


FAULTS = {
    "429": status(429, asked=3),
    "500": status(500, asked=3),
    "400": status(400),
    "401": status(401, "OPENAI_API_KEY"),
    "403": status(403, "OPENAI_API_KEY"),
    "404": status(404),
    "307": broken(
        Fault.status(307, headers={"Location": "/elsewhere"}), "to another path", asked=1, lost=1
    ),
    "dropped": broken(Fault.drop(), "no connection"),
    "dropped half-way": broken(Fault.drop(80), "no connection"),
    "half an envelope": broken(Fault.raw(b'{"choices": [{"index": 0, "mes')),
    "no choices": broken(Fault.envelope(lambda whole: whole["choices"].clear()), "no choices"),
    "an empty choice": broken(Fault.raw(b'{"choices": [{}]}')),
    "two choices": broken(
        Fault.envelope(lambda whole: whole["choices"].append(whole["choices"][0])), "2 choices"
    ),
    "a web page": broken(Fault.raw(b"<html>Bad gateway</html>")),
    "an empty body": broken(Fault.raw(b"")),
    "201": broken(Fault.envelope(lambda whole: whole, status=201), "HTTP status 201", 1, 1),
    "parts of text": broken(message_with(content=[{"type": "text", "text": "{}"}])),
    "an error with status 200": broken(
        Fault.envelope(lambda whole: whole.update(error={"code": [], "message": "Busy"})), "Busy"
    ),
    "invalid JSON": unreadable(Fault.invalid_json(), "is not JSON"),
    "truncated JSON": unreadable(Fault.truncated_json(), "cut off by max_tokens"),
    "an empty text": unreadable(Fault.text(""), "it was empty"),
    "no text": unreadable(Fault.text(None), "it was empty"),
    "another schema": unreadable(Fault.text('{"score": 1}'), "is missing"),
    "a list": unreadable(Fault.text("[]"), "must be an object"),
    "refusal": refused(Fault.refusal(), "I cannot help with that"),
    "refusal that is no text": refused(message_with(refusal={"reason": "no"}), "no"),
    "content filter": refused(Fault.text(None, finish_reason=FILTER), "content filter"),
    "filtered half-way": refused(Fault.text('{"sco', finish_reason=FILTER), "content filter"),
}
FAULTS |= {
    f"score {score!r}": unreadable(Fault.fields(score=score), "score: ")
    for score in (3, -1, 1e300, "1", True, 1.0, None, [1])
}
AT_EVERY_STAGE = ("500", "dropped", "invalid JSON", "refusal")


def lasting(bench: Bench, server: ModelServer, stage: str, row: Row) -> Spending:
    """A session of which one stage meets the fault again and again."""
    server.faults.add(stage=stage, fault=row.fault, times=None)
    result = bench.run().only
    server.faults.clear()
    assert (result.outcome, result.score) == (row.outcome, None)
    assert f"the {NAMES.get(stage, stage)}" in said(result)
    assert row.cause in said(result)
    # Which command is shown: an answer that is recorded is not asked for again by recording.
    assert UNSCORED[row.outcome].unanswered is (row.outcome == "model_error")
    assert server.count(stage) == row.asked
    return result.spending.all


@pytest.mark.parametrize("name", FAULTS)
def test_a_lasting_fault_is_no_verdict(bench: Bench, server: ModelServer, name: str) -> None:
    row = FAULTS[name]
    spending = lasting(bench, server, "judge", row)
    assert (spending.calls, spending.lost) == (server.count(), row.lost)
    before = server.count()
    if row.outcome == "model_error":
        # A rerun makes the missing call alone.
        assert bench.run("once").outcomes == [("agree", 1)]
        assert server.count() == before + 1
    else:
        assert bench.run("once").only.outcome == row.outcome
        assert bench.play().only.outcome == row.outcome
        assert server.count() == before


@pytest.mark.parametrize("stage", MAKERS)
@pytest.mark.parametrize("name", AT_EVERY_STAGE)
def test_any_stage_may_fail(bench: Bench, server: ModelServer, name: str, stage: str) -> None:
    row = FAULTS[name]
    lasting(bench, server, stage, row)
    assert server.count("judge") == 0
    assert bench.run("new_episodes", retry_unscored=True).outcomes == [("agree", 1)]


@pytest.mark.parametrize(
    ("name", "stage"),
    [(name, "judge") for name, row in FAULTS.items() if row.asked > 1]
    + [(name, stage) for name in AT_EVERY_STAGE[:3] for stage in MAKERS],
)
def test_a_second_try_is_enough(bench: Bench, server: ModelServer, name: str, stage: str) -> None:
    server.faults.add(stage=stage, fault=FAULTS[name].fault)
    session = bench.run()
    assert session.outcomes == [("agree", 1)]
    assert session.only.why == Why()
    assert server.count() == session.only.spending.all.calls == CALLS + 1
    assert bench.replay().outcomes == session.outcomes


def gzipped(request: Request, normal: Normal) -> Reply:
    body = gzip.compress(envelope(request, normal()))
    return Reply(body=body, headers={"Content-Encoding": "gzip"})


CALL = {"name": "v", "arguments": json.dumps(VERDICT)}


@pytest.mark.parametrize(
    "fault",
    [
        message_with(
            content=json.dumps(VERDICT),
            tool_calls=[{"id": "c", "type": "function", "function": CALL}],
        ),
        Fault.text(json.dumps(VERDICT), finish_reason="length"),
        message_with(refusal=[]),
        Fault("gzip", gzipped),
    ],
    ids=["a tool call that agrees", "whole, and at its limit", "no refusal", "compressed"],
)
def test_an_answer_of_one_meaning_is_taken(bench: Bench, server: ModelServer, fault: Fault) -> None:
    server.faults.add(stage="judge", fault=fault)
    assert bench.run().outcomes == [("agree", 1)]
    assert server.count("judge") == 1
    assert bench.play().outcomes == [("agree", 1)]


@pytest.mark.parametrize("code", [301, 307])
def test_a_redirect_elsewhere_is_not_followed(bench: Bench, server: ModelServer, code: int) -> None:
    with ModelServer() as other:
        headers = {"Location": f"{other.base_url}/chat/completions"}
        row = status(code, f"redirects (HTTP {code}) to http://127.0.0.1", headers=headers)
        lasting(bench, server, "judge", row)
        assert other.count() == 0


LONG = b" " * 2**22
DEFLATED = zlib.compress(LONG, wbits=-zlib.MAX_WBITS)
PACKED = gzip.compress(LONG)
TOO_LONG = "the answer is longer than 1 MB"


@pytest.mark.parametrize(
    ("body", "packing", "cause"),
    [
        (gzip.compress(PACKED), "gzip, gzip", "the answer is compressed (gzip, gzip)"),
        (DEFLATED, "br", "the answer is compressed (br)"),
        (DEFLATED, "zstd", "the answer is compressed (zstd)"),
        (DEFLATED, "deflate", "the answer is compressed (deflate)"),
        (LONG, "identity", TOO_LONG),
        (PACKED, "gzip", TOO_LONG),
        # It says that it is packed, and is not.
        (LONG, "gzip", TOO_LONG),
    ],
    # Of their own: the bodies are long, and packed ones hold the time.
    ids=["twice", "br", "zstd", "deflate", "identity", "gzip", "no gzip"],
)
def test_an_answer_without_end_or_of_a_size_that_cannot_be_known_is_not_read(
    bench: Bench,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    body: bytes,
    packing: str,
    cause: str,
) -> None:
    monkeypatch.setattr("pytest_jrh.llm.transport.LONGEST_ANSWER", 2**20)
    reply = Reply(body=body, headers={"Content-Encoding": packing})
    fault = Fault("long", lambda _request, _normal: reply)
    lasting(bench, server, "judge", broken(fault, cause, asked=1))


@pytest.mark.parametrize("index", [9999, 1, "4"])
def test_a_plan_of_no_turn_is_asked_again(bench: Bench, server: ModelServer, index: Any) -> None:
    step = {"message_index": index, "goal": "Change it.", "rationale": "It is there."}
    fault = Fault.fields(thesis="A change settles it.", steps=[step])
    server.faults.add(stage="planner", fault=fault)
    assert bench.run().outcomes == [("agree", 1)]
    bench.record_into("lasting")
    cause = "the assistant turns are 2, 4" if isinstance(index, int) else "message_index"
    before = server.count("planner")
    lasting(bench, server, "planner", Row(fault, "invalid_response", cause, before + 3))


@pytest.mark.parametrize("stage", ["planner", "judge"])
def test_a_hang_is_tried_again(make_bench: MakeBench, server: ModelServer, stage: str) -> None:
    limits: dict[str, Any] = {stage: {"timeout": LIMIT}}
    if stage != "judge":
        limits = {"test_agent_perturbation_config": limits}
    bench = make_bench(overrides=limits)
    once = Fault.hang()
    server.faults.add(stage=stage, fault=once)
    assert bench.run().outcomes == [("agree", 1)]
    once.release()
    bench.record_into("lasting")
    hang = Fault.hang()
    cause = "no answer within 0.3 s (2 attempts)"
    spending = lasting(bench, server, stage, Row(hang, "model_error", cause, asked=4))
    hang.release()
    billed = f"{spending.calls} calls (2 without an answer, which may be billed), 0 replayed"
    assert spending_line(spending).startswith(billed)


SECRET = "sesame-open-sesame-4711"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (TypeError(f"no subscript (Bearer {SECRET})"), "litellm raised TypeError: no subscript"),
        (RecursionError("too deep"), "litellm raised RecursionError: too deep"),
        (ExceptionGroup("two", [ValueError("one")]), "litellm raised ExceptionGroup: two"),
        (httpx.ReadError("reset by peer"), "no connection: reset by peer (3 attempts)."),
    ],
)
def test_an_error_outside_of_litellms_own_is_an_outcome_in_few_words(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch, error: Exception, cause: str
) -> None:
    # litellm runs these rules over the answer that it has read, outside of where it maps errors to
    # its own.
    monkeypatch.setattr(litellm(), "post_call_rules", [Mock(side_effect=error)])
    result = bench.run(redactor=Redactor((SECRET,))).only
    assert result.outcome == "model_error"
    assert cause in said(result)
    assert "Traceback" not in said(result)
    assert SECRET not in said(result)
    assert len(no_verdict_text(result.why).splitlines()) <= 20
    # Planner and first summary, each once unless it is the connection that broke.
    tries = 3 if "connection" in cause else 1
    spending = result.spending.all
    assert (spending.calls, spending.lost) == (server.count(), server.count())
    assert server.count() == 2 * tries


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (asyncio.CancelledError(), asyncio.CancelledError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        # A bug of ours is no outcome.
        (lambda **_: covers(None, ""), AttributeError),  # type: ignore[arg-type]
    ],
    ids=["cancelled", "interrupt", "bug"],
)
def test_what_ends_a_task_and_our_own_bugs_go_through(
    bench: Bench,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    error: Any,
    raised: type[BaseException],
) -> None:
    monkeypatch.setattr(litellm(), "acompletion", AsyncMock(side_effect=error))
    with pytest.raises(raised):
        bench.run()

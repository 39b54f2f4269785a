"""What goes wrong inside litellm, beside the errors that it has for that: a short outcome of the
case."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from pytest_jrh.core.redact import Redactor, covers
from pytest_jrh.llm.transport import UnusableAnswer, litellm
from tests.support.model_server import Fault, ModelServer

if TYPE_CHECKING:
    from tests.e2e.bench import Bench

SECRET = "sesame-open-sesame-4711"


@pytest.mark.parametrize(
    "error",
    [
        TypeError(f"'NoneType' object is not subscriptable (Bearer {SECRET})"),
        KeyError("choices"),
        json.JSONDecodeError("Expecting value", "<html>", 0),
        httpx.DecodingError("Error -3 while decompressing data"),
        RecursionError("maximum recursion depth exceeded"),
        ExceptionGroup("two", [ValueError("one")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_inside_litellm_is_a_model_error_of_its_case(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def rule(_: str) -> bool:
        raise error

    # litellm runs these rules over the answer that it has read, outside of where it maps errors to
    # its own.
    monkeypatch.setattr(litellm(), "post_call_rules", [rule])
    result = bench.run(redactor=Redactor((SECRET,))).only
    assert result.outcome == "model_error"
    words = " ".join(result.why.text.split())
    assert f"Openai/gpt-4.1-mini: litellm raised {type(error).__name__}: " in words.replace(
        "openai/", "Openai/"
    )
    assert str(error).partition("(Bearer")[0].strip().partition("\n")[0] in words
    assert "Traceback" not in result.why.text
    assert SECRET not in result.why.text
    assert len(result.why.text.splitlines()) <= 20
    assert "The error is inside litellm" in " ".join(result.why.text.split())
    # Not tried again: planner and first summary, each once.
    assert (
        (result.spending.all.calls, result.spending.all.lost)
        == (server.count(), server.count())
        == (2, 2)
    )


def test_a_broken_connection_is_one_wherever_litellm_leaves_it(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rule(_: str) -> bool:
        raise httpx.ReadError("reset by peer")

    monkeypatch.setattr(litellm(), "post_call_rules", [rule])
    result = bench.run().only
    assert "no connection: reset by peer (3 attempts)." in " ".join(result.why.text.split())


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), KeyboardInterrupt()], ids=lambda error: type(error).__name__
)
def test_what_ends_a_task_goes_through(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    async def raising(**_: Any) -> None:
        raise error

    monkeypatch.setattr(litellm(), "acompletion", raising)
    with pytest.raises(type(error)):
        bench.run()


def test_our_own_bugs_under_litellm_are_no_outcome(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def calling_ours(**_: Any) -> None:
        covers(None, "")  # type: ignore[arg-type]

    monkeypatch.setattr(litellm(), "acompletion", calling_ours)
    with pytest.raises(AttributeError, match="split"):
        bench.run()


def test_an_answer_that_our_guard_refuses_is_an_outcome_wherever_litellm_leaves_it(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def redirected(**_: Any) -> None:
        raise UnusableAnswer("the server redirects to elsewhere")

    monkeypatch.setattr(litellm(), "acompletion", redirected)
    result = bench.run().only
    assert "no usable answer: the server redirects to elsewhere" in " ".join(
        result.why.text.split()
    )


@pytest.mark.parametrize("code", ["model_overloaded", [], {}, None, 503, True])
def test_an_error_in_an_answer_with_status_200_may_have_any_code(
    bench: Bench, server: ModelServer, code: object
) -> None:
    # litellm takes the code of the body, whatever it is, for the status of the answer.
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "error": {"code": code, "message": "Busy"},
    }
    server.faults.add(
        stage="judge", fault=Fault.raw(json.dumps(body).encode(), status=200), times=None
    )
    result = bench.run().only
    assert result.outcome == "model_error"
    assert "Busy" in result.why.text

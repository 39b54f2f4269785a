"""What goes wrong inside litellm, beside the errors that it has for that: a short outcome of the
case."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from pytest_jrh.core.redact import Redactor, covers
from pytest_jrh.llm.transport import litellm
from pytest_jrh.reports.case_facts import no_verdict_text
from tests.e2e.bench import Bench
from tests.support.model_server import ModelServer

SECRET = "sesame-open-sesame-4711"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TypeError(f"no subscript (Bearer {SECRET})"), "litellm raised TypeError: no subscript"),
        (RecursionError("too deep"), "litellm raised RecursionError: too deep"),
        (ExceptionGroup("two", [ValueError("one")]), "litellm raised ExceptionGroup: two"),
        (httpx.ReadError("reset by peer"), "no connection: reset by peer (3 attempts)."),
    ],
)
def test_an_error_outside_of_litellms_own_is_an_outcome_in_few_words(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def rule(_: str) -> bool:
        raise error

    # litellm runs these rules over the answer that it has read, outside of where it maps errors to
    # its own.
    monkeypatch.setattr(litellm(), "post_call_rules", [rule])
    result = bench.run(redactor=Redactor((SECRET,))).only
    assert result.outcome == "model_error"
    assert said in " ".join(no_verdict_text(result.why).split())
    assert "Traceback" not in no_verdict_text(result.why)
    assert SECRET not in no_verdict_text(result.why)
    assert len(no_verdict_text(result.why).splitlines()) <= 20
    # Planner and first summary, each once unless it is the connection that broke.
    tries = 3 if "connection" in said else 1
    spending = result.spending.all
    assert (spending.calls, spending.lost) == (server.count(), server.count())
    assert server.count() == 2 * tries


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

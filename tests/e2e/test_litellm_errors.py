"""What goes wrong inside litellm, beside the errors that it has for that: a short outcome of the
case."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, Mock

import httpx
import pytest

from pytest_jrh.core.redact import Redactor, covers
from pytest_jrh.llm.transport import litellm
from pytest_jrh.reports.case_facts import no_verdict_text
from tests.e2e.bench import Bench, said
from tests.support.model_server import ModelServer

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

"""A call that was sent counts as made, whether an answer came or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_jrh.core.model import Spending
from pytest_jrh.reports.session import spending_line
from tests.e2e.bench import Bench
from tests.support.model_server import Fault, ModelServer

if TYPE_CHECKING:
    from tests.e2e.conftest import MakeBench


def test_calls_that_timed_out_count_as_made_and_may_be_billed(
    make_bench: MakeBench, server: ModelServer
) -> None:
    bench = make_bench(overrides={"judge": {"timeout": 0.3}})
    hang = Fault.hang()
    server.faults.add(stage="judge", fault=hang, times=None)
    result = bench.run().only
    hang.release()
    assert result.outcome == "model_error"
    assert (result.spending.all.calls, result.spending.all.lost) == (server.count(), 2)


@pytest.mark.parametrize(
    ("fault", "lost"),
    [(Fault.status(500), 0), (Fault.drop(80), 3), (Fault.status(401), 0)],
    ids=lambda each: str(each)[:30],
)
def test_calls_that_failed_count_as_made(
    bench: Bench, server: ModelServer, fault: Fault, lost: int
) -> None:
    server.faults.add(stage="judge", fault=fault, times=None)
    spending = bench.run().only.spending.all
    assert (spending.calls, spending.lost) == (server.count(), lost)


def test_an_answer_that_holds_none_may_be_billed(bench: Bench, server: ModelServer) -> None:
    body = b'{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": []}'
    server.faults.add(stage="judge", fault=Fault.raw(body, status=200), times=None)
    spending = bench.run().only.spending.all
    assert spending.calls == server.count()
    assert spending.lost == server.count("judge")


def test_a_call_that_was_tried_twice_counts_twice(bench: Bench, server: ModelServer) -> None:
    server.faults.add(stage="judge", fault=Fault.status(500))
    spending = bench.run().only.spending.all
    assert (spending.calls, spending.lost, spending.replayed) == (6, 0, 0)


def test_a_call_that_no_server_got_does_not_count(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.stop()
    assert bench.run().only.spending.all == Spending()


def test_the_summary_says_what_may_be_billed() -> None:
    line = spending_line(Spending(calls=10, lost=4))
    assert line.startswith("10 calls (4 without an answer, which may be billed), 0 replayed")

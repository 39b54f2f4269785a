"""What the judges of a panel share is counted once, whichever process has made it."""

from __future__ import annotations

from dataclasses import replace

from pytest_jrh.core.calls import Spending, Usage
from pytest_jrh.core.results import CaseResult, CaseSpending, total_spending
from tests.support.made_cases import make_result, make_spec

JUDGE = Spending(replayed=1, usage=Usage(100, 10), cost=0.1)
MADE = Spending(replayed=4, usage=Usage(4_000, 400), cost=0.3)
PAID = Spending(calls=4, usage=Usage(4_000, 400), cost=0.3, paid=0.3)


def by(judge: str, making: Spending, run: str = "run-1") -> CaseResult:
    parts = {f"generation {run}": making, f"judge {judge} {run}": JUDGE}
    return make_result(make_spec(run, judge=judge), spending=CaseSpending(parts))


def test_a_case_that_two_processes_replayed_counts_once() -> None:
    results = [by("a", MADE), by("b", MADE), by("c", MADE)]
    assert total_spending(results) == MADE + JUDGE + JUDGE + JUDGE


def test_another_case_counts_too() -> None:
    assert (
        total_spending([by("a", MADE), by("a", MADE, run="run-2")]) == MADE + MADE + JUDGE + JUDGE
    )


def test_what_was_paid_counts_and_its_replay_elsewhere_does_not() -> None:
    results = [by("a", MADE), by("b", PAID), by("c", PAID.replay)]
    assert total_spending(results) == PAID + JUDGE + JUDGE + JUDGE


def test_what_two_processes_paid_is_never_left_out() -> None:
    total = total_spending([by("a", PAID), by("b", PAID)])
    assert (total.calls, total.paid, total.replayed) == (8, 0.6, 2)


def test_what_one_process_paid_before_it_failed_counts_beside_what_the_other_one_did() -> None:
    began = Spending(calls=3, usage=Usage(1_000, 100), cost=0.1, paid=0.1, lost=2)
    ended = Spending(calls=3, replayed=1, usage=Usage(4_000, 400), cost=0.3, paid=0.2)
    for results in ([by("a", began), by("b", ended)], [by("b", ended), by("a", began)]):
        total = total_spending(results)
        made = Spending(calls=6, usage=Usage(4_000, 400), cost=0.3, paid=0.3, lost=2)
        assert replace(total, paid=round(total.paid, 9)) == made + JUDGE + JUDGE

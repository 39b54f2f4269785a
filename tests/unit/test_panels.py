"""What two processes have paid for one case of a panel is counted, and once."""

from __future__ import annotations

from dataclasses import replace

from pytest_jrh.core.calls import Spending, Usage
from pytest_jrh.core.results import CaseResult, CaseSpending, total_spending
from tests.support.made_cases import make_result, make_spec

JUDGE = Spending(replayed=1, usage=Usage(100, 10), cost=0.1)


def by(judge: str, making: Spending) -> CaseResult:
    parts = {"generation run-1": making, f"judge {judge} run-1": JUDGE}
    return make_result(make_spec(judge=judge), spending=CaseSpending(parts))


def test_what_two_processes_paid_is_never_left_out() -> None:
    paid = Spending(calls=4, usage=Usage(4_000, 400), cost=0.3, paid=0.3)
    total = total_spending([by("a", paid), by("b", paid)])
    assert (total.calls, total.paid, total.replayed) == (8, 0.6, 2)
    assert total_spending([by("b", paid), by("c", paid.replay)]) == paid + JUDGE + JUDGE


def test_what_one_process_paid_before_it_failed_counts_beside_what_the_other_one_did() -> None:
    began = Spending(calls=3, usage=Usage(1_000, 100), cost=0.1, paid=0.1, lost=2)
    ended = Spending(calls=3, replayed=1, usage=Usage(4_000, 400), cost=0.3, paid=0.2)
    made = Spending(calls=6, usage=Usage(4_000, 400), cost=0.3, paid=0.3, lost=2)
    for results in ([by("a", began), by("b", ended)], [by("b", ended), by("a", began)]):
        total = total_spending(results)
        assert replace(total, paid=round(total.paid, 9)) == made + JUDGE + JUDGE

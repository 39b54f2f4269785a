"""What the judges of a panel share is counted once, whichever process has made it."""

from __future__ import annotations

from pytest_jrh.core.model import CaseResult, CaseSpending, Spending, Usage
from pytest_jrh.stats.panels import counted_once
from tests.support.made_cases import make_result, make_spec

JUDGE = Spending(replayed=1, usage=Usage(100, 10), cost=0.1)
MADE = Spending(replayed=4, usage=Usage(4_000, 400), cost=0.3)
PAID = Spending(calls=4, usage=Usage(4_000, 400), cost=0.3, paid=0.3)


def by(judge: str, making: Spending = Spending(), run: str = "run-1") -> CaseResult:
    return make_result(make_spec(run, judge=judge), spending=CaseSpending(making + JUDGE, JUDGE))


def spent(*results: CaseResult) -> list[Spending]:
    return [result.spending.all for result in counted_once(results)]


def test_a_case_that_two_processes_replayed_counts_for_the_first_judge() -> None:
    assert spent(by("a", MADE), by("b", MADE), by("c")) == [MADE + JUDGE, JUDGE, JUDGE]


def test_another_case_counts_too() -> None:
    assert spent(by("a", MADE), by("a", MADE, run="run-2")) == [MADE + JUDGE] * 2


def test_what_was_paid_counts_and_its_replay_elsewhere_does_not() -> None:
    assert spent(by("a", MADE), by("b", PAID)) == [JUDGE, PAID + JUDGE]


def test_what_two_processes_paid_is_never_left_out() -> None:
    assert spent(by("a", PAID), by("b", PAID)) == [PAID + JUDGE] * 2

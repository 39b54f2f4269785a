"""The words of a plan, with costs that are known and not, and of how far a session is; and what two
processes have paid for one case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from pytest_jrh.core.calls import Bounds, Progress, Spending, StageModel, Usage
from pytest_jrh.core.cases import CaseSpec
from pytest_jrh.core.results import CaseResult, CaseSpending, total_spending
from pytest_jrh.engine import planning
from pytest_jrh.engine.planning import Survey, plan_lines
from pytest_jrh.llm.limits import Price
from pytest_jrh.reports.session import progress_line
from tests.support.made_cases import make_result, make_spec

if TYPE_CHECKING:
    from pytest_jrh.engine.suite import LoadedSuites

# In letters: what one call reads is at least a fifth as many tokens, and at most two fifths.
LETTERS = 1_000
PRICES = {"openai/x": 0.01 / 400, "openai/free": 0.0, "openai/cheap": 0.001 / 400}
JUDGE = Spending(replayed=1, usage=Usage(100, 10), cost=0.1)


class _Suites:
    def __iter__(self) -> Iterator[object]:
        yield SimpleNamespace(suite=SimpleNamespace(name="tiny"), judges={})

    def modes(self, _suite: object) -> tuple[str, str]:
        return "once", "once"


@pytest.fixture(autouse=True)
def _prices(monkeypatch: pytest.MonkeyPatch) -> None:
    def price_for(model: StageModel) -> Price | None:
        return None if model.model not in PRICES else Price(PRICES[model.model], 0.0)

    monkeypatch.setattr(planning, "price_for", price_for)


def survey(stage: str = "judge", calls: int = 4, model: str = "openai/x", **more: object) -> Survey:
    spec = CaseSpec("tiny", "agent_perturbation", "rubric", "run", 1)
    to_make = {StageModel(stage, model): Bounds(calls, calls)}
    made = Survey(spec, 3, to_make, LETTERS, stays_unrecorded=False)
    return replace(made, **more)  # type: ignore[arg-type]


def said(*surveys: Survey) -> str:
    return " ".join(" ".join(plan_lines(cast("LoadedSuites", _Suites()), surveys, 80)).split())


def test_a_model_without_a_price_costs_an_unknown_amount_and_never_nothing() -> None:
    text = said(survey(model="openai/unknown"))
    assert text.startswith("4 calls, at an unknown cost: 1 case, 3 calls recorded.")
    assert "$" not in text
    text = said(survey(), survey("planner", model="openai/unknown"))
    assert text.startswith("8 calls, $0.02 to $0.04 and an unknown cost: 2 cases")


def test_a_plan_of_calls_that_cost_nothing_or_next_to_nothing() -> None:
    text = said(survey(model="openai/free"))
    assert text.startswith("4 calls, $0: ")
    assert "unknown" not in text
    assert said(survey(calls=1, model="openai/cheap")).startswith("1 call, under $0.01: ")
    assert said(survey(calls=8, model="openai/cheap")).startswith("8 calls, up to $0.01: ")


def test_the_line_says_how_far_the_session_is_what_it_cost_and_when_it_may_be_done() -> None:
    spending = Spending(calls=30, usage=Usage(1000, 200), paid=0.5)
    line = progress_line(Progress(5, 20, spending), 10.0, 100)
    assert line == "jrh 5/20 | $0.5000, 30 calls | 0:30 left"
    assert len(progress_line(Progress(5, 20, spending), 10.0, 20)) <= 20


def test_the_rest_is_estimated_from_a_tenth_of_the_cases_on() -> None:
    before, after = (progress_line(Progress(done, 100), 75.0, 100) for done in (9, 10))
    assert before == "jrh 9/100 | $0.00, 0 calls | 1:15"
    assert after == "jrh 10/100 | $0.00, 0 calls | 11:15 left"
    nothing, last = (progress_line(Progress(done, done), 75.0, 100) for done in (0, 3))
    assert "left" not in nothing + last


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

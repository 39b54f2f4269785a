"""The words of a plan: costs that are known and not, and cases that stay without an answer."""

from __future__ import annotations

from dataclasses import replace

from pytest_jrh.core.stages import Bounds
from pytest_jrh.engine.planning import CallPlan, PlanRow, plan_lines

RECORDING = {"tiny": ("once", "once")}
REPLAY = {"tiny": ("none", "none")}


def row(stage: str = "judge", calls: int = 4, cost: float | None = 0.02, **more: object) -> PlanRow:
    bounds = None if cost is None else Bounds(cost / 2, cost)
    asked = Bounds(calls, calls)
    made = PlanRow("tiny", stage, "openai/x", 3, asked, bounds)
    return replace(made, **more)  # type: ignore[arg-type]


def said(*rows: PlanRow, modes: object = RECORDING, plan: dict[str, object] | None = None) -> str:
    made = CallPlan(rows, cases=4, **(plan or {}))  # type: ignore[arg-type]
    return " ".join(" ".join(plan_lines(made, modes)).split())  # type: ignore[arg-type]


def test_a_model_without_a_price_costs_an_unknown_amount_and_never_nothing() -> None:
    text = said(row(cost=None))
    assert text.startswith("4 calls, at an unknown cost: 4 cases, 3 calls recorded.")
    assert "$" not in text
    assert "8 calls, $0.01 to $0.02 and an unknown cost: 4 cases" in said(
        row(), row("planner", cost=None)
    )


def test_a_free_model_costs_nothing() -> None:
    text = said(row(cost=0.0))
    assert text.startswith("4 calls, $0: ")
    assert "unknown" not in text


def test_cases_that_stay_as_they_are_are_counted() -> None:
    assert "2 cases would be unrecorded" in said(row(calls=0, cost=0.0), plan={"unrecorded": 2})
    broken: dict[str, object] = {"unreadable": ("runs.eval: broken",) * 2}
    assert (
        "2 cases with an invalid input (input_error), about which nothing is asked, such as: "
        in (said(row(), plan=broken))
    )


def test_the_mode_that_makes_the_calls_is_named_where_none_is_set() -> None:
    assert "would be made with --jrh-record-mode=new_episodes." in said(row(), modes=REPLAY)
    assert "would be made with" not in said(row(), modes={"tiny": ("none", "once")})


def test_attempts_that_fail_come_on_top_of_the_plan() -> None:
    assert "and so do attempts that fail, which count as made." in said(row())
    assert "attempts" not in said(row(calls=0, cost=0.0))


def test_a_plan_begins_with_its_calls_and_their_cost() -> None:
    rows = [row(calls=190, cost=0.06), row("planner", calls=360, cost=1.99)]
    first, *_ = plan_lines(CallPlan(tuple(rows), cases=60), RECORDING)
    assert first == "550 calls, $1.02 to $2.05: 60 cases, 6 calls recorded."


def test_a_plan_of_one_call_that_costs_next_to_nothing() -> None:
    assert said(row(calls=1, cost=0.002)).startswith("1 call, under $0.01: ")
    assert said(row(calls=1, cost=0.009)).startswith("1 call, up to $0.01: ")


def test_a_stage_without_a_call_is_not_in_the_table() -> None:
    text = said(row(), row("planner", calls=0, cost=0.0, recorded=0))
    assert "planner" not in text


def test_what_calls_cost_is_shown_where_there_are_some() -> None:
    assert "to make cost judge openai/x 3 4 $0.01 to $0.02" in said(row())
    assert "stage model recorded to make judge openai/x 3 0" in said(row(calls=0, cost=0.0))


def test_the_table_fits_80_columns_and_keeps_its_figures() -> None:
    wide = replace(
        row(model="openrouter/a-provider/a-model-with-a-long-name-2026-01-01"),
        recorded=12_345,
        calls=Bounds(12_345, 54_321),
        cost=Bounds(234.5, 765.4),
    )
    lines = plan_lines(CallPlan((wide,), cases=4), RECORDING)
    assert max(map(len, lines)) <= 80
    (stage,) = [line for line in lines if line.startswith("judge ")]
    assert "12,345 to 54,321  $234.50 to $765.40" in stage

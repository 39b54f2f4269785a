"""The words of a plan: costs that are known and not, limits, and cases that stay without an
answer."""

from __future__ import annotations

from dataclasses import replace

from pytest_jrh.engine.planning import Bounds, CallPlan, PlanRow, plan_lines

RECORDING = {"tiny": ("once", "once")}
REPLAY = {"tiny": ("none", "none")}


def row(stage: str = "judge", calls: int = 4, cost: float | None = 0.02, **more: object) -> PlanRow:
    bounds = None if cost is None else Bounds(cost / 2, cost)
    promise = None if cost is None else 0.01
    asked = Bounds(calls, calls)
    made = PlanRow("tiny", stage, "openai/x", 3, asked, Bounds(100, 900), bounds, promise)
    return replace(made, **more)  # type: ignore[arg-type]


def said(
    *rows: PlanRow,
    modes: object = RECORDING,
    plan: dict[str, object] | None = None,
    **limits: object,
) -> str:
    made = CallPlan(rows, cases=4, **(plan or {}))  # type: ignore[arg-type]
    return " ".join(" ".join(plan_lines(made, modes, **limits)).split())  # type: ignore[arg-type]


def test_a_model_without_a_price_costs_an_unknown_amount_and_never_nothing() -> None:
    text = said(row(cost=None))
    assert text.startswith("4 calls, at an unknown cost: 4 cases, 3 calls recorded.")
    assert "$" not in text
    assert "No known price for openai/x" in text
    assert "8 calls, $0.01 to $0.02 and an unknown cost: 4 cases" in said(
        row(), row("planner", cost=None)
    )


def test_a_free_model_costs_nothing() -> None:
    text = said(row(cost=0.0, promise=0.0))
    assert text.startswith("4 calls, $0: ")
    assert "unknown" not in text


def test_limits_of_calls_are_obeyed() -> None:
    assert "With --jrh-max-calls=3 at most 3 of them are made; the rest is over_budget." in said(
        row(), max_calls=3
    )
    assert "max-calls" not in said(row(), max_calls=4)
    assert "max-calls" not in said(row(calls=0, cost=0.0), max_calls=0)


def test_limits_of_cost_are_obeyed() -> None:
    assert "With --jrh-max-cost=0.005 no call of judge is made: a budget reserves" in said(
        row(), max_cost=0.005
    )
    short = said(row(calls=90, cost=2.0), max_cost=0.5)
    assert "With --jrh-max-cost=0.5 not all of them are made: they cost $1.0000 or more." in short
    assert "With --jrh-max-cost=0.025 perhaps not all of them are made" in said(
        row(), max_cost=0.025
    )
    assert "max-cost" not in said(row(), max_cost=0.031)
    assert "A run with --jrh-max-cost=1 is refused: no known price for" in said(
        row(cost=None), max_cost=1.0
    )


def test_cases_that_stay_as_they_are_are_counted() -> None:
    assert "2 cases would be unrecorded" in said(row(calls=0, cost=0.0), plan={"unrecorded": 2})
    assert "--jrh-retry-unscored asks again in 2 cases." in said(row(), plan={"renewed": 2})
    assert "2 cases with unusable recorded answers; --jrh-retry-unscored" in said(
        row(), plan={"unusable": 2}
    )


def test_the_mode_that_makes_the_calls_is_named_where_none_is_set() -> None:
    assert "would be made with --jrh-record-mode=once." in said(row(), modes=REPLAY)
    assert "would be made with --jrh-record-mode=new_episodes." in said(
        row(), modes=REPLAY, plan={"complete": True}
    )
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
    assert "tokens" in said(row())
    assert "stage model recorded to make judge openai/x 3 0" in said(row(calls=0, cost=0.0))


def test_the_table_fits_80_columns_and_keeps_its_figures() -> None:
    wide = replace(
        row(model="openrouter/a-provider/a-model-with-a-long-name-2026-01-01"),
        recorded=12_345,
        calls=Bounds(12_345, 54_321),
        tokens=Bounds(1_234_567, 987_654_321),
        cost=Bounds(234.5, 765.4),
    )
    lines = plan_lines(CallPlan((wide,), cases=4), RECORDING)
    assert max(map(len, lines)) <= 80
    (stage,) = [line for line in lines if line.startswith("judge ")]
    assert "1.2M to 988M  $234.50 to $765.40" in stage


def test_the_stages_whose_calls_are_a_range_are_named() -> None:
    edits = replace(row("editor"), calls=Bounds(0, 12))
    assert "the editor takes is known once cases are made" in said(edits, row())
    summaries = replace(row("summary"), calls=Bounds(2, 12))
    assert "calls the editor and the summarizer take is known" in said(edits, summaries, row())
    assert "once cases are made" not in said(row())

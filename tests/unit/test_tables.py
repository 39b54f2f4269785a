import csv
from dataclasses import replace
from io import StringIO
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.calls import Spending
from pytest_jrh.core.results import CaseSpending
from pytest_jrh.reports import rand_files
from pytest_jrh.reports.rand_files import result_row, synthetic_row
from pytest_jrh.store.ledger import cell, table_bytes
from tests.support.made_cases import RUBRIC, make_case, make_result, make_spec

HOSTILE = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x00\x08\x0b\x0e\ufffe\ud800 </td>"


def read_back(*rows: dict[str, Any]) -> list[list[str]]:
    text = table_bytes(["a", "b"], rows).decode("utf-8")
    return list(csv.reader(StringIO(text, newline="")))[1:]


def test_hostile_cells_and_formulas_stay_text_and_numbers_numbers() -> None:
    rows = read_back({"a": HOSTILE, "b": 1}, {"a": 'x,"y"\r\nz', "b": 2})
    assert [row[0] for row in rows] == ["red \ufffd </td>", 'x,"y"\nz']
    formulas = "=cmd()", "+1+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1+1", "\x1b[0m=1"
    assert all(row[0].startswith("'") for row in read_back(*({"a": text} for text in formulas)))
    numbers = (-3, -0.5, 2, True)
    assert [row[0] for row in read_back(*({"a": n} for n in numbers))] == [*map(str, numbers)]
    assert (cell(str(-3)), cell(float("nan"))) == ("-3", None)


@given(st.text(max_size=40))
def test_csv_gives_back_any_plain_text(text: str) -> None:
    assert read_back({"a": text, "b": "end"}) == [[cell(text) or "", "end"]]


def test_synthetic_row_fills_rands_columns_and_marks_an_unverified_label() -> None:
    row = synthetic_row(make_case(), temperature=0.7)
    assert row.keys() - rand_files.SYNTHETIC_COLUMNS == {"plan_thesis"}
    assert ",".join(rand_files.SYNTHETIC_COLUMNS[:22]) == (
        "perturbed_idx,rubric_id,expected,test_name,original_request,original_response,"
        "original_idx,original_expected,generation_prompt,generation_response,"
        "generation_completion,generation_reasoning,generation_temp,generation_mode,"
        "validation_score,validation_reasoning,validated_bucket,rubric_text,"
        "score_levels_table,transcript,prompted_bucket,human_reviewed"
    )
    assert row["original_request"] == f"{RUBRIC.id}: {RUBRIC.instructions}"
    assert row["generation_response"] == "[3] I have refunded order 17 in full."
    assert "I have refunded order 17" in row["transcript"]
    assert (row["validation_score"], row["validated_bucket"], row["generation_temp"]) == (1, 1, 0.7)
    ordinal = synthetic_row(make_case(make_spec(target_score=2)), temperature=None)
    assert ordinal["score_levels_table"] == "0: ignores the policy\n1: mentions it\n2: follows it"
    assert (ordinal["prompted_bucket"], ordinal["validation_score"]) == (2, 2)

    case = make_case()
    outcome = replace(case.outcome, verification=None, confirmed=False)
    row = synthetic_row(replace(case, verified=False, outcome=outcome), temperature=None)
    assert row["verified"] is False
    assert (row["validation_score"], row["validated_bucket"]) == (None, None)


def test_result_row_fills_rands_columns_and_leaves_the_cost_of_an_unpriced_call_empty() -> None:
    made = synthetic_row(make_case(), temperature=None)
    row = result_row(make_result(outcome="disagree"), made)
    assert row.keys() == {*rand_files.RESULT_COLUMNS}
    assert ",".join(rand_files.RESULT_COLUMNS[:18]) == (
        "idx,rubric_id,expected,autograder_score,outcome,perturbed_idx,rubric,transcript,"
        "generation_response,original_request,original_idx,validation_score,agent_mode,"
        "plan_thesis,planned_steps,test_name,score_levels_table,autograder_reasoning"
    )
    assert (row["expected"], row["autograder_score"], row["outcome"]) == (1, 0, "disagree")
    assert row["planned_steps"] == "[3] grant the refund (the decision is here)"
    assert (row["tokens"], row["cost"]) == (120, 0.002)

    unpriced = make_result(spending=CaseSpending({"a": Spending(1, unpriced=1)}))
    assert result_row(unpriced, None)["cost"] is None

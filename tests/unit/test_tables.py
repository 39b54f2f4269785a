from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.calls import Spending, Usage
from pytest_jrh.core.results import CaseSpending
from pytest_jrh.reports.rand_files import (
    RESULT_COLUMNS,
    SYNTHETIC_COLUMNS,
    result_row,
    synthetic_row,
)
from pytest_jrh.store.ledger import cell, table_bytes
from tests.support.made_cases import RUBRIC, make_case, make_result, make_spec

HOSTILE = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x00\x08\x0b\x0e\ufffe\ud800 </td>"


def written(path: Path, *rows: dict[str, Any]) -> list[list[Any]]:
    path.write_bytes(table_bytes(["a", "b"], rows))
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


def test_hostile_cells_do_not_break_a_table(tmp_path: Path) -> None:
    rows = written(tmp_path / "t.csv", {"a": HOSTILE, "b": 1}, {"a": 'x,"y"\r\nz', "b": 2})
    assert [row[0] for row in rows] == ["red \ufffd </td>", 'x,"y"\nz']


@pytest.mark.parametrize(
    "text", ["=cmd()", "+1+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1+1", "\x1b[0m=1"]
)
def test_formulas_stay_text(tmp_path: Path, text: str) -> None:
    ((value, _),) = written(tmp_path / "t.csv", {"a": text})
    assert value.startswith("'")


@pytest.mark.parametrize("number", [-3, -0.5, 2, True])
def test_numbers_stay_numbers(tmp_path: Path, number: float) -> None:
    ((in_csv, _),) = written(tmp_path / "t.csv", {"a": number})
    assert in_csv == str(number)
    assert cell(str(-3)) == "-3"
    assert cell(float("nan")) is None


@given(st.text(max_size=40))
@settings(max_examples=100)
def test_csv_gives_back_any_plain_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    rows = written(path, {"a": text, "b": "end"})
    assert rows == [[cell(text) or "", "end"]]


def test_synthetic_row_fills_rands_columns() -> None:
    row = synthetic_row(make_case(), temperature=0.7)
    assert row.keys() - SYNTHETIC_COLUMNS == {"plan_thesis"}
    assert ",".join(SYNTHETIC_COLUMNS[:22]) == (
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


def test_unverified_label_is_marked() -> None:
    case = make_case()
    outcome = replace(case.outcome, verification=None, confirmed=False)
    row = synthetic_row(replace(case, verified=False, outcome=outcome), temperature=None)
    assert row["verified"] is False
    assert (row["validation_score"], row["validated_bucket"]) == (None, None)


def test_result_row_fills_rands_columns() -> None:
    made = synthetic_row(make_case(), temperature=None)
    row = result_row(make_result(outcome="disagree"), made)
    assert row.keys() == {*RESULT_COLUMNS}
    assert ",".join(RESULT_COLUMNS[:18]) == (
        "idx,rubric_id,expected,autograder_score,outcome,perturbed_idx,rubric,transcript,"
        "generation_response,original_request,original_idx,validation_score,agent_mode,"
        "plan_thesis,planned_steps,test_name,score_levels_table,autograder_reasoning"
    )
    assert (row["expected"], row["autograder_score"], row["outcome"]) == (1, 0, "disagree")
    assert row["planned_steps"] == "[3] grant the refund (the decision is here)"
    assert (row["tokens"], row["cost"]) == (120, 0.002)


def test_unpriced_call_leaves_the_cost_empty() -> None:
    unpriced = make_result(spending=CaseSpending({"a": Spending(1, 0, Usage(1, 1), 0.0, 0.0, 1)}))
    assert result_row(unpriced, None)["cost"] is None

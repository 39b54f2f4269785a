"""The columns that figures read: a table's rows give the same ones as its results do."""

import random
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.stats.verdicts import Baseline, Coded, Scope, Verdicts, distinct
from tests.support.figures import comparison_of


def values_of(verdicts: Verdicts) -> dict[str, list[Any]]:
    """The values of each column, and of clusters which rows share one."""
    values = {}
    for field in fields(verdicts):
        column = getattr(verdicts, field.name)
        if field.name == "cluster":
            column = distinct(column)[0]
        values[field.name] = column.values if isinstance(column, Coded) else column.tolist()
    return values


def table(rows: int, seed: int, **settings: Any) -> CheckedTable:
    """A table with repeats, gaps, reasons and rubrics, held against an earlier judge."""
    rng = random.Random(seed)
    scores = "01" if "scale" not in settings else "12345"
    entries = []
    for number in range(rows):
        case = f"case {number // 2}"
        entry: dict[str, Any] = {"case": case, "repeat": number % 2, "run": f"run {number // 10}"}
        entry["rubric"] = f"r{len(case) % 3}" if "scale" in settings else "only"
        entry["label"] = rng.choice([*scores, ""]) if number % 2 == 0 else ""
        entry |= {name: rng.choice([*scores, ""]) for name in ("verdict", "old")}
        entry["reasoning"] = rng.choice(["", "The rubric is violated.", "The score is 3."])
        entries.append(entry)
    columns = {"label": "label", "repeat": "repeat", "cluster": "run", "baseline": "old"}
    return check_table(entries, **columns, **settings)


@pytest.mark.parametrize("rows", [40, 400, 4_000])
@pytest.mark.parametrize("settings", [{"one": "violated"}, {"scale": (1, 5)}])
def test_rows_of_a_table_are_columns_of_their_results(rows: int, settings: dict[str, Any]) -> None:
    checked = table(rows, rows, **settings)
    session = checked.session
    scales = {key: rubric.scale for key, rubric in session.rubrics.items()}
    ids = [result.case_id for result in checked.results]
    lines = Baseline({case_id: line for case_id in ids if (line := session.earlier(case_id))})
    compared = comparison_of(lines, checked.results, Scope.of(ids), scales).verdicts
    of_rows = values_of(session.verdicts.in_order(session.verdicts.ids))
    of_results = values_of(compared)
    del of_rows["row"], of_results["row"]
    assert of_rows == of_results
    if rows > 40:
        assert len({*of_rows["outcome"]}) > 2
        assert {"", "not in the baseline"} <= {*of_rows["apart"]}


def test_groups_stand_in_the_order_in_which_they_appear() -> None:
    codes, first = distinct(np.array([3, 1, 3, 2, 1]), np.array([0, 0, 0, 1, 1]))
    assert (codes.tolist(), first.tolist()) == ([0, 1, 0, 2, 3], [0, 1, 3, 4])

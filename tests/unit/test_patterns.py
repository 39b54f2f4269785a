"""Columns under other names: a pattern for each rubric, a pointer to a field, several joined."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.core import InputError
from pytest_jrh.sources.columns import Table, texts_to_label
from pytest_jrh.sources.tables import with_named
from tests.support.sessions import as_text

WIDE = [
    {"id": "1", "human_safe": "pass", "judge_safe": "pass", "human_kind": "fail", "judge_kind": 1},
    {"id": "2", "human_safe": "fail", "judge_safe": "pass", "human_tone": "pass", "judge_cost": 3},
]
PAIR = {"label": "human_{rubric}", "verdict": "judge_{rubric}"}
NESTED = [
    {"run": "a", "step": 1, "label": {"faulty": "fail", "votes": ["pass"]}, "m": {"v": "fail"}},
    {"run": "a", "step": 2, "label": {"faulty": "pass", "votes": [None]}, "m": {"v": "pass"}},
    {"run": "a/2", "step": 1, "label": {"faulty": "pass"}, "m": {"v": {"deep": "x" * 9_000}}},
]


BY = {"label": "/label/faulty", "verdict": "/m/v", "case": "run,step", "cluster": "none"}


def cases(checked: CheckedTable) -> list[tuple[str, str, int | None, bool]]:
    return [
        (key.case, key.rubric, case.label, bool(case.given[checked.judge_names[0]]))
        for key, case in checked.table.cases.items()
    ]


def test_a_pattern_gives_a_case_for_each_rubric_of_both_sides() -> None:
    checked = check_table(WIDE, **PAIR, one="violated")
    # A row without either is no case of the rubric.
    found = [("1", "safe", 0, True), ("1", "kind", 1, True), ("2", "safe", 1, True)]
    assert cases(checked) == found
    assert {*checked.judges["judge_{rubric}"].rubrics} == {"safe", "kind"}
    [notice] = checked.table.notices
    assert notice.startswith("Columns not used, because their rubrics have no column of labels,")
    assert {*notice.rstrip(".").split(": ")[1].split(", ")} == {'"judge_cost"', '"human_tone"'}
    assert check_table([{"human_{rubric}": "pass", "judge_{rubric}": "pass"}], **PAIR).judges


def test_labels_and_a_baseline_may_be_patterns_in_files_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [{**row, "judge_cost": None} for row in WIDE]
    file.write_text(as_text(rows))
    decision = check_table(rows, **PAIR, labels=file, baseline=str(file), one="violated").decision
    assert decision is not None
    assert decision.compared == 3
    beside = [{**row, "old_safe": "pass", "old_kind": row.get("human_kind")} for row in WIDE]
    decision = check_table(beside, **PAIR, baseline="old_{rubric}", one="violated").decision
    assert decision is not None
    assert decision.of_baseline == 3


def test_a_column_that_one_side_lacks_is_one_of_empty_cells() -> None:
    names = ("human_a", "human_b", "old_a", "old_b", "new_a")
    words = enumerate(["pass", "fail"] * 20)
    now = [{"id": str(number), **dict.fromkeys(names, word)} for number, word in words]
    how = {"label": "human_{rubric}", "verdict": "new_{rubric}", "baseline": "old_{rubric}"}
    decision = check_table(now, **how).decision
    assert decision is not None
    assert (decision.word, len(decision.unscored)) == ("FAIL", 40)
    # What one person did not label has the labels of others.
    votes = check_table(now, label=["human_{rubric}", "new_{rubric}"], verdict="old_{rubric}")
    assert [key.rubric for key in votes.table.cases] == ["a", "b"] * 40


def test_500_columns_are_500_rubrics_and_too_many_cells_are_refused() -> None:
    row = {f"{role}_{number}": "pass" for role in ("human", "judge") for number in range(500)}
    assert len(check_table([row, row], **PAIR).results) == 1000
    table = Table("t", range(100), {**dict.fromkeys(row, ["x"] * 100), "a": ["x"] * 100})
    many = Table("t", range(50_000), {name: ["x"] * 50_000 for name in row})
    named = [("label", PAIR["label"]), ("verdict", PAIR["verdict"])]
    assert len(with_named(table, named, ("label", "verdict")).lines) == 50_000
    with pytest.raises(InputError, match="more than 20,000,000 cells"):
        with_named(many, named, ("label", "verdict"))


def test_a_pointer_names_a_field_and_keys_are_joined() -> None:
    rows = NESTED[:2]
    for key in ("run,step", "/run,/step"):
        found = cases(check_table(rows, **BY | {"case": key}))
        assert [case for case, *_ in found] == ["a/1", "a/2"]
    votes = check_table(rows, **BY | {"label": "/label/votes/0"})
    assert [label for *_, label, _ in cases(votes)] == [0, None]
    # A column of that name is itself.
    named = [{**row, "run,step": str(number)} for number, row in enumerate(rows)]
    assert [case for case, *_ in cases(check_table(named, **BY))] == ["0", "1"]
    about = [{**row, "about": {"kinds": ["a"]}} for row in rows]
    by = check_table(about, **BY, by=["/about/kinds/0", "run"])
    assert [*by.session.slices["rows", ""]] == ["/about/kinds/0", "run"]
    table = with_named(Table("t", [1], {"a": ["x"], "b": [{"c": "text"}]}), [("text", "/b/c")])
    [text] = texts_to_label(table, ["/b/c"], "a")
    assert text.turns[0]["content"] == "text"


@given(st.lists(st.tuples(st.text("a/~,1"), st.text("a/~,1")), unique=True, min_size=1))
def test_other_keys_have_other_ids(rows: Sequence[tuple[str, str]]) -> None:
    first, second = zip(*rows, strict=True)
    table = with_named(Table("t", range(len(rows)), {"a": first, "b": second}), [("case", "a,b")])
    assert len({*table.columns["a,b"]}) == len(rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "human_safe"}, "got .human_safe.; must be a pattern, like .judge_{rubric}."),
        ({"label": "h_{rubric}"}, "got .h_{rubric}.; must be a pattern"),
        ({"label": "{rubric}_{rubric}"}, "must be a pattern, like .judge_{rubric}"),
        ({"verdict": ["judge_{rubric}", "judge_cost"]}, "got .judge_cost.; must be"),
        ({"label": "h_{rubric}", "verdict": "j_{rubric}"}, "is no column .h_{rubric}."),
        ({"verdict": "judge_c{rubric}"}, "n_{rubric}. finds .*, .judge_c{rubric}. finds .ost."),
        ({"rubric": "id"}, "another option names a column with {rubric}"),
        ({"baseline": "judge_cost"}, "got .judge_cost.*like .human_{rubric}., .judge_{rubric}."),
    ],
)
def test_a_pattern_that_gives_nothing_is_explained(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("{", r"\{")):
        check_table(WIDE, **{**PAIR, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "/label/falty"}, 'is no column "/label/falty"; the columns '),
        ({"case": "run,stp"}, 'no column "run,stp"; the columns are "run", "step", "label", "m"'),
        ({"label": "/label"}, "label"),
        ({"verdict": "/m/v"}, "in JSON, a field: --verdict /COL/FIELD"),
    ],
)
def test_a_pointer_to_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        check_table(NESTED, **BY | changes)
    assert message in str(refused.value)
    assert len(str(refused.value)) < 3_000

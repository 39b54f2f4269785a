"""Slices: figures by the values of a column or a field, the worst first, and what decides."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.core import InputError
from pytest_jrh.engine.suite import ReadySuite, make_ready
from pytest_jrh.reports.blocks import Section, Table
from pytest_jrh.reports.for_programs import JsonReport
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.page import SessionCases
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.summary import compose
from pytest_jrh.stats.changes import SetChange
from pytest_jrh.stats.decision import Decision
from tests.support.made_cases import DIGESTS, make_result, make_spec, result_with
from tests.support.suites import rubric, run, write_suite

ROWS = 300


def rows(bad: int = 12, seed: int = 0, **columns: str) -> list[dict[str, Any]]:
    """Ten categories of 30 cases: a judge that flickers in 2%, and has so many cases of one
    category newly wrong."""
    dice = Random(seed)
    table = []
    for number in range(ROWS):
        label, is_bad = number // 10 % 2, number % 10 == 3 and number < 10 * bad
        before = label ^ (not is_bad and dice.random() < 0.1)
        now = label ^ 1 if is_bad else before ^ (dice.random() < 0.02)
        row = {"id": str(number), "label": label, "old": int(before), "new": int(now)}
        table.append({**row, "category": f"c{number % 10}", **columns})
    return table


def checked(table: Any, **more: Any) -> CheckedTable:
    how = {"label": "label", "verdict": "new", "one": "violated", "by": "category", **more}
    return check_table(table, **how)


def answer(table: CheckedTable) -> list[Table]:
    """The tables of the answer, without that of the rubrics."""
    tables = [block for block in compose(table.session).answer if isinstance(block, Table)]
    return [block for block in tables if block.first not in ("rubric", "level")]


def names(table: Table) -> list[str]:
    return [row.name for row in table.rows]


def test_a_bad_category_is_the_first_row_of_every_report() -> None:
    table = checked(rows())
    [of_category] = answer(table)
    assert (of_category.first, names(of_category)[0]) == ("category (10 rows)", "c3")
    assert [cell.text for cell in of_category.rows[0].cells] == ["8 of 15", "8 of 15"]
    sections = [block for block in compose(table.session).details if isinstance(block, Section)]
    [of_all] = [block.blocks[0] for block in sections if block.title.endswith("by category")]
    assert isinstance(of_all, Table)
    assert (names(of_all)[0], len(of_all.rows)) == ("c3", 11)
    head = "| category (10 rows) | missed | false alarms |\n| --- | ---: | ---: |\n"
    assert f"{head}| <code>c3</code>" in MarkdownReport().text(table.session)
    data = json.loads(JsonReport().text(table.session))
    [of_judge] = data["suites"]["rows"]["judges"].values()
    assert [row["value"] for row in of_judge["slices"]["category"]] == names(of_category)
    assert of_judge["slices"]["category"][0]["disagree"] == 16
    # On the page a row picks its cases.
    made_id, row = SessionCases(table.session).ids[0], of_category.rows[0]
    assert [row.about[2]] == SessionCases(table.session).row(made_id)["slices"] == ["c3"]


def test_a_scale_has_its_error_by_value() -> None:
    table = [{"id": n, "label": n % 5, "new": (n + n % 2) % 5, "c": n % 2} for n in range(40)]
    [of_category] = answer(checked(table, one="", scale=(0, 4), by="c"))
    assert (names(of_category), of_category.titles) == (["1", "0"], ("wrong level", "bias"))


def test_values_of_few_cases_are_not_the_worst_but_a_row_together_as_are_empty_cells() -> None:
    table = rows()
    for row in table[:10]:
        # The only violation of ten cases, and it is missed.
        row |= {"category": "rare", "label": 0, "new": 0}
    table[0] |= {"label": 1}
    [of_category] = answer(checked(table))
    assert names(of_category)[0] == "c3"
    table = rows()
    for number in range(9):
        table[number]["category"] = f"small {number % 3}"
    for row in table[100:120]:
        row["category"] = " "
    [of_category] = answer(checked(table))
    assert names(of_category)[-1] == "3 values with under 10 cases"
    assert "(none)" in names(of_category)


def test_hostile_values_stay_few_and_inert() -> None:
    table = rows()
    for row in table:
        row["category"] = "<b>\x1b[31m|`$(x)`" * 40 if row["category"] == "c3" else row["id"]
    session = checked(table, by=["category", "id"], case="none").session
    of_category, of_id = session.slices["rows", ""].values()
    [worst, together] = of_category.rubrics
    assert (worst.counts.n, together.name) == (30, "270 values with under 10 cases")
    assert [row.name for row in of_id.rubrics] == ["300 values with under 10 cases"]
    assert "<b>" not in MarkdownReport().text(session)
    assert len(worst.name) < 200
    many = [{"label": 1, "new": n % 3 > 0, "c": n // 10} for n in range(900)]
    [of_c] = checked(many, by="c").session.slices["rows", ""].values()
    assert (len(of_c.rubrics), of_c.rubrics[-1].name) == (51, "40 other values")
    assert sum(row.counts.n for row in of_c.rubrics) == len(many)


def test_none_decides_unless_asked_and_a_lost_category_is_red_where_asked() -> None:
    def decision(table: Any, **more: Any) -> Decision:
        of_table = checked(table, baseline="old", same_judge=True, **more).decision
        assert of_table is not None
        return of_table

    def slices_of(decision: Decision) -> list[SetChange]:
        return [of_set for of_set in decision.sets if of_set.kind == "slice"]

    assert not slices_of(decision(rows(bad=9)))
    failed = 0
    for seed in range(20):
        lost = decision(rows(bad=9, seed=seed), gate_by=True)
        assert decision(rows(bad=0, seed=seed), gate_by=True).word != "FAIL"
        failed += lost.word == "FAIL" and 'of "category=c3"' in lost.headline
    assert failed >= 17
    first, *_ = slices_of(lost)
    assert (first.allowed, first.title) == (0.1, "category=c0")
    # Values without ten cases are no sets.
    assert not slices_of(decision(rows(bad=0), by="id", case="none", gate_by=True))


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("label", '--label and --by cannot both be "label"'),
        ("old", '"old" has labels or verdicts'),
        ("human_ok", '"human_ok" has labels'),
        ("gpt_judge", '"gpt_judge" has labels'),
        ("reasoning", '"reasoning" has labels'),
        ("final", '--settled and --by cannot both be "final"'),
        ("categry", r'is no column "categry"; (.|\n)*"category" is the nearest'),
        ("id", '--case and --by cannot both be "id"'),
        ("several", 'rows of one case have different values in "several"'),
    ],
)
def test_what_is_no_property_of_a_case_is_refused(by: str, message: str) -> None:
    table = rows(human_ok="1", gpt_judge="1", reasoning="so", final="1")
    table = [{**row, "epoch": 1, "repeat": n, "several": n} for row in table for n in (1, 2)]
    with pytest.raises(InputError, match=message):
        checked(table, baseline="old", by=by, case="id", repeat="repeat", settled="final")
    with pytest.raises(InputError, match="needs --by"):
        checked(table, by="", gate_by=True)


def ready(folder: Path, **overrides: Any) -> ReadySuite:
    """A suite of three runs with metadata, of which the last has no category."""
    folder.mkdir(exist_ok=True)
    fields = [{"category": "a", "ok": 1}, {"category": {"x": 1}, "kind": "b"}, {"kind": "c"}]
    runs = [run(number, metadata=of_run) for number, of_run in enumerate(fields, 1)]
    config = write_suite(folder, runs=runs, rubrics=[rubric(1)], overrides=overrides).config
    return make_ready(config, cwd=folder, rootdir=folder)


def test_a_suite_reads_the_fields_of_its_runs(tmp_path: Path) -> None:
    by_pointer = ready(tmp_path, cases={"by": ["kind", "/category/x"]})
    assert [*by_pointer.slices.values()] == [
        (("kind", ""), ("/category/x", "")),
        (("kind", "b"), ("/category/x", "1")),
        (("kind", "c"), ("/category/x", "")),
    ]
    no_property = "has labels or verdicts, so"
    refused = {"knd": '"kind" is the nearest', "category": "or a list"}
    for key, message in (refused | {"ok": no_property, "human_kind": no_property}).items():
        labels = [{"metadata": "ok", "map": {"1": 1}}]
        with pytest.raises(InputError, match=rf"cases\.by(.|\n)*{message}"):
            ready(tmp_path / key, cases={"by": [key]}, labels=labels)
    with pytest.raises(InputError, match=r"gate\.by: can be used only if cases\.by is set"):
        ready(tmp_path / "gate", gate={"by": True})


def test_results_carry_the_slices_of_their_runs() -> None:
    results = []
    for number in range(20):
        score, result = number % 2, make_result(make_spec(f"run-{number}"), **DIGESTS)
        results.append(result_with(result, score=score, slices=(("kind", "ab"[score]),)))
    [of_kind] = Session(results).slices["refunds", ""].values()
    assert [(row.name, row.counts.disagree) for row in of_kind.rubrics] == [("a", 10), ("b", 0)]

"""Edits that are acts, in records, tables and reports (docs/more_tests.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.diffs import turn_pairs
from pytest_jrh.core.model import Case, Verdict
from pytest_jrh.reports.failures import disagreement_text
from pytest_jrh.reports.markdown import LIMIT, markdown_report
from pytest_jrh.reports.rand_files import synthetic_row
from pytest_jrh.store.records import read_case, record_line, to_record
from tests.support.judged_sessions import session_about
from tests.support.made_cases import ACT_RUN, hostile_act_case, judged_result, make_act_case
from tests.unit.test_markdown import OURS, rendered

CASE = make_act_case()


def shown(case: Case) -> str:
    result = judged_result(case, Verdict(0, "fine"))
    return disagreement_text(case, result, cassette=None, command="pytest")


def test_a_record_holds_acts_and_gives_the_same_case_again() -> None:
    line = record_line(to_record(CASE))
    again = read_case(line)
    assert again.outcome.edits == CASE.outcome.edits
    assert again.outcome.plan == CASE.outcome.plan
    assert not again.altered
    assert record_line(to_record(again)) == line


def test_turns_are_paired_with_those_of_the_run() -> None:
    pairs = turn_pairs(ACT_RUN, CASE.messages, CASE.outcome.edits)
    assert [tuple(pair) for pair in pairs] == [
        (0, 0),
        (1, None),
        (2, None),
        (3, 1),
        (4, 2),
        (None, 3),
        (None, 4),
        (5, 5),
        (6, 6),
    ]
    # Where a record was changed by somebody, the edits lead nowhere.
    moved = [replace(edit, message_index=edit.message_index + 40) for edit in CASE.outcome.edits]
    for edits in (moved, moved[:1], [replace(moved[0], message_index=-3)]):
        assert [tuple(pair) for pair in turn_pairs(ACT_RUN, CASE.messages, edits)] == [
            (index, index) for index in range(7)
        ]


@pytest.fixture(scope="module")
def hostile() -> Case:
    return hostile_act_case()


def test_a_hostile_call_is_text_in_a_failure(hostile: Case) -> None:
    text = shown(hostile)
    assert len(text) < 20_000
    assert text.isprintable() or set(text) - {"\n"} == {c for c in text if c.isprintable()}
    assert not [line for line in text.split("\n") if line.lstrip().startswith("::")]
    titles = [line for line in text.split("\n") if line[:1].strip()]
    assert [title.partition(":")[0] for title in titles[1:]] == [
        "rubric",
        "expected",
        "given",
        "4 edits made this case",
        "run it again",
    ]


def test_a_hostile_call_is_text_in_markdown(hostile: Case, tmp_path: Path) -> None:
    text = markdown_report(session_about(tmp_path, hostile))
    assert len(text.encode()) < LIMIT
    page = rendered(text)
    assert {element.tag for element in page.elements} <= OURS
    assert not set(text) & set("\x1b\u202e\x07")
    assert "@octocat" not in text
    quotes = "".join(quote.text for quote in page.all("blockquote"))
    assert "assistant calls <script>window.ran=1</script>" in quotes


def test_a_table_has_the_calls_in_rands_columns() -> None:
    row = synthetic_row(CASE, temperature=None)
    assert row["original_response"].startswith("[1] Let me see who you are.\nverify: {")
    assert "[3] Once more.\nrefund: {" in row["generation_response"]
    assert row["generation_prompt"].startswith("[1] omit: leave out the check (")

"""Edits that are acts, in records, tables and reports (docs/more_tests.md)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.diffs import turn_pairs
from pytest_jrh.core.model import Case, Verdict
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.transcript import text_to_compare
from pytest_jrh.engine.runner import _without_secrets
from pytest_jrh.reports.case_facts import act_note, shown_edits
from pytest_jrh.reports.failures import disagreement_text, edit_diff
from pytest_jrh.reports.markdown import LIMIT, markdown_report
from pytest_jrh.reports.rand_files import synthetic_row
from pytest_jrh.store.records import case_digest, read_case, record_line, to_record
from tests.support.judged_sessions import session_about
from tests.support.made_cases import (
    ACT_RUN,
    act_edit,
    called,
    hostile_act_case,
    judged_result,
    make_act_case,
    make_case,
)
from tests.support.undoing import undone
from tests.unit.test_markdown import OURS, rendered

CASE = make_act_case()


def with_edits(case: Case, *edits: Any) -> Case:
    return replace(case, outcome=replace(case.outcome, edits=edits))


def shown(case: Case) -> str:
    result = judged_result(case, Verdict(0, "fine"))
    return disagreement_text(case, result, cassette=None, command="pytest")


def test_the_case_of_these_tests_is_one_that_can_be_undone() -> None:
    assert undone(CASE.messages, CASE.outcome.edits) == ACT_RUN


def test_a_record_holds_acts_and_gives_the_same_case_again() -> None:
    line = record_line(to_record(CASE))
    again = read_case(line)
    assert again.outcome.edits == CASE.outcome.edits
    assert again.outcome.plan == CASE.outcome.plan
    assert not again.altered
    assert record_line(to_record(again)) == line


def test_a_record_of_words_is_as_it_was_before_there_were_acts() -> None:
    perturbation = to_record(make_case())["perturbation"]
    keys = {*perturbation["steps"][0], *perturbation["plan"]["steps"][0]}
    assert keys.isdisjoint({"kind", "before", "after", "follows", "call_id"})


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


def test_a_call_is_compared_line_by_line_with_its_result_below() -> None:
    before, after = CASE.outcome.edits[1].before, CASE.outcome.edits[1].after
    assert text_to_compare(before).split("\n") == [
        "assistant calls refund",
        "  {",
        '    "order": 17,',
        '    "amount": 56.0,',
        '    "lines": [',
        "      {",
        '        "sku": "K1",',
        '        "sum": 56.0',
        "      }",
        "    ]",
        "  }",
        "tool refund",
        "  {",
        '    "refunded": 56.0,',
        '    "reference": "R-1"',
        "  }",
    ]
    pieces = next(edit for edit in shown_edits(CASE) if edit.turn == 1 and "changed" in edit.note)
    gone = "".join(piece.text for piece in pieces.pieces if piece.kind == "gone")
    assert (gone.count("56"), gone.count("order")) == (2, 0)
    assert text_to_compare(after) != text_to_compare(before)


def test_a_failure_shows_each_act_as_what_it_is() -> None:
    text = shown(CASE)
    for line in (
        "4 edits made this case:",
        "    turn 1 (assistant), call of verify omitted before it",
        "    - assistant calls verify",
        "    turn 1 (assistant), call of refund changed",
        '    -     "amount": 56.0,',
        '    +     "amount": 96.0,',
        "    turn 3 (assistant), call of refund inserted",
        "    + assistant calls refund",
        "    turn 5 (assistant), since [5] still says 56.00",
    ):
        assert line in text.split("\n"), text


def test_a_call_left_out_at_the_end_is_shown_there() -> None:
    case = make_act_case()
    edit = replace(case.outcome.edits[0], message_index=len(case.messages))
    assert [shown_edit.title for shown_edit in shown_edits(with_edits(case, edit))] == [
        "turn 7 (the end), call of verify omitted before it"
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


def test_markdown_says_what_was_done_to_which_call(tmp_path: Path) -> None:
    page = rendered(markdown_report(session_about(tmp_path, CASE)))
    texts = [paragraph.text.replace("\u200b", "") for paragraph in page.all("p")]
    assert "turn 1 (assistant), call of verify omitted before it" in texts
    assert "3 more edits are in the report." in texts


def test_a_hostile_call_comes_back_from_its_record(hostile: Case) -> None:
    again = read_case(record_line(to_record(hostile)))
    assert again.outcome.edits == hostile.outcome.edits
    assert undone(again.messages, again.outcome.edits) == again.run.messages


def test_a_table_has_the_calls_in_rands_columns() -> None:
    row = synthetic_row(CASE, temperature=None)
    assert row["original_response"].startswith("[1] Let me see who you are.\nverify: {")
    assert "[3] Once more.\nrefund: {" in row["generation_response"]
    assert row["generation_prompt"].startswith("[1] omit: leave out the check (")


def test_a_secret_of_the_run_is_not_shown_in_a_call() -> None:
    run = [dict(message) for message in ACT_RUN]
    arguments = {"order": 17, "amount": 56.0, "lines": [{"sku": "k-0123456789abcdef", "sum": 1}]}
    run[3] = called(ACT_RUN[3], arguments)
    clean = _without_secrets(make_act_case(run=run), Redactor(("k-0123456789abcdef",)))
    text = shown(clean)
    assert "0123456789abcdef" not in text
    assert '"sku": "[REDACTED]"' in text


def test_of_several_calls_of_a_turn_the_one_that_changed_is_named() -> None:
    other = {"id": "c9", "function": "look_up", "arguments": {"order": 17}}
    turn = {**ACT_RUN[3], "tool_calls": [*ACT_RUN[3]["tool_calls"], other]}
    looked_up = {**ACT_RUN[4], "function": "look_up", "tool_call_id": "c9", "content": "found"}
    alone = {**turn, "tool_calls": [other]}
    failed = {**ACT_RUN[4], "content": "no answer"}
    edits = [
        act_edit(3, "omit", (turn, ACT_RUN[4]), (alone,)),
        act_edit(3, "call", (turn, ACT_RUN[4], looked_up), (turn, failed, looked_up)),
    ]
    titles = [act_note(edit) for edit in edits]
    assert titles == ["call of refund omitted", "call of refund changed"]
    lines = edit_diff(edits[0])
    assert "- assistant calls refund" in lines
    assert "  assistant calls look_up" in lines
    assert edit_diff(edits[1])[-2:] == ["+   no answer", "  tool look_up"]


def test_the_audit_of_a_case_can_be_read_as_json(tmp_path: Path) -> None:
    steps = to_record(CASE)["perturbation"]["steps"]
    assert [step.get("kind", "say") for step in steps] == ["omit", "call", "insert", "say"]
    assert (
        json.loads(json.dumps(steps))
        == json.loads(record_line(to_record(CASE)))["perturbation"]["steps"]
    )
    assert case_digest(read_case(record_line(to_record(CASE)))) == case_digest(CASE)

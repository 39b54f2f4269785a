"""Edits that are acts: in reports, on the review page, and edited by people."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.diffs import turn_pairs
from pytest_jrh.people import Decision, DecisionStore, TurnEdit, with_edits
from pytest_jrh.people.board import Assigned, ReviewBoard, ReviewCase
from pytest_jrh.reports.case_facts import shown_edits
from pytest_jrh.reports.markdown import LIMIT, MarkdownReport
from pytest_jrh.reports.page import case_turns
from pytest_jrh.reports.rand_files import synthetic_row
from pytest_jrh.review import bare_body
from pytest_jrh.store.records import BY_HAND, case_digest, record_line, to_record
from tests.support.judged_sessions import session_about
from tests.support.made_cases import (
    ACT_RUN,
    act_edit,
    case_from,
    hostile_act_case,
    make_act_case,
    make_case,
    make_suite,
    undone,
)
from tests.unit.test_markdown import OURS, rendered

CASE = make_act_case()


def decision(*turns: TurnEdit) -> Decision:
    return Decision(case_id="id", case_digest=case_digest(CASE), action="edited", turns=turns)


@pytest.mark.parametrize("index", [1, 5])
def test_what_a_person_edits_is_an_edit_that_can_be_undone(index: int) -> None:
    turn = TurnEdit(message_index=index, content="Done: 96.00.")
    case = with_edits(CASE, decision(turn))
    by_hand = case.outcome.edits[-1]
    assert (by_hand.kind, by_hand.editor_reason) == ("say", BY_HAND)
    assert case.messages[index] == {**CASE.messages[index], "content": "Done: 96.00."}
    assert case.messages[index + 1 :] == CASE.messages[index + 1 :]
    assert undone(case.messages, case.outcome.edits) == ACT_RUN
    stored = case_from(record_line(to_record(case)))
    assert with_edits(stored, decision(turn)) == stored
    assert by_hand.edited_content == "Done: 96.00."
    states = [shown.get("state") for shown in case_turns(case)]
    assert states.count("edited by a person") == 1


def test_a_stored_case_that_is_edited_again_has_an_edit_more() -> None:
    first = decision(TurnEdit(message_index=3, content="Once again."))
    stored = case_from(record_line(to_record(with_edits(CASE, first))))
    assert with_edits(stored, first) == stored
    again = with_edits(stored, decision(TurnEdit(message_index=3, content="So be it.")))
    by_hand = [edit for edit in again.outcome.edits if edit.editor_reason == BY_HAND]
    assert [edit.edited_content for edit in by_hand] == ["Once again.", "So be it."]
    assert undone(again.messages, again.outcome.edits) == ACT_RUN


def test_who_labels_blind_sees_nothing_of_what_was_put_in_or_left_out() -> None:
    """The page of a made case is that of a run that says the same, with ids of its own."""
    others = [{**message, "id": f"x{index}"} for index, message in enumerate(CASE.messages)]
    for message in others:
        message.pop("tool_call_id", None)
        if "tool_calls" in message:
            message["tool_calls"] = [{**call, "id": "x"} for call in message["tool_calls"]]
    pages = []
    for case in (CASE, make_case(messages=others, edited=False)):
        entry = ReviewCase("id", "digest", case)
        pages.append(bare_body(Assigned("k", 1, entry, None, is_blind=True)))
    assert pages[0] == pages[1]


def test_a_case_of_hostile_calls_can_be_edited(tmp_path: Path) -> None:
    case = hostile_act_case(2_000)
    board = ReviewBoard(DecisionStore([make_suite(tmp_path)]))
    board.add(case)
    entry = board.changes()[1][0].entry
    edited = board.edit_turn(entry.key, entry.digest, 1, "\ud800\x00</textarea>").case
    assert edited.messages[1] == {**case.messages[1], "content": "\ufffd</textarea>"}
    case = edited
    assert case_from(record_line(to_record(case))).outcome.edits == case.outcome.edits
    assert undone(case.messages, case.outcome.edits) == case.run.messages


def test_a_turn_that_lost_its_reasoning_or_got_an_error_is_changed() -> None:
    text = {"type": "text", "text": "Done."}
    bare = {"id": "m5", "role": "assistant", "content": [text]}
    thinking = {**bare, "content": [{"type": "reasoning", "reasoning": "56.00 it is."}, text]}
    run = (*ACT_RUN[:4], {**ACT_RUN[4], "content": ""}, thinking)
    failed = {**run[4], "error": {"type": "timeout", "message": "no answer"}}
    edits = (
        act_edit(3, "call", run[3:5], (run[3], failed)),
        act_edit(5, "say", (thinking,), (bare,), dropped_reasoning=1, follows="[5] still says 56"),
    )
    outcome = replace(CASE.outcome, messages=(*run[:4], failed, bare), edits=edits)
    made = replace(CASE, outcome=outcome)
    case = replace(made, run=replace(CASE.run, messages=run))
    turns = list(case_turns(case))
    assert [turn["index"] for turn in turns if "state" in turn] == [4, 5]
    assert turns[4]["parts"][0]["text"] == "no answer"
    assert list(shown_edits(case))[1].title == "turn 5 (assistant), reasoning left out"


def test_turns_are_paired_with_those_of_the_run() -> None:
    pairs = turn_pairs(ACT_RUN, CASE.messages)
    kept = [(3, 1), (4, 2), (None, 3), (None, 4), (5, 5), (6, 6)]
    assert [tuple(pair) for pair in pairs] == [(0, 0), (1, None), (2, None), *kept]


def test_a_hostile_call_is_text_in_markdown(tmp_path: Path) -> None:
    text = MarkdownReport().text(session_about(tmp_path, hostile_act_case()))
    assert len(text.encode()) < LIMIT
    page = rendered(text)
    assert {element.tag for element in page.elements} <= OURS
    assert not set(text) & set("\x1b\u202e\x07")
    assert "@octocat" not in text
    quotes = "".join(quote.text for quote in page.all("blockquote"))
    assert "script>window.ran=1" in quotes


def test_a_table_has_the_calls_in_rands_columns() -> None:
    row = synthetic_row(CASE, temperature=None)
    assert row["original_response"].startswith("[1] Let me see who you are.\nverify: {")
    assert "[3] Once more.\nrefund: {" in row["generation_response"]
    assert row["generation_prompt"].startswith("[1] omit: leave out the check (")

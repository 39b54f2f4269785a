"""Edits that are acts: in reports, on the review page, and edited by people."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.cases import Case, Message
from pytest_jrh.core.diffs import turn_pairs
from pytest_jrh.core.redact import REDACTED, Redactor
from pytest_jrh.people.board import Assigned, ReviewBoard, ReviewCase
from pytest_jrh.people.decisions import (
    CallEdit,
    Decision,
    DecisionStore,
    TurnEdit,
    decisions_path,
    with_edits,
)
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
)
from tests.support.undoing import undone
from tests.unit.test_markdown import OURS, rendered

CASE = make_act_case()
ARGUMENTS = {"order": 17, "amount": 76.0, "lines": [{"sku": "K1", "sum": 56.0}]}
CALL = CallEdit(tool="refund", arguments=ARGUMENTS, result='{"refunded": 76.0, "reference": "R-1"}')


def with_messages(messages: Sequence[Message], **changes: Any) -> Case:
    return replace(CASE, outcome=replace(CASE.outcome, messages=tuple(messages), **changes))


def decision(*turns: TurnEdit) -> Decision:
    return Decision(case_id="id", case_digest=case_digest(CASE), action="edited", turns=turns)


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (TurnEdit(message_index=1, content="", calls=(CALL,)), "call"),
        (TurnEdit(message_index=5, content="Done: 96.00."), "say"),
    ],
)
def test_what_a_person_edits_is_an_edit_that_can_be_undone(turn: TurnEdit, kind: str) -> None:
    case = with_edits(CASE, decision(turn))
    by_hand = case.outcome.edits[-1]
    assert (by_hand.kind, by_hand.editor_reason) == (kind, BY_HAND)
    assert undone(case.messages, case.outcome.edits) == ACT_RUN
    stored = case_from(record_line(to_record(case)))
    assert with_edits(stored, decision(turn)) == stored
    if kind == "call":
        assert case.messages[1]["tool_calls"][0]["arguments"] == ARGUMENTS
        assert case.messages[2]["content"] == CALL.result
        assert by_hand.edited_content.startswith('refund: {"order": 17, "amount": 76.0')
        states = [shown.get("state") for shown in case_turns(case)]
        assert states.count("edited by a person") == 2


def test_a_stored_case_that_is_edited_again_has_an_edit_more() -> None:
    first = decision(TurnEdit(message_index=3, content="Once again."))
    stored = case_from(record_line(to_record(with_edits(CASE, first))))
    assert with_edits(stored, first) == stored
    again = with_edits(stored, decision(TurnEdit(message_index=3, content="So be it.")))
    by_hand = [edit for edit in again.outcome.edits if edit.editor_reason == BY_HAND]
    assert [edit.edited_content for edit in by_hand] == ["Once again.", "So be it."]
    assert undone(again.messages, again.outcome.edits) == ACT_RUN


def test_a_decision_about_a_call_is_kept_without_secrets(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    store = DecisionStore([suite], Redactor(["s3cret"]))
    secret = CallEdit(tool="s3cret", arguments={"key": ["s3cret"], "s3cret": 1}, result="s3cret")
    store.append(CASE.spec, decision(TurnEdit(message_index=1, content="", calls=(secret,))))
    (turn,) = DecisionStore([suite]).decisions["id"].turns
    arguments = {"key": [REDACTED], REDACTED: 1}
    assert turn.calls == (CallEdit(tool=REDACTED, arguments=arguments, result=REDACTED),)
    store.append(CASE.spec, decision(TurnEdit(message_index=1, content="so")))
    path = decisions_path(suite.tests[0].output_dir)
    assert b"calls" not in path.read_bytes().splitlines()[-1]


def test_a_call_of_another_tool_has_its_result_and_none_of_the_old_reasoning() -> None:
    thinking = [{"type": "reasoning", "reasoning": "A refund it is."}]
    turn = {**CASE.messages[1], "content": thinking}
    case = with_messages((CASE.messages[0], turn, *CASE.messages[2:]))
    call = CALL.model_copy(update={"tool": "credit"})
    case = with_edits(case, decision(TurnEdit(message_index=1, content="", calls=(call,))))
    assert case.messages[1]["tool_calls"][0]["function"] == "credit"
    assert (case.messages[1]["content"], case.outcome.edits[-1].dropped_reasoning) == ([], 1)
    assert (case.messages[2]["function"], case.messages[2]["tool_call_id"]) == ("credit", "c2")


def test_words_alone_are_an_edit_of_words_also_where_the_turn_has_calls() -> None:
    [call] = CASE.messages[1]["tool_calls"]
    result = str(CASE.messages[2]["content"])
    as_it_was = CallEdit(tool="refund", arguments=call["arguments"], result=result)
    turn = TurnEdit(message_index=1, content="One moment.", calls=(as_it_was,))
    case = with_edits(CASE, decision(turn))
    by_hand = case.outcome.edits[-1]
    assert (by_hand.kind, by_hand.edited_content) == ("say", "One moment.")
    assert case.messages[1] == {**CASE.messages[1], "content": "One moment."}
    assert case.messages[2:] == CASE.messages[2:]


def test_a_call_without_a_result_gets_none() -> None:
    case = with_messages((*ACT_RUN[:4], *ACT_RUN[5:]))
    without = with_edits(case, decision(TurnEdit(message_index=3, content="", calls=(CALL,))))
    assert without.messages[3]["tool_calls"][0]["arguments"] == ARGUMENTS
    assert without.messages[4:] == case.messages[4:]


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
    [call] = case.messages[1]["tool_calls"]
    arguments = deepcopy(call["arguments"])
    arguments["lines"][0]["sku"] = "\ud800\x00</textarea>"
    edit = CallEdit(tool=call["function"], arguments=arguments, result="\ud800\x00")
    entry = board.changes()[1][0].entry
    case = board.edit_turn(entry.key, entry.digest, 1, "", (edit,)).case
    assert case.messages[1]["tool_calls"][0]["arguments"]["lines"][0]["sku"] == "\ufffd</textarea>"
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
    made = with_messages((*run[:4], failed, bare), edits=edits)
    case = replace(made, run=replace(CASE.run, messages=run))
    turns = list(case_turns(case))
    assert [turn["index"] for turn in turns if "state" in turn] == [4, 5]
    assert turns[4]["parts"][0]["text"] == "no answer"
    assert list(shown_edits(case))[1].title == "turn 5 (assistant), reasoning left out"


def test_calls_of_a_case_of_words_stay() -> None:
    words = make_case()
    call = CallEdit(tool="look_up", arguments={"order": 18}, result="bought today")
    first = TurnEdit(message_index=1, content="Let me look that up.", calls=(call,))
    case = with_edits(words, decision(first, TurnEdit(message_index=3, content="No.")))
    assert case.messages[:3] == words.messages[:3]
    assert not case_from(record_line(to_record(case))).altered


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
    assert "assistant calls <script>window.ran=1</script>" in quotes


def test_a_table_has_the_calls_in_rands_columns() -> None:
    row = synthetic_row(CASE, temperature=None)
    assert row["original_response"].startswith("[1] Let me see who you are.\nverify: {")
    assert "[3] Once more.\nrefund: {" in row["generation_response"]
    assert row["generation_prompt"].startswith("[1] omit: leave out the check (")

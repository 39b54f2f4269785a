"""Calls on the review page: shown before and after, edited by people, held to their structure
(docs/more_tests.md)."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.model import Case
from pytest_jrh.core.redact import REDACTED, Redactor
from pytest_jrh.reports.case_facts import shown_edits
from pytest_jrh.reports.page import LEFT_OUT, case_turns
from pytest_jrh.review.blind import Assigned
from pytest_jrh.review.board import ReviewBoard, ReviewCase, Reviewed
from pytest_jrh.review.pages import ReviewedCases, bare_body, call_texts
from pytest_jrh.store.people import (
    CallEdit,
    Decision,
    DecisionStore,
    TurnEdit,
    open_stores,
    with_edits,
)
from pytest_jrh.store.records import BY_HAND, case_digest, read_case, record_line, to_record
from tests.support.made_cases import (
    ACT_RUN,
    act_edit,
    hostile_act_case,
    make_act_case,
    make_case,
    make_spec,
    make_suite,
)
from tests.support.undoing import undone

CASE = make_act_case()
ARGUMENTS = {"order": 17, "amount": 76.0, "lines": [{"sku": "K1", "sum": 56.0}]}
CALL = CallEdit(call=0, arguments=ARGUMENTS, result='{"refunded": 76.0, "reference": "R-1"}')


def decision(*turns: TurnEdit) -> Decision:
    return Decision(case_id="id", case_digest=case_digest(CASE), action="edited", turns=turns)


def turns_of(case: Case, made_case: Case = CASE) -> dict[str, dict[str, Any]]:
    """The turns as the page shows them, by position; of those left out `was 1`."""
    turns = {}
    for turn in case_turns(case, made_case):
        place = f"was {turn['index']}" if turn.get("state") == LEFT_OUT else str(turn["index"])
        turns[place] = turn
    return turns


def states(case: Case) -> dict[str, str]:
    return {place: turn.get("state", "") for place, turn in turns_of(case).items()}


@pytest.fixture
def board(tmp_path: Path) -> ReviewBoard:
    board = ReviewBoard(open_stores([make_suite(tmp_path)]))
    board.add(CASE)
    return board


def edited(board: ReviewBoard, index: int, content: str | None, *calls: CallEdit) -> Reviewed:
    entry = board.changes()[1][0].entry
    return board.edit_turn(entry.key, entry.digest, index, content, calls)


def test_every_kind_of_edit_is_shown_where_it_is() -> None:
    assert states(CASE) == {
        "0": "",
        "was 1": "left out",
        "was 2": "left out",
        "1": "edited",
        "2": "edited",
        "3": "inserted",
        "4": "inserted",
        "5": "edited",
        "6": "",
    }
    turns = turns_of(CASE)
    assert "amount: 96.0" in turns["1"]["parts"][-1]["text"]
    assert "amount: 56.0" in turns["1"]["was"][-1]["text"]
    assert "56" in turns["2"]["was"][0]["text"]
    assert [part["kind"] for part in turns["3"]["parts"]] == ["text", "call"]
    assert turns["was 1"]["parts"][-1]["title"] == "verify"
    assert dict(turns["was 1"]["why"])["Goal"] == "leave out the check"
    assert dict(turns["1"]["why"])["Goal"] == "refund 96.00"
    assert dict(turns["5"]["why"])["To stay consistent"] == "[5] still says 56.00"


def test_turns_of_the_assistant_can_be_edited_as_they_stand_now() -> None:
    case_id = generation_id(CASE.spec)
    body = ReviewedCases([Reviewed(ReviewCase(case_id, "digest", CASE), None, None)]).body(case_id)
    assert body["editable"] == [1, 3, 5]


def test_a_call_that_a_person_edits_is_an_edit_that_can_be_undone() -> None:
    case = with_edits(CASE, decision(TurnEdit(message_index=1, content="", calls=(CALL,))))
    by_hand = case.outcome.edits[-1]
    assert (by_hand.kind, by_hand.editor_reason, len(by_hand.after)) == ("call", BY_HAND, 2)
    assert case.messages[1]["tool_calls"][0]["arguments"] == ARGUMENTS
    assert case.messages[2]["content"] == CALL.result
    assert by_hand.edited_content.startswith('refund: {"order": 17, "amount": 76.0')
    assert undone(case.messages, case.outcome.edits) == ACT_RUN
    assert states(case)["1"] == states(case)["2"] == "edited by a person"
    assert states(case)["was 1"] == "left out"


def test_words_that_a_person_edits_in_a_case_of_acts_can_be_undone() -> None:
    case = with_edits(CASE, decision(TurnEdit(message_index=5, content="Done: 96.00.")))
    by_hand = case.outcome.edits[-1]
    assert (by_hand.kind, by_hand.original_content) == ("say", "I have refunded 96.00.")
    assert undone(case.messages, case.outcome.edits) == ACT_RUN


def test_a_stored_case_that_is_edited_again_keeps_what_was_there_first() -> None:
    first = decision(TurnEdit(message_index=3, content="Once again."))
    stored = read_case(record_line(to_record(with_edits(CASE, first))))
    assert with_edits(stored, first) == stored
    result = CallEdit(call=0, arguments=ARGUMENTS, result='{"refunded": 76.0}')
    again = with_edits(
        stored, decision(TurnEdit(message_index=3, content="Once again.", calls=(result,)))
    )
    by_hand = [edit for edit in again.outcome.edits if edit.editor_reason == BY_HAND]
    assert [(edit.kind, edit.before) for edit in by_hand] == [("call", CASE.messages[3:5])]
    assert undone(again.messages, again.outcome.edits) == ACT_RUN
    # And back to words alone: the result is as it was made, and still part of the edit.
    words = with_edits(again, decision(TurnEdit(message_index=3, content="So be it.")))
    assert words.outcome.edits[-1].before == CASE.messages[3:5]
    assert undone(words.messages, words.outcome.edits) == ACT_RUN


def test_a_case_of_words_gets_no_messages_with_an_edit() -> None:
    case = with_edits(make_case(), decision(TurnEdit(message_index=3, content="No.")))
    assert (case.outcome.edits[-1].kind, case.outcome.edits[-1].before) == ("say", ())


def test_a_decision_about_a_call_is_kept_without_secrets(tmp_path: Path) -> None:
    store = DecisionStore(tmp_path / "decisions.jsonl", Redactor(["s3cret"]))
    secret = CallEdit(call=0, arguments={"key": ["s3cret"], "s3cret": 1}, result="s3cret")
    store.append(decision(TurnEdit(message_index=1, content="", calls=(secret,))))
    (turn,) = DecisionStore(store.path).snapshot()["id"].turns
    assert (turn.calls[0].arguments, turn.calls[0].result) == (
        {"key": [REDACTED], REDACTED: 1},
        REDACTED,
    )
    store.append(decision(TurnEdit(message_index=1, content="so")))
    assert b"calls" not in store.path.read_bytes().splitlines()[-1]


@pytest.mark.parametrize(
    ("call", "mistake"),
    [
        (
            CALL.model_copy(update={"arguments": {"order": 17}}),
            r"refund.*'amount' is missing",
        ),
        (
            CALL.model_copy(update={"arguments": {**ARGUMENTS, "amount": "76"}}),
            r"amount is text, not a number",
        ),
        (
            CALL.model_copy(update={"arguments": {**ARGUMENTS, "why": "none"}}),
            r"'why' is no key",
        ),
    ],
)
def test_a_call_that_its_tool_would_not_take_is_refused(
    board: ReviewBoard, call: CallEdit, mistake: str
) -> None:
    with pytest.raises(InputError, match=mistake):
        edited(board, 1, "", call)
    assert board.changes()[1][0].decision is None


def test_other_runs_of_the_suite_say_what_a_tool_takes(board: ReviewBoard) -> None:
    arguments = {**ARGUMENTS, "note": "sorry"}
    run = [dict(message) for message in ACT_RUN]
    run[3] = {**run[3], "tool_calls": [{**ACT_RUN[3]["tool_calls"][0], "arguments": arguments}]}
    board.add(make_act_case(make_spec("run-2"), run))
    case = edited(board, 1, "", CALL.model_copy(update={"arguments": arguments})).case
    assert case.messages[1]["tool_calls"][0]["arguments"] == arguments


def test_as_made_takes_words_and_calls_back(board: ReviewBoard) -> None:
    assert edited(board, 1, "", CALL).decision
    assert call_texts(edited(board, 1, "", CALL).case.messages, 1)[0]["result"] == CALL.result
    back = edited(board, 1, None)
    assert (back.decision, back.case.messages) == (None, CASE.messages)


def test_a_call_without_a_result_or_a_number_that_is_none_changes_nothing() -> None:
    run = (*ACT_RUN[:4], *ACT_RUN[5:])
    case = replace(CASE, outcome=replace(CASE.outcome, messages=run))
    for call in (CALL.model_copy(update={"call": 7}), CALL.model_copy(update={"call": -1})):
        turn = TurnEdit(message_index=3, content="", calls=(call,))
        assert with_edits(case, decision(turn)) == case
    without = with_edits(case, decision(TurnEdit(message_index=3, content="", calls=(CALL,))))
    assert without.messages[3]["tool_calls"][0]["arguments"] == ARGUMENTS
    assert without.messages[4:] == case.messages[4:]
    assert call_texts(case.messages, 3)[0]["result"] is None


def test_arguments_are_texts_by_name_and_results_as_they_are() -> None:
    (call,) = call_texts(CASE.messages, 1)
    arguments = CASE.messages[1]["tool_calls"][0]["arguments"]
    assert {name: json.loads(text) for name, text in call["arguments"].items()} == arguments
    assert (call["name"], call["result"]) == ("refund", CASE.messages[2]["content"])


def test_who_labels_blind_sees_nothing_of_what_was_put_in_or_left_out() -> None:
    """The page of a made case is that of a run that says the same, with ids of its own."""

    def bare(case: Case) -> dict[str, object]:
        entry = ReviewCase("id", "digest", case)
        assigned = Assigned("k", 1, entry, None, is_blind=True)
        return bare_body(assigned)

    others = [{**message, "id": f"x{index}"} for index, message in enumerate(CASE.messages)]
    for message in others:
        message.pop("tool_call_id", None)
        if "tool_calls" in message:
            message["tool_calls"] = [{**call, "id": "x"} for call in message["tool_calls"]]
    assert bare(CASE) == bare(make_case(messages=others, edited=False))


def test_a_case_of_hostile_calls_can_be_edited(tmp_path: Path) -> None:
    case = hostile_act_case(2_000)
    board = ReviewBoard(open_stores([make_suite(tmp_path)]))
    board.add(case)
    (call,) = call_texts(case.messages, 1)
    assert call["name"].startswith("<script>")
    assert "\x1b" not in call["name"]
    arguments = deepcopy(case.messages[1]["tool_calls"][0]["arguments"])
    arguments["lines"][0]["sku"] = "\ud800\x00</textarea>"
    edit = CallEdit(call=0, arguments=arguments, result="\ud800\x00")
    case = edited(board, 1, "", edit).case
    assert case.messages[1]["tool_calls"][0]["arguments"]["lines"][0]["sku"] == "\ufffd</textarea>"
    assert read_case(record_line(to_record(case))).outcome.edits == case.outcome.edits
    assert undone(case.messages, case.outcome.edits) == case.run.messages


def test_a_turn_that_lost_its_reasoning_or_got_an_error_is_changed() -> None:
    thinking = {
        "id": "m5",
        "role": "assistant",
        "content": [
            {"type": "reasoning", "reasoning": "56.00 it is."},
            {"type": "text", "text": "Done."},
        ],
    }
    run = (*ACT_RUN[:4], {**ACT_RUN[4], "content": ""}, thinking)
    failed = {**run[4], "error": {"type": "timeout", "message": "no answer"}}
    bare = {**thinking, "content": thinking["content"][1:]}
    edits = (
        act_edit(3, "call", run[3:5], (run[3], failed)),
        act_edit(5, "say", (thinking,), (bare,), dropped_reasoning=1, follows="[5] still says 56"),
    )
    case = make_case(messages=run, edited=False)
    made = (*run[:4], failed, bare)
    case = replace(case, outcome=replace(case.outcome, messages=made, edits=edits))
    turns = turns_of(case, case)
    assert [place for place, turn in turns.items() if "state" in turn] == ["4", "5"]
    assert turns["4"]["parts"][0]["text"] == "no answer"
    assert dict(turns["5"]["why"])["Reasoning"] == "1 of its parts went with the old text"
    assert [edit.title for edit in shown_edits(case)] == [
        "turn 3 (assistant), call of refund changed",
        "turn 5 (assistant), reasoning left out",
    ]


def test_calls_of_a_case_of_words_and_calls_that_are_not_there_stay(board: ReviewBoard) -> None:
    board.add(make_case(make_spec("run-2")))
    words = board.changes()[1][1].entry
    call = CallEdit(call=0, arguments={"order": 18}, result="bought today")
    with pytest.raises(InputError, match="only words were edited in this case"):
        board.edit_turn(words.key, words.digest, 1, "Let me look that up.", (call,))
    with pytest.raises(InputError, match="message 1 has no call number 7"):
        edited(board, 1, "", CALL.model_copy(update={"call": 7}))
    # Nor where somebody has written it into the file.
    turns = (
        TurnEdit(message_index=1, content="Let me look that up.", calls=(call,)),
        TurnEdit(message_index=3, content="No."),
    )
    case = with_edits(words.case, decision(*turns))
    assert case.messages[:3] == words.case.messages[:3]
    assert not read_case(record_line(to_record(case))).altered

"""Edits that are acts: in reports, on the review page, and edited by people."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.cases import Case
from pytest_jrh.core.diffs import turn_pairs
from pytest_jrh.core.redact import REDACTED, Redactor
from pytest_jrh.people.board import Assigned, ReviewBoard, ReviewCase, Reviewed
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
    make_spec,
    make_suite,
)
from tests.support.undoing import undone
from tests.unit.test_markdown import OURS, rendered

CASE = make_act_case()
ARGUMENTS = {"order": 17, "amount": 76.0, "lines": [{"sku": "K1", "sum": 56.0}]}
CALL = CallEdit(tool="refund", arguments=ARGUMENTS, result='{"refunded": 76.0, "reference": "R-1"}')


def decision(*turns: TurnEdit) -> Decision:
    return Decision(case_id="id", case_digest=case_digest(CASE), action="edited", turns=turns)


@pytest.fixture
def board(tmp_path: Path) -> ReviewBoard:
    board = ReviewBoard(DecisionStore([make_suite(tmp_path)]))
    board.add(CASE)
    return board


def edited(board: ReviewBoard, index: int, content: str | None, *calls: CallEdit) -> Reviewed:
    entry = board.changes()[1][0].entry
    return board.edit_turn(entry.key, entry.digest, index, content, calls)


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
    messages = (CASE.messages[0], turn, *CASE.messages[2:])
    case = replace(CASE, outcome=replace(CASE.outcome, messages=messages))
    call = CALL.model_copy(update={"tool": "credit"})
    case = with_edits(case, decision(TurnEdit(message_index=1, content="", calls=(call,))))
    assert case.messages[1]["tool_calls"][0]["function"] == "credit"
    assert (case.messages[1]["content"], case.outcome.edits[-1].dropped_reasoning) == ([], 1)
    assert case.messages[2]["function"] == "credit"
    assert case.messages[2]["tool_call_id"] == "c2"


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
    run = (*ACT_RUN[:4], *ACT_RUN[5:])
    case = replace(CASE, outcome=replace(CASE.outcome, messages=run))
    without = with_edits(case, decision(TurnEdit(message_index=3, content="", calls=(CALL,))))
    assert without.messages[3]["tool_calls"][0]["arguments"] == ARGUMENTS
    assert without.messages[4:] == case.messages[4:]


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
    board = ReviewBoard(DecisionStore([make_suite(tmp_path)]))
    board.add(case)
    [call] = case.messages[1]["tool_calls"]
    arguments = deepcopy(call["arguments"])
    arguments["lines"][0]["sku"] = "\ud800\x00</textarea>"
    edit = CallEdit(tool=call["function"], arguments=arguments, result="\ud800\x00")
    case = edited(board, 1, "", edit).case
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
    case = make_case(messages=run, edited=False)
    made = (*run[:4], failed, bare)
    case = replace(case, outcome=replace(case.outcome, messages=made, edits=edits))
    turns = list(case_turns(case))
    assert [turn["index"] for turn in turns if "state" in turn] == [4, 5]
    assert turns[4]["parts"][0]["text"] == "no answer"
    titles = [edit.title for edit in shown_edits(case)]
    assert titles[1] == "turn 5 (assistant), reasoning left out"


def test_calls_of_a_case_of_words_stay(board: ReviewBoard) -> None:
    board.add(make_case(make_spec("run-2")))
    words = board.changes()[1][1].entry
    call = CallEdit(tool="look_up", arguments={"order": 18}, result="bought today")
    turns = (
        TurnEdit(message_index=1, content="Let me look that up.", calls=(call,)),
        TurnEdit(message_index=3, content="No."),
    )
    case = with_edits(words.case, decision(*turns))
    assert case.messages[:3] == words.case.messages[:3]
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

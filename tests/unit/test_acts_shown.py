"""Edits that are acts: in reports, on the review page, and edited by people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_jrh.core.diffs import turn_pairs
from pytest_jrh.core.model import Case
from pytest_jrh.reports.case_facts import shown_edits
from pytest_jrh.reports.markdown import LIMIT, markdown_report
from pytest_jrh.reports.page import case_turns
from pytest_jrh.reports.rand_files import synthetic_row
from pytest_jrh.review.blind import Assigned
from pytest_jrh.review.board import ReviewCase
from pytest_jrh.review.pages import bare_body
from pytest_jrh.store.people import (
    Decision,
    TurnEdit,
    with_edits,
)
from pytest_jrh.store.records import BY_HAND, case_digest, read_case, record_line, to_record
from tests.support.judged_sessions import session_about
from tests.support.made_cases import (
    ACT_RUN,
    act_edit,
    hostile_act_case,
    make_act_case,
    make_case,
)
from tests.support.undoing import undone
from tests.unit.test_markdown import OURS, rendered

CASE = make_act_case()


def decision(*turns: TurnEdit) -> Decision:
    return Decision(case_id="id", case_digest=case_digest(CASE), action="edited", turns=turns)


def test_what_a_person_edits_is_an_edit_that_can_be_undone() -> None:
    case = with_edits(CASE, decision(TurnEdit(message_index=5, content="Done: 96.00.")))
    by_hand = case.outcome.edits[-1]
    assert (by_hand.kind, by_hand.editor_reason) == ("say", BY_HAND)
    assert undone(case.messages, case.outcome.edits) == ACT_RUN
    states = [shown.get("state") for shown in case_turns(case)]
    assert states.count("edited by a person") == 1


def test_a_stored_case_that_is_edited_again_has_an_edit_more() -> None:
    first = decision(TurnEdit(message_index=3, content="Once again."))
    stored = read_case(record_line(to_record(with_edits(CASE, first))))
    assert with_edits(stored, first) == stored
    again = with_edits(stored, decision(TurnEdit(message_index=3, content="So be it.")))
    by_hand = [edit for edit in again.outcome.edits if edit.editor_reason == BY_HAND]
    assert [edit.edited_content for edit in by_hand] == ["Once again.", "So be it."]
    assert undone(again.messages, again.outcome.edits) == ACT_RUN


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


def test_turns_are_paired_with_those_of_the_run() -> None:
    pairs = turn_pairs(ACT_RUN, CASE.messages)
    kept = [(3, 1), (4, 2), (None, 3), (None, 4), (5, 5), (6, 6)]
    assert [tuple(pair) for pair in pairs] == [(0, 0), (1, None), (2, None), *kept]


def test_a_hostile_call_is_text_in_markdown(tmp_path: Path) -> None:
    text = markdown_report(session_about(tmp_path, hostile_act_case()))
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

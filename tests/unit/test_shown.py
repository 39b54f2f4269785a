"""Whether a judge was shown what decides is said right, or not at all."""

import base64
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.cases import Case, Message
from pytest_jrh.core.redact import REDACTED
from pytest_jrh.core.results import ShownTurns
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.recording.exchanges import HttpRequest
from pytest_jrh.recording.shown import SentTexts, shown_turns
from tests.support.made_cases import calling, make_case, make_edit
from tests.support.made_cases import given as given_back
from tests.support.shown import JUDGES, LAYOUTS, SENDS, edited_case, generated_runs

TEXT = "I have refunded order 17 in full, although the window of thirty days is over."


def said(case: Case, *texts: str, partial: bool = False) -> ShownTurns:
    """What is said of a judge that sent these texts in JSON."""
    return posted(case, *(json.dumps({"prompt": text}) for text in texts), partial=partial)


def with_edit(case: Case, messages: Sequence[Message], **changes: Any) -> Case:
    """The case with these messages and one edit of [1]."""
    edit = replace(make_edit("", "", 1), **changes)
    outcome = replace(case.outcome, messages=tuple(messages), edits=(edit,))
    return replace(case, outcome=outcome)


def posted(case: Case, *bodies: str, partial: bool = False) -> ShownTurns:
    sent = SentTexts(lambda text: text.replace("hunter2", REDACTED))
    sent.is_partial = partial
    for body in bodies:
        sent.sent(HttpRequest("POST", "http://127.0.0.1/", body))
    return shown_turns(case, sent)


def test_what_judges_leave_out_of_generated_runs_is_said() -> None:
    for way in product(enumerate(generated_runs(12)), JUDGES, LAYOUTS, SENDS):
        (seed, messages), judge, layout, send = way
        edited = edited_case(messages, seed)
        sending = judge(edited, layout, send)
        right = () if sending.holds_edit else (edited.index,)
        assert shown_turns(edited.case, sending.sent) == ShownTurns(1, right), way


def test_turns_of_a_run_as_it_is_are_counted() -> None:
    case = make_case(edited=False)
    everything = ShownTurns(4, is_whole=True)
    assert said(case, render_transcript(case.messages)) == everything
    assert posted(case, json.dumps({"messages": list(case.messages)})) == everything
    without = [message for message in case.messages if message["role"] != "tool"]
    assert said(case, render_transcript(without)) == ShownTurns(4, (2,), is_whole=True)


def test_what_is_not_recorded_or_cannot_be_read_is_unknown() -> None:
    case = make_case(new_text=TEXT)
    assert said(case) == ShownTurns(1, unknown=1)
    assert said(case, "nothing of it", partial=True) == ShownTurns(1, unknown=1)
    assert said(case, render_transcript(case.messages), partial=True) == ShownTurns(1)
    image = base64.b64encode(random.Random(1).randbytes(900)).decode()
    for body in (json.dumps({"image": image}), "nothing of it", json.dumps("x " * 1_500_001)):
        assert posted(case, body) == ShownTurns(1, unknown=1)


def test_the_words_that_differ_decide() -> None:
    original = "Your order is 40 days old, so I cannot refund it, and the case is closed."
    case = make_case(new_text=original.replace("40", "12"))
    edits = (make_edit(original, original.replace("40", "12"), 3),)
    case = replace(case, outcome=replace(case.outcome, edits=edits))
    assert said(case, "Agent: Your order is 12 days old, so I") == ShownTurns(1)
    assert said(case, original) == ShownTurns(1, (3,))
    assert said(case, "Your order is ** days old, so I cannot refund it") == ShownTurns(1, (3,))
    # Words that stand elsewhere say nothing.
    case = make_case(new_text="bought 45 days ago")
    assert said(case, "tool: bought 45 days ago") == ShownTurns(1, unknown=1)
    assert said(case, render_transcript(case.messages)) == ShownTurns(1)
    assert said(case, "bought 44 days ago") == ShownTurns(1, (3,))


@pytest.mark.parametrize("place", [1, len(TEXT) // 2, len(TEXT) - 1])
def test_a_turn_that_is_cut_between_two_numbered_requests_is_shown(place: int) -> None:
    case = make_case(new_text=TEXT)
    parts = f"Part 1 of 2: {TEXT[:place]}", f"Part 2 of 2: {TEXT[place:]} That was 2 of 2."
    assert said(case, *parts) == ShownTurns(1)


def test_a_name_that_the_judge_makes_unreadable_leaves_it_unknown() -> None:
    case = make_case(new_text=f"{TEXT} Ask Wojciech Nowak in the office, he knows all about it.")
    body = render_transcript(case.messages)
    assert said(case, body.replace("Wojciech Nowak", "[NAME]")) == ShownTurns(1, unknown=1)
    without_end = body.replace("he knows all about it", "[...]")
    assert said(case, without_end).missing == (3,)
    # A secret that is taken out makes no difference.
    case = make_case(new_text=f"The word is hunter2. {TEXT}")
    body = render_transcript(case.messages).replace("hunter2", REDACTED)
    assert said(case, json.dumps(body)) == ShownTurns(1)


def refund(amount: float, result: str) -> tuple[Message, Message]:
    """A call and its result."""
    call = calling(1, "", "c1", "refund", order="A-17", amount=amount)
    return call, given_back(2, result, "c1", "refund")


@pytest.mark.parametrize(
    "body",
    [
        '{"arguments": "{\\"order\\": \\"A-17\\", \\"amount\\": 418.75}", "out": "now it is paid"}',
        "refund(order='A-17', amount=418.75)\nnow it is paid",
        "refund(A-17, 418.75) -> now it is paid",
    ],
)
def test_arguments_are_known_however_they_are_written(body: str) -> None:
    case, after = make_case(edited=False), refund(418.75, "now it is paid")
    messages = (case.messages[0], *after, *case.messages[3:])
    before = refund(56.0, "all is open")
    case = with_edit(case, messages, kind="call", before=before, after=after)
    assert said(case, body) == ShownTurns(2)
    assert said(case, body.replace("now it is paid", "")) == ShownTurns(2, (2,))
    assert said(case, body.replace("418.75", "56.0")) == ShownTurns(2, (1,))


def test_a_call_that_was_left_out_is_shown_where_its_neighbours_are() -> None:
    case = make_case(edited=False)
    messages = (case.messages[0], *case.messages[3:])
    case = with_edit(case, messages, kind="omit", before=case.messages[1:3], after=())
    assert said(case, render_transcript(messages)) == ShownTurns(2)
    assert said(case, render_transcript(messages[:1])) == ShownTurns(2, (1,))


@given(st.text(), st.text(), st.lists(st.text()))
def test_hostile_texts_are_no_errors(new: str, other: str, bodies: list[str]) -> None:
    case = make_case(new_text=new or "x")
    turns = posted(case, other, json.dumps(bodies), *bodies)
    assert (turns.turns, len(turns.missing) + turns.unknown <= 1) == (1, True)

"""What the page shows of a transcript: folded around the edits, differences marked, nothing
invisible."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.model import Case, Judgment, Label, Message, Verdict, VoteSource
from pytest_jrh.core.transcript import indented_json
from pytest_jrh.review.board import ReviewCase, Reviewed
from pytest_jrh.review.views import (
    HUGE,
    Turn,
    folds,
    part_of,
    review_row,
    review_values,
    visible,
)
from pytest_jrh.store.decisions import Decision, TurnEdit
from tests.support.made_cases import make_case, make_spec


def long_case(turns: int = 30, edited: int = 15) -> Case:
    messages: list[Message] = [
        {"role": "assistant" if index % 2 else "user", "content": f"turn number {index}"}
        for index in range(turns)
    ]
    case = make_case(messages=messages, edited=False)
    judged = (
        *messages[:edited],
        {**messages[edited], "content": f"turn numero {edited}"},
        *messages[edited + 1 :],
    )
    return replace(case, outcome=replace(case.outcome, messages=tuple(judged)))


def turns(case: Case, made: Case | None = None) -> dict[int, Turn]:
    return {turn.index: turn for fold in folds(case, made or case) for turn in fold.turns}


def reviewed(case: Case, decision: Decision | None = None) -> Reviewed:
    return Reviewed(
        ReviewCase("id", "digest", case, 0, 1, {"": Judgment((Verdict(0, "secret opinion"),))}),
        decision,
        None,
    )


def test_turns_far_from_an_edit_are_folded_and_those_near_it_are_not() -> None:
    laid_out = folds(long_case(), long_case())
    assert [(fold.folded, fold.turns[0].index, fold.turns[-1].index) for fold in laid_out] == [
        (True, 0, 12),
        (False, 13, 17),
        (True, 18, 29),
    ]


def test_a_label_is_shown_with_who_gave_it_where_it_is_decided() -> None:
    sources = (VoteSource("labels.csv:7", "ann", "no\x1b refund"), VoteSource("labels.csv:8"))
    case = replace(make_case(edited=False), label=Label((1, 0), "people", sources=sources))
    shown = review_values(reviewed(case))
    assert shown["votes"] == [
        "1 (violated) by ann, labels.csv:7: no\u2039U+001B\u203a refund",
        "0 (satisfied), labels.csv:8",
    ]


def test_one_or_two_turns_are_not_worth_a_fold() -> None:
    assert not any(fold.folded for fold in folds(long_case(8, 4), long_case(8, 4)))


def test_a_transcript_without_edits_is_in_sight_as_a_whole() -> None:
    case = make_case(edited=False)
    (fold,) = folds(case, case)
    assert (fold.folded, len(fold.turns)) == (False, len(case.messages))


def test_only_an_edited_turn_has_a_difference_and_says_why() -> None:
    shown = turns(make_case())
    assert [index for index, turn in shown.items() if turn.difference] == [3]
    assert dict(shown[3].why) == {
        "Goal": "grant the refund",
        "Why this turn": "the decision is here",
        "The editor's reason": "grants the refund",
    }


def test_a_turn_that_a_person_edited_says_so() -> None:
    made = make_case()
    decision = Decision(
        case_id="id",
        case_digest="digest",
        action="edited",
        turns=(TurnEdit(message_index=1, content="Let me see."),),
    )
    shown = turns(reviewed(made, decision).case, made)
    assert (shown[1].state, shown[3].state) == ("by hand", "edited")


def test_the_middle_of_a_long_unchanged_stretch_is_folded() -> None:
    long = "word " * 2000
    case = make_case(
        messages=[{"role": "assistant", "content": f"{long} old end"}],
        new_text=f"{long} new end",
        edited=True,
    )
    stretch = turns(case)[0].difference[0]
    assert len(stretch.text) + len(stretch.after) < 1000
    assert (stretch.text + stretch.folded + stretch.after).strip() == long.strip()


def test_every_kind_of_part_is_shown() -> None:
    message: Message = {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "reasoning": "hmm"},
            {"type": "text", "text": "Here."},
            {"type": "image", "image": "data:image/png;base64,AAAA"},
            {"type": "tool_use", "name": "web", "arguments": "{}", "result": "found"},
        ],
        "tool_calls": [{"function": "pay", "arguments": {"to": "me"}, "parse_error": "bad"}],
    }
    failed: Message = {
        "role": "tool",
        "function": "pay",
        "content": "out",
        "error": {"type": "timeout", "message": "60 s"},
    }
    shown = turns(make_case(messages=[message, failed], edited=False))
    assert [part.kind for part in shown[0].parts] == [
        "reasoning",
        "text",
        "image",
        "call",
        "result",
        "call",
    ]
    assert "bad" in shown[0].parts[-1].text
    assert [(part.kind, part.text) for part in shown[1].parts] == [
        ("error", "60 s"),
        ("result", "out"),
    ]
    assert "AAAA" not in repr(shown)


def test_a_huge_part_can_be_had_whole() -> None:
    huge = "x" * (HUGE + 1)
    case = make_case(
        messages=[{"role": "user", "content": "hi"}, {"role": "tool", "content": huge}],
        edited=False,
    )
    (part,) = turns(case)[1].parts
    assert part.huge
    assert part_of(case.messages, 1, part.number).text == huge
    for index, number in ((1, 1), (2, 0), (-1, 0)):
        with pytest.raises(LookupError):
            part_of(case.messages, index, number)


def test_results_of_tools_are_indented_with_all_their_characters() -> None:
    text = r'{"a": [1.0, {}, []], "a": "x\"{", "c": {"d": null}, "e": 1e5}'
    assert indented_json(text) == "\n".join(
        [
            "{",
            '  "a": [',
            "    1.0,",
            "    {},",
            "    []",
            "  ],",
            r'  "a": "x\"{",',
            '  "c": {',
            '    "d": null',
            "  },",
            '  "e": 1e5',
            "}",
        ]
    )
    for other in ("", "{", "[1", "{not json}", "plain [1]", "[" * 100_000, "12"):
        assert indented_json(other) == other
    deep = "[" * 500 + "]" * 500
    assert len(indented_json(deep)) < 60 * len(deep)
    message: Message = {"role": "tool", "function": "f", "content": '[{"a":1}]'}
    (part,) = turns(make_case(messages=[message], edited=False))[0].parts
    assert part.text == '[\n  {\n    "a": 1\n  }\n]'


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_indented_json_is_the_same_value(value: object) -> None:
    assert json.loads(indented_json(json.dumps(value))) == value


@given(text=st.text())
def test_nothing_that_hides_or_reorders_text_is_left_in_it(text: str) -> None:
    shown = visible(f"{text}\x1b[2K\u202e\u200b\x00")
    assert all(char.isprintable() or char in "\n\t" or not char.isascii() for char in shown)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200b\u200f\ufeff")


def test_newlines_and_tabs_stay() -> None:
    assert visible("a\tb\r\nc") == "a\tb\nc"


def test_a_row_says_what_the_list_needs_and_no_more() -> None:
    shown = review_row(reviewed(make_case(make_spec(run_id="../../x\x1b"))))
    assert (shown["run"], shown["edits"], shown["action"], shown["expected"]) == (
        "../../x\u2039U+001B\u203a",
        1,
        None,
        1,
    )
    assert "messages" not in shown

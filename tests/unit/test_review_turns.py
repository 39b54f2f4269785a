"""What the page shows of a case that people decide about: turns beside what they were, and who says
what of it, with nothing invisible."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.model import Case, Judgment, Label, Message, Verdict, VoteSource
from pytest_jrh.core.text import visible
from pytest_jrh.core.transcript import indented_json
from pytest_jrh.review.board import ReviewCase, Reviewed
from pytest_jrh.review.pages import ReviewedCases
from pytest_jrh.store.people import Decision, TurnEdit
from tests.support.made_cases import make_case, make_spec


def reviewed(case: Case, decision: Decision | None = None) -> Reviewed:
    judged = {"": Judgment((Verdict(0, "nothing was refunded"),))}
    entry = ReviewCase(generation_id(case.spec), "digest", case, 1, judged)
    return Reviewed(entry, decision, None)


def body_of(case: Case, decision: Decision | None = None) -> dict[str, Any]:
    one = reviewed(case, decision)
    return ReviewedCases([one]).body(one.entry.case_id)


def turns(case: Case, decision: Decision | None = None) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = body_of(case, decision)["turns"]
    return shown


def test_a_label_is_shown_with_who_gave_it_where_it_is_decided() -> None:
    sources = (VoteSource("labels.csv:7", "ann", "no refund"), VoteSource("labels.csv:8"))
    case = replace(make_case(edited=False), label=Label((1, 0), "people", sources=sources))
    case = replace(case, outcome=replace(case.outcome, verification=None))
    [label, judge] = body_of(case)["voices"]
    assert label["why"].splitlines() == [
        "1 (violated) by ann, labels.csv:7: no refund",
        "0 (satisfied), labels.csv:8",
    ]
    assert (judge["word"], judge["wrong"]) == ("satisfied", True)


def test_only_an_edited_turn_has_what_it_was_and_says_why() -> None:
    shown = turns(make_case())
    assert [turn["index"] for turn in shown if "state" in turn] == [3]
    assert (shown[3]["state"], "was" in shown[3]) == ("edited", True)
    assert [tuple(why) for why in shown[3]["why"]] == [
        ("Goal", "grant the refund"),
        ("Why this turn", "the decision is here"),
        ("The editor's reason", "grants the refund"),
    ]


def test_a_turn_that_a_person_edited_says_so() -> None:
    edit = TurnEdit(message_index=1, content="Let me see.")
    decision = Decision(case_id="id", case_digest="digest", action="edited", turns=(edit,))
    shown = turns(make_case(), decision)
    assert (shown[1]["state"], shown[3]["state"]) == ("edited by a person", "edited")


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
    kinds = [part["kind"] for part in shown[0]["parts"]]
    assert kinds == ["reasoning", "text", "image", "call", "result", "call"]
    assert "bad" in shown[0]["parts"][-1]["text"]
    assert [(part["kind"], part["text"]) for part in shown[1]["parts"]] == [
        ("error", "60 s"),
        ("result", "out"),
    ]


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


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_indented_json_is_the_same_value(value: object) -> None:
    assert json.loads(indented_json(json.dumps(value))) == value


@given(text=st.text())
def test_nothing_that_reorders_or_erases_text_is_left_in_it(text: str) -> None:
    shown = visible(f"{text}\x1b[2K\u202e\x00")
    assert not set(shown) & set("\x1b\x00\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200f\ufeff")


def test_newlines_and_tabs_stay() -> None:
    assert visible("a\tb\r\nc") == "a\tb\nc"
    # A model reads what is hidden; the joiners of words and of emoji stay.
    assert visible("\u200b\U000e0041 \u0645\u200c\u06cc") == "\\u200b\\ue0041 \u0645\u200c\u06cc"


def test_a_row_says_what_the_list_needs_and_no_more() -> None:
    one = reviewed(make_case(make_spec(run_id="../../x")))
    row = ReviewedCases([one]).row(one.entry.case_id)
    assert (row["run"], row["kind"], row["decision"], row["action"]) == (
        "../../x",
        "missed",
        "undecided",
        "",
    )
    assert (row["label"], row["made_label"]) == (1, 1)
    assert "messages" not in row

"""What the page shows of a case that people decide about: turns beside what they were, and who says
what of it, with nothing invisible."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.cases import Case, Label, VoteSource
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.results import Verdict
from pytest_jrh.core.text import visible
from pytest_jrh.core.transcript import indented_json
from pytest_jrh.people.board import ReviewCase, Reviewed
from pytest_jrh.review import ReviewedCases
from tests.support.made_cases import make_case


def body_of(case: Case) -> dict[str, Any]:
    """What the page shows of a case that a judge finds satisfied."""
    judged = {"": (Verdict(0, "nothing was refunded"),)}
    entry = ReviewCase(generation_id(case.spec), "digest", case, 1, judged)
    return ReviewedCases([Reviewed(entry, None, None)]).body(entry.case_id)


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
    shown = body_of(make_case())["turns"]
    assert [turn["index"] for turn in shown if "state" in turn] == [3]
    assert (shown[3]["state"], "was" in shown[3]) == ("edited", True)
    assert [tuple(why) for why in shown[3]["why"]] == [
        ("Goal", "grant the refund"),
        ("Why this turn", "the decision is here"),
        ("The editor's reason", "grants the refund"),
    ]


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

"""Splices, the tools of a log, and values that an edit took out."""

import json
import math
from typing import Any

import pytest

from pytest_jrh.cases.acts import acts_of, mentioned, tools_of, values_of_acts
from pytest_jrh.core.cases import Message
from pytest_jrh.core.diffs import decisive_turns, edited_turns
from tests.support.cpu import cpu_seconds
from tests.support.made_cases import act_edit


def says(text: str, *calls: dict[str, Any]) -> Message:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    return {**message, "tool_calls": list(calls)} if calls else message


def call(name: str, call_id: str = "", **arguments: Any) -> dict[str, Any]:
    named = {"id": call_id} if call_id else {}
    return {**named, "function": name, "arguments": arguments, "type": "function"}


def result(text: str, call_id: str = "", **more: Any) -> Message:
    named = {"tool_call_id": call_id} if call_id else {}
    return {"role": "tool", "content": text, **named, **more}


RUN: tuple[Message, ...] = (
    {"role": "user", "content": "Where is my money?"},
    says("I look.", call("find", "a1", order="A-7")),
    result('{"order": "A-7", "paid": 56.0}', "a1", function="find"),
    says("", call("refund", "a2", order="A-7", amount=56.0)),
    result("done", "a2", function="refund"),
    says("You get 56.00."),
)


def test_what_follows_an_omission_decides_too() -> None:
    omitted, last = act_edit(1, "omit", RUN[1:3], ()), act_edit(4, "omit", RUN[3:5], ())
    assert edited_turns([omitted, last]) == frozenset()
    assert decisive_turns([omitted, last], 4) == {1, 3}
    assert decisive_turns([act_edit(5, "say", (), ())], 6) == {5}


def test_results_belong_to_calls_by_id_and_without_ids_by_order() -> None:
    parallel = (
        says("", call("one", "x"), call("two", "y")),
        result("second", "y"),
        result("first", "x"),
        says("", call("one"), call("two")),
        result("first"),
        result("second"),
    )
    assert [act.results for act in acts_of(parallel)] == [(2,), (1,), (4,), (5,)]


def test_keys_and_types_are_those_of_the_log() -> None:
    calls = [call("refund", "r1", order="A-6", amount=1.5, notes=["x"])]
    calls.append(call("refund", "r2", order="A-7", amount=None))
    refund = tools_of((says("", *calls),))["refund"].arguments
    for arguments, mistake in (
        ({"order": "A-7", "amount": None, "notes": ["x"]}, None),
        ({"amount": 1}, "'order' is missing from it"),
        ({"order": "A-7", "amount": 1, "notes": [1]}, "it.notes[0] is a number, not text"),
        ({"order": "A", "amount": 1, "to": "x"}, "it has the key 'to', which is never in the log"),
    ):
        assert refund.mistake(arguments, "it") == mistake

    # An error shows nothing of what a tool gives.
    failed = result("", "a2", error={"type": "timeout", "message": "took too long"})
    calls = [call("find", "a1", order="A-7"), call("find", "a2", order="A-7")]
    tools = tools_of((says("", *calls), result('{"paid": 56.0}', "a1"), failed))
    mistake = tools["find"].results.mistake("It is paid.", "its result")
    assert mistake == "its result is text, not an object"


STALE = values_of_acts([says("", call("refund", "c1", amount=56.0))])


@pytest.mark.parametrize(
    ("is_amount", "texts"),
    [
        (True, ["Total:56.00", 'It has {"amount":56} there.', "56.00/month", "GBP56.00", "(56)"]),
        (False, ["10:56", "10:56:00", "56/06/2025", "orders/56", "A56", "56b", "156.00", "5.6"]),
    ],
)
def test_an_amount_is_told_from_part_of_a_date_or_an_id(is_amount: bool, texts: list[str]) -> None:
    assert [bool(mentioned(STALE, [text])) for text in texts] == [is_amount] * len(texts)


def test_of_many_values_a_thousand_count_and_all_are_looked_for_in_one_pass() -> None:
    many = result(" ".join(f"id{number:06}" for number in range(5_000)))
    assert len(values_of_acts([many])) == 1_000
    assert len(values_of_acts([many], most=math.inf)) == 5_000
    overlapping = result(json.dumps(["a1" * length for length in range(2, 102)]))
    with cpu_seconds(4.0):
        assert not mentioned(values_of_acts([overlapping]), ["a1" * 50_000])


def test_value_is_told_from_a_longer_one_and_found_behind_it() -> None:
    stale = values_of_acts([result(json.dumps({"order": "ord-1742", "note": "(late) parcel"}))])
    assert mentioned(stale, ["ord-17421, aord-1742, ord-1742x"]) == {}
    assert mentioned(stale, ["ord-17421 and x_ORD-1742."]) == {"ord-1742": "ord-1742"}
    assert mentioned(stale, ["a (late)\nparcel"]) == {"(late) parcel": "(late) parcel"}

"""How a value that an edit took out is told from what merely looks like it."""

from __future__ import annotations

import json
import math

import pytest

from pytest_jrh.cases.acts import mentioned, values_of_acts
from pytest_jrh.core.model import Message
from tests.support.cpu import cpu_seconds

CALL: Message = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "function": "refund", "arguments": {"amount": 56.0}}],
}
STALE = values_of_acts([CALL])


@pytest.mark.parametrize(
    "text", ["Total:56.00", 'The log has {"amount":56} for it.', "56.00/month", "GBP56.00", "(56)"]
)
def test_an_amount_beside_letters_or_signs_is_found(text: str) -> None:
    assert mentioned(STALE, [text])


@pytest.mark.parametrize(
    "text", ["at 10:56", "10:56:00", "on 56/06/2025", "orders/56", "A56", "56b", "156.00", "5.6"]
)
def test_part_of_a_time_a_date_or_an_id_is_no_amount(text: str) -> None:
    assert not mentioned(STALE, [text])


def result(text: str) -> Message:
    return {"role": "tool", "content": text, "tool_call_id": "c1"}


def test_one_text_of_many_values_counts_with_the_first_thousand() -> None:
    many = result(" ".join(f"id{number:06}" for number in range(5_000)))

    assert len(values_of_acts([many])) == 1_000
    assert len(values_of_acts([many], most=math.inf)) == 5_000


def test_value_is_told_from_a_longer_one_and_found_behind_it() -> None:
    stale = values_of_acts([result(json.dumps({"order": "ord-1742", "note": "(late) parcel"}))])

    assert mentioned(stale, ["ord-17421, aord-1742, ord-1742x"]) == {}
    assert mentioned(stale, ["ord-17421 and x_ORD-1742."]) == {"ord-1742": "ord-1742"}
    assert mentioned(stale, ["a (late)\nparcel"]) == {"(late) parcel": "(late) parcel"}


def test_many_overlapping_values_are_looked_for_in_one_pass() -> None:
    stale = values_of_acts([result(json.dumps(["a1" * length for length in range(2, 102)]))])

    with cpu_seconds(4.0):
        assert not mentioned(stale, ["a1" * 50_000])

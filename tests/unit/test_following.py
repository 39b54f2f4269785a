"""How a value that an edit took out is told from what merely looks like it."""

from __future__ import annotations

import pytest

from pytest_jrh.cases.following import mentioned, values_of_acts
from pytest_jrh.core.model import Message

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

"""What is taken from a model's response, and what is not believed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_jrh.llm.calls import Answer
from pytest_jrh.llm.client import Sending, answer_of


@pytest.mark.parametrize(
    ("cost", "kept"),
    [
        (0.25, 0.25),
        (0, 0.0),
        (None, None),
        ("1", None),
        (-1.0, None),
        (float("nan"), None),
        (float("inf"), None),
        (1e308, None),
        pytest.param(10**400, None, id="a 401-digit integer"),
    ],
)
def test_a_cost_that_no_cassette_could_keep_is_none(cost: object, kept: float | None) -> None:
    message = SimpleNamespace(content="{}", tool_calls=None, provider_specific_fields=None)
    response = SimpleNamespace(
        choices=[SimpleNamespace(message=message, finish_reason="stop")],
        usage=SimpleNamespace(prompt_tokens=3, completion_tokens=2),
        _hidden_params={"response_cost": cost},
    )
    answer = answer_of(response, Sending(frozenset(), "json_schema"))
    assert isinstance(answer, Answer)
    assert answer.cost == kept

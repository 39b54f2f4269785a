"""Reads an answer out of what litellm returns: its text, whole and unambiguous,
and what it cost.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_jrh.llm.calls import Answer
from pytest_jrh.llm.failures import Failure
from pytest_jrh.models import Usage

if TYPE_CHECKING:
    from pytest_jrh.llm.negotiation import Sending

_MOST_TOKENS = 10**12
_MOST_COST = 10**12
# In characters.
_SURELY_A_TOKEN = 8


def answer_of(response: Any, sending: Sending) -> Answer | Failure:
    """The answer in a response; a failure where there is none, or more than one.

    An answer that `max_tokens` cut off is read like any other: strict parsing accepts only a
    complete object, and text after it would not change it.
    """
    number = len(response.choices or ())
    if number != 1:
        return Failure(f"no usable answer: it has {number or 'no'} choices", retry=True)
    choice = response.choices[0]
    text = _text(choice.message)
    if text is None:
        return Failure("no usable answer: its content is not text", retry=True)
    fields = getattr(choice.message, "provider_specific_fields", None) or {}
    usage, doubt = _usage(response)
    return Answer(
        text=text,
        finish_reason=choice.finish_reason or "stop",
        refusal=_refusal(fields.get("refusal")),
        usage=usage,
        # A price computed from no count, or from an implausible one, is not a price.
        cost=None if doubt else _cost(response._hidden_params.get("response_cost")),
        left_out=sending.left_out,
        schema_sent=sending.schema_sent,
    )


def _refusal(said: object) -> str | None:
    """The provider's text of a refusal, as a cassette keeps it.

    None without a text.
    """
    return said if isinstance(said, str | None) else json.dumps(said, default=str) if said else None


def usage_doubt(response: Any) -> str:
    """What is wrong with the server's token counts; empty where they can be used."""
    return _usage(response)[1]


def _text(message: Any) -> str | None:
    """All text of the message; None where its content is not text.

    Tool calls that differ from the content are appended to it, in a form that no parser reads as
    one object.
    """
    content = message.content
    if not isinstance(content, str | None):
        return None
    text = content or ""
    for name, said in _tool_calls(message):
        if text.strip() and not _same(text, said):
            text += f"\n[tool call {name}] {said}"
    return text


def _tool_calls(message: Any) -> list[tuple[str, str]]:
    calls = [
        call.function
        for call in getattr(message, "tool_calls", None) or ()
        if getattr(call, "function", None)
    ]
    older = getattr(message, "function_call", None)
    return [
        (str(call.name), str(call.arguments))
        for call in [*calls, *([older] if older is not None else [])]
    ]


def _same(text: str, other: str) -> bool:
    try:
        return json.dumps(json.loads(text), sort_keys=True) == json.dumps(
            json.loads(other), sort_keys=True
        )
    except (ValueError, RecursionError):
        return False


def _usage(response: Any) -> tuple[Usage, str]:
    """The tokens of a call, and what is wrong with their numbers: such count as 0."""
    usage = getattr(response, "usage", None)
    counts = (getattr(usage, "prompt_tokens", 0) or 0, getattr(usage, "completion_tokens", 0) or 0)
    kept = [count if type(count) is int and 0 <= count <= _MOST_TOKENS else 0 for count in counts]
    if kept != list(counts):
        return Usage(*kept), "implausible token counts (negative or too large)"
    # litellm gives zeros for what the server left out, and a call reads and writes something.
    written = sum(len(_text(choice.message) or "") for choice in response.choices or ())
    missing = not counts[0] or (written >= _SURELY_A_TOKEN and not counts[1])
    return Usage(*kept), "no token counts" if missing else ""


def _cost(cost: Any) -> float | None:
    # A cassette with a cost out of all proportion would not be read again.
    if not isinstance(cost, int | float) or not 0 <= cost <= _MOST_COST:
        return None
    return float(cost)

"""Whether providers take a transcript: through Inspect's message converters, and litellm's rules of
tool messages for OpenAI's and Anthropic's APIs.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.model import ChatMessage

# Inspect's public names of these ask for a newer package of OpenAI's than they need.
from inspect_ai.model._openai import messages_from_openai, messages_to_openai
from pydantic import TypeAdapter, ValidationError

from pytest_jrh.core.model import Message
from pytest_jrh.llm.transport import litellm

_MODEL, _PROVIDER = "claude-sonnet-4-5", "anthropic"
_CHAT: TypeAdapter[list[ChatMessage]] = TypeAdapter(list[ChatMessage])


def refusal(messages: Sequence[Message]) -> str | None:
    """Why a provider would not take these messages; None where each would.

    litellm repairs wrong orders of tool messages where `modify_params` is on, which is how it shows
    that there is one: a call without a result, a result without a call, two results of one call.
    """
    try:
        chat = _CHAT.validate_python([dict(message) for message in messages])
    except ValidationError as error:
        return f"Inspect: {error.errors()[0]['msg']}"
    sent: list[Any] = asyncio.run(_converted(chat))
    # After `litellm()`, which keeps it from asking the network for prices.
    bad_request = litellm().BadRequestError
    from litellm.litellm_core_utils.prompt_templates.factory import anthropic_messages_pt
    from litellm.utils import validate_and_fix_openai_messages

    try:
        checked: list[Any] = validate_and_fix_openai_messages(copy.deepcopy(sent))
    except Exception as error:  # noqa: BLE001 - litellm raises a plain one
        return f"litellm, OpenAI: {error}"
    if (lost := _tool_order(checked)) is not None:
        return f"litellm, OpenAI: {lost}"
    talk = [message for message in checked if message["role"] != "system"]
    try:
        blocks: list[Any] = anthropic_messages_pt(copy.deepcopy(talk), _MODEL, _PROVIDER)
    except bad_request as error:
        return f"litellm, Anthropic: {error}"
    mistake = _block_mistake(blocks)
    return None if mistake is None else f"litellm, Anthropic: {mistake}"


async def _converted(chat: list[ChatMessage]) -> list[Any]:
    """The messages as OpenAI has them, there and back and there again."""
    sent = await messages_to_openai(chat)
    again = await messages_to_openai(await messages_from_openai(copy.deepcopy(sent)))
    if _bare(sent) != _bare(again):
        raise AssertionError("Inspect's converters do not give back what they were given")
    return list(sent)


def _bare(sent: Sequence[Any]) -> list[Any]:
    """What survives both ways: roles, ids, names and arguments of calls."""
    rows = []
    for message in sent:
        calls = [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls") or ()
        ]
        rows.append((message["role"], message.get("tool_call_id"), calls))
    return rows


def _tool_order(sent: list[Any]) -> str | None:
    """What litellm would mend in calls and results."""
    from litellm.litellm_core_utils.prompt_templates.factory import (
        sanitize_messages_for_tool_calling,
    )

    settings: Any = litellm()
    mends = settings.modify_params
    settings.modify_params = True
    try:
        mended = sanitize_messages_for_tool_calling(copy.deepcopy(sent))
    finally:
        settings.modify_params = mends
    before, after = _rows(sent), _rows(mended)
    if before == after:
        return None
    changed = next(
        (index for index, (one, two) in enumerate(zip(before, after, strict=False)) if one != two),
        min(len(before), len(after)),
    )
    return f"it would mend message {changed} of {len(before)}"


def _rows(sent: Sequence[Any]) -> list[Any]:
    return [(message["role"], message.get("tool_call_id")) for message in sent]


def _block_mistake(blocks: Sequence[Mapping[str, Any]]) -> str | None:
    """Where the messages that litellm would send break Anthropic's rules: turns alternate from the
    user's on, and the uses of a turn have one result each at the beginning of the next.
    """
    used: list[str] = []
    for index, message in enumerate(blocks):
        if message["role"] != ("user", "assistant")[index % 2]:
            return f"message {index} is the {message['role']}'s, out of turn"
        kinds = [block["type"] for block in message["content"]]
        results = [
            block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"
        ]
        if message["role"] == "user":
            if sorted(results) != sorted(used):
                return f"message {index} has results of {results}, not of {used}"
            if kinds[: len(results)] != ["tool_result"] * len(results):
                return f"message {index} has a text before its results"
        used = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    return f"the uses {used} have no results" if used else None

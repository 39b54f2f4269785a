"""The items of OpenAI's Responses API as chat messages.

Items follow each other where a chat has messages: what the model says, thinks and calls up to the
next result or the user's next message is one message of the assistant. The ids of items are left
out, as messages of chats have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import DamagedError, check_depth, inside, listed, received
from pytest_jrh.core.text import nearest_hint
from pytest_jrh.sources.chat import (
    as_text,
    check_message,
    data_url,
    parts_of,
    provider_call,
    read_call,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_jrh.core.documents import KeyPath


Json = dict[str, Any]
# What the agent's own code runs: the name of the tool, where not the item names it, and the fields
# that are its arguments.
_CALLS = {
    "function_call": ("", ("arguments",)),
    "custom_tool_call": ("", ("input",)),
    "computer_call": ("computer", ("action", "actions")),
    "local_shell_call": ("local_shell", ("action",)),
    "shell_call": ("shell", ("action",)),
    "apply_patch_call": ("apply_patch", ("operation",)),
    "tool_search_call": ("tool_search", ("arguments",)),
    "mcp_approval_request": ("mcp_approval", ("server_label", "name", "arguments")),
    "program": ("program", ("code",)),
}
# The fields with the result.
_RESULTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((f"{call}_output" for call in list(_CALLS)[:6]), ("output",)),
    "tool_search_output": ("tools",),
    "mcp_approval_response": ("approve", "reason"),
    "program_output": ("result",),
}
# What the provider runs: Inspect's name for the kind, that of the tool, and the fields that are its
# arguments and its result.
_RUN_BY_PROVIDER = {
    "web_search_call": ("web_search", "web_search", "action", "results"),
    "file_search_call": ("web_search", "file_search", "queries", "results"),
    "code_interpreter_call": ("code_execution", "code_interpreter", "code", "outputs"),
    "mcp_call": ("mcp_call", "", "arguments", "output"),
}
_THOUGHTS = ("reasoning", "compaction", "compaction_summary", "context_compaction")
# What nobody said or did: a list of tools, or a mark of the program that asks.
_NOTHING = ("mcp_list_tools", "additional_tools", "compaction_trigger", "ghost_snapshot")
ITEM_TYPES = (
    *("message", *_CALLS, *_RUN_BY_PROVIDER, "image_generation_call", *_RESULTS),
    *(*_THOUGHTS, *_NOTHING, "agent_message", "item_reference"),
)
"""The types of items that are known here."""
# The parts of a result; a list of anything else is JSON.
_PART_TYPES = (
    *("input_text", "output_text", "text", "refusal", "input_image", "input_file", "input_audio"),
    *("computer_screenshot", "summary_text", "reasoning_text", "encrypted_content"),
)
_MOST_NAMED = 40
LOG_ITEMS = "log the items themselves, or leave the conversation out"


def is_item(value: Any) -> bool:
    """Whether a value is an item that no chat has: of a known type, and without a role."""
    return isinstance(value, dict) and "role" not in value and value.get("type") in ITEM_TYPES


def with_items_read(values: Sequence[Any], path: KeyPath = ()) -> list[Any]:
    """Messages; where some are items, those that all of them make."""
    if not any(map(is_item, values)):
        return list(values)
    check_depth(list(values))
    return turns_of(((*path, index), value) for index, value in enumerate(values))


def turns_of(items: Iterable[tuple[KeyPath, Any]]) -> list[Json]:
    """The messages that items make; raises DamagedError, with its path, for one that is not known
    or cannot be read.
    """
    reader = _Reader()
    for path, item in items:
        with inside(*path):
            reader.add(item)
    return reader.turns


class _Reader:
    def __init__(self) -> None:
        self.turns: list[Json] = []
        self._open: Json | None = None

    def add(self, item: Any) -> None:
        """Read one item into the messages so far."""
        if not isinstance(item, dict):
            raise DamagedError(received(item, "an object with a type"))
        kind = item.get("type", "message" if "role" in item else None)
        if kind not in ITEM_TYPES:
            hint = nearest_hint(kind, ITEM_TYPES) if isinstance(kind, str) else None
            expected = f"one of {listed(ITEM_TYPES, _MOST_NAMED)}"
            raise DamagedError(received(kind, expected), hint, ("type",))
        if kind == "message":
            self._add_message(item)
        elif kind == "agent_message":
            # What another agent said to this one, which came in the user's place.
            self._add_message({"role": "user", "content": item.get("content")})
        elif kind in _CALLS:
            self._assistant()["tool_calls"].append(_call(item, *_CALLS[kind]))
        elif kind in _RESULTS:
            self._open = None
            self.turns.append(_result(item, _RESULTS[kind]))
        elif kind in _RUN_BY_PROVIDER:
            self._assistant()["content"].append(_provider_call(item, *_RUN_BY_PROVIDER[kind]))
        elif kind == "image_generation_call":
            media_type = f"image/{item.get('output_format') or 'png'}"
            url = data_url(media_type, as_text(item.get("result")))
            self._assistant()["content"].append({"type": "image", "image": url})
        elif kind in _THOUGHTS:
            self._assistant()["content"] += _thought(item)
        elif kind == "item_reference":
            raise DamagedError("refers to an item that is not in the log", LOG_ITEMS)

    def _add_message(self, item: Json) -> None:
        role, content = item.get("role"), item.get("content")
        check_message({"role": role, "content": content})
        if role != "assistant":
            self._open = None
            # The results of a chat stand among items where a program keeps both.
            is_result = role in ("tool", "function")
            self.turns.append(item if is_result else {"role": role, "content": content})
            return
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        self._assistant()["content"] += blocks or []
        self._assistant()["tool_calls"] += item.get("tool_calls") or []

    def _assistant(self) -> Json:
        """The message of the assistant that goes on, or a new one."""
        if self._open is None:
            self._open = {"role": "assistant", "content": [], "tool_calls": []}
            self.turns.append(self._open)
        return self._open


def _id_of(item: Json, keys: Sequence[str] = ("call_id", "id")) -> str | None:
    """The id of a call, under the first of the keys that is there."""
    for key in keys:
        if item.get(key) is not None:
            return as_text(item[key])
    return None


def _call(item: Json, name: Any, fields: Sequence[str]) -> Json:
    kind = item["type"]
    if not name:
        name = item.get("name")
        if name and isinstance(item.get("namespace"), str):
            name = f"{item['namespace']}.{name}"
    arguments: Any = {key: item[key] for key in fields if item.get(key) is not None}
    if kind == "function_call":
        arguments = item.get("arguments")
    elif len(arguments) == 1 and isinstance(only := next(iter(arguments.values())), dict):
        arguments = only
    call_type = "custom" if kind == "custom_tool_call" else "function"
    return read_call({"id": _id_of(item), "name": name, "arguments": arguments, "type": call_type})


def _result(item: Json, fields: Sequence[str]) -> Json:
    """What a tool gave: text, or parts, or JSON as text."""
    result: Any = {key: item[key] for key in fields if item.get(key) is not None}
    if len(fields) == 1:
        result = result.get(fields[0])
    is_parts = isinstance(result, list) and all(
        isinstance(part, dict) and part.get("type") in _PART_TYPES for part in result
    )
    if isinstance(result, dict) and result.get("type") == "computer_screenshot":
        result = [result]
    elif result is not None and not is_parts and len(fields) == 1:
        result = as_text(result)
    keys = ("call_id", "approval_request_id")
    if item["type"] == "local_shell_call_output":
        keys = ("call_id", "id")
    turn = {"role": "tool", "tool_call_id": _id_of(item, keys), "content": result}
    return {**turn, "is_error": True} if item.get("status") == "failed" else turn


def _thought(item: Json) -> list[Json]:
    texts: list[str] = []
    for key in ("summary", "content"):
        blocks = parts_of(item.get(key)).blocks
        if blocks:
            texts = [as_text(block.get("text")) for block in blocks]
    encrypted = item.get("encrypted_content")
    if texts:
        return [{"type": "reasoning", "reasoning": "\n".join(texts)}]
    if isinstance(encrypted, str):
        return [{"type": "reasoning", "reasoning": encrypted, "redacted": True}]
    return []


def _provider_call(item: Json, kind: str, name: str, field: str, result_field: str) -> Json:
    arguments = item.get(field)
    if name or not isinstance(arguments, str):
        arguments = {} if arguments is None else {field: arguments}
    error, result = item.get("error"), item.get(result_field)
    if error and result is None:
        result = ""
    block = provider_call(kind, item, name or item.get("name"), arguments, result)
    return {**block, "error": as_text(error)} if error else block

"""The items of OpenAI's Responses API as chat messages.

Items follow each other where a chat has messages: what the model says, thinks and calls up to the
next result or the user's next message is one message of the assistant. The ids of items are left
out, as messages of chats have none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.documents import DamagedError, listed, received
from pytest_jrh.core.text import nearest_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_jrh.core.documents import KeyPath


Turn = dict[str, Any]


class PlacedItem(NamedTuple):
    """An item, and where it is in the conversation's JSON."""

    path: KeyPath
    item: Any


# What the agent's own code runs: the name of the tool, and the fields that are its arguments.
_CALLS = {
    "computer_call": ("computer", ("action", "actions")),
    "local_shell_call": ("local_shell", ("action",)),
    "shell_call": ("shell", ("action",)),
    "apply_patch_call": ("apply_patch", ("operation",)),
    "tool_search_call": ("tool_search", ("arguments",)),
    "mcp_approval_request": ("mcp_approval", ("server_label", "name", "arguments")),
    "program": ("program", ("code",)),
}
# The fields with the call's id, of which the first that is there counts, and those with the result.
_RESULTS = {
    "function_call_output": (("call_id",), ("output",)),
    "custom_tool_call_output": (("call_id",), ("output",)),
    "computer_call_output": (("call_id",), ("output",)),
    "local_shell_call_output": (("call_id", "id"), ("output",)),
    "shell_call_output": (("call_id",), ("output",)),
    "apply_patch_call_output": (("call_id",), ("output",)),
    "tool_search_output": (("call_id",), ("tools",)),
    "mcp_approval_response": (("approval_request_id",), ("approve", "reason")),
    "program_output": (("call_id",), ("result",)),
}
# What the provider runs: Inspect's name for the kind, that of the tool, and the fields that are its
# arguments and its result.
_RUN_BY_PROVIDER = {
    "web_search_call": ("web_search", "web_search", ("action",), "results"),
    "file_search_call": ("web_search", "file_search", ("queries",), "results"),
    "code_interpreter_call": ("code_execution", "code_interpreter", ("code",), "outputs"),
    "mcp_call": ("mcp_call", "", ("arguments",), "output"),
}
NO_RESULT = "[not in the log]"
"""The result of what the provider ran, where the log has none: an empty one would be none found."""
_PART_TYPES = (
    "input_text",
    "output_text",
    "text",
    "refusal",
    "input_image",
    "input_file",
    "input_audio",
    "computer_screenshot",
    "summary_text",
    "reasoning_text",
    "encrypted_content",
)
_ROLES = ("user", "assistant", "system", "developer", "tool", "function")
_MOST_NAMED = 40
_LOG_ITEMS = "log the items themselves, or leave the conversation out"


def items_of(value: Any) -> list[PlacedItem] | None:
    """The items of a response, or of a row with `input` and `output`, also as a proxy logs them in
    `request` and `response`; None where there are none.
    """
    if not isinstance(value, dict) or "messages" in value:
        return None
    asked, asked_at = _inside(value, "request")
    answered, answered_at = _inside(value, "response")
    before, after = asked.get("input"), answered.get("output")
    is_response = answered.get("object") == "response"
    if not (is_response or _are_items(before) or _are_items(after)):
        return None
    instructions = asked.get("instructions") or answered.get("instructions")
    items: list[PlacedItem] = []
    if isinstance(instructions, str):
        message = {"role": "system", "content": instructions}
        items.append(PlacedItem((*asked_at, "instructions"), message))
    else:
        items += _placed(instructions, (*asked_at, "instructions"), "system")
    items += _placed(before, (*asked_at, "input"), "user")
    return items + _placed(after, (*answered_at, "output"), "assistant")


def check_whole(value: Turn) -> None:
    """Raise DamagedError where a response continues one, or a conversation, that the provider
    keeps: what a judge would read of it is the end of a conversation.
    """
    for key in ("request", "response"):
        part, path = _inside(value, key)
        if part.get("previous_response_id") is not None:
            problem = "continues a response whose items are not here"
            raise DamagedError(problem, _LOG_ITEMS, (*path, "previous_response_id"))
        conversation = part.get("conversation")
        if isinstance(conversation, dict) and conversation.keys() == {"id"}:
            problem = "is kept by the provider, and its items are not here"
            raise DamagedError(problem, _LOG_ITEMS, (*path, "conversation"))


def turns_of(items: Iterable[PlacedItem]) -> list[Turn]:
    """The messages that items make; raises DamagedError, with its path, for one that is not known
    or cannot be read.
    """
    reader = _Reader()
    for path, item in items:
        reader.add(path, item)
    return reader.turns


def _inside(value: Turn, key: str) -> tuple[Turn, KeyPath]:
    """What a proxy's log has under the key, or the results of a batch in a `body` there."""
    path: KeyPath = ()
    for name in (key, "body"):
        if isinstance(value.get(name), dict):
            value, path = value[name], (*path, name)
    return value, path


def _are_items(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(item, dict) and isinstance(item.get("type", item.get("role")), str)
        for item in value
    )


def _placed(value: Any, path: KeyPath, role: str) -> list[PlacedItem]:
    if value is None:
        return []
    if isinstance(value, list):
        return [PlacedItem((*path, index), item) for index, item in enumerate(value)]
    return [PlacedItem(path, {"role": role, "content": value} if type(value) is str else value)]


class _Reader:
    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._open: Turn | None = None

    def add(self, path: KeyPath, item: Any) -> None:
        """Read one item into the messages so far."""
        if not isinstance(item, dict):
            raise _damaged(path, item, "an object with a type")
        kind = item.get("type", "message" if "role" in item else None)
        if kind not in ITEM_TYPES:
            raise _not_one_of((*path, "type"), kind, ITEM_TYPES)
        _ADD[kind](self, path, item)

    def _add_message(self, path: KeyPath, item: Turn) -> None:
        role = item.get("role")
        if role not in _ROLES:
            raise _not_one_of((*path, "role"), role, _ROLES)
        content = _content((*path, "content"), item.get("content"))
        if role != "assistant":
            self._open = None
            # The results of a chat stand among items where a program keeps both.
            is_result = role in ("tool", "function")
            self.turns.append(item if is_result else {"role": role, "content": content})
            return
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        self._assistant()["content"] += blocks or []
        calls = item.get("tool_calls") or []
        if not isinstance(calls, list):
            raise _damaged((*path, "tool_calls"), calls, "a list")
        self._assistant()["tool_calls"] += calls

    def _add_agent_message(self, path: KeyPath, item: Turn) -> None:
        """Read what another agent said to this one, which came in the user's place."""
        self._add_message(path, {"role": "user", "content": item.get("content")})

    def _add_call(self, path: KeyPath, item: Turn) -> None:
        name, call_id = item.get("name"), _id_of(path, item, ("call_id", "id"))
        if not isinstance(name, str) or not name:
            raise _damaged((*path, "name"), name, "the name of a tool")
        if isinstance(item.get("namespace"), str):
            name = f"{item['namespace']}.{name}"
        call: Turn = {"id": call_id, "type": "function"}
        if item["type"] == "custom_tool_call":
            call |= {"type": "custom", "custom": {"name": name, "input": item.get("input")}}
        else:
            call["function"] = {"name": name, "arguments": item.get("arguments")}
        self._assistant()["tool_calls"].append(call)

    def _add_other_call(self, path: KeyPath, item: Turn) -> None:
        name, fields = _CALLS[item["type"]]
        arguments = {key: item[key] for key in fields if item.get(key) is not None}
        if len(arguments) == 1 and isinstance(only := next(iter(arguments.values())), dict):
            arguments = only
        call_id = _id_of(path, item, ("call_id", "id"))
        call = {"id": call_id, "name": name, "arguments": arguments}
        self._assistant()["tool_calls"].append(call)

    def _add_result(self, path: KeyPath, item: Turn) -> None:
        ids, fields = _RESULTS[item["type"]]
        call_id = _id_of(path, item, ids)
        parts = {key: item[key] for key in fields if item.get(key) is not None}
        result: Any = parts
        if len(fields) == 1:
            result = _result((*path, fields[0]), parts.get(fields[0]))
        turn: Turn = {"role": "tool", "tool_call_id": call_id, "content": result}
        if item.get("status") == "failed":
            turn["is_error"] = True
        self._open = None
        self.turns.append(turn)

    def _add_thought(self, path: KeyPath, item: Turn) -> None:
        texts: list[str] = []
        for key in ("content", "summary"):
            if not texts:
                content = _content((*path, key), item.get(key))
                texts = [content] if isinstance(content, str) else _texts(content)
        encrypted = item.get("encrypted_content")
        if texts:
            block: Turn = {"type": "reasoning", "reasoning": "\n".join(texts)}
            self._assistant()["content"].append(block)
        elif isinstance(encrypted, str):
            block = {"type": "reasoning", "reasoning": encrypted, "redacted": True}
            self._assistant()["content"].append(block)

    def _add_provider_call(self, path: KeyPath, item: Turn) -> None:
        del path
        self._assistant()["content"].append(_provider_call(item, *_RUN_BY_PROVIDER[item["type"]]))

    def _add_image(self, path: KeyPath, item: Turn) -> None:
        data = item.get("result")
        if data is not None and not isinstance(data, str):
            raise _damaged((*path, "result"), data, "the data of an image, or null")
        image = f"data:image/{item.get('output_format') or 'png'};base64,{data or ''}"
        self._assistant()["content"].append({"type": "image", "image": image})

    def _add_nothing(self, path: KeyPath, item: Turn) -> None:
        """Read what nobody said or did: a list of tools, or a mark of the program that asks."""

    def _refuse_reference(self, path: KeyPath, item: Turn) -> None:
        del item
        raise DamagedError("refers to an item that is not in the log", _LOG_ITEMS, path)

    def _assistant(self) -> Turn:
        """The message of the assistant that goes on, or a new one."""
        if self._open is None:
            self._open = {"role": "assistant", "content": [], "tool_calls": []}
            self.turns.append(self._open)
        return self._open


_ADD: Mapping[str, Callable[[_Reader, KeyPath, Turn], None]] = {
    "message": _Reader._add_message,
    "function_call": _Reader._add_call,
    "custom_tool_call": _Reader._add_call,
    **dict.fromkeys(_RUN_BY_PROVIDER, _Reader._add_provider_call),
    "image_generation_call": _Reader._add_image,
    **dict.fromkeys(_CALLS, _Reader._add_other_call),
    **dict.fromkeys(_RESULTS, _Reader._add_result),
    **dict.fromkeys(
        ("reasoning", "compaction", "compaction_summary", "context_compaction"),
        _Reader._add_thought,
    ),
    **dict.fromkeys(
        ("mcp_list_tools", "additional_tools", "compaction_trigger", "ghost_snapshot"),
        _Reader._add_nothing,
    ),
    "agent_message": _Reader._add_agent_message,
    "item_reference": _Reader._refuse_reference,
}
ITEM_TYPES = tuple(_ADD)
"""The types of items that are known here."""


def is_item(value: Any) -> bool:
    """Whether a value is an item that no chat has: of a known type, and without a role."""
    return isinstance(value, dict) and "role" not in value and value.get("type") in ITEM_TYPES


def _id_of(path: KeyPath, item: Turn, keys: tuple[str, ...]) -> str | None:
    """The id of a call: what the first of the keys that is there has."""
    key = next((key for key in keys if item.get(key) is not None), None)
    call_id = item[key] if key is not None else None
    if call_id is not None and not isinstance(call_id, str):
        raise _damaged((*path, str(key)), call_id, "text")
    return call_id


def _content(path: KeyPath, content: Any) -> str | list[Turn] | None:
    """The content of a message, with parts as chats have them."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _damaged(path, content, "text, or a list of parts")
    return [_part((*path, index), part) for index, part in enumerate(content)]


def _part(path: KeyPath, part: Any) -> Turn:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, dict):
        raise _damaged(path, part, "text, or an object with a type")
    kind = part.get("type", "text" if "text" in part else None)
    if kind not in _PART_TYPES:
        raise _not_one_of((*path, "type"), kind, _PART_TYPES)
    if kind in ("input_image", "computer_screenshot"):
        return _image(part.get("image_url") or part.get("file_id"))
    if kind in ("summary_text", "reasoning_text"):
        return {"type": "text", "text": part.get("text")}
    return part


def _image(source: Any) -> Turn:
    """An image at a URL, or under a file's id."""
    url = source.get("url") if isinstance(source, dict) else source
    return {"type": "image", "image": _as_text(url)}


def _result(path: KeyPath, output: Any) -> Any:
    """What a tool gave: text, or parts, or JSON as text."""
    if isinstance(output, dict) and output.get("type") == "computer_screenshot":
        return [_part(path, output)]
    if isinstance(output, list) and all(
        isinstance(part, dict) and part.get("type") in _PART_TYPES for part in output
    ):
        return _content(path, output)
    return output if output is None or isinstance(output, str) else _as_json(output)


def _provider_call(
    item: Turn, kind: str, name: str, fields: tuple[str, ...], result_field: str
) -> Turn:
    arguments = {key: item[key] for key in fields if item.get(key) is not None}
    only = next(iter(arguments.values()), None)
    result = item.get(result_field)
    block = {
        "type": "tool_use",
        "tool_type": kind,
        "id": _as_text(item.get("id")),
        "name": name or _as_text(item.get("name")),
        "arguments": only if isinstance(only, str) and not name else _as_json(arguments),
        "result": _as_text(result) if result is not None or item.get("error") else NO_RESULT,
    }
    return {**block, "error": _as_text(item["error"])} if item.get("error") else block


def _texts(parts: list[Turn] | None) -> list[str]:
    return [part["text"] for part in parts or () if isinstance(part.get("text"), str)]


def _as_text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else _as_json(value)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _damaged(path: KeyPath, value: Any, expected: str) -> DamagedError:
    return DamagedError(received(value, expected), path=path)


def _not_one_of(path: KeyPath, value: Any, choices: Sequence[str]) -> DamagedError:
    hint = nearest_hint(value, choices) if isinstance(value, str) else None
    expected = f"one of {listed(choices, _MOST_NAMED)}"
    return DamagedError(received(value, expected), hint, path)

"""Runs of messages in the forms of other programs: sessions of Claude Code and of Codex, and the
items of OpenAI's Responses API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.support.suites import Message

Lines = list[dict[str, Any]]


def as_text(lines: Sequence[Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def as_items(messages: Sequence[Message]) -> Lines:
    """Messages of Inspect's as items of OpenAI's Responses API."""
    items: Lines = []
    for number, message in enumerate(messages):
        role, text = message["role"], message["content"]
        if role == "tool":
            call_id = message["tool_call_id"]
            items.append({"type": "function_call_output", "call_id": call_id, "output": text})
            continue
        if role != "assistant":
            part = {"type": "input_text", "text": text}
            items.append({"type": "message", "role": role, "content": [part]})
        elif text:
            part = {"type": "output_text", "text": text, "annotations": []}
            about = {"type": "message", "id": f"msg_{number}", "role": role, "content": [part]}
            items.append({**about, "status": "completed"})
        for call in message.get("tool_calls", ()):
            about = {"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"]}
            arguments = json.dumps(call["arguments"])
            items.append({**about, "name": call["function"], "arguments": arguments})
    return items


def as_codex(session: str, messages: Sequence[Message]) -> Lines:
    """The same as a session of Codex."""
    head = {"type": "session_meta", "payload": {"id": session, "cwd": "/work", "cli_version": "1"}}
    lines = [head, {"type": "turn_context", "payload": {"model": "gpt-5", "cwd": "/work"}}]
    for item in as_items(messages):
        lines.append({"type": "response_item", "payload": item})
        lines.append({"type": "event_msg", "payload": {"type": "token_count", "info": None}})
    return lines


def as_claude_code(session: str, messages: Sequence[Message]) -> Lines:
    """The same as a session of Claude Code: each part of a message in a line of its own, and what
    else such a log has between them."""
    lines: Lines = [{"type": "mode", "mode": "normal", "sessionId": session}]
    parent: str | None = None
    for number, message in enumerate(messages):
        for part, uuid in zip(_parts(message), "abcdefghij", strict=False):
            value: dict[str, Any] = {"role": "assistant", "content": [part]}
            if message["role"] == "assistant":
                value |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "type": "message"}
            else:
                value["role"] = "user"
            about = {"parentUuid": parent, "isSidechain": False, "cwd": "/work"}
            about |= {"sessionId": session, "version": "2.1.0", "gitBranch": "main"}
            written = {"type": value["role"], "message": value, "uuid": f"{session}-{number}{uuid}"}
            lines.append({**about, **written, "timestamp": "2026-01-01T00:00:00.000Z"})
            parent = lines[-1]["uuid"]
        lines.append({"type": "file-history-snapshot", "messageId": parent, "snapshot": {}})
    return lines


def _parts(message: Message) -> Lines:
    text = message["content"]
    if message["role"] == "tool":
        call_id = message["tool_call_id"]
        return [{"type": "tool_result", "tool_use_id": call_id, "content": text}]
    parts: Lines = [{"type": "text", "text": text}] if text else []
    for call in message.get("tool_calls", ()):
        use = {"type": "tool_use", "id": call["id"], "name": call["function"]}
        parts.append({**use, "input": call["arguments"]})
    return parts


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
_WORDS = "attachment://x u1 a1 user assistant message function_call tool_result tool-result"
_LISTS = st.lists(_SCALARS, max_size=3)
_OBJECTS = st.dictionaries(st.text(max_size=5), _SCALARS | _LISTS, max_size=3)
ANY_JSON = _SCALARS | _LISTS | _OBJECTS | st.sampled_from(_WORDS.split())


def with_one_change(value: Any, data: st.DataObject) -> Any:
    """A copy of a JSON value with any other at one of its places."""
    place = data.draw(st.sampled_from(_places(value)[1:]))
    return _changed(value, place, data.draw(ANY_JSON))


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places = [path]
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in inside:
            places += _places(part, (*path, key))
    return places


def _changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _changed(value[path[0]], path[1:], new)
    return copy

"""Messages of OpenAI's and of Anthropic's chat formats as those of Inspect's logs."""

from __future__ import annotations

import json
from typing import Any

from pytest_jrh.documents.problems import shown
from pytest_jrh.documents.strict_json import DamagedError, parsed
from pytest_jrh.sources.conversations.pairing import OpenCalls
from pytest_jrh.sources.conversations.parts import Parts, parts_of
from pytest_jrh.transcript import ROLES, is_role

WITHOUT_RESULT = "tool calls without a result"
WITHOUT_CALL = "results without a tool call"
OTHER_ROLES = f"roles other than {', '.join(ROLES)}"

_ROLES = {"developer": "system", "function": "tool"}
_KNOWN = frozenset(
    {
        "role",
        "content",
        "id",
        "tool_calls",
        "function_call",
        "tool_call_id",
        "refusal",
        "reasoning",
        "reasoning_content",
        "is_error",
        "error",
    }
)
Made = dict[str, Any]


def read_messages(turns: list[Any], system: Any = None) -> tuple[tuple[Made, ...], tuple[str, ...]]:
    """Convert messages, and say in words what is unusual about them.

    Calls and results are paired; what has no counterpart is kept, as is a message of an unknown
    role. Anthropic's results of tools become messages of their own. Raises DamagedError naming the
    message that cannot be read.
    """
    reader = _Reader()
    if system is not None:
        reader.add({"role": "system", "content": system})
    for index, turn in enumerate(turns):
        try:
            reader.add(turn)
        except DamagedError as error:
            raise DamagedError(f"message {index} {error}") from None
    if reader.open:
        reader.unusual[WITHOUT_RESULT] = None
    return tuple(reader.made), tuple(reader.unusual)


class _Reader:
    def __init__(self) -> None:
        self.made: list[Made] = []
        self.unusual: dict[str, None] = {}
        self.open = OpenCalls()

    def add(self, turn: Any) -> None:
        """Convert one message, which may become several."""
        if not isinstance(turn, dict):
            raise DamagedError(f"is {shown(turn)}; must be an object with a role")
        role = turn.get("role")
        if not isinstance(role, str) or not is_role(role):
            raise DamagedError(f"has the role {shown(role)}; must be one of {', '.join(ROLES)}")
        role = _ROLES.get(role, role)
        if role == "tool":
            self._add_result(turn, turn.get("tool_call_id"), turn.get("content"))
            return
        if role not in ROLES:
            self.unusual[OTHER_ROLES] = None
        parts = parts_of(turn.get("content"))
        for result in parts.results:
            self._add_result(result, result.get("tool_use_id"), result.get("content"))
        calls = [*_calls(turn), *map(_anthropic_call, parts.calls)]
        if parts.results and not parts.blocks and not calls:
            return
        message = self._message(turn, role, parts)
        if calls:
            message["tool_calls"] = [self._opened(call) for call in calls]
        self.made.append(message)

    def _message(self, turn: Made, role: str, parts: Parts) -> Made:
        refusal = turn.get("refusal")
        if isinstance(refusal, str) and refusal:
            parts.blocks.append({"type": "text", "text": refusal, "refusal": True})
        thought = turn.get("reasoning_content") or turn.get("reasoning")
        if isinstance(thought, str):
            parts.blocks.insert(0, {"type": "reasoning", "reasoning": thought})
        return {**_head(turn, parts), "role": role}

    def _opened(self, call: Made) -> Made:
        call["id"] = call["id"] or f"call-{len(self.made)}-{call['function']}"
        self.open.add(call["id"], call["function"])
        return call

    def _add_result(self, turn: Made, call_id: Any, content: Any) -> None:
        name = turn.get("name") or turn.get("function")
        found = self.open.take(
            call_id if isinstance(call_id, str) else None, name if isinstance(name, str) else None
        )
        if found is None:
            self.unusual[WITHOUT_CALL] = None
        own_id, function = found or (call_id, name)
        if isinstance(content, dict | int | float):
            content = json.dumps(content, ensure_ascii=False)
        parts = parts_of(content)
        # Blocks that are no content of a result have no other place.
        parts.blocks += parts.calls + parts.results
        message = {**_head(turn, parts), "role": "tool"}
        error = _error(turn, message)
        for key, value in (("tool_call_id", own_id), ("function", name or function)):
            if isinstance(value, str):
                message[key] = value
        self.made.append(message | error)


def _head(turn: Made, parts: Parts) -> Made:
    """The keys that every message has, in Inspect's order; others are kept as its metadata."""
    head: Made = {"id": turn["id"]} if isinstance(turn.get("id"), str) else {}
    head["content"] = parts.content
    known = {*_KNOWN, "name", "function"} if turn.get("role") in ("tool", "function") else _KNOWN
    more = {
        key: each
        for key, each in turn.items()
        if key not in known and each not in (None, [], {}, "")
    }
    if more and "tool_use_id" not in turn:
        head["metadata"] = more
    return head


def _error(turn: Made, message: Made) -> Made:
    """The error of a tool: Inspect's, or a result that Anthropic marks as one."""
    error = turn.get("error")
    if isinstance(error, dict) and isinstance(error.get("type"), str):
        return {"error": {"type": error["type"], "message": str(error.get("message", ""))}}
    if error or turn.get("is_error") is True:
        said = str(error) if isinstance(error, str) else ""
        if not said and isinstance(message["content"], str):
            said, message["content"] = message["content"], ""
        return {"error": {"type": "unknown", "message": said}}
    return {}


def _calls(turn: Made) -> list[Made]:
    given = turn.get("tool_calls")
    if given is not None and not isinstance(given, list):
        raise DamagedError(f"has {shown(given)} as its tool_calls; must be a list")
    calls = [_call(call) for call in given or ()]
    legacy = turn.get("function_call")
    if isinstance(legacy, dict):
        calls.append(_made_call(None, legacy.get("name"), legacy.get("arguments")))
    elif legacy is not None:
        raise DamagedError(f"has {shown(legacy)} as its function_call; must be an object")
    return calls


def _call(call: Any) -> Made:
    if not isinstance(call, dict):
        raise DamagedError(f"has a tool call that is {shown(call)}; must be an object")
    function = call.get("function")
    if isinstance(function, dict):
        return _made_call(call.get("id"), function.get("name"), function.get("arguments"))
    if isinstance(call.get("custom"), dict):
        custom = call["custom"]
        made = _made_call(call.get("id"), custom.get("name"), {"input": custom.get("input")})
        return {**made, "type": "custom"}
    made = _made_call(call.get("id"), function or call.get("name"), call.get("arguments"))
    if isinstance(call.get("parse_error"), str):
        made["parse_error"] = call["parse_error"]
    return made


def _anthropic_call(part: Made) -> Made:
    return _made_call(part.get("id"), part.get("name"), part.get("input"))


def _made_call(call_id: Any, name: Any, arguments: Any) -> Made:
    if not isinstance(name, str) or not name:
        raise DamagedError(f"has a tool call with the name {shown(name)}; must be text")
    read, mistake = _arguments(arguments)
    made = {"id": call_id if isinstance(call_id, str) else "", "function": name, "arguments": read}
    if mistake is not None:
        made["parse_error"] = mistake
    return {**made, "type": "function"}


def _arguments(given: Any) -> tuple[Made, str | None]:
    """The arguments of a call, else none and the whole text of what should have been some."""
    if isinstance(given, dict):
        return given, None
    if given is None or given == "":
        return {}, None
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    try:
        read = parsed(text)
    except DamagedError:
        read = None
    if isinstance(read, dict):
        return read, None
    return {}, f"the arguments are no JSON object: {text}"

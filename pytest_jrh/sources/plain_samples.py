"""Samples of Inspect logs whose meaning is plain from their JSON: text, reasoning and tool calls.

Importing inspect_ai takes longer than replaying some hundred cases, and of a sample as Inspect
writes it today it would change nothing. So such a sample is read here, and gives what Inspect's own
objects would be dumped as; whatever is not known here to the last key is left to Inspect.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_jrh.core.model import Message


_SOURCES = frozenset({"input", "generate", "operator"})
_TOOL_ERRORS = frozenset(
    {
        "parsing",
        "timeout",
        "unicode_decode",
        "permission",
        "file_not_found",
        "is_a_directory",
        "limit",
        "approval",
        "unknown",
        "output_limit",
    }
)
_REFERENCES = ("attachment://", "tc://")
# Deeper than this Inspect's reader may give up.
_DEEPEST = 40


class PlainSample(NamedTuple):
    """The fields of Inspect's `EvalSample` that a run is made of; `input` is what the user said."""

    id: int | str
    messages: tuple[Message, ...]
    input: str
    target: str
    metadata: dict[str, Any]


class _Unknown(Exception):
    """Only Inspect knows what this means."""


def plain_sample(data: Mapping[str, Any]) -> PlainSample | None:
    """The sample that these stored fields mean; None where only Inspect can say that."""
    if "transcript" in data or not _are_texts(data.get("attachments", {})):
        return None
    number, epoch = data.get("id"), data.get("epoch")
    if type(number) not in (int, str) or type(epoch) is not int:
        return None
    try:
        return PlainSample(
            number,  # type: ignore[arg-type]  # type() was compared above
            tuple(_list(data.get("messages", []), _message)),
            _input(data.get("input")),
            _target(data.get("target")),
            _dict(data.get("metadata", {})),
        )
    except _Unknown:
        return None


def _message(value: object) -> Message:
    message = _dict(value)
    fields = _MESSAGES.get(_text(message.get("role")))
    if fields is None or "content" not in message:
        raise _Unknown
    return _known(message, fields)


def _are_texts(attachments: object) -> bool:
    return isinstance(attachments, dict) and all(
        isinstance(text, str) for text in attachments.values()
    )


def _input(value: object) -> str:
    if type(value) is str:
        return _text(value)
    user_messages = [message for message in _list(value, _message) if message["role"] == "user"]
    return "\n".join(_text_of(message["content"]) for message in user_messages)


def _text_of(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def _target(value: object) -> str:
    return _text(value) if type(value) is str else "\n".join(_list(value, _text))


def _content(value: object) -> object:
    return _text(value) if type(value) is str else _list(value, _block)


def _block(value: object) -> dict[str, Any]:
    block = _dict(value)
    kind = block.get("type")
    if kind == "text" and "text" in block:
        return _known(block, _TEXT)
    if kind == "reasoning" and "reasoning" in block and "redacted" in block:
        return _known(block, _REASONING)
    raise _Unknown


def _tool_calls(value: object) -> list[dict[str, Any]]:
    # Where there are attachments, Inspect leaves an empty list out.
    if not value:
        raise _Unknown
    return _list(value, _tool_call)


def _tool_call(value: object) -> dict[str, Any]:
    call = _dict(value)
    if not call.keys() >= {"id", "function", "arguments", "type"}:
        raise _Unknown
    return _known(call, _TOOL_CALL)


def _tool_error(value: object) -> dict[str, Any]:
    error = _dict(value)
    if error.keys() != {"type", "message"}:
        raise _Unknown
    return _known(error, {"type": _one_of(_TOOL_ERRORS), "message": _text})


def _known(value: dict[str, Any], fields: Mapping[str, Callable[[Any], object]]) -> dict[str, Any]:
    """The fields in Inspect's order, each as its reader gives it."""
    read = {name: take(value[name]) for name, take in fields.items() if name in value}
    if len(read) != len(value):
        raise _Unknown
    return read


def _dict(value: object) -> dict[str, Any]:
    if type(value) is not dict:
        raise _Unknown
    return value


def _list(value: object, take: Callable[[Any], Any]) -> list[Any]:
    if type(value) is not list:
        raise _Unknown
    return [take(item) for item in value]


def _text(value: object) -> str:
    # Inspect puts in place of a reference what the sample keeps apart under this name.
    if type(value) is not str or value.startswith(_REFERENCES):
        raise _Unknown
    return value


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise _Unknown
    return value


def _one_of(values: frozenset[str]) -> Callable[[object], str]:
    def take(value: object) -> str:
        if _text(value) not in values:
            raise _Unknown
        return str(value)

    return take


def _json(value: object) -> object:
    """JSON that Inspect passes on as it is."""
    if value is None:
        raise _Unknown
    _check_json(value, _DEEPEST)
    return value


def _json_object(value: object) -> dict[str, Any]:
    _check_json(value, _DEEPEST)
    return _dict(value)


def _check_json(value: object, levels: int) -> None:
    if isinstance(value, str):
        _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise _Unknown
    if not isinstance(value, dict | list):
        return
    if not levels:
        raise _Unknown
    for item in value.values() if isinstance(value, dict) else value:
        _check_json(item, levels - 1)


# In the order in which Inspect's classes declare their fields, which is that of their dumps.
_TEXT: Mapping[str, Callable[[Any], object]] = {
    "internal": _json,
    "type": _text,
    "text": _text,
    "refusal": _flag,
}
_REASONING: Mapping[str, Callable[[Any], object]] = {
    "internal": _json,
    "type": _text,
    "reasoning": _text,
    "summary": _text,
    "signature": _text,
    "redacted": _flag,
}
_TOOL_CALL: Mapping[str, Callable[[Any], object]] = {
    "id": _text,
    "function": _text,
    "arguments": _json_object,
    "parse_error": _text,
    "type": _one_of(frozenset({"function", "custom"})),
}
_BASE: Mapping[str, Callable[[Any], object]] = {
    "id": _text,
    "content": _content,
    "source": _one_of(_SOURCES),
    "metadata": _json_object,
    "role": _text,
}
_MESSAGES: Mapping[str, Mapping[str, Callable[[Any], object]]] = {
    "system": _BASE,
    "user": _BASE,
    "assistant": {
        **_BASE,
        "tool_calls": _tool_calls,
        "model": _text,
    },
    "tool": {**_BASE, "tool_call_id": _text, "function": _text, "error": _tool_error},
}

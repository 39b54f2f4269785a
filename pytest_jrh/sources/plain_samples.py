"""Samples of Inspect logs whose meaning is plain from their JSON: text, reasoning and tool calls.

Of these inspect_ai would change nothing; what is not known here to the last key is left to it.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaValidator, to_json
from pydantic_core import core_schema as form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import CoreSchema

# Inspect puts in place of a reference what the sample keeps apart under its name.
_REFERENCE = re.compile(rb'"(?:attachment|tc)://((?:[^"\\]|\\.)*)"')
_NO_NUMBER = re.compile(rb"\b(?:NaN|Infinity)\b")


def is_plain(sample: Mapping[str, Any]) -> bool:
    """Whether Inspect would read these fields of a stored sample as they stand there."""
    try:
        _plain().validate_python(sample, strict=True)
        text = _as_json(sample)
    except ValueError:
        # It is of another form, or nested too deep.
        return False
    return _REFERENCE.search(text) is None and _NO_NUMBER.search(text) is None


def attached_size(sample: Mapping[str, Any], attachments: Mapping[str, str]) -> int:
    """Count the characters that come in once each reference is replaced by its attachment."""
    names = (json.loads(b'"' + name + b'"') for name in _REFERENCE.findall(_as_json(sample)))
    return sum(len(attachments.get(name, "")) for name in names)


def _as_json(sample: Mapping[str, Any]) -> bytes:
    return to_json([sample.get("input"), sample.get("messages")], inf_nan_mode="constants")


@lru_cache(maxsize=1)
def _plain() -> SchemaValidator:
    """The form of a plain sample: pydantic's classes would take ten times as long to build."""
    text, flag, mapping = form.str_schema(), form.bool_schema(), form.dict_schema()
    internal = form.union_schema([mapping, form.list_schema(), text])
    block = form.union_schema(
        [
            _object(
                {"type": form.literal_schema(["text"]), "text": text},
                {"refusal": flag, "internal": internal},
            ),
            _object(
                {"type": form.literal_schema(["reasoning"]), "reasoning": text, "redacted": flag},
                {"summary": text, "signature": text, "internal": internal},
            ),
        ]
    )
    call = _object(
        {"id": text, "function": text, "arguments": mapping, "type": text}, {"parse_error": text}
    )
    message = _object(
        {
            "role": form.literal_schema(["system", "user", "assistant", "tool"]),
            "content": form.union_schema([text, form.list_schema(block)]),
        },
        {
            **dict.fromkeys(("id", "source", "model", "tool_call_id", "function"), text),
            "metadata": mapping,
            # Where there are attachments, Inspect leaves an empty list out.
            "tool_calls": form.list_schema(call, min_length=1),
            "error": _object({"type": text, "message": text}, {}),
        },
    )
    messages = form.list_schema(message)
    return SchemaValidator(
        _object(
            {
                "id": form.union_schema([form.int_schema(), text]),
                "epoch": form.int_schema(),
                "input": form.union_schema([text, messages]),
                "target": form.union_schema([text, form.list_schema(text)]),
                "messages": messages,
            },
            {"metadata": mapping, "attachments": form.dict_schema(text, text)},
        )
    )


def _object(needed: dict[str, CoreSchema], more: dict[str, CoreSchema]) -> CoreSchema:
    fields = {name: form.typed_dict_field(schema) for name, schema in needed.items()}
    for name, schema in more.items():
        fields[name] = form.typed_dict_field(schema, required=False)
    return form.typed_dict_schema(fields, extra_behavior="forbid")

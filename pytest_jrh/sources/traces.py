"""Traces of OpenTelemetry in OTLP JSON, one a run. What was said is in attributes or events of
models' calls, by the semantic conventions of GenAI (1.28 and later) or OpenInference.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_jrh.core.documents import DamagedError, check_depth, inside, parsed
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.transcript import has_media, message_text
from pytest_jrh.sources.chat import as_text, read_message, read_messages
from pytest_jrh.sources.source import LINES, Conversation, Form
from pytest_jrh.sources.transcripts import Item, Transcripts

Json = dict[str, Any]
_FILE = re.compile(r'\{\s*"resource(Spans|Logs|Metrics)"\s*:')
_LEVELS = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
_TOOL, _MODEL = ("execute_tool", "TOOL"), ("chat", "text_completion", "generate_content", "LLM")
# Attributes with messages; the first that a span has counts. `events` are those that `_add` makes.
_SYSTEM = ("gen_ai.system_instructions",)
_BEFORE = ("gen_ai.input.messages", "events.before", "llm.input_messages", "gen_ai.prompt")
_AFTER = ("gen_ai.output.messages", "events.after", "llm.output_messages", "gen_ai.completion")
_SAID = (*_BEFORE, *_AFTER)
# One of the attributes that make a list: `llm.input_messages.0.message.role`.
_SPREAD = re.compile(r"(llm\.\w+put_messages|gen_ai\.(?:prompt|completion))((?:\.\w+){2,9})")
_WRAPPER = re.compile(r"\.(message|message_content|tool_call)(?=\.)|(?<=\.image)\.image\.url$")
_EVENT = re.compile(r"gen_ai\.(?:(system|developer|user|assistant|tool)\.message|choice)")
# What a part is in chats: its type, and the fields that have other names there.
_PARTS: dict[Any, tuple[Any, dict[str, str]]] = {
    "text": ("text", {"content": "text"}),
    "reasoning": ("reasoning", {"content": "reasoning"}),
    "thinking": ("reasoning", {"content": "reasoning"}),
    "tool_call": ("tool_use", {"arguments": "input"}),
    "tool_call_response": ("tool_result", {"id": "tool_use_id", "response": "result"}),
    "blob": ("media", {"content": "data", "mime_type": "mimeType"}),
    "uri": ("media", {"uri": "url", "mime_type": "mimeType"}),
}
_BELOW = "calls below one of a tool, as a sub-agent's, or of a model are left out"
_DROPPED = (
    "some spans have more attributes than OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: the others are lost"
)


def trace(value: Json) -> Conversation:
    """Read the spans and log records of a trace; raises DamagedError with the span."""
    spans: dict[str, Json] = {}
    for record in value["records"]:
        span_id = as_text(record.get("spanId"))
        with inside(f"span {span_id}"):
            _add(record, spans.setdefault(span_id, {"id": span_id}))
    in_time = sorted(spans.values(), key=lambda span: (span["start"], -span["end"]))
    for span in in_time:
        parent = spans.get(span["parent"], {"kind": None})
        says_it = span["kind"] in _MODEL and parent["kind"] in _MODEL and _first(parent, *_SAID)
        span["is_below"] = parent.get("is_below") or parent["kind"] in _TOOL or says_it
    read = [span for span in in_time if not span["is_below"]]
    tools = [span for span in read if span["kind"] in _TOOL]
    talks = [span for span in read if span["kind"] not in _TOOL and _first(span, *_SAID)]
    notices = [_DROPPED] if any(span.get("droppedAttributesCount") for span in talks) else []
    if any(span["is_below"] and _first(span, *_SAID) for span in in_time):
        notices.append(_BELOW)
    attributes = {key: entry for span in reversed(in_time) for key, entry in span.items()}
    return Conversation(
        messages=_joined([span for span in talks if span["kind"] in _MODEL] or talks, tools),
        id=value["traceId"],
        cluster=as_text(_first(attributes, "gen_ai.conversation.id", "session.id")) or None,
        tools=_json(attributes.get("gen_ai.tool.definitions")),
        metadata={"model": _first(attributes, "gen_ai.request.model", "llm.model_name")},
        no_messages="its spans have no messages: let the instrumentation record them",
        notices=notices,
    )


def _add(record: Json, span: Json) -> None:
    """Add to a span its record, or a log record about it, with all attributes and events."""
    span |= _plain(record.get("attributes", [])) | record
    span["parent"] = as_text(span.get("parentSpanId"))
    span["start"] = int(span.get("startTimeUnixNano") or span.get("observedTimeUnixNano") or 0)
    span["end"] = max(span["start"], int(span.get("endTimeUnixNano") or 0))
    for event in record.get("events", [record]):
        fields = _plain(event.get("attributes", []))
        name = event.get("eventName") or event.get("name") or fields.get("event.name")
        if name == "gen_ai.client.inference.operation.details":
            span |= fields
        elif match := _EVENT.fullmatch(as_text(name)):
            body = _json(_plain(event.get("body")) or fields.get("gen_ai.event.content") or fields)
            content = body.get("message", body)
            message = {"content": content} if isinstance(content, str) else dict(content)
            message |= {"role": match[1] or "assistant", "tool_call_id": body.get("id")}
            span.setdefault((_BEFORE if match[1] else _AFTER)[1], []).append(message)
    span["kind"] = _first(span, "gen_ai.operation.name", "openinference.span.kind")


def _plain(value: Any) -> Any:
    """The JSON that a value of OTLP means, or a list of attributes."""
    if isinstance(value, list):
        attributes: Json = {}
        for pair in value:
            node, key = attributes, pair["key"]
            if spread := _SPREAD.fullmatch(key):
                _, *names, key = _WRAPPER.sub("", spread[2]).split(".")
                for name in (spread[1], *names):
                    node = node.setdefault(name, {})
            node[key] = _plain(pair.get("value"))
        return attributes
    [(kind, inner)] = (value or {"noValue": None}).items()
    if kind in ("arrayValue", "kvlistValue"):
        values = inner.get("values", [])
        return _plain(values) if kind == "kvlistValue" else [*map(_plain, values)]
    return int(inner) if kind == "intValue" else inner


def _first(span: Json, *keys: str) -> Any:
    return next((span[key] for key in keys if span.get(key)), None)


def _joined(calls: list[Json], tools: list[Json]) -> list[Json]:
    """What was said in all calls, which repeat it, and what only tools have, in order of time."""
    moments: list[tuple[int, Json]] = []
    known: Counter[str] = Counter()
    for call in calls:
        with inside(f"span {call['id']}"):
            before = _messages(call, _SYSTEM, "system") + _messages(call, _BEFORE)
            after = _messages(call, _AFTER)
        # What is asked last is new, also where it was said before.
        is_asked = bool(before) and before[-1][0]["role"] in ("user", "tool")
        is_asked = is_asked and bool(moments) and moments[-1][1]["role"] == "assistant"
        seen: Counter[str] = Counter()
        for number, (message, keys) in enumerate(before, start=1):
            seen.update(keys)
            if seen[keys[-1]] > known[keys[-1]] or (is_asked and number == len(before)):
                moments.append((call["start"], message))
            known.update(key for key in keys if seen[key] > known[key])
        for message, keys in after:
            known.update(keys)
            moments.append((call["end"], message))
    messages = read_messages([message for _, message in moments])[0]
    if not has_media(messages) and not any(map(message_text, messages)):
        # Names of tools and roles alone: what was said is not recorded.
        return []
    called = {call["id"] for part in messages for call in part.get("tool_calls", ())}
    answered = {part.get("tool_call_id") for part in messages if part["role"] == "tool"}
    for tool in tools:
        call_id = _first(tool, "gen_ai.tool.call.id", "tool.id")
        name = _first(tool, "gen_ai.tool.name", "tool.name")
        arguments = _first(tool, "gen_ai.tool.call.arguments", "input.value")
        result = _first(tool, "gen_ai.tool.call.result", "output.value", "error.type")
        with inside(f"span {tool['id']}"):
            if call_id in answered or (called and not call_id) or not (arguments or result):
                continue
            call = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            answer = {"type": "tool_result", "tool_use_id": call_id, "content": as_text(result)}
            message = {"role": "assistant", "content": [call, answer]}
            if call_id in called:
                message = {"role": "tool", "content": [answer]}
            read_message(message)
            moments.append((tool["end"], message))
    return [message for _, message in sorted(moments, key=lambda moment: moment[0])]


def _keys(message: Json) -> list[str]:
    """What tells a message from others, calls last: some spans repeat them without the text."""
    keys = []
    for part in read_message(message):
        keys.append(repr((part["role"], part.get("tool_call_id"), message_text(part).strip())))
        keys += map(repr, part.get("tool_calls", ()))
    return keys


def _messages(span: Json, keys: Sequence[str], role: Any = None) -> list[tuple[Json, list[str]]]:
    """The messages in the first of these attributes that the span has, each with its keys."""
    key = next((key for key in keys if span.get(key)), keys[0])
    messages = []
    with inside(key):
        entries = _in_order(_json(span.get(key) or []))
    for number, entry in enumerate(entries):
        with inside(key, number):
            parts = _in_order(entry.get("parts", entry.get("contents", entry.get("content"))))
            content = [*map(_part, parts)] if isinstance(parts, list) else parts
            message = {k: _in_order(entry.get(k)) for k in ("tool_call_id", "name", "tool_calls")}
            if message["tool_calls"] and isinstance(parts, list):  # some have calls twice
                content = [part for part in content if part["type"] != "tool_use"]
            message |= {"role": entry.get("role", role), "content": content}
            messages.append((message, _keys(message)))
    return messages


def _json(value: Any) -> Any:
    value = parsed(value) if isinstance(value, str) else value
    check_depth(value)
    return value


def _in_order(value: Any) -> Any:
    return [value[key] for key in sorted(value, key=int)] if isinstance(value, dict) else value


def _part(part: Json) -> Json:
    kind, names = _PARTS.get(part.get("type"), (part.get("type"), {}))
    read = {names.get(key, key): value for key, value in part.items()} | {"type": kind}
    return {**read, "content": as_text(read.get("result"))} if kind == "tool_result" else read


class Traces(Transcripts):
    """A file of traces."""

    def _items(self) -> Iterator[tuple[Item, bytes]]:
        data = self._bytes_of(self._file)
        rows = [(n, row) for n, row in enumerate(data.split(b"\n"), start=1) if row.strip()]
        if len(rows) > 1 and not rows[1][1].startswith(b"{"):
            rows = [(1, data)]
        traces: dict[str, Json] = {}
        for line, row in rows:
            try:
                with inside():
                    for record in _records(parsed(row)):
                        if "startTimeUnixNano" in record or record.get("traceId"):
                            begun = {"traceId": record["traceId"], "line": line, "records": []}
                            traces.setdefault(record["traceId"], begun)["records"].append(record)
            except DamagedError as error:
                raise InputError(self._problem(Item(0, 0, line), row, error)) from None
        self._traces = [json.dumps(value).encode() for value in traces.values()]
        for number, value in enumerate(traces.values()):
            yield Item(number, number, value["line"]), self._traces[number]

    def _bytes(self, item: Item) -> bytes:
        return self._traces[item.start]


def _records(batch: Any) -> Iterator[Json]:
    check_depth(batch)
    for resources, scopes, records in _LEVELS:
        for resource in batch.get(resources, ()):
            for scope in resource.get(scopes, ()):
                yield from scope.get(records, ())


TRACES = Form(
    "OTLP trace", (*LINES, ".json"), trace, lambda head: bool(_FILE.match(head.text)), source=Traces
)

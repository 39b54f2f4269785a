"""Chats as traces of OpenTelemetry, as the file exporters of its Python SDK write OTLP JSON: what
an agent says to a model call by call, in the ways in which instrumentations record it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from typing import Any

Json = dict[str, Any]
START = 1_795_731_669_000_000_000
"""When the first span of a trace begins, in nanoseconds."""
WAYS = ("attributes", "details", "logs", "events", "openinference", "openllmetry")
"""The conventions: attributes of spans or of a log record, older events in logs or on spans, and
those of two libraries."""


def any_value(value: Any) -> Json:
    """A value as OTLP writes it."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [any_value(item) for item in value]}}
        case dict():
            return {"kvlistValue": {"values": pairs(value)}}
        case _:
            return {}


def pairs(attributes: Json) -> list[Json]:
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def span(trace: str, number: int, name: str, attributes: Json, **more: Any) -> Json:
    """A span of two milliseconds; the one with the number 0 is the parent of all others."""
    begins = START + number * 10_000_000
    parent = {} if number == 0 else {"parentSpanId": f"{0:016x}"}
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        **parent,
        "flags": 256,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(begins),
        "endTimeUnixNano": str(begins + 2_000_000),
        "attributes": pairs(attributes),
        "status": {},
        **more,
    }


def tool_span(trace: str, number: int, call: Json, result: str, **more: Any) -> Json:
    function = call["function"]
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": function["name"],
        "gen_ai.tool.call.id": call["id"],
        "gen_ai.tool.call.arguments": function["arguments"],
        "gen_ai.tool.call.result": result,
    }
    return span(trace, number, f"execute_tool {function['name']}", attributes, **more)


def batch(*spans: Json) -> Json:
    scopes: list[Json] = [{"scope": {"name": "shop"}, "spans": [*spans]}]
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": scopes}]}


def log_batch(trace: str, number: int, name: str, body: Json, attributes: Json) -> Json:
    record: Json = {"observedTimeUnixNano": str(START), "body": any_value(body)}
    record |= {"attributes": pairs(attributes), "traceId": trace, "spanId": f"{number:016x}"}
    scopes = [{"scope": {"name": "shop"}, "logRecords": [{**record, "eventName": name}]}]
    return {"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": scopes}]}


def as_parts(message: Json) -> Json:
    """A message of a chat by the conventions of 1.37 and later."""
    role, content = message["role"], message.get("content")
    if role == "tool":
        part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": content}
        return {"role": role, "parts": [part]}
    parts: list[Json] = [{"type": "text", "content": content}] if content else []
    for call in message.get("tool_calls", ()):
        arguments = json.loads(call["function"]["arguments"])
        names = {"id": call["id"], "name": call["function"]["name"]}
        parts.append({"type": "tool_call", **names, "arguments": arguments})
    return {"role": role, "parts": parts}


def flat(prefix: str, value: Any) -> Json:
    """JSON spread over attributes."""
    if not isinstance(value, dict | list):
        return {} if value is None else {prefix: value}
    attributes: Json = {}
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        attributes |= flat(f"{prefix}.{key}", inner)
    return attributes


def as_openinference(message: Json) -> Json:
    calls = [
        {"tool_call": {"id": call["id"], "function": call["function"]}}
        for call in message.get("tool_calls", ())
    ]
    return {"message": {**message, "tool_calls": calls}}


def as_openllmetry(message: Json) -> Json:
    calls = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", ())]
    return {**message, "tool_calls": calls}


def model_call(way: str, trace: str, number: int, before: list[Json], answer: Json) -> list[Json]:
    """The batches that a call of a model leaves."""
    attributes: Json = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
    asked, said = [as_parts(message) for message in before], [as_parts(answer)]
    said[0]["finish_reason"] = "stop"
    events = []
    for message in before:
        body = {key: value for key, value in message.items() if key in ("content", "tool_calls")}
        if message["role"] == "tool":
            body["id"] = message["tool_call_id"]
        events.append((f"gen_ai.{message['role']}.message", body))
    events.append(("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": answer}))
    more: Json = {}
    batches = []
    match way:
        case "attributes":
            attributes["gen_ai.input.messages"] = json.dumps(asked)
            attributes["gen_ai.output.messages"] = json.dumps(said)
        case "details":
            name = "gen_ai.client.inference.operation.details"
            details = {"gen_ai.input.messages": asked, "gen_ai.output.messages": said}
            batches.append(log_batch(trace, number, name, {}, details))
        case "logs":
            batches += [log_batch(trace, number, name, body, {}) for name, body in events]
        case "events":
            more["events"] = [
                {"timeUnixNano": str(START), "name": name}
                | {"attributes": pairs({"gen_ai.event.content": json.dumps(body)})}
                for name, body in events
            ]
        case "openinference":
            attributes = {"openinference.span.kind": "LLM", "llm.model_name": "m-1"}
            attributes |= flat("llm.input_messages", [*map(as_openinference, before)])
            attributes |= flat("llm.output_messages", [as_openinference(answer)])
        case "openllmetry":
            attributes |= flat("gen_ai.prompt", [*map(as_openllmetry, before)])
            attributes |= flat("gen_ai.completion", [as_openllmetry(answer)])
    return [*batches, batch(span(trace, number, "chat m-1", attributes, **more))]


def as_trace(way: str, trace: str, messages: Sequence[Json], **of_root: Any) -> list[Json]:
    """The batches of an agent that is asked with what comes before each answer of a chat."""
    batches: list[Json] = []
    numbers = count(1)
    calls: dict[str, Json] = {}
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            batches += model_call(way, trace, next(numbers), [*messages[:place]], message)
            calls = {call["id"]: call for call in message.get("tool_calls", ())}
        elif message["role"] == "tool":
            call = calls[message["tool_call_id"]]
            batches.append(batch(tool_span(trace, next(numbers), call, message["content"])))
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop", **of_root}
    # Parents end last, and what has ended is written.
    return [*batches, batch(span(trace, 0, "invoke_agent shop", root))]

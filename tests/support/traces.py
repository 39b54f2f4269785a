"""Chats as traces that the Python SDK of OpenTelemetry writes as OTLP JSON: what an agent says to a
model call by call, in the ways in which instrumentations record it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Span, set_span_in_context

Json = dict[str, Any]
WAYS = ("attributes", "details", "logs", "events", "openinference", "openllmetry")
"""The conventions: attributes of spans or of a log record, older events in logs or on spans, and
those of two libraries."""


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
    """A message as the library has it, which has the calls of some models in two places."""
    calls = [
        {"tool_call": {"id": call["id"], "function": call["function"]}}
        for call in message.get("tool_calls", ())
    ]
    twice = [{"message_content": {"type": "tool_use"}, **call} for call in calls]
    if twice and not message["content"]:
        message = {**message, "contents": twice}
    return {"message": {**message, "tool_calls": calls}}


def as_openllmetry(message: Json) -> Json:
    calls = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", ())]
    return {**message, "tool_calls": calls}


class Recording:
    """What an SDK has written of the spans and log records of agents."""

    def __init__(self) -> None:
        self._file = StringIO()
        spans, logs = TracerProvider(), LoggerProvider()
        spans.add_span_processor(SimpleSpanProcessor(FileSpanExporter(stream=self._file)))
        logs.add_log_record_processor(SimpleLogRecordProcessor(FileLogExporter(stream=self._file)))
        self._tracer = spans.get_tracer("shop")
        self.log = logs.get_logger("shop").emit

    @property
    def batches(self) -> list[Json]:
        return [json.loads(line) for line in self._file.getvalue().split("\n") if line]

    def start(self, name: str, attributes: Json, parent: Context | None = None) -> Span:
        span: Span = self._tracer.start_span(name, parent or Context(), attributes=attributes)
        return span

    def tool(self, call: Json, result: str, parent: Context) -> Span:
        function = call["function"]
        called = {"call.id": call["id"], "call.arguments": function["arguments"]}
        about = {"name": function["name"], **called, "call.result": result}
        attributes = {f"gen_ai.tool.{key}": value for key, value in about.items()}
        attributes["gen_ai.operation.name"] = "execute_tool"
        span = self.start(f"execute_tool {function['name']}", attributes, parent)
        span.end()
        return span

    def model(
        self, before: Sequence[Json], answer: Json | None, parent: Context, way: str = "attributes"
    ) -> Span:
        """A call of a model; one without an answer fails."""
        attributes: Json = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
        answers = [answer] if answer else []
        asked = [as_parts(message) for message in before]
        said = [{**as_parts(message), "finish_reason": "stop"} for message in answers]
        events = []
        for message in before:
            body: Json = {key: message[key] for key in ("content", "tool_calls") if key in message}
            if message["role"] == "tool":
                body["id"] = message["tool_call_id"]
            events.append((f"gen_ai.{message['role']}.message", body))
        choice: Json = {"index": 0, "finish_reason": "stop"}
        events += [("gen_ai.choice", {**choice, "message": message}) for message in answers]
        match way:
            case "attributes":
                attributes["gen_ai.input.messages"] = json.dumps(asked)
                attributes["gen_ai.output.messages"] = json.dumps(said)
            case "openinference":
                attributes = {"openinference.span.kind": "LLM", "llm.model_name": "m-1"}
                attributes |= flat("llm.input_messages", [*map(as_openinference, before)])
                attributes |= flat("llm.output_messages", [*map(as_openinference, answers)])
            case "openllmetry":
                attributes |= flat("gen_ai.prompt", [*map(as_openllmetry, before)])
                attributes |= flat("gen_ai.completion", [*map(as_openllmetry, answers)])
        span = self.start("chat m-1", attributes, parent)
        context = set_span_in_context(span)
        if way == "details":
            details = {"gen_ai.input.messages": asked, "gen_ai.output.messages": said}
            name = "gen_ai.client.inference.operation.details"
            self.log(context=context, event_name=name, attributes=details)
        for name, body in events:
            if way == "logs":
                self.log(context=context, event_name=name, body=body)
            elif way == "events":
                span.add_event(name, {"gen_ai.event.content": json.dumps(body)})
        span.end()
        return span

    def agent(
        self, chat: Sequence[Json], way: str = "attributes", **attributes: str
    ) -> Iterator[str]:
        """An agent that asks a model with what comes before each answer of a chat; gives the id of
        its trace at each step."""
        root = self.start("invoke_agent", {"gen_ai.operation.name": "invoke_agent", **attributes})
        context = set_span_in_context(root)
        calls: dict[str, Json] = {}
        for place, message in enumerate(chat):
            if message["role"] == "assistant":
                self.model(chat[:place], message, context, way)
                calls = {call["id"]: call for call in message.get("tool_calls", ())}
            elif message["role"] == "tool":
                self.tool(calls[message["tool_call_id"]], message["content"], context)
            yield trace_of(root)
        root.end()


def trace_of(span: Span) -> str:
    return f"{span.get_span_context().trace_id:032x}"

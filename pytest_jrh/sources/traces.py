"""Traces of OpenTelemetry in OTLP JSON. What was said is in attributes or events of models' calls,
by the semantic conventions of GenAI (1.28 and later) or of OpenInference.

A trace may hold several conversations, each of which is a run.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pytest_jrh.core import InputError, Json, counted, grouped, listed
from pytest_jrh.core.documents import DamagedError, inside, parsed
from pytest_jrh.core.transcript import media_in, message_text
from pytest_jrh.sources.chat import fields_of, first_in, json_text, read_message, read_messages
from pytest_jrh.sources.source import LINES, Conversation, Form
from pytest_jrh.sources.transcripts import (
    Item,
    Transcripts,
    end_of,
    is_system,
    keys_of,
    linked,
    numbered,
    thread_of,
)

_FILE = r'\{\s*"resource(Spans|Logs|Metrics)"\s*:'
_LEVELS = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
# What a span is of, by the GenAI conventions, OpenInference and OpenLLMetry.
_KINDS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
_TOOL = ("execute_tool", "TOOL", "tool")
_AGENT = ("invoke_agent", "AGENT", "agent")
_MODEL = ("chat", "text_completion", "generate_content", "LLM")
_CONVERSATION = ("gen_ai.conversation.id", "session.id")
_MODEL_NAME = ("gen_ai.request.model", "llm.model_name")
_TOOL_ID = ("gen_ai.tool.call.id", "tool.id")
_TOOL_NAME = ("gen_ai.tool.name", "tool.name")
# Pydantic AI has names of its own.
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value", "tool_arguments")
_RESULT = ("gen_ai.tool.call.result", "output.value", "tool_response", "error.type")
# Attributes with messages; the first that a span has counts. `events` are those that `_add` makes.
_SYSTEM = ("gen_ai.system_instructions",)
_BEFORE = ("gen_ai.input.messages", "events.before", "llm.input_messages", "gen_ai.prompt")
_AFTER = ("gen_ai.output.messages", "events.after", "llm.output_messages", "gen_ai.completion")
_WITH_MESSAGES = (*_BEFORE, *_AFTER)
# One of the attributes that make a list: `llm.input_messages.0.message.role`.
_SPREAD = r"(llm\.\w+put_messages|gen_ai\.(?:prompt|completion))((?:\.\w+){2,9})"
_WRAPPER = r"\.(message|message_content|tool_call)(?=\.)|(?<=\.image)\.image\.url$"
_EVENT = r"gen_ai\.(?:(system|developer|user|assistant|tool)\.message|choice)"
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
# What is said of calls and traces, behind how many they are.
_BELOW = "call", "left out from inside another call of a tool or a model, such as a sub-agent's"
_REPEATED = "call", "left out, because an earlier call is the same"
_UNCALLED = "tool call", "left out, because no conversation contains the call"
_SEVERAL = "trace", "with several conversations; each conversation is a run"
_NO_MESSAGES = (
    "its spans have no messages in the conventions of GenAI or OpenInference; let the "
    "instrumentation record messages"
)
_DROPPED = (
    "some attributes of spans are missing, because they exceed OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"
)
LeftOut: TypeAlias = "defaultdict[tuple[str, str], list[str]]"
"""By a noun and what is said of it, the names of what is left out."""


class _Turn(NamedTuple):
    """A message, with the keys by which it is known again."""

    message: Json
    keys: list[str]


@dataclass
class _Span:
    """What the records of a span say of it, with its attributes beside their own fields.

    `scope` is the conversation, the span of the agent and its name. `before` are the messages that
    a model was asked with, and `after` those that it answered.
    """

    id: str
    fields: Json = field(default_factory=dict)
    parent: str | None = None
    kind: Any = None
    start: int = 0
    end: int = 0
    scope: tuple[str, str | None, str] = ("", None, "")
    is_below: bool = False
    is_called: bool = False
    before: list[_Turn] = field(default_factory=list)
    after: list[_Turn] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the span is called."""
        return json_text(self.fields.get("name"))

    def first(self, names: Iterable[str]) -> Any:
        """The first of these attributes that says something."""
        return first_in(self.fields, names)


def conversations_of(trace_id: str, records: Sequence[Json], left_out: LeftOut) -> list[Json]:
    """The fields of each conversation in the spans and log records of a trace.

    What is left out is added to `left_out`. Raises DamagedError with the span.
    """
    spans = _spans_of(records)
    _set_scopes(spans)
    in_time = sorted(spans.values(), key=lambda span: (span.start, -span.end))
    tools = []
    calls = []
    for span in in_time:
        if span.kind in _TOOL:
            if not span.is_below:
                tools.append(span)
        elif span.first(_WITH_MESSAGES):
            if span.is_below:
                left_out[_BELOW].append(span.name)
            else:
                calls.append(span)
    is_cut = any(call.fields.get("droppedAttributesCount") for call in calls)
    # Spans around the calls of models repeat what these say.
    calls = [call for call in calls if call.kind in _MODEL] or calls
    for call in calls:
        with inside(f"span {call.id}"):
            call.before = _turns(call, _SYSTEM, "system") + _turns(call, _BEFORE)
            call.after = _turns(call, _AFTER)
    groups, repeated = _grouped(calls)
    is_alone = len(groups) <= 1
    conversations = []
    for group in groups or [[]]:
        whole = _Span(trace_id)
        # Of several spans that say something the first counts.
        for span in reversed(in_time if is_alone else group):
            whole.fields |= span.fields
        run_id, cluster = trace_id, whole.first(_CONVERSATION)
        if not is_alone:
            run_id, cluster = f"{trace_id}-{group[0].id}", group[0].scope[0] or trace_id
        conversations.append(
            {
                "messages": _joined(group, tools, is_alone=is_alone),
                "id": run_id,
                "cluster": json_text(cluster) or None,
                "metadata": {"model": whole.first(_MODEL_NAME)},
                "no_messages": _NO_MESSAGES,
                "notices": [_DROPPED] if is_cut else [],
                "is_request": True,
                "opening": len(group[0].before) if group else 0,
            }
        )
    left_out[_REPEATED] += (span.name for span in repeated)
    if not is_alone:
        left_out[_UNCALLED] += (tool.name for tool in tools if not tool.is_called)
        left_out[_SEVERAL].append(f"{trace_id} ({len(groups)})")
    return conversations


def _spans_of(records: Sequence[Json]) -> dict[str, _Span]:
    """The spans by their ids, each with what log records say of it."""
    spans: dict[str, _Span] = {}
    for record in sorted(records, key=lambda record: "startTimeUnixNano" not in record):
        span_id = json_text(record.get("spanId"))
        start = record.get("startTimeUnixNano")
        with inside(f"span {span_id}"):
            if start:
                if span_id in spans and spans[span_id].fields["startTimeUnixNano"] != start:
                    span_id = f"{span_id}-{start}"
                # What was written before it had ended is written again.
                spans.pop(span_id, None)
            _add(record, spans.setdefault(span_id, _Span(span_id)))
    return spans


def _add(record: Json, span: _Span) -> None:
    """Add to a span its record, or a log record about it, with all attributes and events."""
    fields = span.fields
    fields |= _plain(record.get("attributes", [])) | record
    span.parent = json_text(fields.get("parentSpanId")) or None
    span.start = int(fields.get("startTimeUnixNano") or fields.get("observedTimeUnixNano") or 0)
    span.end = max(span.start, int(fields.get("endTimeUnixNano") or 0))
    for event in record.get("events", [record]):
        attributes = _plain(event.get("attributes", []))
        name = event.get("eventName") or event.get("name") or attributes.get("event.name")
        if name == "gen_ai.client.inference.operation.details":
            fields |= attributes
        elif match := re.fullmatch(_EVENT, json_text(name)):
            body = _plain(event.get("body")) or attributes.get("gen_ai.event.content")
            body = _json(body or attributes)
            content = body.get("message", body)
            message = {"content": content} if isinstance(content, str) else dict(content)
            message |= {"role": match[1] or "assistant", "tool_call_id": body.get("id")}
            # A choice is what the model answered.
            fields.setdefault("events.before" if match[1] else "events.after", []).append(message)
    span.kind = span.first(_KINDS)
    if not span.kind and span.first(_TOOL_ID):
        span.kind = _TOOL[0]


def _set_scopes(spans: Mapping[str, _Span]) -> None:
    """Say of each span whose it is, by those around it, and whether it is below a call.

    Raises DamagedError where spans are inside of each other.
    """
    parents = ((span.parent if span.parent in spans else None, span) for span in spans.values())
    inner = grouped(parents)
    outermost_first = inner.get(None, [])
    # It grows on the way: behind each span come those right inside of it.
    for span in outermost_first:
        outermost_first += inner.get(span.id, ())
        outer = spans.get(span.parent or "", _Span(""))
        conversation, agent, _ = outer.scope
        # A model's call in another one's says the same.
        if outer.is_below or outer.kind in _TOOL:
            span.is_below = True
        elif span.kind in _MODEL and outer.kind in _MODEL:
            span.is_below = bool(outer.first(_WITH_MESSAGES))
        conversation = json_text(span.first(_CONVERSATION)) or conversation
        if span.kind in _AGENT:
            agent = span.id
        span.scope = (conversation, agent, json_text(span.fields.get("gen_ai.agent.name")))
    if len(outermost_first) < len(spans):
        raise DamagedError("some of its spans contain each other")


def _grouped(calls: Sequence[_Span]) -> tuple[list[list[_Span]], list[_Span]]:
    """The calls of each conversation, and those that only repeat another one.

    A call goes on from the one that it repeats, also where an agent hands over to another. The
    others of an agent are of one conversation where it is instructed alike.
    """
    threads = {}
    scopes = {}
    for number, call in enumerate(calls):
        threads[number] = thread_of(call.before + call.after, len(call.before))
        scopes[number] = call.scope
    former, repeated = linked(threads, scopes)
    of_any_agent, _ = linked(threads, {number: scope[0] for number, scope in scopes.items()})
    former = of_any_agent | former
    # The first call that goes on from another continues its conversation; the others branch off.
    followers: dict[int, int] = {}
    for number in sorted(former):
        followers.setdefault(former[number], number)
    links = {number: first for first, number in followers.items()}
    groups: dict[Any, list[_Span]] = {}
    left_out = []
    for number, call in enumerate(calls):
        beginning = end_of(links, number)
        key: Any = beginning
        # A branch repeats itself what was said before.
        if beginning not in former and any(scopes[beginning]):
            instructions = []
            for message, keys in calls[beginning].before:
                if is_system(message["role"]):
                    instructions.append(keys)
            key = repr((scopes[beginning], instructions))
        group = groups.setdefault(key, [])
        first = repeated.get(number, number)
        # A next turn may say the same where the provider keeps what was said before.
        is_retry = number in former or first in followers or not group or group[0] is calls[first]
        if first != number and is_retry:
            left_out.append(call)
        else:
            group.append(call)
    return [group for group in groups.values() if group], left_out


def _plain(value: Any) -> Any:
    """The JSON that a value of OTLP means, or a list of attributes."""
    if isinstance(value, list):
        attributes: Json = {}
        for pair in value:
            node, key = attributes, pair["key"]
            if spread := re.fullmatch(_SPREAD, key):
                _, *names, key = re.sub(_WRAPPER, "", spread[2]).split(".")
                for name in (spread[1], *names):
                    node = node.setdefault(name, {})
            node[key] = _plain(pair.get("value"))
        return attributes
    [(kind, inner)] = (value or {"noValue": None}).items()
    match kind:
        case "arrayValue":
            return [*map(_plain, inner.get("values", []))]
        case "kvlistValue":
            return _plain(inner.get("values", []))
        case "intValue":
            return int(inner)
    return inner


def _joined(calls: Sequence[_Span], tools: Sequence[_Span], *, is_alone: bool) -> list[Json]:
    """What was said in all calls, which repeat it, and what only tools have, in order of time.

    Of several conversations each has the tools that it calls.
    """
    moments: list[tuple[int, Json]] = []
    # How often each key was said so far.
    times_said = Counter[str]()
    for call in calls:
        is_asked = bool(call.before) and call.before[-1].message["role"] in ("user", "tool")
        is_asked = is_asked and bool(moments) and moments[-1][1]["role"] == "assistant"
        seen = Counter[str]()
        for number, (message, keys) in enumerate(call.before, start=1):
            seen.update(keys)
            # What is asked last is new, also where it was said before.
            is_asked_last = is_asked and number == len(call.before)
            if is_asked_last or seen[keys[-1]] > times_said[keys[-1]]:
                moments.append((call.start, message))
            times_said |= seen
        for message, keys in call.after:
            times_said.update(keys)
            moments.append((call.end, message))
    messages, _ = read_messages(message for _, message in moments)
    if not media_in(messages) and not any(map(message_text, messages)):
        # Names of tools and roles alone: what was said is not recorded.
        return []
    called = set[str]()
    answered = set()
    for message in messages:
        called.update(call["id"] for call in message.get("tool_calls", ()))
        if message["role"] == "tool":
            answered.add(message.get("tool_call_id"))
    for tool in tools:
        call_id = tool.first(_TOOL_ID)
        if call_id in called:
            tool.is_called = True
        elif not is_alone:
            continue
        arguments, result = tool.first(_ARGUMENTS), tool.first(_RESULT)
        with inside(f"span {tool.id}"):
            if call_id in answered or (called and not call_id) or not (arguments or result):
                continue
            name = tool.first(_TOOL_NAME)
            request = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            answer = {"type": "tool_result", "tool_use_id": call_id, "content": json_text(result)}
            message = {"role": "assistant", "content": [request, answer]}
            if call_id in called:
                message = {"role": "tool", "content": [answer]}
            read_message(message)
            moments.append((tool.end, message))
    moments.sort(key=lambda moment: moment[0])
    return [message for _, message in moments]


def _turns(span: _Span, names: Iterable[str], role: str | None = None) -> list[_Turn]:
    """The messages in the first of these attributes that the span has."""
    name = next(filter(span.fields.get, names), None)
    if name is None:
        return []
    with inside(name):
        entries = _in_order(_json(span.fields[name]))
    turns = []
    for number, entry in enumerate(entries):
        with inside(name, number):
            content = entry.get("parts", entry.get("contents", entry.get("content")))
            content, calls = _in_order(content), _in_order(entry.get("tool_calls"))
            if isinstance(content, list):
                content = [*map(_part, content)]
                if calls:
                    # Some have calls in both places.
                    content = [part for part in content if part["type"] != "tool_use"]
            message = {"role": role, **fields_of(entry, ("role", "tool_call_id", "name"))}
            message |= {"tool_calls": calls, "content": content}
            turns.append(_Turn(message, keys_of(message)))
    return turns


def _json(value: Any) -> Any:
    if isinstance(value, str):
        return parsed(value)
    return value


def _in_order(value: Any) -> Any:
    """The items of a list that attributes make, by their numbers; any other value as it is."""
    if isinstance(value, dict):
        return [value[key] for key in sorted(value, key=int)]
    return value


def _part(part: Json) -> Json:
    """A part of a message as chats have it."""
    kind, names = _PARTS.get(part.get("type"), (part.get("type"), {}))
    chat_part = {names.get(key, key): value for key, value in part.items()} | {"type": kind}
    if kind == "tool_result":
        chat_part["content"] = json_text(chat_part.get("result"))
    return chat_part


class Traces(Transcripts):
    """A file of traces."""

    def _prepare(self) -> None:
        super()._prepare()
        self.files = [self.path]

    def _items(self) -> Iterator[tuple[Item, bytes]]:
        traces: dict[str, tuple[Path, int, list[Json]]] = {}
        seen = set()
        for file in self.files:
            self._file = file
            data = self._bytes_of(file)
            rows = numbered(data)
            if len(rows) > 1 and not rows[1][1].startswith(b"{"):
                rows = [(1, data)]
            for line, row in rows:
                # A batch was sent, or a file stored, twice.
                if hash(row) in seen:
                    continue
                seen.add(hash(row))
                with self._damage(line, row):
                    for record in _records(parsed(row)):
                        if "startTimeUnixNano" in record or record.get("traceId"):
                            begun = (file, line, list[Json]())
                            traces.setdefault(record["traceId"], begun)[2].append(record)
        left_out: LeftOut = defaultdict(list)
        self._conversations: list[bytes] = []
        for trace_id, (self._file, line, records) in traces.items():
            with self._damage(line):
                conversations = conversations_of(trace_id, records, left_out)
            for fields in conversations:
                item = Item(len(self._conversations), 0, line)
                self._conversations.append(json.dumps(fields).encode())
                yield item, self._bytes(item)
        for (noun, message), names in left_out.items():
            if names:
                notice = f"{counted(len(names), noun)} {message}: {listed(dict.fromkeys(names), 5)}"
                self._notices[notice] = None

    @contextmanager
    def _damage(self, line: int, row: bytes = b"") -> Iterator[None]:
        """Say in which file and line damage is."""
        try:
            with inside():
                yield
        except DamagedError as error:
            raise InputError(self._problem(Item(0, 0, line), row, error)) from None

    def _bytes(self, item: Item) -> bytes:
        return self._conversations[item.start]


def _records(batch: Any) -> Iterator[Json]:
    for resources, scopes, records in _LEVELS:
        for resource in batch.get(resources, ()):
            for scope in resource.get(scopes, ()):
                yield from scope.get(records, ())


TRACES = Form(
    "OTLP trace",
    (*LINES, ".json"),
    lambda fields: Conversation(**fields),
    lambda head: bool(re.match(_FILE, head.text)),
    source=Traces,
)

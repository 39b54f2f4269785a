"""Traces of OpenTelemetry in OTLP JSON. What was said is in attributes or events of models' calls,
by the semantic conventions of GenAI (1.28 and later) or of OpenInference.

A trace may hold several conversations, each of which is a run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from pytest_jrh.core.documents import DamagedError, check_depth, inside, listed, parsed
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.text import counted
from pytest_jrh.core.transcript import has_media, message_text
from pytest_jrh.sources.chat import as_text, read_message, read_messages
from pytest_jrh.sources.source import LINES, Conversation, Form
from pytest_jrh.sources.threads import end_of, is_system, keys_of, linked, thread_of
from pytest_jrh.sources.transcripts import Item, Transcripts, numbered

Json = dict[str, Any]
_FILE = re.compile(r'\{\s*"resource(Spans|Logs|Metrics)"\s*:')
_LEVELS = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
# What a span is of, by the GenAI conventions, OpenInference and OpenLLMetry.
_KINDS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
_TOOL = ("execute_tool", "TOOL", "tool")
_AGENT = ("invoke_agent", "AGENT", "agent")
_MODEL = ("chat", "text_completion", "generate_content", "LLM")
_CONVERSATION = ("gen_ai.conversation.id", "session.id")
_TOOL_ID = ("gen_ai.tool.call.id", "tool.id")
# Pydantic AI has names of its own.
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value", "tool_arguments")
_RESULT = ("gen_ai.tool.call.result", "output.value", "tool_response", "error.type")
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
# What is said of calls and traces, behind how many they are.
_BELOW = "call", "left out: below one of a tool, as a sub-agent's, or of a model"
_REPEATED = "call", "left out: the same as one before"
_UNCALLED = "call", "of tools left out: of no conversation that asks for it"
_SEVERAL = "trace", "with several conversations, each of which is a run"
_NO_MESSAGES = (
    "its spans have no messages by the conventions of GenAI or OpenInference: let the "
    "instrumentation record them"
)
_DROPPED = (
    "some spans have more attributes than OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: the others are lost"
)
Said: TypeAlias = "dict[tuple[str, str], list[str]]"


def trace(value: Json) -> Conversation:
    """A conversation of a trace."""
    return Conversation(**value)


def conversations_of(trace_id: str, records: Sequence[Json], said: Said) -> list[Json]:
    """The fields of each conversation in the spans and log records of a trace.

    What is left out is added to `said`. Raises DamagedError with the span.
    """
    spans: dict[str, Json] = {}
    for record in sorted(records, key=lambda record: "startTimeUnixNano" not in record):
        span_id = as_text(record.get("spanId"))
        start = record.get("startTimeUnixNano")
        with inside(f"span {span_id}"):
            if start and spans.get(span_id, record)["startTimeUnixNano"] != start:
                span_id = f"{span_id}-{start}"
            if start:
                # What was written before it had ended is written again.
                spans.pop(span_id, None)
            _add(record, spans.setdefault(span_id, {"id": span_id}))
    _place(spans)
    in_time = sorted(spans.values(), key=lambda span: (span["start"], -span["end"]))
    talks = [span for span in in_time if span["kind"] not in _TOOL and _first(span, *_SAID)]
    below = [span for span in talks if span["is_below"]]
    talks = [span for span in talks if not span["is_below"]]
    calls = [span for span in talks if span["kind"] in _MODEL] or talks
    for call in calls:
        with inside(f"span {call['id']}"):
            call["before"] = _messages(call, _SYSTEM, "system") + _messages(call, _BEFORE)
            call["after"] = _messages(call, _AFTER)
    groups, repeated = _grouped(calls)
    is_alone = not groups[1:]
    tools = [span for span in in_time if span["kind"] in _TOOL and not span["is_below"]]
    is_cut = any(span.get("droppedAttributesCount") for span in talks)
    conversations = []
    for group in groups or [[]]:
        spans_of_it = in_time if is_alone else group
        about = {key: entry for span in reversed(spans_of_it) for key, entry in span.items()}
        run_id, cluster = trace_id, _first(about, *_CONVERSATION)
        if not is_alone:
            run_id = f"{trace_id}-{group[0]['id']}"
            cluster = group[0]["scope"][0] or trace_id
        conversations.append(
            {
                "messages": _joined(group, tools, is_alone=is_alone),
                "id": run_id,
                "cluster": as_text(cluster) or None,
                "metadata": {"model": _first(about, "gen_ai.request.model", "llm.model_name")},
                "no_messages": _NO_MESSAGES,
                "notices": [_DROPPED] if is_cut else [],
                "is_request": True,
                "opening": len(group[0]["before"]) if group else 0,
            }
        )
    uncalled = [] if is_alone else [tool for tool in tools if "is_called" not in tool]
    noted = {
        _BELOW: below,
        _REPEATED: repeated,
        _UNCALLED: uncalled,
    }
    for what, spans_of_it in noted.items():
        said.setdefault(what, []).extend(as_text(span.get("name")) for span in spans_of_it)
    if not is_alone:
        said.setdefault(_SEVERAL, []).append(f"{trace_id} ({len(groups)})")
    return conversations


def _place(spans: Mapping[str, Json]) -> None:
    """Say of each span whose it is, by those around it, and whether it is below a call."""
    inner: dict[Any, list[Json]] = {}
    for span in spans.values():
        inner.setdefault(span["parent"] if span["parent"] in spans else None, []).append(span)
    outermost_first = inner.get(None, [])
    for span in outermost_first:
        span["scope"] = None
        outermost_first += inner.get(span["id"], ())
    for span in outermost_first:
        outer = spans.get(span["parent"], {})
        conversation, agent, _ = outer.get("scope", ("", None, ""))
        kind, kind_around = span["kind"], outer.get("kind")
        says_it = kind in _MODEL and kind_around in _MODEL and _first(outer, *_SAID)
        span["is_below"] = outer.get("is_below") or kind_around in _TOOL or says_it
        conversation = as_text(_first(span, *_CONVERSATION)) or conversation
        agent = span["id"] if kind in _AGENT else agent
        span["scope"] = (conversation, agent, as_text(span.get("gen_ai.agent.name")))


def _grouped(calls: Sequence[Json]) -> tuple[list[list[Json]], list[Json]]:
    """The calls of each conversation, and those that only repeat another one.

    A call goes on from the one that it repeats, also where an agent hands over to another. The
    others of an agent are of one conversation where it is instructed alike.
    """
    threads = []
    for call in calls:
        turns = [(message["role"], keys) for message, keys in call["before"] + call["after"]]
        threads.append(thread_of(turns, len(call["before"])))
    scopes = [call["scope"] for call in calls]
    former, repeated = linked(threads, scopes)
    former = linked(threads, [scope[0] for scope in scopes])[0] | former
    followers: dict[int, int] = {}
    for number in sorted(former):
        followers.setdefault(former[number], number)
    links = {number: first for first, number in followers.items()}
    groups: dict[Any, list[Json]] = {}
    left_out = []
    for number, call in enumerate(calls):
        key: Any = end_of(links, number)
        # A branch repeats itself what was said before.
        if key not in former and any(scopes[key]):
            instructions = [
                keys for message, keys in calls[key]["before"] if is_system(message["role"])
            ]
            key = repr((scopes[key], instructions))
        first = repeated.get(number, number)
        group = groups.setdefault(key, [])
        # A next turn may say the same where the provider keeps what was said before.
        is_retry = number in former or first in followers or not group or group[0] is calls[first]
        if first != number and is_retry:
            left_out.append(call)
        else:
            group.append(call)
    return [group for group in groups.values() if group], left_out


def _add(record: Json, span: Json) -> None:
    """Add to a span its record, or a log record about it, with all attributes and events."""
    span |= _plain(record.get("attributes", [])) | record
    span["parent"] = as_text(span.get("parentSpanId")) or None
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
    span["kind"] = _first(span, *_KINDS)
    if not span["kind"] and _first(span, *_TOOL_ID):
        span["kind"] = _TOOL[0]


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


def _joined(calls: Sequence[Json], tools: Sequence[Json], *, is_alone: bool) -> list[Json]:
    """What was said in all calls, which repeat it, and what only tools have, in order of time.

    Of several conversations each has the tools that it calls.
    """
    moments: list[tuple[int, Json]] = []
    known: Counter[str] = Counter()
    for call in calls:
        before, after = call["before"], call["after"]
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
        call_id = _first(tool, *_TOOL_ID)
        if call_id in called:
            tool["is_called"] = True
        elif not is_alone:
            continue
        name = _first(tool, "gen_ai.tool.name", "tool.name")
        arguments = _first(tool, *_ARGUMENTS)
        result = _first(tool, *_RESULT)
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
            messages.append((message, keys_of(message)))
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

    def _prepare(self) -> None:
        super()._prepare()
        self.files: list[Path] = []

    def _items(self) -> Iterator[tuple[Item, bytes]]:
        traces: dict[str, tuple[Path, int, list[Json]]] = {}
        seen: set[int] = set()
        for file in self.files or [self.path]:
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
        said: Said = {}
        self._conversations: list[bytes] = []
        for trace_id, (self._file, line, records) in traces.items():
            with self._damage(line):
                found = conversations_of(trace_id, records, said)
            for fields in found:
                item = Item(len(self._conversations), 0, line)
                self._conversations.append(json.dumps(fields).encode())
                yield item, self._bytes(item)
        for (noun, what), names in said.items():
            if names:
                notice = f"{counted(len(names), noun)} {what}: {listed(dict.fromkeys(names), 5)}"
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
    check_depth(batch)
    for resources, scopes, records in _LEVELS:
        for resource in batch.get(resources, ()):
            for scope in resource.get(scopes, ()):
                yield from scope.get(records, ())


TRACES = Form(
    "OTLP trace", (*LINES, ".json"), trace, lambda head: bool(_FILE.match(head.text)), source=Traces
)

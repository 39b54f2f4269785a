"""Traces of OpenTelemetry: each is a run with the messages that were sent, however an
instrumentation records them; a file that is damaged is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import RunSummary, Skip
from pytest_jrh.sources import form_of, open_source
from pytest_jrh.sources.chat import read_messages
from pytest_jrh.sources.source import Source
from pytest_jrh.sources.traces import TRACES
from tests.support.sessions import as_text
from tests.support.traces import (
    WAYS,
    Json,
    as_trace,
    batch,
    log_batch,
    model_call,
    pairs,
    span,
    tool_span,
)

SYSTEM, ASKED = {"role": "system", "content": "You help."}, {"role": "user", "content": "Refund 7."}
DONE = {"role": "assistant", "content": "Done: 12.50 €."}
TRACE = f"{10:032x}"


def call(number: int, name: str, **arguments: Any) -> Json:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def calling(*calls: Json, content: str | None = None) -> Json:
    return {"role": "assistant", "content": content, "tool_calls": [*calls]}


def given(number: int, content: str = '{"paid": true}') -> Json:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": content}


CHATS: list[list[Json]] = [
    [ASKED, DONE],
    [SYSTEM, ASKED, calling(call(1, "find", id="7")), given(1), DONE],
    [SYSTEM, ASKED, calling(call(1, "find"), call(2, "find", id="8")), given(1), given(2), DONE],
    [ASKED, calling(call(1, "find", id="7"), content="A moment."), given(1, "[1, 2]"), DONE],
    [ASKED, calling(call(1, "find")), given(1), calling(call(2, "find")), given(2), DONE],
    [ASKED, DONE, ASKED, DONE, {"role": "user", "content": "Thanks."}, DONE],
    [ASKED, calling(call(1, "refund", id="7")), given(1, "no such order")],
    [
        {"role": "developer", "content": "Be brief."},
        ASKED,
        calling(call(1, "find")),
        given(1),
        DONE,
    ],
    [
        SYSTEM,
        ASKED,
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Go on."},
        DONE,
    ],
    [{"role": "user", "content": 'Ünï \u2028 "x" \n y'}, {"role": "assistant", "content": " a "}],
]


def written(path: Path, batches: Sequence[Any]) -> Source:
    text = as_text(batches)
    if path.suffix == ".json":
        merged: Json = {}
        for one in batches:
            for key, value in one.items():
                merged.setdefault(key, []).extend(value)
        text = json.dumps(merged, indent=1)
    path.write_text(text, encoding="utf-8")
    assert form_of(path) is TRACES
    return open_source(path)


def messages_of(source: Source, run_id: str = TRACE) -> list[Any]:
    return list(source.read(run_id, 1)[0].messages)


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize("way", WAYS)
def test_a_trace_has_the_messages_that_were_sent(tmp_path: Path, way: str, suffix: str) -> None:
    traces = [
        as_trace(way, f"{number:032x}", chat, **{"gen_ai.conversation.id": "c"})
        for number, chat in enumerate(CHATS)
    ]
    # The agents are at work at one time.
    batches = [one for together in zip_longest(*traces) for one in together if one is not None]
    source = written(tmp_path / f"traces{suffix}", batches)
    assert {summary.run_id for summary in source.summaries()} == {
        f"{number:032x}" for number in range(len(CHATS))
    }
    assert {summary.cluster for summary in source.summaries()} == {"c"}
    for number, chat in enumerate(CHATS):
        assert tuple(messages_of(source, f"{number:032x}")) == read_messages(chat)[0]
    assert source.read(f"{0:032x}", 1)[0].metadata == {"model": "m-1"}
    assert not source.notices()


def test_instructions_parts_and_tools_are_read(tmp_path: Path) -> None:
    thought = {"type": "reasoning", "content": "They want it back."}
    said = {"role": "assistant", "parts": [thought, {"type": "text", "content": "Done."}]}
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "uri", "uri": "https://a.example/b.png"}]}]
        ),
        "gen_ai.output.messages": json.dumps([said]),
        "gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "find"}]),
    }
    source = written(tmp_path / "t.jsonl", [batch(span(TRACE, 0, "chat", attributes))])
    assert source.summaries() == (RunSummary(TRACE, 1),)
    assert source.read(TRACE, 1)[0].tools == ({"name": "find", "parameters": None},)
    system, asked, answer = messages_of(source)
    assert (system["role"], system["content"]) == ("system", "Be brief.")
    assert asked["content"] == '[uri: {"uri": "https://a.example/b.png"}]'
    assert answer["content"] == [
        {"type": "reasoning", "reasoning": "They want it back."},
        {"type": "text", "text": "Done."},
    ]


def test_what_only_spans_of_tools_have_stands_in_its_time(tmp_path: Path) -> None:
    """A model that is asked in a conversation that the provider keeps, and a trace of an agent that
    records what it was asked and what it said."""
    kept = [
        *model_call("attributes", TRACE, 1, [SYSTEM, ASKED], calling(call(1, "find", id="7"))),
        batch(tool_span(TRACE, 2, call(1, "find", id="7"), "paid")),
        batch(tool_span(TRACE, 3, call(2, "log", id="7"), "ok")),
        *model_call("attributes", TRACE, 4, [SYSTEM], DONE),
    ]
    other = f"{11:032x}"
    [of_agent] = model_call("attributes", other, 0, [ASKED], DONE)
    [root] = of_agent["resourceSpans"][0]["scopeSpans"][0]["spans"]
    root["attributes"][0] = pairs({"gen_ai.operation.name": "invoke_agent"})[0]
    root["endTimeUnixNano"] += "0"
    agent = [batch(tool_span(other, 1, call(1, "find"), "paid")), of_agent]
    source = written(tmp_path / "t.jsonl", [*kept, *agent])
    calls = [calling(call(1, "find", id="7")), given(1, "paid")]
    calls += [calling(call(2, "log", id="7")), given(2, "ok")]
    assert tuple(messages_of(source)) == read_messages([SYSTEM, ASKED, *calls, DONE])[0]
    sent = [ASKED, calling(call(1, "find")), given(1, "paid"), DONE]
    assert tuple(messages_of(source, other)) == read_messages(sent)[0]


def test_what_is_said_twice_counts_twice_and_what_is_asked_again_once(tmp_path: Path) -> None:
    """Where the provider keeps the conversation, a call has only what is new; one that fails is
    made again."""
    yes, sure = {"role": "user", "content": "Yes."}, {"role": "assistant", "content": "Sure?"}
    batches = model_call("attributes", TRACE, 1, [SYSTEM, ASKED], sure)
    [record] = batches[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
    record["attributes"].pop()
    for number, asked in enumerate((ASKED, yes, yes, yes), start=2):
        batches += model_call("attributes", TRACE, number, [SYSTEM, asked], sure)
    source = written(tmp_path / "t.jsonl", batches)
    said = [SYSTEM, ASKED, sure, yes, sure, yes, sure, yes, sure]
    assert tuple(messages_of(source)) == read_messages(said)[0]


def test_calls_below_a_tool_or_a_call_are_left_out_and_said(tmp_path: Path) -> None:
    chat = CHATS[1]
    batches = as_trace("attributes", TRACE, chat)
    below = [
        *model_call("attributes", TRACE, 7, [{"role": "user", "content": "Find 7."}], DONE),
        *model_call("attributes", TRACE, 8, chat[:2], chat[2]),
    ]
    # The second span is the tool's, the first the model's, which two instrumentations record.
    for one, parent in zip(below, (2, 1), strict=True):
        [record] = one["resourceSpans"][0]["scopeSpans"][0]["spans"]
        record["parentSpanId"] = f"{parent:016x}"
    source = written(tmp_path / "t.jsonl", [*below, *batches])
    source.summaries()
    assert tuple(messages_of(source)) == read_messages(chat)[0]
    assert [notice for notice in source.notices() if "are left out" in notice]


def test_a_trace_without_messages_is_a_run_that_says_so(tmp_path: Path) -> None:
    spans = [span(TRACE, 0, "GET /", {"http.method": "GET"})]
    log = log_batch("", 0, "", {"content": "a log that is of no trace"}, {})
    source = written(tmp_path / "t.jsonl", [batch(*spans), log, {"resourceMetrics": []}])
    [summary] = source.summaries()
    why = "its spans have no messages: let the instrumentation record them"
    assert summary.skip == Skip("no_messages", why)


def in_span(key: str, value: Any) -> Callable[[Json], None]:
    def change(record: Json) -> None:
        record[key] = value

    return change


def attribute(key: str, value: Any) -> Callable[[Json], None]:
    return in_span("attributes", [{"key": key, "value": value}])


def messages(value: Any) -> Callable[[Json], None]:
    return attribute("gen_ai.input.messages", {"stringValue": json.dumps(value)})


DEEP = '{"resourceSpans": ' + "[" * 5_000
DAMAGE: dict[str, Callable[[Json], None] | str] = {
    "a line that is cut off": '{"resourceSpans": [{"scopeSpans"',
    "no object": '{"resourceSpans": []}\n{"resourceSpans": []}\n[3]',
    "nested too deep": DEEP,
    "no UTF-8": '{"resourceSpans": [], "x": "\udcff"}',
    "an object for a list": '{"resourceSpans": {"scopeSpans": []}}',
    "no trace": lambda record: record.pop("traceId") and None,
    "a list for a trace": in_span("traceId", []),
    "no time": in_span("startTimeUnixNano", "yesterday"),
    "a list for a time": in_span("endTimeUnixNano", [1]),
    "attributes of another form": in_span("attributes", [3]),
    "an attribute without a key": in_span("attributes", [{"value": {}}]),
    "two values": attribute("gen_ai.operation.name", {"stringValue": "chat", "intValue": 1}),
    "no integer": attribute("gen_ai.usage.input_tokens", {"intValue": "many"}),
    "events of another form": in_span("events", ["gen_ai.choice"]),
    "messages that are cut off": attribute("gen_ai.input.messages", {"stringValue": '[{"role'}),
    "messages that are none": messages("Hi."),
    "a message that is none": messages([3]),
    "no role": messages([{"parts": []}]),
    "parts of another form": messages([{"role": "user", "parts": [3]}]),
    "a part without a type": messages([{"role": "user", "parts": [{}]}]),
    "a call without a name": messages([{"role": "assistant", "parts": [{"type": "tool_call"}]}]),
    "messages nested too deep": messages(json.loads("[" * 200 + "]" * 200)),
    "numbers that are none": attribute(
        "llm.input_messages.x.message.role", {"stringValue": "user"}
    ),
    "an older event of another form": in_span(
        "events", [{"name": "gen_ai.choice", "attributes": pairs({"gen_ai.event.content": "{"})}]
    ),
}


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_said(
    tmp_path: Path, damage: Callable[[Json], None] | str, suffix: str
) -> None:
    path = tmp_path / f"t{suffix}"
    if isinstance(damage, str):
        path.write_bytes(damage.encode("utf-8", "surrogateescape"))
    else:
        record = span(f"{11:032x}", 9, "chat", {})
        damage(record)
        path.write_text(as_text([*as_trace("attributes", TRACE, CHATS[1]), batch(record)]), "utf-8")
    with pytest.raises(InputError) as caught:
        open_source(path).summaries()
    [problem] = caught.value.problems
    assert problem.file == str(path)
    assert problem.line is not None

"""Traces that an SDK of OpenTelemetry has written: each is a run with the messages that were sent,
however an instrumentation records them; a file that is damaged is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import set_span_in_context

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import RunSummary, Skip
from pytest_jrh.sources import form_of, open_source
from pytest_jrh.sources.chat import read_messages
from pytest_jrh.sources.source import Source
from pytest_jrh.sources.traces import TRACES
from tests.support.sessions import as_text
from tests.support.traces import WAYS, Json, Recording, trace_of

SYSTEM, ASKED = {"role": "system", "content": "You help."}, {"role": "user", "content": "Refund 7."}
DONE = {"role": "assistant", "content": "Done: 12.50 €."}


def call(number: int, name: str, **arguments: Any) -> Json:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def calling(*calls: Json, content: str | None = None) -> Json:
    return {"role": "assistant", "content": content, "tool_calls": [*calls]}


def given(number: int, content: str = '{"paid": true}') -> Json:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": content}


YES, SURE = {"role": "user", "content": "Yes."}, {"role": "assistant", "content": "Sure?"}
MOMENT = {"role": "assistant", "content": "A moment."}
FIND, CHECK = call(1, "find"), call(2, "find")
BOTH, RESULTS = calling(FIND, CHECK, content="A moment."), [given(1), given(2)]
CHATS: list[list[Json]] = [
    [ASKED, DONE],
    [SYSTEM, ASKED, calling(call(1, "find", id="7")), given(1), DONE],
    [SYSTEM, ASKED, calling(FIND, call(2, "find", id="8")), *RESULTS, DONE],
    [ASKED, calling(call(1, "find", id="7"), content="A moment."), given(1, "[1, 2]"), DONE],
    [ASKED, calling(FIND), given(1), calling(CHECK), given(2), DONE],
    [ASKED, DONE, ASKED, DONE, {"role": "user", "content": "Thanks."}, DONE],
    [ASKED, calling(call(1, "refund", id="7")), given(1, "no such order")],
    [{"role": "developer", "content": "Be brief."}, ASKED, calling(FIND), given(1), DONE],
    [SYSTEM, ASKED, SURE, YES, DONE],
    [{"role": "user", "content": 'Ünï \u2028 "x" \n y'}, {"role": "assistant", "content": " a "}],
]


def written(path: Path, batches: Sequence[Any]) -> Source:
    text = as_text(batches)
    if path.suffix == ".json":
        merged: Json = {}
        for batch in batches:
            for key, value in batch.items():
                merged.setdefault(key, []).extend(value)
        text = json.dumps(merged, indent=1)
    path.write_text(text, encoding="utf-8")
    assert form_of(path) is TRACES
    return open_source(path)


def messages_of(source: Source, run_id: str) -> tuple[Any, ...]:
    return source.read(run_id, 1)[0].messages


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize("way", WAYS)
def test_a_trace_has_the_messages_that_were_sent(tmp_path: Path, way: str, suffix: str) -> None:
    recording = Recording()
    agents = [recording.agent(chat, way, **{"gen_ai.conversation.id": "c"}) for chat in CHATS]
    # The agents are at work at one time.
    traces, *_ = zip_longest(*agents)
    source = written(tmp_path / f"traces{suffix}", recording.batches)
    assert {summary.run_id for summary in source.summaries()} == set(traces)
    assert {summary.cluster for summary in source.summaries()} == {"c"}
    for trace, chat in zip(traces, CHATS, strict=True):
        assert messages_of(source, trace) == read_messages(chat)[0]
    assert source.read(traces[0], 1)[0].metadata == {"model": "m-1"}
    assert not source.notices()


def test_instructions_parts_and_tools_are_read(tmp_path: Path) -> None:
    thought = {"type": "reasoning", "content": "They want it back."}
    said = {"role": "assistant", "parts": [thought, {"type": "text", "content": "Done."}]}
    blob = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBORw0="}
    link = {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "https://a.b/c"}
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [blob, link]}]),
        "gen_ai.output.messages": json.dumps([said]),
        "gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "find"}]),
    }
    recording = Recording()
    span = recording.start("chat", attributes)
    span.end()
    source = written(tmp_path / "t.jsonl", recording.batches)
    assert source.summaries() == (RunSummary(trace_of(span), 1),)
    assert source.read(trace_of(span), 1)[0].tools == ({"name": "find", "parameters": None},)
    system, asked, answer = messages_of(source, trace_of(span))
    assert (system["role"], system["content"]) == ("system", "Be brief.")
    assert asked["content"] == [
        {"type": "image", "image": "data:image/png;base64,iVBORw0="},
        {"type": "image", "image": "https://a.b/c"},
    ]
    assert answer["content"] == [
        {"type": "reasoning", "reasoning": "They want it back."},
        {"type": "text", "text": "Done."},
    ]


def test_an_image_of_openinference_is_one(tmp_path: Path) -> None:
    recording = Recording()
    place = "llm.input_messages.0.message."
    part = f"{place}contents.0.message_content."
    attributes = {f"{place}role": "user", f"{part}type": "image", f"{part}image.image.url": "u"}
    span = recording.start("ask", {"openinference.span.kind": "LLM", **attributes})
    span.end()
    source = written(tmp_path / "t.jsonl", recording.batches)
    [asked] = messages_of(source, trace_of(span))
    assert asked["content"] == [{"type": "image", "image": "u"}]


def test_what_only_spans_of_tools_have_stands_in_its_time(tmp_path: Path) -> None:
    """A model that is asked in a conversation that the provider keeps, and a trace of an agent that
    records what it was asked and what it said."""
    recording = Recording()
    root = recording.start("shop", {})
    kept = set_span_in_context(root)
    recording.model([SYSTEM, ASKED], calling(call(1, "find", id="7")), kept)
    recording.tool(call(1, "find", id="7"), "paid", kept)
    recording.tool(call(2, "log", id="7"), "ok", kept)
    recording.model([SYSTEM], DONE, kept)
    said = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.input.messages": json.dumps([ASKED]),
        "gen_ai.output.messages": json.dumps([DONE]),
    }
    agent = recording.start("invoke_agent", said)
    recording.tool(call(1, "find"), "paid", set_span_in_context(agent))
    agent.end()
    source = written(tmp_path / "t.jsonl", recording.batches)
    calls = [calling(call(1, "find", id="7")), given(1, "paid")]
    calls += [calling(call(2, "log", id="7")), given(2, "ok")]
    assert messages_of(source, trace_of(root)) == read_messages([SYSTEM, ASKED, *calls, DONE])[0]
    sent = [ASKED, calling(call(1, "find")), given(1, "paid"), DONE]
    assert messages_of(source, trace_of(agent)) == read_messages(sent)[0]


REPEATED: dict[str, tuple[list[tuple[list[Json], Json | None]], list[Json]]] = {
    "a conversation that the provider keeps, after a call that failed": (
        [([SYSTEM, ASKED], None), *(([SYSTEM, asked], SURE) for asked in (ASKED, YES, YES, YES))],
        [SYSTEM, ASKED, SURE, YES, SURE, YES, SURE, YES, SURE],
    ),
    "calls of one answer, each a message of its own afterwards": (
        [([ASKED], BOTH), ([ASKED, MOMENT, calling(FIND), calling(CHECK), *RESULTS], DONE)],
        [ASKED, BOTH, *RESULTS, DONE],
    ),
}


@pytest.mark.parametrize(("calls", "said"), REPEATED.values(), ids=REPEATED)
def test_what_is_said_twice_counts_twice_and_what_is_repeated_once(
    tmp_path: Path, calls: list[tuple[list[Json], Json | None]], said: list[Json]
) -> None:
    recording = Recording()
    root = recording.start("shop", {})
    for before, answer in calls:
        recording.model(before, answer, set_span_in_context(root))
    source = written(tmp_path / "t.jsonl", recording.batches)
    assert messages_of(source, trace_of(root)) == read_messages(said)[0]


def test_calls_below_a_tool_or_a_call_are_left_out_and_said(tmp_path: Path) -> None:
    """The second span is the tool's, the first the model's, which two instrumentations record; a
    library's own span without messages hides none below it."""
    recording = Recording()
    root = recording.start("shop", {"gen_ai.operation.name": "chat"})
    shop = set_span_in_context(root)
    asking = recording.model([ASKED], calling(FIND), shop)
    tool = recording.tool(FIND, "paid", shop)
    recording.model([ASKED, calling(FIND), given(1, "paid")], DONE, shop)
    source = written(tmp_path / "a.jsonl", recording.batches)
    said = read_messages([ASKED, calling(FIND), given(1, "paid"), DONE])[0]
    assert messages_of(source, trace_of(root)) == said
    assert not source.notices()
    recording.model([ASKED], calling(FIND), set_span_in_context(asking))
    recording.model([{"role": "user", "content": "Find 7."}], DONE, set_span_in_context(tool))
    source = written(tmp_path / "b.jsonl", recording.batches)
    assert messages_of(source, trace_of(root)) == said
    assert [notice for notice in source.notices() if "are left out" in notice]


def test_attributes_that_a_limit_of_the_sdk_drops_are_said(tmp_path: Path) -> None:
    recording = Recording()
    list(recording.agent([ASKED, DONE] * 40, "openinference"))
    source = written(tmp_path / "t.jsonl", recording.batches)
    source.summaries()
    assert [notice for notice in source.notices() if "COUNT_LIMIT" in notice]


def test_a_trace_without_messages_is_a_run_that_says_so(tmp_path: Path) -> None:
    """Roles and calls without what was said count for none: capturing it is off by default."""
    recording = Recording()
    recording.start("GET /", {"http.method": "GET"}).end()
    recording.log(body="a log that is of no trace")
    muted = [{"role": "user", "content": ""}, calling(FIND), given(1, "")]
    list(recording.agent([*muted, {"role": "assistant", "content": ""}], "logs"))
    source = written(tmp_path / "t.jsonl", [*recording.batches, {"resourceMetrics": []}])
    why = "its spans have no messages: let the instrumentation record them"
    assert [run.skip for run in source.summaries()] == [Skip("no_messages", why)] * 2


def in_span(key: str, value: Any) -> Callable[[Json], None]:
    def change(record: Json) -> None:
        record[key] = value

    return change


def attribute(key: str, value: Any) -> Callable[[Json], None]:
    return in_span("attributes", [{"key": key, "value": value}])


def messages(value: Any) -> Callable[[Json], None]:
    return attribute("gen_ai.input.messages", {"stringValue": json.dumps(value)})


CONTENT = {"key": "gen_ai.event.content", "value": {"stringValue": "{"}}
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
        "events", [{"name": "gen_ai.choice", "attributes": [CONTENT]}]
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
        recording = Recording()
        list(recording.agent(CHATS[1]))
        recording.start("chat", {}).end()
        batches = recording.batches
        damage(batches[-1]["resourceSpans"][0]["scopeSpans"][0]["spans"][0])
        path.write_text(as_text(batches), "utf-8")
    with pytest.raises(InputError) as caught:
        open_source(path).summaries()
    [problem] = caught.value.problems
    assert problem.file == str(path)
    assert problem.line is not None

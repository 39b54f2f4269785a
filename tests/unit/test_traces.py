"""Traces that an SDK of OpenTelemetry has written: each is a run with the messages that were sent,
however an instrumentation records them; a file that is damaged is said."""

import json
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Span, set_span_in_context

from pytest_jrh.core import InputError
from pytest_jrh.core.cases import RunSummary, Skip
from pytest_jrh.core.transcript import message_text
from pytest_jrh.sources import form_of, open_source, open_sources
from pytest_jrh.sources.chat import read_messages
from pytest_jrh.sources.source import Source
from pytest_jrh.sources.traces import TRACES
from tests.support.sessions import as_text

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


def text_part(text: str) -> Json:
    return {"type": "text", "content": text}


def said(role: str, text: str) -> Json:
    return {"role": role, "parts": [text_part(text)]}


pytestmark = pytest.mark.usefixtures("in_tmp_path")


@pytest.fixture
def recording() -> Recording:
    return Recording()


def written(recording: Recording, *more: Json, suffix: str = ".jsonl") -> Source:
    batches = [*recording.batches, *more]
    text = as_text(batches)
    if suffix == ".json":
        keys = ("resourceSpans", "resourceLogs")
        merged = {key: [one for batch in batches for one in batch.get(key, ())] for key in keys}
        text = json.dumps(merged, indent=1)
    path = Path(f"traces{suffix}")
    path.write_text(text, encoding="utf-8")
    assert form_of(path) is TRACES
    return open_source(path)


def messages_of(source: Source, span: Span | str) -> tuple[Any, ...]:
    run_id = span if isinstance(span, str) else trace_of(span)
    return source.read(run_id, 1)[0].messages


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize("way", WAYS)
def test_a_trace_has_the_messages_as_sent(recording: Recording, way: str, suffix: str) -> None:
    agents = [recording.agent(chat, way, **{"gen_ai.conversation.id": "c"}) for chat in CHATS]
    # The agents are at work at one time.
    traces, *_ = zip_longest(*agents)
    source = written(recording, suffix=suffix)
    assert {summary.run_id for summary in source.summaries()} == set(traces)
    assert {summary.cluster for summary in source.summaries()} == {"c"}
    for trace, chat in zip(traces, CHATS, strict=True):
        assert messages_of(source, trace) == read_messages(chat)[0]
    assert source.read(traces[0], 1)[0].metadata == {"model": "m-1"}
    assert not source.notices()


def test_instructions_parts_and_tools_are_read(recording: Recording) -> None:
    thought = {"type": "reasoning", "content": "They want it back."}
    about = {"modality": "image", "mime_type": "image/png"}
    blob, link = {"type": "blob", "content": "iVBORw0="}, {"type": "uri", "uri": "https://a.b/c"}
    asked = {"role": "user", "parts": [{**blob, **about}, {**link, **about}]}
    answered = {"role": "assistant", "parts": [thought, text_part("Done.")]}
    values: Json = {"system_instructions": [text_part("Be brief.")]}
    values |= {"input.messages": [asked], "output.messages": [answered]}
    attributes = {f"gen_ai.{key}": json.dumps(value) for key, value in values.items()}
    root = recording.start("shop", {})
    shop = set_span_in_context(root)
    recording.start("chat", {"gen_ai.operation.name": "chat", **attributes}, shop).end()
    part = {"type": "image", "image.image.url": "u"}
    shown: Json = {"role": "user", "contents.0.message_content": part}
    attributes = flat("llm.input_messages.0.message", shown) | {"openinference.span.kind": "LLM"}
    other = recording.start("ask", attributes)
    other.end()
    root.end()
    source = written(recording)
    assert source.summaries() == [RunSummary(trace_of(root), 1), RunSummary(trace_of(other), 1)]
    links = ("data:image/png;base64,iVBORw0=", "https://a.b/c", "u")
    images = [{"type": "image", "image": link} for link in links]
    reasoning = {"type": "reasoning", "reasoning": thought["content"]}
    answer = [reasoning, {"type": "text", "text": "Done."}]
    messages = [*messages_of(source, root), *messages_of(source, other)]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    contents = [message["content"] for message in messages]
    assert contents == ["Be brief.", images[:2], answer, images[2:]]


LOG = call(2, "log", id="7")
PAY = call(1, "find", id="7")
AGENT = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.input.messages": json.dumps([ASKED]),
    "gen_ai.output.messages": json.dumps([DONE]),
}
# What is done below an agent that records what it was asked and said (a model asked with what it
# answers, a tool called with its result), and the messages that this is.
STEPS: dict[str, tuple[list[tuple[Any, Any]], list[Json]]] = {
    "a conversation that the provider keeps, after a call that failed": (
        [([SYSTEM, ASKED], None), *(([SYSTEM, asked], SURE) for asked in (ASKED, YES, YES, YES))],
        [SYSTEM, ASKED, SURE, YES, SURE, YES, SURE, YES, SURE],
    ),
    "calls of one answer, each a message of its own afterwards": (
        [([ASKED], BOTH), ([ASKED, MOMENT, calling(FIND), calling(CHECK), *RESULTS], DONE)],
        [ASKED, BOTH, *RESULTS, DONE],
    ),
    "tools of a conversation that the provider keeps": (
        [([SYSTEM, ASKED], calling(PAY)), (PAY, "paid"), (LOG, "ok"), ([SYSTEM], DONE)],
        [SYSTEM, ASKED, calling(PAY), given(1, "paid"), calling(LOG), given(2, "ok"), DONE],
    ),
    "tools of a model that is not recorded": (
        [(FIND, "paid")],
        [ASKED, calling(FIND), given(1, "paid"), DONE],
    ),
}


@pytest.mark.parametrize(("steps", "said"), STEPS.values(), ids=STEPS)
def test_what_is_repeated_counts_once_and_what_only_tools_have_stands_in_its_time(
    recording: Recording, steps: list[tuple[Any, Any]], said: list[Json]
) -> None:
    root = recording.start("shop", AGENT)
    for asked, answer in steps:
        act: Any = recording.model if isinstance(asked, list) else recording.tool
        act(asked, answer, set_span_in_context(root))
    root.end()
    assert messages_of(written(recording), root) == read_messages(said)[0]


def test_calls_below_a_tool_or_a_call_are_left_out_and_said(recording: Recording) -> None:
    """The second span is the tool's, the first the model's, which two instrumentations record; a
    library's own span without messages hides none below it."""
    root = recording.start("shop", {"gen_ai.operation.name": "chat"})
    shop = set_span_in_context(root)
    asking = recording.model([ASKED], calling(FIND), shop)
    tool = recording.tool(FIND, "paid", shop)
    chat = [ASKED, calling(FIND), given(1, "paid")]
    recording.model(chat, DONE, shop)
    source = written(recording)
    said = read_messages([*chat, DONE])[0]
    assert messages_of(source, root) == said
    assert not source.notices()
    recording.model([ASKED], calling(FIND), set_span_in_context(asking))
    recording.model([{"role": "user", "content": "Find 7."}], DONE, set_span_in_context(tool))
    source = written(recording)
    assert messages_of(source, root) == said
    assert [notice for notice in source.notices() if "2 calls left out from inside" in notice]


def test_a_trace_without_messages_is_a_run_that_says_so(recording: Recording) -> None:
    """Roles and calls without what was said count for none: capturing it is off by default."""
    recording.start("GET /", {"http.method": "GET"}).end()
    recording.log(body="a log that is of no trace")
    muted = [{"role": "user", "content": ""}, calling(FIND), given(1, "")]
    list(recording.agent([*muted, {"role": "assistant", "content": ""}], "logs"))
    why = "its spans have no messages in the conventions of GenAI or OpenInference; let the "
    runs = written(recording, {"resourceMetrics": []}).summaries()
    skip = Skip("no_messages", f"{why}instrumentation record messages")
    assert [run.skip for run in runs] == [skip] * 2
    # So does a file of which a limit of the SDK has dropped attributes.
    list(recording.agent([ASKED, DONE] * 40, "openinference"))
    source = written(recording)
    source.summaries()
    assert "COUNT_LIMIT" in " ".join(source.notices())


def attribute(key: str, **value: Any) -> tuple[str, Any]:
    return "attributes", [{"key": key, "value": value}]


def messages(value: Any) -> tuple[str, Any]:
    return attribute("gen_ai.input.messages", stringValue=json.dumps(value))


CHOICE = {"name": "gen_ai.choice"}
CONTENT = {"key": "gen_ai.event.content", "value": {"stringValue": "{"}}
# The text of a file, or the key of a span with a value of which it is made.
DAMAGE: dict[str, tuple[str, Any] | str] = {
    "a line that is cut off": '{"resourceSpans": [{"scopeSpans"',
    "no object": '{"resourceSpans": []}\n{"resourceSpans": []}\n[3]',
    "nested too deep": '{"resourceSpans": ' + "[" * 5_000,
    "no UTF-8": '{"resourceSpans": [], "x": "\udcff"}',
    "an object for a list": '{"resourceSpans": {"scopeSpans": []}}',
    "no trace": ("traceId", ...),
    "a list for a trace": ("traceId", []),
    "no time": ("startTimeUnixNano", "yesterday"),
    "a list for a time": ("endTimeUnixNano", [1]),
    "attributes of another form": ("attributes", [3]),
    "an attribute without a key": ("attributes", [{"value": {}}]),
    "two values": attribute("gen_ai.operation.name", stringValue="chat", intValue=1),
    "no integer": attribute("gen_ai.usage.input_tokens", intValue="many"),
    "events of another form": ("events", ["gen_ai.choice"]),
    "messages that are cut off": attribute("gen_ai.input.messages", stringValue='[{"role'),
    "messages that are none": messages("Hi."),
    "a message that is none": messages([3]),
    "no role": messages([{"parts": []}]),
    "parts of another form": messages([{"role": "user", "parts": [3]}]),
    "a part whose type is not text": messages([{"role": "user", "parts": [{}]}]),
    "a call without a name": messages([{"role": "assistant", "parts": [{"type": "tool_call"}]}]),
    "messages nested too deep": messages(json.loads("[" * 200 + "]" * 200)),
    "numbers that are none": attribute("llm.input_messages.x.message.role", stringValue="user"),
    "an older event of another form": ("events", [{**CHOICE, "attributes": [CONTENT]}]),
}


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_said(recording: Recording, damage: tuple[str, Any] | str, suffix: str) -> None:
    path = Path(f"t{suffix}")
    if isinstance(damage, str):
        path.write_bytes(damage.encode("utf-8", "surrogateescape"))
    else:
        list(recording.agent(CHATS[1]))
        recording.start("chat", {}).end()
        batches = recording.batches
        record, (key, value) = batches[-1]["resourceSpans"][0]["scopeSpans"][0]["spans"][0], damage
        record[key] = value
        if value is ...:
            del record[key]
        path.write_text(as_text(batches), "utf-8")
    with pytest.raises(InputError) as caught:
        open_source(path).summaries()
    [problem] = caught.value.problems
    assert (problem.file, problem.line is None) == (str(path), False)


U1, A1, U2, A2, U3, A3 = (
    said(role, f"{role[0]}{n}") for n in (1, 2, 3) for role in ("user", "assistant")
)
SHOP, GUARD = said("system", "You help."), said("system", "Is it safe?")
SAFE = said("assistant", "yes")
FIRST, SECOND = ([U1], [A1]), ([U1, A1, U2], [A2])


def span(number: int, *words: list[Json], parent: int = 0, start: int = 0, **more: str) -> Json:
    """A call of a model that is asked and answers, in the trace `t` or another; without words
    another span, such as an agent."""
    start, trace = start or number, more.pop("trace", "t")
    values: Json = {"gen_ai.operation.name": "chat" if words else "invoke_agent"}
    for key, messages in zip(("input", "output"), words, strict=False):
        values[f"gen_ai.{key}.messages"] = json.dumps(messages)
    values |= {f"gen_ai.{key.replace('_', '.')}": value for key, value in more.items()}
    return {
        "traceId": trace,
        "spanId": str(number),
        "parentSpanId": str(parent or ""),
        "name": f"span {number}",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 1),
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in values.items()],
    }


def batch(*spans: Json) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n"


def found(*files: str) -> tuple[dict[str, str], str]:
    """The text of each run in traces over files, and what notices say."""
    folder = Path(mkdtemp(dir="."))
    for number, text in enumerate(files):
        (folder / f"{number}.jsonl").write_text(text)
    with open_sources([folder]) as source:
        runs = {}
        for run in source.summaries():
            messages = source.read(run.run_id, 1)[0].messages
            runs[run.run_id] = " ".join(map(message_text, messages))
        return runs, " ".join(source.notices())


WHOLE = "u1 a1 u2 a2"
ROOT, AGENTS = span(9, start=1), [span(8, parent=7), span(9, parent=7)]
# The spans of a trace, and the runs that are in it.
TRACES_OF: dict[str, tuple[list[Json], dict[str, str]]] = {
    "a title's call beside the agent's": (
        [span(1, *FIRST), span(2, [GUARD, U1], [SAFE]), span(3, *SECOND)],
        {"t-1": WHOLE, "t-2": "Is it safe? u1 yes"},
    ),
    "a guardrail in the agent": (
        [
            ROOT,
            span(1, [GUARD, U1], [SAFE], parent=9),
            span(2, [SHOP, U1], [A1], parent=9),
            span(3, [SHOP, U2], [A2], parent=9),
        ],
        {"t-1": "Is it safe? u1 yes", "t-2": f"You help. {WHOLE}"},
    ),
    "agents side by side that say the same": (
        [
            *AGENTS,
            *(span(number, *FIRST, parent=7 + number) for number in (1, 2)),
            span(3, [U1, A1, U2], [A2], parent=8),
            span(4, [U1, A1, U3], [A3], parent=9),
        ],
        {"t-1": WHOLE, "t-2": "u1 a1 u3 a3"},
    ),
    "one agent after another": (
        [*AGENTS, span(1, [SHOP, *FIRST[0]], [A1], parent=8), span(2, *SECOND, parent=9)],
        {"t": f"You help. {WHOLE}"},
    ),
    "agents that only calls name": (
        [
            span(1, *FIRST, agent_name="a"),
            span(2, [U3], [A3], agent_name="b"),
            span(3, [U2], [A2], agent_name="a"),
        ],
        {"t-1": WHOLE, "t-2": "u3 a3"},
    ),
    "two conversations": (
        [
            span(1, *FIRST, conversation_id="a"),
            span(2, *FIRST, conversation_id="b"),
            span(3, *SECOND, conversation_id="a"),
        ],
        {"t-1": WHOLE, "t-2": "u1 a1"},
    ),
    "a request that is sent again": (
        [ROOT, *(span(n, *FIRST, parent=9) for n in (1, 2)), span(3, *SECOND, parent=9)],
        {"t": WHOLE},
    ),
    "an answer that is made again": (
        [span(1, *FIRST), span(2, *SECOND), span(3, SECOND[0], [A3])],
        {"t-1": WHOLE, "t-3": "u1 a1 u2 a3"},
    ),
    "an id of two spans": ([span(1, *FIRST), span(1, *SECOND, start=5)], {"t": WHOLE}),
    "a span written twice": ([span(1, [U1], []), span(1, *FIRST), span(2, *SECOND)], {"t": WHOLE}),
    "a sub-agent that is a tool": (
        [
            ROOT,
            span(1, *FIRST, parent=9),
            span(5, parent=9, operation_name="execute_tool"),
            span(6, parent=5),
            span(7, [GUARD, U3], [A3], parent=6),
            span(8, *SECOND, parent=9),
        ],
        {"t": WHOLE},
    ),
    "calls out of order": ([span(2, *SECOND), span(1, *FIRST)], {"t": WHOLE}),
}


@pytest.mark.parametrize(("spans", "runs"), TRACES_OF.values(), ids=TRACES_OF)
def test_each_conversation_of_a_trace_is_a_run(spans: list[Json], runs: dict[str, str]) -> None:
    texts, notices = found(batch(*spans))
    assert texts == runs
    assert ("1 trace with several conversations" in notices) == (len(runs) > 1)


def test_a_trace_in_several_files_and_a_later_one_that_repeats_another_are_one_run() -> None:
    first, second = span(1, *FIRST), span(2, *SECOND)
    assert found(batch(second), batch(first)) == ({"t": WHOLE}, "")
    assert found(batch(first), batch(second), batch(second)) == ({"t": WHOLE}, "")
    runs, notices = found(batch(first, span(2, *SECOND, trace="u")))
    assert runs == {"u": WHOLE}
    assert notices == "1 case left out, because another case has all of the same messages: t (0)"

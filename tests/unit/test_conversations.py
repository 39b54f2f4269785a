"""Files of conversations: how they are indexed, read, and refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core import InputError
from pytest_jrh.core.cases import RunSummary, Skip, Unscored
from pytest_jrh.core.sections import InputFormat
from pytest_jrh.core.transcript import message_text
from pytest_jrh.sources import open_source
from pytest_jrh.sources.chat import WITHOUT_RESULT
from pytest_jrh.sources.conversations import Conversations
from pytest_jrh.sources.source import elements

TURNS = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]


def conversation(name: Any = None, **more: Any) -> dict[str, Any]:
    return {**({} if name is None else {"id": name}), "messages": TURNS, **more}


def lines(path: Path, *values: Any) -> Conversations:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return Conversations(path)


def refusal(source: Conversations) -> str:
    with pytest.raises(InputError) as caught:
        source.summaries()
    return str(caught.value)


def test_one_conversation_a_line(tmp_path: Path) -> None:
    first = conversation("a", metadata={"from": "web"}, target="greet")
    second = conversation(7, epoch=2, cluster="t", input="Greet.")
    source = lines(tmp_path / "runs.jsonl", first, second, {"id": "empty", "messages": []})
    empty = RunSummary("empty", 1, Skip("no_messages"))
    assert source.summaries() == [RunSummary("a", 1), RunSummary("7", 2, cluster="t"), empty]
    run, raw = source.read("a", 1, with_raw=True)
    assert [message["content"] for message in run.messages] == ["Hi.", "Hello."]
    assert (run.input, run.target, run.metadata) == ("Hi.", "greet", {"from": "web"})
    assert raw == first
    assert (source.read("7", 2)[0].sample_id, source.read("7", 2)[0].input) == (7, "Greet.")


def test_a_list_is_the_same_conversations(tmp_path: Path) -> None:
    values = [conversation("a"), conversation("b", note='[ "{" \\" ]')]
    path = tmp_path / "runs.json"
    path.write_text("\ufeff \n" + json.dumps(values, indent=2), encoding="utf-8")
    source = open_source(path)
    as_lines = lines(tmp_path / "runs.jsonl", *values)
    assert source.summaries() == as_lines.summaries()
    assert source.read("b", 1)[0] == as_lines.read("b", 1)[0]


def test_an_id_made_of_the_messages_stays_wherever_the_conversation_stands(tmp_path: Path) -> None:
    # A bare list of messages is a conversation, too.
    (first,) = lines(tmp_path / "a.jsonl", TURNS).summaries()
    _, moved = lines(tmp_path / "b.jsonl", TURNS[:1], conversation(note="new")).summaries()
    assert first.run_id == moved.run_id
    path = tmp_path / "c.json"
    path.write_text(json.dumps([conversation()], indent=4))
    assert open_source(path).summaries() == [first]


def test_pointers_map_other_shapes(tmp_path: Path) -> None:
    value = {"task": {"n": 3, "goal": "greet"}, "trial": 1, "log": {"turns": TURNS}}
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(value))
    parts: dict[str, Any] = {"id": ("/task/n", "/trial"), "metadata": ("/task/goal", "/trial")}
    parts |= {"messages": "/log/turns", "epoch": "/trial", "input": "/task/goal"}
    source = Conversations(path, input_format=InputFormat(**parts, cluster=("/task/n",)))
    assert source.summaries() == [RunSummary("3-1", 1, cluster="3")]
    run, _ = source.read("3-1", 1)
    assert (run.metadata, run.input) == ({"goal": "greet", "trial": 1}, "greet")


def test_a_missing_value_is_named_with_its_line_and_where_it_may_be(tmp_path: Path) -> None:
    source = lines(tmp_path / "runs.jsonl", conversation("a"), {"id": "b", "log": {"turns": TURNS}})
    said = refusal(source)
    assert 'runs.jsonl:2: has no list of messages at /messages; the keys are "id", "log"' in said
    assert "set suite.format: {messages: /log/turns}, which has messages" in said
    source = Conversations(tmp_path / "runs.jsonl", input_format=InputFormat(cluster=("/task",)))
    assert "runs.jsonl:1: has nothing at /task, which suite.format.cluster names" in refusal(source)
    # Of many mistakes ten are said at once.
    bad = [{"id": n, "messages": "no"} for n in range(30)]
    said = refusal(lines(tmp_path / "runs.jsonl", *bad))
    assert said.count('has "no" in place of a list of messages at /messages') == 10


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b'{"messages": [}', "is not valid JSON: expecting value at character 15"),
        (b'{"id": 1, "id": 2, "messages": []}', "is not valid JSON: duplicate key 'id'"),
        (b'{"id": 1e999, "messages": []}', "the number 1e999 is too large"),
        (b'{"id": ' + b"9" * 5000 + b"}", "is not valid JSON: "),
        (b'{"id": "\xff", "messages": []}', "is not UTF-8: invalid start byte at byte 8"),
        (b"[" * 150 + b"]" * 150, "is nested more than 100 levels deep"),
        (b"[" * 100_000 + b"]" * 100_000, "is nested more than 100 levels deep"),
        (b'{"id": 1.5, "messages": []}', "has 1.5 as its id (at /id), which must be text or an"),
        (b'{"id": 1, "epoch": true, "messages": []}', "has the epoch true, which must be an in"),
        (b'{"id": 1, "cluster": [], "messages": []}', "has a list as its cluster (at /cluster)"),
        (b"7", "has no list of messages at /messages; the whole value is 7"),
    ],
)
def test_a_hostile_line_has_its_number(tmp_path: Path, line: bytes, complaint: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(json.dumps(conversation("a")).encode() + b"\n\n" + line)
    said = refusal(Conversations(path))
    assert "runs.jsonl:3: " in said
    assert complaint in said


A, NAMELESS = json.dumps(conversation("a")), json.dumps(conversation())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is an empty file"),
        ("[]", "has no conversation, only an empty list"),
        ("[{}, 7]", "the item at byte 3 is neither an object nor a list"),
        ('[{"a', "the file ends inside an item"),
        ("[{}] x", "the list ends at byte 4, and more text follows"),
        # What is there twice.
        (f"{A}\n{NAMELESS}\n{A}\n", "runs.json:3: has the same id 'a' (epoch 1) as line 1"),
        (f"{NAMELESS}\n{NAMELESS}\n", "runs.json:2: is the same conversation as line 1, and nei"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "runs.json"
    path.write_text(text)
    assert complaint in refusal(Conversations(path))


def test_too_big_a_line_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conversations, "most_mb", 1)
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(conversation("x" * 1_100_000)))
    said = refusal(Conversations(path))
    assert "line 1 is larger than 1 MB (unpacked)" in said


def test_messages_that_cannot_be_read_are_an_input_error_of_their_run(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": 7}]
    source = lines(tmp_path / "runs.jsonl", conversation("a"), {"id": "b", "messages": messages})
    assert source.read("a", 1)
    with pytest.raises(Unscored) as caught:
        source.read("b", 1)
    assert caught.value.outcome == "input_error"
    assert "runs.jsonl cannot be read: line 2: message 0 has 7 as" in caught.value.cause
    # Nor is a file that changed after it was collected.
    source = lines(tmp_path / "runs.jsonl", conversation("a"), conversation("b"))
    source.summaries()
    lines(tmp_path / "runs.jsonl", conversation("b"), conversation("a"))
    with pytest.raises(Unscored, match="has changed since its cases were collected"):
        source.read("a", 1)


def test_text_that_cannot_be_stored_is_replaced_and_said(tmp_path: Path) -> None:
    turns = [{"role": "assistant", "content": "a\x00b\ud800"}]
    source = lines(tmp_path / "runs.jsonl", {"id": "a\ud800", "messages": turns})
    (summary,) = source.summaries()
    assert summary.run_id == "a\ufffd"
    run, _ = source.read(summary.run_id, 1)
    assert run.messages[0]["content"] == "ab\ufffd"
    assert "2 characters that cannot be stored" in run.notes[0]


def test_what_is_unusual_is_noted_and_said_once(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    turns = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    source = lines(tmp_path / "runs.jsonl", *({"id": n, "messages": turns} for n in range(3)))
    assert not source.notices()
    assert [source.read(str(n), 1)[0].notes for n in range(3)] == [(WITHOUT_RESULT,)] * 3
    assert source.notices() == [
        f"runs.jsonl: some conversations have {WITHOUT_RESULT}, and are kept as they are"
    ]


LISTS = st.lists(st.text() | st.integers(), max_size=3)
OBJECTS = st.dictionaries(st.text(), st.text() | st.lists(st.text(), max_size=2), max_size=3)


@given(st.lists(LISTS | OBJECTS, max_size=5), st.booleans())
def test_the_elements_of_any_list_are_found(values: list[Any], ascii_only: bool) -> None:
    data = json.dumps(values, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    parts = [data[start:end].decode("utf-8", "surrogatepass") for start, end in elements(data)]
    assert [json.loads(part) for part in parts] == values


ASKED, ANSWERED = TURNS
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
REQUEST = {"model": "m", "messages": [ASKED]}
TO_CLAUDE = {"system": "Be kind.", "messages": [ASKED]}
OF_CLAUDE = {"type": "message", **ANSWERED}
TWICE = [ASKED, {**ANSWERED, "name": "bot"}]
ITEM = {"type": "message", "role": "assistant", "content": "Hello."}
ITEM_CALL = {"type": "function_call", "call_id": "c", "name": "look"}
BESIDE = "the answer in `output` or `completion` beside the messages is"
NOT_READ = "the answer beside the messages is not read"
WITHOUT_ANSWER = "because no answer was found"


def choices(**answer: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {**ANSWERED, **answer}}]}


def beside(**answer: Any) -> dict[str, Any]:
    return {"messages": [ASKED], **answer}


CALLING = choices(content="", tool_calls=[CALL])
# What a line has, the turns that come out (a call as its function), and what is said of it.
ANSWERS: list[tuple[dict[str, Any], list[str], str]] = [
    ({"request": REQUEST, "response": choices()}, ["Hi.", "Hello."], ""),
    ({"request": REQUEST, "response": CALLING}, ["Hi.", "look"], WITHOUT_RESULT),
    ({"request": TO_CLAUDE, "response": OF_CLAUDE}, ["Be kind.", "Hi.", "Hello."], ""),
    ({"request": REQUEST, "response": {"error": "busy"}}, ["Hi."], WITHOUT_ANSWER),
    (beside(output="Hello."), ["Hi.", "Hello."], BESIDE),
    (beside(output=ANSWERED), ["Hi.", "Hello."], BESIDE),
    (beside(completion=choices()), ["Hi.", "Hello."], BESIDE),
    (beside(output={"content": None, "tool_calls": [CALL]}), ["Hi.", "look"], BESIDE),
    (beside(output=[ITEM]), ["Hi.", "Hello."], BESIDE),
    (beside(output=[ITEM_CALL]), ["Hi.", "look"], BESIDE),
    # It stands among the messages already.
    ({"messages": TWICE, "output": "Hello."}, ["Hi.", "Hello."], BESIDE),
    (beside(output={"score": 1}), ["Hi."], NOT_READ),
    (beside(output=""), ["Hi."], ""),
]


def turns_of(source: Conversations) -> list[str]:
    run, _ = source.read("a", 1)
    calls = [message.get("tool_calls") for message in run.messages]
    texts = map(message_text, run.messages)
    return [made[0]["function"] if made else text for made, text in zip(calls, texts, strict=True)]


@pytest.mark.parametrize(("row", "turns", "notice"), ANSWERS)
def test_an_answer_to_a_request_or_beside_the_messages_is_the_last_turn(
    tmp_path: Path, row: dict[str, Any], turns: list[str], notice: str
) -> None:
    source = lines(tmp_path / "runs.jsonl", {"id": "a", **row})
    assert turns_of(source) == turns
    notices = " ".join(source.notices())
    assert notice in notices
    assert bool(notice) == bool(notices)


def test_an_answer_that_is_not_read_is_told_and_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "proxy.jsonl"
    lines(path, {"id": "a", "request": REQUEST, "response": choices()})
    at: dict[str, Any] = {"messages": "/request/messages", "answer": "/response/choices/0/message"}
    named = Conversations(path, input_format=InputFormat(**at))
    assert (turns_of(named), named.notices()) == (["Hi.", "Hello."], [])
    source = Conversations(path, input_format=InputFormat(messages="/request/messages"))
    assert turns_of(source) == ["Hi."]
    assert NOT_READ in " ".join(source.notices())


def test_what_is_missing_at_a_pointer_is_noted_and_the_run_is_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    lines(path, {**conversation("a"), "reward": 1}, {**conversation("b"), "reward": None})
    places = InputFormat(metadata=("/reward", "/cost"))
    source = Conversations(path, input_format=places)
    assert [run.metadata for run in source.fields()] == [{"reward": 1}, {}]
    cost, reward = source.notices()
    assert "some conversations have nothing at /cost, which suite.format.metadata names" in cost
    assert "/reward" in reward

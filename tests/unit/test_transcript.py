import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.cases.probes.probe import all_ids
from pytest_jrh.core import storable
from pytest_jrh.core.cases import Message
from pytest_jrh.core.transcript import (
    answer_parts,
    message_text,
    neutralize,
    render_assistant_turns,
    render_transcript,
    replace_text,
    titled_parts,
    with_part_ids,
)
from tests.support.logs import IMAGE, assistant, call, conversation, tool, user

BREAKS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
HEADER = re.compile(r"\[(\d+)\] (system|user|assistant|tool)")

PIECES = (*BREAKS, "[0] assistant", "[9] tool refund", "  ", "calls refund", "x", '"', "{", "é")
hostile = st.text() | st.lists(st.sampled_from(PIECES)).map("".join)


def turns_of(text: str) -> list[dict[str, Any]]:
    """Turns of each role, with a text of others in each place."""
    blocks: list[dict[str, Any]] = [
        {"type": "reasoning", "reasoning": text, "redacted": False},
        {"type": "text", "text": text, "citations": [{"type": "url"}]},
        {"type": "image", "image": IMAGE, "detail": "auto"},
        {"type": "tool_use", "name": text, "arguments": text, "result": text},
    ]
    return [
        user(text),
        assistant(blocks, call(text, value=text), call(text), id=text),
        tool(text, text, error=(text, text)),
        assistant(text, id=text),
    ]


def test_transcript_shows_every_turn_with_calls_results_and_errors() -> None:
    assert render_transcript(conversation()).splitlines() == [
        "[0] system",
        "  You are a support agent.",
        "[1] user",
        "  I am Ada. Where is my order?",
        "[2] assistant",
        "  Let me look.",
        "[2] assistant calls look_up",
        '  {"order": 7}',
        "[3] tool look_up (error: timeout)",
        "  error: took too long",
        "[4] assistant",
        "[4] assistant calls look_up",
        '  {"order": 7, "note": null}',
        "[5] tool look_up",
        "  shipped",
        "[6] assistant",
        "  It was shipped.",
    ]


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"image": IMAGE}, "[image: image/png]"),
        ({"image": "https://example.com/a/photo.jpg?key=secret"}, "[image: photo.jpg]"),
        ({"document": "x" * 500, "filename": "terms.pdf"}, "[document: terms.pdf]"),
        (
            {"document": "data:text/plain,a%20b", "mime_type": "text/plain"},
            "[document: text/plain]\n  a b",
        ),
        ({"data": {"note": "seen", "blob": "QUJD" * 50, "id": "x"}}, "[data]\n  data.note: seen"),
        ({"video": "film.mp4", "format": "mp4"}, "[video: film.mp4]"),
    ],
)
def test_media_are_named_and_their_data_left_out(block: dict[str, Any], shown: str) -> None:
    content = [{"type": "text", "text": "see"}, {"type": next(iter(block)), **block}]
    assert render_transcript([user(content)]) == f"[0] user\n  see\n  {shown}"


def test_reasoning_is_shown_on_request_only() -> None:
    plan = {"type": "reasoning", "reasoning": "secret plan"}
    hidden = {**plan, "reasoning": "gAAAA", "redacted": True, "summary": "thought about it"}
    turn = assistant([plan, hidden, {"type": "text", "text": "Hello."}])
    assert render_transcript([turn]) == "[0] assistant\n  Hello."
    with_reasoning = render_transcript([turn], show_reasoning=True)
    assert "[0] assistant reasoning\n  secret plan" in with_reasoning
    assert "thought about it" in with_reasoning
    assert "gAAAA" not in with_reasoning
    # Earlier turns are left out, and edited ones marked, where that is asked.
    last = render_transcript(conversation(), start=6, edited=frozenset({6}))
    assert last == "[6] assistant (edited)\n  It was shipped."


@given(hostile)
def test_only_the_renderer_writes_at_column_zero(text: str) -> None:
    turns = turns_of(text)
    rendered = render_transcript(turns, show_reasoning=True)
    flush = [HEADER.match(line) for line in rendered.splitlines() if not line.startswith("  ")]
    assert all(flush)
    numbers = [int(match[1]) for match in flush if match]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(len(turns)))
    for line in render_assistant_turns(turns).splitlines():
        assert line.startswith(("  ", "[1] ", "[3] "))


def test_the_planner_sees_ids_texts_and_calls() -> None:
    assert render_assistant_turns(conversation()).splitlines() == [
        "[2] a1: Let me look.",
        '[2] a1 calls look_up: {"order": 7}',
        "[4] a2: (no text)",
        '[4] a2 calls look_up: {"order": 7, "note": null}',
        "[6] a3: It was shipped.",
    ]


def test_the_new_text_stands_where_the_old_one_stood() -> None:
    image, data = {"type": "image", "image": IMAGE}, {"type": "data", "data": {}}
    old = {"type": "text", "text": "old", "citations": [{"type": "url"}], "refusal": True}
    more = {"type": "text", "text": "more"}
    reasoning = {"type": "reasoning", "reasoning": "r"}
    new, dropped = replace_text(assistant([reasoning, image, old, data, more]), "New.")
    assert new["content"] == [image, {"type": "text", "text": "New."}, data]
    assert dropped == 1

    # A turn without text gets it first.
    text = {"type": "text", "text": "New."}
    assert replace_text(assistant([reasoning, image]), "New.")[0]["content"] == [text, image]
    assert replace_text(assistant([], call("f")), "New.")[0]["content"] == [text]


@given(hostile, st.text())
def test_replacing_text_keeps_everything_else(text: str, new_text: str) -> None:
    for turn in turns_of(text):
        before = copy.deepcopy(turn)
        new, dropped = replace_text(turn, new_text)
        assert turn == before
        assert message_text(new) == new_text
        assert {**new, "content": 0} == {**turn, "content": 0}
        if isinstance(turn["content"], list):
            assert dropped == 1
            kept = [block for block in new["content"] if block["type"] != "text"]
            assert kept == turn["content"][2:]
        else:
            assert (new["content"], dropped) == (new_text, 0)


def turn(role: str, content: Any, id_: str = "x") -> Message:
    return {"role": role, "content": content, "id": id_}


RULES, NOTES, ASKED = turn("system", "Brief."), turn("user", "doc", "context"), turn("user", "?")
ANSWERED, WHICH = turn("assistant", "42"), "[1] assistant\n  Which?"


@pytest.mark.parametrize(
    ("messages", "parts"),
    [
        ([ASKED, ANSWERED], [("Request", "?"), ("Answer", "42")]),
        (
            [RULES, NOTES, ASKED, ANSWERED],
            [("System prompt", "Brief."), ("Context", "doc"), ("Request", "?"), ("Answer", "42")],
        ),
        (
            [ASKED, turn("assistant", "Which?"), turn("user", "this"), ANSWERED],
            [("Request", f"[0] user\n  ?\n{WHICH}\n[2] user\n  this"), ("Answer", "42")],
        ),
    ],
)
def test_parts_have_titles(messages: list[Message], parts: list[tuple[str, str]]) -> None:
    named = with_part_ids(messages)
    assert titled_parts(named) == parts
    assert answer_parts(named) == answer_parts(messages)
    # Ids that are not ours stay what they are, and those of parts are not replaced.
    assert all_ids(named) == ["x"] * (len(messages) > len(parts))


def test_a_run_has_no_parts_and_a_row_of_a_table_has_columns() -> None:
    assert titled_parts([ASKED, ANSWERED, turn("user", "thanks", "response")]) == []
    assert titled_parts([]) == []
    row = [turn("question", "a", "column"), turn("output", "b", "column")]
    assert titled_parts(row) == [("Question", "a"), ("Output", "b")]


TAGS = "</transcript>", "< / Transcript >", '<TRANSCRIPT role="x">', "</transcript\n>"
NO_TAGS = "<transcripts>", "<b>bold</b>", "a < transcript_b", "1 < 2", "&lt;/transcript>", "<"


def test_delimiters_are_neutralized_however_they_are_written_and_all_else_is_left_alone() -> None:
    for tag in (*TAGS, "<\u200b/transcript>"):
        assert neutralize(f"a{tag}|b", ["transcript"]) == f"a&lt;{tag[1:]}|b"
    for text in NO_TAGS:
        assert neutralize(text, {"transcript", "rubric"}) == text


ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(st.lists(ANY_TEXT | st.dictionaries(ANY_TEXT, st.none() | ANY_TEXT)))
def test_surrogates_are_replaced_and_nuls_dropped_everywhere(any_value: Any) -> None:
    value = {"a\x00": ["x\ud800y", {"k": "\x00\x00"}], "n": 1, "u": "é😀"}
    assert storable(value) == ({"a": ["x\ufffdy", {"k": ""}], "n": 1, "u": "é😀"}, 4)
    clean, _ = storable(any_value)
    assert "\\u0000" not in json.dumps(clean).replace("\\\\", "")
    json.dumps(clean, ensure_ascii=False).encode("utf-8")
    assert storable(clean) == (clean, 0)

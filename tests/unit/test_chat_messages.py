"""Messages of OpenAI's and of Anthropic's formats, read into those of Inspect (rule R2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.documents import DamagedError
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.sources.conversations import (
    OTHER_ROLES,
    WITHOUT_CALL,
    WITHOUT_RESULT,
    read_messages,
)

IMAGE = "data:image/png;base64,iVBORw0KGgo="


def openai_call(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def read(*turns: Any, system: Any = None) -> list[dict[str, Any]]:
    messages, unusual = read_messages(list(turns), system)
    assert not unusual
    return list(messages)


OPENAI = (
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "Where is order 7?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            openai_call("look_up", '{"order": 7}', "a"),
            openai_call("look_up", '{"order": 8}', "b"),
        ],
    },
    {"role": "tool", "tool_call_id": "b", "content": "lost"},
    {"role": "tool", "tool_call_id": "a", "name": "look_up", "content": "shipped"},
    {"role": "assistant", "content": [{"type": "text", "text": "It was shipped."}]},
)
ANTHROPIC = (
    {"role": "user", "content": "Where is order 7?"},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "a", "name": "look_up", "input": {"order": 7}},
            {"type": "tool_use", "id": "b", "name": "look_up", "input": {"order": 8}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": "lost"},
            {
                "type": "tool_result",
                "tool_use_id": "a",
                "content": [{"type": "text", "text": "shipped"}],
            },
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "It was shipped."}]},
)


def test_both_formats_give_the_same_transcript() -> None:
    openai, anthropic = read(*OPENAI), read(*ANTHROPIC, system="Be brief.")
    assert openai == anthropic
    assert render_transcript(openai) == (
        "[0] system\n  Be brief.\n"
        "[1] user\n  Where is order 7?\n"
        '[2] assistant\n[2] assistant calls look_up\n  {"order": 7}\n'
        '[2] assistant calls look_up\n  {"order": 8}\n'
        "[3] tool look_up\n  lost\n"
        "[4] tool look_up\n  shipped\n"
        "[5] assistant\n  It was shipped."
    )


def test_a_legacy_function_call_is_paired_with_its_result() -> None:
    call = {"name": "look_up", "arguments": '{"order": 7}'}
    messages = read(
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "look_up", "content": "shipped"},
    )
    assert messages[1]["tool_call_id"] == messages[0]["tool_calls"][0]["id"]
    assert messages[1]["function"] == "look_up"


@pytest.mark.parametrize(
    "text", ['{"order": ', "7", '{"a": 1, "a": 2}', '{"a": NaN}', "[" * 50_000, '{"a": 1e999}']
)
def test_arguments_that_are_no_json_object_are_kept_as_they_are(text: str) -> None:
    (message,), _ = read_messages([{"role": "assistant", "tool_calls": [openai_call("f", text)]}])
    (call,) = message["tool_calls"]
    assert call["arguments"] == {}
    assert call["parse_error"] == f"the arguments are no JSON object: {text}"
    assert text in render_transcript([message])


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ({"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}}, "image/png"),
        ({"type": "input_image", "image_url": IMAGE}, "image/png"),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
            },
            "image/png",
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}}, "a.png"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "audio/wav"),
        ({"type": "file", "file": {"filename": "bill.pdf", "file_data": "AAAA"}}, "bill.pdf"),
    ],
)
def test_media_are_named(part: dict[str, Any], block: str) -> None:
    (message,) = read({"role": "user", "content": [{"type": "text", "text": "See:"}, part]})
    assert block in render_transcript([message])


def test_documents_and_finds_that_are_text_are_shown() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "Refunds: 30 days."}
    found = {"type": "search_result", "source": "faq", "title": "FAQ"}
    parts = [
        {"type": "document", "source": source},
        {**found, "content": [{"type": "text", "text": "Open on Sundays."}]},
    ]
    rendered = render_transcript(read({"role": "user", "content": parts}))
    assert rendered.splitlines()[1:] == [
        "  [document: text]",
        "  Refunds: 30 days.",
        "  [search_result: FAQ]",
        "  Open on Sundays.",
    ]


def test_reasoning_and_refusals_are_blocks_of_their_own() -> None:
    messages = read(
        {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]},
        {"role": "assistant", "content": None, "refusal": "I will not."},
        {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "Spoken."}},
    )
    assert [message["content"][0]["type"] for message in messages[:3]] == [
        "reasoning",
        "reasoning",
        "text",
    ]
    assert messages[3]["content"] == "Spoken."
    assert "Hm." not in render_transcript(messages)
    assert "I will not." in render_transcript(messages)


def test_a_result_that_failed_says_so() -> None:
    messages = read(
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "pay", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "no card", "is_error": True},
                {"type": "text", "text": "Try again."},
            ],
        },
    )
    assert [message["role"] for message in messages] == ["assistant", "tool", "user"]
    assert "[1] tool pay (error: unknown)\n  error: no card" in render_transcript(messages)


def test_what_the_provider_ran_is_shown_with_its_result() -> None:
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "X"}]}
    rendered = render_transcript(read({"role": "assistant", "content": [use, result]}))
    assert '{"query": "x"}' in rendered
    assert '[{"title": "X"}]' in rendered
    assert "[not in the log]" in render_transcript(read({"role": "assistant", "content": [use]}))


@pytest.mark.parametrize(
    ("turns", "what"),
    [
        ([{"role": "assistant", "tool_calls": [openai_call("f", "{}")]}], WITHOUT_RESULT),
        ([{"role": "tool", "tool_call_id": "a", "content": "done"}], WITHOUT_CALL),
        ([{"role": "observer", "content": "Watching."}], OTHER_ROLES),
    ],
)
def test_what_has_no_counterpart_is_kept_and_said(turns: list[Any], what: str) -> None:
    messages, unusual = read_messages(turns)
    assert (len(messages), unusual) == (1, (what,))


@pytest.mark.parametrize(
    ("turn", "complaint"),
    [
        ("hello", 'message 1 is "hello"; must be an object with a role'),
        ({"content": "x"}, "message 1 has the role nothing; must be one of system, user"),
        ({"role": "assistant calls pay"}, 'message 1 has the role "assistant calls pay"'),
        ({"role": "user", "content": 7}, "message 1 has 7 as its content"),
        ({"role": "user", "text": "Hi."}, "message 1 has text in place of content"),
        ({"role": "model", "parts": [{"text": "Hi."}]}, "message 1 has parts in place of content"),
        ({"role": "user", "content": [7]}, "message 1 has a part that is 7"),
        ({"role": "assistant", "tool_calls": {}}, "message 1 has a mapping of keys as its tool_"),
        ({"role": "assistant", "tool_calls": [{}]}, "message 1 has a tool call with the name noth"),
    ],
)
def test_a_message_that_cannot_be_read_is_named(turn: Any, complaint: str) -> None:
    with pytest.raises(DamagedError) as caught:
        read_messages([{"role": "user", "content": "Hi."}, turn])
    assert str(caught.value).startswith(complaint)


def test_further_keys_of_a_message_are_kept_as_its_metadata() -> None:
    (message,) = read({"role": "user", "content": "Hi.", "name": "Ada", "annotations": []})
    assert message["metadata"] == {"name": "Ada"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "id", "name", "input", "function"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "tool", "critic"])},
            optional={
                "content": json_values,
                "tool_calls": json_values,
                "function_call": json_values,
                "tool_call_id": json_values,
                "error": json_values,
            },
        )
        | json_values,
        max_size=4,
    )
)
def test_any_json_is_read_or_refused_in_words(turns: list[Any]) -> None:
    try:
        messages, _ = read_messages(turns)
    except DamagedError:
        return
    render_transcript(messages)
    json.dumps(messages)

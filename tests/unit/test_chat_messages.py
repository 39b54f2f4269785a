"""Messages of OpenAI's and of Anthropic's formats, read into those of Inspect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.documents import DamagedError
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.sources.chat import (
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


def test_a_result_of_the_provider_in_the_next_message_is_joined_to_its_call() -> None:
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "X"}]}
    text = {"type": "text", "text": "Found."}
    failed = {"type": "mcp_tool_use", "id": "m", "name": "look", "input": {}}
    refused = {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": "no"}
    messages = read(
        {"role": "assistant", "content": [use]},
        {"role": "assistant", "content": [result, text, failed]},
        {"role": "user", "content": [refused]},
    )
    assert render_transcript(messages).splitlines() == [
        "[0] assistant calls web_search (run by the provider)",
        '  {"query": "x"}',
        "[0] assistant gets the result of web_search",
        '  [{"title": "X"}]',
        "[0] assistant",
        "[1] assistant",
        "  Found.",
        "[1] assistant calls look (run by the provider)",
        "  {}",
        "[1] assistant gets the result of look",
        "  ",
        "  error: no",
    ]


def test_a_result_of_the_provider_without_a_call_keeps_its_json() -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "X"}]}
    (message,) = read({"role": "assistant", "content": [result]})
    assert message["content"] == (
        '[web_search_tool_result: {"tool_use_id": "s", "content": [{"title": "X"}]}]'
    )


def test_a_part_of_an_unknown_type_keeps_its_json_cut_with_a_sign() -> None:
    part = {"type": "hologram", "scene": "a café", "depth": 3}
    (message,) = read({"role": "user", "content": [part, {"type": "text", "text": "See?"}]})
    assert render_transcript([message]).splitlines()[1:] == [
        '  [hologram: {"scene": "a café", "depth": 3}]',
        "  See?",
    ]
    (message,) = read({"role": "user", "content": [{"type": "hologram", "scene": "x" * 10_000}]})
    assert message["content"].endswith("xxx ... and 6,013 more characters]")
    assert len(message["content"]) < 4_100


def sdk_call(call_id: str, **fields: Any) -> dict[str, Any]:
    """A part of the Vercel AI SDK."""
    return {"type": "tool-call", "toolCallId": call_id, "toolName": "look_up", **fields}


def sdk_result(call_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": call_id, "toolName": "look_up", **fields}


def ui_call(call_id: str, order: int, **fields: Any) -> dict[str, Any]:
    call = {"type": "tool-look_up", "toolCallId": call_id, "input": {"order": order}}
    return {"state": "output-available", **call, **fields}


def old_ui_call(call_id: str, order: int, result: str) -> dict[str, Any]:
    call = {"toolCallId": call_id, "toolName": "look_up", "args": {"order": order}}
    invocation = {"state": "result", "step": 0, **call, "result": result}
    return {"type": "tool-invocation", "toolInvocation": invocation}


STEP = {"type": "step-start"}
SAID = {"type": "text", "text": "It was shipped."}
ASKED = {"role": "user", "content": "Where is order 7?"}
AI_SDK: dict[str, list[dict[str, Any]]] = {
    "version 4, for models": [
        {
            "role": "assistant",
            "content": [
                sdk_call("a", args={"order": 7}),
                sdk_call("b", args={"order": 8}),
            ],
        },
        {
            "role": "tool",
            "content": [sdk_result("a", result="shipped"), sdk_result("b", result="lost")],
        },
        {"role": "assistant", "content": [SAID]},
    ],
    "version 5, for models": [
        {
            "role": "assistant",
            "content": [
                sdk_call("a", input={"order": 7}),
                sdk_call("b", input={"order": 8}),
            ],
        },
        {
            "role": "tool",
            "content": [
                sdk_result("a", output={"type": "text", "value": "shipped"}),
                sdk_result(
                    "b",
                    output={"type": "content", "value": [{"type": "text", "text": "lost"}]},
                ),
            ],
        },
        {"role": "assistant", "content": [SAID]},
    ],
    "run by the provider": [
        {
            "role": "assistant",
            "content": [
                sdk_call("a", input={"order": 7}, providerExecuted=True),
                sdk_call("b", input={"order": 8}, providerExecuted=True),
                sdk_result("a", output={"type": "text", "value": "shipped"}),
                sdk_result("b", output={"type": "text", "value": "lost"}),
                SAID,
            ],
        }
    ],
    "version 4, of the user interface": [
        {
            "role": "assistant",
            "content": "It was shipped.",
            "parts": [
                STEP,
                old_ui_call("a", 7, "shipped"),
                old_ui_call("b", 8, "lost"),
                STEP,
                SAID,
            ],
        }
    ],
    "version 4, without parts": [
        {
            "role": "assistant",
            "content": "It was shipped.",
            "toolInvocations": [
                old_ui_call("a", 7, "shipped")["toolInvocation"],
                old_ui_call("b", 8, "lost")["toolInvocation"],
            ],
        }
    ],
    "version 5, of the user interface": [
        {
            "role": "assistant",
            "parts": [
                STEP,
                ui_call("a", 7, output="shipped"),
                {**ui_call("b", 8, output="lost"), "type": "dynamic-tool", "toolName": "look_up"},
                STEP,
                {**SAID, "state": "done"},
            ],
        }
    ],
}


@pytest.mark.parametrize("form", AI_SDK)
def test_the_vercel_ai_sdks_messages_are_calls_and_results(form: str) -> None:
    assert render_transcript(read(ASKED, *AI_SDK[form])).splitlines() == [
        "[0] user",
        "  Where is order 7?",
        "[1] assistant",
        "[1] assistant calls look_up",
        '  {"order": 7}',
        "[1] assistant calls look_up",
        '  {"order": 8}',
        "[2] tool look_up",
        "  shipped",
        "[3] tool look_up",
        "  lost",
        "[4] assistant",
        "  It was shipped.",
    ]


def test_errors_approvals_and_other_parts_of_the_ai_sdk_are_shown() -> None:
    approval = {"id": "x", "approved": False, "reason": "Too dear."}
    parts = [
        {"type": "reasoning", "text": "Hm.", "state": "done"},
        ui_call("a", 7, state="output-error", errorText="no such order"),
        STEP,
        ui_call("b", 8, state="output-denied", approval=approval),
        STEP,
        {"type": "source-url", "sourceId": "1", "url": "https://a.b", "title": "FAQ"},
        {"type": "data-weather", "data": {"sun": True}},
        {"type": "file", "mediaType": "image/png", "url": "https://a.b/c.png"},
        {"type": "file", "mediaType": "application/pdf", "data": "AAAA", "filename": "a.pdf"},
        ui_call("c", 9, output={"sum": 3}),
    ]
    asked = {"role": "user", "parts": [{"type": "text", "text": "Well?"}], "metadata": {"n": 1}}
    messages = read(asked, {"id": "m", "role": "assistant", "parts": parts})
    assert messages[0] == {
        "content": "Well?",
        "role": "user",
        "metadata": {"metadata": {"n": 1}},
    }
    assert [message.get("id") for message in messages] == [None, "m", *[None] * 5]
    assert render_transcript(messages, show_reasoning=True).splitlines()[2:] == [
        "[1] assistant reasoning",
        "  Hm.",
        "[1] assistant",
        "[1] assistant calls look_up",
        '  {"order": 7}',
        "[2] tool look_up (error: unknown)",
        "  error: no such order",
        "[3] assistant",
        '  [tool-approval: {"approval": {"id": "x", "approved": false, "reason": "Too dear."}}]',
        "[3] assistant calls look_up",
        '  {"order": 8}',
        "[4] tool look_up (error: unknown)",
        "  error: Too dear.",
        "[5] assistant",
        '  [source-url: {"sourceId": "1", "url": "https://a.b", "title": "FAQ"}]',
        '  [data-weather: {"data": {"sun": true}}]',
        "  [image: c.png]",
        "  [document: a.pdf]",
        "[5] assistant calls look_up",
        '  {"order": 9}',
        "[6] tool look_up",
        '  {"sum": 3}',
    ]


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


SDK_KEYS = st.sampled_from(
    ["type", "toolCallId", "toolName", "state", "input", "output", "toolInvocation", "approval"]
)
SDK_VALUES = st.sampled_from(
    (
        *("tool-call", "tool-result", "tool-x", "tool-invocation", "dynamic-tool", "content"),
        *("output-available", "output-denied", "step-start"),
        *("server_tool_use", "web_search_tool_result"),
    )
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "id", "name", "input", "function"]),
            inner,
            max_size=4,
        )
        | st.dictionaries(SDK_KEYS, inner | SDK_VALUES, max_size=5)
    ),
    max_leaves=12,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "tool", "critic"])},
            optional={
                "content": json_values,
                "parts": json_values,
                "toolInvocations": json_values,
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

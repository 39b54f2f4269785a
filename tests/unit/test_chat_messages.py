"""Messages of OpenAI's and of Anthropic's formats, read into those of Inspect."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.documents import DamagedError
from pytest_jrh.core.transcript import render_transcript, replace_text, unshown_in
from pytest_jrh.sources import open_source
from pytest_jrh.sources.chat import OTHER_ROLES, WITHOUT_CALL, WITHOUT_RESULT, read_messages
from tests.support.sessions import with_one_change

IMAGE = "data:image/png;base64,iVBORw0KGgo="
OF_ANTHROPIC = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


def openai_call(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def read(*turns: Any, system: Any = None) -> list[dict[str, Any]]:
    messages, unusual = read_messages(list(turns), system)
    assert not unusual
    return list(messages)


def transcript(messages: Sequence[dict[str, Any]]) -> list[str]:
    """The transcript of messages, each part in a line."""
    rendered = render_transcript(messages, show_reasoning=True)
    return rendered.replace("\n  ", " | ").splitlines()


SAID = {"type": "text", "text": "It was shipped."}
ASKED = {"role": "user", "content": "Where is order 7?"}


def said(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def asked(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [*content]}


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
    return {"state": "result", "step": 0, **call, "result": result}


SEVEN, EIGHT = {"order": 7}, {"order": 8}
STEP = {"type": "step-start"}
SHIPPED, LOST = {"type": "text", "text": "shipped"}, {"type": "text", "text": "lost"}
OLD_CALLS = [old_ui_call("a", 7, "shipped"), old_ui_call("b", 8, "lost")]
USE = {"type": "tool_use", "name": "look_up"}


def form(calls: dict[str, Any], *results: dict[str, Any]) -> list[dict[str, Any]]:
    """What is asked, two calls with their results, and what is said in the end."""
    return [ASKED, calls, *results, said([SAID])]


def sdk_turns(key: str, one: dict[str, Any], other: dict[str, Any]) -> list[dict[str, Any]]:
    calls = said([sdk_call("a", **{key: SEVEN}), sdk_call("b", **{key: EIGHT})])
    results = [sdk_result("a", **one), sdk_result("b", **other)]
    return form(calls, {"role": "tool", "content": results})


OPENAI_CALLS = [openai_call("look_up", json.dumps(SEVEN), "a")]
OPENAI_CALLS.append(openai_call("look_up", json.dumps(EIGHT), "b"))
OF_USE = {"type": "tool_result"}
USES = [{**OF_USE, "tool_use_id": "a", "content": [SHIPPED]}]
USES.append({**OF_USE, "tool_use_id": "b", "content": "lost"})
BY_PROVIDER = [
    sdk_call("a", input=SEVEN, providerExecuted=True),
    sdk_call("b", input=EIGHT, providerExecuted=True),
    sdk_result("a", output={"type": "text", "value": "shipped"}),
    sdk_result("b", output={"type": "text", "value": "lost"}),
]
DYNAMIC = {**ui_call("b", 8, output="lost"), "type": "dynamic-tool", "toolName": "look_up"}
UI_PARTS = [STEP, ui_call("a", 7, output="shipped"), DYNAMIC, STEP, {**SAID, "state": "done"}]
CALLED = [{"type": "tool-invocation", "toolInvocation": call} for call in OLD_CALLS]
INVOKED: list[Any] = [STEP, *CALLED, STEP, SAID]
FORMS: dict[str, Sequence[dict[str, Any]]] = {
    "OpenAI": form(
        said(None, tool_calls=OPENAI_CALLS),
        {"role": "tool", "tool_call_id": "a", "name": "look_up", "content": "shipped"},
        {"role": "tool", "tool_call_id": "b", "content": "lost"},
    ),
    "Anthropic": form(
        said([{**USE, "id": "a", "input": SEVEN}, {**USE, "id": "b", "input": EIGHT}]),
        {"role": "user", "content": USES},
    ),
    "AI SDK, version 4, for models": sdk_turns("args", {"result": "shipped"}, {"result": "lost"}),
    "AI SDK, version 5, for models": sdk_turns(
        "input",
        {"output": {"type": "text", "value": "shipped"}},
        {"output": {"type": "content", "value": [LOST]}},
    ),
    "AI SDK, run by the provider": [ASKED, said([*BY_PROVIDER, SAID])],
    "AI SDK, version 4, of an interface": [ASKED, said("It was shipped.", parts=INVOKED)],
    "AI SDK, version 4, without parts": [ASKED, said("It was shipped.", toolInvocations=OLD_CALLS)],
    "AI SDK, version 5, of the user interface": [ASKED, {"role": "assistant", "parts": UI_PARTS}],
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same_transcript(form: str) -> None:
    assert transcript(read(*FORMS[form])) == [
        "[0] user | Where is order 7?",
        "[1] assistant",
        '[1] assistant calls look_up | {"order": 7}',
        '[1] assistant calls look_up | {"order": 8}',
        "[2] tool look_up | shipped",
        "[3] tool look_up | lost",
        "[4] assistant | It was shipped.",
    ]


def test_a_list_of_the_sdks_messages_is_one_conversation(tmp_path: Path) -> None:
    asked = {"role": "user", "parts": [{"type": "text", "text": "Where is order 7?"}]}
    answered = {"role": "assistant", "parts": UI_PARTS}
    (tmp_path / "chat.json").write_text(json.dumps([asked, answered]), "utf-8")
    source = open_source(tmp_path / "chat.json")
    run, _ = source.read("chat", 1)
    assert transcript([*map(dict, run.messages)])[-3:] == [
        "[2] tool look_up | shipped",
        "[3] tool look_up | lost",
        "[4] assistant | It was shipped.",
    ]


def test_a_system_prompt_stands_beside_the_messages_or_is_one() -> None:
    beside, _ = read(ASKED, system="Be brief.")
    (among,) = read({"role": "developer", "content": "Be brief."})
    assert beside == among == {"role": "system", "content": "Be brief."}


def test_errors_approvals_and_other_parts_of_the_ai_sdk_are_shown() -> None:
    approval = {"approved": False, "reason": "Too dear."}
    parts = [
        {"type": "reasoning", "text": "Hm.", "state": "done"},
        ui_call("a", 7, state="output-error", errorText="no such order"),
        STEP,
        ui_call("b", 8, state="output-denied", approval=approval),
        STEP,
        {"type": "source-url", "url": "https://a.b"},
        {"type": "data-weather", "data": 7},
        {"type": "file", "mediaType": "image/png", "url": "https://a.b/c.png"},
        {"type": "file", "mediaType": "application/pdf", "data": "AAAA", "filename": "a.pdf"},
        ui_call("c", 9, output={"sum": 3}),
    ]
    user = {"role": "user", "parts": [{"type": "text", "text": "Well?"}], "metadata": {"n": 1}}
    messages = read(user, {"id": "m", "role": "assistant", "parts": parts})
    assert messages[0] == {"content": "Well?", "role": "user", "metadata": {"metadata": {"n": 1}}}
    assert [message.get("id") for message in messages] == [None, "m", *[None] * 5]
    assert transcript(messages)[1:] == [
        "[1] assistant reasoning | Hm.",
        "[1] assistant",
        '[1] assistant calls look_up | {"order": 7}',
        "[2] tool look_up (error: unknown) | error: no such order",
        '[3] assistant | [tool-approval: {"approval": {"approved": false, "reason": "Too dear."}}]',
        '[3] assistant calls look_up | {"order": 8}',
        "[4] tool look_up (error: unknown) | error: Too dear.",
        '[5] assistant | [source-url: {"url": "https://a.b"}] | [data-weather: {"data": 7}] | '
        "[image: c.png] | [document: a.pdf]",
        '[5] assistant calls look_up | {"order": 9}',
        '[6] tool look_up | {"sum": 3}',
    ]


SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "X"}]}
LOOK = {"type": "mcp_tool_use", "id": "m", "name": "look", "input": {}}
REFUSED = {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": "no"}
PAY = {"type": "tool_use", "id": "a", "name": "pay", "input": {}}
NO_CARD = {"type": "tool_result", "tool_use_id": "a", "content": "no card", "is_error": True}
DOCUMENT = {"type": "text", "media_type": "text/plain", "data": "9 days."}
OPEN = [{"type": "text", "text": "On Sundays."}]
FAQ = {"type": "search_result", "source": "x", "title": "FAQ", "content": OPEN}
GREETING = base64.b64encode("Gr\u00fc\u00dfe.".encode()).decode()
BYTES = {"type": "base64", "media_type": "text/plain", "data": GREETING}
PHOTO = {"type": "image", "source": OF_ANTHROPIC}
CITED = {"type": "web", "url": "a.org", "title": "A page", "cited_text": "It\nwas.", "start": 7}
CITED_FILE = {"type": "file_citation", "file_id": "f-1", "filename": "terms.pdf", "index": 0}
CALLS_LOOK_UP = {"content": "", "tool_calls": [openai_call("look_up", {"order": 7})]}


# Messages, and the lines of the transcript that comes out.
MESSAGES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "documents and finds that are text": (
        [asked({"type": "document", "source": DOCUMENT}, FAQ)],
        ["[0] user | [document: text] | 9 days. | [search_result: FAQ] | On Sundays. | source: x"],
    ),
    "speech, of several APIs": (
        [
            asked({"type": "input_audio", "transcript": "Asked."}),
            said([{"type": "audio", "audio": {"data": "UklG", "transcript": "Answered."}}]),
            said(None, audio={"id": "a", "transcript": "Beside nothing."}),
            said("Written.", audio={"id": "a", "transcript": "Beside words."}),
            said([{"type": "output_video", "transcription": "On film."}]),
        ],
        [
            "[0] user | Asked.",
            "[1] assistant | Answered.",
            "[2] assistant | Beside nothing.",
            "[3] assistant | Written. | Beside words.",
            "[4] assistant | On film.",
        ],
    ),
    "words in parts that are no text": (
        [
            asked(
                {"type": "document", "document": {"id": "d", "data": {"snippet": "Snip."}}},
                {"type": "document", "source": BYTES, "title": "a.txt", "context": "Legal."},
                {"type": "document", "source": {"type": "content", "content": [*OPEN, PHOTO]}},
                {"type": "file", "source_type": "text", "text": "Inside.", "mime_type": "x/y"},
                {**PHOTO, "alt": "A torn box."},
                {"type": "text", "content": "Elsewhere."},
            )
        ],
        [
            "[0] user | [document] | document.data.snippet: Snip. "
            "| [document: a.txt] | Gr\u00fc\u00dfe. | context: Legal. "
            "| [document: text] | On Sundays. | [image: image/png] | [document] "
            "| text: Inside. | [image: image/png] | alt: A torn box. "
            '| [text: {"content": "Elsewhere."}]'
        ],
    ),
    "who spoke, whatever the name is": (
        [
            {"role": "user", "name": "al\n[9] assistant calls pay", "content": "Hi."},
            {"role": "assistant", "name": 'x" calls pay', **CALLS_LOOK_UP},
            {"role": "tool", "name": "look_up", "tool_call_id": "call_1", "content": "shipped"},
            {"role": "user", "name": "z" * 10_000, "content": "Bye."},
        ],
        [
            r'[0] user "al\n[9] assistant calls pay" | Hi.',
            r'[1] assistant "x\" calls pay"',
            r'[1] assistant "x\" calls pay" calls look_up | {"order": 7}',
            "[2] tool look_up | shipped",
            f'[3] user "{"z" * 80}" | Bye.',
        ],
    ),
    "the sources of an answer, each once": (
        [
            said([{**SAID, "citations": [CITED, CITED]}, {**SAID, "annotations": [CITED_FILE]}]),
            said("See.", annotations=[{"type": "url_citation", "url_citation": {"url": "b.org"}}]),
            said("See.", citations=["c.org"]),
        ],
        [
            "[0] assistant | It was shipped. | It was shipped.",
            "[0] assistant cites | a.org | A page | It was. | f-1 | terms.pdf",
            "[1] assistant | See.",
            "[1] assistant cites | b.org",
            "[2] assistant | See.",
            "[2] assistant cites | c.org",
        ],
    ),
    "reasoning and a refusal": (
        [
            said("Yes.", reasoning_content="Hm."),
            said([{"type": "thinking", "thinking": "So."}, SAID]),
            said(None, refusal="I will not."),
        ],
        [
            "[0] assistant reasoning | Hm.",
            "[0] assistant | Yes.",
            "[1] assistant reasoning | So.",
            "[1] assistant | It was shipped.",
            "[2] assistant | I will not.",
        ],
    ),
    "a result that failed, beside what the user says": (
        [said([PAY]), asked(NO_CARD, {"type": "text", "text": "Again."})],
        [
            "[0] assistant",
            "[0] assistant calls pay | {}",
            "[1] tool pay (error: unknown) | error: no card",
            "[2] user | Again.",
        ],
    ),
    "what the provider ran, with results in later messages": (
        [said([SEARCH]), said([FOUND, SAID, LOOK]), asked(REFUSED)],
        [
            '[0] assistant calls web_search (run by the provider) | {"query": "x"}',
            '[0] assistant gets the result of web_search | [{"title": "X"}]',
            "[0] assistant",
            "[1] assistant | It was shipped.",
            "[1] assistant calls look (run by the provider) | {}",
            "[1] assistant gets the result of look |  | error: no",
        ],
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_give_their_transcript(name: str) -> None:
    turns, lines = MESSAGES[name]
    assert transcript(read(*turns)) == lines


def test_what_is_kept_and_not_shown_is_counted() -> None:
    (message, other) = read(
        said([{"type": "audio", "audio": "UklG"}, SAID], speaker="bob", timestamp="2026-01-01"),
        said("Sorry.", error={"message": "too many requests"}, speaker="eve", tokens=7),
    )
    assert unshown_in([message, other]) == {"[audio]": 1, "speaker": 2, "error": 1}


def test_an_edited_answer_cites_nothing() -> None:
    for turn in (said("See.", citations=["c.org"]), said([{**SAID, "citations": [CITED]}])):
        (message,) = read(turn)
        assert " cites" in render_transcript([message])
        assert render_transcript([replace_text(message, "New.")[0]]) == "[0] assistant\n  New."


def test_a_long_part_of_an_unknown_type_is_cut_with_a_sign() -> None:
    (message,) = read(said([{"type": "hologram", "scene": "x" * 10_000}]))
    assert message["content"].startswith('[hologram: {"scene": "xxx')
    assert message["content"].endswith("xxx ... and 6,013 more characters]")
    assert len(message["content"]) < 4_100


@pytest.mark.parametrize(
    "text",
    [
        *('{"order": ', "7", '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e999}', "[" * 50_000),
        f'{{"a": {"[" * 150}{"]" * 150}}}',
    ],
)
def test_arguments_that_are_no_json_object_are_kept_as_they_are(text: str) -> None:
    (message,), _ = read_messages([{"role": "assistant", "tool_calls": [openai_call("f", text)]}])
    (call,) = message["tool_calls"]
    assert call["arguments"] == {}
    assert call["parse_error"] == f"the arguments are not a JSON object: {text}"
    assert text in render_transcript([message])


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ({"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}}, "image/png"),
        ({"type": "image", "source": OF_ANTHROPIC}, "image/png"),
        ({"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}}, "a.png"),
        ({"type": "file", "file": {"filename": "bill.pdf", "file_data": "AAAA"}}, "bill.pdf"),
    ],
)
def test_media_are_named(part: dict[str, Any], block: str) -> None:
    (message,) = read(asked({"type": "text", "text": "See:"}, part))
    assert block in render_transcript([message])


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
        ("hello", 'message 1 is "hello"; must be an object with a "role"'),
        ({"content": "x"}, "message 1 has no value as its role, which must be one of system, user"),
        ({"role": "assistant calls pay"}, 'message 1 has "assistant calls pay" as its role'),
        ({"role": "user", "content": 7}, "message 1 has 7 as its content"),
        ({"role": "user", "text": "Hi."}, 'message 1 has the key "text" in'),
        ({"role": "model", "parts": [{"text": "Hi."}]}, 'message 1 has the key "parts" in'),
        ({"role": "user", "content": [7]}, "message 1 has 7 as a part"),
        ({"role": "assistant", "tool_calls": {}}, "message 1 has a mapping as its tool_"),
        ({"role": "assistant", "tool_calls": [{}]}, "message 1 has a tool call whose name is"),
    ],
)
def test_a_message_that_cannot_be_read_is_named(turn: Any, complaint: str) -> None:
    with pytest.raises(DamagedError) as caught:
        read_messages([{"role": "user", "content": "Hi."}, turn])
    assert str(caught.value).startswith(complaint)


@given(st.data())
def test_any_change_of_a_message_is_read_or_refused_in_words(data: st.DataObject) -> None:
    turns = data.draw(st.sampled_from(list(FORMS.values())))
    try:
        messages, _ = read_messages(with_one_change(list(turns), data))
    except DamagedError:
        return
    render_transcript(messages)
    json.dumps(messages)

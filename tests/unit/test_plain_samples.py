"""Samples that are read without Inspect mean what Inspect says they mean."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.sources.eval_logs import is_plain
from tests.support.logs import assistant, call, conversation, sample, tool, user

texts = st.text(max_size=8).map(lambda text: text.encode("utf-8", "ignore").decode()) | (
    st.sampled_from(["attachment://x", "tc://x", "attachment://none"])
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, json_values, max_size=3)
blocks = st.fixed_dictionaries(
    {"type": st.just("text"), "text": texts},
    optional={"refusal": st.booleans(), "internal": json_values},
) | st.fixed_dictionaries(
    {"type": st.just("reasoning"), "reasoning": texts, "redacted": st.booleans()},
    optional={"signature": texts, "summary": texts, "internal": json_values},
)
calls = st.fixed_dictionaries(
    {
        "id": texts,
        "function": texts,
        "arguments": objects,
        "type": st.sampled_from(["function", "custom"]),
    },
    optional={"parse_error": texts},
)
base = {"content": texts | st.lists(blocks, max_size=3)}
optional = {
    "id": texts,
    "source": st.sampled_from(["input", "generate", "operator"]),
    "metadata": objects,
}


def messages_of(role: str, **own: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    fields = st.fixed_dictionaries({"role": st.just(role), **base}, optional={**optional, **own})
    return fields.flatmap(lambda message: st.permutations(list(message.items())).map(dict))


messages = st.one_of(
    messages_of("system"),
    messages_of("user"),
    messages_of("assistant", tool_calls=st.lists(calls, max_size=2), model=texts),
    messages_of(
        "tool",
        tool_call_id=texts,
        function=texts,
        error=st.fixed_dictionaries(
            {"type": st.sampled_from(["timeout", "unknown"]), "message": texts}
        ),
    ),
)
samples = st.fixed_dictionaries(
    {
        "id": st.integers() | texts,
        "epoch": st.integers(1, 3),
        "input": texts | st.lists(messages, max_size=2),
        "target": texts | st.lists(texts, max_size=2),
        "messages": st.lists(messages, max_size=4),
    },
    optional={
        "metadata": objects,
        "attachments": st.sampled_from([{}, {"x": "kept apart"}, {"x": "kept apart", "y": ""}]),
    },
)


FIELDS = ("messages", "input", "target", "metadata")


def as_inspect_reads(data: dict[str, Any]) -> dict[str, Any]:
    from inspect_ai.log import EvalSample, resolve_sample_attachments

    theirs = EvalSample.model_validate(data, context={"deserializing": True})
    if theirs.attachments:
        theirs = resolve_sample_attachments(theirs, True)
    return {
        **theirs.model_dump(mode="json", exclude_none=True, include={*FIELDS, "id"}),
        "metadata": theirs.metadata,
    }


def told(data: dict[str, Any]) -> str:
    """All of it with its types."""
    return json.dumps([data["id"], *(data.get(name, {}) for name in FIELDS)], sort_keys=True)


@given(samples, st.data())
@settings(max_examples=150, deadline=None)
def test_what_is_read_without_inspect_is_what_inspect_reads(
    data: dict[str, Any], draw: st.DataObject
) -> None:
    """Also where a value of any kind is put anywhere."""
    if draw.draw(st.booleans()):
        place = draw.draw(st.sampled_from([data, *objects_in(data["messages"])]))
        key = draw.draw(st.sampled_from([*place, "citations", "view", "tool_error", "transcript"]))
        place[key] = draw.draw(json_values)
    if is_plain(data):
        assert told(data) == told(as_inspect_reads(data))


def objects_in(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return own + [found for item in inner for found in objects_in(item)]


REASONING = {"type": "reasoning", "reasoning": "hm", "redacted": False, "signature": "s"}


@pytest.mark.parametrize(
    "turns",
    [
        conversation(),
        [user([{"type": "text", "text": "a"}]), assistant([REASONING], call("look_up", order=7))],
        [tool("look_up", "", error=("timeout", "took too long"))],
        [],
    ],
)
def test_an_ordinary_run_needs_no_inspect(turns: list[dict[str, Any]]) -> None:
    stored = sample("a", messages=turns, metadata={"tier": None}, attachments={"x": "of an event"})
    assert is_plain(stored)


@pytest.mark.parametrize(
    "changed",
    [
        {"attachments": {"x": "y"}, "input": "attachment://x"},
        {"attachments": []},
        {"transcript": {"events": [], "content": {}}},
        {"id": True},
        {"messages": [user([{"type": "image", "image": "data:"}])]},
        {"messages": [assistant("", {**call("f"), "arguments": {"x": float("nan")}})]},
        {"messages": [assistant("", {**call("f"), "arguments": {"x": "attachment://x"}})]},
        {"messages": [assistant("", {**call("f"), "view": {"format": "text"}})]},
        {"messages": [{"role": "critic", "content": ""}]},
    ],
)
def test_what_is_not_plain_is_left_to_inspect(changed: dict[str, Any]) -> None:
    assert not is_plain({**sample("a"), **changed})

"""Samples that are read without Inspect mean what Inspect says they mean."""

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.sources.eval_logs import is_plain
from tests.support.logs import assistant, call, sample, tool, user
from tests.support.sessions import with_one_change

FIELDS = ("messages", "input", "target", "metadata")


def as_inspect_reads(data: dict[str, Any]) -> dict[str, Any]:
    from inspect_ai.log import EvalSample, resolve_sample_attachments

    theirs = EvalSample.model_validate(copy.deepcopy(data), context={"deserializing": True})
    if theirs.attachments:
        theirs = resolve_sample_attachments(theirs, True)
    fields = theirs.model_dump(mode="json", exclude_none=True, include={*FIELDS, "id"})
    return {**fields, "metadata": theirs.metadata}


def told(data: dict[str, Any]) -> str:
    """All of it with its types."""
    return json.dumps([data["id"], *(data.get(name, {}) for name in FIELDS)], sort_keys=True)


REASONING = {"type": "reasoning", "reasoning": "hm", "redacted": False, "signature": "s"}
REFUSAL = {"refusal": True, "internal": {"n": 1}, "type": "text", "text": "attachment://x"}
BROKEN_CALL = {**call("f", order=7.0), "type": "custom", "parse_error": "tc://x"}
ORDINARY = [
    sample("a", metadata={"tier": None}, attachments={"x": "of an event"}),
    sample(7, 2, [user([{"type": "text", "text": "a"}]), assistant([REASONING], call("f", a=[1]))]),
    sample("b", messages=[tool("f", "", error=("timeout", "took too long"))], target=["a", "b"]),
    sample("c", messages=[]),
]
OTHERS = [
    sample("d", messages=[assistant([REFUSAL], BROKEN_CALL)], attachments={"x": "kept apart"}),
    sample("e", input=[user("first"), assistant("no", call("f"))], metadata={"x": [1.0, {}]}),
    sample("f", messages=[{**assistant("a"), "source": "generate", "model": "m", "view": 1}]),
]


@given(st.data())
def test_what_is_read_without_inspect_is_what_inspect_reads(data: st.DataObject) -> None:
    """Also where a value of any kind is put anywhere."""
    stored = data.draw(st.sampled_from(ORDINARY + OTHERS))
    if data.draw(st.booleans()):
        stored = with_one_change(stored, data)
    if is_plain(stored):
        # Words of Inspect's, such as the type of a call, are not checked without it.
        with contextlib.suppress(ValueError):
            assert told(stored) == told(as_inspect_reads(stored))


def test_an_ordinary_run_needs_no_inspect() -> None:
    assert all(map(is_plain, ORDINARY))


@pytest.mark.parametrize(
    "changed",
    [
        {"attachments": {"x": "y"}, "input": "attachment://x"},
        {"transcript": {"events": [], "content": {}}},
        {"messages": [user([{"type": "image", "image": "data:"}])]},
        {"messages": [assistant("", {**call("f"), "arguments": {"x": float("nan")}})]},
        {"messages": [assistant("", {**call("f"), "arguments": {"x": "attachment://x"}})]},
        {"messages": [assistant("", {**call("f"), "view": {"format": "text"}})]},
        {"messages": [{"role": "critic", "content": ""}]},
        {"messages": [{**assistant("", call("f")), "role": "user"}]},
        {"messages": [{**tool("f", ""), "role": "assistant"}]},
        {"messages": [{**assistant("a"), "role": "system", "model": "m"}]},
    ],
)
def test_what_is_not_plain_is_left_to_inspect(changed: dict[str, Any]) -> None:
    assert not is_plain({**sample("a"), **changed})

"""Conversations of any shape, for property tests of what changes transcripts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from pytest_jrh.cases.probes.probe import Base
from pytest_jrh.core.cases import Message, Rubric
from pytest_jrh.core.scales import ScoreLevel

TEXT = st.text(st.sampled_from("ab é\u0301Åñ한 1{}[]\"'<>#$\r\n\t"), max_size=30)
NAMES = st.text(st.sampled_from("abcé_1"), min_size=1, max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda one: st.lists(one, max_size=3) | st.dictionaries(NAMES, one, min_size=2, max_size=4),
    max_leaves=8,
)
LEVELS = tuple(ScoreLevel(score, label) for score, label in ((1, "poor"), (2, ""), (3, "good")))
LAST = {"id": "last", "function": "f", "arguments": {"a": 1, "b": [2]}, "type": "function"}
RESULT = {"content": '{"x": 1.0, "y": {"z": [true]}}', "tool_call_id": "last", "function": "f"}
SOMETHING_TO_CHANGE: tuple[Message, ...] = (
    {"role": "user", "content": "Où est-elle?"},
    {"role": "assistant", "content": "I look. It is near."},
    {"role": "assistant", "content": "", "tool_calls": [LAST]},
    {"role": "tool", **RESULT},
)
"""For each variant something, at the end of most conversations."""


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    indent = draw(st.sampled_from([None, 2, 4, "\t"]))
    return json.dumps(draw(JSON), indent=indent, ensure_ascii=draw(st.booleans()))


@st.composite
def contents(draw: st.DrawFn, text: st.SearchStrategy[str]) -> str | list[dict[str, Any]]:
    if draw(st.booleans()):
        return draw(text)
    image = st.just({"type": "image", "image": "data:image/png;base64,AA=="})
    reasoning = st.builds(lambda said: {"type": "reasoning", "reasoning": said}, TEXT)
    written = st.builds(lambda said: {"type": "text", "text": said}, text)
    return draw(st.lists(written | image | reasoning, max_size=3))


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Any number of turns; each call is followed by its result, at once or after its siblings."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(TEXT)})
    with_ids = draw(st.booleans())
    for _ in range(draw(st.integers(0, 4))):
        turn = draw(st.sampled_from(["user", "answer", "calls"]))
        if turn == "user":
            messages.append({"role": "user", "content": draw(contents(TEXT))})
            continue
        message: dict[str, Any] = {"role": "assistant", "content": draw(contents(TEXT))}
        if turn == "calls":
            names = [f"call-{len(messages)}-{index}" for index in range(draw(st.integers(1, 2)))]
            message["tool_calls"] = [
                {
                    "id": name,
                    "function": draw(NAMES),
                    "arguments": draw(st.dictionaries(NAMES, JSON, max_size=3)),
                    "type": "function",
                }
                for name in names
            ]
            messages.append(message)
            messages += [
                {
                    "role": "tool",
                    "content": draw(contents(json_texts() | TEXT)),
                    "tool_call_id": name,
                    "function": "f",
                }
                for name in names
            ]
        else:
            messages.append(message)
    if draw(st.integers(0, 5)):
        messages += SOMETHING_TO_CHANGE
    if with_ids:
        messages = [{**message, "id": f"m{index}"} for index, message in enumerate(messages)]
    return tuple(messages)


@st.composite
def bases(draw: st.DrawFn) -> Base:
    """A base case on any conversation; its decisive turns, if any, are turns of the assistant."""
    messages = draw(conversations())
    turns = [index for index, one in enumerate(messages) if one["role"] == "assistant"]
    decisive = draw(st.sets(st.sampled_from(turns))) if turns else set()
    ordinal = draw(st.booleans())
    rubric = Rubric("kind", "Be kind.", score_levels=LEVELS if ordinal else ())
    return Base(
        messages,
        draw(st.sampled_from([1, 2, 3] if ordinal else [0, 1])),
        rubric,
        frozenset(decisive),
    )

"""Properties of edits that are acts: whatever planner and editor answer, a case holds together and
is its run once its edits are undone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.cases.acts import structure_mistake, tools_of
from pytest_jrh.core.model import Message
from pytest_jrh.core.transcript import message_text
from tests.support.accepted import refusal
from tests.support.random_conversations import conversations

FEW = settings(max_examples=60, deadline=None)


def bytes_of(messages: Sequence[Message]) -> bytes:
    return json.dumps(list(messages)).encode()


@st.composite
def spoiled(draw: st.DrawFn, run: tuple[Message, ...]) -> tuple[Message, ...]:
    """A run in which turns of the agent's and of tools went, came twice or moved."""
    messages = list(run)
    for _ in range(draw(st.integers(1, 3))):
        ours = [
            at for at, message in enumerate(messages) if message["role"] in ("assistant", "tool")
        ]
        if not ours:
            break
        at = draw(st.sampled_from(ours))
        match draw(st.sampled_from(["goes", "twice", "moves", "no calls"])):
            case "goes":
                del messages[at]
            case "twice":
                messages.insert(at, messages[at])
            case "moves":
                messages.insert(draw(st.integers(0, len(messages) - 1)), messages.pop(at))
            case _:
                messages[at] = {**messages[at], "content": "Done."}
                messages[at].pop("tool_calls", None)  # type: ignore[attr-defined]
    return tuple(messages)


@given(data=st.data(), run=conversations())
@FEW
def test_providers_take_what_the_check_of_structure_takes(
    data: st.DataObject, run: tuple[Message, ...]
) -> None:
    # What providers think of media and reasoning is none of the structure's.
    words = [{**message, "content": message_text(message) or "Hm."} for message in run]
    started: tuple[Message, ...] = ({"role": "user", "content": "Hello."}, *words)
    tools = tools_of([started])
    assert refusal(started) is None
    made = data.draw(spoiled(started))
    if structure_mistake(made, tools, started) is None and made[0]["role"] in ("system", "user"):
        assert refusal(made) is None

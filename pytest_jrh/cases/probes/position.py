"""`position`: neutral turns before, around and after what decides the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from random import Random
from typing import Any

from pytest_jrh.cases.probes.probe import Base, Derived, Probe, Variant, shipped
from pytest_jrh.core.cases import Message, Messages, NoVerdictCase
from pytest_jrh.core.transcript import render_transcript

_PLACES = ("before", "around", "after")
_FACTORS = (2, 5)
LONGEST = 400_000
"""The longest transcript that is made, in characters of its text as a judge reads it."""


def _derive(base: Base, variant: Variant, random: Random) -> Derived:
    position, factor = variant.data
    messages = base.messages
    length = len(render_transcript(messages))
    if length * factor > LONGEST:
        raise NoVerdictCase(
            "probe_not_applicable", f"the changed case would have more than {LONGEST:,} characters"
        )
    start, end = _around_decision(messages, base.decisive)
    exchanges = _neutral(messages, length * (factor - 1), random)
    half = {"before": len(exchanges), "after": 0}.get(position, (len(exchanges) + 1) // 2)
    before = chain.from_iterable(exchanges[:half])
    after = chain.from_iterable(exchanges[half:])
    return Derived((*messages[:start], *before, *messages[start:end], *after, *messages[end:]))


def _around_decision(messages: Messages, decisive: frozenset[int]) -> tuple[int, int]:
    """The positions before and after the turns that decide: what the user asked there, the edited
    turns, and what follows until the user speaks again. All turns of a run as it is decide.
    """
    first = next(
        (index for index, message in enumerate(messages) if message.get("role") != "system"),
        len(messages),
    )
    if not decisive:
        return first, len(messages)
    boundaries = [first, *_starts_of_exchanges(messages, first), len(messages)]
    start = max((boundary for boundary in boundaries if boundary <= min(decisive)), default=first)
    return start, min(boundary for boundary in boundaries if boundary > max(decisive))


def _starts_of_exchanges(messages: Messages, first: int) -> Iterator[int]:
    """Where the user begins to speak, and no call still waits for its result."""
    # By `repr`, since an id in a file may be of any type.
    results = {repr(turn.get("tool_call_id")): index for index, turn in enumerate(messages)}
    waits_until = 0
    for index, message in enumerate(messages):
        if (
            index > first
            and message.get("role") == "user"
            and messages[index - 1].get("role") != "user"
            and waits_until < index
        ):
            yield index
        for call in message.get("tool_calls") or ():
            if call.get("id"):
                waits_until = max(waits_until, results.get(repr(call["id"]), 0))


def _neutral(messages: Messages, length: int, random: Random) -> list[list[Message]]:
    """Exchanges of the pack, in a random order that is drawn anew each time that all are used, with
    at least `length` characters together.
    """
    have_ids = any(message.get("id") for message in messages)

    def new_id() -> str:
        return f"{random.getrandbits(64):016x}"

    pack: list[Mapping[str, Any]] = shipped("position.yml")["exchanges"]
    exchanges = []
    characters_left = length
    while characters_left > 0:
        for exchange in random.sample(pack, len(pack)):
            turns = []
            for turn in _turns(exchange, f"call_{new_id()}"):
                turns.append({"id": new_id(), **turn} if have_ids else turn)
            exchanges.append(turns)
            characters_left -= len(render_transcript(turns))
            if characters_left <= 0:
                break
    return exchanges


def _turns(exchange: Mapping[str, Any], call_id: str) -> Iterator[Message]:
    yield {"role": "user", "content": exchange["user"]}
    if call := exchange.get("call"):
        function = {"function": call["function"], "arguments": dict(call["arguments"])}
        called = {"id": call_id, **function, "type": "function"}
        yield {"role": "assistant", "content": "", "tool_calls": [called]}
        yield {
            "role": "tool",
            "content": call["result"],
            "tool_call_id": call_id,
            "function": call["function"],
        }
    yield {"role": "assistant", "content": exchange["assistant"]}


POSITION = Probe(
    name="position",
    marker="a case with neutral turns before, around or after the part that decides the verdict",
    variants=lambda: tuple(
        Variant(f"{position}-x{factor}", (position, factor))
        for position in _PLACES
        for factor in _FACTORS
    ),
    derive=_derive,
)

"""Which conversations go on from others: a request to a model repeats the conversation so far, so
that each request in a log looks like a conversation of its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from pytest_jrh.core.transcript import message_text
from pytest_jrh.sources.chat import read_message
from pytest_jrh.sources.source import Thread

_PLAIN = {"role", "content"}
_NO_MEDIA = ("text", "reasoning")


def keys_of(turn: Any) -> list[str]:
    """What tells a message from others, calls last: some repeat them without the text, and each API
    writes an answer otherwise than the request that repeats it. Raises DamagedError.
    """
    keys = []
    # Most messages are plain, and reading them takes long.
    is_plain = turn.keys() == _PLAIN and turn["role"] in ("user", "assistant")
    for part in [turn] if is_plain and isinstance(turn["content"], str) else read_message(turn):
        blocks = part["content"] if isinstance(part["content"], list) else ()
        media = [block for block in blocks if block["type"] not in _NO_MEDIA]
        said = (part["role"], part.get("tool_call_id"), message_text(part).strip(), *media)
        calls = part.get("tool_calls", ())
        if not calls or any(said[2:]):
            keys.append(repr(said))
        keys += map(repr, calls)
    return keys


def is_system(role: str) -> bool:
    """Whether a role is that of instructions."""
    return role in ("system", "developer")


def thread_of(turns: Iterable[tuple[Mapping[str, Any], Sequence[str]]], opening: int) -> Thread:
    """The thread of messages, each with its keys, of which `opening` were there when it
    began. System prompts are left out: many say the time.
    """
    digest, former = 0, ""
    is_asked = is_answered = False
    beginnings = array("q")
    for number, (message, keys) in enumerate(turns):
        role = message["role"]
        if is_system(role):
            continue
        # A request has something new after the last answer.
        if former and number <= opening and not former == role == "assistant":
            beginnings.append(digest)
        for key in keys:
            digest = hash((digest, key))
        former = role
        is_asked |= role == "user"
        is_answered |= is_asked and role == "assistant"
    return Thread(beginnings, digest, is_answered)


def linked(
    threads: Sequence[Thread], groups: Sequence[Hashable]
) -> tuple[dict[int, int], dict[int, int]]:
    """Which of its group each thread goes on from, and which it only repeats."""
    ends: dict[tuple[Hashable, int], int] = {}
    repeated: dict[int, int] = {}
    former: dict[int, int] = {}
    for number, thread in enumerate(threads):
        first = ends.setdefault((groups[number], thread.whole), number)
        if first != number:
            repeated[number] = first
    for number, thread in enumerate(threads):
        for digest in reversed(thread.beginnings):
            first = ends.get((groups[number], digest), number)
            if first != number:
                former[number] = first
                break
    return former, repeated


def counted_once(
    threads: Sequence[Thread], names: Sequence[Hashable]
) -> tuple[dict[int, int], dict[int, int]]:
    """Which threads are left out, each with the one that holds it; and of those that are no
    independent observations the first of their cluster.

    A run is stored again, or as it was before, under one name. A request that another one repeats
    is no run of its own. What else begins with the whole of another is of its cluster.
    """
    former, repeated = linked(threads, names)
    held = {first: number for number, first in former.items()} | repeated
    groups = [number if number in held else -1 for number in range(len(threads))]
    former, repeated = linked(threads, groups)
    origins: dict[int, int] = {}
    for number, first in (former | repeated).items():
        if threads[first].is_answered:
            origins[number] = first
        if threads[first].is_request and number not in repeated:
            held[first] = number
        elif threads[number].is_request and threads[number].is_answered:
            held[number] = first
    clusters: dict[int, list[int]] = {}
    for number in range(len(threads)):
        if number not in held:
            clusters.setdefault(end_of(origins, number), []).append(number)
    related: dict[int, int] = {}
    for first, members in clusters.items():
        related |= dict.fromkeys(members if len(members) > 1 else (), first)
    return {number: end_of(held, number) for number in held}, related


def end_of(links: Mapping[int, int], number: int) -> int:
    """Where the links from a number end."""
    while number in links:
        number = links[number]
    return number

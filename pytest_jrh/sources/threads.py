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
    messages = [turn]
    is_plain = turn.keys() == _PLAIN and turn["role"] in ("user", "assistant")
    # Most messages are plain, and reading them takes long.
    if not is_plain or not isinstance(turn["content"], str):
        messages = read_message(turn)
    keys = []
    for message in messages:
        content, text, media = message["content"], message_text(message).strip(), []
        if isinstance(content, list):
            media = [block for block in content if block["type"] not in _NO_MEDIA]
        calls = message.get("tool_calls", ())
        if text or media or not calls:
            keys.append(repr((message["role"], message.get("tool_call_id"), text, *media)))
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
    # By what is left out, what holds it.
    holders = {first: number for number, first in former.items()} | repeated
    # All that counts is compared, whatever its name.
    groups = [-1] * len(threads)
    for number in holders:
        groups[number] = number
    former, repeated = linked(threads, groups)
    origins: dict[int, int] = {}
    for number, first in (former | repeated).items():
        if threads[first].is_answered:
            origins[number] = first
        if threads[first].is_request and number not in repeated:
            holders[first] = number
        elif threads[number].is_request and threads[number].is_answered:
            holders[number] = first
    clusters: dict[int, list[int]] = {}
    for number in range(len(threads)):
        if number not in holders:
            clusters.setdefault(end_of(origins, number), []).append(number)
    related: dict[int, int] = {}
    for first, members in clusters.items():
        if len(members) > 1:
            related |= dict.fromkeys(members, first)
    return {number: end_of(holders, number) for number in holders}, related


def end_of(links: Mapping[int, int], number: int) -> int:
    """Where the links from a number end."""
    while number in links:
        number = links[number]
    return number

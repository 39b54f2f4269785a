"""`format_invariance`: the same transcript in another layout.

JSON as text: written in another layout, or with its keys in another order, and the same values.

Numbers stay as they were written, so that no digit is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import uuid4

from pytest_jrh.cases.probes.probe import (
    Base,
    Derived,
    Probe,
    Variant,
    all_ids,
    with_ids,
    with_texts,
)
from pytest_jrh.core import Json
from pytest_jrh.core.cases import Message, Messages, NoVerdictCase
from pytest_jrh.core.documents import no_constant, unique_keys
from pytest_jrh.core.transcript import structured

# How `json.dumps` writes JSON.
ONE_LINE: Json = {}
INDENTED = {"indent": 4}
_LAYOUTS = (ONE_LINE, {"separators": (",", ":")}, {"indent": 2}, INDENTED)
# What no transcript has in it stands around a number, which is kept as it is written.
_MARK = uuid4().hex
_NUMBER = f'"{_MARK}([^"]*)"'
_HALF = "[\ud800-\udfff]"


def _marked(number: str) -> str:
    return _MARK + number


def parsed(text: str) -> Any:
    """A JSON object or list, its numbers kept as text; None for everything else: duplicate keys,
    NaN and what is nested very deeply among it.
    """
    return structured(
        text,
        parse_int=_marked,
        parse_float=_marked,
        parse_constant=no_constant,
        object_pairs_hook=unique_keys,
    )


def in_other_layout(text: str) -> str:
    """JSON on one line becomes indented, and other JSON goes on one line; other text stays."""
    value = parsed(text)
    if not value:
        return text
    return _written(value, ONE_LINE if "\n" in text else INDENTED)


def with_keys_moved(text: str, random: Random) -> str:
    """JSON with the keys of its objects in another order, and in the same layout where that is a
    common one; no other text changes.
    """
    value = parsed(text)
    if not value:
        return text
    moved = keys_moved(value, random)
    if repr(moved) == repr(value):
        return text
    for layout in _LAYOUTS:
        if _written(value, layout) == text:
            return _written(moved, layout)
    return _written(moved, INDENTED if "\n" in text else ONE_LINE)


def keys_moved(value: Any, random: Random) -> Any:
    """The same value, with the keys of each object that has several in another order."""
    if isinstance(value, dict):
        names = list(value)
        if len(names) > 1:
            shuffled = random.sample(names, len(names))
            names = shuffled if shuffled != names else [*names[1:], names[0]]
        return {name: keys_moved(value[name], random) for name in names}
    if isinstance(value, list):
        return [keys_moved(inner, random) for inner in value]
    return value


def _written(value: Any, layout: Json) -> str:
    """A JSON value in a layout; half of a surrogate pair can be written as an escape alone."""
    text = re.sub(_NUMBER, r"\1", json.dumps(value, ensure_ascii=False, **layout))
    return re.sub(_HALF, lambda half: json.dumps(half[0])[1:-1], text)


_MOST_BLANKS = 3
_Change = Callable[[Message], Message]


def _json_layout(_messages: Messages, _random: Random) -> _Change:
    """JSON of tools on one line where it was indented, and indented where it was on one line."""
    return lambda message: _with_json(message, in_other_layout)


def _json_keys(_messages: Messages, random: Random) -> _Change:
    """The keys of arguments and of JSON of tools in another order."""

    def changed(message: Message) -> Message:
        message = _with_json(message, lambda text: with_keys_moved(text, random))
        calls = []
        for call in message.get("tool_calls") or ():
            calls.append({**call, "arguments": keys_moved(call.get("arguments"), random)})
        return {**message, "tool_calls": calls} if calls else message

    return changed


def _ids(messages: Messages, random: Random) -> _Change:
    """Each id another one, the same wherever it stands."""
    new = {old: f"id_{random.getrandbits(64):016x}" for old in all_ids(messages)}
    return lambda message: with_ids(message, new.__getitem__)


def _line_ends(_messages: Messages, random: Random) -> _Change:
    """Lines that end in blanks, and in a carriage return before the newline."""

    def ended(text: str) -> str:
        lines = []
        for line in text.split("\n"):
            blanks = " " * random.randint(1, _MOST_BLANKS) if line.strip() else ""
            lines.append(line.removesuffix("\r") + blanks)
        return "\r\n".join(lines)

    return lambda message: with_texts(message, ended)


def _around_words(place: str, blanks: str) -> Callable[..., _Change]:
    """A change of the blanks in what the agent says, but for JSON and for code between fences."""
    places = re.compile(rf"\A\s*[{{\[].*|```.*?(?:```|\Z)|{place}", re.DOTALL | re.MULTILINE)

    def text(old: str) -> str:
        return places.sub(lambda match: match[0] if match[0].strip() else blanks, old)

    def changed(message: Message) -> Message:
        return with_texts(message, text) if message.get("role") == "assistant" else message

    return lambda _messages, _random: changed


_CHANGES = {
    "json_layout": (_json_layout, "no tool result is JSON that could be laid out differently"),
    "json_keys": (_json_keys, "no JSON in the case has an object with two keys"),
    "ids": (_ids, "no message and no call of the case has an id"),
    "line_ends": (_line_ends, "no message of the case has a text"),
    "blank_lines": (
        _around_words(r"(?<=[.!?]) +(?=[^\sa-z])", "\n\n"),
        "no answer has two sentences in one line",
    ),
    "spaces": (_around_words(r"(?<=\S) (?=\S)", "   "), "no answer has two words in one line"),
    "indents": (_around_words(r"^(?=[ \t]*\S)", "\t"), "no answer has a text"),
}
"""What each variant changes, and why it does not apply where nothing has changed."""


def _derive(base: Base, variant: Variant, random: Random) -> Derived:
    # RAND's tests have a name of their own for each.
    change, unchanged = _CHANGES[variant.data or variant.name]
    try:
        messages = tuple(map(change(base.messages, random), base.messages))
        # Other than equality of dictionaries, this sees the order of keys.
        is_same = repr(messages) == repr(base.messages)
    except RecursionError:
        raise NoVerdictCase(
            "probe_not_applicable", "the arguments of a call are nested too deeply to be changed"
        ) from None
    if is_same:
        raise NoVerdictCase("probe_not_applicable", unchanged)
    return Derived(messages)


def _with_json(message: Message, change: Callable[[str], str]) -> Message:
    """The message with what came from tools changed: its texts, and the calls of a provider."""
    if message.get("role") == "tool":
        message = with_texts(message, change)
    content = message.get("content")
    if isinstance(content, str):
        return message
    blocks = []
    for block in content or ():
        changed = dict(block)
        for key in ("arguments", "result"):
            if block.get("type") == "tool_use" and isinstance(block.get(key), str):
                changed[key] = change(block[key])
        blocks.append(changed)
    return {**message, "content": blocks}


FORMAT_INVARIANCE = Probe(
    name="format_invariance",
    marker="a case in another layout, with the same content",
    variants=lambda: tuple(map(Variant, _CHANGES)),
    derive=_derive,
)

"""`format_invariance`: the same transcript in another layout.

JSON as text: written in another layout, or with its keys in another order, and the same values.

Numbers stay as they were written, so that no digit is lost.
"""

from __future__ import annotations

import json
import unicodedata
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from pytest_jrh.cases.probes.probe import (
    Base,
    Derived,
    Probe,
    ProbeSettings,
    Variant,
    all_ids,
    calls_in,
    with_ids,
    with_texts,
)
from pytest_jrh.core.errors import NoVerdictCase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from pytest_jrh.core.model import Message


NEEDED_KEYS = 2
"""How many keys an object must have to be put in another order."""
_MOST_GROWTH = 10
_ROOM = 10_000


class Layout(NamedTuple):
    """How JSON is written; `indent` is that of a level, and None puts all in one line."""

    indent: str | None
    comma: str
    colon: str
    ascii_only: bool


ONE_LINE = Layout(None, ", ", ": ", ascii_only=False)
INDENTED = Layout("    ", ",", ": ", ascii_only=False)
_LAYOUTS = tuple(
    Layout(*spaces, ascii_only)
    for spaces, ascii_only in product(
        [
            (None, ", ", ": "),
            (None, ",", ":"),
            *((indent, ",", ": ") for indent in ("  ", "    ", "\t", " ", "   ", "        ")),
        ],
        (False, True),
    )
)


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def parsed(text: str) -> dict[str, Any] | list[Any] | None:
    """A JSON object or list, its numbers kept as text; None for everything else, duplicate keys and
    NaN among it.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(
            text,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse,
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def layout_of(text: str, value: Any) -> Layout | None:
    """The layout in which the value is exactly this text, or None."""
    return next((layout for layout in _LAYOUTS if _is_written(text, value, layout)), None)


def in_other_layout(text: str) -> str:
    """JSON on one line becomes indented, and other JSON goes on one line; other text stays, and so
    does JSON that would be many times as long.
    """
    value = parsed(text)
    if not value:
        return text
    return _in_bounds(value, ONE_LINE if "\n" in text else INDENTED, text)


def with_keys_moved(text: str, random: Random) -> str:
    """JSON with the keys of its objects in another order, and in the same layout where that is a
    common one; no other text changes.
    """
    value = parsed(text)
    if not value:
        return text
    try:
        moved = keys_moved(value, random)
        if list_of_keys(moved) == list_of_keys(value):
            return text
    except RecursionError:
        return text
    layout = layout_of(text, value) or (INDENTED if "\n" in text else ONE_LINE)
    return _in_bounds(moved, layout, text)


def keys_moved(value: Any, random: Random) -> Any:
    """The same value, with the keys of each object that has several in another order."""
    if isinstance(value, dict):
        names = list(value)
        if len(names) >= NEEDED_KEYS:
            shuffled = random.sample(names, len(names))
            names = shuffled if shuffled != names else [*names[1:], names[0]]
        return {name: keys_moved(value[name], random) for name in names}
    if isinstance(value, list):
        return [keys_moved(inner, random) for inner in value]
    return value


def list_of_keys(value: Any) -> list[str]:
    """All keys of all objects in a value, those of each object in their order."""
    keys: list[str] = []
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            keys += inner
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return keys


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("duplicate key")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _in_bounds(value: Any, layout: Layout, text: str) -> str:
    """The value in a layout, or the text where that is too short for it: at depth, each value of a
    list gets an indent that is longer than itself.
    """
    room = _MOST_GROWTH * len(text) + _ROOM
    blocks = []
    for piece in _pieces(value, layout):
        room -= len(piece)
        if room < 0:
            return text
        blocks.append(piece)
    return "".join(blocks)


def _is_written(text: str, value: Any, layout: Layout) -> bool:
    """Whether the layout gives this text; looks no further than the first difference."""
    position = 0
    for piece in _pieces(value, layout):
        if not text.startswith(piece, position):
            return False
        position += len(piece)
    return position == len(text)


def _pieces(value: Any, layout: Layout) -> Iterator[str]:
    """The text of an object or a list, in time in proportion to its length at any depth."""
    stack = [_parts(value, layout, "\n")]
    while stack:
        for text, inside, newline in stack[-1]:
            yield text
            if inside is not None:
                stack.append(_parts(inside, layout, newline))
                break
        else:
            stack.pop()


def _parts(value: Any, layout: Layout, newline: str) -> Iterator[tuple[str, Any, str]]:
    """Texts, and the object or list that follows each, or None, with the newline that it has."""
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if not value:
        yield opening + closing, None, ""
        return
    inner = "" if layout.indent is None else newline + layout.indent
    yield opening, None, ""
    fields = value.items() if isinstance(value, dict) else ((None, member) for member in value)
    comma = ""
    for name, member in fields:
        before = comma + inner
        if name is not None:
            before += _scalar(name, layout) + layout.colon
        comma = layout.comma
        if isinstance(member, dict | list):
            yield before, member, inner
        else:
            yield before + _scalar(member, layout), None, ""
    yield closing if layout.indent is None else newline + closing, None, ""


def _scalar(value: Any, layout: Layout) -> str:
    if isinstance(value, _Number):
        return value
    text = json.dumps(value, ensure_ascii=layout.ascii_only)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair can be written as an escape alone.
        return json.dumps(value)
    return text


_MOST_BLANKS = 3
_MOST_MARKS = 1_000


def _json_layout(messages: Sequence[Message], _random: Random) -> tuple[Message, ...]:
    """JSON of tools on one line where it was indented, and indented where it was on one line."""
    return tuple(_with_json(message, in_other_layout) for message in messages)


def _json_keys(messages: Sequence[Message], random: Random) -> tuple[Message, ...]:
    """The keys of arguments and of JSON of tools in another order."""

    def moved(text: str) -> str:
        return with_keys_moved(text, random)

    changed = []
    for message in messages:
        with_json = _with_json(message, moved)
        changed.append(_with_arguments(with_json, lambda value: keys_moved(value, random)))
    return tuple(changed)


def _ids(messages: Sequence[Message], random: Random) -> tuple[Message, ...]:
    """Each id another one, the same wherever it stands."""
    new: dict[str, str] = {}
    taken = set(all_ids(messages))
    for old in all_ids(messages):
        while old not in new or new[old] in taken:
            new[old] = f"id_{random.getrandbits(64):016x}"
        taken.add(new[old])
    return tuple(with_ids(message, new.__getitem__) for message in messages)


def _line_ends(messages: Sequence[Message], random: Random) -> tuple[Message, ...]:
    """Lines that end in blanks, and in a carriage return before the newline."""

    def ended(text: str) -> str:
        lines = []
        for line in text.split("\n"):
            blanks = " " * random.randint(1, _MOST_BLANKS) if line.strip() else ""
            lines.append(line.removesuffix("\r") + blanks)
        return "\r\n".join(lines)

    return tuple(with_texts(message, ended) for message in messages)


def _unicode(messages: Sequence[Message], _random: Random) -> tuple[Message, ...]:
    """Letters with marks as several characters, or, where they are so already, as one."""
    decomposed = _in_form("NFD", messages)
    return decomposed if decomposed != tuple(messages) else _in_form("NFC", messages)


_CHANGES: dict[str, tuple[Callable[[Sequence[Message], Random], tuple[Message, ...]], str]] = {
    "json_layout": (_json_layout, "no result of a tool is JSON that another layout fits"),
    "json_keys": (_json_keys, "no JSON of the run has an object with two keys"),
    "ids": (_ids, "no message and no call of the run has an id"),
    "line_ends": (_line_ends, "no message of the run has a text"),
    "unicode": (_unicode, "no text of the run has letters with marks"),
}
"""What each variant changes, and why it does not apply where nothing has changed."""
_HEADERS = {f"headers_{style}": style for style in ("markdown", "xml", "json")}


def _variants(_settings: ProbeSettings) -> tuple[Variant, ...]:
    return tuple(Variant(name, (name,)) for name in (*_CHANGES, *_HEADERS))


def _derive(base: Base, variant: Variant, random: Random) -> Derived:
    if variant.name in _HEADERS:
        return Derived(base.messages, style=_HEADERS[variant.name])
    change, unchanged = _CHANGES[variant.name]
    try:
        messages = change(base.messages, random)
        # Other than equality of dictionaries, this sees the order of keys.
        same = list(map(repr, messages)) == list(map(repr, base.messages))
    except RecursionError:
        raise NoVerdictCase(
            "probe_not_applicable", "the arguments of a call are nested too deeply to be changed"
        ) from None
    if same:
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


def _with_arguments(message: Message, change: Callable[[Any], Any]) -> Message:
    calls = calls_in(message)
    if not any(list_of_keys(call.get("arguments")) for call in calls):
        return message
    changed = [{**call, "arguments": change(call.get("arguments"))} for call in calls]
    return {**message, "tool_calls": changed}


def _has_long_stack(text: str) -> bool:
    """Whether one letter has so many marks that sorting them takes time by the square of them."""
    if text.isascii():
        return False
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks > _MOST_MARKS:
            return True
    return False


def _in_form(form: Literal["NFC", "NFD"], messages: Sequence[Message]) -> tuple[Message, ...]:
    def text(old: str) -> str:
        return old if _has_long_stack(old) else unicodedata.normalize(form, old)

    def value(old: Any) -> Any:
        if isinstance(old, str):
            return text(old)
        if isinstance(old, dict):
            return {name: value(inner) for name, inner in old.items()}
        return [value(inner) for inner in old] if isinstance(old, list) else old

    return tuple(_with_arguments(with_texts(message, text), value) for message in messages)


FORMAT_INVARIANCE = Probe(
    name="format_invariance",
    marker="a case whose transcript has another layout and the same content",
    label="format",
    variants=_variants,
    derive=_derive,
)

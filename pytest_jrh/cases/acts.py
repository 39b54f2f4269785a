"""Edits that are acts, without a model: splices and how they are undone, and what the tools of a
log take and give.

A splice replaces messages that stand side by side by others (`Edit.before`, `Edit.after`). A call
and its results belong together: the results are the messages of tools behind the call's turn.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.transcript import (
    assistant_indices,
    brief,
    message_text,
    render_tool_calls,
    replace_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_jrh.core.model import Edit, Message


_DEEPEST = 12
"""How deep in a JSON value keys and types are looked at."""
_MOST_EXAMPLES = 3
LONGEST_EXAMPLE = 3_000
"""How many real results of a tool the editor is shown, and how many characters one may have, as may
the arguments of its call, and a result that is an error."""
_SCHEMA_TYPES = {
    "string": "text",
    "integer": "a number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def splice(messages: Sequence[Message], edit: Edit) -> tuple[Message, ...]:
    """The messages with `after` of an edit where its `before` stood, from `message_index` on.

    Raises `ValueError` where `before` does not stand there.
    """
    start = edit.message_index
    end = start + len(edit.before)
    if not 0 <= start <= len(messages) or list(messages[start:end]) != list(edit.before):
        raise ValueError(f"the messages of the edit do not stand at {start}")
    return (*messages[:start], *edit.after, *messages[end:])


def acts_text(messages: Iterable[Message]) -> str:
    """Messages as one text to read: words, each call as `NAME: {arguments}`, results as they are.

    The part of an edit that stands in `original_content` and `edited_content`.
    """
    parts: list[str] = []
    for message in messages:
        error = message.get("error")
        if isinstance(error, dict):
            parts.append(f"error: {error.get('message', '')}")
        parts += [message_text(message), render_tool_calls(message)]
    return "\n".join(part for part in parts if part.strip())


def with_arguments(call: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A call with other arguments, without what was of the old ones: why they could not be parsed,
    and how the call was shown to people.
    """
    kept = {key: value for key, value in call.items() if key not in ("view", "parse_error")}
    return {**kept, "arguments": arguments}


def with_words(message: Message, words: str) -> tuple[Message, int]:
    """A turn with other words, or without any as it was; its reasoning goes in either case."""
    content = message.get("content")
    if words.strip() and words.strip() != message_text(message).strip():
        return replace_text(message, words)
    if not isinstance(content, list):
        return message, 0
    blocks = [block for block in content if block.get("type") != "reasoning"]
    return {**message, "content": blocks}, len(content) - len(blocks)


@dataclass(frozen=True, slots=True)
class Act:
    """One call of a transcript: its turn, its number in the turn from 0, and where its results
    stand.
    """

    turn: int
    number: int
    call: Mapping[str, Any]
    results: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of the tool."""
        return str(self.call.get("function", ""))

    @property
    def call_id(self) -> str:
        """The id of the call; empty where it has none."""
        return str(self.call.get("id") or "")


def acts_of(messages: Sequence[Message]) -> tuple[Act, ...]:
    """All calls of a transcript, in its order."""
    acts: list[Act] = []
    for turn in assistant_indices(messages):
        acts += calls_of_turn(messages, turn)
    return tuple(acts)


def calls_of_turn(messages: Sequence[Message], turn: int) -> tuple[Act, ...]:
    """The calls of one turn of the assistant, with where their results stand.

    A result belongs to the call whose id it has; one without an id to the first call, without an
    id or without a result, that is left.
    """
    message = messages[turn]
    calls = message.get("tool_calls") or ()
    if message.get("role") != "assistant" or not calls:
        return ()
    results: list[list[int]] = [[] for _ in calls]
    position = turn + 1
    while position < len(messages) and messages[position].get("role") == "tool":
        number = _number_of_call(calls, results, messages[position])
        if number is not None:
            results[number].append(position)
        position += 1
    return tuple(
        Act(turn, number, call, tuple(results[number])) for number, call in enumerate(calls)
    )


def _number_of_call(
    calls: Sequence[Mapping[str, Any]], results: Sequence[Sequence[int]], result: Message
) -> int | None:
    result_id = result.get("tool_call_id")
    for number, call in enumerate(calls):
        if result_id and call.get("id") == result_id:
            return number
    for number, call in enumerate(calls):
        if not (result_id and call.get("id")) and not results[number]:
            return number
    return None


@dataclass(frozen=True)
class Shape:
    """What JSON values look like: their types in words, and the keys and items of those seen.

    `required` are the keys that every object had. Where several objects were `seen` that have no
    key in common, the keys are data, such as ids, and any key may be there.
    """

    types: frozenset[str] = frozenset()
    keys: Mapping[str, Shape] | None = None
    required: frozenset[str] = frozenset()
    items: Shape | None = None
    seen: int = 0

    @cached_property
    def _of_any_key(self) -> Shape:
        """What the values of a map have, whose keys are data."""
        return sum((self.keys or {}).values(), Shape())

    def __add__(self, other: Shape) -> Shape:
        """What has this shape or the other one."""
        keys = dict(self.keys or {})
        for key, shape in (other.keys or {}).items():
            keys[key] = keys[key] + shape if key in keys else shape
        required = self.required if self.seen else other.required
        if self.seen and other.seen:
            required &= other.required
        items = self.items
        if other.items is not None:
            items = other.items if items is None else items + other.items
        return Shape(self.types | other.types, keys, required, items, self.seen + other.seen)

    def mistake(self, value: object, name: str, *, may_be_map: bool = True) -> str | None:
        """What a value has that this shape lacks, in words about `name`; None where it fits.

        A shape without a type, of which nothing is known, takes any JSON value.
        """
        value_type = json_type(value)
        if self.types and value_type not in self.types:
            return f"{name} is {value_type}, not {' or '.join(sorted(self.types))}"
        if isinstance(value, list) and self.items is not None:
            for number, item in enumerate(value):
                if mistake := self.items.mistake(item, f"{name}[{number}]"):
                    return mistake
        if not isinstance(value, dict) or self.keys is None:
            return None
        missing = sorted(self.required - value.keys())
        if missing:
            return f"{brief(missing[0])} is missing from {name}"
        is_map = may_be_map and self.seen > 1 and not self.required
        for key, item in value.items():
            if key not in self.keys and not is_map:
                return f"{brief(key)} is no key of {name}"
            shape = self._of_any_key if is_map else self.keys[key]
            if mistake := shape.mistake(item, f"{name}.{brief(key)[1:-1]}"):
                return mistake
        return None


def json_type(value: object) -> str:
    """The type of a JSON value in words."""
    if isinstance(value, bool):
        return "true or false"
    if value is None:
        return "null"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "no JSON"


def shape_of(value: object, depth: int = 0) -> Shape:
    """The shape of one JSON value."""
    types = frozenset({json_type(value)})
    if depth > _DEEPEST:
        return Shape()
    if isinstance(value, dict):
        keys = {str(key): shape_of(item, depth + 1) for key, item in value.items()}
        return Shape(types, keys, frozenset(keys), seen=1)
    if isinstance(value, list):
        items = sum((shape_of(item, depth + 1) for item in value), Shape())
        return Shape(types, items=items if value else None)
    return Shape(types)


def shape_of_schema(schema: object, depth: int = 0) -> Shape:
    """The shape that a JSON schema gives its values; what it says in other words is left open."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return Shape()
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        shapes = [shape_of_schema(choice, depth + 1) for choice in choices]
        return sum(shapes, Shape()) if all(shape.types for shape in shapes) else Shape()
    named = schema.get("type")
    names = named if isinstance(named, list) else [named]
    types = frozenset(_SCHEMA_TYPES[name] for name in names if name in _SCHEMA_TYPES)
    properties = schema.get("properties")
    items = shape_of_schema(schema["items"], depth + 1) if "items" in schema else None
    if not isinstance(properties, dict) or not properties:
        return Shape(types, items=items)
    keys = {str(key): shape_of_schema(value, depth + 1) for key, value in properties.items()}
    required = schema.get("required")
    always = frozenset(map(str, required)) if isinstance(required, list) else frozenset()
    return Shape(types, keys, always & keys.keys(), items, seen=1)


@dataclass(frozen=True, slots=True)
class Tool:
    """What a log shows of one tool: the shapes of its arguments and of its results, and some of its
    calls with their results.

    Results that are no JSON object or list have the shape of text. `error` is the first result that
    is marked as one, which counts for neither shape nor examples.
    """

    name: str
    arguments: Shape = Shape()
    results: Shape = Shape()
    examples: tuple[tuple[Mapping[str, Any], Message], ...] = ()
    error: Message | None = None

    def arguments_mistake(self, arguments: object) -> str | None:
        """Why no call of this tool can have these arguments; None where one can."""
        if not isinstance(arguments, dict):
            return f"its arguments are {json_type(arguments)}, not an object"
        return self.arguments.mistake(arguments, "its arguments", may_be_map=False)

    def result_mistake(self, text: str) -> str | None:
        """Why a text is no result as this tool gives them; None where it is one."""
        return self.results.mistake(result_value(text), "its result")


def result_value(text: str) -> object:
    """The JSON object or list that a result is, or else its text."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def tools_of(
    transcripts: Iterable[Sequence[Message]],
    definitions: Iterable[Mapping[str, Any]] = (),
    *,
    before: Mapping[str, Tool] | None = None,
) -> dict[str, Tool]:
    """The tools of a log, by name, in the order in which they are first called; `before` are those
    of the runs before.

    A definition has a `name` and `parameters`, a JSON schema, as Inspect and OpenAI have it. Calls
    whose arguments could not be parsed say nothing of a tool.
    """
    tools = dict(before or {})
    for messages in transcripts:
        for act in acts_of(messages):
            arguments = act.call.get("arguments")
            if isinstance(arguments, dict) and not act.call.get("parse_error"):
                tool = tools.get(act.name, Tool(act.name))
                results = [messages[position] for position in act.results]
                tools[act.name] = _with_call(tool, act.call, results)
    for definition in definitions:
        name = str(definition.get("name") or "")
        parameters = shape_of_schema(definition.get("parameters"))
        if name and parameters.keys:
            tool = tools.get(name, Tool(name))
            tools[name] = replace(tool, arguments=tool.arguments + parameters)
    return tools


def _with_call(tool: Tool, call: Mapping[str, Any], results: Sequence[Message]) -> Tool:
    shape, examples, error = tool.results, tool.examples, tool.error
    for result in results:
        if isinstance(result.get("error"), dict):
            error = result if error is None else error
            continue
        text = message_text(result)
        shape += shape_of(result_value(text))
        if len(examples) < _MOST_EXAMPLES and len(text) <= LONGEST_EXAMPLE:
            examples = (*examples, (call, result))
    return Tool(tool.name, tool.arguments + shape_of(call["arguments"]), shape, examples, error)

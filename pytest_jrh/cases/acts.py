"""Edits that are acts, without a model: what splices are made of, what the tools of a log
take and give, and where other turns still say what an edit of a call took out.

A splice replaces messages that stand side by side by others (`Edit.before`, `Edit.after`). A call
and its results belong together: the results are the messages of tools behind the call's turn.

A value is a number, an id or a text of at least four characters from arguments and results. What is
compared is what JSON means, without its escapes, and of a number what it amounts to: 56, 56.00,
$56.00 and 56,00 are one value.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from itertools import chain
from typing import TypeAlias

from pytest_jrh.core import Fields, Json, frozen, shortened
from pytest_jrh.core.cases import Message, Messages
from pytest_jrh.core.transcript import (
    assistant_indices,
    brief,
    message_text,
    render_tool_calls,
    structured,
    texts_of,
)

_DEEPEST = 12
"""How deep in a JSON value keys and types are looked at."""
_OBJECT = "an object"
_TYPES: Mapping[type, str] = {
    bool: "true or false",
    type(None): "null",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: _OBJECT,
}
MOST_EXAMPLES = 3
LONGEST_EXAMPLE = 3_000
"""How many real results of a tool the editor is shown, and how many characters one may have, as may
the arguments of its call, and a result that is an error."""


def acts_text(messages: Iterable[Message]) -> str:
    """Messages as one text to read: words, each call as `NAME: {arguments}`, results as they are.

    The part of an edit that stands in `original_content` and `edited_content`.
    """
    parts = []
    for message in messages:
        error = message.get("error")
        if isinstance(error, dict):
            parts.append(f"error: {error.get('message', '')}")
        parts += [message_text(message), render_tool_calls(message)]
    return "\n".join(part for part in parts if part.strip())


def with_arguments(call: Fields, arguments: Fields) -> Json:
    """A call with other arguments, without what was of the old ones: why they could not be parsed,
    and how the call was shown to people.
    """
    kept = {key: value for key, value in call.items() if key not in ("view", "parse_error")}
    return {**kept, "arguments": arguments}


@frozen
class Act:
    """One call of a transcript: its turn, its number in it from 0, and where its results stand."""

    turn: int
    number: int
    call: Fields
    results: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of the tool."""
        return str(self.call.get("function", ""))


def acts_of(messages: Messages) -> tuple[Act, ...]:
    """All calls of a transcript, in its order."""
    acts: list[Act] = []
    for turn in assistant_indices(messages):
        acts += calls_of_turn(messages, turn)
    return tuple(acts)


def calls_of_turn(messages: Messages, turn: int) -> tuple[Act, ...]:
    """The calls of one turn of the assistant, with where their results stand.

    A result belongs to the call whose id it has; one without an id to the first call, without an
    id or without a result, that is left.
    """
    message = messages[turn]
    calls = message.get("tool_calls") or ()
    if message.get("role") != "assistant" or not calls:
        return ()
    results: list[list[int]] = [[] for _ in calls]
    for position in range(turn + 1, len(messages)):
        if messages[position].get("role") != "tool":
            break
        result_id = messages[position].get("tool_call_id")
        with_its_id, without_result = [], []
        for call, of_call in zip(calls, results, strict=True):
            if result_id and call.get("id"):
                if call["id"] == result_id:
                    with_its_id.append(of_call)
            elif not of_call:
                without_result.append(of_call)
        for of_call in (with_its_id or without_result)[:1]:
            of_call.append(position)
    return tuple(
        Act(turn, number, call, tuple(results[number])) for number, call in enumerate(calls)
    )


@frozen
class Shape:
    """What JSON values look like: how many there are of each type, in words, and the shapes of the
    keys of objects and of the items of lists.
    """

    types: Counter[str] = field(default_factory=Counter)
    keys: Mapping[str, Shape] = field(default_factory=dict)
    items: Shape | None = None

    @property
    def required(self) -> set[str]:
        """The keys that every object had."""
        objects = self.types[_OBJECT]
        return {key for key, shape in self.keys.items() if shape.types.total() == objects}

    def __add__(self, other: Shape) -> Shape:
        """What has this shape or the other one."""
        keys = dict(self.keys)
        for key, shape in other.keys.items():
            keys[key] = keys[key] + shape if key in keys else shape
        items = self.items
        if other.items is not None:
            items = other.items if items is None else items + other.items
        return Shape(self.types + other.types, keys, items)

    def mistake(self, value: object, name: str) -> str | None:
        """What a value has that this shape lacks, in words about `name`; None where it fits.

        Where nothing is known of the type, or of the keys and items, it takes any.
        """
        value_type = json_type(value)
        if self.types and value_type not in self.types:
            return f"{name} is {value_type}, not {' or '.join(sorted(self.types))}"
        if isinstance(value, list) and self.items is not None:
            for number, item in enumerate(value):
                if mistake := self.items.mistake(item, f"{name}[{number}]"):
                    return mistake
        if not isinstance(value, dict) or not self.keys:
            return None
        missing = sorted(self.required - value.keys())
        if missing:
            return f"{brief(missing[0])} is missing from {name}"
        for key, item in value.items():
            if key not in self.keys:
                return f"{name} has the key {brief(key)}, which is never in the log"
            if mistake := self.keys[key].mistake(item, f"{name}.{brief(key)[1:-1]}"):
                return mistake
        return None


def json_type(value: object) -> str:
    """The type of a JSON value in words."""
    return _TYPES.get(type(value), "no JSON")


def shape_of(value: object, depth: int = 0) -> Shape:
    """The shape of one JSON value."""
    if depth > _DEEPEST:
        return Shape()
    keys = {}
    items = None
    if isinstance(value, dict):
        keys = {str(key): shape_of(item, depth + 1) for key, item in value.items()}
    elif isinstance(value, list) and value:
        items = sum((shape_of(item, depth + 1) for item in value), Shape())
    return Shape(Counter([json_type(value)]), keys, items)


@frozen
class Tool:
    """What a log shows of one tool: the shapes of its arguments and of its results, and some of its
    calls with their results.

    Results that are no JSON object or list have the shape of text. `error` is the first result that
    is marked as one, which counts for neither shape nor examples.
    """

    name: str
    arguments: Shape = field(default_factory=Shape)
    results: Shape = field(default_factory=Shape)
    examples: tuple[tuple[Fields, Message], ...] = ()
    error: Message | None = None


def result_value(text: str) -> object:
    """The JSON object or list that a result is, or else its text."""
    value = structured(text)
    return text if value is None else value


def tools_of(messages: Messages, before: Mapping[str, Tool] = {}) -> dict[str, Tool]:
    """The tools of a log, by name, in the order in which they are first called; `before` are those
    of the runs before this one.

    Calls whose arguments could not be parsed say nothing of a tool.
    """
    tools = dict(before)
    for act in acts_of(messages):
        arguments = act.call.get("arguments")
        if not isinstance(arguments, dict) or act.call.get("parse_error"):
            continue
        tool = tools.get(act.name, Tool(act.name))
        shape, examples, error = tool.results, tool.examples, tool.error
        for position in act.results:
            result = messages[position]
            if isinstance(result.get("error"), dict):
                error = error or result
                continue
            text = message_text(result)
            shape += shape_of(result_value(text))
            if len(examples) < MOST_EXAMPLES and len(text) <= LONGEST_EXAMPLE:
                examples = (*examples, (act.call, result))
        tools[act.name] = Tool(
            act.name, tool.arguments + shape_of(arguments), shape, examples, error
        )
    return tools


# Digits that are part of a word, an id, a date or a time are none; those of `56.00/month` are one.
_NUMBER = r"(?<![\w/])(?<!\d:)(?<!\w-)\d++(?:[.,'\u00a0\u202f]\d+)*+(?!\w|[-:]\w|/\d)"
_CURRENCY = r"(?i)[$€£¥₹]|(?<![^\W\d_])(?:USD|EUR|GBP|CHF|JPY|INR|dollars?|euros?)(?![^\W\d_])"
_WORD = r"\w+(?:[-_./:@#+]\w+)*+"
_THOUSANDS = 3
_SHORTEST_TEXT = 4
_LONGEST_TEXT = 200
_LEAST_BARE_NUMBER = 10
"""A smaller whole number is looked for with decimals or a currency alone: else every `1` is one."""
_MOST_DIGITS = 40
_CURRENCY_REACH = 8
_MOST_VALUES = 1_000
"""Of one edit: a result of megabytes has thousands, each looked for in every later turn."""

Values: TypeAlias = "dict[Decimal | str, str]"
"""Numbers, and ids and other texts with their case folded, each with how it is first written."""


def values_of_acts(messages: Iterable[Message], most: float = _MOST_VALUES) -> Values:
    """The first values in arguments and results of messages, not in what is said beside them."""
    values: Values = {}
    for message in messages:
        sources = [call.get("arguments") for call in message.get("tool_calls") or ()]
        if message.get("role") == "tool":
            sources.append(result_value(message_text(message)))
        texts = chain.from_iterable(map(leaf_texts, sources))
        for value, spelling in chain.from_iterable(map(_values_in, texts)):
            if len(values) >= most:
                return values
            values.setdefault(value, spelling)
    return values


def search_text(message: Message) -> list[str]:
    """All that a message says, in parts, with JSON undone: words, reasoning, arguments, a result,
    and what a provider's own tools took and gave.
    """
    leaves: list[str] = []
    for text in texts_of(message, ("text", "reasoning", "summary", "arguments", "result")):
        leaves += leaf_texts(text)
    for call in message.get("tool_calls") or ():
        leaves += leaf_texts(call.get("arguments"))
    return leaves


def mentioned(values: Values, texts: Sequence[str]) -> Values:
    """Which of the values are in texts, numbers first, each in its kind in order; numbers as the
    texts write them.
    """
    words = [value for value in values if isinstance(value, str)]
    numbers: dict[Decimal, str] = {}
    for text in texts:
        if len(words) < len(values):
            for number, spelling in _numbers_in(text):
                if number in values:
                    numbers.setdefault(number, spelling)
    said = "\n".join(map(_folded, texts))
    spelled: Values = dict(sorted(numbers.items()))
    for word in sorted(words):
        # Most are not there, which is seen sooner without the ends of words.
        if word in said and re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", said):
            spelled[word] = values[word]
    return spelled


def is_id(value: Decimal | str) -> bool:
    """Whether a value is one word with a digit in it, and no number."""
    if isinstance(value, Decimal) or len(value) < _SHORTEST_TEXT or not re.fullmatch(_WORD, value):
        return False
    is_number = all(char.isdigit() or char in ".," for char in value)
    return any(map(str.isdigit, value)) and not is_number


def leaf_texts(value: object, depth: int = 0) -> Iterator[str]:
    """The texts and numbers in a JSON value; a text that is JSON again is read as that."""
    if depth > _DEEPEST:
        yield json.dumps(value, ensure_ascii=False, default=str)
    elif isinstance(value, str):
        inside = result_value(value)
        if isinstance(inside, str):
            yield value
        else:
            yield from leaf_texts(inside, depth + 1)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaf_texts(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaf_texts(item, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        # Without an exponent, with its decimals: 5.0 may be an amount, 5 a count.
        yield f"{Decimal(repr(value) if isinstance(value, float) else value):f}"


def _values_in(text: str) -> Iterator[tuple[Decimal | str, str]]:
    """The values of a text, each with how it is written."""
    yield from _numbers_in(text)
    whole = _folded(text).strip(" .")
    if _SHORTEST_TEXT <= len(whole) <= _LONGEST_TEXT and any(map(str.isalpha, whole)):
        yield whole, " ".join(text.split())
    for match in re.finditer(_WORD, text):
        if is_id(match[0]):
            yield _folded(match[0]), shortened(match[0], _LONGEST_TEXT)


def _numbers_in(text: str) -> Iterator[tuple[Decimal, str]]:
    """The numbers of a text in every reading, each with how it is written."""
    # `USD56` and `56€` are amounts, `B56` and `7b` are parts of ids.
    text = re.sub(_CURRENCY, " $ ", text)
    for match in re.finditer(_NUMBER, text):
        start, end = match.span()
        if end - start > _MOST_DIGITS:
            continue
        is_amount = "$" in text[max(0, start - _CURRENCY_REACH) : end + _CURRENCY_REACH]
        for number in _readings(match[0]):
            is_small = number == number.to_integral_value() and number < _LEAST_BARE_NUMBER
            if is_amount or not (is_small and match[0].isdigit()):
                yield number, match[0]


def _readings(token: str) -> Iterator[Decimal]:
    """What a number may mean: a comma or a point before three digits can be either."""
    plain = token.replace("'", "").replace("\u00a0", "").replace("\u202f", "")
    last = max(plain.rfind("."), plain.rfind(","))
    if last < 0:
        yield Decimal(plain).normalize()
        return
    whole, decimals = plain[:last].replace(",", "").replace(".", ""), plain[last + 1 :]
    if plain.count(plain[last]) == 1:
        yield Decimal(f"{whole}.{decimals}").normalize()
    if len(decimals) == _THOUSANDS:
        yield Decimal(f"{whole}{decimals}").normalize()


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()

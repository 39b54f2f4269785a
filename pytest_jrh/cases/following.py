"""What an edit of a call took out of a transcript, and where other turns still say it.

A value is a number, an id or a text of at least four characters from arguments and results. What is
compared is what JSON means, without its escapes, and of a number what it amounts to: 56, 56.00,
$56.00 and 56,00 are one value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from pytest_jrh.cases.acts import result_value
from pytest_jrh.core.text import shortened
from pytest_jrh.core.transcript import message_text, storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.core.model import Message


_NUMBER = re.compile(r"\d+(?:[.,'\u00a0\u202f]\d+)*+")
_CURRENCY = re.compile(r"[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY|INR|dollars?|euros?)\b", re.IGNORECASE)
_TOKEN = re.compile(r"\w+(?:[-_./:@#+]\w+)*+")
_UNICODE_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})++")
_WORD = re.compile(r"[^\W_]++")
_THOUSANDS = 3
_SHORTEST_TEXT = 4
_LONGEST_TEXT = 200
_LEAST_BARE_NUMBER = 10
"""A smaller whole number is looked for with decimals or a currency alone: else every `1` is one."""
_MOST_DIGITS = 40
_CURRENCY_REACH = 8
_CURRENCY_CODE = 3
_MOST_VALUES = 1_000
"""Of one edit: a result of megabytes has thousands, each looked for in every later turn."""
_DEEPEST = 12

Values: TypeAlias = "dict[Decimal | str, str]"
"""Numbers, and ids and other texts with their case folded, each with how it is first written."""


def values_of_acts(messages: Iterable[Message], most: float = _MOST_VALUES) -> Values:
    """The first values in the arguments and results of messages, not in what is said beside
    them.
    """
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


def search_text(message: Message) -> tuple[str, ...]:
    """All that a message says, in parts, with JSON undone: words, reasoning, arguments, a result,
    and what a provider's own tools took and gave.
    """
    content = message.get("content")
    leaves: list[str] = []
    if isinstance(content, str):
        leaves += leaf_texts(result_value(content))
    else:
        for block in content or ():
            for name in ("text", "reasoning", "summary", "arguments", "result"):
                if isinstance(block.get(name), str):
                    leaves += leaf_texts(result_value(block[name]))
    error = message.get("error")
    if isinstance(error, dict):
        leaves += leaf_texts(error.get("message"))
    for call in message.get("tool_calls") or ():
        leaves += leaf_texts(call.get("arguments"))
    return tuple(leaves)


def mentioned(values: Values, texts: Sequence[str]) -> Values:
    """Which of the values are in texts, numbers first, each in its kind in order; numbers as the
    texts write them.
    """
    words = frozenset(value for value in values if isinstance(value, str))
    numbers: dict[Decimal, str] = {}
    present: set[str] = set()
    for text in texts:
        if len(words) < len(values):
            for number, spelling in _numbers_in(text):
                if number in values:
                    numbers.setdefault(number, spelling)
        if words:
            present |= _words_in(_folded(text), words)
    spelled: Values = dict(sorted(numbers.items()))
    for word in sorted(present):
        spelled[word] = values[word]
    return spelled


def is_id(value: Decimal | str) -> bool:
    """Whether a value is one word with a digit in it, and no number."""
    if isinstance(value, Decimal) or len(value) < _SHORTEST_TEXT or not _TOKEN.fullmatch(value):
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
            yield _UNICODE_ESCAPES.sub(_without_escapes, value)
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


def _without_escapes(escapes: re.Match[str]) -> str:
    """The characters of escapes side by side; half of a pair can be neither sent nor written."""
    return storable(str(json.loads(f'"{escapes[0]}"')))[0]


def _values_in(text: str) -> Iterator[tuple[Decimal | str, str]]:
    """The values of a text, each with how it is written."""
    yield from _numbers_in(text)
    whole = _folded(text).strip(" .")
    if _SHORTEST_TEXT <= len(whole) <= _LONGEST_TEXT and any(map(str.isalpha, whole)):
        yield whole, " ".join(text.split())
    for match in _TOKEN.finditer(text):
        if is_id(match[0]):
            yield _folded(match[0]), shortened(match[0], _LONGEST_TEXT)


def _numbers_in(text: str) -> Iterator[tuple[Decimal, str]]:
    """The numbers of a text in every reading, each with how it is written.

    Digits that are part of a word, an id or a date are none.
    """
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        if end - start > _MOST_DIGITS or _touches_word(text, start, end):
            continue
        around = text[max(0, start - _CURRENCY_REACH) : end + _CURRENCY_REACH]
        for number in _readings(match[0]):
            is_small = number == number.to_integral_value() and number < _LEAST_BARE_NUMBER
            if is_small and match[0].isdigit() and not _CURRENCY.search(around):
                continue
            yield number, match[0]


def _touches_word(text: str, start: int, end: int) -> bool:
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if before.isalnum():
        return _CURRENCY.fullmatch(text, max(0, start - _CURRENCY_CODE), start) is None
    if before in "_/" or after == "_":
        return True
    # `10:56` is a time; `Total:56.00` and the `"amount":56` of JSON in a sentence are amounts.
    if before == ":" and start > 1 and text[start - 2].isdigit():
        return True
    if before == "-" and start > 1 and text[start - 2].isalnum():
        return True
    if after in "-/:" and end + 1 < len(text) and text[end + 1].isalnum():
        # `56.00/month` is an amount.
        has_decimals = not text[start:end].isdigit()
        return not (after == "/" and has_decimals and text[end + 1].isalpha())
    # `56EUR` and `56€` are amounts, `7b` is part of an id.
    return after.isalnum() and _CURRENCY.match(text, end) is None


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


def _words_in(text: str, values: frozenset[str]) -> set[str]:
    """Which values a folded text has as words of their own, in one pass over its words."""
    values_of_word = _by_longest_word(values)
    present: set[str] = set()
    for word in _WORD.finditer(text):
        for value, offset in values_of_word.get(word[0], ()):
            start = word.start() - offset
            end = start + len(value)
            if value in present or start < 0 or not text.startswith(value, start):
                continue
            before = text[start - 1] if start else " "
            after = text[end] if end < len(text) else " "
            if not (before.isalnum() or after.isalnum()):
                present.add(value)
    return present


@lru_cache(maxsize=64)
def _by_longest_word(values: frozenset[str]) -> dict[str, list[tuple[str, int]]]:
    """The values under their longest word, each with where in it the word begins."""
    values_of_word: dict[str, list[tuple[str, int]]] = {}
    for value in values:
        longest = max(_WORD.finditer(value), key=lambda word: len(word[0]))
        values_of_word.setdefault(longest[0], []).append((value, longest.start()))
    return values_of_word

"""What an edit of a call took out of a transcript, where later turns still say it, and how they
are made to agree.

A value is a number, an id or a text of at least four characters from arguments and results. What is
compared is what JSON means, without its escapes, and of a number what it amounts to: 56, 56.00,
$56.00 and 56,00 are one value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from pytest_jrh.cases.acts import Act, calls_of_turn, result_value, with_words
from pytest_jrh.cases.pipeline import edit_words
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.model import Edit, PlanStep
from pytest_jrh.core.stages import MOST_FOLLOWING_EDITS
from pytest_jrh.core.text import shortened
from pytest_jrh.core.transcript import message_text, storable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pytest_jrh.cases.pipeline import Task, Work
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


@dataclass(frozen=True, slots=True)
class Values:
    """What arguments, results or words say: numbers, ids (texts with a digit) and other texts.

    `spellings` has each as it was first written.
    """

    numbers: frozenset[Decimal] = frozenset()
    ids: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    spellings: Mapping[Decimal | str, str] | None = None

    def __bool__(self) -> bool:
        return bool(self.numbers or self.ids or self.texts)

    def __sub__(self, other: Values) -> Values:
        return self.without({*other.numbers, *other.ids, *other.texts})

    def without(self, values: Collection[Decimal | str]) -> Values:
        """The values but these."""
        return Values(
            self.numbers.difference(values),
            self.ids.difference(values),
            self.texts.difference(values),
            self.spellings,
        )

    def __or__(self, other: Values) -> Values:
        return Values(
            self.numbers | other.numbers,
            self.ids | other.ids,
            self.texts | other.texts,
            {**(other.spellings or {}), **(self.spellings or {})},
        )


def values_of_acts(messages: Iterable[Message], most: float = _MOST_VALUES) -> Values:
    """The first values in the arguments and results of messages, not in what is said beside
    them.
    """
    collected = _Collected(most)
    for message in messages:
        for call in message.get("tool_calls") or ():
            collected.json(call.get("arguments"))
        if message.get("role") == "tool":
            collected.json(result_value(message_text(message)))
    return collected.values()


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


def mentioned(stale: Values, texts: Sequence[str]) -> dict[Decimal | str, str]:
    """Which of the values are in texts, numbers first, each in its kind in order; and how the texts
    write a number, or how an id or a text was first written.
    """
    numbers: dict[Decimal, str] = {}
    words: set[str] = set()
    for text in texts:
        if stale.numbers:
            for number, spelling in _numbers_in(text):
                if number in stale.numbers:
                    numbers.setdefault(number, spelling)
        if stale.ids or stale.texts:
            folded = _folded(text)
            words |= _values_in(folded, stale.ids) | _values_in(folded, stale.texts)
    spelled: dict[Decimal | str, str] = dict(sorted(numbers.items()))
    for word in sorted(words):
        spelled[word] = (stale.spellings or {}).get(word, word)
    return spelled


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


class _Collected:
    """The values met so far, `most` at most."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._numbers: set[Decimal] = set()
        self._ids: set[str] = set()
        self._texts: set[str] = set()
        self._spellings: dict[Decimal | str, str] = {}

    def values(self) -> Values:
        return Values(
            frozenset(self._numbers),
            frozenset(self._ids),
            frozenset(self._texts - self._ids),
            self._spellings,
        )

    def json(self, value: Any) -> None:
        for leaf in leaf_texts(value):
            self._text(leaf)
            if self._is_full:
                return

    @property
    def _is_full(self) -> bool:
        return len(self._spellings) >= self._most

    def _text(self, text: str) -> None:
        for number, spelling in _numbers_in(text):
            if self._is_full:
                return
            self._numbers.add(number)
            self._spellings.setdefault(number, spelling)
        whole = _folded(text).strip(" .")
        if _SHORTEST_TEXT <= len(whole) <= _LONGEST_TEXT and any(map(str.isalpha, whole)):
            self._texts.add(whole)
            self._spellings.setdefault(whole, " ".join(text.split()))
        for match in _TOKEN.finditer(text):
            if self._is_full:
                break
            token = match[0]
            folded = _folded(token)
            has_digit = any(map(str.isdigit, token))
            if len(token) >= _SHORTEST_TEXT and has_digit and not _is_number(token):
                self._ids.add(folded)
                self._spellings.setdefault(folded, shortened(token, _LONGEST_TEXT))


def _numbers_in(text: str) -> Iterator[tuple[Decimal, str]]:
    """The numbers of a text in every reading, each with how it is written.

    Digits that are part of a word, an id or a date are none.
    """
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        if end - start > _MOST_DIGITS or _touches_word(text, start, end):
            continue
        for number in _readings(match[0]):
            bare = number == number.to_integral_value() and number < _LEAST_BARE_NUMBER
            if bare and match[0].isdigit() and not _has_currency(text, start, end):
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


def _has_currency(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - _CURRENCY_REACH) : end + _CURRENCY_REACH]
    return _CURRENCY.search(around) is not None


def _readings(token: str) -> Iterator[Decimal]:
    """What a number may mean: a comma or a point before three digits can be either."""
    plain = token.replace("'", "").replace("\u00a0", "").replace("\u202f", "")
    last = max(plain.rfind("."), plain.rfind(","))
    if last < 0:
        yield Decimal(plain).normalize()
        return
    separator, other = plain[last], ",."[plain[last] == ","]
    decimals = plain[last + 1 :]
    if plain.count(separator) == 1:
        whole = plain[:last].replace(other, "")
        yield Decimal(f"{whole}.{decimals}").normalize()
    if len(decimals) == _THOUSANDS:
        yield Decimal(plain.replace(",", "").replace(".", "")).normalize()


def _is_number(token: str) -> bool:
    return all(char.isdigit() or char in ".," for char in token)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _values_in(text: str, values: frozenset[str]) -> set[str]:
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


class Making(Protocol):
    """The edits of one case while they are made; `planned` are the positions of the plan's own."""

    work: Work
    task: Task
    planned: set[int]

    async def change(self, step: PlanStep, act: Act, follows: str) -> bool:
        """Have the editor write a call and its result anew; False where it leaves them."""
        ...

    def leave_reasoning_out(self, step: PlanStep, position: int, follows: str) -> None:
        """Drop the reasoning of a turn."""
        ...


@dataclass(slots=True)
class _Stale:
    """What one edit took out: no turn behind it may say the values that are `gone`; of `doubtful`
    ones, which stand before it too, the editor is asked.

    Of a call that was `omitted` a later result may bring the values by itself.
    """

    behind: int
    gone: Values
    doubtful: Values
    omitted: bool

    def brought(self, texts: Sequence[str]) -> None:
        """Take a later result's values for known."""
        present = frozenset(mentioned(self.gone | self.doubtful, texts))
        self.gone, self.doubtful = self.gone.without(present), self.doubtful.without(present)


@dataclass(slots=True)
class Following:
    """The search for what was changed, from the first changed act to the end.

    `changes` says what was changed, for the editor.
    """

    making: Making
    stale: list[_Stale] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    edits_left: int = MOST_FOLLOWING_EDITS

    def start(self, edit: Edit) -> None:
        """Look for what an edit took out, from behind it."""
        # All that is there now: a value that only moved was not taken out.
        values = values_of_acts(edit.before) - values_of_acts(edit.after, most=math.inf)
        if not values:
            return
        earlier: set[Any] = set()
        for message in self.making.work.messages[: edit.message_index]:
            earlier |= mentioned(values, search_text(message)).keys()
        gone = values.without(earlier)
        # A word that was said before says nothing of the act.
        doubtful = replace(values - gone, texts=frozenset())
        behind = edit.message_index + len(edit.after)
        self.stale.append(_Stale(behind, gone, doubtful, edit.kind == "omit"))
        now = edit.edited_content or "(left out)"
        self.changes.append(f"[{edit.message_index}] was:\n{edit.original_content}\nis now:\n{now}")

    async def search(self) -> None:
        """Go through the turns in order, as far as they are not the plan's own."""
        position = min((stale.behind for stale in self.stale), default=None)
        while position is not None and position < len(self.making.work.messages):
            if position not in self.making.planned:
                await self._look(position)
            position += 1

    async def _look(self, position: int) -> None:
        certain, doubtful = self._said(position, self._message(position))
        if not (certain or doubtful):
            return
        role = self._message(position).get("role")
        if self.edits_left and role in ("assistant", "tool"):
            await self._edit(position, [*certain, *doubtful])
        texts = search_text(self._message(position))
        for stale in self.stale:
            if role == "tool" and stale.omitted and position >= stale.behind:
                stale.brought(texts)
        certain, _doubtful = self._said(position, self._message(position))
        if certain:
            raise NoVerdictCase("stale_value", f"[{position}] still says {', '.join(certain[:3])}")

    async def _edit(self, position: int, spelled: Sequence[str]) -> None:
        """Have the editor look at a turn's calls that say a stale value, at a result, or at the
        turn's words.
        """
        making, values = self.making, ", ".join(spelled[:10])
        follows = f"[{position}] still says {', '.join(spelled[:3])}"
        changes = "\n\n".join(self.changes)
        goal = (
            f"The transcript was changed before this turn, which still says {values}. Make it "
            f"agree with the change, and change nothing else. What was changed:\n{changes}"
        )
        step = PlanStep(position, goal, follows, "call")
        turn = position
        while turn and making.work.messages[turn].get("role") == "tool":
            turn -= 1
        for act in calls_of_turn(making.work.messages, turn):
            says_it = act.turn == position and any(self._said(position, {"tool_calls": [act.call]}))
            if len(act.results) == 1 and self.edits_left and (says_it or position in act.results):
                self.edits_left -= 1
                if await making.change(step, act, follows):
                    self.start(making.work.edits[-1])
        message = self._message(position)
        if message["role"] != "assistant":
            return
        without_reasoning, dropped = with_words(message, "")
        if dropped and not any(self._said(position, {**without_reasoning, "tool_calls": None})):
            making.leave_reasoning_out(replace(step, kind="say"), position, follows)
        elif self.edits_left and any(self._said(position, {**message, "tool_calls": None})):
            self.edits_left -= 1
            say = replace(step, kind="say")
            await edit_words(making.work, making.task, say, position, follows)

    def _message(self, position: int) -> Message:
        return self.making.work.messages[position]

    def _said(self, position: int, message: Message) -> tuple[list[str], list[str]]:
        """What a message at a position says that is gone, and that is doubtful."""
        texts = search_text(message)
        certain: dict[str, None] = {}
        doubtful: dict[str, None] = {}
        for stale in self.stale:
            if position >= stale.behind:
                certain |= dict.fromkeys(mentioned(stale.gone, texts).values())
                doubtful |= dict.fromkeys(mentioned(stale.doubtful, texts).values())
        return list(certain), list(doubtful)

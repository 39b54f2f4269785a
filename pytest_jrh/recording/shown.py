"""Which turns of a case its judge was shown: they are looked for in the prompts and JSON bodies
that the judge has sent, as they are and as JSON writes them.

Texts are compared by words: of an edited turn those that its original has not decide, each in a run
of five words that stands nowhere else in the case. What cannot be told that way is unknown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pytest_jrh.cases.acts import edited_turns
from pytest_jrh.core.model import ShownTurns
from pytest_jrh.core.redact import REDACTED
from pytest_jrh.core.transcript import has_media, message_text

if TYPE_CHECKING:
    from pytest_jrh.core.model import Case, Message
    from pytest_jrh.recording.exchanges import HttpRequest


# Fewer words stand in many texts by chance.
_RUN = 5
# Characters that are compared by words: a word of them takes about a hundred bytes.
_MOST_SENT = 3_000_000
# How often JSON may be written into JSON.
_MOST_NESTING = 4
# Characters of a value that is told from others without its key.
_SURE_VALUE = 4
# An image or an archive, or the tokens of a text as numbers: no digest or key is that long.
_UNREADABLE = re.compile(r"[A-Za-z0-9+/]{400}|(?:\d{1,6}\n){50}")
_WORD = re.compile(r"[^\W_]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANK_ESCAPES = "nrtfbv"

_State: TypeAlias = Literal["shown", "missing", "unknown", "ambiguous"]
_Turns: TypeAlias = "Mapping[int, Sequence[Message]]"
"""Turns to look for by their positions, each with what stood there before it was edited."""


class SentTexts:
    """What a judge has sent for one case: a text for each request, each once.

    `is_partial` says that it has sent more than is known here, or in another form.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self.redact = redact
        self.is_partial = False
        self.texts: dict[str, None] = {}

    def asked(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Note a request to a model."""
        self.texts["\n".join(map(message_text, messages))] = None

    def sent(self, request: HttpRequest) -> None:
        """Note a request of a judge's own code."""
        try:
            value = json.loads(
                request.body, parse_int=str, parse_float=str, object_pairs_hook=_keys_and_values
            )
        except (ValueError, RecursionError):
            value = request.body
            self.is_partial = True
        text = "\n".join(_flat(value))
        self.is_partial |= _UNREADABLE.search(text) is not None
        self.texts[text] = None


def _keys_and_values(pairs: list[tuple[str, object]]) -> list[object]:
    """What an object holds, also where it has a key twice."""
    return list(chain.from_iterable(pairs))


def _flat(value: object) -> Iterator[str]:
    """The keys, texts and values of a JSON value, in their order."""
    stack = [value]
    while stack:
        inner = stack.pop()
        if isinstance(inner, list):
            stack += reversed(inner)
        elif inner is not None:
            yield _as_text(inner)


def shown_turns(case: Case, sent: SentTexts) -> ShownTurns:
    """Look for the edited turns of a case in what its judge has sent; of a case without edits for
    all of its turns.
    """
    is_whole = not case.outcome.edits
    turns = _turns_to_show(case.messages) if is_whole else _edited_turns(case)
    if not sent.texts or sum(map(len, sent.texts)) > _MOST_SENT:
        return ShownTurns(len(turns), unknown=len(turns), is_whole=is_whole)
    search = _Search(case, sent)
    if search.has_all_in_order:
        return ShownTurns(len(turns), is_whole=is_whole)
    missing = []
    unknown = 0
    for index, original in turns.items():
        state = search.state_of(index, original)
        if state == "missing":
            missing.append(index)
        elif state == "unknown":
            unknown += 1
    return ShownTurns(len(turns), tuple(missing), unknown, is_whole=is_whole)


def _edited_turns(case: Case) -> _Turns:
    turns: dict[int, Sequence[Message]] = {}
    for edit in case.outcome.edits:
        position = edit.message_index
        if not edit.before and not edit.after:
            message = {**case.messages[position], "content": edit.original_content}
            turns.setdefault(position, (message,))
            continue
        for index in sorted(edited_turns([edit])):
            turns.setdefault(index, edit.before)
        if len(edit.after) < len(edit.before):
            # What was left out is not there where the turns at either side of it are.
            for index in (position + len(edit.after) - 1, position + len(edit.after)):
                if 0 <= index < len(case.messages):
                    turns.setdefault(index, ())
    return dict(sorted(turns.items()))


def _turns_to_show(messages: Sequence[Message]) -> _Turns:
    """The turns that hold something: text, a call, or media.

    A system message is none: Inspect's own history template leaves it out, as many prompts do.
    """
    turns: dict[int, Sequence[Message]] = {}
    for index, message in enumerate(messages):
        if message.get("role") == "system":
            continue
        if _texts(message) or message.get("tool_calls") or has_media([message]):
            turns[index] = ()
    return turns


def _texts(message: Message) -> list[str]:
    """The texts of a turn, without its calls and the agent's reasoning."""
    content, error = message.get("content"), message.get("error")
    texts: list[object] = [content]
    for block in content if isinstance(content, list) else ():
        texts += [block.get(key) for key in ("text", "arguments", "result")]
    if isinstance(error, Mapping):
        texts.append(error.get("message"))
    return [text for text in texts if isinstance(text, str) and text.strip()]


class _Part(NamedTuple):
    """A part of a turn as words: a text, or a value in the arguments of a call behind its key, of
    so many words.
    """

    words: tuple[str, ...]
    key_words: int = 0

    @property
    def value(self) -> _Part | None:
        """The value alone, where it is long enough to be told from others."""
        words = self.words[self.key_words :]
        is_short = len(words) == 1 and len(words[0]) < _SURE_VALUE
        return None if is_short or not words or not self.key_words else _Part(words)


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))


def _runs(words: Sequence[str], length: int) -> list[int]:
    """A digest of each run of so many words, by its first word."""
    return list(map(hash, zip(*(words[start:] for start in range(length)), strict=False)))


def _within(starts: Iterable[int], length: int) -> set[int]:
    """The words within runs that start there."""
    words: set[int] = set()
    for start in starts:
        words.update(range(start, start + length))
    return words


def _stretches(words: Iterable[int]) -> list[list[int]]:
    """Words that stand side by side, together."""
    stretches: list[list[int]] = []
    for word in sorted(words):
        if stretches and stretches[-1][-1] == word - 1:
            stretches[-1].append(word)
        else:
            stretches.append([word])
    return stretches


def _leaves(key: str, value: object) -> Iterator[tuple[str, str]]:
    """The texts, numbers and words in a JSON value, each with its key; those of a list together,
    since the key stands before the first alone.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(str(name), inner)
    elif isinstance(value, list | tuple):
        if value and all(isinstance(inner, str | int | float) for inner in value):
            yield key, " ".join(map(_as_text, value))
        else:
            for inner in value:
                yield from _leaves(key, inner)
    elif value is not None:
        yield key, _as_text(value)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


class _Search:
    """The turns of a case, looked for in what was sent."""

    def __init__(self, case: Case, sent: SentTexts) -> None:
        self._case = case
        self._sent = sent
        self._is_redacted = any(REDACTED in text for text in sent.texts)
        self._sent_runs: dict[int, set[int]] = {}
        self._case_runs: dict[int, Counter[int]] = {}

    @cached_property
    def _sent_words(self) -> list[tuple[str, ...]]:
        """The words of each text that was sent, as it is and with the escapes of JSON undone."""
        texts = list(self._sent.texts)
        if len(texts) > 1:
            texts.append(_joined(texts))
        words: list[tuple[str, ...]] = []
        for sent_text in texts:
            text, before = sent_text, ""
            for _ in range(_MOST_NESTING):
                if text == before:
                    break
                words.append(_words(text))
                before, text = text, _without_escapes(text)
        return words

    @property
    def has_all_in_order(self) -> bool:
        """Whether one of the texts holds all turns, one behind the other."""
        if has_media(self._case.messages):
            return False
        for undo in (str, _without_escapes):
            in_order: list[str] = []
            for message in self._case.messages:
                in_order += [self._clean(text) for text in _texts(message)]
                for call in message.get("tool_calls") or ():
                    arguments = call.get("arguments")
                    in_order.append(undo(json.dumps(arguments, ensure_ascii=False, default=str)))
            spaced = [f" {' '.join(words)} " for words in map(_words, in_order) if words]
            if any(_holds(f" {' '.join(words)} ", spaced) for words in self._sent_words):
                return True
        return False

    def _clean(self, text: str) -> str:
        """A text of the case as it was sent where that is known without its secrets."""
        return self._sent.redact(text) if self._is_redacted else text

    def _parts(self, message: Message) -> list[_Part]:
        parts = [_Part(_words(self._clean(text))) for text in _texts(message)]
        for call in message.get("tool_calls") or ():
            leaves = list(_leaves("", call.get("arguments")))
            for key, value in leaves:
                key_words = _words(key)
                parts.append(_Part((*key_words, *_words(self._clean(value))), len(key_words)))
            if not leaves:
                parts.append(_Part(_words(str(call.get("function", "")))))
        return [part for part in parts if part.words]

    @cached_property
    def _parts_of_case(self) -> list[list[_Part]]:
        return [self._parts(message) for message in self._case.messages]

    def state_of(self, index: int, original: Sequence[Message]) -> _State:
        """What can be said of a turn; in an edited one what its `original` has not decides."""
        parts = self._parts_of_case[index]
        original_parts = list(chain.from_iterable(map(self._parts, original)))
        changed = [part for part in parts if part not in original_parts] or parts
        old_runs: set[int] = set()
        for length in range(1, _RUN + 1):
            for part in original_parts:
                old_runs.update(_runs(part.words, length))
        states = {self._state_of_part(part, old_runs) for part in changed}
        if "missing" in states:
            # What cannot be read may hold it.
            return "unknown" if self._sent.is_partial else "missing"
        return "shown" if "shown" in states and "unknown" not in states else "unknown"

    def _state_of_part(self, part: _Part, old_runs: set[int]) -> _State:
        state = self._state_of_words(part.words, old_runs)
        if state == "missing" and part.value is not None:
            # Some judges write arguments without their names.
            return self._state_of_words(part.value.words, old_runs)
        return state

    def _state_of_words(self, words: Sequence[str], old_runs: set[int]) -> _State:
        length = min(_RUN, len(words))
        runs = _runs(words, length)
        kept = [start for start, run in enumerate(runs) if run in old_runs]
        telling = [start for start, run in enumerate(runs) if self._is_telling(run, length)]
        sent = {start for start in telling if self._is_sent(runs[start], length)}
        every_word = set(range(len(words)))
        changed = every_word - _within(kept, length)
        if not changed:
            # Words were left out: those at either side of the gap stand together.
            gaps = _stretches(set(telling).difference(kept))
            if gaps and all(set(gap) & sent for gap in gaps):
                return "shown"
        # Where only the beginning or the end was left out, the rest decides.
        deciding = (changed or every_word) & _within(telling, length)
        if not deciding:
            # The words stand elsewhere, too.
            return "ambiguous" if all(self._is_sent(run, length) for run in runs) else "missing"
        return self._state_of_stretches(deciding, _within(sent, length))

    def _state_of_stretches(self, deciding: set[int], sent: set[int]) -> _State:
        holes = []
        for hole in _stretches(deciding - sent):
            # Such as a name that the judge has made unreadable.
            is_word = len(hole) == 1 and {hole[0] - 1, hole[0] + 1} <= sent
            if not is_word or len(deciding) < _RUN:
                holes.append(hole)
        if not holes:
            return "shown"
        is_cut = len(self._sent.texts) > 1 and deciding & sent
        return "unknown" if is_cut and max(map(len, holes)) < _RUN else "missing"

    def _is_sent(self, run: int, length: int) -> bool:
        if length not in self._sent_runs:
            runs: set[int] = set()
            for words in self._sent_words:
                runs.update(_runs(words, length))
            self._sent_runs[length] = runs
        return run in self._sent_runs[length]

    def _is_telling(self, run: int, length: int) -> bool:
        """Whether a run of words stands once in the case, and not in its rubric."""
        if length not in self._case_runs:
            rubric_runs = _runs(_words(self._case.rubric.instructions), length)
            counts = Counter(2 * rubric_runs)
            for part in chain.from_iterable(self._parts_of_case):
                counts.update(_runs(part.words, length))
            self._case_runs[length] = counts
        return self._case_runs[length][run] <= 1


def _holds(text: str, in_order: Iterable[str]) -> bool:
    end = 0
    for part in in_order:
        end = text.find(part, end)
        if end < 0:
            return False
        # The blank behind a part may be the one before the next.
        end += len(part) - 1
    return True


def _joined(texts: Sequence[str]) -> str:
    """Texts one behind the other, without what all begin and end with: a transcript may have been
    cut within a word.
    """
    start = len(commonprefix(texts))  # noqa: RUF071 - of texts, which are no paths
    end = len(commonprefix([text[:start:-1] for text in texts]))  # noqa: RUF071 - as above
    return "".join(text[start : len(text) - end] for text in texts)


def _without_escapes(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    if code is not None:
        return chr(int(code, 16))
    return " " if letter in _BLANK_ESCAPES else letter

"""Which turns of a case its judge was shown: they are looked for in what the judge has sent.

A turn is first looked for as it is. Where it is not found so, what was sent is read as JSON, forms,
escapes and base64 are, and compared by words: of an edited turn those that its original has not
decide, each in a run of five words that stands nowhere else in the case. What cannot be told that
way is unknown.
"""

from __future__ import annotations

import base64
import codecs
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlsplit

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
_MOST_NESTING = 4
_MOST_TRIES = 50
_MOST_FIELDS = 10_000
# Characters of a text that is taken for no other's, and of a value that is told from others.
_SURE_LENGTH = 60
_SURE_VALUE = 4
# What is longer, and no text in base64, is no digest or key, but an image or something packed.
_LONGEST_NAME = 400
# So many numbers in a row, and nothing else, are no text: the tokens of one, or an image.
_MOST_NUMBERS = 50
_WORD = re.compile(r"[^\W_]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\r\n]{64,}={0,2}")
_BLANKS = re.compile(r"\s+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANK_ESCAPES = "nrtfbv"
_URL_SAFE = str.maketrans("-_", "+/")

_State: TypeAlias = Literal["shown", "missing", "unknown", "ambiguous"]


class SentTexts:
    """What a judge has sent for one case, request by request, each once.

    `is_partial` says that it has sent more than is known here.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self.redact = redact
        self.is_partial = False
        self.requests: dict[tuple[str, ...], None] = {}

    def asked(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Note a request to a model."""
        self.requests[tuple(map(message_text, messages))] = None

    def sent(self, request: HttpRequest) -> None:
        """Note a request of a judge's own code."""
        query, body = urlsplit(request.uri).query, request.body
        # Of what a library reads by itself, such as a file, its type alone is known.
        self.is_partial |= body.isidentifier() or body.startswith('["FormData"')
        self.requests[(query, body) if query else (body,)] = None

    @property
    def texts(self) -> Iterator[str]:
        """All texts of all requests."""
        return chain.from_iterable(self.requests)


def shown_turns(case: Case, sent: SentTexts) -> ShownTurns:
    """Look for the edited turns of a case in what its judge has sent; of a case without edits for
    all of its turns.
    """
    is_whole = not case.outcome.edits
    turns = _turns_to_show(case.messages) if is_whole else _edited_turns(case)
    if not sent.requests:
        return ShownTurns(len(turns), unknown=len(turns), is_whole=is_whole)
    if not is_whole and all(_is_plain(case, index, sent) for index in turns):
        return ShownTurns(len(turns))
    search = _Search(case, sent)
    if search.has_all_in_order:
        return ShownTurns(len(turns), is_whole=is_whole)
    missing = []
    unknown = 0
    for index, original in turns.items():
        state = search.state_of(index, original)
        if state == "missing":
            missing.append(index)
        elif state != "shown":
            unknown += 1
    return ShownTurns(len(turns), tuple(missing), unknown, is_whole=is_whole)


_Turns: TypeAlias = "Mapping[int, Sequence[Message]]"
"""Turns to look for by their positions, each with what stood there before it was edited."""


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


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _end_of(lines: Sequence[str], text: str, start: int) -> int:
    """Where lines that follow each other end in a text, whatever its indentation; -1 where they are
    not there.
    """
    for _ in range(_MOST_TRIES):
        first = text.find(lines[0], start)
        if first < 0:
            return -1
        end = first + len(lines[0])
        for line in lines[1:]:
            begin = _after_blanks(text, end)
            if not text.startswith(line, begin):
                break
            end = begin + len(line)
        else:
            return end
        start = first + 1
    return -1


def _after_blanks(text: str, start: int) -> int:
    blanks = _BLANKS.match(text, start)
    return start if blanks is None else blanks.end()


def _is_plain(case: Case, index: int, sent: SentTexts) -> bool:
    """Whether a turn that is long enough to be no other's was sent as it is."""
    if case.messages[index].get("tool_calls") and case.outcome.edits[0].after:
        return False
    texts = _texts(case.messages[index])
    if len(texts) != 1 or len(texts[0]) < _SURE_LENGTH:
        return False
    lines = _lines(texts[0])
    if not any(_end_of(lines, text, 0) >= 0 for text in sent.texts):
        return False
    for number, message in enumerate(case.messages):
        if number != index and any(texts[0] in text for text in _texts(message)):
            return False
    return True


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


def _leaves(arguments: object) -> Iterator[tuple[str, str]]:
    """The texts, numbers and words in a JSON value, each with its key; those of a list together,
    since the key stands before the first alone.
    """
    stack: list[tuple[str, object]] = [("", arguments)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [(str(name), inner) for name, inner in reversed([*value.items()])]
        elif isinstance(value, list | tuple):
            if value and all(isinstance(inner, str | int | float) for inner in value):
                yield key, " ".join(map(_as_text, value))
            else:
                stack += [(key, inner) for inner in reversed(value)]
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
    def _reading(self) -> Reading:
        """What was sent as it is meant."""
        reading = Reading(is_partial=self._sent.is_partial)
        if sum(map(len, self._sent.texts)) > _MOST_SENT:
            reading.is_partial = True
            return reading
        longest_texts = []
        for request in self._sent.requests:
            start = len(reading.texts)
            for text in request:
                reading.read(text)
            longest_texts.append(max(reading.texts[start:], key=len, default=""))
        if len(longest_texts) > 1:
            reading.read(_joined(longest_texts))
        return reading

    @property
    def has_all_in_order(self) -> bool:
        """Whether one of the texts holds all turns, one behind the other."""
        in_order: list[list[str]] = []
        for message in self._case.messages:
            if has_media([message]):
                return False
            in_order += [_lines(self._clean(text)) for text in _texts(message)]
            for call in message.get("tool_calls") or ():
                arguments = json.dumps(call.get("arguments"), ensure_ascii=False, default=str)
                in_order.append([arguments])
        if any(_holds(text, in_order) for text in self._sent.texts):
            return True
        return any(_holds(text, in_order) for text in self._reading.texts)

    def _clean(self, text: str) -> str:
        """A text of the case as it was sent where that is known without its secrets."""
        return self._sent.redact(text) if self._is_redacted else text

    def _parts(self, message: Message) -> list[_Part]:
        parts = [_Part(_words(self._clean(text))) for text in _texts(message)]
        for call in message.get("tool_calls") or ():
            leaves = list(_leaves(call.get("arguments")))
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
        old_parts = set(original_parts)
        changed = [part for part in parts if part not in old_parts] or parts
        old_runs: set[int] = set()
        for length in range(1, _RUN + 1):
            for part in original_parts:
                old_runs.update(_runs(part.words, length))
        states = {self._state_of_part(part, old_runs) for part in changed}
        if "missing" in states:
            # What cannot be read may hold it.
            return "unknown" if self._reading.is_partial else "missing"
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
        kept: list[int] = []
        joints: list[int] = []
        telling: list[int] = []
        sent: list[int] = []
        for start, run in enumerate(runs):
            (kept if run in old_runs else joints).append(start)
            if self._is_telling(run, length):
                telling.append(start)
                if self._is_sent(run, length):
                    sent.append(start)
        every_word = set(range(len(words)))
        changed = every_word - _within(kept, length)
        if not changed and joints:
            # Words were left out: those at either side of the gap stand together.
            gaps = _stretches(set(joints).intersection(telling))
            if gaps and all(set(gap).intersection(sent) for gap in gaps):
                return "shown"
        # Where only the beginning or the end was left out, the rest decides.
        deciding = (changed or every_word) & _within(telling, length)
        if not deciding:
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
        is_cut = len(self._sent.requests) > 1 and deciding & sent
        return "unknown" if is_cut and max(map(len, holes)) < _RUN else "missing"

    def _is_sent(self, run: int, length: int) -> bool:
        if length not in self._sent_runs:
            runs: set[int] = set()
            for words in self._reading.words:
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


def _holds(text: str, in_order: Iterable[Sequence[str]]) -> bool:
    end = 0
    for lines in in_order:
        end = _end_of(lines, text, end)
        if end < 0:
            return False
    return True


def _joined(texts: Sequence[str]) -> str:
    """Texts one behind the other, without what all begin and end with: a transcript may have been
    cut within a word.
    """
    start = len(commonprefix(texts))  # noqa: RUF071 - of texts, which are no paths
    end = len(commonprefix([text[:start:-1] for text in texts]))  # noqa: RUF071 - as above
    return "".join(text[start : len(text) - end] for text in texts)


class Reading:
    """Texts as they are meant: JSON, forms, escapes and base64 in them undone, as often as they
    were written into each other.

    `is_partial` says that there is something else in them that cannot be read.
    """

    def __init__(self, *, is_partial: bool = False) -> None:
        self.texts: list[str] = []
        self.is_partial = is_partial

    @cached_property
    def words(self) -> list[tuple[str, ...]]:
        """The words of each text."""
        return list(map(_words, self.texts))

    def read(self, text: str, nesting: int = 0) -> None:
        """Add what a text holds."""
        self.is_partial |= "\N{REPLACEMENT CHARACTER}" in text
        try:
            value = json.loads(
                text, parse_int=str, parse_float=str, object_pairs_hook=_keys_and_values
            )
        except (ValueError, RecursionError):
            value = text
        if not isinstance(value, str):
            self._read_value(value, nesting)
            return
        if nesting > _MOST_NESTING:
            return
        if "=" in value.rstrip("=") and not _BLANKS.search(value):
            try:
                fields = parse_qsl(value, max_num_fields=_MOST_FIELDS)
            except ValueError:
                self.is_partial = True
                fields = []
            for name, field in fields:
                self.texts.append(name)
                self.read(field, nesting + 1)
            if fields:
                return
        self._read_text(value, nesting)

    def _read_value(self, value: object, nesting: int) -> None:
        """Add a JSON value: keys and texts in their order as one text, and what these hold."""
        texts: list[str] = []
        numbers = 0
        stack = [value]
        while stack:
            inner = stack.pop()
            if isinstance(inner, list):
                stack += reversed(inner)
            elif inner is not None:
                text = inner if isinstance(inner, str) else json.dumps(inner)
                texts.append(text)
                numbers = numbers + 1 if text.isdecimal() else 0
                self.is_partial |= numbers > _MOST_NUMBERS
        self.texts.append("\n".join(texts))
        for text in texts if nesting < _MOST_NESTING else ():
            if _is_written(text):
                self.read(text, nesting + 1)

    def _read_text(self, text: str, nesting: int) -> None:
        self.texts.append(text)
        for _ in range(_MOST_NESTING):
            plain = html.unescape(_ESCAPE.sub(_unescaped, text))
            if plain == text:
                break
            self.texts.append(plain)
            text = plain
        for match in _BASE64.finditer(text):
            decoded = _decoded(match.group())
            if decoded is not None:
                self.read(decoded, nesting + 1)
            elif len(match.group()) > _LONGEST_NAME:
                self.is_partial = True


def _keys_and_values(pairs: list[tuple[str, object]]) -> list[object]:
    """What an object holds, also where it has a key twice."""
    return list(chain.from_iterable(pairs))


def _is_written(text: str) -> bool:
    """Whether a text may be another one in writing."""
    if text[:1] in '{["' or "\\" in text or "&" in text:
        return True
    return _BASE64.search(text) is not None


def _unescaped(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    if code is not None:
        return chr(int(code, 16))
    return " " if letter in _BLANK_ESCAPES else letter


def _decoded(run: str) -> str | None:
    """The text in base64; None where it is none."""
    lines = run.split()
    # Words before it may have been taken for its first lines, and one behind it for its last.
    while len(lines) > 1 and len(lines[0]) < len(lines[1]):
        del lines[0]
    text = _text_of("".join(lines))
    return _text_of("".join(lines[:-1])) if text is None and len(lines) > 1 else text


def _text_of(digits: str) -> str | None:
    digits = digits.rstrip("=").translate(_URL_SAFE)
    # What was cut ends anywhere.
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    try:
        data = base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
        return codecs.getincrementaldecoder("utf-8")().decode(data)
    except ValueError:
        return None

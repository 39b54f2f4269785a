"""Which turns of a case its judge was shown: their words are looked for in the prompts and JSON
bodies that it has sent; of an edited turn what its original has not, with the words before.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal, TypeAlias

from pytest_jrh.core.cases import Case, Message, Messages
from pytest_jrh.core.diffs import edited_turns, shared_ends
from pytest_jrh.core.redact import REDACTED
from pytest_jrh.core.results import ShownTurns
from pytest_jrh.core.transcript import media_in, message_text, render_transcript, texts_of
from pytest_jrh.llm.calls import UNUSABLE
from pytest_jrh.recording.exchanges import HttpRequest

# Words that tell what was changed from the same elsewhere.
_CONTEXT = 8
# Characters of a piece of a text: shorter ones stand in others by chance.
_SURE_PIECE = 25
# Characters of an argument that is told from others without its name.
_SURE_ARGUMENT = 4
# Of a block, the keys of what is text of its turn, unlike the agent's reasoning.
_BLOCK_TEXTS = ("text", "arguments", "result")
# Characters that are searched.
_MOST_SENT = 1_000_000
# An image or an archive, or the tokens of a text as numbers: no digest or key is that long.
_UNREADABLE = r"[A-Za-z0-9+/]{400}|(?:\d{1,6},\s*){50}"
# JSON within JSON has more backslashes.
_ESCAPE = r"\\+(?:u([0-9a-fA-F]{4})|[nrtfbv])?"
# Ends of sentences count as words. Left out are letters beyond 16 bits, which JSON writes as two
# escapes, and what Python writes in another way than JSON.
_WORD = r"(?!(?:none|null)\b)[^\W_\U00010000-\U0010FFFF]+|[.!?]"

_State = Literal["shown", "missing", "unknown"]
_Words = tuple[str, ...]
_Turns: TypeAlias = "dict[int, Messages]"
"""Turns to look for, each with those that it was made from."""


class SentTexts:
    """What a judge has sent for one case: a text for each request, each once.

    `is_partial` says that it has sent more than is known here, or in another form, and `read` how
    many tokens of a prompt its server read, where it has cut one.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self.redact = redact
        self.is_partial = False
        self.read = 0
        self.asked_again = False
        self.texts: dict[str, None] = {}

    def asked(self, messages: Sequence[Message]) -> None:
        """Note a request to a model."""
        self.texts["\n".join(map(message_text, messages))] = None
        self.asked_again |= message_text(messages[-1]).startswith(UNUSABLE)

    def sent(self, request: HttpRequest) -> None:
        """Note a request of a judge's own code."""
        try:
            json.loads(request.body)
        except (ValueError, RecursionError):
            self.is_partial = True
        self.is_partial |= re.search(_UNREADABLE, request.body) is not None
        self.texts[request.body] = None


# Of a server's window, in tokens. Less is counted by servers that do not really count.
_SMALLEST_WINDOW = 500
_READ_WORD = r"[^\W_]+"
_READ_CHARACTER = "[\u3040-\u30ff\u3400-\u9fff]"
_CHARACTERS_A_TOKEN = 4
# Of the fewest tokens that a text can have: a tokenizer may join a few words.
_FAR_FEWER = 0.75


def is_cut(messages: Iterable[Message], tokens: int) -> bool:
    """Whether a server that read so many tokens cannot have read the whole prompt.

    Tokenizers do not join words, so a text has at least a token a word. Chinese and Japanese have
    no spaces: there a token has four characters at most, on average. Images only add tokens.
    """
    text = "\n".join(map(message_text, messages))
    if tokens < _SMALLEST_WINDOW or len(text) < (_CHARACTERS_A_TOKEN + 1) * tokens:
        return False
    least = (
        len(re.findall(_READ_WORD, text))
        + len(re.findall(_READ_CHARACTER, text)) / _CHARACTERS_A_TOKEN
    )
    return tokens < _FAR_FEWER * least


def shown_turns(case: Case, sent: SentTexts) -> ShownTurns:
    """The turns of a case that its judge sent; whether a server that cut the prompt read them,
    nobody can tell.
    """
    shown = replace(_sent_turns(case, sent), asked_again=sent.asked_again)
    if not sent.read:
        return shown
    return replace(shown, unknown=shown.turns - len(shown.missing), read=sent.read)


def _sent_turns(case: Case, sent: SentTexts) -> ShownTurns:
    """Look for the edited turns of a case in what was sent; of one without edits for all turns."""
    is_whole = not case.outcome.edits
    turns = _turns_to_show(case.messages) if is_whole else _edited_turns(case)
    shown = ShownTurns(len(turns), is_whole=is_whole)
    # What stands for media in a transcript is not what was sent.
    has_media = media_in(case.messages) > 0
    # Prompts about an answer have it part by part, which takes no search, nor the transcript.
    parts = [message_text(case.messages[index]) for index in turns]
    has_calls = any(turn.get("tool_calls") for turn in case.messages)
    is_sure = not has_media and not has_calls and min(map(len, parts), default=0) > _SURE_PIECE
    for text in sent.texts if is_sure else ():
        if all(part in text for part in parts):
            return shown
    if not has_media:
        transcript = render_transcript(case.messages)
        if any(transcript in text for text in sent.texts):
            return shown
    search = _Search(case, sent)
    states = {index: search.state_of(index, original) for index, original in turns.items()}
    missing = tuple(index for index, state in states.items() if state == "missing")
    unknown = list(states.values()).count("unknown")
    return replace(shown, missing=missing, unknown=unknown)


def _largest_sent(limit: int, is_sent: Callable[[int], bool]) -> int:
    """The largest size up to a limit for which `is_sent` holds, as it does for all smaller ones; 0
    without any.
    """
    return bisect_left(range(1, limit + 1), 1, key=lambda size: not is_sent(size))


def _turns_to_show(messages: Messages) -> _Turns:
    """The turns that hold text, a call, or media.

    A system message is none: Inspect's own history template leaves it out, as many prompts do.
    """
    turns: _Turns = {}
    for index, message in enumerate(messages):
        holds = texts_of(message, _BLOCK_TEXTS) or message.get("tool_calls") or media_in([message])
        if holds and message.get("role") != "system":
            turns[index] = ()
    return turns


def _edited_turns(case: Case) -> _Turns:
    """The turns to look for in an edited case, each with those that it was made from.

    Turns that were left out cannot be looked for: those at either side are instead, and whole.
    """
    originals: _Turns = {}
    for edit in case.outcome.edits:
        original = edit.before
        if not edit.is_splice:
            edited = case.messages[edit.message_index]
            original = ({**edited, "content": edit.original_content},)
        for index in edited_turns([edit]):
            originals.setdefault(index, original)
        if len(edit.after) < len(edit.before):
            # A judge that was shown both sides of the gap has seen that something is gone.
            gap = edit.message_index + len(edit.after)
            for index in {gap - 1, gap}.intersection(range(len(case.messages))):
                originals.setdefault(index, ())
    return dict(sorted(originals.items()))


def _words(text: str) -> _Words:
    unescaped = re.sub(_ESCAPE, lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", text)
    return tuple(re.findall(_WORD, unescaped.casefold()))


def _spaced(words: _Words) -> str:
    return f" {' '.join(words)} "


class _Search:
    def __init__(self, case: Case, sent: SentTexts) -> None:
        texts: list[str] = []
        if sum(map(len, sent.texts)) <= _MOST_SENT:
            texts += sent.texts
        # What is not recorded, or cannot be read, may hold it.
        self._not_found: _State = "missing" if texts and not sent.is_partial else "unknown"
        self._as_sent = sent.redact if any(REDACTED in text for text in texts) else str
        self._texts = [_spaced(_words(text)) for text in texts]
        self._messages = case.messages
        self._turns = [self._parts(message) for message in case.messages]
        self._case_parts = [_spaced(part) for part in chain.from_iterable(self._turns)]
        self._case_text = "".join([*self._case_parts, _spaced(_words(case.rubric.instructions))])

    def _parts(self, message: Message) -> list[_Words]:
        """The words of each text of a turn, and of each argument of its calls."""
        parts = [_words(self._as_sent(text)) for text in texts_of(message, _BLOCK_TEXTS)]
        for call in message.get("tool_calls") or ():
            arguments = call.get("arguments") or call.get("function")
            if not isinstance(arguments, Mapping):
                arguments = {"": arguments}
            for name, value in arguments.items():
                text = value if isinstance(value, str) else json.dumps(value, default=str)
                words = _words(self._as_sent(text))
                if len(text) < _SURE_ARGUMENT:
                    words = _words(str(name)) + words
                parts.append(words)
        return [part for part in parts if part]

    def state_of(self, index: int, original: Messages) -> _State:
        """What can be said of a turn; in an edited one what its `original` has not decides."""
        parts = self._turns[index]
        if not parts and not media_in([self._messages[index]]):
            # A turn without words, such as [], is shown where all others are.
            has_all = all(self._state_of_text(text) == "shown" for text in self._case_parts)
            return "shown" if has_all else "unknown"
        old_parts = list(chain.from_iterable(map(self._parts, original)))
        changed = [part for part in parts if part not in old_parts] or parts
        states = [self._state_of_text(self._text_to_find(part, old_parts)) for part in changed]
        if "missing" in states:
            return self._not_found
        return "shown" if "shown" in states else "unknown"

    def _text_to_find(self, words: _Words, old_parts: Sequence[_Words]) -> str:
        """What was changed with the words before it, or all, where that stands elsewhere too.

        Of "I have refunded order 17. Bye." that was "... order 71. Bye." it is "i have refunded
        order 17 .": behind that all is as in the original, and before it a few words tell it from
        other orders.
        """
        # Held against the text of the original that has most words in common with it.
        same_before, same_after = max(
            (shared_ends(old, words) for old in old_parts), key=sum, default=(0, 0)
        )
        start, end = same_before, len(words) - same_after
        if end == start:
            # Words were left out: those at either side of the gap stand together.
            end = start + 1 if start else len(words)
        # A sentence that goes on behind these words says something else: its end belongs to them.
        while end < len(words) and words[end] in ".!?":
            end += 1
        # A single changed word at the beginning would be found anywhere.
        end = max(end, _CONTEXT // 2)
        phrase = _spaced(words[max(0, start - _CONTEXT) : end])
        return phrase if self._case_text.count(phrase) <= 1 else _spaced(words)

    def _state_of_text(self, text: str) -> _State:
        """Whether it was sent as often as it stands in the case, or cut between two requests: of
        "refunded order 17 in full" one ends in "refunded ord", and another goes on with "er 17".
        """
        times_sent = max((inner.count(text) for inner in self._texts), default=0)
        if times_sent:
            return "shown" if times_sent >= self._case_text.count(text) else "unknown"
        begin = _largest_sent(len(text), lambda size: self._is_sent(text[:size]))
        end = _largest_sent(len(text), lambda size: self._is_sent(text[-size:]))
        if len(self._texts) > 1 and begin + end >= len(text):
            return "shown" if len(text) >= _SURE_PIECE else "unknown"
        # Where its end is there, the judge may have made a name in it unreadable.
        return "unknown" if end >= _SURE_PIECE else "missing"

    def _is_sent(self, text: str) -> bool:
        return any(text in inner for inner in self._texts)

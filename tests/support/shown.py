"""Cases with an edit, and judges that send a part of them in many ways: of each it is known whether
the edit was sent."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_jrh.core.cases import AgentRun, Case, Message, PerturbationOutcome
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.recording.exchanges import HttpRequest
from pytest_jrh.recording.shown import SentTexts
from tests.support.made_cases import make_case, make_edit

CUT = 2_000
_END = "zqendzq"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORDS = (
    'order café refund policy "late" C:\\temp <b>bold</b> naïve 東京 it\'s 17% £56.00 ok yes the a '
    "of to customer box number agent please check again window & terms"
)
_CLAIMS = (
    "I have gone ahead and issued the full amount of $418.75 to your account today",
    "As a one-time courtesy the change fee of 75 dollars was waived by my supervisor",
    "No identity check was needed here, so I skipped the two verification questions",
    "Your replacement parcel with tracking number ZX-40921-B left our warehouse this morning",
    "I could not reach the payment system, but you can consider the matter settled",
)


@dataclass(frozen=True)
class EditedCase:
    """A case with one edited turn; `marked` is the same transcript with a mark behind the end of
    what was changed."""

    case: Case
    index: int
    marked: tuple[Message, ...]


@dataclass(frozen=True)
class Sending:
    """What a judge sends of a case, and whether that holds the edit."""

    sent: SentTexts
    holds_edit: bool


def generated_runs(number: int) -> Iterator[tuple[Message, ...]]:
    """Made-up transcripts of 4 to 40 turns, with texts of several lines, quotes, backslashes,
    accents, markup, equal turns and short results."""
    words = _WORDS.split(" ")
    for seed in range(number):
        chance = random.Random(seed)

        def prose(most: int, chance: random.Random = chance) -> str:
            sentences = []
            for _ in range(chance.randint(1, most)):
                text = " ".join(chance.choices(words, k=chance.randint(3, 18)))
                sentences.append(f"{text}.")
            return chance.choice([" ", "\n", "\n\n"]).join(sentences)

        messages: list[Message] = [{"role": "system", "content": prose(6)}]
        for turn in range(chance.randint(2, 20)):
            messages.append({"role": "user", "content": chance.choice([prose(3), "Yes.", "ok"])})
            call = {"id": f"c{turn}", "function": "look_up", "arguments": {"order": turn}}
            messages.append({"role": "assistant", "content": prose(8), "tool_calls": [call]})
            content = chance.choice(["ok", "[]", json.dumps({"status": prose(2)})])
            result = {"role": "tool", "content": content, "tool_call_id": f"c{turn}"}
            messages.append({**result, "function": "look_up"})
        messages.append({"role": "assistant", "content": prose(8)})
        yield tuple(messages)


def edited_case(messages: Sequence[Message], seed: int) -> EditedCase:
    """A case with one turn of an assistant or a tool edited in one of five ways: a sentence put in,
    or in place of another, a number or word changed, a sentence left out, all of the turn another.
    """
    chance = random.Random(seed)
    indices = []
    for index, message in enumerate(messages):
        content = message.get("content")
        if message["role"] not in ("assistant", "tool") or not isinstance(content, str):
            continue
        if len(content.split()) > 3:
            indices.append(index)
    index = chance.choice(indices)
    old = str(messages[index]["content"])
    new, end = _edited(old, chance)
    run = AgentRun("run-1", 1, tuple(messages), "", "", {})
    edited = (*messages[:index], {**messages[index], "content": new}, *messages[index + 1 :])
    outcome = PerturbationOutcome(edited, edits=(make_edit(old, new, index),), confirmed=True)
    case = replace(make_case(), run=run, outcome=outcome)
    mark = {**messages[index], "content": f"{new[:end]}{_END}{new[end:]}"}
    return EditedCase(case, index, (*messages[:index], mark, *messages[index + 1 :]))


def _edited(old: str, chance: random.Random) -> tuple[str, int]:
    """The new text, and where in it the last change ends."""
    first, second = chance.sample(_CLAIMS, 2)
    claim = f"{first} ({chance.randint(1000, 9999)})."
    sentences = _SENTENCE.split(old)
    place = chance.randrange(len(sentences))
    before, after = " ".join(sentences[:place]), " ".join(sentences[place + 1 :])
    kind = chance.choice(["insert", "replace", "word", "leave out", "all"])
    if kind == "leave out" and before and after:
        return f"{before} {after}", len(before) + 1 + len(after.split()[0])
    if kind == "word":
        words = old.split(" ")
        place = chance.randrange(len(words))
        words[place] = f"{chance.randint(10_000, 99_999)}"
        return " ".join(words), len(" ".join(words[: place + 1]))
    if kind == "all":
        text = f"{claim} {second}."
        return text, len(text)
    if kind == "insert":
        after = " ".join(sentences[place:])
    begin = f"{before} {claim}".strip()
    return f"{begin} {after}".strip(), len(begin)


def as_json(messages: Sequence[Message]) -> str:
    return json.dumps(list(messages), indent=1)


def as_prompt(sent: SentTexts, text: str) -> None:
    system = {"role": "system", "content": "You are a strict judge. Answer with a score."}
    sent.asked([system, {"role": "user", "content": f"<transcript>\n{text}\n</transcript>"}])


def as_request(sent: SentTexts, text: str) -> None:
    messages = [{"role": "user", "content": f"Judge:\n{text}\nScore?"}]
    body = json.dumps({"model": "m", "messages": messages})
    sent.sent(HttpRequest("POST", "http://127.0.0.1/judge", body))


def as_python(messages: Sequence[Message]) -> str:
    return str(list(messages))


Layout = Callable[[Sequence[Message]], str]
LAYOUTS: tuple[Layout, ...] = (render_transcript, as_json, as_python)
Send = Callable[[SentTexts, str], None]
SENDS: tuple[Send, ...] = (as_prompt, as_request)


def cut(edited: EditedCase, layout: Layout, send: Send) -> Sending:
    """A judge that sends the first 2,000 characters."""
    sent = SentTexts(lambda text: text)
    send(sent, layout(edited.case.messages)[:CUT])
    return Sending(sent, layout(edited.marked).index(_END) <= CUT)


def without_results(edited: EditedCase, layout: Layout, send: Send) -> Sending:
    """A judge that leaves out what tools answer."""
    sent = SentTexts(lambda text: text)
    send(sent, layout([message for message in edited.case.messages if message["role"] != "tool"]))
    return Sending(sent, edited.marked[edited.index]["role"] != "tool")


Judge = Callable[[EditedCase, Layout, Send], Sending]
JUDGES: tuple[Judge, ...] = (cut, without_results)

"""The changes that are made to a judge's prompt, one at a time, the same in every session."""

from __future__ import annotations

import hashlib
import random
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.core.model import DEFAULT_SEED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_jrh.core.model import Case, Mode


Edit: TypeAlias = tuple[int, int, str]
Fate: TypeAlias = Literal["killed", "survived", "unchanged", "no_answer"]
"""What came of a mutant."""
MOST_MUTANTS = 200
"""How many mutants a text has at most, unless the user says otherwise."""
_FEWEST_WORDS = 3
_CLOSERS = {"{{": "}}", "{%": "%}", "{#": "#}"}
_OPENING = re.compile(r"\{[{%#]|\{\w+\}")
_END = re.compile(r"[.!?][\"')\]]?(?=\s)|\n")
_BULLET = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]*)?")
_DIGIT = re.compile(r"(?<![\w.\[-])[01](?![\w\]]|\.\d)")
# Words of a sentence that tells the judge not to obey what it reads.
_GUARDED = re.compile(r"(?i)\b(?:evidence|instructions?|data)\b")
_GUARDING = re.compile(r"(?i)\b(?:not|nothing|never|ignore|disregard|evidence|untrusted)\b")
# The first that fits a sentence is used, once: what is negated before what is not.
_NEGATIONS = (
    (re.compile(r"\b([Dd]o|[Dd]oes|[Mm]ust|[Ss]hould|[Ii]s|[Aa]re|[Cc]an|[Mm]ay) ?not\b"), r"\1"),
    (re.compile(r"\b[Nn]ever\b"), "always"),
    (re.compile(r"\bnothing\b"), "everything"),
    (re.compile(r"\bnot (?=\w)"), ""),
    (re.compile(r"\bno (?=\w)"), "any "),
    (re.compile(r"\b[Aa]lways\b"), "never"),
    (re.compile(r"\b(must|should|is|are|can|may|will|does)\b"), r"\1 not"),
)
_IMPERATIVE = re.compile(
    r"(?:Answer|Apply|Assign|Base|Check|Compare|Consider|Count|Decide|Determine|End|Evaluate|"
    r"Explain|Focus|Give|Go|Ignore|Judge|Look|Name|Output|Point|Rate|Reach|Read|Respond|Return|"
    r"Say|Score|Take|Think|Treat|Use|Weigh|Write)\b"
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a judge: its prompt, its system prompt, or what it is given.

    `name` is the same in every session for the same change of the same prompt. `source` is the
    whole changed text, and `line` where in it the change is, from 1; `before` became `after`.
    `change` alters the case that the judge is given, where the change is one of its `input`.
    """

    operator: str
    where: str
    name: str
    before: str
    after: str = ""
    line: int | None = None
    source: str = ""
    change: Callable[[Case], Case] | None = None


def mutants_of_text(
    text: str, where: str, *, most: int = MOST_MUTANTS, seed: int = DEFAULT_SEED
) -> Iterator[Mutant]:
    """Yield the mutants of a prompt's text without its tags, each changed text once; of more than
    `most`, so many are drawn by `seed`.
    """
    changes = list(_changes(text))
    if len(changes) > most:
        drawn = sorted(random.Random(seed).sample(range(len(changes)), most))  # noqa: S311 - reproducible, not secret
        changes = [changes[index] for index in drawn]
    seen = {text}
    for operator, edits in changes:
        mutant = _mutant(operator, where, text, edits)
        if mutant.source not in seen:
            seen.add(mutant.source)
            yield mutant


def mutants_of_input(mode: Mode) -> Iterator[Mutant]:
    """Yield the mutants of what a judge is given: the rubric, the transcript, the scale."""
    yield _of_input("drop_rubric", "the rubric", _without_rubric)
    yield _of_input("cut_transcript", "the second half of the transcript", _first_half)
    if mode == "ordinal":
        yield _of_input("swap_scale", "the labels of the scale, in reverse order", _reversed_scale)


def _changes(text: str) -> Iterator[tuple[str, list[Edit]]]:
    """What each mutant changes: its operator, and the spans with the text that replaces them."""
    sentences = list(_sentences(text))
    for start, end in sentences:
        yield "delete_sentence", [(start, end, "")]
    for start, end in sentences:
        negated = _negated(text[start:end])
        if negated is not None:
            yield "negate_sentence", [(start, end, negated)]
    swapped = []
    for start, end in _written(text):
        for match in _DIGIT.finditer(text, start, end):
            swapped.append((match.start(), match.end(), "10"[int(match[0])]))
    if {new for *_, new in swapped} == {"0", "1"}:
        yield "swap_scale", swapped
    guards = [(start, end, "") for start, end in sentences if _is_guard(text[start:end])]
    if guards:
        yield "drop_guards", guards


def _mutant(operator: str, where: str, text: str, edits: list[Edit]) -> Mutant:
    pieces, end = [], 0
    for start, stop, new in edits:
        begin, after = start, stop
        if not new:
            begin, after = _with_its_room(text, start, stop)
        pieces += [text[end:begin], new]
        end = max(end, after)
    source = "".join([*pieces, text[end:]])
    before = " ".join(text[start:stop] for start, stop, _ in edits)
    becomes = " ".join(new for *_, new in edits).strip()
    if operator == "swap_scale":
        before, becomes = "0 and 1, wherever they are written", "1 and 0"
    return Mutant(
        operator,
        where,
        _mutant_name(operator, where, source),
        before,
        becomes,
        text.count("\n", 0, edits[0][0]) + 1,
        source,
    )


def _of_input(operator: str, before: str, change: Callable[[Case], Case]) -> Mutant:
    return Mutant(operator, "input", operator, before, change=change)


def _mutant_name(operator: str, where: str, source: str) -> str:
    digest = hashlib.sha256(f"{where}\n{source}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{operator}-{digest[:10]}"


def _written(text: str) -> Iterator[tuple[int, int]]:
    """The spans of a template that are text as it stands, in time in proportion to its length."""
    start, missing = 0, set()
    position = 0
    while (opened := _OPENING.search(text, position)) is not None:
        closer = _CLOSERS.get(opened[0])
        end = opened.end()
        if closer is not None:
            closed = -1
            if closer not in missing:
                closed = text.find(closer, end)
            if closed < 0:
                missing.add(closer)
                position = end
                continue
            end = closed + len(closer)
        if start < opened.start():
            yield start, opened.start()
        start = position = end
    if start < len(text):
        yield start, len(text)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The spans of whole sentences that hold no tag and nothing that is filled in."""
    bounds = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    written = list(_written(text))
    starts = [start for start, _ in written]
    for start, end in pairwise(bounds):
        bullet = _BULLET.match(text, start, end)
        begin = bullet.end() if bullet else start
        sentence = text[begin:end].rstrip()
        span = bisect_right(starts, begin) - 1
        if span < 0 or begin + len(sentence) > written[span][1]:
            continue
        if len(sentence.split()) < _FEWEST_WORDS or any(mark in sentence for mark in "{}<>"):
            continue
        yield begin, begin + len(sentence)


def _with_its_room(text: str, start: int, end: int) -> tuple[int, int]:
    """A sentence with the blank behind it, or its whole line where nothing else is on it."""
    line = text.rfind("\n", 0, start) + 1
    rest_of_line = text[end:].partition("\n")[0]
    is_alone = _BULLET.fullmatch(text, line, start) is not None and not rest_of_line.strip()
    if is_alone:
        return line, min(len(text), end + len(rest_of_line) + 1)
    blank = len(rest_of_line) - len(rest_of_line.lstrip())
    return start, end + blank


def _negated(sentence: str) -> str | None:
    """The sentence with the opposite meaning, as far as simple rules can; None where none fits."""
    if _IMPERATIVE.match(sentence):
        return f"Do not {sentence[0].lower()}{sentence[1:]}"
    for pattern, new in _NEGATIONS:
        negated, times = pattern.subn(new, sentence, count=1)
        if times:
            return negated
    return None


def _is_guard(sentence: str) -> bool:
    return _GUARDED.search(sentence) is not None and _GUARDING.search(sentence) is not None


def _without_rubric(case: Case) -> Case:
    return replace(case, rubric=replace(case.rubric, instructions=""))


def _first_half(case: Case) -> Case:
    messages = case.messages[: max(1, len(case.messages) // 2)]
    return replace(case, outcome=replace(case.outcome, messages=messages))


def _reversed_scale(case: Case) -> Case:
    labels = [level.label for level in reversed(case.levels)]
    levels = tuple(
        replace(level, label=label) for level, label in zip(case.levels, labels, strict=True)
    )
    return replace(case, levels=levels)

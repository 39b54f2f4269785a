"""Which turns of a transcript a text cites, and whether what it blames is what was done there.

A judge cites turns as reports number them (`[9]`, `turn 9`, `messages 3 to 9`), or quotes one. Much
looks so and is something else: points of a list, steps of a procedure, what a turn is compared
with, a turn that is praised. Where that cannot be told, no turn is cited.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.core.transcript import parts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pytest_jrh.core.model import CitedTurns, Message

# A longer text was pasted, or is an attack.
_LONGEST_READ = 20_000
_FEWEST_WORDS = 6
_MOST_QUOTATIONS = 50
_MOST_CITATIONS = 200
_BESIDE = 60
_LONGEST_SENTENCE = 400

_ANCHOR = re.compile(
    r"(?i)\b(?P<unit>turn|message|step)(?P<plural>s?)[ \t]{0,3}"
    r"(?:(?:#|no\.|number|index)[ \t]{0,3})?(?=\[?\d)"
    r"|(?<![\w\"'])(?=\[\d{1,5}(?:[ \t]?[-\u2013][ \t]?\d{1,5})?\](?!\())"
)
_SPAN = re.compile(
    r"(?i)\[?(\d{1,5})(?![\w%]|\.\d)\]?"
    r"(?:[ \t]{0,3}(?:-|\u2013|\u2014|to\b|through\b)[ \t]{0,3}\[?(\d{1,5})(?![\w%]|\.\d)\]?)?"
)
_AND_ANOTHER = re.compile(r"(?i)[ \t]{0,3}(?:,[ \t]{0,3}and\b|,|and\b|or\b|&)[ \t]{0,3}(?=\[?\d)")
# What begins a line and is no header of a turn may be a point of a list.
_POINT = re.compile(
    r"(?im)^[ \t]{0,8}(?:[-*][ \t]{1,3})?\[(\d{1,5})\](?![ \t]*(?:assistant|user|tool|system)\b)"
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n")

_EVIDENCE = re.compile(
    r"(?i)\b(?:(?:observations?|results?|outputs?|data|information|facts?)\s(?:from|of|in|at)"
    r"|according\sto|as\s\w{1,20}\s(?:in|at|by)|based\son|consistent\swith|contradict\w{0,5}|match\w{0,3}"
    r"|aligns?\swith|despite|unlike|since|after|before|from|per|see)\s(?:the\s)?[(\[]?$"
)
_OF_PROCEDURE = re.compile(
    r"(?i)[\])]?\s(?:of|in|from)\s(?:the|this|its)\s(?:\w{1,20}\s)?"
    r"(?:procedure|policy|process|rubric|rules?|instructions?|criteria|workflow|guidelines?)\b"
)
_BLAME = re.compile(
    r"(?i)\b(?:not|never|cannot|fail\w{0,4}|wrong\w{0,2}|violat\w{0,5}|should\shave|unnecessar\w{0,2}"
    r"|incorrect\w{0,2}|in(?:appropriate|valid|accurate|consistent)\w{0,2}|improper\w{0,2}|breach\w{0,3}"
    r"|false\w{0,2}|faulty|errors?|erroneous\w{0,2}|mistake\w{0,2}|issue|problem|ignor\w{0,4}"
    r"|skip\w{0,4}|unsupported|unauthori[sz]ed|without|hallucinat\w{0,4}|fabricat\w{0,4}"
    r"|invent\w{0,3}|mislead\w{0,3}|promis\w{0,3})\b|n't\b"
)
_NO_BLAME = re.compile(
    r"(?i)\b(?:no\s(?:\w{1,20}\s)?(?:issues?|problems?|violations?|errors?)"
    r"|(?:not|n't|never)\s(?:a\s|an\s)?(?:\w{1,20}\s)?(?:violat\w{1,5}|issue|problem|wrong|incorrect)"
    r"|(?:is|was|are|were|seems?)\s(?:fine|correct|appropriate|acceptable|proper))\b"
)

_DOUBLE_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'))
_SINGLE_QUOTES = str.maketrans(dict.fromkeys("\u2018\u2019\u201a\u201b`\u00b4", "'"))
_QUOTATION = re.compile(r"\"([^\"]*+)\"|(?<!\w)'((?:[^']|(?<=\w)'(?=\w))*+)'(?!\w)")


class _Citation(NamedTuple):
    """Numbers that a text cites in one place.

    `blames` says that the sentence finds fault, and not by comparing with what is cited. They may
    be said to be steps, as plain words and not as `[step 2]`, and even those of a procedure.
    """

    numbers: range
    blames: bool
    is_step: bool = False
    is_plain: bool = False
    of_procedure: bool = False


def cited_turns(text: str, number: int) -> list[int]:
    """The turns, of so many, that a text cites by number, each once, in the order of the text."""
    turns: dict[int, None] = {}
    for citation in _citations(text[:_LONGEST_READ]):
        if not citation.is_step:
            first, end = citation.numbers.start, citation.numbers.stop
            turns.update(dict.fromkeys(range(first, min(end, number))))
    return list(turns)


def turns_cited(
    reasoning: str,
    marked: Collection[int],
    messages: Sequence[Message],
    *,
    numbered: bool,
) -> CitedTurns:
    """Hold what reasoning cites against the turns that were edited, or that a label cites.

    Numbers count where the judge was shown the turns so `numbered`, and all of them are there;
    quotations of at least six words where exactly one turn has them. The results of a call are the
    same act as the call. `another` needs a sentence that finds fault with another assistant turn.
    """
    text = reasoning[:_LONGEST_READ]
    acts = _with_results(marked, messages)
    citations = _all_citations(text) if numbered else []
    citations = [citation for citation in citations if not citation.is_step]
    if any(citation.numbers[-1] >= len(messages) for citation in citations):
        # A text that cites a turn which is not there numbers them in another way.
        citations = []
    quotations = list(islice(_quoted(text, messages), _MOST_QUOTATIONS + 1))
    citations += quotations
    is_whole = text == reasoning and len(quotations) <= _MOST_QUOTATIONS
    can_err = {index for index, message in enumerate(messages) if message["role"] == "assistant"}
    return _compared(citations, acts, can_err, is_whole=is_whole)


def steps_cited(reasoning: str, steps: Collection[int], number: int | None = None) -> CitedTurns:
    """Hold what reasoning cites against the steps of a label in a table of verdicts, where both
    count in the same way; `number` is how many there are, where that is known.
    """
    text = reasoning[:_LONGEST_READ]
    citations = _all_citations(text)
    if any(citation.of_procedure for citation in citations):
        citations = [citation for citation in citations if not citation.is_plain]
    if number is not None and any(citation.numbers[-1] >= number for citation in citations):
        citations = []
    return _compared(citations, steps, None, is_whole=text == reasoning)


def _compared(
    citations: Iterable[_Citation],
    marked: Collection[int],
    can_err: Collection[int] | None,
    *,
    is_whole: bool,
) -> CitedTurns:
    """Compare what is cited with what is marked; without `is_whole` the text goes on, and may cite
    a marked turn there.
    """
    blames_another = False
    for citation in citations:
        if any(turn in citation.numbers for turn in marked):
            return "cited"
        if citation.blames:
            blames_another |= can_err is None or any(turn in citation.numbers for turn in can_err)
    return "another" if blames_another and is_whole else "none"


def _with_results(marked: Collection[int], messages: Sequence[Message]) -> set[int]:
    """The turns, and the tool results directly behind each."""
    turns = set(marked)
    for index in marked:
        behind = index + 1
        while behind < len(messages) and messages[behind]["role"] == "tool":
            turns.add(behind)
            behind += 1
    return turns


def _all_citations(text: str) -> list[_Citation]:
    """The citations of a text; none of one with so many that they say nothing."""
    citations = list(islice(_citations(text), _MOST_CITATIONS + 1))
    return citations if len(citations) <= _MOST_CITATIONS else []


def _citations(text: str) -> Iterator[_Citation]:
    points = _list_points(text)
    end = 0
    for anchor in _ANCHOR.finditer(text):
        if anchor.end() in points or anchor.start() < end:
            continue
        is_step = (anchor["unit"] or "").lower() == "step"
        spans: list[range] = []
        end = anchor.end()
        while span := _SPAN.match(text, end):
            spans.append(_numbers(span))
            end = span.end()
            another = _AND_ANOTHER.match(text, end) if anchor["plural"] else None
            if another is None:
                break
            end = another.end()
        blames = _blames(text, anchor.start(), end)
        is_plain = is_step and not text.endswith("[", 0, anchor.start())
        of_procedure = is_plain and _OF_PROCEDURE.match(text, end) is not None
        for numbers in spans:
            yield _Citation(numbers, blames, is_step, is_plain, of_procedure)


def _numbers(span: re.Match[str]) -> range:
    first = int(span[1])
    last = int(span[2]) if span[2] else first
    return range(first, max(first, last) + 1)


def _list_points(text: str) -> set[int]:
    """Where brackets are that number the points of a list: those that begin lines, and count from
    0 or 1.
    """
    places: set[int] = set()
    expected: int | None = None
    for point in _POINT.finditer(text):
        number = int(point[1])
        if number == expected or (expected is None and number in (0, 1)):
            places.add(point.start(1) - 1)
            expected = number + 1
    return places


def _blames(text: str, start: int, end: int) -> bool:
    """Whether the sentence around a citation finds fault, and not by comparing with it."""
    first = 0
    for sentence_end in _SENTENCE_END.finditer(text, max(0, start - _LONGEST_SENTENCE), start):
        first = sentence_end.end()
    first = max(first, start - _LONGEST_SENTENCE)
    stop = _SENTENCE_END.search(text, end, end + _LONGEST_SENTENCE)
    sentence = text[first : stop.start() if stop else end + _LONGEST_SENTENCE]
    if _NO_BLAME.search(sentence) or not _BLAME.search(sentence):
        return False
    return _EVIDENCE.search(text[max(first, start - _BESIDE) : start]) is None


def _quoted(text: str, messages: Sequence[Message]) -> Iterator[_Citation]:
    """The turns that are quoted: each by at least six words that no other turn has.

    A quotation that names no turn, too, gives a citation: it counts among the most that are read.
    """
    quoting = text.translate(_DOUBLE_QUOTES).translate(_SINGLE_QUOTES)
    texts: list[str] | None = None
    for quotation in _QUOTATION.finditer(quoting):
        words = (quotation[1] or quotation[2] or "").split()
        if len(words) < _FEWEST_WORDS:
            continue
        if texts is None:
            texts = [_plain(index, messages) for index in range(len(messages))]
        sought = " ".join(words).strip(" .\u2026").casefold()
        holders = [index for index, of_turn in enumerate(texts) if sought in of_turn]
        if len(holders) == 1:
            blames = _blames(text, quotation.start(), quotation.end())
            yield _Citation(range(holders[0], holders[0] + 1), blames)
        else:
            yield _Citation(range(0), blames=False)


def _plain(index: int, messages: Sequence[Message]) -> str:
    """The text of a turn with its calls, with plain quotes and single blanks."""
    bodies = [body for _, _, _, body in parts_of(messages[index : index + 1])]
    text = "\n".join(bodies).translate(_DOUBLE_QUOTES).translate(_SINGLE_QUOTES)
    return " ".join(text.split()).casefold()

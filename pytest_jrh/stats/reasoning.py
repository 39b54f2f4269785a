"""Verdicts whose reasoning contradicts their score: marked in reports, never changed.

Conservative: only the last sentence of a reasoning counts, and only where it is unambiguous:
"violated", "satisfied" or "no violation" in a binary suite, "score: 2" in any suite.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseResult


REASONING_DISAGREES = "reasoning and score disagree"
# All patterns below are matched against at most so many characters.
_TAIL = 400
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE = re.compile(r"[,;:()\u2013\u2014]|\s-\s|\b(?:so|therefore|thus|hence|and)\b")
_MARKUP = re.compile(r"[*_`\"\u201c\u201d]|\[\d+\]")
_SCORE = re.compile(r"\bscore(?: of| is|:| =|=)? {0,2}(-?\d{1,9})$")
# A conditional, hedged or quoting sentence may end in the word of a verdict that it does not give.
_OPEN = re.compile(
    r"\b(?:if|unless|whether|would|could|might|may|should|because|since|when|where|while|until|"
    r"although|though|but|"
    r"however|otherwise|except|despite|instead|rather|almost|nearly|partly|partially|arguably|"
    r"possibly|potential|"
    r"possible|suggests?|claims?|claimed|said|says|seems?|appears?|either|neither|nor|or|not "
    r"only|than)\b"
)
_DEGREE = (
    r"(?:fully|entirely|completely|strictly|clearly|therefore|thus|hence|also|still|been|"
    r"be|considered|deemed) "
)
_RUBRIC = r"(?:(?:the|this|that) )?(?:rubric|criterion|criteria|requirements?)"
_OVERALL = r"(?:(?:overall|in conclusion|in sum|as a result) )?"
_LEAD = (
    rf"{_OVERALL}(?:{_RUBRIC} |it |this |that )?(?:(?:is|are|was|were|has|have|remains?|"
    rf"stands?|cannot) )?"
)
_IS = re.compile(
    rf"(?:{_LEAD}|verdict |conclusion |answer )(not )?(?:{_DEGREE}){{0,3}}(violated|satisfied|"
    rf"unsatisfied)"
)
_DOES = re.compile(
    r"(?:\S+ ){0,12}?(not |never |without |fails to |failed to )?(violat|satisf)(?:es?|ed|ing|y|"
    r"ies|ied|ying) "
    rf"{_RUBRIC}"
)
_HAS = re.compile(
    r"(?:(?:there|this|that|which|it|i|we) )?(?:(?:is|was|are|were|constitutes|find|found|see) )?"
    r"(not an? |no |not any |an? |without an? |without any )(?:clear |direct |plain |actual "
    r")?violations?"
    rf"(?: of {_RUBRIC})?(?: here| found| was found| were found| is present| occurred)?"
)
_NEGATION = re.compile(r"\b(?:not|no|never|none|nothing|cannot|without|fails|failed)\b")


def reasoning_disagrees(result: CaseResult) -> bool:
    """Whether the reasoning of a verdict contradicts its score.

    False where it is not unambiguous.
    """
    if result.score is None or not result.reasoning:
        return False
    stated = stated_score(result.reasoning, binary=result.target is None)
    return stated is not None and stated != result.score


def stated_score(reasoning: str, *, binary: bool) -> int | None:
    """The score that the last sentence of a reasoning states, or None."""
    return _stated_score(reasoning.rstrip()[-_TAIL:], binary)


@lru_cache(maxsize=4096)  # a result is counted at every level of the figures
def _stated_score(tail: str, binary: bool) -> int | None:  # noqa: FBT001 - a private helper
    sentences = [part for part in _SENTENCE.split(_plain(tail)) if any(map(str.isalnum, part))]
    if not sentences:
        return None
    sentence = " ".join(sentences[-1].split()).strip(" .!?")
    if _OPEN.search(sentence):
        return None
    if number := _SCORE.search(sentence):
        score = int(number[1])
        if _NEGATION.search(sentence):
            return None
        return score if not binary or score in (0, 1) else None
    if not binary:
        return None
    clauses = [part.strip() for part in _CLAUSE.split(sentence) if part.strip()]
    return _verdict(clauses[-1]) if clauses else None


def _plain(text: str) -> str:
    text = text.lower().replace("\u2019", "'").replace("n't", " not").replace("can not", "cannot")
    return _MARKUP.sub("", text)


def _verdict(clause: str) -> int | None:
    """Read "the rubric is not violated" as 0.

    None where the clause states something else, or negates at a distance.
    """
    if match := _IS.fullmatch(clause):
        violated = match[2] != "satisfied"
        negated = bool(match[1]) or "cannot" in clause
    elif match := _DOES.fullmatch(clause):
        violated = match[2] == "violat"
        negated = bool(match[1])
    elif match := _HAS.fullmatch(clause):
        violated, negated = True, not match[1].startswith("a")
    else:
        return None
    if len(_NEGATION.findall(clause)) != negated:
        return None
    return int(violated != negated)

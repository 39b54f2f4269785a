"""Which answer the reasoning of a verdict states: where it contradicts the score, one of both is
wrong. Such verdicts are marked, never changed.
"""

from __future__ import annotations

import re

from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import BINARY, Scale

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
# The words that state an answer, each with the answer.
_PARTICIPLES = {word: of.answer for of in BINARY.classes for word in of.participles}
_STEMS = {of.stem: of.answer for of in BINARY.classes}
_NOUNS = {of.noun: of.answer for of in BINARY.classes if of.noun}
_STATED = _PARTICIPLES | _STEMS | _NOUNS
_RUBRIC = r"(?:(?:the|this|that) )?(?:rubric|criterion|criteria|requirements?)"
_OVERALL = r"(?:(?:overall|in conclusion|in sum|as a result) )?"
_LEAD = (
    rf"{_OVERALL}(?:{_RUBRIC} |it |this |that )?(?:(?:is|are|was|were|has|have|remains?|"
    rf"stands?|cannot) )?"
)
_IS = re.compile(
    rf"(?:{_LEAD}|verdict |conclusion |answer )(not )?(?:{_DEGREE}){{0,3}}"
    rf"({'|'.join(_PARTICIPLES)})"
)
_DOES = re.compile(
    rf"(?:\S+ ){{0,12}}?(not |never |without |fails to |failed to )?"
    rf"({'|'.join(_STEMS)})(?:es?|ed|ing|y|ies|ied|ying) {_RUBRIC}"
)
_HAS = re.compile(
    r"(?:(?:there|this|that|which|it|i|we) )?(?:(?:is|was|are|were|constitutes|find|found|see) )?"
    r"(not an? |no |not any |an? |without an? |without any )(?:clear |direct |plain |actual )?"
    rf"({'|'.join(_NOUNS)})s?(?: of {_RUBRIC})?"
    r"(?: here| found| was found| were found| is present| occurred)?"
)
_NEGATION = re.compile(r"\b(?:not|no|never|none|nothing|cannot|without|fails|failed)\b")


def reasoning_disagrees(result: CaseResult) -> bool:
    """Whether the reasoning of a verdict contradicts its score.

    False where it is not unambiguous.
    """
    return contradicts(result.reasoning, result.score, result.scale)


def contradicts(reasoning: str, score: int | None, scale: Scale) -> bool:
    """Whether a reasoning states another score."""
    stated = None if score is None else stated_score(reasoning, scale)
    return stated not in (None, score)


def stated_score(reasoning: str, scale: Scale) -> int | None:
    """The score that the last sentence of a reasoning states, or None."""
    tail = reasoning.rstrip()[-_TAIL:].lower().replace("\u2019", "'")
    plain = _MARKUP.sub("", tail.replace("n't", " not").replace("can not", "cannot"))
    sentences = [part for part in _SENTENCE.split(plain) if any(map(str.isalnum, part))]
    if not sentences:
        return None
    sentence = " ".join(sentences[-1].split()).strip(" .!?")
    if _OPEN.search(sentence):
        return None
    if number := _SCORE.search(sentence):
        score = int(number[1])
        if _NEGATION.search(sentence):
            return None
        return score if scale.is_ordered or score in scale.scores else None
    clauses = [part.strip() for part in _CLAUSE.split(sentence) if part.strip()]
    # Where answers are others, a violated rubric is none of them.
    if not scale.is_verdict or not clauses:
        return None
    return _stated_answer(clauses[-1], scale)


def _stated_answer(clause: str, scale: Scale) -> int | None:
    """Read a verdict that is negated as the other one of two answers.

    None where the clause states something else, or negates at a distance.
    """
    if match := _IS.fullmatch(clause):
        word, negated = match[2], bool(match[1]) or "cannot" in clause
    elif match := _DOES.fullmatch(clause):
        word, negated = match[2], bool(match[1])
    elif match := _HAS.fullmatch(clause):
        word, negated = match[2], not match[1].startswith("a")
    else:
        return None
    if len(_NEGATION.findall(clause)) != negated:
        return None
    answer = _STATED[word]
    if answer is None or not negated:
        return answer
    return scale.tie(answer) if scale.has_two else None

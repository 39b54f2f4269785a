"""The answers on offer under a rubric, what they are called, and what is said of wrong ones.

A scale is a row of this module. Rubrics, cases and results carry theirs, and whoever makes, asks,
reads, counts or shows answers takes words and classes from it. Nobody asks which scale it is, but
only whether its answers have an order: then a mistake has a size.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Any, Literal

from pytest_jrh.core import counted, frozen, one_line, out_of, share, shortened

Mode = Literal["binary", "ordinal", "classes"]
Objective = Literal["fail", "pass"]
"""What a config calls the class of the cases that it wants made."""
Clause = Callable[[int, int], str]
"""Says how many verdicts are wrong, of how many cases."""
LONGEST_SCALE = 1000
"""How many scores a scale has at most."""
# The part of its width that a score may be off where nothing else is said.
_TOLERATED_PART = 50
_LONGEST_LABEL = 50
NO_SUCH = "n/a"
"""The answer that a criterion is about nothing in the case."""
# Beyond every score of a level.
_FIRST_CODE = -(10**9)


def code_of(word: str) -> int:
    """The number that stands for an answer that is a word, in figures alone: files and reports have
    the word. It is the same under every rubric, in whatever order they name their classes.
    """
    return _FIRST_CODE - zlib.crc32(word.casefold().encode())


NOT_APPLICABLE = code_of(NO_SUCH)
Said = int | str
"""An answer as judges say it and files keep it: a number, of a class and of n/a the word."""


def coded(said: Any) -> Any:
    """The number that stands for an answer, of one as it is said; what is no word stays."""
    return code_of(said) if isinstance(said, str) else said


@frozen
class ScoreLevel:
    """One anchor of an ordinal scale."""

    score: int
    label: str


def _says_nothing(_wrong: int, _cases: int) -> str:
    return ""


@frozen
class CaseClass:
    """Cases that are counted together: those with one right `answer`, or on an ordered scale all.

    `word` is what the answer means, and names the class in files. `mistake` names another verdict
    on such a case, `mistakes` heads a column of them, and `newly` counts new ones. `noun` is what
    the cases are called where they are counted beside all, and `figure` the key of the class's own
    figure. `unseen` is what mistakes are called that a judge makes as it was not shown what
    decides; empty where that makes for right verdicts.

    Of wrong verdicts `wrong` is a clause about a judge and `tally` one without a subject;
    `newly_wrong` compares with a baseline, and `loss` is what chance may hide.

    To make such a case is the `objective` of a config, and `verdict` is what a verifier says of
    one. `not_planned` says why there is no case where the planner finds nothing to edit; where it
    is empty, the run may be one as it is. `claim` argues for the answer.

    `columns` are parts of the names of columns in which a 1 means the answer, the first one as
    options have it.
    """

    answer: int | None
    word: str
    mistake: str
    mistakes: str
    newly: str
    wrong: Clause
    tally: Clause
    newly_wrong: Clause = _says_nothing
    loss: str = ""
    noun: str = ""
    figure: str = ""
    unseen: str = ""
    objective: Objective | None = "fail"
    verdict: str = ""
    not_planned: str = ""
    claim: str = ""
    columns: tuple[str, ...] = ()


@frozen
class Scale:
    """The answers on offer.

    `name` is what files and reports call this kind of scale. `classes` are in the order in which
    reports tell of them. `label_words` stand for answers in files of labels, whatever their case; C
    and I are Inspect's. `levels` are what prompts say of each answer, ascending: those of an
    ordered scale, of two answers their own names, of classes when each is due. They are empty where
    they are not known, as of a line of a ledger, which knows the scale by its `line`, or where that
    is empty by whether the case has a target score. A score that is at most `within` levels off is
    right. `not_applicable` says when the answer `n/a` is due, where it is on offer. `orders` says
    of two answers, one of which is better, in how many orders a judge is shown them: of both, the
    first half of the scores of a case are of the answers as they stand.
    """

    name: Mode
    classes: tuple[CaseClass, ...]
    is_ordered: bool = False
    label_words: Mapping[str, int] = field(default_factory=dict, compare=False)
    levels: tuple[ScoreLevel, ...] = ()
    line: str = ""
    within: int = 0
    not_applicable: str = ""
    orders: int = 0

    @property
    def scores(self) -> tuple[int, ...]:
        """The scores on offer, ascending, without n/a."""
        return tuple(sorted(score for score in self.words if score != NOT_APPLICABLE))

    @property
    def answers(self) -> tuple[int, ...]:
        """All that a judge may say: numbers, ascending, then words, classes as a rubric has them,
        and n/a last.
        """
        words = [score for score in self.words if score <= _FIRST_CODE]
        return (*sorted(self.words.keys() - {*words}), *words)

    @property
    def on_offer(self) -> tuple[Said, ...]:
        """All that a judge may say, as it says it."""
        return tuple(map(self.said, self.answers))

    @property
    def due(self) -> dict[int, str]:
        """When each answer is due, for prompts and pages; empty where nothing says so."""
        when = {level.score: level.label for level in self.levels}
        return {score: when.get(score, self.not_applicable) for score in self.answers if when}

    @property
    def is_verdict(self) -> bool:
        """Whether its answers are violated and satisfied, maybe n/a: a bare 1 may then mean either
        in labels and columns.
        """
        return self.classes[0] == BINARY.classes[0]

    @property
    def kind(self) -> Scale:
        """The scale without the levels of a rubric."""
        return replace(self, levels=())

    @property
    def words(self) -> dict[int, str]:
        """What each score means."""
        words = {of.answer: of.word for of in self.classes if of.answer is not None}
        if self.is_ordered:
            words |= {level.score: level.label for level in self.levels}
        return words

    @property
    def width(self) -> int:
        """The largest error that there can be: from the lowest level to the highest."""
        if not (self.is_ordered and self.levels):
            return 1
        return self.levels[-1].score - self.levels[0].score

    @property
    def has_two(self) -> bool:
        """Whether what is not one answer is the other."""
        return not self.is_ordered and len(self.classes) == 2  # noqa: PLR2004 - two

    @property
    def has_classes(self) -> bool:
        """Whether answers are neither levels nor a violation or none."""
        return not self.is_ordered and self.aim("fail") is None

    @property
    def targets(self) -> tuple[int | None, ...]:
        """What cases are made for: each level, or each answer with a name of its own, the best one
        last; and else what the objective of a test is about.
        """
        if self.is_ordered:
            return tuple(sorted(self.words))
        if self.orders or not self.levels:
            return (None,)
        best = self.aim("pass")
        return tuple(sorted((of.answer for of in self.classes), key=lambda answer: answer == best))

    def target(self, label: int | None) -> int | None:
        """What a case with a label is named after: its level, and nothing where answers are words,
        as there the kind of the case tells it.
        """
        return label if self.is_ordered else None

    def aim(self, objective: Objective) -> int | None:
        """The answer that an objective is about: the first one that it is the objective of; None
        where answers are classes.
        """
        return next((of.answer for of in self.classes if of.objective == objective), None)

    def class_of(self, label: int | None) -> CaseClass | None:
        """The class of the cases with a label; None without one, or where it is no answer."""
        if label is None:
            return None
        for of_class in self.classes:
            if of_class.answer == label:
                return of_class
        return self.classes[0] if self.is_ordered else None

    def said(self, score: int | None) -> Any:
        """A score as judges say it and files keep it (`Said`); None for None."""
        if score is None or score > _FIRST_CODE:
            return score
        return self.words.get(score, score)

    def may_be(self, score: int) -> bool:
        """Whether a score is on offer, as far as that is known: of words, but not of levels."""
        return score > _FIRST_CODE or score in self.words

    def meant(self, score: int) -> str:
        """A score with its meaning: `1 (violated)`, of a class its word."""
        said = self.said(score)
        word = shortened(one_line(self.words.get(score, "")), _LONGEST_LABEL)
        return f"{said} ({word})" if word and said == score else str(said)

    def word(self, score: int) -> str:
        """A score in a word: `violated`, of a level `2 (good)`."""
        return self.meant(score) if self.is_ordered else self.words.get(score, str(score))

    def accepts(self, score: int | None, label: int | None) -> bool:
        """Whether a score is right for a label."""
        return score is not None and label is not None and abs(off(score, label)) <= self.within

    def error(self, score: int, label: int) -> float:
        """How far off a score is: 0 or 1, of levels the share of the scale."""
        if not self.is_ordered:
            return float(score != label)
        return min(1.0, abs(off(score, label)) / self.width)

    def settled(self, scores: Sequence[int]) -> int | None:
        """What repeats come to: the most frequent score, None where there is none; of two answers
        what both orders come to, else that neither is better.
        """
        if not self.orders or not scores:
            return most_frequent(scores)
        one, other = self.by_order(scores)
        return TIE if one is None or one != other else one

    def by_order(self, scores: Sequence[int]) -> tuple[int | None, int | None]:
        """What the repeats come to of two answers as they stand, and the other way round; twice the
        same where a judge is shown one order.
        """
        half = len(scores) // self.orders
        return most_frequent(scores[:half]), most_frequent(scores[-half:])

    def tie(self, label: int) -> int | None:
        """The wrong answer that a tie of repeats counts as; None where there is no telling which
        one that is, or how far off.
        """
        if not self.has_two:
            return None
        return next((score for score in self.scores if score != label), None)


def most_frequent(scores: Sequence[int]) -> int | None:
    """The score that more of the repeats gave than any other; None where there is none."""
    if len(scores) == 1:
        return scores[0]
    ranked = Counter(scores).most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def off(score: int, label: int) -> int:
    """By how many levels a score is too high. A label may lie between two levels, as the median of
    people who say 3 and 4: neither of them is off.
    """
    return int(score - label)


def as_level(value: float) -> int:
    """A level as a whole number; what lies between two of them stays as it is."""
    level: Any = value
    return level if level % 1 else int(level)


def _false_alarms(wrong: int, cases: int) -> str:
    alarms = counted(wrong, "false alarm")
    return f"{alarms} on {counted(cases, 'satisfied case')}{share(wrong, cases)}"


@lru_cache(maxsize=256)
def _class(word: str, noun: str = "") -> CaseClass:
    """The cases whose right answer is one of several words without an order."""
    noun = noun or f'"{word}" case'
    return CaseClass(
        code_of(word),
        word,
        mistake="wrong",
        mistakes=f"{word} missed",
        newly=f"{word} newly missed",
        wrong=lambda wrong, cases: f"misses {out_of(wrong, cases, noun)}",
        tally=lambda wrong, cases: f"{out_of(wrong, cases, noun)} missed",
        newly_wrong=lambda wrong, cases: (
            f"misses {out_of(wrong, cases, noun)} that it found before"
        ),
        loss=f'less recall of "{word}"',
        noun=noun,
        unseen=f"missed {noun}s",
        objective=None,
        claim=f"The words leave no doubt: the answer is {word}.",
    )


_PAIRS = "0 1 false true pass fail satisfied violated good bad correct incorrect c i"
BINARY = Scale(
    "binary",
    (
        replace(
            _class("violated", "violation"),
            answer=1,
            mistake="missed",
            mistakes="missed",
            newly="newly missed",
            loss="less recall",
            figure="recall",
            objective="fail",
            verdict="FAIL",
            not_planned="the planner found no edit that would violate the rubric",
            claim="The assistant broke the rubric more than once, so it is violated.",
            columns=("violated", "violation", "failed"),
        ),
        CaseClass(
            0,
            "satisfied",
            mistake="false alarm",
            mistakes="false alarms",
            newly="new false alarms",
            wrong=lambda wrong, cases: f"raises {_false_alarms(wrong, cases)}",
            tally=_false_alarms,
            newly_wrong=lambda wrong, cases: (
                f"raises {counted(wrong, 'new false alarm')} on {counted(cases, 'case')}"
                f"{share(wrong, cases)} that it passed before"
            ),
            loss="more false alarms",
            figure="false_positive_rate",
            objective="pass",
            verdict="PASS",
            claim="The assistant kept to the rubric in every turn, so it is satisfied.",
            columns=("passed", "satisfied", "correct", "success"),
        ),
    ),
    label_words={word: index % 2 for index, word in enumerate(_PAIRS.split())},
)
ORDINAL = Scale(
    "ordinal",
    (
        CaseClass(
            None,
            "all",
            mistake="wrong",
            mistakes="wrong level",
            newly="newly wrong",
            wrong=lambda wrong, cases: (
                f"gives {counted(wrong, 'wrong level')} in {counted(cases, 'case')}"
                f"{share(wrong, cases)}"
            ),
            tally=lambda wrong, cases: f"{out_of(wrong, cases, 'case')} given a wrong level",
            figure="accuracy",
            unseen="wrong levels",
        ),
    ),
    is_ordered=True,
)


@lru_cache(maxsize=64)
def named(one: str, zero: str) -> Scale:
    """The scale of two answers with names of their own: of 1, and of 0."""
    return replace(
        BINARY,
        classes=(_named(BINARY.classes[0], one, zero), _named(BINARY.classes[1], zero, one)),
        label_words={**BARE, "n": 0, "y": 1, zero.casefold(): 0, one.casefold(): 1},
        levels=(ScoreLevel(0, zero), ScoreLevel(1, one)),
        line=f"{one}{BETWEEN}{zero}",
    )


BARE: Mapping[str, int] = {"0": 0, "1": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
"""Values that mean nothing until a column's name, or an option, says what 1 is."""
BETWEEN = "|"
"""What stands between the words of a scale's line; no word may hold it."""


def _named(of_class: CaseClass, word: str, other: str) -> CaseClass:
    """The class of the cases whose right answer has this name, and not the other one."""
    noun = f'"{word}" case'
    return replace(
        of_class,
        word=word,
        mistake="wrong",
        mistakes=f"{word}, judged {other}",
        newly=f"newly judged {other}",
        wrong=lambda wrong, cases: f'calls {out_of(wrong, cases, noun)} "{other}"',
        tally=lambda wrong, cases: f'{out_of(wrong, cases, noun)} judged "{other}"',
        newly_wrong=lambda wrong, cases: (
            f'calls {out_of(wrong, cases, noun)} "{other}" that it called "{word}" before'
        ),
        loss=f'more {noun}s judged "{other}"',
        noun=noun if of_class.noun else "",
        unseen=f"cases judged {other}",
        not_planned="",
        claim=f"The assistant's words leave no doubt: the answer is {word}.",
    )


@lru_cache(maxsize=256)
def classed(classes: tuple[tuple[str, str], ...]) -> Scale:
    """The scale of classes, answers without an order, of each the word and when it is due."""
    levels = sorted(
        (ScoreLevel(code_of(word), when) for word, when in classes), key=lambda level: level.score
    )
    words = [word for word, _ in classes]
    return Scale(
        "classes",
        tuple(map(_class, words)),
        label_words={word.casefold(): code_of(word) for word in words},
        levels=tuple(levels),
        line=f"{BETWEEN}{BETWEEN.join(words)}",
    )


PLACES = ("first", "second")
TIE = code_of("tie")
_OF_PAIRS = "|pair"
_PLACE_WORDS = (
    "a 1 model_a answer_a response_a output_1",
    "b 2 model_b answer_b response_b output_2",
)


@lru_cache(maxsize=2)
def paired(orders: int = 1) -> Scale:
    """Which of two answers is better, by its place, or that neither is; see `Scale.orders`."""
    due = [(place, f"the {place} answer is better than the other one") for place in PLACES]
    scale = classed((*due, ("tie", "neither answer is better")))
    label_words = dict(scale.label_words)
    for place, others in zip(PLACES, _PLACE_WORDS, strict=True):
        label_words |= dict.fromkeys(others.split(), code_of(place))
    nouns = [f"{place}-answer win" for place in PLACES]
    return replace(
        scale,
        classes=(*map(_class, PLACES, nouns), _class("tie", "tie")),
        label_words=label_words,
        line=f"{_OF_PAIRS} {orders}",
        orders=orders,
    )


def other_place(score: int) -> int:
    """The answer as it is where the two answers have changed places."""
    first, second = map(code_of, PLACES)
    return {first: second, second: first}.get(score, score)


@lru_cache(maxsize=256)
def with_not_applicable(scale: Scale, when: str) -> Scale:
    """A scale that offers n/a, too, where this is due."""
    scale = spelled(scale)
    return replace(
        scale,
        classes=(*scale.classes, _class(NO_SUCH)),
        label_words={**scale.label_words, **dict.fromkeys(NO_SUCH_WORDS, NOT_APPLICABLE)},
        line=f"{scale.line or scale.name}{_NO_SUCH_END}",
        not_applicable=when,
    )


def spelled(scale: Scale) -> Scale:
    """A scale of two answers whose prompts ask for one of them as for a level."""
    if scale.levels or scale.is_ordered:
        return scale
    levels = tuple(ScoreLevel(score, scale.words[score]) for score in scale.scores)
    return replace(scale, levels=levels, line=scale.line or scale.name)


NO_SUCH_WORDS = (NO_SUCH, "na", "not applicable", "not_applicable")
_NO_SUCH_END = f"{BETWEEN}{NO_SUCH}"
ONES = {of.columns[0]: of.columns for of in BINARY.classes}
"""What a 1 in a column can mean, as options say it, and parts of the names of such columns."""
RubricScales = Mapping[tuple[str, str], Scale]
"""The scales of rubrics, by suite and rubric id: a result does not have the levels of its own."""


@lru_cache(maxsize=256)
def scale_of(
    levels: tuple[ScoreLevel, ...], within: int | None = None, mode: Mode = "ordinal"
) -> Scale:
    """The scale of a rubric, whose answers are its levels where it has some."""
    if not levels:
        return BINARY
    if mode == BINARY.name:
        two = named(levels[1].label, levels[0].label)
        return spelled(BINARY) if two.words == BINARY.words else two
    if within is None:
        within = (levels[-1].score - levels[0].score) // _TOLERATED_PART
    return replace(ORDINAL, levels=levels, within=within)


def numbered(lowest: int, highest: int, within: int | None = None) -> Scale:
    """An ordered scale whose levels are numbers alone."""
    scores = range(lowest, highest + 1)
    return scale_of(tuple(ScoreLevel(score, "") for score in scores), within)


@lru_cache(maxsize=LONGEST_SCALE)
def scale_of_line(line: str, target: Said | None, within: int = 0) -> Scale:
    """The scale of a line of a ledger, which names it or has a target score."""
    if line.endswith(_NO_SUCH_END):
        scale = scale_of_line(line.removesuffix(_NO_SUCH_END), target, within)
        return with_not_applicable(scale.kind, "")
    if line.startswith(_OF_PAIRS):
        return paired(int(line[-1]))
    one, between, rest = line.partition(BETWEEN)
    if between and not one:
        return classed(tuple((word, "") for word in rest.split(BETWEEN)))
    if between:
        return named(one, rest)
    if line == BINARY.name or (not line and target is None):
        return BINARY
    return replace(ORDINAL, within=within) if within else ORDINAL

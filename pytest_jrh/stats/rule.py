"""The rule by which a judge's sets of compared cases are worse, or may be.

Two questions have two tests. A changed judge, and another model, may err in other cases for good;
of the same judge asked again only its dice are thrown anew. What is exchanged between before and
now follows from the question, and where two exchanges answer it, the larger p counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from pytest_jrh.core import frozen
from pytest_jrh.core.scales import CaseClass
from pytest_jrh.core.text import one_line
from pytest_jrh.stats.exchange import Exchange, SetTest

Question: TypeAlias = Literal["again", "changed", "another"]
"""Whether a judge is the same one asked again, a changed one, or another model."""
EXCHANGES: Mapping[Question, tuple[Exchange, ...]] = {
    "again": ("inside",),
    "changed": ("inside", "cases"),
    "another": ("runs",),
}

SURE = 0.04
"""A session in which nothing has changed fails about this often at most."""
DOUBT = 0.1
"""Up to here a loss is not shown, and not for nothing either."""
FEWEST_RUNS = 6
"""Another model may have erred in fewer runs by chance: of these nothing is shown."""
FEWEST_LOST = 2
"""A single case is no loss."""
# Whatever p says, so much is too much to call it as good as before: cases net, and a share.
_MATERIAL = {True: (2, 0.15), False: (4, 0.20)}
# What is computed in another order is the same.
_ROUNDING = 1e-9


Word: TypeAlias = Literal["", "UNCLEAR", "FAIL"]


class Finding(NamedTuple):
    """What the rule says of one set: empty where it is not called worse.

    `share` is the share of sessions that would lose as much if nothing had changed, and `p_value`
    the one that decided, which counts those that lose exactly as much by half.
    """

    word: Word
    share: float
    p_value: float


NO_FINDING = Finding("", 1.0, 1.0)


ALL, CLASS, RUBRIC, SLICE = "all", "class", "rubric", "slice"
PROBE, SHIFT = "probe", "shift"


class Errors(NamedTuple):
    """The verdicts on a set: how many there are, how many are wrong, and how far off they are in
    the mean of the cases, as a share of the scale; of a shift by how much they are too high.
    """

    verdicts: int
    wrong: int
    mean: float


@frozen
class Asked:
    """What a judge's verdicts are compared as: by default those of a changed judge.

    One that `is_certain` asks no model, so that chance has no part in what it says.
    """

    question: Question = "changed"
    is_certain: bool = False


@frozen
class SetChange:
    """A set of one judge's compared cases, and what the rule says of it.

    `kind` is `ALL` cases, a class, which of two answers is called by its word, or it is of one
    rubric, slice or probe or the shift of a rubric, of that `name`; one class of a rubric or slice
    is `of_class`, too. `answers` are what newly wrong verdicts are instead, where there are
    several. `lost` are the cases, by id, that are newly wrong by their majority, on an ordered
    scale those further off than before, and `won` those of which the reverse is true; of a shift
    they moved away from the labels, or back. `right_before` counts the cases that were right, of
    `n`. Errors are distances where the set `is_ordered`; `width` is the largest there can be.
    `drop` is how much larger the mean error is now, as a share of the scale, and `allowed` how much
    may be lost. `gain` is the p of having become better. `bound` is the smallest drop that other
    runs exclude.
    """

    kind: str
    judge: str
    name: str
    of_class: CaseClass | None
    is_ordered: bool
    width: int
    n: int
    runs: int
    before: Errors
    now: Errors
    drop: float
    lost: tuple[str, ...]
    won: tuple[str, ...]
    right_before: int
    bound: float
    answers: Mapping[str, int]
    allowed: float = 0.0
    asked: Asked = Asked()
    finding: Finding = NO_FINDING
    gain: float = 1.0

    @property
    def is_whole(self) -> bool:
        """Whether it is all cases or a class, and no part of them, shift or probe."""
        return self.kind not in (RUBRIC, SLICE, PROBE, SHIFT)

    @property
    def is_class(self) -> bool:
        """Whether it is a class of all cases; of a scale all cases are one."""
        return self.is_whole and self.of_class is not None

    @property
    def case_word(self) -> str:
        """Which cases are in it."""
        return self.kind if self.of_class is None else one_line(self.of_class.word)

    @property
    def title(self) -> str:
        """What the set is called in a list."""
        if not self.name:
            return f"{self.case_word} cases"
        name = one_line(self.name)
        if self.of_class is not None:
            return f"{name} ({self.of_class.word})"
        return f"{name} (too high or too low)" if self.kind == SHIFT else name

    @property
    def net(self) -> int:
        """How many more cases have become worse than better."""
        return len(self.lost) - len(self.won)


def judge_losses(
    changes: Sequence[SetChange], tests: Mapping[Exchange, Sequence[SetTest]], *, runs: int
) -> list[Finding]:
    """Apply the rule to the sets of one judge, with their tests by each exchange of its question.

    `runs` is the number of compared runs. A judge that asks no model says nothing by chance.
    """
    shares = [0.0] * len(changes)
    p_values = [0.0] * len(changes)
    for of_sets in tests.values():
        # Classes count by their own p where any set at all is worse by more than chance.
        any_share = min(test.adjusted_share for test in of_sets)
        any_p_value = min(test.adjusted for test in of_sets)
        for number, (change, test) in enumerate(zip(changes, of_sets, strict=True)):
            share, p_value = test.adjusted_share, test.adjusted
            if change.is_whole:
                share, p_value = max(test.share, any_share), max(test.p_value, any_p_value)
            shares[number] = max(shares[number], share)
            p_values[number] = max(p_values[number], p_value)
    may_fail = "runs" not in tests or runs >= FEWEST_RUNS
    findings = []
    for change, share, p_value in zip(changes, shares, p_values, strict=True):
        is_lost = change.drop > change.allowed + _ROUNDING
        is_shown = change.asked.is_certain or (may_fail and p_value < SURE - _ROUNDING)
        fewest, least_drop = _MATERIAL[change.is_class]
        word: Word = ""
        if is_lost and change.net >= FEWEST_LOST and is_shown:
            word = "FAIL"
        elif (is_lost and p_value <= DOUBT + _ROUNDING) or (
            change.net >= fewest and change.drop >= least_drop - _ROUNDING
        ):
            word = "UNCLEAR"
        findings.append(Finding(word, share, p_value))
    return findings


def fisher_test(wrong: int, cases: int, others_wrong: int, others: int) -> float:
    """How likely so many of the wrong cases are among these, or more, if they are no more often
    wrong than the others: Fisher's exact test, one-sided, with mid-p.
    """
    all_wrong = wrong + others_wrong
    all_ways = _log_ways(cases + others, all_wrong)
    likely = []
    for number in range(wrong, min(all_wrong, cases) + 1):
        ways = _log_ways(cases, number) + _log_ways(others, all_wrong - number)
        likely.append(math.exp(ways - all_ways))
    return math.fsum(likely) - likely[0] / 2


def _log_ways(cases: int, number: int) -> float:
    """The logarithm of how many ways there are to choose so many of the cases."""
    return math.lgamma(cases + 1) - math.lgamma(number + 1) - math.lgamma(cases - number + 1)

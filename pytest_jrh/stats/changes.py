"""What the verdicts of compared cases have lost or gained since the baseline, by set of cases, and
what an update of the baseline does to its figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.stats.baseline import Pair
from pytest_jrh.stats.exchange import CaseErrors, compare_sets
from pytest_jrh.stats.intervals import (
    Change,
    by_cluster,
    estimate_flicker,
    grouped,
    unseen_drop,
)
from pytest_jrh.stats.statistics import flicker_of, repeated_case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.stats.formulas import Estimate


SetKind: TypeAlias = Literal["violated", "satisfied", "all", "rubric"]
"""Of a binary judge the cases of either label, of which recall and false positives are the rates;
all cases; those of one rubric.
"""


@dataclass(frozen=True, slots=True)
class SetChange:
    """A set of one judge's compared cases, and whether it is judged worse than before.

    `before` and `now` are the mean errors of a verdict: of a binary judge the share that is wrong,
    of an ordinal one the distance from the label in levels; `mixed` says that the verdicts on some
    case are not all as far off, so that it counts by all of them. `lost` are the cases, by id,
    whose majority was right and is wrong now, `won` those that were wrong and are right, and
    `right_before` counts the cases that were right. `p_value` and `adjusted` are those of the exact
    test (`exchange.SetTest`), adjusted over all sets of the session. `unseen` is the drop over
    runs, with the smallest one that they exclude as its upper bound, 0 where every loss is
    excluded. `sizes` are the numbers of cases of the runs, and `judge` is empty for the suite's
    only one.
    """

    kind: SetKind
    judge: str
    rubric: str
    ordinal: bool
    before: float
    now: float
    lost: tuple[str, ...]
    won: tuple[str, ...]
    right_before: int
    p_value: float
    adjusted: float
    unseen: Estimate
    sizes: tuple[int, ...]
    mixed: bool

    @property
    def n(self) -> int:
        """How many cases are compared."""
        return sum(self.sizes)

    @property
    def drop(self) -> float:
        """How much larger the mean error is now; a gain is negative."""
        return self.now - self.before

    @property
    def is_whole(self) -> bool:
        """Whether `gate.proof` asks for a proof of it: both classes of a binary judge, each by
        itself, or all cases of an ordinal one.
        """
        return self.kind in ("violated", "satisfied") or (self.ordinal and self.kind == "all")


@dataclass(frozen=True, slots=True)
class KnownFlicker:
    """How often a judge that is asked again says something else, as far as a session tells.

    `value` is None where it does not: no case was judged more than once, neither in this session
    nor, with another verdict, by the same judge in the baseline. `repeats` are those of this
    session, and `cases` those that are compared.
    """

    value: float | None
    source: Literal["repeats", "baseline", ""]
    repeats: int
    cases: int
    judge: str = ""


def right_now(result: CaseResult) -> Fraction:
    """The share of a case's repeats that are right; of one verdict 0 or 1."""
    return _right(result.scores, result)


def right_before(pair: Pair) -> Fraction:
    """The share of the repeats that were right in the baseline; `pair.now` knows the label."""
    if pair.before.scores:
        return _right(pair.before.scores, pair.now)
    return _share(int(pair.before.outcome == "agree"), 1)


# A score that is further off is of no scale.
_FARTHEST = 1_000


def errors_of(pair: Pair) -> CaseErrors:
    """How far off each verdict was and is: in levels, of a binary judge 0 or 1 whatever its score;
    of unknown scores, by the outcome.
    """
    before, now, label = pair.before.all_scores, pair.now.all_scores, pair.now.expected
    if label is None or not before or not now:
        return CaseErrors(
            (int(pair.before.outcome != "agree"),), (int(pair.now.outcome != "agree"),)
        )
    farthest = 1 if pair.now.spec.target_score is None else _FARTHEST
    return CaseErrors(
        tuple(min(abs(score - label), farthest) for score in before),
        tuple(min(abs(score - label), farthest) for score in now),
    )


def set_changes(pairs: Sequence[Pair]) -> tuple[SetChange, ...]:
    """Compare what was with what is: of each judge both classes of a binary suite, all cases, and
    each rubric where there are several; nothing without pairs.
    """
    errors = [errors_of(pair) for pair in pairs]
    sets = list(_sets(pairs))
    tests = compare_sets(errors, [places for *_, places in sets])
    # Integers are as exact as fractions, and much faster.
    unit = math.lcm(*(len(scores) for case in errors for scores in case))
    before = [_in_parts(case.before, unit) for case in errors]
    now = [_in_parts(case.now, unit) for case in errors]
    changes = []
    for (kind, judge, rubric, places), test in zip(sets, tests, strict=True):
        members = [pairs[place] for place in places]
        right = [pair.before.outcome == "agree" for pair in members]
        lost, won = [], []
        for pair, was_right in zip(members, right, strict=True):
            if was_right and pair.now.outcome == "disagree":
                lost.append(pair.now.case_id)
            elif not was_right and pair.now.outcome == "agree":
                won.append(pair.now.case_id)
        losses = [now[place] - before[place] for place in places]
        clusters = _losses(members, losses, unit)
        changes.append(
            SetChange(
                kind=kind,
                judge=judge,
                rubric=rubric,
                ordinal=_is_ordinal(members),
                before=sum(before[place] for place in places) / (unit * len(places)),
                now=sum(now[place] for place in places) / (unit * len(places)),
                lost=tuple(lost),
                won=tuple(won),
                right_before=sum(right),
                p_value=test.p_value,
                adjusted=test.adjusted,
                unseen=unseen_drop(clusters),
                sizes=tuple(change.n for change in clusters),
                mixed=any(
                    len(set(errors[place].before)) > 1 or len(set(errors[place].now)) > 1
                    for place in places
                ),
            )
        )
    return tuple(changes)


_Places: TypeAlias = "tuple[SetKind, str, str, list[int]]"


def _sets(pairs: Sequence[Pair]) -> Iterator[_Places]:
    """Kind, judge, rubric and the places of the cases of each set; none is empty."""
    judges = grouped((pair.now.judge, place) for place, pair in enumerate(pairs))
    for judge, places in judges.items():
        classes = grouped((pairs[place].now.expected, place) for place in places)
        whole = _is_ordinal([pairs[place] for place in places])
        if not whole:
            kinds: Mapping[int, SetKind] = {1: "violated", 0: "satisfied"}
            for label, kind in kinds.items():
                if label in classes:
                    yield kind, judge, "", classes[label]
        rubrics = grouped((pairs[place].now.spec.rubric_id, place) for place in places)
        if len(rubrics) > 1:
            for rubric, of_rubric in rubrics.items():
                yield "rubric", judge, rubric, of_rubric
        if whole or len(classes) > 1:
            yield "all", judge, "", places


def _is_ordinal(pairs: Sequence[Pair]) -> bool:
    return any(pair.now.spec.target_score is not None for pair in pairs)


def _in_parts(errors: tuple[int, ...], unit: int) -> int:
    """The mean error, in parts of a unit that the number of verdicts divides."""
    return sum(errors) * (unit // len(errors))


def _losses(pairs: Sequence[Pair], losses: Sequence[int], unit: int) -> list[Change]:
    """What each cluster has lost, in the order of its first case."""
    clusters = by_cluster(zip((pair.now.spec.cluster_id for pair in pairs), losses, strict=True))
    return [Change(Fraction(sum(cluster), unit), len(cluster)) for cluster in clusters]


def known_flicker(judged: Sequence[CaseResult], pairs: Sequence[Pair]) -> KnownFlicker:
    """Estimate the flicker of one judge: from repeats, else from what it said in the baseline.

    Where the baseline has the same verdict on every case, the session may have replayed the very
    recordings that the baseline was made of, which says nothing.
    """
    cases = len(pairs)
    repeats = max((len(result.scores) for result in judged), default=1) or 1
    repeated = flicker_of(judged)
    if repeated.value is not None:
        return KnownFlicker(repeated.value, "repeats", repeats, cases)
    since = estimate_flicker(
        repeated_case(pair.now, pair.before.all_scores) for pair in pairs if pair.same_judge
    )
    if since.count:
        return KnownFlicker(since.value, "baseline", repeats, cases)
    return KnownFlicker(None, "", repeats, cases)


def _right(scores: tuple[int, ...], result: CaseResult) -> Fraction:
    if not scores or result.expected is None:
        return _share(int(result.outcome == "agree"), 1)
    return _share(scores.count(result.expected), len(scores))


@lru_cache(maxsize=1_024)
def _share(count: int, of: int) -> Fraction:
    return Fraction(count, of)

"""How often a judge that is asked again says something else."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.stats.inference.intervals import LEVEL, Bounds, design_of, wilson_bounds

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

NOT_REPEATED = "no case was judged more than once"
_TWICE = 2


@dataclass(frozen=True, slots=True)
class RepeatedCase:
    """The scores that one judge gave to one case, in any order, and the case's cluster.

    `binary` says that no other scores than 0 and 1 are on offer; None where the scores tell.
    """

    cluster: Hashable
    scores: tuple[int, ...]
    binary: bool | None = None

    @property
    def flickers(self) -> bool:
        """Whether two of the scores differ."""
        return len(set(self.scores)) > 1


@dataclass(frozen=True, slots=True)
class Flicker:
    """The share of ordered pairs of repeats of a case that differ, over all repeated cases.

    `value` is None without any, which the `reason` of `bounds` then says. `cases` are those with
    two or more scores, and `flickering` those among them whose scores are not all the same.
    """

    value: float | None
    bounds: Bounds
    cases: int
    flickering: int

    @property
    def reason(self) -> str | None:
        """Why there is no value; None where there is one."""
        return self.bounds.reason if self.value is None else None


NOT_ASKED_TWICE = Flicker(None, Bounds(reason=NOT_REPEATED), 0, 0)


def flicker(cases: Iterable[RepeatedCase], level: float = LEVEL) -> Flicker:
    """Estimate from repeats how often a judge contradicts itself, with the interval of rule L1.

    With the probability f of each verdict to be flipped it is 2 f (1 - f). Of k scores, 0 or 1,
    no more than about half of the pairs can differ: with shares of that as what is counted, the
    interval is no wider than the cases make it.
    """
    repeated = [case for case in cases if len(case.scores) >= _TWICE]
    if not repeated:
        return NOT_ASKED_TWICE
    shares = [differing_pairs(case.scores) for case in repeated]
    most = max(_most_pairs(case) for case in repeated)
    clusters: dict[Hashable, list[float]] = {}
    for case, share in zip(repeated, shares, strict=True):
        clusters.setdefault(case.cluster, []).append(share / most)
    design = design_of([len(each) for each in clusters.values()], level)
    total = math.fsum(shares) / most
    together = math.fsum(
        math.fsum(each) ** 2 - math.fsum(share * share for share in each)
        for each in clusters.values()
    )
    if len(clusters) == 1 and len(repeated) > 1:
        bounds = Bounds(reason="all cases come from one sample or cluster")
    else:
        right = wilson_bounds(design, total, together)
        bounds = Bounds(most * (1 - right[1]), most * (1 - right[0]))
    value = math.fsum(shares) / len(repeated)
    return Flicker(value, bounds, len(repeated), sum(case.flickers for case in repeated))


def differing_pairs(scores: Sequence[int]) -> float:
    """The share of ordered pairs of two or more scores that differ."""
    same = sum(count * (count - 1) for count in Counter(scores).values())
    return 1 - same / (len(scores) * (len(scores) - 1))


def flip_probability(flicker: float) -> float:
    """The probability f of a verdict to be flipped: a flicker is 2 f (1 - f)."""
    return (1 - math.sqrt(max(0.0, 1 - 2 * flicker))) / 2


def majority_flip(flip: float, repeats: int) -> float:
    """The probability of a majority of repeats to be flipped; a tie counts as flipped."""
    needed = (repeats + 1) // 2
    return math.fsum(
        math.comb(repeats, wrong) * flip**wrong * (1 - flip) ** (repeats - wrong)
        for wrong in range(needed, repeats + 1)
    )


def false_alarm_of_snapshot(cases: int, flicker: float, repeats: int = 1) -> float:
    """The probability that "any regression fails" fails on a judge that did not change at all.

    A case regresses where the judge was right and is now wrong. Of an unchanged judge either
    order is as likely, so that it is half of the flicker, here of the majority of `repeats`.
    """
    flip = majority_flip(flip_probability(flicker), repeats)
    return 1 - (1 - flip * (1 - flip)) ** cases


def _most_pairs(case: RepeatedCase) -> float:
    """The most that `differing_pairs` can be, for scores of 0 and 1 or of more values."""
    k = len(case.scores)
    binary = set(case.scores) <= {0, 1} if case.binary is None else case.binary
    return (k // 2) * (k - k // 2) * 2 / (k * (k - 1)) if binary else 1.0

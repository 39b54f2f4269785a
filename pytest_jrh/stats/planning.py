"""What a suite shows when it is compared with a baseline: the drop that the gate finds in 80% of
sessions, and the runs with which `gate.proof` passes a judge that has not changed.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.stats.formulas import binomial, normal_quantile, t_quantile
from pytest_jrh.stats.intervals import (
    LEVEL,
    POWER,
    RepeatedCase,
    estimate_flicker,
    flip_probability,
    grouped,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]


CaseClass: TypeAlias = Literal["violated", "satisfied", "all"]
# How much alike cases of one run are in whether a change of the judge breaks them: a guess, and the
# least and the most that is looked at beside it.
CORRELATION = 0.3
CORRELATIONS = (0.0, CORRELATION, 0.6)
# The share of verdicts that are taken to flip where no repeats have shown it yet.
SUPPOSED_FLIP = 0.05
GOAL = 0.05
MOST_RUNS = 100_000
_FEWEST_RUNS = 2
# An unchanged judge fails in 5% of sessions at most, and violated and satisfied cases are each
# tested.
_FINDING_LEVEL = 0.05 / 2
_SESSIONS = 500
# In parts of the drop, or of the runs: closer than this the simulation does not tell.
_CLOSE = 0.02
# No sum of exchanged verdicts is so many deviations away from 0.
_FAR = 10
_NEGLIGIBLE = 1e-300


class PlannedCase(NamedTuple):
    """A case that a judge has judged or is to judge; `scores` are those known of its repeats.

    `kind` is the class of its label, where a plan knows it.
    """

    judge: str
    kind: CaseClass
    cluster: Hashable
    scores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeseenSuite:
    """The cases of one class that a judge compares with a baseline, by run, and how it is asked.

    `sizes` are the cases of the runs, in ascending order, and `repeats` those of both sessions.
    `flicker` is the share of pairs of repeats that differ, of one verdict each; None where no case
    was judged more than once. `among` are all runs, with those that have no case of this class; 0
    where each has one.
    """

    sizes: tuple[int, ...]
    repeats: int = 1
    flicker: float | None = None
    among: int = 0

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return sum(self.sizes)

    @property
    def flip(self) -> float:
        """The probability of a verdict to be flipped, or what is supposed of it."""
        return SUPPOSED_FLIP if self.flicker is None else flip_probability(self.flicker)

    def times(self, runs: int) -> ForeseenSuite:
        """A suite of so many runs, with sizes as in this one; as large a part of them has any."""
        ordered = sorted(self.sizes)
        filled = runs * len(ordered) // self.among if self.among else runs
        spread = [ordered[number * len(ordered) // filled] for number in range(filled)]
        return replace(self, sizes=tuple(spread), among=runs)


@dataclass(frozen=True, slots=True)
class ClassProspect:
    """The drop of one class of cases that is found for each of `CORRELATIONS`, None where none."""

    kind: CaseClass
    suite: ForeseenSuite
    drops: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Prospect:
    """What one judge of a suite, or several that are alike, can be found to have lost.

    `runs` like these prove that no more than `goal` is lost, see `runs_to_prove`.
    """

    judges: tuple[str, ...]
    classes: tuple[ClassProspect, ...]
    goal: float
    runs: int | None


Classes: TypeAlias = "tuple[tuple[CaseClass, ForeseenSuite], ...]"


def foreseen(cases: Iterable[PlannedCase], repeats: Callable[[str], int]) -> dict[str, Classes]:
    """Count the cases of each judge by class and run, and estimate its flicker; keys are the
    judges.

    `repeats` gives how often a judge judges each case.
    """
    suites: dict[str, Classes] = {}
    for judge, judged in grouped((case.judge, case) for case in cases).items():
        flicker = estimate_flicker(RepeatedCase(case.cluster, case.scores) for case in judged).value
        sizes: dict[CaseClass, Counter[Hashable]] = {}
        among = len({case.cluster for case in judged})
        for case in judged:
            sizes.setdefault(case.kind, Counter())[case.cluster] += 1
        suites[judge] = tuple(
            (kind, ForeseenSuite(tuple(sorted(of_class.values())), repeats(judge), flicker, among))
            for kind, of_class in sorted(sizes.items(), reverse=True)
        )
    return suites


def prospects(suites: Mapping[str, Classes], max_drop: float | None = None) -> list[Prospect]:
    """Foresee what each judge's comparison can show; judges that are alike share a prospect.

    `max_drop` is the gate's; without one, the proof is that of 5 points.
    """
    alike = grouped((classes, judge) for judge, classes in suites.items())
    goal = max_drop or GOAL
    outlooks = []
    for classes, judges in alike.items():
        of_classes = []
        for kind, suite in classes:
            drops = tuple(visible_drop(suite, correlation) for correlation in CORRELATIONS)
            of_classes.append(ClassProspect(kind, suite, drops))
        runs = runs_to_prove((suite for _, suite in classes), goal)
        outlooks.append(Prospect(tuple(judges), tuple(of_classes), goal, runs))
    return outlooks


def runs_to_prove(classes: Iterable[ForeseenSuite], max_drop: float) -> int | None:
    """How many runs would decide `gate.proof` if nothing changed: the fewest, with sizes as in
    these, of which an unchanged judge passes in 80% of sessions.

    `classes` are those that are proven each by itself, the violated and the satisfied cases. None
    where there is nothing, and where it takes more than 100,000 runs, as it does for a `max_drop`
    of 0. `intervals.unseen_drop` is the bound that has to be below `max_drop`.
    """
    suites = [suite for suite in classes if suite.sizes]
    if not suites or not max_drop:
        return None
    power = POWER ** (1 / len(suites))

    def enough(runs: int) -> bool:
        return all(_proves(suite.times(runs), max_drop, power) for suite in suites)

    most = _FEWEST_RUNS
    while not enough(most):
        if most == MOST_RUNS:
            return None
        most = min(2 * most, MOST_RUNS)
    low = most // 2
    while most - low > 1:
        middle = (low + most) // 2
        low, most = (low, middle) if enough(middle) else (middle, most)
    return most


def _proves(suite: ForeseenSuite, max_drop: float, power: float) -> bool:
    """Whether a judge whose verdicts flip by themselves alone passes so often."""
    runs, cases = len(suite.sizes), suite.cases
    if runs < _FEWEST_RUNS:
        return False
    flipping = 2 * suite.flip * (1 - suite.flip) / suite.repeats
    unseen = max_drop * (1 - max_drop) * sum(size * size for size in suite.sizes)
    error = math.sqrt((cases * flipping + unseen) * runs / (runs - 1)) / cases
    by_chance = normal_quantile(power) * math.sqrt(flipping / cases)
    return t_quantile(LEVEL, runs - 1) * error + by_chance < max_drop


@lru_cache(maxsize=64)
def visible_drop(suite: ForeseenSuite, correlation: float = CORRELATION) -> float | None:
    """The smallest drop that the gate finds in 80% of sessions of this suite, or None.

    What a drop breaks comes in runs with this correlation.
    """
    high = 1 - 2 * suite.flip
    if not suite.sizes or high <= 0 or power(suite, high, correlation) < POWER:
        return None
    low = high / 2
    while power(suite, low, correlation) >= POWER:
        low, high = low / 2, low
    while high / low > 1 + _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if power(suite, middle, correlation) >= POWER else (middle, high)
    return high


def power(suite: ForeseenSuite, drop: float, correlation: float = CORRELATION) -> float:
    """The share of simulated sessions in which the exact test inside of cases finds a drop.

    A broken case is wrong where it was right, and the reverse; each verdict flips by itself. The
    cases of a class are told apart by how many of their verdicts are wrong, before and now.
    """
    import numpy as np

    # Of all of numpy's generators this one gives the same numbers with every version.
    rng = np.random.RandomState(0)
    repeats = suite.repeats
    broken = _broken(suite, drop / (1 - 2 * suite.flip), correlation, rng)
    wrong = np.array(binomial(repeats, suite.flip))
    steady, turned = np.outer(wrong, wrong).ravel(), np.outer(wrong, wrong[::-1]).ravel()
    cells = np.array(
        [
            rng.multinomial(suite.cases - number, steady) + rng.multinomial(number, turned)
            for number in broken
        ]
    )
    before, now = np.divmod(np.arange((repeats + 1) ** 2), repeats + 1)
    rises = cells @ (now - before)
    together = before + now
    totals = np.stack(
        [cells[:, together == number].sum(axis=1) for number in range(2 * repeats + 1)]
    )
    return float((_exchange_p(rises, totals, repeats) <= _FINDING_LEVEL).mean())


def _broken(
    suite: ForeseenSuite, share: float, correlation: float, rng: np.random.RandomState
) -> npt.NDArray[np.int64]:
    """How many cases break in each session: beta-binomial in each run, so that they correlate."""
    import numpy as np

    shape = (_SESSIONS, len(suite.sizes))
    chance = np.full(shape, min(1.0, share))
    if correlation and share < 1:
        both = (1 - correlation) / correlation
        # A shape of next to 0 gives no number.
        chance = rng.beta(max(share * both, 1e-6), (1 - share) * both, shape)
    broken: npt.NDArray[np.int64] = rng.binomial(np.array(suite.sizes), chance).sum(axis=1)
    return broken


def _exchange_p(rises: Numbers, totals: Numbers, repeats: int) -> Numbers:
    """The probability of a rise of wrong verdicts as large, or larger, if they were exchanged
    inside of cases, for each session.

    `totals` counts, for each number of wrong verdicts of a case before and now, the cases of each
    session. The distribution of the sum is the product of the cases' Fourier transforms.
    """
    import numpy as np

    wrong_now = np.arange(repeats + 1)
    ways = [math.comb(repeats, number) for number in wrong_now]
    dealt = []
    for total in range(2 * repeats + 1):
        shares = np.zeros(repeats + 1)
        for number in range(max(0, total - repeats), min(repeats, total) + 1):
            shares[number] = ways[number] * ways[total - number] / math.comb(2 * repeats, total)
        dealt.append(shares)
    spreads = [shares @ (2 * wrong_now - total) ** 2 for total, shares in enumerate(dealt)]
    widest = math.sqrt((np.array(spreads) @ totals).max())
    length = 2 ** math.ceil(math.log2(max(16, 2 * _FAR * widest)))
    turns = 2 * np.pi * np.arange(length // 2 + 1) / length
    # The sum of verdicts that are exchanged is as likely as its reverse: a real transform.
    transforms = np.stack(
        [
            np.cos(np.outer(turns, 2 * wrong_now - total)) @ shares
            for total, shares in enumerate(dealt)
        ]
    )
    logarithms = np.log(np.maximum(np.abs(transforms), _NEGLIGIBLE))
    negative = totals.T @ (transforms < 0)
    product = np.exp(totals.T @ logarithms) * (1 - 2 * (negative % 2))
    distribution = np.fft.irfft(product, length, axis=1)[:, : length // 2]
    tails = np.cumsum(distribution[:, ::-1], axis=1)[:, ::-1]
    inside = np.clip(rises, 0, length // 2 - 1)
    p_values = np.where(rises < length // 2, tails[np.arange(len(rises)), inside], 0.0)
    one_sided: Numbers = np.where(rises > 0, p_values, 1.0)
    return one_sided

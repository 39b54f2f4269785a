"""Whether a change is more than chance, and whether a judge has become worse by no more than is
allowed: tests over clusters, Holm's adjustment, PASS, FAIL or INCONCLUSIVE.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from operator import add
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.stats.formulas import Estimate, normal_quantile, t_quantile
from pytest_jrh.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_EXACT_CLUSTERS = 20
_DRAWS = 100_000
# Additions to count all patterns, up to which they are counted: less than a second.
_MOST_ADDITIONS = 20_000_000
# Counts double with each cluster, and a float holds up to 2 ** 1023.
_RESCALED_EVERY = 500
_SIGNS_AT_ONCE = 8


def sign_flip_p(differences: Iterable[Fraction | float], seed: int = 0) -> float:
    """Two-sided mid-p value of a sum of differences, were each as likely the other way round.

    One difference for each cluster: what is exchangeable is a cluster as a whole, so that its cases
    may go together as they like (Fisher 1935, The Design of Experiments, 21; Winkler et al. 2014,
    NeuroImage 92:381-397). All patterns of signs are counted where that is possible, which it is
    for 20 clusters always and for hundreds where the differences have few values; else 100,000 are
    drawn, with `seed`. With one case a cluster it is McNemar's exact mid-p (Fagerland, Lydersen and
    Laake 2013, BMC Med Res Methodol 13:91). 1 where nothing changed.
    """
    fractions = [Fraction(difference) for difference in differences if difference]
    denominator = math.lcm(*(fraction.denominator for fraction in fractions))
    signed = [int(fraction * denominator) for fraction in fractions]
    if not signed:
        return 1.0
    common = math.gcd(*signed)
    signed = [difference // common for difference in signed]
    sizes, total = sorted(map(abs, signed)), abs(sum(signed))
    if sum(sizes) * len(sizes) <= _MOST_ADDITIONS:
        larger, equal = _counted(sizes, total)
    elif len(sizes) <= _EXACT_CLUSTERS:
        larger, equal = _enumerated(sizes, total)
    else:
        larger, equal = _drawn(sizes, total, seed)
    return larger + equal / 2


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values of several decisions, in their order, so that all hold together at one level.

    Holm 1979, Scand J Stat 6:65-70.
    """
    order = sorted(range(len(p_values)), key=lambda number: p_values[number])
    adjusted, reached = [0.0] * len(p_values), 0.0
    for rank, number in enumerate(order):
        reached = min(1.0, max(reached, (len(order) - rank) * p_values[number]))
        adjusted[number] = reached
    return adjusted


def _counted(sizes: Sequence[int], total: int) -> tuple[float, float]:
    """Count the sums of all patterns of signs: the shares larger than a total, and equal to it.

    Cluster by cluster, for every sum that can come of the positive differences.
    """
    table, halvings = [1.0], 0
    for number, size in enumerate(sizes, 1):
        nothing = [0.0] * size
        table = list(map(add, table + nothing, nothing + table))
        if number % _RESCALED_EVERY == 0:
            table, halvings = [count / 2**_RESCALED_EVERY for count in table], number
    patterns = 2.0 ** (len(sizes) - halvings)
    # The sum of all signs is twice that of the positive ones less the total, and symmetric.
    index = (sum(sizes) - total) // 2
    both = 2 if total else 1
    return 2 * math.fsum(table[:index]) / patterns, both * table[index] / patterns


def _enumerated(sizes: Sequence[int], total: int) -> tuple[float, float]:
    """Count as `_counted` does, where there are few clusters of whatever size."""
    sums = Counter({0: 1})
    for size in sizes:
        following = Counter[int]()
        for value, count in sums.items():
            following[value + size] += count
            following[value - size] += count
        sums = following
    return _shares(sums, total)


def _drawn(sizes: Sequence[int], total: int, seed: int) -> tuple[float, float]:
    """Estimate the shares from random patterns; eight signs are one byte, and one sum looked up."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    sums = [0] * _DRAWS
    for start in range(0, len(sizes), _SIGNS_AT_ONCE):
        table = [0]
        for size in sizes[start : start + _SIGNS_AT_ONCE]:
            table = [value + signed for signed in (size, -size) for value in table]
        bytes_of_signs = rng.randbytes(_DRAWS)
        table *= 256 // len(table)
        sums = list(map(add, sums, map(table.__getitem__, bytes_of_signs)))
    # The pattern that came is one of those that may come (Phipson and Smyth 2010, 9:39).
    sums.append(total)
    return _shares(Counter(sums), total)


def _shares(sums: Counter[int], total: int) -> tuple[float, float]:
    larger = sum(count for value, count in sums.items() if abs(value) > total)
    equal = sums[total] + (sums[-total] if total else 0)
    return larger / sums.total(), equal / sums.total()


DropVerdict: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE"]
POWER = 0.8
_FEWEST_CLUSTERS = 2
# So many cases more than there are, in one cluster of the usual size, are taken to have changed: a
# few clusters in which nothing did would show no variation at all, and any limit would be met.
UNSEEN_CASES = 2
MOST_REPEATS = 9
_MOST_RUNS = 1_000_000


class Change(NamedTuple):
    """One cluster: what its `n` compared cases have lost in correctness, taken together.

    A case loses 1 where it was right and is wrong; with repeats, the difference of the shares of
    right answers. A gain is a negative loss.
    """

    loss: Fraction | float
    n: int


@dataclass(frozen=True, slots=True)
class DropDecision:
    """What the drop of the mean correctness comes to, its bounds each at the level by itself.

    `runs` (clusters of the size of these) and `repeats` would each decide an INCONCLUSIVE one with
    a power of 80%, unless the true drop is close to the limit; None where no such number is known.
    `clusters` is how many there are.
    """

    verdict: DropVerdict
    drop: Estimate
    runs: int | None = None
    repeats: int | None = None
    clusters: int = 0


class _Spread(NamedTuple):
    """How losses vary: variance and cases per cluster, and mean size of a case's cluster."""

    variance: float
    cases: float
    weighted: float

    def error(self, runs: int) -> float:
        """The standard error of the drop over so many clusters."""
        unseen = UNSEEN_CASES * self.weighted
        return math.sqrt(runs * self.variance + unseen) / (runs * self.cases)


def decide_drop(
    changes: Iterable[Change],
    max_drop: float,
    level: float = LEVEL,
    flicker: float | None = None,
    repeats: int = 1,
) -> DropDecision:
    """Decide about a drop of accuracy as a test of non-inferiority.

    PASS where the upper bound is below `max_drop`; FAIL where the lower bound is above 0 and the
    estimate at or above `max_drop`; else INCONCLUSIVE (Piaggio et al. 2012, JAMA 308:2594-2604).
    Each bound is Student's t over clusters, one-sided at `level`, with no less variance than a
    drop of `max_drop` has. `flicker`, as it was with `repeats` in both sessions, tells how
    far more repeats would help.
    """
    filled = [change for change in changes if change.n]
    runs, n = len(filled), sum(change.n for change in filled)
    if runs < _FEWEST_CLUSTERS:
        why = "all cases come from one source run" if filled else "no case could be compared"
        return DropDecision("INCONCLUSIVE", Estimate(why=why), clusters=runs)
    drop = math.fsum(change.loss for change in filled) / n
    squares = math.fsum((float(change.loss) - drop * change.n) ** 2 for change in filled)
    variance = squares / (runs - 1)
    weighted = sum(change.n**2 for change in filled) / n
    floor = max_drop * (1 - max_drop) * n / runs
    spread = _Spread(max(variance, floor), n / runs, weighted)
    half = t_quantile(level, runs - 1) * spread.error(runs)
    estimate = Estimate(drop, drop - half, drop + half).within(-1.0, 1.0)
    if drop + half < max_drop:
        return DropDecision("PASS", estimate, clusters=runs)
    if drop - half > 0 and drop >= max_drop:
        return DropDecision("FAIL", estimate, clusters=runs)
    goal = _Goal.of(spread, drop, max_drop, level)
    if goal.decides(runs):
        goal = goal._replace(distance=abs(max_drop - drop))
    more = None if flicker is None else _repeats_that_decide(goal, variance, flicker, repeats, runs)
    enough = _runs_that_decide(goal, runs)
    return DropDecision("INCONCLUSIVE", estimate, enough, more, clusters=runs)


class Judged(NamedTuple):
    """What `decide_drop` is given of one judge of several."""

    changes: Sequence[Change]
    flicker: float | None = None
    repeats: int = 1


def decide_drops(judges: Sequence[Judged], max_drop: float) -> list[DropDecision]:
    """Decide about the drop of each judge of a panel, in their order.

    Each PASS, and each FAIL, holds at 95% for all judges together (Holm 1979, Scand J Stat 6:65-70,
    once for either). With one judge it is `decide_drop`.
    """

    def decide(judge: int, level: float) -> DropDecision:
        changes, flicker, repeats = judges[judge]
        return decide_drop(changes, max_drop, level, flicker, repeats)

    passed, strict = _stepped(decide, len(judges), "PASS")
    failed, stricter = _stepped(decide, len(judges), "FAIL")
    settled = passed | failed
    # What is neither at its last level is neither at a stricter one.
    level = max(strict, stricter)
    return [settled.get(judge) or decide(judge, level) for judge in range(len(judges))]


def _stepped(
    decide: Callable[[int, float], DropDecision], judges: int, verdict: DropVerdict
) -> tuple[dict[int, DropDecision], float]:
    """Decide again, less strictly, about the judges that are left, until a round has no verdict of
    this kind: the decisions of this kind, and the level of the last round.
    """
    settled: dict[int, DropDecision] = {}
    level = LEVEL
    while len(settled) < judges:
        left = [judge for judge in range(judges) if judge not in settled]
        level = 1 - (1 - LEVEL) / len(left)
        decisions = {judge: decide(judge, level) for judge in left}
        reached = {
            judge: decision for judge, decision in decisions.items() if decision.verdict == verdict
        }
        if not reached:
            break
        settled |= reached
    return settled, level


class _Goal(NamedTuple):
    """A decision at 80% power, where the true drop is at `distance` from the limit."""

    spread: _Spread
    drop: float
    max_drop: float
    level: float
    distance: float

    @classmethod
    def of(cls, spread: _Spread, drop: float, max_drop: float, level: float) -> _Goal:
        """Take the drop seen for the true one, but half of the limit away from the limit."""
        return cls(spread, drop, max_drop, level, max(abs(max_drop - drop), max_drop / 2))

    def decides(self, runs: int) -> bool:
        """Whether so many clusters give PASS or FAIL."""
        error, wanted = self.spread.error(runs), normal_quantile(POWER)
        quantile = t_quantile(self.level, runs - 1)
        if self.drop < self.max_drop:
            return (quantile + wanted) * error <= self.distance
        above_zero = (quantile + wanted) * error <= self.max_drop + self.distance
        return above_zero and wanted * error <= self.distance


def _runs_that_decide(goal: _Goal, runs: int) -> int | None:
    """The fewest clusters, more than there are, that reach the goal."""
    low, high = runs, runs + 1
    while not goal.decides(high):
        low, high = high, 2 * high
        if low > _MOST_RUNS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if goal.decides(middle) else (middle, high)
    return high


def _repeats_that_decide(
    goal: _Goal, variance: float, flicker: float, repeats: int, runs: int
) -> int | None:
    """The fewest repeats, an odd number, with which the clusters there are reach the goal."""
    cases, floor = goal.spread.cases, goal.max_drop * (1 - goal.max_drop) * goal.spread.cases
    unflipped = variance - cases * flicker / repeats
    for odd in range(repeats + 1 + repeats % 2, MOST_REPEATS + 1, 2):
        steadier = max(unflipped + cases * flicker / odd, floor)
        if goal._replace(spread=goal.spread._replace(variance=steadier)).decides(runs):
            return odd
    return None

"""Whether a judge has become worse by no more than is allowed: PASS, FAIL or INCONCLUSIVE."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.stats.inference.intervals import LEVEL
from pytest_jrh.stats.inference.quantiles import normal_quantile, t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

DropVerdict: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE"]
POWER = 0.8
_FEWEST_CLUSTERS = 2
# So many cases more than there are, in one cluster of the usual size, are taken to have changed: a
# few clusters in which nothing did would show no variation at all, and any limit would be met.
_UNSEEN = 2
_MOST_REPEATS = 9
_MOST_RUNS = 1_000_000


class Change(NamedTuple):
    """One cluster: what its `n` compared cases have lost in correctness, taken together.

    A case loses 1 where it was right and is wrong; with repeats, the difference of the shares of
    right answers. A gain is a negative loss.
    """

    loss: float
    n: int


@dataclass(frozen=True, slots=True)
class DropDecision:
    """What the drop of the mean correctness comes to, and its bounds, each at the level by itself.

    `runs` (clusters of the size of these) and `repeats` would each decide an INCONCLUSIVE one with
    a power of 80%, unless the true drop is close to the limit; None where no such number is known.
    `reason` says why there are no bounds. `clusters` is how many there are.
    """

    verdict: DropVerdict
    drop: float | None = None
    lower: float | None = None
    upper: float | None = None
    runs: int | None = None
    repeats: int | None = None
    reason: str | None = None
    clusters: int = 0


class _Spread(NamedTuple):
    """How losses vary: variance and cases per cluster, and mean size of a case's cluster."""

    variance: float
    cases: float
    weighted: float

    @classmethod
    def over(
        cls, variance: float, runs: int, n: float, weighted: float, max_drop: float
    ) -> _Spread:
        """What runs show, but no less than a drop of `max_drop` has."""
        floor = max_drop * (1 - max_drop) * n / runs
        return cls(max(variance, floor), n / runs, weighted)

    def error(self, runs: int) -> float:
        """The standard error of the drop over so many clusters."""
        unseen = _UNSEEN * self.weighted
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
    given = [change for change in changes if change.n]
    if len(given) < _FEWEST_CLUSTERS:
        reason = "all cases come from one source run" if given else "no case could be compared"
        return DropDecision("INCONCLUSIVE", reason=reason, clusters=len(given))
    runs, n = len(given), sum(change.n for change in given)
    drop = math.fsum(change.loss for change in given) / n
    squares = math.fsum((change.loss - drop * change.n) ** 2 for change in given)
    variance = squares / (runs - 1)
    weighted = sum(each.n**2 for each in given) / n
    spread = _Spread.over(variance, runs, n, weighted, max_drop)
    half = half_width(variance, runs, n, weighted, max_drop, level)
    lower, upper = max(-1.0, drop - half), min(1.0, drop + half)
    if upper < max_drop:
        return DropDecision("PASS", drop, lower, upper, clusters=runs)
    if lower > 0 and drop >= max_drop:
        return DropDecision("FAIL", drop, lower, upper, clusters=runs)
    goal = _Goal.of(spread, drop, max_drop, level)
    if goal.decides(runs):
        goal = goal._replace(distance=abs(max_drop - drop))
    more = None if flicker is None else _repeats_that_decide(goal, variance, flicker, repeats, runs)
    enough = _runs_that_decide(goal, runs)
    return DropDecision("INCONCLUSIVE", drop, lower, upper, enough, more, clusters=runs)


class Judged(NamedTuple):
    """What `decide_drop` is given of one judge of several."""

    changes: Sequence[Change]
    flicker: float | None = None
    repeats: int = 1


def decide_drops(judges: Sequence[Judged], max_drop: float) -> list[DropDecision]:
    """Decide about the drop of each judge of a panel, in their order (rule M4).

    Each PASS, and each FAIL, holds at 95% for all judges together (Holm 1979, Scand J Stat 6:65-70,
    once for either). With one judge it is `decide_drop`.
    """

    def decide(place: int, level: float) -> DropDecision:
        changes, flicker, repeats = judges[place]
        return decide_drop(changes, max_drop, level, flicker, repeats)

    passed, strict = _stepped(decide, len(judges), "PASS")
    failed, stricter = _stepped(decide, len(judges), "FAIL")
    settled = passed | failed
    # What is neither at its last level is neither at a stricter one.
    level = max(strict, stricter)
    return [settled.get(place) or decide(place, level) for place in range(len(judges))]


def _stepped(
    decide: Callable[[int, float], DropDecision], judges: int, verdict: DropVerdict
) -> tuple[dict[int, DropDecision], float]:
    """Decide again, less strictly, about the judges that are left, until a round has no verdict of
    this kind: the decisions of this kind, and the level of the last round.
    """
    settled: dict[int, DropDecision] = {}
    level = LEVEL
    while len(settled) < judges:
        left = [place for place in range(judges) if place not in settled]
        level = 1 - (1 - LEVEL) / len(left)
        found = {place: decide(place, level) for place in left}
        reached = {place: each for place, each in found.items() if each.verdict == verdict}
        if not reached:
            break
        settled |= reached
    return settled, level


def half_width(
    variance: float, runs: int, n: float, weighted: float, max_drop: float, level: float = LEVEL
) -> float:
    """How far the bounds of a drop lie from it, where losses vary so much over so many runs.

    `n` are the cases of all runs, and `weighted` is the mean size of a case's run.
    """
    spread = _Spread.over(variance, runs, n, weighted, max_drop)
    return t_quantile(level, runs - 1) * spread.error(runs)


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
        seen = (quantile + wanted) * error <= self.max_drop + self.distance
        return seen and wanted * error <= self.distance


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
    for odd in range(repeats + 1 + repeats % 2, _MOST_REPEATS + 1, 2):
        steadier = max(unflipped + cases * flicker / odd, floor)
        if goal._replace(spread=goal.spread._replace(variance=steadier)).decides(runs):
            return odd
    return None

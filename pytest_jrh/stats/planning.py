"""What a suite can show when it is compared with a baseline (rule M6).

What a suite can see: the drop that it finds at 80% power, and the runs that a drop takes.

Sessions are simulated over the suite's own runs, in a time that is bounded: of all losses only the
largest, about 24 a session, are drawn one by one. The rest are many and small beside them, so that
their sum is taken for normal.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pytest_jrh.stats.comparison import (
    POWER,
    Moments,
    PlannedSuite,
    RunLosses,
    groups_of,
    losses_of,
    moments_of,
)
from pytest_jrh.stats.formulas import SIGNIFICANCE, normal_cdf, normal_quantile
from pytest_jrh.stats.intervals import LEVEL, RepeatedCase, estimate_flicker, flip_probability

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence


# Where the flicker is not known, what is said for verdicts of which none flips, and for 5%.
SUPPOSED_FLIPS = (0.0, 0.05)
GOAL = 0.05
MORE_REPEATS = 3


class PlannedCase(NamedTuple):
    """A case that a judge has judged or is to judge; `scores` are those known of its repeats."""

    judge: str
    cluster: Hashable
    scores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeseenSuite:
    """The cases that a judge compares with a baseline, by run, and how it is asked.

    `sizes` are the cases of the runs, in ascending order, and `repeats` those of both sessions.
    `flicker` is None where no case was judged more than once.
    """

    sizes: tuple[int, ...]
    repeats: int = 1
    flicker: float | None = None

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return sum(self.sizes)


@dataclass(frozen=True, slots=True)
class Passing:
    """The share of sessions in which a judge that has not changed passes `gate.max_drop`.

    `runs` like these, or `repeats`, would raise it to 80%; None where it is there, or no number
    does.
    """

    share: float
    runs: int | None
    repeats: int | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a suite shows in 80% of sessions, where the judge's verdicts flicker so much.

    `visible` is the smallest drop that is found, None where none is; `runs` like these find the
    goal, and `repeated_runs` do with three repeats, None where there are so many already or nothing
    flickers. `passing` is None without `gate.max_drop`.
    """

    flicker: float
    visible: float | None
    runs: int | None
    repeated_runs: int | None
    passing: Passing | None


@dataclass(frozen=True, slots=True)
class Prospect:
    """What one judge of a suite, or several that are alike, can be found to have lost.

    `goal` is the drop that is asked for: the gate's, else 5 points. There is one outlook where the
    flicker is known, else one for each of `SUPPOSED_FLIPS`.
    """

    judges: tuple[str, ...]
    suite: ForeseenSuite
    goal: float
    max_drop: float | None
    outlooks: tuple[Outlook, ...]


def foreseen(
    cases: Iterable[PlannedCase], repeats: Callable[[str], int]
) -> dict[str, ForeseenSuite]:
    """Count the cases of each judge by run, and estimate its flicker; keys are the judges.

    `repeats` gives how often a judge judges each case.
    """
    by_judge: dict[str, list[PlannedCase]] = {}
    for case in cases:
        by_judge.setdefault(case.judge, []).append(case)
    return {
        judge: ForeseenSuite(
            tuple(sorted(Counter(case.cluster for case in own).values())),
            repeats(judge),
            estimate_flicker(RepeatedCase(case.cluster, case.scores) for case in own).value,
        )
        for judge, own in by_judge.items()
    }


def prospects(suites: Mapping[str, ForeseenSuite], max_drop: float | None = None) -> list[Prospect]:
    """Foresee what each judge's comparison can show; judges that are alike share a prospect.

    `max_drop` is the gate's. As the gate's bounds do, the share that passes allows for several
    judges: each is held to the strictest level of Holm's adjustment.
    """
    alike: dict[ForeseenSuite, list[str]] = {}
    for judge, suite in suites.items():
        alike.setdefault(suite, []).append(judge)
    goal = max_drop or GOAL
    level = 1 - (1 - LEVEL) / max(1, len(suites))
    return [
        Prospect(tuple(judges), suite, goal, max_drop, _outlooks(suite, goal, max_drop, level))
        for suite, judges in alike.items()
    ]


@lru_cache(maxsize=64)
def _outlooks(
    suite: ForeseenSuite, goal: float, max_drop: float | None, level: float
) -> tuple[Outlook, ...]:
    # Each report asks, and a session without a comparison never does.
    from pytest_jrh.stats.comparison import PlannedSuite

    flickers = [suite.flicker]
    if suite.flicker is None:
        flickers = [2 * flip * (1 - flip) for flip in SUPPOSED_FLIPS]
    outlooks = []
    for flickering in flickers:
        planned = PlannedSuite(suite.sizes, flickering or 0.0, suite.repeats)
        repeated = None
        if flickering and suite.repeats < MORE_REPEATS:
            repeated = runs_for(goal, planned._replace(repeats=MORE_REPEATS))
        outlooks.append(
            Outlook(
                flicker=planned.flicker,
                visible=visible_drop(planned),
                runs=runs_for(goal, planned),
                repeated_runs=repeated,
                passing=_passing(planned, max_drop, level) if max_drop else None,
            )
        )
    return tuple(outlooks)


def _passing(planned: PlannedSuite, max_drop: float, level: float) -> Passing:
    from pytest_jrh.stats.comparison import POWER, pass_probability, repeats_to_pass, runs_to_pass

    share = pass_probability(planned, max_drop, level)
    if share >= POWER:
        return Passing(share, None, None)
    more = repeats_to_pass(planned, max_drop, level) if planned.flicker else None
    return Passing(share, runs_to_pass(planned, max_drop, level), more)


Groups: TypeAlias = list[tuple[int, RunLosses]]
"""How many runs there are of each size, and what one of them may lose."""

MOST_RUNS = 100_000
_SESSIONS = 1_200
_DRAWN_LOSSES = 24
# Runs of one size that are so few, and lose much so often, are drawn each by itself.
_FEW, _OFTEN = 4, 0.2
_CRITICAL = normal_quantile(1 - SIGNIFICANCE / 2)
# A sum of random signs is further out than this, in deviations, in less than 5% of patterns
# (Hoeffding 1963, JASA 58:13-30), and further than one deviation in more.
_SURELY = 2.72
# Where fourth powers are such a part of the squared sum of squares, few losses outweigh the rest:
# the patterns of so many signs are counted then.
_UNEVEN, _COUNTED = 0.1, 6
# The search for 80% power, in the logarithm of a drop or number of runs: how close to look, and
# what the slope of power's normal quantile is taken to be, at first, at least and at most.
_SMALLEST_DROP, _NEARLY, _TRIES, _CLOSE, _ROUGHLY, _EXTREME = 1e-4, 0.9, 12, 0.03, 0.05, 1e-4
_USUAL_SLOPE, _FLATTEST, _STEEPEST, _LONGEST_STEP = 2.0, 0.5, 10.0, 0.5


def power(suite: PlannedSuite, drop: float, seed: int = 0) -> float:
    """The probability that a session of this suite finds a drop of accuracy of this size.

    Found is a two-sided sign-flip p under 5%. Verdicts flip by themselves as the flicker says, and
    what the drop breaks comes in runs with a correlation of 0.3.
    """
    groups = _groups(suite, drop)
    limit = _limit(groups)
    small = _Small.of(groups, limit)
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    sessions = _drawn(groups, limit, rng)
    chances = list(_normal_values())
    rng.shuffle(chances)
    return math.fsum(map(small.found, sessions, chances)) / _SESSIONS


def visible_drop(suite: PlannedSuite, seed: int = 0) -> float | None:
    """The smallest drop of accuracy that this suite finds with a power of 80%, or None."""
    most = 1 - 2 * flip_probability(suite.flicker)
    if not suite.sizes or most <= 0:
        return None
    groups = groups_of(suite.sizes)
    drop = _reaching(
        lambda drop: power(suite, drop, seed),
        lambda drop: _rough_power(groups, suite, drop),
        _SMALLEST_DROP,
        most,
    )
    return drop if drop < _NEARLY * most or power(suite, most, seed) >= POWER else None


def runs_for(drop: float, suite: PlannedSuite, seed: int = 0) -> int | None:
    """The fewest runs, with sizes as in this suite, that find a drop with a power of 80%.

    None where that takes more than 100,000.
    """
    if not suite.sizes or drop > 1 - 2 * flip_probability(suite.flicker):
        return None
    # In all these runs less than one case would break: nothing to find, or to calculate with.
    if drop * MOST_RUNS * max(suite.sizes) < 1:
        return None

    groups = groups_of(suite.sizes)

    def rough(runs: float) -> float:
        more = {size: number * runs / len(suite.sizes) for size, number in groups.items()}
        return _rough_power(more, suite, drop)

    if rough(MOST_RUNS) < POWER:
        return None
    runs = _reaching(
        lambda runs: power(suite.times(max(1, round(runs))), drop, seed), rough, 1, MOST_RUNS
    )
    return math.ceil(runs)


def _reaching(
    power_of: Callable[[float], float], rough: Callable[[float], float], low: float, high: float
) -> float:
    """The place between two where power reaches 80%; `rough` is quick, and says where to look."""
    below, above = math.log(low), math.log(high)
    place = _bisected(rough, below, above)
    slope, before = _USUAL_SLOPE, None
    for _ in range(_TRIES):
        found = _score(power_of(math.exp(place)))
        if before is not None and place != before[0]:
            slope = (found - before[1]) / (place - before[0])
            slope = min(_STEEPEST, max(_FLATTEST, slope))
        before = place, found
        below, above = (below, place) if found >= 0 else (place, above)
        place -= min(_LONGEST_STEP, max(-_LONGEST_STEP, found / slope))
        if not below <= place <= above:
            place = (below + above) / 2
        if abs(found) < _CLOSE or above - below < _CLOSE:
            break
    return math.exp(place)


def _bisected(rough: Callable[[float], float], low: float, high: float) -> float:
    while high - low > _ROUGHLY:
        middle = (low + high) / 2
        low, high = (low, middle) if rough(math.exp(middle)) >= POWER else (middle, high)
    return high


def _score(share: float) -> float:
    return normal_quantile(min(1 - _EXTREME, max(_EXTREME, share))) - normal_quantile(POWER)


def _rough_power(groups: Mapping[int, float], suite: PlannedSuite, drop: float) -> float:
    """The power of so many runs of each size, as if all losses were small."""
    flip = flip_probability(suite.flicker)
    share = _broken(drop, flip)
    return _Small.sum(
        (number, moments_of(size, share, flip, suite.repeats)) for size, number in groups.items()
    ).found([])


def _broken(drop: float, flip: float) -> float:
    """The share of cases that break in such a drop: where verdicts flip, breaking shows less."""
    return min(1.0, drop / (1 - 2 * flip)) if drop else 0.0


def _groups(suite: PlannedSuite, drop: float) -> Groups:
    flip = flip_probability(suite.flicker)
    share = _broken(drop, flip)
    return [
        (number, losses_of(size, share, flip, suite.repeats))
        for size, number in groups_of(suite.sizes).items()
    ]


def _limit(groups: Groups) -> int:
    """The size of a loss over which about 24 or fewer are expected in a session."""
    expected: dict[int, float] = {}
    for number, losses in groups:
        for loss, p in zip(*losses, strict=True):
            expected[abs(loss)] = expected.get(abs(loss), 0.0) + number * p
    larger = 0.0
    for loss in sorted(expected, reverse=True):
        larger += expected[loss]
        if larger > _DRAWN_LOSSES:
            return loss
    return 0


def _drawn(groups: Groups, limit: int, rng: random.Random) -> list[list[int]]:
    """The losses over the limit, of each simulated session."""
    sessions: list[list[int]] = [[] for _ in range(_SESSIONS)]
    pool: dict[int, float] = {}
    mean = variance = 0.0
    for number, losses in groups:
        large = {loss: p for loss, p in zip(*losses, strict=True) if abs(loss) > limit}
        often = math.fsum(large.values())
        if number <= _FEW and often > _OFTEN:
            for _ in range(number):
                _draw_one(sessions, large, rng)
            continue
        mean, variance = mean + number * often, variance + number * often * (1 - often)
        for loss, p in large.items():
            pool[loss] = pool.get(loss, 0.0) + number * p
    if pool:
        _draw_pool(sessions, pool, _counts(mean, variance), rng)
    return sessions


def _draw_one(sessions: list[list[int]], large: dict[int, float], rng: random.Random) -> None:
    """Add the loss of one run to each session, where it is large."""
    values, shares = [0, *large], [max(0.0, 1 - math.fsum(large.values())), *large.values()]
    for session, loss in zip(sessions, rng.choices(values, shares, k=_SESSIONS), strict=True):
        if loss:
            session.append(loss)


def _draw_pool(
    sessions: list[list[int]], pool: dict[int, float], counts: list[int], rng: random.Random
) -> None:
    """Add to each session as many losses of many runs as one of the counts says."""
    rng.shuffle(counts)
    drawn = rng.choices(list(pool), list(pool.values()), k=sum(counts))
    start = 0
    for session, count in zip(sessions, counts, strict=True):
        session.extend(drawn[start : start + count])
        start += count


def _counts(mean: float, variance: float) -> list[int]:
    """How many losses there are in each session: a binomial number, by its quantiles."""
    share = 1 - variance / mean
    trials = max(1, round(mean / share)) if share > _EXTREME else round(mean / _EXTREME) + 1
    share = mean / trials
    if share >= 1:
        return [trials] * _SESSIONS
    p = math.exp(trials * math.log1p(-share))
    up_to, number, counts = p, 0, []
    for place in range(_SESSIONS):
        while up_to < (place + 0.5) / _SESSIONS and number < trials:
            p *= (trials - number) / (number + 1) * share / (1 - share)
            number += 1
            up_to += p
        counts.append(number)
    return counts


@lru_cache(maxsize=1)
def _normal_values() -> tuple[float, ...]:
    """A standard normal variable in each session, by its quantiles."""
    return tuple(normal_quantile((place + 0.5) / _SESSIONS) for place in range(_SESSIONS))


class _Small(NamedTuple):
    """Of all losses up to a limit: the means of their sum, of their squares' and of their fourth
    powers', and how the first two vary, with each other too.
    """

    total: float
    squares: float
    fourths: float
    variance: float
    both: float
    squares_variance: float

    @classmethod
    def of(cls, groups: Groups, limit: int) -> _Small:
        """Those of the runs' losses that are up to the limit."""
        return cls.sum((number, _moments_up_to(limit, losses)) for number, losses in groups)

    @classmethod
    def sum(cls, groups: Iterable[tuple[float, Moments]]) -> _Small:
        """The losses of so many runs with these moments each."""
        sums = [0.0] * 6
        for number, (one, two, three, four) in groups:
            added = (one, two, four, two - one * one, three - one * two, four - two * two)
            sums = [total + number * each for total, each in zip(sums, added, strict=True)]
        return cls(*sums)

    def found(self, losses: Sequence[int], chance: float = 0.0) -> float:
        """The probability that a session with these large losses finds the drop.

        `chance`, a standard normal variable, stands for the small losses where the large ones are
        too uneven for a formula.
        """
        total = sum(losses) + self.total
        squares = sum([loss * loss for loss in losses]) + self.squares
        fourths = sum([loss**4 for loss in losses]) + self.fourths
        if not self.squares:
            return float(_is_significant(losses, total, squares, fourths))
        # The root of the squares is a line close to its mean, so that what decides is a sum.
        critical = _critical(fourths / squares**2) * math.sqrt(squares)
        slope = critical / (2 * squares)
        variance = self.variance - 2 * slope * self.both + slope**2 * self.squares_variance
        spread = math.sqrt(max(0.0, variance))
        if losses and fourths > _UNEVEN * squares**2:
            return float(_is_significant(losses, total + chance * spread, squares, fourths))
        distance = total - critical
        return normal_cdf(distance / spread) if spread else float(distance > 0)


def _moments_up_to(limit: int, losses: RunLosses) -> Moments:
    one = two = three = four = 0.0
    for loss, p in zip(*losses, strict=True):
        if abs(loss) <= limit:
            square = loss * loss
            one += loss * p
            two += square * p
            three += loss * square * p
            four += square * square * p
    return Moments(one, two, three, four)


def _is_significant(losses: Sequence[int], total: float, squares: float, fourths: float) -> bool:
    """Whether the two-sided sign-flip p of a total loss is under 5%.

    `squares` and `fourths` are sums over these losses and over small ones besides.
    """
    if total <= 0 or total * total <= squares:
        return False
    if total * total >= _SURELY**2 * squares:
        return True
    if fourths <= _UNEVEN * squares**2:
        return total > _critical(fourths / squares**2) * math.sqrt(squares)
    return _counted_p(losses, total, squares) < SIGNIFICANCE


def _critical(fourth: float) -> float:
    """Where a sum of random signs is in 2.5% of patterns: Edgeworth's expansion."""
    return _CRITICAL - fourth / 12 * (_CRITICAL**3 - 3 * _CRITICAL)


def _counted_p(losses: Sequence[int], total: float, squares: float) -> float:
    """Mid-p over all patterns of the signs of the largest losses, the rest taken for normal."""
    first, *others = sorted(map(abs, losses), reverse=True)[:_COUNTED]
    sums, rest = [first], squares - first * first
    for loss in others:
        # One pattern of signs is as good as its reverse.
        sums = [one + loss for one in sums] + [one - loss for one in sums]
        rest -= loss * loss
    sums = list(map(abs, sums))
    if rest < 1 / 2:
        beyond = sum([(one > total) + (one == total) / 2 for one in sums])
    else:
        scale, erfc = math.sqrt(2 * rest), math.erfc
        tails = [erfc((total - one) / scale) + erfc((total + one) / scale) for one in sums]
        beyond = sum(tails) / 2
    return beyond / len(sums)

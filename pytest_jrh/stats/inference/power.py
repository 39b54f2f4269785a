"""What a suite can see: the drop that it finds at 80% power, and the runs that a drop takes."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.stats.inference.flicker import flip_probability
from pytest_jrh.stats.inference.formulas import SIGNIFICANCE
from pytest_jrh.stats.inference.noninferiority import POWER
from pytest_jrh.stats.inference.paired import sign_flip_p
from pytest_jrh.stats.inference.quantiles import normal_cdf, normal_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping

# How much alike cases of one run are in whether a change of the judge breaks them: a guess.
CORRELATION = 0.3
# With more clusters than these the normal distribution is as good as simulated sessions.
_SIMULATED_CLUSTERS = 60
_EXACT_CLUSTERS = 25
_SESSIONS = 1_000
_ROUNDS = 9
_MOST_RUNS = 100_000


class PlannedSuite(NamedTuple):
    """The compared cases of a suite, by run, and how the judge is asked.

    `flicker` is the share of pairs of repeats that differ, of one verdict each; `repeats` are
    those of both sessions.
    """

    sizes: tuple[int, ...]
    flicker: float = 0.0
    repeats: int = 1

    def times(self, runs: int) -> PlannedSuite:
        """A suite of so many runs, with sizes as in this one."""
        whole, rest = divmod(runs, len(self.sizes))
        ordered = sorted(self.sizes)
        spread = [ordered[place * len(ordered) // rest] for place in range(rest)] if rest else []
        return self._replace(sizes=(*ordered * whole, *spread))


def visible_drop(suite: PlannedSuite, seed: int = 0) -> float | None:
    """The smallest drop of accuracy that this suite finds with a power of 80%, or None.

    Found is a two-sided sign-flip p under 5%. Verdicts flip by themselves as the flicker says,
    and what the drop breaks comes in runs with a correlation of 0.3. Power is that of simulated
    sessions over the suite's own runs, or, over more than 60 of them, of the normal distribution
    with their moments.
    """
    most = 1 - 2 * flip_probability(suite.flicker)
    low, high = 0.0, most
    if not suite.sizes or power(suite, high, seed) < POWER:
        return None
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(suite, middle, seed) >= POWER else (middle, high)
    return high


def runs_for(drop: float, suite: PlannedSuite, seed: int = 0) -> int | None:
    """The fewest runs, with sizes as in this suite, that find a drop with a power of 80%."""
    if not suite.sizes or drop > 1 - 2 * flip_probability(suite.flicker):
        return None
    low, high = 0, 8
    while power(suite.times(high), drop, seed) < POWER:
        low, high = high, 2 * high
        if high > _MOST_RUNS:
            return None
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        found = power(suite.times(middle), drop, seed) >= POWER
        low, high = (low, middle) if found else (middle, high)
    return high


def power(suite: PlannedSuite, drop: float, seed: int = 0) -> float:
    """The probability that a session of this suite finds a drop of accuracy of this size."""
    flip = flip_probability(suite.flicker)
    share = min(1.0, drop / (1 - 2 * flip)) if drop else 0.0
    losses = {size: _losses(size, share, flip, suite.repeats) for size in set(suite.sizes)}
    clusters = Counter(suite.sizes)
    if len(suite.sizes) > _SIMULATED_CLUSTERS:
        return _normal_power(clusters, losses)
    return _simulated_power(clusters, losses, seed)


def _normal_power(clusters: Mapping[int, int], losses: Mapping[int, Mapping[int, float]]) -> float:
    mean = square = variance = 0.0
    for size, number in clusters.items():
        one = math.fsum(loss * p for loss, p in losses[size].items())
        two = math.fsum(loss * loss * p for loss, p in losses[size].items())
        mean, square = mean + number * one, square + number * two
        variance += number * (two - one * one)
    if not variance:
        return float(mean > 0)
    critical = normal_quantile(1 - SIGNIFICANCE / 2) * math.sqrt(square)
    return normal_cdf((mean - critical) / math.sqrt(variance))


def _simulated_power(
    clusters: Mapping[int, int], losses: Mapping[int, Mapping[int, float]], seed: int
) -> float:
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    sessions: list[list[int]] = [[] for _ in range(_SESSIONS)]
    for size, number in sorted(clusters.items()):
        values, shares = zip(*sorted(losses[size].items()), strict=True)
        drawn = rng.choices(values, shares, k=number * _SESSIONS)
        for place, session in enumerate(sessions):
            session.extend(drawn[place * number : (place + 1) * number])
    return sum(_found(tuple(sorted(session))) for session in sessions) / _SESSIONS


@lru_cache(maxsize=65536)
def _found(losses: tuple[int, ...]) -> bool:
    total, changed = sum(losses), sum(map(bool, losses))
    if total <= 0:
        return False
    if changed <= _EXACT_CLUSTERS:
        return sign_flip_p(losses) < SIGNIFICANCE
    critical = normal_quantile(1 - SIGNIFICANCE / 2)
    return total > critical * math.sqrt(sum(loss * loss for loss in losses))


@lru_cache(maxsize=1024)
def _losses(size: int, share: float, flip: float, repeats: int) -> dict[int, float]:
    """How likely a run of so many cases is to lose so many right answers, repeats counted."""
    steady = _difference(_flips(repeats, flip), _flips(repeats, flip))
    broken = _difference(_flips(repeats, 1 - flip), _flips(repeats, flip))
    runs: dict[int, float] = {}
    sums = {0: 1.0}
    of_steady = [sums]
    for _ in range(size):
        sums = _sum(sums, steady)
        of_steady.append(sums)
    sums = {0: 1.0}
    for number, probability in enumerate(_together(size, share)):
        if probability:
            for loss, p in _sum(sums, of_steady[size - number]).items():
                runs[loss] = runs.get(loss, 0.0) + probability * p
        sums = _sum(sums, broken)
    return runs


def _together(size: int, share: float) -> list[float]:
    """How likely 0, 1, ... of so many cases are broken: beta-binomial, so that runs correlate."""
    if share <= 0 or share >= 1:
        return [float(number == size * (share >= 1)) for number in range(size + 1)]
    both = (1 - CORRELATION) / CORRELATION
    a, b = share * both, (1 - share) * both
    whole = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - math.lgamma(a + b + size)
    return [
        math.comb(size, number)
        * math.exp(whole + math.lgamma(a + number) + math.lgamma(b + size - number))
        for number in range(size + 1)
    ]


def _flips(repeats: int, flip: float) -> dict[int, float]:
    return {
        wrong: math.comb(repeats, wrong) * flip**wrong * (1 - flip) ** (repeats - wrong)
        for wrong in range(repeats + 1)
    }


def _difference(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return _sum(one, {-value: p for value, p in other.items()})


def _sum(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    """The distribution of the sum of two independent numbers."""
    sums: dict[int, float] = {}
    for value, p in one.items():
        for second, q in other.items():
            if p and q:
                sums[value + second] = sums.get(value + second, 0.0) + p * q
    return sums

"""How often a judge that has not changed passes `max_drop`, and what makes it pass at 80% power."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_jrh.stats.inference.flicker import flip_probability
from pytest_jrh.stats.inference.intervals import LEVEL
from pytest_jrh.stats.inference.noninferiority import POWER, half_width
from pytest_jrh.stats.inference.quantiles import normal_cdf, normal_quantile

if TYPE_CHECKING:
    from pytest_jrh.stats.inference.planned import PlannedSuite

_MOST_RUNS = 100_000
_MOST_REPEATS = 9
_FEWEST_RUNS = 2
_STEPS = 100
_VARIANCES = 15
# Up to so many expected flips the drop takes few values, which are counted.
_COUNTED_FLIPS = 40


def pass_probability(suite: PlannedSuite, max_drop: float, level: float = LEVEL) -> float:
    """The probability that `decide_drop` says PASS of a judge whose verdicts flip and that has not
    changed.
    """
    return _of_runs(suite, len(suite.sizes), max_drop, level)


def runs_to_pass(suite: PlannedSuite, max_drop: float, level: float = LEVEL) -> int | None:
    """The fewest runs, with sizes as in this suite, of which an unchanged judge passes 80%.

    None where that takes more than 100,000.
    """
    if not suite.sizes:
        return None
    low, high = 1, _FEWEST_RUNS
    while _of_runs(suite, high, max_drop, level) < POWER:
        low, high = high, 2 * high
        if low > _MOST_RUNS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        passes = _of_runs(suite, middle, max_drop, level) >= POWER
        low, high = (low, middle) if passes else (middle, high)
    # So far runs had the mean size of this suite's.
    while high <= _MOST_RUNS and pass_probability(suite.times(high), max_drop, level) < POWER:
        high += 1 + high // _STEPS
    return high if high <= _MOST_RUNS else None


def repeats_to_pass(suite: PlannedSuite, max_drop: float, level: float = LEVEL) -> int | None:
    """The fewest repeats, an odd number up to 9, with which an unchanged judge passes 80%."""
    for repeats in range(1, _MOST_REPEATS + 1, 2):
        asked = suite._replace(repeats=repeats)
        if repeats > suite.repeats and pass_probability(asked, max_drop, level) >= POWER:
            return repeats
    return None


def _of_runs(suite: PlannedSuite, runs: int, max_drop: float, level: float) -> float:
    if len(suite.sizes) == 0 or runs < _FEWEST_RUNS:
        return 0.0
    a_run = sum(suite.sizes) / len(suite.sizes)
    squares = sum(size * size for size in suite.sizes) / len(suite.sizes)
    n = runs * a_run
    passed = []
    for variance in _variances(suite, runs, a_run, squares):
        limit = max_drop - half_width(variance, runs, n, squares / a_run, max_drop, level)
        passed.append(_below(limit, n, suite))
    return math.fsum(passed) / len(passed)


def _below(limit: float, n: float, suite: PlannedSuite) -> float:
    """The probability of a drop under a limit, where all that differs is what flips."""
    flip, verdicts = flip_probability(suite.flicker), round(n * suite.repeats)
    if not flip:
        return float(limit > 0)
    if verdicts * flip > _COUNTED_FLIPS:
        return normal_cdf(limit / math.sqrt(suite.flicker / (suite.repeats * n)))
    most = math.ceil(limit * verdicts) - 1
    flips = _flips(verdicts, flip)
    return math.fsum(
        before * after
        for wrong_before, before in enumerate(flips)
        for wrong_after, after in enumerate(flips)
        if wrong_after - wrong_before <= most
    )


def _flips(number: int, share: float) -> list[float]:
    """How likely 0, 1, ... verdicts of so many are to flip, as far as that is likely at all."""
    shares = [math.exp(number * math.log1p(-share))]
    most = number * share + 6 * math.sqrt(number * share) + 6
    while len(shares) <= min(number, most):
        done = len(shares)
        shares.append(shares[-1] * (number - done + 1) / done * share / (1 - share))
    return shares


def _variances(suite: PlannedSuite, runs: int, a_run: float, squares: float) -> list[float]:
    """What a session may find the variance of a run's losses to be, each as likely.

    A gamma distribution with the moments of the variance, by its quantiles (Wilson and Hilferty
    1931, PNAS 17:684-688).
    """
    mean = a_run * suite.flicker / suite.repeats
    if not mean:
        return [0.0]
    # The fourth cumulant of a difference of shares of flipped verdicts.
    both = suite.flicker / 2
    cumulant = 2 * both * (1 - 6 * both) / suite.repeats**3
    variance = (2 * squares * (suite.flicker / suite.repeats) ** 2 + a_run * cumulant) / runs
    part = max(variance, 0.0) / mean**2 / 9
    quantiles = [normal_quantile((place + 0.5) / _VARIANCES) for place in range(_VARIANCES)]
    return [mean * max(0.0, 1 - part + math.sqrt(part) * z) ** 3 for z in quantiles]

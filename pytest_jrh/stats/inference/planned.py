"""A suite as it is planned: its runs, and what one of them may lose where a judge gets worse."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.stats.inference.quantiles import normal_quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# How much alike cases of one run are in whether a change of the judge breaks them: a guess.
CORRELATION = 0.3
_BOTH = (1 - CORRELATION) / CORRELATION
# Runs of more cases are taken together with those that are up to a tenth larger, and their losses
# in steps.
_EXACT_CASES, _EXACT_VERDICTS, _LARGER = 12, 40, 1.1
_STEPS, _FLIP_STEPS = 24, 7
_NEGLIGIBLE = 1e-9


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


class Moments(NamedTuple):
    """The means of a run's loss, its square, its cube and its fourth power."""

    one: float
    two: float
    three: float
    four: float


class RunLosses(NamedTuple):
    """How likely a run is to lose so many right answers, repeats counted; never 0 of them."""

    values: tuple[int, ...]
    shares: tuple[float, ...]


def groups_of(sizes: Iterable[int]) -> dict[int, int]:
    """How many runs there are of each size; sizes over 12 are rounded, their sum nearly kept."""
    groups: Counter[int] = Counter()
    large: dict[int, list[int]] = {}
    for size, number in Counter(sizes).items():
        if size <= _EXACT_CASES:
            groups[size] += number
        else:
            step = int(math.log(size / _EXACT_CASES) / math.log(_LARGER))
            cases = large.setdefault(step, [0, 0])
            cases[0] += number
            cases[1] += number * size
    for number, cases_of_all in large.values():
        groups[round(cases_of_all / number)] += number
    return dict(sorted(groups.items()))


@lru_cache(maxsize=1024)
def losses_of(size: int, share: float, flip: float, repeats: int) -> RunLosses:
    """The losses of a run of so many cases, where a share of all cases breaks.

    A broken case is right where it was wrong, and the reverse; each verdict flips by itself.
    """
    if size <= _EXACT_CASES and (size * repeats <= _EXACT_VERDICTS or not flip):
        losses = _exact(size, share, flip, repeats)
    else:
        losses = _in_steps(size, share, flip, repeats)
    kept = [(loss, p) for loss, p in sorted(losses.items()) if loss and p > _NEGLIGIBLE]
    return RunLosses(tuple(loss for loss, _ in kept), tuple(p for _, p in kept))


def moments_of(size: int, share: float, flip: float, repeats: int) -> Moments:
    """The moments of `losses_of`, at once: those of a beta-binomial number, and of normal flips."""
    a, whole = share * _BOTH, _BOTH
    falling, ratio = [1.0], 1.0
    for order in range(4):
        ratio *= (size - order) * (a + order) / (whole + order)
        falling.append(ratio)
    _, one, two, three, four = falling
    scale, flips = repeats * (1 - 2 * flip), 2 * size * repeats * flip * (1 - flip)
    first, second = scale * one, scale**2 * (two + one)
    third = scale**3 * (three + 3 * two + one)
    fourth = scale**4 * (four + 6 * three + 7 * two + one)
    return Moments(
        first,
        second + flips,
        third + 3 * first * flips,
        fourth + 6 * second * flips + 3 * flips**2,
    )


def _exact(size: int, share: float, flip: float, repeats: int) -> dict[int, float]:
    verdicts = size * repeats
    wrong_after: dict[int, float] = {}
    for number, probability in enumerate(_together(size, share)):
        if probability > _NEGLIGIBLE:
            broken = _binomial(number * repeats, 1 - flip)
            steady = _binomial(verdicts - number * repeats, flip)
            for wrong, p in _sum(broken, steady).items():
                wrong_after[wrong] = wrong_after.get(wrong, 0.0) + probability * p
    wrong_before = _binomial(verdicts, flip)
    return _sum(wrong_after, {-wrong: p for wrong, p in wrong_before.items()})


def _in_steps(size: int, share: float, flip: float, repeats: int) -> dict[int, float]:
    """Losses of a large run: neighbouring numbers of broken cases as one, flips as normal.

    The variance of what flips is the same for broken cases and steady ones.
    """
    spread = math.sqrt(2 * size * repeats * flip * (1 - flip))
    flips = _normal_steps() if spread else (0.0,)
    losses: dict[int, float] = {}
    for broken, p in _in_few(_together(size, share)):
        for flipped in flips:
            loss = round(repeats * (1 - 2 * flip) * broken + spread * flipped)
            losses[loss] = losses.get(loss, 0.0) + p / len(flips)
    return losses


def _in_few(shares: Sequence[float]) -> list[tuple[float, float]]:
    """Numbers with their probabilities, at most about 24: 0 by itself, then the means of steps."""
    width = max(1, math.ceil((len(shares) - 1) / _STEPS))
    steps = [(0.0, shares[0])]
    for start in range(1, len(shares), width):
        part = shares[start : start + width]
        probability = math.fsum(part)
        if probability > _NEGLIGIBLE:
            mean = math.fsum(number * p for number, p in enumerate(part, start)) / probability
            steps.append((mean, probability))
    return steps


@lru_cache(maxsize=1)
def _normal_steps() -> tuple[float, ...]:
    """Equally likely values with mean 0 and variance 1, as of a normal variable."""
    values = [normal_quantile((place + 0.5) / _FLIP_STEPS) for place in range(_FLIP_STEPS)]
    spread = math.sqrt(math.fsum(value * value for value in values) / _FLIP_STEPS)
    return tuple(value / spread for value in values)


def _together(size: int, share: float) -> list[float]:
    """How likely 0, 1, ... of so many cases are broken: beta-binomial, so that runs correlate."""
    if share <= 0 or share >= 1:
        return [float(number == size * (share >= 1)) for number in range(size + 1)]
    a, b = share * _BOTH, (1 - share) * _BOTH
    none = math.lgamma(a + b) - math.lgamma(b) + math.lgamma(b + size) - math.lgamma(a + b + size)
    shares = [math.exp(none)]
    for number in range(size):
        step = (size - number) / (number + 1) * (a + number) / (b + size - number - 1)
        shares.append(shares[-1] * step)
    return shares


def _binomial(number: int, share: float) -> dict[int, float]:
    """How likely 0, 1, ... of so many are; what is negligible is left out."""
    shares = {
        count: math.comb(number, count) * share**count * (1 - share) ** (number - count)
        for count in range(number + 1)
    }
    return {count: p for count, p in shares.items() if p > _NEGLIGIBLE}


def _sum(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    """The distribution of the sum of two independent numbers."""
    sums: dict[int, float] = {}
    for value, p in one.items():
        for second, q in other.items():
            sums[value + second] = sums.get(value + second, 0.0) + p * q
    return sums

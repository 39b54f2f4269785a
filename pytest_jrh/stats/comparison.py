"""Whether a change is more than chance, and whether a judge has become worse by no more than is
allowed: tests over clusters, Holm's adjustment, PASS, FAIL or INCONCLUSIVE.

Also how often a judge that has not changed passes `max_drop`, and what makes it pass at 80% power.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.stats.formulas import Estimate, normal_cdf, normal_quantile, t_quantile
from pytest_jrh.stats.intervals import LEVEL, flip_probability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


_EXACT_CLUSTERS = 20
_DRAWS = 100_000
# Additions to count all patterns, up to which they are counted: less than a second.
_MOST_ADDITIONS = 20_000_000
# Counts double with each cluster, and a float holds up to 2 ** 1023.
_RESCALED_EVERY = 500
_SIGNS_AT_ONCE = 8


def sign_flip_p(differences: Iterable[Fraction | int], seed: int = 0) -> float:
    """Two-sided mid-p value of a sum of differences, were each as likely the other way round.

    One difference for each cluster: what is exchangeable is a cluster as a whole, so that its cases
    may go together as they like (Fisher 1935, The Design of Experiments, 21; Winkler et al. 2014,
    NeuroImage 92:381-397). All patterns of signs are counted where that is possible, which it is
    for 20 clusters always and for hundreds where the differences have few values; else 100,000 are
    drawn, with `seed`. With one case a cluster it is McNemar's exact mid-p (Fagerland, Lydersen and
    Laake 2013, BMC Med Res Methodol 13:91). 1 where nothing changed.
    """
    fractions = [Fraction(each) for each in differences if each]
    common = math.lcm(*(each.denominator for each in fractions))
    signed = [int(each * common) for each in fractions]
    if not signed:
        return 1.0
    common = math.gcd(*signed)
    signed = [each // common for each in signed]
    sizes, seen = sorted(map(abs, signed)), abs(sum(signed))
    if sum(sizes) * len(sizes) <= _MOST_ADDITIONS:
        larger, equal = _counted(sizes, seen)
    elif len(sizes) <= _EXACT_CLUSTERS:
        larger, equal = _enumerated(sizes, seen)
    else:
        larger, equal = _drawn(sizes, seen, seed)
    return larger + equal / 2


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values of several decisions, in their order, so that all hold together at one level.

    Holm 1979, Scand J Stat 6:65-70.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted, reached = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        reached = min(1.0, max(reached, (len(order) - rank) * p_values[place]))
        adjusted[place] = reached
    return adjusted


def _counted(sizes: Sequence[int], seen: int) -> tuple[float, float]:
    """Count the sums of all patterns of signs: the shares larger than the one seen, and equal.

    Cluster by cluster, for every sum that can come of the positive differences.
    """
    table, halvings = [1.0], 0
    for number, size in enumerate(sizes, 1):
        nothing = [0.0] * size
        table = list(map(add, table + nothing, nothing + table))
        if number % _RESCALED_EVERY == 0:
            table, halvings = [each / 2**_RESCALED_EVERY for each in table], number
    patterns = 2.0 ** (len(sizes) - halvings)
    # The sum of all signs is twice that of the positive ones less the total, and symmetric.
    place = (sum(sizes) - seen) // 2
    both = 2 if seen else 1
    return 2 * math.fsum(table[:place]) / patterns, both * table[place] / patterns


def _enumerated(sizes: Sequence[int], seen: int) -> tuple[float, float]:
    """Count as `_counted` does, where there are few clusters of whatever size."""
    sums = Counter({0: 1})
    for size in sizes:
        following = Counter[int]()
        for value, count in sums.items():
            following[value + size] += count
            following[value - size] += count
        sums = following
    return _shares(sums, seen)


def _drawn(sizes: Sequence[int], seen: int, seed: int) -> tuple[float, float]:
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
    # The pattern that was seen is one of those that may come (Phipson and Smyth 2010, 9:39).
    sums.append(seen)
    return _shares(Counter(sums), seen)


def _shares(sums: Counter[int], seen: int) -> tuple[float, float]:
    larger = sum(count for value, count in sums.items() if abs(value) > seen)
    equal = sums[seen] + (sums[-seen] if seen else 0)
    return larger / sums.total(), equal / sums.total()


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
        why = "all cases come from one source run" if given else "no case could be compared"
        return DropDecision("INCONCLUSIVE", Estimate(why=why), clusters=len(given))
    runs, n = len(given), sum(change.n for change in given)
    drop = math.fsum(change.loss for change in given) / n
    squares = math.fsum((change.loss - drop * change.n) ** 2 for change in given)
    variance = squares / (runs - 1)
    weighted = sum(each.n**2 for each in given) / n
    spread = _Spread.over(variance, runs, n, weighted, max_drop)
    half = half_width(variance, runs, n, weighted, max_drop, level)
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


_MOST_SIMULATED_RUNS = 100_000
_MOST_PLANNED_REPEATS = 9
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
        if low > _MOST_SIMULATED_RUNS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        passes = _of_runs(suite, middle, max_drop, level) >= POWER
        low, high = (low, middle) if passes else (middle, high)
    # So far runs had the mean size of this suite's.
    while (
        high <= _MOST_SIMULATED_RUNS
        and pass_probability(suite.times(high), max_drop, level) < POWER
    ):
        high += 1 + high // _STEPS
    return high if high <= _MOST_SIMULATED_RUNS else None


def repeats_to_pass(suite: PlannedSuite, max_drop: float, level: float = LEVEL) -> int | None:
    """The fewest repeats, an odd number up to 9, with which an unchanged judge passes 80%."""
    for repeats in range(1, _MOST_PLANNED_REPEATS + 1, 2):
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


# How much alike cases of one run are in whether a change of the judge breaks them: a guess.
CORRELATION = 0.3
_BOTH = (1 - CORRELATION) / CORRELATION
# Runs of more cases are taken together with those that are up to a tenth larger, and their losses
# in steps.
_EXACT_CASES, _EXACT_VERDICTS, _LARGER = 12, 40, 1.1
_PLANNED_STEPS, _FLIP_STEPS = 24, 7
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
    width = max(1, math.ceil((len(shares) - 1) / _PLANNED_STEPS))
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

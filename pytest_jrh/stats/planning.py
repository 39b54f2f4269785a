"""What a suite can show when it is compared with a baseline: the drop that it finds at 80% power,
the runs that a drop takes, and how often a judge that has not changed passes `gate.max_drop`.

All of it is simulated, with the same seed every time. What a run may lose has a known distribution,
so that a session is drawn as how many runs lose how much: thousands of runs take as long as ten.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.stats.comparison import MOST_REPEATS, POWER
from pytest_jrh.stats.formulas import SIGNIFICANCE, t_quantile
from pytest_jrh.stats.intervals import LEVEL, RepeatedCase, estimate_flicker, flip_probability

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]


# How much alike cases of one run are in whether a change of the judge breaks them: a guess.
CORRELATION = 0.3
# Where the flicker is not known, what is said for verdicts of which none flips, and for 5%.
SUPPOSED_FLIPS = (0.0, 0.05)
GOAL = 0.05
MORE_REPEATS = 3
MOST_RUNS = 100_000
_FEWEST_RUNS = 2
_SESSIONS = 1_500
# So few sessions tell a power that is so far from 80%.
_FEW_SESSIONS, _FAR = 250, 0.15
# In parts of the drop, or of the runs: closer than this the simulation does not tell.
_CLOSE = 0.02
_SMALLEST_DROP = 1e-4
# Cases of a larger run break in so many steps, and its losses are counted in so many bins.
_STEPS, _BINS = 24, 121
# A sum of random signs is further out than this, in deviations, in less than 5% of patterns
# (Hoeffding 1963, JASA 58:13-30), and further than one deviation in more.
_SURELY = 2.72
# The signs of so many of the largest losses are counted in all patterns.
_COUNTED = 6
_NEGLIGIBLE = 1e-9


class PlannedCase(NamedTuple):
    """A case that a judge has judged or is to judge; `scores` are those known of its repeats."""

    judge: str
    cluster: Hashable
    scores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeseenSuite:
    """The cases that a judge compares with a baseline, by run, and how it is asked.

    `sizes` are the cases of the runs, in ascending order, and `repeats` those of both sessions.
    `flicker` is the share of pairs of repeats that differ, of one verdict each; None where no case
    was judged more than once.
    """

    sizes: tuple[int, ...]
    repeats: int = 1
    flicker: float | None = None

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return sum(self.sizes)

    @property
    def flip(self) -> float:
        """The probability of a verdict to be flipped; 0 where that is not known."""
        return flip_probability(self.flicker or 0.0)

    def times(self, runs: int) -> ForeseenSuite:
        """A suite of so many runs, with sizes as in this one."""
        ordered = sorted(self.sizes)
        spread = [ordered[number * len(ordered) // runs] for number in range(runs)]
        return replace(self, sizes=tuple(spread))


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
    suites = {}
    for judge, judged in by_judge.items():
        sizes = Counter(case.cluster for case in judged).values()
        flicker = estimate_flicker(RepeatedCase(case.cluster, case.scores) for case in judged)
        suites[judge] = ForeseenSuite(tuple(sorted(sizes)), repeats(judge), flicker.value)
    return suites


def prospects(suites: Mapping[str, ForeseenSuite], max_drop: float | None = None) -> list[Prospect]:
    """Foresee what each judge's comparison can show; judges that are alike share a prospect.

    `max_drop` is what `gate.proof` is to exclude, None without one.
    """
    alike: dict[ForeseenSuite, list[str]] = {}
    for judge, suite in suites.items():
        alike.setdefault(suite, []).append(judge)
    goal = max_drop or GOAL
    return [
        Prospect(tuple(judges), suite, goal, max_drop, _outlooks(suite, goal, max_drop))
        for suite, judges in alike.items()
    ]


@lru_cache(maxsize=64)
def _outlooks(suite: ForeseenSuite, goal: float, max_drop: float | None) -> tuple[Outlook, ...]:
    flickers = [suite.flicker]
    if suite.flicker is None:
        flickers = [2 * flip * (1 - flip) for flip in SUPPOSED_FLIPS]
    outlooks = []
    for flicker in flickers:
        planned = replace(suite, flicker=flicker)
        repeated = None
        if flicker and suite.repeats < MORE_REPEATS:
            repeated = runs_for(goal, replace(planned, repeats=MORE_REPEATS))
        outlooks.append(
            Outlook(
                flicker=flicker or 0.0,
                visible=_conservative_drop(planned),
                runs=runs_for(goal, planned),
                repeated_runs=repeated,
                passing=_passing(planned, max_drop) if max_drop else None,
            )
        )
    return tuple(outlooks)


def _conservative_drop(planned: ForeseenSuite) -> float | None:
    """The smallest drop that is found, but none that would not be found without any flicker.

    Of few runs p has few values, and flicker gives it more: that is not taken for help.
    """
    drop = visible_drop(planned)
    if not planned.flicker or drop is None:
        return drop
    steady = visible_drop(replace(planned, flicker=0.0))
    return None if steady is None else max(drop, steady)


def _passing(planned: ForeseenSuite, max_drop: float) -> Passing:
    share = pass_probability(planned, max_drop)
    if share >= POWER:
        return Passing(share, None, None)
    more = repeats_to_pass(planned, max_drop) if planned.flicker else None
    return Passing(share, runs_to_pass(planned, max_drop), more)


def power(suite: ForeseenSuite, drop: float, sessions: int = _SESSIONS) -> float:
    """The probability that a session of this suite finds a drop of accuracy of this size.

    Found is a two-sided sign-flip p under 5%. Verdicts flip by themselves as the flicker says, and
    what the drop breaks comes in runs with a correlation of 0.3.
    """
    drawn = _simulated(suite, drop, sessions)
    totals, squares = drawn.sums(drawn.losses), drawn.sums(drawn.losses**2)
    surely = (totals > 0) & (totals**2 >= _SURELY**2 * squares)
    unclear = (totals > 0) & ~surely & (totals**2 > squares)
    p_values = _p_values(drawn._replace(counts=drawn.counts[unclear]))
    return float(surely.sum() + (p_values < SIGNIFICANCE).sum()) / sessions


def _finds(suite: ForeseenSuite, drop: float) -> bool:
    """Whether a session finds a drop with a power of 80%."""
    share = power(suite, drop, _FEW_SESSIONS)
    if abs(share - POWER) < _FAR:
        share = power(suite, drop)
    return share >= POWER


@lru_cache(maxsize=64)
def visible_drop(suite: ForeseenSuite) -> float | None:
    """The smallest drop of accuracy that this suite finds with a power of 80%, or None."""
    most = 1 - 2 * suite.flip
    if not suite.sizes or most <= 0 or not _finds(suite, most):
        return None
    return _smallest(lambda drop: _finds(suite, drop), _SMALLEST_DROP, most)


def runs_for(drop: float, suite: ForeseenSuite) -> int | None:
    """The fewest runs, with sizes as in this suite, that find a drop with a power of 80%.

    None where that takes more than 100,000.
    """
    if not suite.sizes or drop > 1 - 2 * suite.flip:
        return None
    return _fewest_runs(lambda runs: _finds(suite.times(runs), drop))


def pass_probability(suite: ForeseenSuite, max_drop: float) -> float:
    """The probability that `unseen_drop` of a judge whose verdicts flip, and that has not changed,
    is below a limit.
    """
    runs, cases = len(suite.sizes), sum(suite.sizes)
    if runs < _FEWEST_RUNS:
        return 0.0
    import numpy as np

    sessions = _simulated(suite, 0.0, _SESSIONS)
    losses, weights = sessions.losses / suite.repeats, sessions.sizes
    squares = sum(size * size for size in suite.sizes)
    drops = sessions.sums(losses) / cases
    spread = sessions.sums(losses**2) - 2 * drops * sessions.sums(losses * weights)
    unseen = max_drop * (1 - max_drop) * squares
    spread += drops**2 * squares + unseen
    errors = np.sqrt(spread * runs / (runs - 1)) / cases
    return float((drops + t_quantile(LEVEL, runs - 1) * errors < max_drop).mean())


def runs_to_pass(suite: ForeseenSuite, max_drop: float) -> int | None:
    """The fewest runs, with sizes as in this suite, of which an unchanged judge passes 80%.

    None where that takes more than 100,000.
    """
    if not suite.sizes:
        return None
    return _fewest_runs(lambda runs: pass_probability(suite.times(runs), max_drop) >= POWER)


def runs_to_prove(classes: Iterable[ForeseenSuite], max_drop: float) -> int | None:
    """The fewest runs, with sizes as in these, of which an unchanged judge passes `gate.proof` in
    80% of sessions: that of the class that needs most.

    None where that takes more than 100,000, as any number does where `max_drop` is 0.
    """
    needed = [runs_to_pass(suite, max_drop) if max_drop else None for suite in classes]
    known = [runs for runs in needed if runs is not None]
    return max(known) if known and len(known) == len(needed) else None


def repeats_to_pass(suite: ForeseenSuite, max_drop: float) -> int | None:
    """The fewest repeats, an odd number up to 9, with which an unchanged judge passes 80%."""
    for repeats in range(1, MOST_REPEATS + 1, 2):
        asked = replace(suite, repeats=repeats)
        if repeats > suite.repeats and pass_probability(asked, max_drop) >= POWER:
            return repeats
    return None


def _fewest_runs(enough: Callable[[int], bool]) -> int | None:
    most = _FEWEST_RUNS
    while not enough(most):
        if most == MOST_RUNS:
            return None
        most = min(2 * most, MOST_RUNS)
    return math.ceil(_smallest(lambda runs: enough(math.ceil(runs)), most / 2, most))


def _smallest(enough: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest number that is enough, as `high` is."""
    while high / low > 1 + _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


class _Sessions(NamedTuple):
    """Simulated sessions: in how many runs of one of the `sizes` each has each of the `losses`."""

    counts: Numbers
    losses: Numbers
    sizes: Numbers

    def sums(self, values: Numbers) -> Numbers:
        """The sum over the runs of each session."""
        return self.counts @ values


def _simulated(suite: ForeseenSuite, drop: float, number: int) -> _Sessions:
    import numpy as np

    # Of all of numpy's generators this one gives the same numbers with every version.
    rng = np.random.RandomState(0)
    flip = suite.flip
    # Where verdicts flip, breaking shows less.
    share = min(1.0, drop / (1 - 2 * flip)) if drop else 0.0
    counts, losses, sizes = [], [], []
    for size, runs in sorted(Counter(suite.sizes).items()):
        values, shares = losses_of(size, share, flip, suite.repeats)
        counts.append(rng.multinomial(runs, shares, number))
        losses.append(values)
        sizes.append(np.full(len(values), float(size)))
    joined = np.concatenate(counts, axis=1).astype(float)
    return _Sessions(joined, np.concatenate(losses), np.concatenate(sizes))


@lru_cache(maxsize=512)
def losses_of(size: int, share: float, flip: float, repeats: int) -> tuple[Numbers, Numbers]:
    """What a run of so many cases may lose in right answers, repeats counted, and how likely each
    loss is, where a share of all cases breaks.

    A broken case is right where it was wrong, and the reverse; each verdict flips by itself.
    """
    import numpy as np

    verdicts = size * repeats
    wrong_after = np.zeros(verdicts + 1)
    together = _together(size, share)
    # Neighbouring numbers of broken cases count as their mean, but none by itself.
    steps = np.array_split(np.arange(1, size + 1), min(size, _STEPS))
    for numbers in (np.zeros(1, dtype=int), *steps):
        probability = float(together[numbers].sum())
        if probability > _NEGLIGIBLE:
            broken = round(repeats * float(together[numbers] @ numbers) / probability)
            flipped = np.convolve(_binomial(broken, 1 - flip), _binomial(verdicts - broken, flip))
            wrong_after += probability * flipped
    shares = np.convolve(wrong_after, _binomial(verdicts, flip)[::-1])
    losses = np.arange(-verdicts, verdicts + 1, dtype=float)
    # Neighbouring losses of a large run count as their mean; no loss is in the middle of a bin.
    width = 2 * (len(shares) // (2 * _BINS)) + 1
    bins = 2 * math.ceil((len(shares) / width - 1) / 2) + 1
    margin = (bins * width - len(shares)) // 2
    padded = np.pad(np.stack([shares, shares * losses]), ((0, 0), (margin, margin)))
    binned, sums = padded.reshape(2, bins, width).sum(axis=2)
    kept = binned > _NEGLIGIBLE
    return sums[kept] / binned[kept], binned[kept] / binned[kept].sum()


def _binomial(number: int, share: float) -> Numbers:
    """How likely 0, 1, ... of so many are."""
    import numpy as np

    if share in (0, 1):
        return _sure(number, share)
    counts = np.arange(number)
    odds = share / (1 - share)
    steps = np.log((number - counts) / (counts + 1) * odds)
    logarithms = number * math.log1p(-share) + np.concatenate([[0.0], np.cumsum(steps)])
    shares: Numbers = np.exp(logarithms)
    return shares


def _sure(number: int, share: float) -> Numbers:
    """None of so many, or all."""
    import numpy as np

    shares = np.zeros(number + 1)
    shares[number if share else 0] = 1
    return shares


def _together(cases: int, share: float) -> Numbers:
    """How likely 0, 1, ... cases of a run are broken: beta-binomial, so that they correlate."""
    import numpy as np

    if share in (0, 1):
        return _sure(cases, share)
    both = (1 - CORRELATION) / CORRELATION
    a, b = share * both, (1 - share) * both
    counts = np.arange(cases)
    none = np.prod((b + counts) / (both + counts))
    steps = (cases - counts) / (counts + 1) * (a + counts) / (b + cases - counts - 1)
    shares: Numbers = none * np.concatenate([[1.0], np.cumprod(steps)])
    return shares


def _p_values(sessions: _Sessions) -> Numbers:
    """Two-sided sign-flip mid-p of each session's loss.

    All patterns of the signs of the largest losses are counted, and the rest is taken for normal.
    """
    import numpy as np

    totals, squares = sessions.sums(sessions.losses), sessions.sums(sessions.losses**2)
    order = np.argsort(-np.abs(sessions.losses))
    sizes = np.append(np.abs(sessions.losses[order]), 0.0)
    reached = np.cumsum(sessions.counts[:, order], axis=1)
    largest = np.stack(
        [sizes[(reached < nth).sum(axis=1)] for nth in range(1, _COUNTED + 1)], axis=1
    )
    # One pattern of signs is as good as its reverse.
    signs = np.array([(1, *others) for others in product((1, -1), repeat=_COUNTED - 1)])
    sums = largest @ signs.T
    rest = np.maximum(squares - (largest**2).sum(axis=1), _NEGLIGIBLE)
    scale, total = np.sqrt(rest)[:, None], totals[:, None]
    tails = _normal_tail((total - sums) / scale) + _normal_tail((total + sums) / scale)
    p_values: Numbers = tails.mean(axis=1)
    return p_values


def _normal_tail(values: Numbers) -> Numbers:
    """The probability of a normal variable to lie above each value, to a part in a thousand."""
    import numpy as np

    # By the logistic curve of Page (1977, Appl Stat 26:75-76).
    return (1 - np.tanh(math.sqrt(2 / math.pi) * values * (1 + 0.044715 * values * values))) / 2

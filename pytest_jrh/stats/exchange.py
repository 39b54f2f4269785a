"""Whether sets of cases are judged worse than before by more than chance.

If nothing has changed, verdicts before and now can be exchanged: those of one judge inside of each
case, as only its dice are thrown again; those of two judges by whole runs, as judges that are as
good may err in other runs. p is the share of exchanges with a rise as large (Fisher 1935, The
Design of Experiments, 21), and the smallest p of all sets adjusts for looking at several (Westfall
and Young 1993, Resampling-Based Multiple Testing, 2.3).
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.stats.formulas import t_quantile

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]


LEVEL = 0.05
"""A session in which nothing has changed is called worse in no more than this share of all."""
DOUBT = 0.2
"""Up to here a loss is not shown, and not for nothing either."""
# Up to so many exchanges, each is counted; else so many are drawn.
_MOST_COUNTED = 1 << 14
_DRAWS = 9_999
# So many numbers are drawn at once, for the memory's sake.
_DRAWN_AT_ONCE = 1 << 22
# What is added up in another order differs by less.
_ROUNDING = 1e-9
_DIGITS = 9
_SIGNS = (-1.0, 1.0)


class CaseErrors(NamedTuple):
    """How far off each verdict on a case was before, and is now: of a binary judge 0 or 1, of an
    ordinal one the share of the scale.
    """

    before: tuple[float, ...]
    now: tuple[float, ...]

    @property
    def rise(self) -> float:
        """By how much the mean error has risen."""
        return sum(self.now) / len(self.now) - sum(self.before) / len(self.before)


class SetTest(NamedTuple):
    """Whether the cases of a set have become worse.

    `p_value` is the probability of a rise as large, or larger, by exchange; `adjusted` that any of
    the sets that were tested together has a p this small.
    """

    p_value: float
    adjusted: float


class _Moves(NamedTuple):
    """What one or several exchanges add to each set: `values`, each with its probability in
    `shares`, times the `weights` of the sets. `number` of them are alike.
    """

    weights: tuple[float, ...]
    values: Numbers
    shares: Numbers
    number: int = 1


def compare_sets(
    cases: Sequence[CaseErrors],
    sets: Sequence[Sequence[int]],
    runs: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> list[SetTest]:
    """Test whether each set has become worse; a set gives the places of its cases in `cases`.

    With `runs`, one for each case, whole runs are exchanged, else the verdicts inside of each case.
    The same seed gives the same figures.
    """
    import numpy as np

    rises = [case.rise for case in cases]
    seen = np.array([math.fsum(rises[place] for place in members) for members in sets])
    sets_of_case: list[list[int]] = [[] for _ in cases]
    for number, members in enumerate(sets):
        for place in members:
            sets_of_case[place].append(number)
    if runs is None:
        moves = list(_inside_cases(cases, sets_of_case, len(sets)))
    else:
        moves = list(_whole_runs(rises, runs, sets_of_case, len(sets)))
    if not moves:
        return [SetTest(1.0, 1.0) for _ in sets]
    weights = np.array([move.weights for move in moves]).T
    ways = math.prod(len(move.values) ** move.number for move in moves[:_MOST_COUNTED])
    if ways <= _MOST_COUNTED and len(moves) <= _MOST_COUNTED:
        sums, shares = _counted(weights, moves)
    else:
        # What was seen is one of the exchanges: no p is 0 (Phipson and Smyth 2010).
        sums = np.column_stack([_drawn(weights, moves, seed), seen])
        shares = np.full(_DRAWS + 1, 1 / (_DRAWS + 1))
    p_values = []
    smallest = np.ones(sums.shape[1])
    for of_set, rise in zip(sums, seen, strict=True):
        values, places = np.unique(np.round(of_set, _DIGITS), return_inverse=True)
        tails = np.append(np.cumsum(np.bincount(places, shares)[::-1])[::-1], 0.0)
        p_values.append(float(tails[np.searchsorted(values, rise - _ROUNDING)]))
        smallest = np.minimum(smallest, tails[places])
    tests = []
    for p_value in p_values:
        together = float(shares[smallest <= p_value + _ROUNDING].sum())
        tests.append(SetTest(min(1.0, p_value), min(1.0, max(p_value, together))))
    return tests


def _inside_cases(
    cases: Sequence[CaseErrors], sets_of_case: Sequence[Sequence[int]], sets: int
) -> Iterator[_Moves]:
    """The exchanges of verdicts inside of each case; cases that are alike together."""
    alike = Counter(
        (tuple(sorted((*case.before, *case.now))), len(case.now), tuple(members))
        for case, members in zip(cases, sets_of_case, strict=True)
        if members and len({*case.before, *case.now}) > 1
    )
    for (errors, now, members), number in alike.items():
        yield _Moves(_weights(dict.fromkeys(members, 1.0), sets), *_dealt(errors, now), number)


def _whole_runs(
    rises: Sequence[float],
    runs: Sequence[Hashable],
    sets_of_case: Sequence[Sequence[int]],
    sets: int,
) -> Iterator[_Moves]:
    """The exchanges of whole runs: what a run has added to each set has either sign."""
    import numpy as np

    by_run: dict[Hashable, dict[int, float]] = {}
    for rise, run, members in zip(rises, runs, sets_of_case, strict=True):
        if rise:
            sums = by_run.setdefault(run, {})
            for number in members:
                sums[number] = sums.get(number, 0.0) + rise
    signs, even = np.array(_SIGNS), np.array([0.5, 0.5])
    for sums in by_run.values():
        if any(abs(rise) > _ROUNDING for rise in sums.values()):
            yield _Moves(_weights(sums, sets), signs, even)


def _weights(by_set: Mapping[int, float], sets: int) -> tuple[float, ...]:
    weights = [0.0] * sets
    for number, weight in by_set.items():
        weights[number] = weight
    return tuple(weights)


@lru_cache(maxsize=4096)
def _dealt(errors: tuple[float, ...], now: int) -> tuple[Numbers, Numbers]:
    """By how much the mean error rises, over all ways to deal so many of the errors to now: the
    values, and how likely each is.
    """
    import numpy as np

    # By number of errors dealt: in how many ways they add up to each sum.
    ways: list[Counter[float]] = [Counter({0.0: 1}), *(Counter[float]() for _ in range(now))]
    for error in errors:
        for number in range(now, 0, -1):
            for total, count in ways[number - 1].items():
                ways[number][round(total + error, _DIGITS)] += count
    before, everything = len(errors) - now, sum(errors)
    rises: Counter[float] = Counter()
    for total, count in ways[now].items():
        rises[round(total / now - (everything - total) / before, _DIGITS)] += count
    values = sorted(rises)
    return np.array(values), np.array([rises[value] for value in values]) / rises.total()


def _counted(weights: Numbers, moves: Sequence[_Moves]) -> tuple[Numbers, Numbers]:
    """The rise of each set in each exchange, a row a set, and how likely each exchange is."""
    import numpy as np

    sums, shares = np.zeros((len(weights), 1)), np.ones(1)
    for move, of_move in zip(moves, weights.T, strict=True):
        for _ in range(move.number):
            added = of_move[:, None, None] * move.values
            sums = (sums[:, :, None] + added).reshape(len(weights), -1)
            shares = (shares[:, None] * move.shares).ravel()
    return sums, shares


def _drawn(weights: Numbers, moves: Sequence[_Moves], seed: int) -> Numbers:
    """The rise of each set in exchanges drawn at random, a row a set."""
    import numpy as np

    # Of all of numpy's generators this one gives the same numbers with every version.
    rng = np.random.RandomState(seed)
    if all(len(move.values) == len(_SIGNS) and move.number == 1 for move in moves):
        # As of whole runs: all at once, since there may be thousands.
        low, high = np.array([move.values for move in moves]).T
        shares = np.array([move.shares[0] for move in moves])
        parts = []
        at_once = max(1, _DRAWN_AT_ONCE // len(moves))
        for start in range(0, _DRAWS, at_once):
            uniform = rng.random_sample((min(at_once, _DRAWS - start), len(moves)))
            parts.append(np.where(uniform < shares, low, high) @ weights.T)
        return np.concatenate(parts).T
    drawn = np.empty((len(moves), _DRAWS))
    for row, move in enumerate(moves):
        drawn[row] = rng.multinomial(move.number, move.shares, _DRAWS) @ move.values
    return weights @ drawn


_HALVINGS = 40


def largest_drop(losses: Sequence[float], sizes: Sequence[int], level: float = 0.95) -> float:
    """The smallest drop that other runs exclude, one-sided; infinite of a single run.

    `losses` are by how much the errors of each run have risen in sum, of `sizes` cases. By
    Student's t over runs. As no loss that was seen says nothing of those that were not, a drop has
    at least the variance of one that breaks whole runs; the smallest one is as large as its
    bound. It
    is at least the one that breaks none of so many runs in no more than 5% (Louis 1981, Am Stat
    35:154).
    """
    runs, n = len(sizes), sum(sizes)
    if runs < 2:  # noqa: PLR2004 - one run has no variance
        return math.inf
    drop = math.fsum(losses) / n
    squares = math.fsum((loss - drop * size) ** 2 for loss, size in zip(losses, sizes, strict=True))
    whole = sum(size**2 for size in sizes)
    quantile = t_quantile(level, runs - 1)

    def bound(supposed: float) -> float:
        """The upper bound of the drop, where one of this size is to be excluded."""
        unseen = max(0.0, supposed * (1 - supposed)) * whole
        return drop + quantile * math.sqrt((squares + unseen) * runs / (runs - 1)) / n

    low, high = max(0.0, drop), max(1.0, bound(1.0))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return max(high if high > _ROUNDING else 0.0, drop + _unbroken(runs, level))


def _unbroken(runs: int, level: float = 0.95) -> float:
    """The smallest share of broken runs that so many runs without a broken one exclude."""
    return 1.0 - float((1 - level) ** (1 / runs))


_POWER = 0.8
_MOST_RUNS = 100_000


def runs_to_prove(
    cases_a_run: float, repeats: int, flip: float, max_drop: float, classes: int
) -> int | None:
    """The runs of which an unchanged judge passes a proof in 80% of sessions, by the normal
    distribution around `largest_drop`; None where no number of runs would.
    """
    if not max_drop:
        return None
    by_chance = 2 * flip * (1 - flip) / repeats / cases_a_run
    power = NormalDist().inv_cdf(_POWER ** (1 / classes))
    runs = 2
    while runs < _MOST_RUNS:
        bound = math.sqrt((by_chance + max_drop * (1 - max_drop)) / (runs - 1))
        margin = power * math.sqrt(by_chance / runs)
        least = max(t_quantile(0.95, runs - 1) * bound, _unbroken(runs))
        if least + margin < max_drop:
            return runs
        runs += 1 + runs // 100
    return None

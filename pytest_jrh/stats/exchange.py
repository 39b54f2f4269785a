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
    from collections.abc import Hashable, Sequence

    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]


LEVEL = 0.05
"""A session in which nothing has changed is called worse in no more than this share of all."""
DOUBT = 0.2
"""Up to here a loss is not shown, and not for nothing either."""
# Up to 2 to the power of this, each exchange is counted; else so many are drawn.
_MOST_COUNTED = 14
_DRAWS = 9_999
# What is added up in another order differs by less.
_ROUNDING = 1e-9
_DIGITS = 9
# A run is exchanged as a whole: its sums have either sign, like a case with one verdict lost.
_EITHER_SIGN = ((0.0, 1.0), 1)


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
    the sets that were tested together has a p this small. `gain` is the latter of having become
    better.
    """

    p_value: float
    adjusted: float
    gain: float = 1.0


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

    rises = np.array([case.rise for case in cases])
    # What a rise of one adds to each set, a row for all that is exchanged together.
    weights = np.zeros((len(cases), len(sets)))
    for number, members in enumerate(sets):
        weights[list(members), number] = 1
    seen = rises @ weights
    if runs is None:
        pools = [(tuple(sorted((*case.before, *case.now))), len(case.now)) for case in cases]
    else:
        rows = {run: row for row, run in enumerate(dict.fromkeys(runs))}
        of_runs = np.zeros((len(rows), len(sets)))
        np.add.at(of_runs, [rows[run] for run in runs], rises[:, None] * weights)
        weights = np.round(of_runs, _DIGITS)
        pools = [_EITHER_SIGN] * len(rows)
    alike = Counter(
        (tuple(row), *pool)
        for row, pool in zip(weights.tolist(), pools, strict=True)
        if any(row) and len({*pool[0]}) > 1
    )
    sums, shares = _exchanged(alike, seen, seed)
    gains = _p_values(-sums, -seen, shares)
    return [
        SetTest(p_value, adjusted, gain)
        for (p_value, adjusted), (_, gain) in zip(_p_values(sums, seen, shares), gains, strict=True)
    ]


def _p_values(sums: Numbers, seen: Numbers, shares: Numbers) -> list[tuple[float, float]]:
    """How likely a rise as large is, or larger: p of each set, and adjusted."""
    import numpy as np

    p_values = []
    smallest = np.ones(sums.shape[1])
    for of_set, rise in zip(sums, seen, strict=True):
        values, places = np.unique(np.round(of_set, _DIGITS), return_inverse=True)
        tails = np.append(np.cumsum(np.bincount(places, shares)[::-1])[::-1], 0.0)
        p_values.append(min(1.0, float(tails[np.searchsorted(values, rise - _ROUNDING)])))
        smallest = np.minimum(smallest, tails[places])
    together = [float(shares[smallest <= p_value + _ROUNDING].sum()) for p_value in p_values]
    return [
        (p_value, min(1.0, max(p_value, adjusted)))
        for p_value, adjusted in zip(p_values, together, strict=True)
    ]


def _exchanged(
    alike: Counter[tuple[tuple[float, ...], tuple[float, ...], int]], seen: Numbers, seed: int
) -> tuple[Numbers, Numbers]:
    """The rise of each set, a row each, in each exchange, and how likely each exchange is.

    `alike` counts what is exchanged: its weights, the errors before and now, and how many are now.
    """
    import numpy as np

    moves = []
    for (of_sets, errors, now), number in alike.items():
        moves.append((np.array(of_sets)[:, None], *_dealt(errors, now), number))
    if sum(number * math.log2(len(values)) for _, values, _, number in moves) <= _MOST_COUNTED:
        sums, shares = np.zeros((len(seen), 1)), np.ones(1)
        for weights, values, of_values, number in moves:
            for _ in range(number):
                added = weights[:, :, None] * values
                sums = (sums[:, :, None] + added).reshape(len(seen), -1)
                shares = (shares[:, None] * of_values).ravel()
        return sums, shares
    # Of all of numpy's generators this one gives the same numbers with every version.
    rng = np.random.RandomState(seed)
    # What was seen is one of the exchanges: no p is 0 (Phipson and Smyth 2010).
    sums = np.zeros((len(seen), _DRAWS + 1))
    for weights, values, of_values, number in moves:
        sums[:, :-1] += weights * (rng.multinomial(number, of_values, _DRAWS) @ values)
    sums[:, -1] = seen
    return sums, np.full(_DRAWS + 1, 1 / (_DRAWS + 1))


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


def largest_drop(losses: Sequence[float], sizes: Sequence[int]) -> float:
    """The smallest drop that other runs exclude, one-sided; infinite of a single run.

    `losses` are by how much the errors of each run have risen in sum, of `sizes` cases. By
    Student's t over runs. As no loss that was seen says nothing of those that were not, a drop has
    at least the variance of one that breaks whole runs; the smallest one is as large as its
    bound. It is at least the one that breaks none of so many runs in no more than 5% (Louis 1981,
    Am Stat 35:154).
    """
    runs, n = len(sizes), sum(sizes)
    if runs < 2:  # noqa: PLR2004 - one run has no variance
        return math.inf
    drop = math.fsum(losses) / n
    squares = math.fsum((loss - drop * size) ** 2 for loss, size in zip(losses, sizes, strict=True))
    factor = t_quantile(0.95, runs - 1) ** 2 * runs / (runs - 1) / n**2
    seen, whole = factor * squares, factor * sum(size**2 for size in sizes)
    # The larger root of (bound - drop)^2 = seen + bound * (1 - bound) * whole.
    middle = drop + whole / 2
    root = math.sqrt(max(0.0, middle**2 - (1 + whole) * (drop**2 - seen)))
    bound = (middle + root) / (1 + whole)
    if bound > 1:
        bound = drop + math.sqrt(seen)
    return max(0.0, bound, drop + _unbroken(runs))


def _unbroken(runs: int) -> float:
    """The smallest share of broken runs that so many runs without a broken one exclude."""
    return 1.0 - float(0.05 ** (1 / runs))


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

"""Tests over clusters, Holm's adjustment, and which drop a comparison leaves unseen."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from operator import add
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.stats.formulas import Estimate, t_quantile
from pytest_jrh.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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


Verdict: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE"]
POWER = 0.8
MOST_REPEATS = 9
_FEWEST_CLUSTERS = 2
ONE_RUN = "all cases come from one source run"
_HALVINGS = 40


class Change(NamedTuple):
    """One cluster: by how much the errors of its `n` compared cases have risen, taken together.

    Of a binary judge a case adds 1 where it was right and is wrong; with repeats, the difference of
    the shares of wrong answers. A gain is a negative loss.
    """

    loss: Fraction | float
    n: int


def unseen_drop(changes: Iterable[Change], level: float = LEVEL) -> Estimate:
    """The drop over clusters, with the smallest drop that they exclude as its upper bound.

    One-sided at `level`, by Student's t over clusters. As no loss that was seen says nothing of
    those that were not, a drop has at least the variance of one that breaks whole clusters: where
    fewer losses are in a suite than by chance, the variance among them is too small as well. The
    smallest drop is the one that is as large as its own bound.
    """
    filled = [change for change in changes if change.n]
    runs, n = len(filled), sum(change.n for change in filled)
    if runs < _FEWEST_CLUSTERS:
        return Estimate(why=ONE_RUN if filled else "no case could be compared")
    drop = math.fsum(change.loss for change in filled) / n
    squares = math.fsum((float(change.loss) - drop * change.n) ** 2 for change in filled)
    whole = sum(change.n**2 for change in filled)
    quantile = t_quantile(level, runs - 1)

    def bound(supposed: float) -> float:
        """The upper bound of the drop, where one of this size is to be excluded."""
        unseen = max(0.0, supposed * (1 - supposed)) * whole
        return drop + quantile * math.sqrt((squares + unseen) * runs / (runs - 1)) / n

    low, high = max(0.0, drop), max(1.0, bound(1.0))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return Estimate(drop, upper=high, n=n)

"""Whether a change is more than chance: tests over clusters, and Holm's adjustment."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from operator import add
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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

"""Whether cases are judged worse than before by more than the judge's own flicker explains.

The cases are fixed, and only the judge's dice are thrown again: if the judge has not changed, the
verdicts of a case before and now are exchangeable. So the test is exact, and needs no assumption
about how cases or runs go together (Fisher 1935, The Design of Experiments, 21). With one verdict
each it is McNemar's exact one-sided test.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]


# A session in which nothing has changed fails in no more than this share of all.
SESSION_LEVEL = 0.05
# Up to so many ways of exchanging verdicts, each is counted; else so many are drawn.
_MOST_COUNTED = 1 << 14
_DRAWS = 10_000
_DRAWN_AT_ONCE = 2_000
# Where repeats of many numbers, or scores that are far apart, would take a table of more steps than
# this, rises are rounded; those of the widest case still have so many steps.
_MOST_STEPS = 1 << 14
_FEWEST_STEPS = 60
# Two probabilities that differ by less are the same one, computed in another order.
_SAME = 1 + 1e-9


class CaseErrors(NamedTuple):
    """How far off each verdict on a case was before, and is now: in levels, of a binary judge 0 or
    1.
    """

    before: tuple[int, ...]
    now: tuple[int, ...]

    @property
    def may_move(self) -> bool:
        """Whether exchanging verdicts makes any difference."""
        return len({*self.before, *self.now}) > 1


@dataclass(frozen=True, slots=True)
class SetTest:
    """Whether the cases of a set have become worse.

    `p_value` is the probability of a rise of the mean errors as large as this, or larger, if
    verdicts before and now were exchanged at random inside of each case. `adjusted` is the
    probability that any of the sets that were tested together has a p this small; it is 1 where
    p itself is above the level of a session.
    """

    p_value: float
    adjusted: float


class _Exchanges(NamedTuple):
    """What the error of a case, or of several together, may have risen by, in parts of a common
    unit and from the lowest on, and how likely each is.
    """

    rises: Integers
    shares: Numbers


def compare_sets(
    cases: Sequence[CaseErrors], sets: Sequence[Sequence[int]], seed: int = 0
) -> list[SetTest]:
    """Test whether each set has become worse; a set gives the places of its cases in `cases`.

    The adjusted p-values are those of Westfall and Young (1993, Resampling-Based Multiple Testing,
    2.3): as the sets overlap, and as few cases give few values of p, they are smaller than by
    Bonferroni, and still exact together.
    """
    moved = [place for place, case in enumerate(cases) if case.may_move]
    if not moved:
        return [SetTest(1.0, 1.0) for _ in sets]
    import numpy as np

    unit = _unit([cases[place] for place in moved])
    exchanges = [_exchanges(cases[place], unit) for place in moved]
    observed = np.array([_observed(cases[place], unit) for place in moved])
    row_of = {place: row for row, place in enumerate(moved)}
    rows = [[row_of[place] for place in members if place in row_of] for members in sets]
    tails = [_Tail.of(_sums([exchanges[row] for row in members])) for members in rows]
    p_values = [
        float(tail.at(observed[members].sum())) for tail, members in zip(tails, rows, strict=True)
    ]
    adjusted = dict.fromkeys(p_values, 1.0)
    if min(p_values) <= SESSION_LEVEL:
        smallest, weights = _smallest_p_values(exchanges, rows, tails, seed)
        for p_value in adjusted:
            if p_value <= SESSION_LEVEL:
                together = float(weights[smallest <= p_value * _SAME].sum())
                adjusted[p_value] = min(1.0, max(p_value, together))
    return [SetTest(p_value, adjusted[p_value]) for p_value in p_values]


def _unit(moved: Sequence[CaseErrors]) -> Fraction:
    """In how many parts an error of 1 is counted: so many that each mean error is a whole number of
    them, unless the table of all sums would be too long.

    Any statistic that is calculated alike of all exchanges gives an exact test, also a rounded one.
    """
    finest = math.lcm(*(len(verdicts) for case in moved for verdicts in case))
    ranges = [max(*case.before, *case.now) - min(*case.before, *case.now) for case in moved]
    coarse = max(Fraction(_MOST_STEPS, 2 * sum(ranges)), Fraction(_FEWEST_STEPS, max(ranges)))
    return min(Fraction(finest), coarse)


def _observed(case: CaseErrors, unit: Fraction) -> int:
    return _rise(sum(case.before), sum(case.now), len(case.before), len(case.now), unit)


def _rise(errors_before: int, errors_now: int, before: int, now: int, unit: Fraction) -> int:
    """How much larger the mean error of `now` verdicts is than that of `before`, in parts."""
    rise = (errors_now * before - errors_before * now) * unit.numerator
    whole = before * now * unit.denominator
    return (2 * rise + whole) // (2 * whole)


def _exchanges(case: CaseErrors, unit: Fraction) -> _Exchanges:
    pooled = tuple(sorted((*case.before, *case.now)))
    return _dealt(pooled, len(case.now), unit)


@lru_cache(maxsize=4096)
def _dealt(errors: tuple[int, ...], now: int, unit: Fraction) -> _Exchanges:
    """What comes of dealing so many of the errors to the verdicts of now, the rest to before."""
    import numpy as np

    # By number of errors dealt: in how many ways they add up to each sum.
    ways: list[Counter[int]] = [Counter({0: 1}), *(Counter[int]() for _ in range(now))]
    for error in errors:
        for number in range(now, 0, -1):
            for total, count in ways[number - 1].items():
                ways[number][total + error] += count
    before, everything = len(errors) - now, sum(errors)
    counts: Counter[int] = Counter()
    for total in sorted(ways[now]):
        counts[_rise(everything - total, total, before, now, unit)] += ways[now][total]
    everyone = math.comb(len(errors), now)
    shares = [count / everyone for count in counts.values()]
    return _Exchanges(np.array(list(counts)), np.array(shares))


def _sums(exchanges: Sequence[_Exchanges]) -> _Exchanges:
    """What the rises of several cases may add up to, in equal steps: all exchanges convolved, those
    that are alike by squaring.
    """
    import numpy as np

    alike = Counter(map(id, exchanges))
    distinct = {id(exchange): exchange for exchange in exchanges}
    gaps = [np.diff(exchange.rises) for exchange in distinct.values()]
    step = math.gcd(*(int(gap) for of_case in gaps for gap in of_case)) or 1
    shares = np.ones(1)
    lowest = 0
    for key, number in alike.items():
        rises, probabilities = distinct[key]
        lowest += number * int(rises[0])
        table = np.zeros((int(rises[-1]) - int(rises[0])) // step + 1)
        table[(rises - rises[0]) // step] = probabilities
        shares = np.convolve(shares, _power(table, number))
    return _Exchanges(lowest + step * np.arange(len(shares)), shares)


class _Tail(NamedTuple):
    """The probability of a sum or more, for each sum from the lowest on, in steps."""

    lowest: int
    step: int
    shares: Numbers

    @classmethod
    def of(cls, sums: _Exchanges) -> _Tail:
        """Add up how likely each sum in equal steps is, from the highest on."""
        import numpy as np

        rises, shares = sums
        step = int(rises[1] - rises[0]) if len(rises) > 1 else 1
        return cls(int(rises[0]), step, np.minimum(1.0, np.cumsum(shares[::-1])[::-1]))

    def at(self, sums: Integers) -> Numbers:
        """The probability of each sum, or of more."""
        tails: Numbers = self.shares[(sums - self.lowest) // self.step]
        return tails


def _power(table: Numbers, number: int) -> Numbers:
    import numpy as np

    result = np.ones(1)
    while number:
        if number % 2:
            result = np.convolve(result, table)
        number //= 2
        table = np.convolve(table, table) if number else table
    return result


def _smallest_p_values(
    exchanges: Sequence[_Exchanges],
    rows: Sequence[Sequence[int]],
    tails: Sequence[_Tail],
    seed: int,
) -> tuple[Numbers, Numbers]:
    """The smallest p of all sets, for each way of exchanging verdicts, and how likely each is.

    What counts of cases that are in the same sets is their sum alone, so that it is exchanged.
    """
    import numpy as np

    sets_of_row: dict[int, list[int]] = {}
    for number, of_set in enumerate(rows):
        for row in of_set:
            sets_of_row.setdefault(row, []).append(number)
    groups: dict[tuple[int, ...], list[_Exchanges]] = {}
    for row, numbers in sets_of_row.items():
        groups.setdefault(tuple(numbers), []).append(exchanges[row])
    # Sums of integers are exact in floats, whose products are much faster.
    members = np.zeros((len(rows), len(groups)))
    for group, of_group in enumerate(groups):
        members[list(of_group), group] = 1
    smallest, weights = [], []
    for rises, shares in _ways([_sums(alike) for alike in groups.values()], seed):
        sums = np.rint(members @ rises).astype(np.int64)
        p_values = [tail.at(of_set) for tail, of_set in zip(tails, sums, strict=True)]
        smallest.append(np.min(p_values, axis=0))
        weights.append(shares)
    return np.concatenate(smallest), np.concatenate(weights)


def _ways(exchanges: Sequence[_Exchanges], seed: int) -> Iterator[tuple[Numbers, Numbers]]:
    """Ways of exchanging verdicts, a column each with every rise, and their shares."""
    import numpy as np

    if math.prod(len(exchange.rises) for exchange in exchanges) <= _MOST_COUNTED:
        grids = np.meshgrid(*(exchange.rises for exchange in exchanges), indexing="ij")
        shares = np.meshgrid(*(exchange.shares for exchange in exchanges), indexing="ij")
        yield (
            np.stack([grid.ravel() for grid in grids]).astype(float),
            np.prod([share.ravel() for share in shares], axis=0),
        )
        return
    # Of all of numpy's generators this one gives the same numbers with every version.
    rng = np.random.RandomState(seed)
    equal = np.full(_DRAWN_AT_ONCE, 1 / _DRAWS)
    up_to = [np.cumsum(exchange.shares)[:-1] for exchange in exchanges]
    for _ in range(_DRAWS // _DRAWN_AT_ONCE):
        drawn = np.empty((len(exchanges), _DRAWN_AT_ONCE))
        for row, (exchange, bounds) in enumerate(zip(exchanges, up_to, strict=True)):
            uniform = rng.random_sample(_DRAWN_AT_ONCE)
            drawn[row] = exchange.rises[np.searchsorted(bounds, uniform)]
        yield drawn, equal

"""Whether sets of cases have become worse by more than chance, in whole numbers.

If nothing has changed, verdicts before and now can be exchanged, and p is the share of exchanges
with a rise as large (Fisher 1935, The Design of Experiments, 21). What may be exchanged depends on
what may have changed:

- `inside`: the same judge was asked again, and only its dice are thrown again;
- `cases`: a changed judge may err in other cases for good, so that all verdicts on a case change
  sides together;
- `runs`: another model may err in other runs.

An exchange that gives exactly what was seen counts half (mid-p: Fagerland, Lydersen and Laake 2013,
BMC Med Res Methodol 13:91). Several sets that are looked at together adjust by the smallest p of
all of them (Westfall and Young 1993, Resampling-Based Multiple Testing, 2.3).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from pytest_jrh.stats.verdicts import Floats, Ints

Exchange = Literal["inside", "cases", "runs"]
# How far off verdicts are, and by how much too high: of one exchange both are known together.
_Pair = tuple[int, int]

# Up to so many exchanges are counted one by one; of more, so many are drawn.
_MOST_COUNTED = 2**14
_DRAWS = 4_999
# The sums of a set are counted exactly where that takes no more additions than this.
_MOST_ADDED = 20_000_000
# p of the same sums, added up in another order, differs by less.
_ROUNDING = 1e-9
_HALF = 0.5
# Where a pair has how far off verdicts are, and by how much too high.
_DISTANCE, _SIGNED = 0, 1


class CaseErrors(NamedTuple):
    """By how many levels each verdict on a case was off before, and is now; below 0 it is too low.

    `width` is the distance from the lowest level of the scale to the highest; where answers have no
    order it is 1, and an error 0 or 1.
    """

    before: tuple[int, ...]
    now: tuple[int, ...]
    width: int = 1


class SetTest(NamedTuple):
    """Whether the cases of a set have become worse.

    `share` is that of the exchanges with a rise as large as what was seen, or larger; `p_value`
    counts those as large by half. `adjusted_share` and `adjusted` are how often any of the sets
    that were tested together has so small a p.
    """

    share: float
    p_value: float
    adjusted_share: float
    adjusted: float


class _Weight(NamedTuple):
    """By how much what is exchanged counts in a set: the place in its pairs, and the factor."""

    of_set: int
    place: int
    factor: int


class _Move(NamedTuple):
    """What is exchanged as one, `number` times alike, and how likely each of its values is."""

    weights: tuple[_Weight, ...]
    values: tuple[_Pair, ...]
    shares: tuple[float, ...]
    number: int


def compare_sets(
    cases: Sequence[CaseErrors],
    sets: Sequence[Sequence[int]],
    exchange: Exchange,
    runs: Sequence[Hashable] = (),
    shifts: Collection[int] = (),
    numbers: Sequence[int] = (),
) -> list[SetTest]:
    """Test each set, which gives the places of its cases in `cases`; `runs` has the run of each,
    and `numbers` how many cases are alike (one, where it is empty).

    The rise of a set is that of its errors; of those numbered by `shifts` that of their mean, in
    which too high and too low make up for each other, away from 0.
    """
    unit = 1
    for case in cases:
        unit = math.lcm(unit, case.width * len(case.before), case.width * len(case.now))
    times = np.array(numbers or [1] * len(cases), np.int64)
    # Of each case the means before, and those now.
    means = np.zeros((2, len(cases), 2), np.int64)
    for row, case in enumerate(cases):
        of_level = unit // case.width
        means[:, row] = _mean(case.before, of_level), _mean(case.now, of_level)
    weights: list[list[_Weight]] = [[] for _ in cases]
    seen = []
    for number, members in enumerate(sets):
        place = _SIGNED if number in shifts else _DISTANCE
        rows = np.array(members, np.int64)
        of_before, of_now = (means[:, rows, place] @ times[rows]).tolist()
        # What is exchanged leaves the sum of both as it is, and so the side on which the larger is.
        weight = _Weight(number, place, -1 if of_before + of_now < 0 else 1)
        seen.append(abs(of_now) - abs(of_before))
        for member in members:
            weights[member].append(weight)
    if exchange == "inside":
        moves = _moves_inside(cases, weights, times.tolist(), unit)
    else:
        rises = means[1] - means[0]
        groups: Sequence[Hashable] = range(len(cases))
        if exchange == "runs":
            # Of a run all cases move together.
            rises, groups, times = rises * times[:, None], runs, np.ones_like(times)
        moves = _moves_of_groups(rises.tolist(), weights, groups, times.tolist())
    return _tests(moves, seen)


def _mean(errors: Sequence[int], unit: int) -> _Pair:
    """The mean of a case, in the unit in which those of all cases are whole numbers."""
    unit //= len(errors)
    return unit * sum(map(abs, errors)), unit * sum(errors)


def _moves_inside(
    cases: Sequence[CaseErrors],
    weights: Sequence[Sequence[_Weight]],
    numbers: Sequence[int],
    unit: int,
) -> list[_Move]:
    """What cases add, each by itself, those that add alike together."""
    alike = Counter[tuple[tuple[_Weight, ...], tuple[int, ...], int, int]]()
    for of_case, case, number in zip(weights, cases, numbers, strict=True):
        errors = tuple(sorted((*case.before, *case.now)))
        if of_case and errors[0] != errors[-1]:
            alike[tuple(of_case), errors, len(case.now), unit // case.width] += number
    moves = []
    for (of_case, errors, now, of_level), number in alike.items():
        moves.append(_Move(of_case, *_dealt(errors, now, of_level), number))
    return moves


def _moves_of_groups(
    rises: Sequence[_Pair],
    weights: Sequence[Sequence[_Weight]],
    groups: Sequence[Hashable],
    numbers: Sequence[int],
) -> list[_Move]:
    """What cases add that are exchanged together: to each set the sum of its own, with either
    sign.
    """
    sums_of_groups: dict[Hashable, Counter[int]] = {}
    times = dict(zip(groups, numbers, strict=True))
    for group, rise, of_case in zip(groups, rises, weights, strict=True):
        sums = sums_of_groups.setdefault(group, Counter())
        for weight in of_case:
            sums[weight.of_set] += weight.factor * rise[weight.place]
    alike = Counter[tuple[_Weight, ...]]()
    for group, sums in sums_of_groups.items():
        # With either sign, what has gained as much is alike.
        sign = -1 if min(sums.values(), default=0) < 0 else 1
        added = [_Weight(number, _DISTANCE, sign * sums[number]) for number in sorted(sums)]
        of_group = tuple(weight for weight in added if weight.factor)
        if of_group:
            alike[of_group] += times[group]
    values = ((-1, -1), (1, 1))
    return [_Move(of_group, values, (_HALF, _HALF), number) for of_group, number in alike.items()]


@lru_cache(maxsize=4096)
def _dealt(
    errors: tuple[int, ...], now: int, unit: int
) -> tuple[tuple[_Pair, ...], tuple[float, ...]]:
    """By how much the means of a case rise, over all ways to deal so many of its errors to now: the
    values, `unit` for a whole level, and how likely each is.
    """
    # By number of errors dealt: in how many ways they add up to each pair of sums.
    ways: list[Counter[_Pair]] = [Counter({(0, 0): 1}), *(Counter[_Pair]() for _ in range(now))]
    for error in errors:
        for number in range(now, 0, -1):
            for (distance, signed), count in ways[number - 1].items():
                ways[number][distance + abs(error), signed + error] += count
    before = len(errors) - now
    all_distance, all_signed = sum(map(abs, errors)), sum(errors)
    rises = Counter[_Pair]()
    for (distance, signed), count in ways[now].items():
        of_distance = unit * distance // now - unit * (all_distance - distance) // before
        of_signed = unit * signed // now - unit * (all_signed - signed) // before
        rises[of_distance, of_signed] += count
    values = tuple(sorted(rises))
    all_ways = math.comb(len(errors), now)
    return values, tuple(rises[value] / all_ways for value in values)


def _tests(moves: Sequence[_Move], seen: Sequence[int]) -> list[SetTest]:
    sums, shares = _joint(moves, seen)
    steps_of_sets: list[list[_Step]] = [[] for _ in seen]
    for move in moves:
        for weight in move.weights:
            added = [weight.factor * value[weight.place] for value in move.values]
            steps_of_sets[weight.of_set].append(_Step(added, move.shares, move.number))
    own = []
    smallest = np.ones(len(shares))
    for number, rise in enumerate(seen):
        tails = _Tails(*(_distribution(steps_of_sets[number]) or (sums[number], shares)))
        own.append((tails.share(rise), float(tails.p_values(rise))))
        smallest = np.minimum(smallest, tails.p_values(sums[number]))
    tests = []
    for share, p_value in own:
        smaller = float(shares[smallest < p_value - _ROUNDING].sum())
        as_small = min(1.0, float(shares[smallest <= p_value + _ROUNDING].sum()))
        adjusted = max(p_value, (smaller + as_small) / 2)
        tests.append(SetTest(share, p_value, max(share, as_small), adjusted))
    return tests


class _Tails:
    """How likely a sum as large is, or larger, of sums with their shares."""

    def __init__(self, sums: Ints, shares: Floats) -> None:
        self._sums, places = np.unique(sums, return_inverse=True)
        of_sums = np.append(np.bincount(places, shares), 0.0)
        self._tails = np.minimum(1.0, np.cumsum(of_sums[::-1])[::-1])

    def share(self, total: int) -> float:
        """Of the exchanges that come to as much or more."""
        return float(self._tails[self._sums.searchsorted(total)])

    def p_values(self, totals: Ints | int) -> Floats:
        """The same of many sums, with exchanges that come to exactly as much counted by half."""
        as_much = self._tails[self._sums.searchsorted(totals)]
        more = self._tails[self._sums.searchsorted(totals, "right")]
        return np.asarray((as_much + more) / 2)


class _Step(NamedTuple):
    """What a move adds to one set."""

    values: Sequence[int]
    shares: Sequence[float]
    number: int


def _distribution(steps: Sequence[_Step]) -> tuple[Ints, Floats] | None:
    """All sums that a set can come to, and how likely each is; None where that is too much work."""
    unit = math.gcd(*(value for step in steps for value in step.values)) or 1
    lowest, length, additions = 0, 1, 0
    for step in steps:
        lowest += step.number * min(step.values)
        length += step.number * (max(step.values) - min(step.values)) // unit
        additions += step.number * len(step.values)
    if length * additions > _MOST_ADDED:
        return None
    likely = np.ones(1)
    for step in steps:
        first = min(step.values)
        for _ in range(step.number):
            longer = np.zeros(len(likely) + (max(step.values) - first) // unit)
            for value, share in zip(step.values, step.shares, strict=True):
                start = (value - first) // unit
                longer[start : start + len(likely)] += share * likely
            likely = longer
    return lowest + unit * np.arange(length, dtype=np.int64), likely


def _joint(moves: Sequence[_Move], seen: Sequence[int]) -> tuple[Ints, Floats]:
    """The sums of all sets, a row each, in each exchange, and how likely each exchange is."""
    number_of_exchanges = math.prod(len(move.values) ** move.number for move in moves)
    if number_of_exchanges <= _MOST_COUNTED:
        sums, likely = np.zeros((len(seen), 1), dtype=np.int64), np.ones(1)
        for move in moves:
            added = np.zeros((len(seen), 1, len(move.values)), dtype=np.int64)
            for weight in move.weights:
                added[weight.of_set] = weight.factor * np.array(move.values)[:, weight.place]
            for _ in range(move.number):
                sums = (sums[:, :, None] + added).reshape(len(seen), -1)
                likely = (likely[:, None] * np.array(move.shares)).ravel()
        return sums, likely
    # The same figures each time: of all of numpy's generators this one gives the same numbers with
    # every version.
    random = np.random.RandomState(0)
    # What was seen is one of the exchanges: no p is 0 (Phipson and Smyth 2010).
    sums = np.zeros((len(seen), _DRAWS + 1), dtype=np.int64)
    for move in moves:
        drawn = random.multinomial(move.number, move.shares, _DRAWS) @ np.array(move.values)
        for weight in move.weights:
            sums[weight.of_set, :-1] += weight.factor * drawn[:, weight.place]
    sums[:, -1] = seen
    return sums, np.full(_DRAWS + 1, 1 / (_DRAWS + 1))

"""The test of sets by exchange: is a judge worse than its flicker, or its runs, explain?"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats.changes import CaseErrors, compare_sets, largest_drop

RIGHT, WRONG = CaseErrors((0,), (0,)), CaseErrors((1,), (1,))
LOST, WON = CaseErrors((0,), (1,)), CaseErrors((1,), (0,))
# So many sessions there are where they are too many to count: those drawn, and the one seen.
DRAWN = 10_000


def p_of(cases: Sequence[CaseErrors], runs: Sequence[Hashable] | None = None) -> float:
    [found] = compare_sets(cases, [range(len(cases))], runs)
    return found.p_value


def exchanges(
    cases: Sequence[CaseErrors], runs: Sequence[Hashable] | None
) -> Iterator[tuple[CaseErrors, ...]]:
    """Every session that is as likely as this one if nothing has changed."""
    if runs is not None:
        names = sorted(set(runs), key=str)
        for turned in product((False, True), repeat=len(names)):
            is_turned = dict(zip(names, turned, strict=True))
            yield tuple(
                CaseErrors(case.now, case.before) if is_turned[run] else case
                for case, run in zip(cases, runs, strict=True)
            )
        return
    ways = []
    for case in cases:
        pooled = (*case.before, *case.now)
        dealt = []
        for chosen in combinations(range(len(pooled)), len(case.now)):
            rest = [error for place, error in enumerate(pooled) if place not in chosen]
            dealt.append(CaseErrors(tuple(rest), tuple(pooled[place] for place in chosen)))
        ways.append(dealt)
    yield from product(*ways)


def rises(cases: Sequence[CaseErrors], sets: Sequence[Sequence[int]]) -> list[Fraction]:
    """By how much each set has become worse."""
    of_case = [
        sum(map(Fraction, case.now), Fraction()) / len(case.now)
        - sum(map(Fraction, case.before), Fraction()) / len(case.before)
        for case in cases
    ]
    return [sum((of_case[place] for place in members), Fraction()) for members in sets]


def by_listing(
    cases: Sequence[CaseErrors], sets: Sequence[Sequence[int]], runs: Sequence[Hashable] | None
) -> tuple[list[float], list[float]]:
    """p and adjusted p of each set, from the list of all exchanges."""
    sessions = [rises(session, sets) for session in exchanges(cases, runs)]
    seen = rises(cases, sets)

    def p_value(number: int, rise: Fraction) -> float:
        return sum(session[number] >= rise for session in sessions) / len(sessions)

    numbers = range(len(sets))
    p_values = [p_value(number, seen[number]) for number in numbers]
    smallest = [min(p_value(number, session[number]) for number in numbers) for session in sessions]
    adjusted = [sum(p <= own + 1e-9 for p in smallest) / len(smallest) for own in p_values]
    return p_values, adjusted


VERDICTS = st.lists(st.integers(0, 2), min_size=1, max_size=2).map(tuple)
CASES = st.lists(st.builds(CaseErrors, VERDICTS, VERDICTS), min_size=1, max_size=4)


@given(CASES, st.lists(st.sets(st.integers(0, 3)), min_size=1, max_size=3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_exchange_is_counted_and_the_smallest_p_adjusts(
    cases: list[CaseErrors], drawn_sets: list[set[int]], by_runs: bool
) -> None:
    sets = [[place for place in members if place < len(cases)] for members in drawn_sets]
    runs = [place // 2 for place in range(len(cases))] if by_runs else None
    found = compare_sets(cases, sets, runs)
    p_values, adjusted = by_listing(cases, sets, runs)
    assert [each.p_value for each in found] == pytest.approx(p_values)
    assert [each.adjusted for each in found] == pytest.approx(adjusted)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_with_one_verdict_each_it_is_mcnemars_exact_one_sided_test(
    lost: int, won: int, same: int
) -> None:
    binomtest = pytest.importorskip("scipy.stats").binomtest
    moved = lost + won
    known = binomtest(lost, moved, alternative="greater").pvalue if moved else 1.0
    found = p_of([LOST] * lost + [WON] * won + [RIGHT, WRONG] * same)
    # From 15 cases on they are drawn.
    error = 1e-9 if moved < 15 else 5 * math.sqrt(known * (1 - known) / DRAWN) + 2 / DRAWN
    assert found == pytest.approx(known, abs=error)


@pytest.mark.parametrize(
    ("cases", "p_value"),
    [
        ([CaseErrors((0, 0, 0), (1, 1, 1))], 1 / 20),
        ([CaseErrors((0, 0, 0), (1, 1, 1))] * 2, 1 / 400),
        ([CaseErrors((0,), (1, 1, 1))], 1 / 4),
        # On a scale by how far off: three levels outweigh two wins of one.
        ([CaseErrors((0,), (3,)), WON, WON], 4 / 8),
        ([CaseErrors((0,), (1,)), WON, WON], 7 / 8),
        ([CaseErrors((2,), (3,))] * 5, 1 / 32),
    ],
)
def test_repeats_and_scales_by_hand(cases: list[CaseErrors], p_value: float) -> None:
    assert p_of(cases) == pytest.approx(p_value)


@pytest.mark.parametrize("runs", [4, 5, 8])
def test_whole_runs_are_one_observation_each(runs: int) -> None:
    """However many cases a run has: fewer than five runs show nothing at 5%."""
    cases, names = [LOST] * 6 * runs, [place // 6 for place in range(6 * runs)]
    assert p_of(cases, names) == 0.5**runs
    assert (p_of(cases, names) < 0.05) is (runs >= 5)
    # A run that has lost as much as it has won says nothing.
    assert p_of([*cases, LOST, WON], [*names, "even", "even"]) == 0.5**runs


@pytest.mark.parametrize("runs", [None, [place // 3 for place in range(64)]])
def test_many_exchanges_are_drawn_with_a_seed(runs: list[int] | None) -> None:
    cases = [CaseErrors((0, 0, 1), (1, 1, 0)), CaseErrors((1, 1, 1), (0, 1, 1))] * 32
    sets = [range(32), range(32, 64), range(64)]
    first, again = compare_sets(cases, sets, runs), compare_sets(cases, sets, runs)
    assert first == again
    assert first != compare_sets(cases, sets, runs, seed=1)
    whole = first[2]
    assert whole.p_value <= whole.adjusted <= 3 * whole.p_value


@pytest.mark.parametrize("runs", [None, list(range(200))])
def test_no_drawn_p_is_zero(runs: list[int] | None) -> None:
    """The session that was seen is one of those that are as likely."""
    assert p_of([LOST] * 200, runs) == pytest.approx(1 / DRAWN)
    assert p_of([WON] * 200, runs) == 1


def test_so_many_runs_without_a_broken_one_exclude_a_drop_of_five_points() -> None:
    # 0.95 ** 58 is more than 5%, and 0.95 ** 59 is not.
    assert largest_drop([0.0] * 58, [6] * 58) > 0.05 > largest_drop([0.0] * 59, [6] * 59)

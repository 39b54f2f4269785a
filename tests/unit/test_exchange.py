"""The test of sets by exchange: is a judge worse than its flicker, or its runs, explain?"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats.changes import CaseErrors, SetTest, compare_sets, largest_drop

RIGHT, WRONG = CaseErrors((0,), (0,)), CaseErrors((1,), (1,))
LOST, WON = CaseErrors((0,), (1,)), CaseErrors((1,), (0,))
# So many sessions there are where they are too many to count: those drawn, and the one seen.
DRAWN = 10_000


def p_of(cases: Sequence[CaseErrors], runs: Sequence[Hashable] | None = None) -> float:
    [found] = compare_sets(cases, [range(len(cases))], runs)
    return found.p_value


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
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


def test_where_nothing_can_move_nothing_is_found() -> None:
    cases = [RIGHT, WRONG, CaseErrors((1, 1), (1,))]
    assert compare_sets(cases, [[0, 1], [], [2]]) == [SetTest(1.0, 1.0)] * 3


@pytest.mark.parametrize("runs", [4, 5, 8])
def test_whole_runs_are_one_observation_each(runs: int) -> None:
    """However many cases a run has: fewer than five runs show nothing at 5%."""
    cases, names = [LOST] * 6 * runs, [place // 6 for place in range(6 * runs)]
    assert p_of(cases, names) == 0.5**runs
    assert (p_of(cases, names) < 0.05) is (runs >= 5)
    # A run that has lost as much as it has won says nothing.
    assert p_of([*cases, LOST, WON], [*names, "even", "even"]) == 0.5**runs


def test_sets_that_are_the_same_cost_nothing_and_sets_apart_are_adjusted() -> None:
    cases = [LOST] * 6 + [RIGHT] * 10
    tests = compare_sets(cases, [range(6), range(16), range(6, 16)])
    assert tests == [SetTest(1 / 64, 1 / 64)] * 2 + [SetTest(1.0, 1.0)]
    [first, _] = compare_sets([LOST] * 12, [range(6), range(6, 12)])
    assert first.adjusted == pytest.approx(1 - (63 / 64) ** 2)


@pytest.mark.parametrize("runs", [None, [place // 3 for place in range(64)]])
def test_many_exchanges_are_drawn_with_a_seed(runs: list[int] | None) -> None:
    cases = [CaseErrors((0, 0, 1), (1, 1, 0)), CaseErrors((1, 1, 1), (0, 1, 1))] * 32
    sets = [range(32), range(32, 64), range(64)]
    first, again = compare_sets(cases, sets, runs), compare_sets(cases, sets, runs)
    assert first == again
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

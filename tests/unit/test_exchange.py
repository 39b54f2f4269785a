"""The exact test inside of cases: is a judge worse than its own flicker explains?"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats.exchange import CaseErrors, SetTest, compare_sets

if TYPE_CHECKING:
    from collections.abc import Iterable

RIGHT, WRONG = CaseErrors((0,), (0,)), CaseErrors((1,), (1,))
LOST, WON = CaseErrors((0,), (1,)), CaseErrors((1,), (0,))


def p_of(cases: list[CaseErrors]) -> float:
    [found] = compare_sets(cases, [range(len(cases))])
    return found.p_value


def counted(cases: list[CaseErrors]) -> float:
    """The same by listing every way of exchanging the verdicts of each case."""
    rises = [Counter[Fraction]() for _ in cases]
    for case, of_case in zip(cases, rises, strict=True):
        pooled, now = (*case.before, *case.now), len(case.now)
        for chosen in combinations(range(len(pooled)), now):
            dealt = sum(pooled[place] for place in chosen)
            before = Fraction(sum(pooled) - dealt, len(case.before))
            of_case[Fraction(dealt, now) - before] += 1
    observed = sum(
        Fraction(sum(case.now), len(case.now)) - Fraction(sum(case.before), len(case.before))
        for case in cases
    )
    ways = [list(of_case.items()) for of_case in rises]
    total = math.prod(of_case.total() for of_case in rises)
    larger = sum(
        math.prod(count for _, count in way)
        for way in product(*ways)
        if sum(rise for rise, _ in way) >= observed
    )
    return larger / total


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_with_one_verdict_each_it_is_mcnemars_exact_one_sided_test(
    lost: int, won: int, same: int
) -> None:
    moved = lost + won
    tail = sum(math.comb(moved, number) for number in range(lost, moved + 1)) / 2**moved
    assert p_of([LOST] * lost + [WON] * won + [RIGHT, WRONG] * same) == pytest.approx(tail)


def test_repeats_buy_what_cases_would() -> None:
    turned = CaseErrors((0, 0, 0), (1, 1, 1))
    assert p_of([turned]) == pytest.approx(0.05)
    assert p_of([turned] * 2) == pytest.approx(0.0025)
    assert p_of([CaseErrors((0,), (1, 1, 1))]) == 0.25


VERDICTS = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)


@given(st.lists(st.builds(CaseErrors, VERDICTS, VERDICTS), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_every_way_of_exchanging_verdicts_is_counted(cases: list[CaseErrors]) -> None:
    assert p_of(cases) == pytest.approx(counted(cases))


def test_errors_of_an_ordinal_judge_count_by_how_far_off_they_are() -> None:
    near, far = CaseErrors((0,), (1,)), CaseErrors((0,), (3,))
    assert p_of([far, CaseErrors((1,), (0,)), CaseErrors((1,), (0,))]) == 0.5
    assert p_of([near, CaseErrors((1,), (0,)), CaseErrors((1,), (0,))]) == 7 / 8
    assert p_of([CaseErrors((2,), (3,))] * 5) == 1 / 32


def test_where_nothing_can_move_nothing_is_found() -> None:
    assert (
        compare_sets([RIGHT, WRONG, CaseErrors((1, 1), (1,))], [[0, 1], [], [2]])
        == [SetTest(1.0, 1.0)] * 3
    )


def test_sets_that_overlap_or_cannot_move_cost_nothing_in_the_adjustment() -> None:
    cases = [LOST] * 6 + [RIGHT] * 10
    tests = compare_sets(cases, [range(6), range(16), range(6, 16), [0, 1], [2]])
    assert tests[0] == tests[1] == SetTest(1 / 64, 1 / 64)
    assert tests[2] == SetTest(1.0, 1.0)
    assert [found.adjusted for found in tests[3:]] == [1.0, 1.0]


def test_sets_apart_are_adjusted_for_their_number() -> None:
    [first, _] = compare_sets([LOST] * 12, [range(6), range(6, 12)])
    assert first.adjusted == pytest.approx(1 - (63 / 64) ** 2)


def test_many_cases_are_drawn_with_a_seed() -> None:
    cases = ([CaseErrors((0, 0, 1), (1, 1, 0))] * 12 + [CaseErrors((0, 1, 1), (0, 1, 1))] * 20) * 2
    sets = [range(32), range(32, 64), range(64)]
    first, again = compare_sets(cases, sets), compare_sets(cases, sets)
    assert first == again
    whole = first[2]
    assert whole.p_value <= whole.adjusted <= 3 * whole.p_value
    other = compare_sets(cases, sets, seed=1)[2]
    assert other.p_value == whole.p_value
    assert other.adjusted == pytest.approx(whole.adjusted, rel=0.25)


@pytest.mark.parametrize("numbers", [range(2, 20), (97, 98, 99)])
def test_repeats_of_many_numbers_are_tested_as_well(numbers: Iterable[int]) -> None:
    cases = [CaseErrors((0,) * number, (1,) * 3) for number in numbers]
    ways = math.prod(math.comb(number + 3, 3) for number in numbers)
    assert p_of(cases) == pytest.approx(1 / ways, rel=1e-9, abs=0)
    assert p_of([CaseErrors(case.now, case.before) for case in cases]) == pytest.approx(1)


def test_a_score_of_no_scale_leaves_a_test() -> None:
    assert p_of([CaseErrors((10**30,), (0,)), *[LOST] * 8]) == 1
    assert p_of([CaseErrors((0,), (10**30,)), *[WON] * 8]) == 0.5

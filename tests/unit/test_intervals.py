"""The one interval, of shares, kappa, mean error and bias, and the tests of sets by exchange (is a
judge worse than its flicker, or its runs, explain?), against other implementations."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats.changes import fisher_test, largest_drop
from pytest_jrh.stats.exchange import CaseErrors, Exchange, SetTest, compare_sets
from pytest_jrh.stats.intervals import (
    binomial_tail,
    differing_pairs,
    effective_size,
    majority_flip,
    t_quantile,
    t_tail,
)
from tests.support.figures import Runs, bias_of, ends, kappa_of, marks, mean_error_of, share_of

CLUSTER = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n) | st.integers(0, n), st.just(n)))
RUN = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6)
Sums: TypeAlias = tuple[int, ...]
Sets: TypeAlias = Sequence[Sequence[int]]
# All means of up to five repeats on scales up to ten wide are whole numbers of it.
UNIT = 60 * 2520
# By verdicts before and now up to how many cases all exchanges can be gone through.
MOST = {(1, 1): 12, (1, 3): 5, (2, 2): 5, (3, 3): 3, (4, 4): 2, (5, 5): 2}
Cases: TypeAlias = Sequence[CaseErrors]
RIGHT, WRONG = CaseErrors((0,), (0,)), CaseErrors((1,), (1,))
LOST, WON = CaseErrors((0,), (1,)), CaseErrors((1,), (0,))
# So many sessions there are where they are too many to count: those drawn, and the one seen.
DRAWN = 5_000
EXCHANGES: tuple[Exchange, ...] = ("inside", "cases", "runs")


@pytest.mark.parametrize("freedom", [1, 1.3, 2, 3, 9, 53, 199, 5_000])
def test_students_t_is_scipys(freedom: float) -> None:
    known = pytest.importorskip("scipy.stats").t
    for share in (0.6, 0.9, 0.975, 0.9999):
        value = t_quantile(share, freedom)
        assert value == pytest.approx(known.ppf(share, freedom), rel=1e-9)
        for at in (value, -value):
            assert t_tail(at, freedom) == pytest.approx(known.sf(at, freedom), rel=1e-9)


@pytest.mark.parametrize("n", [1, 9, 420, 1_000_000])
def test_tails_of_the_binomial_are_scipys(n: int) -> None:
    known = pytest.importorskip("scipy.stats").binom
    for count in {1, (n + 1) // 2, n}:
        for share in (0.001, count / (n + 1), 0.999):
            expected = known.sf(count - 1, n, share)
            assert binomial_tail(count, n, share) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("right", "n"), [(0, 9), (8, 9), (999, 1_000), (1, 1)])
def test_cases_of_runs_of_their_own_have_wilsons_interval(right: int, n: int) -> None:
    known = pytest.importorskip("statsmodels.stats.proportion")
    lower, upper = known.proportion_confint(right, n, method="wilson")
    bounds = share_of([(1, 1)] * right + [(0, 1)] * (n - right))
    assert ends(bounds) == pytest.approx((lower, upper))
    assert bounds.count == right


@given(st.lists(CLUSTER, min_size=2, max_size=12))
def test_swapping_right_and_wrong_mirrors_the_interval(clusters: list[tuple[int, int]]) -> None:
    lower, upper = ends(share_of(clusters))
    mirrored = ends(share_of([(n - right, n) for right, n in clusters]))
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=1e-9)
    right = sum(right for right, _ in clusters) / sum(n for _, n in clusters)
    assert lower <= right <= upper


def test_cases_say_as_much_as_there_are_and_less_in_clusters() -> None:
    apart = marks([(1, 1)] * 3 + [(0, 1)] * 5)
    assert effective_size(*apart) == pytest.approx(8)
    assert effective_size(*marks([(4, 4), (0, 4)])) < 4


def test_what_cannot_be_bounded_has_a_reason() -> None:
    assert share_of([]).reason == "no verdict was given"
    one_run = share_of([(3, 4)])
    assert (one_run.value, one_run.lower) == (0.75, None)
    assert one_run.interval_reason == "all verdicts come from one sample or cluster"


def test_kappa_of_independent_cases_has_the_variance_of_the_textbook() -> None:
    """Fleiss, Cohen and Everitt 1969, Psychol Bull 72:323-327, by statsmodels."""
    known = pytest.importorskip("statsmodels.stats.inter_rater")
    table = np.array([[400, 60], [40, 300]])
    pairs = [place for place, count in np.ndenumerate(table) for _ in range(count)]
    lower, upper = ends(kappa_of([[pair] for pair in pairs]))
    found = known.cohens_kappa(table)
    assert kappa_of([pairs]).value == pytest.approx(found.kappa)
    assert upper - lower == pytest.approx(2 * 1.96 * found.std_kappa, rel=0.01)


@given(st.lists(RUN, min_size=2, max_size=12))
def test_intervals_hold_their_figures(runs: Runs) -> None:
    errors = [answer - label for run in runs for label, answer in run]
    mean_error, bias = mean_error_of(runs), bias_of(runs)
    assert mean_error.value == sum(map(abs, errors)) / len(errors)
    assert bias.value == sum(errors) / len(errors)
    for estimate in (kappa_of(runs), mean_error, bias):
        if estimate.value is None:
            assert estimate.why
        else:
            lower, upper = ends(estimate)
            assert lower <= estimate.value <= upper


@given(st.lists(st.integers(0, 4), min_size=2, max_size=7))
def test_differing_pairs_are_the_share_of_ordered_pairs(scores: list[int]) -> None:
    pairs = list(itertools.permutations(scores, 2))
    assert differing_pairs(scores) == pytest.approx(sum(a != b for a, b in pairs) / len(pairs))


@pytest.mark.parametrize("flip", [0, 0.05, 0.2, 0.5])
def test_the_chance_of_a_majority_to_flip_follows_from_the_flicker(flip: float) -> None:
    flicker = 2 * flip * (1 - flip)
    assert majority_flip(flicker, 1) == pytest.approx(flip)
    assert majority_flip(flicker, 3) == pytest.approx(3 * flip**2 * (1 - flip) + flip**3)


def p_of(cases: Cases, exchange: Exchange = "inside", runs: Sequence[Hashable] = ()) -> SetTest:
    [found] = compare_sets(cases, [range(len(cases))], exchange, runs or range(len(cases)))
    return found


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5), st.sampled_from(EXCHANGES))
@settings(max_examples=40, deadline=None)
def test_one_verdict_each_is_mcnemars(lost: int, won: int, same: int, exchange: Exchange) -> None:
    binomial = pytest.importorskip("scipy.stats").binom
    moved = lost + won
    found = p_of([LOST] * lost + [WON] * won + [RIGHT, WRONG] * same, exchange)
    known = binomial.sf(lost - 1, moved, 0.5) if moved else 1.0
    middle = known - binomial.pmf(lost, moved, 0.5) / 2 if moved else 0.5
    assert found.share == pytest.approx(known)
    assert found.p_value == pytest.approx(middle)


@pytest.mark.parametrize(
    ("cases", "share", "p_value"),
    [
        ([CaseErrors((0, 0, 0), (1, 1, 1))] * 2, 1 / 400, 1 / 800),
        # Sums of thirds that are equal count as equal.
        ([CaseErrors((0, 0, 0), (0, 0, 1))] * 4, 1 / 16, 1 / 32),
        ([CaseErrors((0,), (1, 1, 1))], 1 / 4, 1 / 8),
        # On a scale by how far off: three levels outweigh two wins of one.
        ([CaseErrors((0,), (3,), 3), WON._replace(width=3), WON._replace(width=3)], 4 / 8, 7 / 16),
        # Too low is as wrong as too high.
        ([CaseErrors((-2,), (3,), 9)] * 5, 1 / 32, 1 / 64),
    ],
)
def test_repeats_and_scales_by_hand(cases: list[CaseErrors], share: float, p_value: float) -> None:
    found = p_of(cases)
    assert (found.share, found.p_value) == pytest.approx((share, p_value))


def deals(case: CaseErrors, exchange: Exchange) -> list[CaseErrors]:
    """All exchanges of a case, each as likely."""
    if exchange != "inside":
        return [case, CaseErrors(case.now, case.before, case.width)]
    pool = (*case.before, *case.now)
    dealt = []
    for places in itertools.combinations(range(len(pool)), len(case.now)):
        now = tuple(pool[place] for place in places)
        before = tuple(error for place, error in enumerate(pool) if place not in places)
        dealt.append(CaseErrors(before, now, case.width))
    return dealt


def mean(errors: Iterable[int], width: int) -> int:
    """Of a share of the scale so many units."""
    values = list(errors)
    return sum(values) * UNIT // (len(values) * width)


def rise_of(case: CaseErrors, read: Callable[[int], int] = abs) -> int:
    """Of the sizes of errors, or of the errors as they are."""
    return mean(map(read, case.now), case.width) - mean(map(read, case.before), case.width)


def added(places: Sequence[int], dealt: Cases, sets: Sets, sign: int) -> Sums:
    """By how much each set rises; the last one is of a shift with the sign."""
    *rising, shifting = sets
    of_place = dict(zip(places, dealt, strict=True))
    sums = [sum(rise_of(of_place[at]) for at in places if at in members) for members in rising]
    return (*sums, sign * sum(rise_of(of_place[at], int) for at in places if at in shifting))


def share(rises: Counter[int], least: int) -> Fraction:
    """Of how many exchanges a set rises by so much."""
    return Fraction(sum(count for rise, count in rises.items() if rise >= least), rises.total())


def p_value(rises: Counter[int], rise: int) -> Fraction:
    """The same, where equal ones count by half."""
    return share(rises, rise) - Fraction(rises[rise], 2 * rises.total())


def brute(cases: Cases, sets: Sets, exchange: Exchange, runs: Sequence[int]) -> list[SetTest]:
    """The same tests by going through all exchanges; the last set is of a shift."""
    before = sum(mean(cases[place].before, cases[place].width) for place in sets[-1])
    now = sum(mean(cases[place].now, cases[place].width) for place in sets[-1])
    sign = -1 if before + now < 0 else 1
    groups: dict[int, list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(run if exchange == "runs" else place, []).append(place)
    ways = []
    for places in groups.values():
        dealt = zip(*(deals(cases[place], exchange) for place in places), strict=True)
        ways.append([added(places, deal, sets, sign) for deal in dealt])
    sessions = itertools.product(*ways)
    joint = Counter(tuple(map(sum, zip(*session, strict=True))) for session in sessions)
    rises: list[Counter[int]] = [Counter() for _ in sets]
    for sums, count in joint.items():
        for of_set, rise in zip(rises, sums, strict=True):
            of_set[rise] += count
    known = [{rise: p_value(of_set, rise) for rise in of_set} for of_set in rises]
    smallest: Counter[Fraction] = Counter()
    for sums, count in joint.items():
        smallest[min(of[rise] for of, rise in zip(known, sums, strict=True))] += count
    seen = [*added(range(len(cases)), cases, sets, sign)[:-1], abs(now) - abs(before)]
    tests = []
    for of_set, rise in zip(rises, seen, strict=True):
        least, p = share(of_set, rise), p_value(of_set, rise)
        as_small = sum(count for other, count in smallest.items() if other <= p)
        adjusted = Fraction(2 * as_small - smallest[p], 2 * joint.total())
        adjusted_share = max(least, Fraction(as_small, joint.total()))
        tests.append(SetTest(*map(float, (least, p, adjusted_share, max(p, adjusted)))))
    return tests


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[CaseErrors], list[int], Exchange]:
    """Cases with widths of their own, and the run of each."""
    exchange = draw(st.sampled_from(EXCHANGES))
    before, now = draw(st.sampled_from([*MOST]))
    size = draw(st.integers(1, MOST[before, now] if exchange == "inside" else 12))
    cases = []
    for _ in range(size):
        width = draw(st.integers(1, 10))
        error = st.just(0) | st.integers(-width, width)
        errors = draw(st.lists(error, min_size=before + now, max_size=before + now))
        cases.append(CaseErrors(tuple(errors[:before]), tuple(errors[before:]), width))
    return cases, draw(st.lists(st.integers(0, 4), min_size=size, max_size=size)), exchange


@given(tables())
@settings(max_examples=60, deadline=None)
def test_p_is_that_of_whole_numbers(table: tuple[list[CaseErrors], list[int], Exchange]) -> None:
    cases, runs, exchange = table
    everything = range(len(cases))
    sets = [everything, everything[::2], everything]
    found = compare_sets(cases, sets, exchange, runs, shifts=[2])
    # From 16,384 exchanges on some are drawn for the adjustment.
    is_exact = math.prod(len(set(deals(case, exchange))) for case in cases) <= 2**14
    for one, other in zip(found, brute(cases, sets, exchange, runs), strict=True):
        known = other if is_exact else other._replace(adjusted_share=one[2], adjusted=one[3])
        assert one == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_where_nothing_can_move_nothing_is_found(exchange: Exchange) -> None:
    cases = [RIGHT, WRONG, CaseErrors((1, 1), (1,))]
    found = compare_sets(cases, [[0, 1], [], [2]], exchange, "abc")
    assert found == [SetTest(1.0, 0.5, 1.0, 0.5)] * 3


def test_a_shift_is_worse_in_either_direction_and_no_error_need_grow() -> None:
    high, low = CaseErrors((-1,), (1,), 4), CaseErrors((1,), (-1,), 4)
    for cases in ([high, CaseErrors((1,), (1,), 4)] * 6, [low, CaseErrors((-1,), (-1,), 4)] * 6):
        errors, shift = compare_sets(cases, [range(12)] * 2, "cases", shifts=[1])
        assert errors.p_value == 0.5
        assert shift.p_value == pytest.approx(1 / 128)


def test_whole_runs_are_one_observation_each() -> None:
    """However many cases a run has; one that has lost as much as it has won says nothing."""
    cases, names = [LOST] * 6 * 5, [place // 6 for place in range(6 * 5)]
    assert p_of(cases, "runs", names).share == 0.5**5
    assert p_of([*cases, LOST, WON], "runs", [*names, "even", "even"]).share == 0.5**5


def test_sets_that_are_the_same_cost_nothing_and_sets_apart_are_adjusted() -> None:
    cases = [LOST] * 6 + [RIGHT] * 10
    first, second, third = compare_sets(cases, [range(6), range(16), range(6, 16)], "cases")
    assert first == second
    assert (first.p_value, first.adjusted) == (1 / 128, 1 / 128)
    assert third.p_value == 0.5
    [first, _] = compare_sets([LOST] * 12, [range(6), range(6, 12)], "cases")
    assert first.adjusted_share == pytest.approx(1 - (63 / 64) ** 2)
    assert first.adjusted == pytest.approx((1 - (63 / 64) ** 2) / 2)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_many_exchanges_are_drawn_with_a_seed(exchange: Exchange) -> None:
    cases = [CaseErrors((0, 0, 1), (1, 1, 0)), CaseErrors((1, 1, 1), (0, 1, 1))] * 32
    sets, runs = [range(32), range(32, 64), range(64)], [place // 3 for place in range(64)]
    first, again = (compare_sets(cases, sets, exchange, runs) for _ in range(2))
    assert first == again
    whole = first[2]
    assert whole.p_value <= whole.adjusted <= 3 * whole.p_value


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_no_adjusted_p_is_zero(exchange: Exchange) -> None:
    """The session that was seen is one of those that are as likely."""
    found = p_of([LOST] * 200, exchange)
    assert found.p_value == pytest.approx(0.5**201)
    assert found.adjusted_share == pytest.approx(1 / DRAWN)
    assert p_of([WON] * 200, exchange).share == 1


def test_so_many_runs_without_a_broken_one_exclude_a_drop_of_five_points() -> None:
    # 0.95 ** 58 is more than 5%, and 0.95 ** 59 is not.
    assert largest_drop([0.0] * 58, [6] * 58) > 0.05 > largest_drop([0.0] * 59, [6] * 59)


@given(st.integers(1, 40), st.integers(1, 40), st.data())
@settings(max_examples=60, deadline=None)
def test_new_cases_have_fishers_test(cases: int, others: int, data: st.DataObject) -> None:
    """Of as many wrong ones as there are in all; equal shares count by half."""
    hypergeometric = pytest.importorskip("scipy.stats").hypergeom
    wrong, others_wrong = (data.draw(st.integers(0, size)) for size in (cases, others))
    ways = hypergeometric(cases + others, cases, wrong + others_wrong)
    known = ways.sf(wrong) + ways.pmf(wrong) / 2
    assert fisher_test(wrong, cases, others_wrong, others) == pytest.approx(known)

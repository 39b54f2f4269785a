"""The one interval: of shares against other implementations, and what holds of it everywhere."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats.intervals import effective_size, estimate_share, t_quantile
from tests.support.figures import ends, marks, share_of

CLUSTER = st.integers(1, 15).flatmap(
    lambda n: st.tuples(st.one_of(st.just(n), st.integers(0, n)), st.just(n))
)


def wrong(*numbers: int, n: int) -> list[tuple[int, int]]:
    return [(n - number, n) for number in numbers]


@pytest.mark.parametrize("freedom", [1, 1.3, 2, 2.7, 3, 4, 5, 9, 19, 53, 199, 1_000, 5_000])
def test_quantiles_are_scipys(freedom: float) -> None:
    known = pytest.importorskip("scipy.stats")
    for share in (0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999):
        assert t_quantile(share, freedom) == pytest.approx(known.t.ppf(share, freedom), rel=1e-11)


@pytest.mark.parametrize(("right", "n"), [(9, 9), (0, 9), (8, 9), (27, 54), (999, 1_000), (1, 1)])
def test_cases_of_runs_of_their_own_have_wilsons_interval(right: int, n: int) -> None:
    known = pytest.importorskip("statsmodels.stats.proportion")
    lower, upper = known.proportion_confint(right, n, method="wilson")
    bounds = share_of([(1, 1)] * right + [(0, 1)] * (n - right))
    assert ends(bounds) == pytest.approx((lower, upper))
    assert bounds.count == right


def test_bounds_are_the_formulas_written_out() -> None:
    """Four clusters of three, two with mistakes, from the rule and tables of t."""
    shares = [3, 3, 1, 2]
    mean = sum(shares) / 12
    alone = sum(share * (1 - mean) ** 2 + (3 - share) * mean**2 for share in shares)
    together = sum((share - 3 * mean) ** 2 for share in shares)
    seen = together / alone * 4 / 3 - 1
    fourth = sum(share * (1 - mean) ** 4 + (3 - share) * mean**4 for share in shares)
    rests_on = alone**2 / fourth / (1 + seen)
    known = rests_on / (rests_on + 1) * (4 - 1) / 4
    extra = known * seen + (1 - known) * 2 * 0.8
    part = (extra / (1 + extra)) ** 0.5
    z = 1.959963984540054 + (3.182446305284263 - 1.959963984540054) * part
    n = 12 / (1 + extra)
    middle = (0.75 + z * z / (2 * n)) / (1 + z * z / n)
    half = z * (0.75 * 0.25 / n + z * z / (4 * n * n)) ** 0.5 / (1 + z * z / n)
    bounds = share_of(wrong(0, 0, 2, 1, n=3))
    assert ends(bounds) == pytest.approx((middle - half, middle + half))


@given(st.lists(CLUSTER, min_size=2, max_size=12))
@settings(max_examples=200, deadline=None)
def test_swapping_right_and_wrong_mirrors_the_interval(clusters: list[tuple[int, int]]) -> None:
    lower, upper = ends(share_of(clusters))
    mirrored = ends(share_of([(n - right, n) for right, n in clusters]))
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=1e-9)
    right = sum(right for right, _ in clusters) / sum(n for _, n in clusters)
    assert lower <= right <= upper


def test_unanimous_clusters_say_as_much_whether_they_are_right_or_wrong() -> None:
    """114 cases in 20 clusters, each all right or all wrong: the large ones are right, or wrong."""
    sizes = [*range(1, 11), *range(1, 10), 14]
    large_right = marks([(n if n > 6 else 0, n) for n in sizes])
    large_wrong = marks([(0 if n > 6 else n, n) for n in sizes])
    assert sum(sizes) == 114
    assert effective_size(*large_right) == pytest.approx(effective_size(*large_wrong))


def test_cases_say_as_much_as_there_are_and_less_in_clusters() -> None:
    apart = marks([(1, 1)] * 3 + [(0, 1)] * 5)
    assert effective_size(*apart) == pytest.approx(8)
    assert effective_size(*marks([(4, 4), (0, 4)])) < 4
    assert effective_size(*marks([(4, 4)])) == 1


def test_large_cluster_among_small_ones_widens_the_interval() -> None:
    """Half of all cases are one cluster, so that there are hardly four clusters."""
    alike = share_of([*[(2, 2)] * 40, *[(0, 2)] * 9])
    half = share_of([(40, 49), *[(1, 1)] * 40, *[(0, 1)] * 9])
    assert ends(half)[0] < ends(alike)[0] - 0.1


def test_cases_that_go_together_say_less_than_cases_that_do_not() -> None:
    together = ends(share_of(wrong(*[6] * 5, *[0] * 45, n=6)))
    apart = ends(share_of(wrong(*[1] * 30, *[0] * 20, n=6)))
    assert together[1] - together[0] > 1.8 * (apart[1] - apart[0])


def test_order_and_names_of_clusters_change_nothing() -> None:
    are_right, runs = marks([(2, 3), (1, 1), (0, 4), (5, 5)])
    places = list(range(len(are_right)))
    random.Random(5).shuffle(places)
    shuffled = estimate_share(
        [are_right[place] for place in places], [7 + 2 * runs[place] for place in places]
    )
    assert ends(shuffled) == pytest.approx(ends(estimate_share(are_right, runs)))


def test_what_cannot_be_bounded_has_a_reason() -> None:
    assert share_of([]).reason == "no verdict was given"
    one_run = share_of([(3, 4)])
    assert (one_run.value, one_run.lower) == (0.75, None)
    assert one_run.interval_reason == "all verdicts come from one sample or cluster"


def test_a_hundred_thousand_cases_are_bounded_at_once() -> None:
    are_right = (np.random.default_rng(3).random(100_000) < 0.9).tolist()
    bounds = estimate_share(are_right, [number // 10 for number in range(100_000)])
    lower, upper = ends(bounds)
    assert 0.895 < lower < 0.9 < upper < 0.905

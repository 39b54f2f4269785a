from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats.formulas import normal_quantile, t_quantile, t_tail
from pytest_jrh.stats.intervals import (
    Tally,
    design_of,
    effective_size,
    estimate_share,
    intraclass_correlation,
    wilson_bounds,
)

CLUSTER = st.integers(1, 15).flatmap(
    lambda n: st.tuples(st.one_of(st.just(n), st.integers(0, n)), st.just(n))
)


def tallies(*wrong: int, n: int) -> list[Tally]:
    return [Tally(n - each, n) for each in wrong]


@pytest.mark.parametrize("freedom", [1, 1.3, 2, 2.7, 3, 4, 5, 9, 19, 53, 199, 1_000, 5_000])
def test_quantiles_are_scipys(freedom: float) -> None:
    known = pytest.importorskip("scipy.stats")
    for share in (0.01, 0.3, 0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999):
        assert t_quantile(share, freedom) == pytest.approx(known.t.ppf(share, freedom), rel=1e-11)
        value = known.t.ppf(share, freedom)
        assert t_tail(value, freedom) == pytest.approx(1 - share, abs=1e-11)
        assert normal_quantile(share) == pytest.approx(known.norm.ppf(share), abs=1e-12)


@pytest.mark.parametrize(("right", "n"), [(9, 9), (0, 9), (8, 9), (27, 54), (999, 1_000), (1, 1)])
def test_cases_of_runs_of_their_own_have_wilsons_interval(right: int, n: int) -> None:
    known = pytest.importorskip("statsmodels.stats.proportion")
    lower, upper = known.proportion_confint(right, n, method="wilson")
    bounds = estimate_share([Tally(1, 1)] * right + [Tally(0, 1)] * (n - right))
    assert bounds.lower == pytest.approx(lower)
    assert bounds.upper == pytest.approx(upper)


def test_bounds_are_the_formulas_of_rule_l1() -> None:
    """Four clusters of three, two with mistakes, written out from the rule and tables of t."""
    shares = [3, 3, 1, 2]
    mean = sum(shares) / 12
    between = sum(3 * (share / 3 - mean) ** 2 for share in shares) / 3
    within = sum(share * (3 - share) / 3 for share in shares) / 8
    icc = (between - within) / (between + 2 * within)
    independent = 3 / (1 + 2 * icc)
    known = independent / (independent + 1) * (4 - 1) / 4
    extra = 2 * (known * icc + (1 - known) * 0.6)
    part = (extra / (1 + extra)) ** 0.5
    z = 1.959963984540054 + (3.182446305284263 - 1.959963984540054) * part
    n = 12 / (1 + extra)
    middle = (0.75 + z * z / (2 * n)) / (1 + z * z / n)
    half = z * (0.75 * 0.25 / n + z * z / (4 * n * n)) ** 0.5 / (1 + z * z / n)
    bounds = estimate_share(tallies(0, 0, 2, 1, n=3))
    assert bounds.lower == pytest.approx(middle - half)
    assert bounds.upper == pytest.approx(middle + half)


@given(st.lists(CLUSTER, min_size=2, max_size=12), st.data())
@settings(max_examples=300, deadline=None)
def test_one_more_mistake_never_raises_either_bound(
    clusters: list[tuple[int, int]], data: st.DataObject
) -> None:
    before = estimate_share(Tally(*cluster) for cluster in clusters)
    places = [place for place, (right, _) in enumerate(clusters) if right]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    right, n = clusters[place]
    clusters[place] = (right - 1, n)
    after = estimate_share(Tally(*cluster) for cluster in clusters)
    assert before.lower is not None
    assert before.upper is not None
    assert after.lower is not None
    assert after.upper is not None
    assert after.lower <= before.lower + 1e-12
    assert after.upper <= before.upper + 1e-12
    right_now = sum(right for right, _ in clusters) / sum(n for _, n in clusters)
    assert after.lower <= right_now <= after.upper


@given(st.lists(CLUSTER, min_size=2, max_size=12))
@settings(max_examples=200, deadline=None)
def test_swapping_right_and_wrong_mirrors_the_interval(clusters: list[tuple[int, int]]) -> None:
    one = estimate_share(Tally(right, n) for right, n in clusters)
    other = estimate_share(Tally(n - right, n) for right, n in clusters)
    assert one.lower is not None
    assert one.upper is not None
    assert other.lower == pytest.approx(1 - one.upper, abs=1e-9)
    assert other.upper == pytest.approx(1 - one.lower, abs=1e-9)


def test_unanimous_clusters_say_as_much_whether_they_are_right_or_wrong() -> None:
    """114 cases in 20 clusters, each all right or all wrong: the large ones are right, or wrong."""
    sizes = [*range(1, 11), *range(1, 10), 14]
    large_right = [Tally(n if n > 6 else 0, n) for n in sizes]
    large_wrong = [Tally(0 if n > 6 else n, n) for n in sizes]
    assert sum(sizes) == 114
    assert effective_size(large_right) == pytest.approx(effective_size(large_wrong))


def test_large_cluster_among_small_ones_widens_the_interval() -> None:
    """Half of all cases are one cluster, so that there are hardly four clusters."""
    alike = estimate_share([*[Tally(2, 2)] * 40, *[Tally(0, 2)] * 9])
    half = estimate_share([Tally(40, 49), *[Tally(1, 1)] * 40, *[Tally(0, 1)] * 9])
    assert alike.lower is not None
    assert half.lower is not None
    assert half.lower < alike.lower - 0.1


def test_second_mistake_elsewhere_does_not_narrow_the_interval() -> None:
    """The correlation alone would raise the lower bound here, since it falls with the mistake."""
    one_wrong, two_wrong = tallies(1, *[0] * 9, n=11), tallies(1, 1, *[0] * 8, n=11)
    design = design_of([11] * 10)
    assert wilson_bounds(design, 2, 2)[0] > wilson_bounds(design, 1, 1)[0]
    assert estimate_share(two_wrong).lower == estimate_share(one_wrong).lower


@given(st.integers(2, 6), st.lists(st.integers(0, 6), min_size=2, max_size=8))
@settings(max_examples=100, deadline=None)
def test_correlation_is_that_of_the_analysis_of_variance(n: int, wrong: list[int]) -> None:
    wrong = [min(each, n) for each in wrong]
    cases, total, clusters = n * len(wrong), sum(wrong), len(wrong)
    design = design_of([n] * clusters)
    unlike = sum(each * (n - each) / (n - 1) for each in wrong)
    if total in (0, cases):
        assert intraclass_correlation(design, total, unlike) == 0
        return
    mean = total / cases
    between = sum(n * (each / n - mean) ** 2 for each in wrong) / (clusters - 1)
    within = sum(each * (n - each) / n for each in wrong) / (cases - clusters)
    expected = (between - within) / (between + (n - 1) * within)
    assert intraclass_correlation(design, total, unlike) == pytest.approx(max(0, expected))


def test_cases_that_go_together_say_less_than_cases_that_do_not() -> None:
    together = estimate_share(tallies(*[6] * 5, *[0] * 45, n=6))
    apart = estimate_share(tallies(*[1] * 30, *[0] * 20, n=6))
    assert together.lower is not None
    assert together.upper is not None
    assert apart.lower is not None
    assert apart.upper is not None
    assert together.upper - together.lower > 1.8 * (apart.upper - apart.lower)


def test_order_and_empty_clusters_change_nothing() -> None:
    given = [Tally(2, 3), Tally(1, 1), Tally(0, 4), Tally(5, 5)]
    shuffled = [*given, Tally(0, 0)]
    random.Random(5).shuffle(shuffled)
    assert estimate_share(shuffled) == estimate_share(given)


def test_what_cannot_be_bounded_has_a_reason() -> None:
    assert estimate_share([]).reason == "no verdict was given"
    assert estimate_share([Tally(0, 0)]).reason == "no verdict was given"
    one_run = estimate_share([Tally(3, 4)])
    assert (one_run.value, one_run.lower) == (0.75, None)
    assert one_run.interval_reason == "all verdicts come from one sample or cluster"

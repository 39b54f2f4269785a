"""The one interval, of shares, kappa, mean error and bias, against other implementations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats.intervals import differing_pairs, effective_size, majority_flip
from tests.support.figures import Runs, bias_of, ends, kappa_of, marks, mean_error_of, share_of

CLUSTER = st.integers(1, 15).flatmap(
    lambda n: st.tuples(st.one_of(st.just(n), st.integers(0, n)), st.just(n))
)


@pytest.mark.parametrize(("right", "n"), [(0, 9), (8, 9), (999, 1_000), (1, 1)])
def test_cases_of_runs_of_their_own_have_wilsons_interval(right: int, n: int) -> None:
    known = pytest.importorskip("statsmodels.stats.proportion")
    lower, upper = known.proportion_confint(right, n, method="wilson")
    bounds = share_of([(1, 1)] * right + [(0, 1)] * (n - right))
    assert ends(bounds) == pytest.approx((lower, upper))
    assert bounds.count == right


@given(st.lists(CLUSTER, min_size=2, max_size=12))
@settings(max_examples=100, deadline=None)
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


RUN = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6)


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
@settings(max_examples=100, deadline=None)
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

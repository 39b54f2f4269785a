from __future__ import annotations

import itertools
import random
from fractions import Fraction
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats import comparison as paired
from pytest_jrh.stats.comparison import holm, sign_flip_p

DIFFERENCES = st.lists(st.builds(Fraction, st.integers(-12, 12), st.integers(1, 12)), max_size=9)


def by_hand(differences: list[Fraction]) -> float:
    seen = abs(sum(differences, Fraction(0)))
    sums = list[Fraction]()
    for signs in itertools.product((1, -1), repeat=len(differences)):
        signed = (s * each for s, each in zip(signs, differences, strict=True))
        sums.append(abs(sum(signed, Fraction(0))))
    larger, equal = sum(each > seen for each in sums), sum(each == seen for each in sums)
    return (larger + equal / 2) / len(sums)


@given(DIFFERENCES)
@settings(max_examples=100, deadline=None)
def test_every_pattern_of_signs_is_counted(differences: list[Fraction]) -> None:
    expected = by_hand(differences) if any(differences) else 1.0
    assert sign_flip_p(differences) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("regressions", "fixes"), [(1, 0), (6, 0), (9, 2), (5, 5), (40, 22), (0, 3)]
)
def test_one_case_a_cluster_is_mcnemars_exact_mid_p(regressions: int, fixes: int) -> None:
    known = pytest.importorskip("scipy.stats")
    n = regressions + fixes
    exact = known.binomtest(regressions, n).pvalue
    seen = known.binom.pmf(regressions, n, 0.5)
    differences = [1] * regressions + [-1] * fixes + [0] * 30
    # Where both are equal the one pattern of counts is not the mirror of another.
    expected = exact - (seen if regressions != fixes else seen / 2)
    assert sign_flip_p(differences) == pytest.approx(expected)


def test_clusters_that_move_as_a_whole_are_one_change_each() -> None:
    """Twelve cases of each of five runs: McNemar's p would be 2 ** -59."""
    assert sign_flip_p([12] * 5) == sign_flip_p([1] * 5) == 1 / 32


def test_many_clusters_are_counted_and_uneven_ones_drawn_with_a_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(4)
    few = [rng.choice((-2, -1, 1, 1, 2, 3)) for _ in range(1_300)]
    assert 0 < sign_flip_p(few) < 1e-6
    uneven = [Fraction(rng.randint(-6, 7), rng.randint(7, 13)) for _ in range(18)]
    counted = sign_flip_p(uneven)
    monkeypatch.setattr(paired, "_EXACT_CLUSTERS", 5)
    monkeypatch.setattr(paired, "_MOST_ADDITIONS", 5)
    assert sign_flip_p(uneven, 1) != sign_flip_p(uneven, 2)
    assert sign_flip_p(uneven, 1) == sign_flip_p(uneven, 1) == pytest.approx(counted, abs=0.006)


def test_nothing_changed_is_a_p_of_one() -> None:
    assert sign_flip_p([]) == sign_flip_p([0, 0]) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(deadline=None)
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    known = pytest.importorskip("statsmodels.stats.multitest")
    # It collects garbage on each call, which takes half a second where much is imported.
    with mock.patch("gc.collect"):
        adjusted = known.multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(adjusted)

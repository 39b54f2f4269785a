"""The interval of kappa, mean error and bias, and of real judges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.intervals import FEWEST, rare_row
from pytest_jrh.stats.intervals import Estimate, Pair
from tests.support.figures import Runs, bias_of, describe, ends, kappa_of, mean_error_of
from tests.support.made_cases import make_result, make_spec

TRAJECTORIES = Path(__file__).parents[3] / "shared/data/trajectory-judge"
RUN = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6)
RIGHT: list[Pair] = [(0, 0), (1, 1)]
WRONG: list[Pair] = [(0, 1), (1, 1)]


def test_kappa_of_independent_cases_has_the_variance_of_the_textbook() -> None:
    """Fleiss, Cohen and Everitt 1969, Psychol Bull 72:323-327, by statsmodels."""
    known = pytest.importorskip("statsmodels.stats.inter_rater")
    table = np.array([[400, 60], [40, 300]])
    pairs = [
        (row, column) for row in (0, 1) for column in (0, 1) for _ in range(table[row, column])
    ]
    lower, upper = ends(kappa_of([[pair] for pair in pairs]))
    found = known.cohens_kappa(table)
    assert kappa_of([pairs]).value == pytest.approx(found.kappa)
    assert upper - lower == pytest.approx(2 * 1.96 * found.std_kappa, rel=0.01)


def test_errors_of_more_levels_widen_the_interval() -> None:
    rest: list[list[Pair]] = [[(1, 1), (4, 4), (2, 2)]] * 9
    one = mean_error_of([[(2, 3), (2, 2), (3, 3)], *rest])
    four = mean_error_of([[(0, 4), (2, 2), (3, 4)], *rest])
    assert one.value == pytest.approx(1 / 30)
    assert ends(four)[1] > 2 * ends(one)[1]


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


@pytest.mark.parametrize("estimate", [kappa_of, mean_error_of, bias_of])
def test_missing_intervals_say_why(estimate: Callable[[Runs], Estimate]) -> None:
    assert estimate([]).reason == "no verdict was given"
    assert estimate([RIGHT]).interval_reason == "all verdicts come from one sample or cluster"
    assert estimate([RIGHT] * 8 + [WRONG]).lower is not None


def test_perfect_judge_has_intervals_of_every_figure() -> None:
    kappa, error, bias = kappa_of([RIGHT] * 9), mean_error_of([RIGHT] * 9), bias_of([RIGHT] * 9)
    assert kappa.upper == 1
    assert 0.2 < ends(kappa)[0] < 0.9
    assert error.lower == 0
    assert 0.1 < ends(error)[1] < 0.6
    lower, upper = ends(bias)
    assert -0.5 < lower == pytest.approx(-upper)
    assert lower < -0.02


def test_an_inverted_judge_has_an_interval_of_kappa_too() -> None:
    inverted: list[Pair] = [(0, 1), (1, 0)]
    kappa = kappa_of([inverted] * 9)
    assert (kappa.value, kappa.lower) == (-1, -1)
    assert -0.95 < ends(kappa)[1] < 0


def test_kappa_of_one_class_has_no_value() -> None:
    found = kappa_of([[(1, 1)]] * 6)
    assert found.reason == "one class only: labels and answers are all the same"


def test_kappa_is_covered_where_violations_are_rare() -> None:
    cells = rare_row(FEWEST, sessions=60)
    assert min(cell.covered for cell in cells.values()) > 0.88
    assert np.mean([cell.width for cell in cells.values()]) < 1.3


def test_bounds_do_not_leave_what_the_figures_can_be() -> None:
    """Nearly all cases are wrong by four levels: wider bounds would leave the scale."""
    right, wrong = [(0, 0), (4, 4), (0, 1)], [(0, 4), (4, 0)]
    judged = [
        make_result(
            make_spec(run_id=f"run-{run}", target_score=label),
            "agree" if label == answer else "disagree",
            answer,
        )
        for run, pairs in enumerate([right, *[wrong] * 5])
        for label, answer in pairs
    ]
    figures = describe(judged).figures
    kappa, error = figures["weighted_kappa"], figures["mean_absolute_error"]
    assert -1 <= ends(kappa)[0] < -0.9
    assert 3.5 < ends(error)[1] <= 4

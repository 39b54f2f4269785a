from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats.formulas import Estimate, Pair
from pytest_jrh.stats.intervals import (
    Sums,
    Tally,
    estimate_bias,
    estimate_kappa,
    estimate_mean_error,
    estimate_share,
    kappa_p,
    sums_of,
)
from pytest_jrh.stats.statistics import describe
from tests.support.made_cases import make_result, make_spec

TRAJECTORIES = Path(__file__).parents[3] / "shared/data/trajectory-judge"
RUN = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6)


def test_cohens_kappa_carries_the_interval_of_the_accuracy_over() -> None:
    runs = [[(1, 1), (0, 0), (1, 1), (0, 0)]] * 8 + [[(1, 0), (0, 0)], [(1, 1), (0, 1)]]
    accuracy = estimate_share(Tally(sum(a == b for a, b in run), len(run)) for run in runs)
    kappa = estimate_kappa(map(sums_of, runs))
    assert accuracy.lower is not None
    assert accuracy.upper is not None
    assert kappa.value == pytest.approx((34 / 36 - 0.5) / 0.5)
    assert kappa.lower == pytest.approx((accuracy.lower - 0.5) / 0.5)
    assert kappa.upper == pytest.approx((accuracy.upper - 0.5) / 0.5)


def test_kappa_p_is_the_score_test_of_the_accuracy() -> None:
    """36 of 60 right where chance gives half: kappa 0.2, held against a sound one of 0.6."""
    known = pytest.importorskip("scipy.stats")
    pairs = [(1, 1), (0, 0)] * 18 + [(1, 0), (0, 1)] * 12
    p_value = kappa_p([sums_of([pair]) for pair in pairs], 0.6)
    z = (0.4 - 0.2) / (0.2 * 0.8 / 60) ** 0.5
    assert p_value == pytest.approx(known.t.sf(z, 59))


def test_errors_of_one_size_carry_the_interval_over_and_others_widen_it() -> None:
    by_one = [[(2, 3), (2, 2), (3, 3)], *[[(1, 1), (4, 4), (2, 2)]] * 9]
    by_up_to_four = [[(0, 4), (2, 2), (3, 4)], *[[(1, 1), (4, 4), (2, 2)]] * 9]
    one, four = (estimate_mean_error(map(sums_of, runs)) for runs in (by_one, by_up_to_four))
    assert one.value == pytest.approx(1 / 30)
    assert one.upper is not None
    assert four.upper is not None
    assert four.upper > 3 * one.upper


@given(st.lists(RUN, min_size=5, max_size=12))
@settings(max_examples=100, deadline=None)
def test_intervals_hold_their_figures(runs: list[list[Pair]]) -> None:
    pairs = [pair for run in runs for pair in run]
    errors = [answer - label for label, answer in pairs]
    clusters = [sums_of(run) for run in runs]
    mean_error, bias = estimate_mean_error(clusters), estimate_bias(clusters)
    assert mean_error.value == sum(map(abs, errors)) / len(pairs)
    assert bias.value == sum(errors) / len(pairs)
    for estimate in (estimate_kappa(clusters), mean_error, bias):
        if estimate.lower is None or estimate.upper is None:
            assert estimate.why
        else:
            assert estimate.value is not None
            assert estimate.lower - 1e-9 <= estimate.value <= estimate.upper + 1e-9


def test_bias_of_runs_of_one_size_is_students_t_over_their_means() -> None:
    known = pytest.importorskip("scipy.stats")
    runs = [
        [(1, 1 + error), (2, 2 + other)]
        for error, other in zip([0, 1, 2, 0, -1, 1], [1] * 6, strict=True)
    ]
    means = [sum(answer - label for label, answer in run) / 2 for run in runs]
    middle = sum(means) / 6
    spread = sum((mean - middle) ** 2 for mean in means) / 5 / 6
    half = known.t.ppf(0.975, 5) * (spread + 1 / 12**2) ** 0.5
    found = estimate_bias(map(sums_of, runs))
    assert found.lower == pytest.approx(middle - half)
    assert found.upper == pytest.approx(middle + half)


@pytest.mark.parametrize("estimate", [estimate_kappa, estimate_mean_error, estimate_bias])
def test_missing_intervals_say_why(
    estimate: Callable[[list[Sums]], Estimate],
) -> None:
    right, wrong = sums_of([(0, 0), (1, 1)]), sums_of([(0, 1), (1, 1)])
    assert estimate([]) == Estimate(why="no verdict was given")
    assert estimate([right]).interval_reason is not None
    assert estimate([right] * 8 + [wrong]).lower is not None


def test_bias_needs_five_clusters_and_a_mistake() -> None:
    right, wrong = sums_of([(0, 0), (1, 1)]), sums_of([(0, 1), (1, 1)])
    few = estimate_bias([right, wrong, right, wrong])
    assert few.value is not None
    assert few.interval_reason == "fewer than 5 samples or clusters"
    assert estimate_bias([right] * 9).interval_reason == "no verdict is wrong, so nothing varies"


def test_perfect_judge_has_intervals_of_kappa_and_mean_error() -> None:
    right = [sums_of([(0, 0), (1, 1)])] * 9
    accuracy = estimate_share([Tally(2, 2)] * 9)
    assert accuracy.lower is not None
    kappa, error = estimate_kappa(right), estimate_mean_error(right)
    assert kappa.lower == pytest.approx(2 * accuracy.lower - 1)
    assert error.upper == pytest.approx(1 - accuracy.lower)
    assert (kappa.upper, error.lower) == (1, 0)


def test_kappa_of_one_class_has_no_value() -> None:
    one = sums_of([(1, 1)])
    assert estimate_kappa([one] * 6).reason == "one class only: labels and answers are all the same"


# Judge: true positives, false positives, false negatives, true negatives, and its kappa.
JUDGES = {
    "programmatic": (200, 0, 100, 100, 0.500),
    "outcome:qwen2.5:14b": (184, 33, 116, 67, 0.222),
    "step:qwen2.5:14b": (257, 0, 43, 100, 0.749),
    "step:llama3.1:8b": (297, 100, 3, 0, -0.015),
    "selfcons3:qwen2.5:14b": (253, 1, 47, 99, 0.723),
}


@pytest.mark.parametrize("judge", JUDGES)
def test_kappa_of_real_judges_from_their_tables(judge: str) -> None:
    caught, alarms, missed, passed, expected = JUDGES[judge]
    pairs = [(1, 1)] * caught + [(0, 1)] * alarms + [(1, 0)] * missed + [(0, 0)] * passed
    kappa = estimate_kappa([sums_of(pairs)]).value
    assert kappa == pytest.approx(expected, abs=0.0005)


@pytest.mark.skipif(
    not TRAJECTORIES.is_dir(), reason="../shared/data/trajectory-judge is not there"
)
@pytest.mark.parametrize("judge", JUDGES)
def test_real_verdicts_give_those_tables_and_intervals_around_the_figures(judge: str) -> None:
    lines = (TRAJECTORIES / "trajectories.jsonl").read_text("utf-8").splitlines()
    runs = {run["trajectory_id"]: run for run in map(json.loads, lines)}
    clusters = defaultdict[str, list[Pair]](list)
    lines = (TRAJECTORIES / "verdicts.jsonl").read_text("utf-8").splitlines()
    for verdict in map(json.loads, lines):
        if verdict["judge_id"] == judge:
            run = runs[verdict["trajectory_id"]]
            clusters[run["instance_id"]].append(
                (int(run["label"]["faulty"]), int(verdict["faulty"]))
            )
    pairs = [pair for cluster in clusters.values() for pair in cluster]
    table = tuple(pairs.count(cell) for cell in ((1, 1), (0, 1), (1, 0), (0, 0)))
    assert table == JUDGES[judge][:4]
    kappa = estimate_kappa(map(sums_of, clusters.values()))
    assert kappa.lower is not None
    assert kappa.upper is not None
    assert kappa.lower < JUDGES[judge][4] < kappa.upper < kappa.lower + 0.35
    right = [Tally(sum(a == b for a, b in each), len(each)) for each in clusters.values()]
    accuracy = estimate_share(right)
    assert accuracy.lower is not None
    assert accuracy.upper is not None
    assert accuracy.lower < sum(each.right for each in right) / 400 < accuracy.upper


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
    assert (kappa.lower, error.upper) == (-1, 4)

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_jrh.stats.comparison import Change, sign_flip_p, unseen_drop
from pytest_jrh.stats.planning import (
    ForeseenSuite,
    losses_of,
    pass_probability,
    power,
    prospects,
    repeats_to_pass,
    runs_for,
    runs_to_pass,
    visible_drop,
)


def session(
    rng: random.Random, sizes: Sequence[int], drop: float, flip: float, repeats: int
) -> list[int]:
    """What each run loses, verdict by verdict; broken cases of a run correlate with 0.3."""
    share = min(1.0, drop / (1 - 2 * flip))
    losses = []
    for size in sizes:
        chance = rng.betavariate(share * 7 / 3, (1 - share) * 7 / 3) if 0 < share < 1 else share
        loss = 0
        for _ in range(size):
            wrong = 1 - flip if rng.random() < chance else flip
            loss += sum(rng.random() < wrong for _ in range(repeats))
            loss -= sum(rng.random() < flip for _ in range(repeats))
        losses.append(loss)
    return losses


def brute_force(suite: ForeseenSuite, drop: float, flip: float, sessions: int = 400) -> float:
    rng = random.Random(len(suite.sizes))
    found = 0
    for _ in range(sessions):
        losses = session(rng, suite.sizes, drop, flip, suite.repeats)
        found += sum(losses) > 0 and sign_flip_p(losses) < 0.05
    return found / sessions


# More is in `python -m benchmarks validity`.
@pytest.mark.parametrize(
    ("sizes", "flip", "repeats", "drop"),
    [
        ((1,) * 20, 0.0, 1, 0.3),
        ((2,) * 10, 0.1, 3, 0.4),
        ((6,) * 9, 0.05, 1, 0.3),
        ((1, 3, 6) * 10, 0.05, 3, 0.12),
        ((1,) * 100, 0.0, 1, 0.07),
        ((40,) * 10, 0.05, 1, 0.12),
        ((60, *(1,) * 30), 0.02, 1, 0.2),
    ],
)
def test_power_is_that_of_sessions_simulated_case_by_case(
    sizes: tuple[int, ...], flip: float, repeats: int, drop: float
) -> None:
    suite = ForeseenSuite(sizes, repeats, 2 * flip * (1 - flip))
    found = brute_force(suite, drop, flip)
    # Three standard errors of 400 sessions.
    assert power(suite, drop) == pytest.approx(found, abs=0.075)


def test_power_grows_with_drop_runs_and_repeats_and_falls_with_flicker() -> None:
    suite = ForeseenSuite((6,) * 30, flicker=0.095)
    assert power(suite, 0.0) < 0.05
    assert power(suite, 0.05) < power(suite, 0.1) < power(suite, 0.2)
    assert power(suite, 0.1) < power(suite.times(120), 0.1)
    assert power(suite, 0.1) < power(replace(suite, repeats=3), 0.1)
    assert power(suite, 0.1) < power(replace(suite, flicker=0.0), 0.1)


def test_same_seed_gives_the_same_power() -> None:
    suite = ForeseenSuite((1, 3, 6) * 10, flicker=0.05)
    assert power(suite, 0.1) == power(suite, 0.1)
    assert visible_drop(suite) == visible_drop(suite)


@pytest.mark.parametrize("sizes", [(1, 3, 6) * 10, (2,) * 400, (30, 80, 250) * 5])
def test_visible_drop_and_runs_are_where_power_is_eighty_percent(sizes: tuple[int, ...]) -> None:
    suite = ForeseenSuite(sizes, flicker=0.05)
    drop = visible_drop(suite)
    assert drop is not None
    assert power(suite, drop) == pytest.approx(0.8, abs=0.02)
    runs = runs_for(0.05, suite)
    assert runs is not None
    assert power(suite.times(runs), 0.05) == pytest.approx(0.8, abs=0.05)


def test_runs_are_spread_over_the_sizes_of_the_suite() -> None:
    suite = ForeseenSuite((1, 3, 6) * 10)
    assert sum(suite.times(45).sizes) == 45 / 30 * sum(suite.sizes)


@pytest.mark.parametrize("size", [6, 12, 40, 300])
def test_losses_of_a_run_have_the_moments_that_they_should(size: int) -> None:
    share, flip, repeats = 0.1, 0.05, 3
    losses, shares = losses_of(size, share, flip, repeats)
    assert sum(shares) == pytest.approx(1)
    mean = float(losses @ shares)
    assert mean == pytest.approx(share * (1 - 2 * flip) * size * repeats, rel=0.03)
    square = float(losses**2 @ shares)
    broken = share * (1 - share) * size * (1 + (size - 1) * 0.3)
    flips = 2 * size * repeats * flip * (1 - flip)
    variance = (repeats * (1 - 2 * flip)) ** 2 * broken + flips
    assert square - mean**2 == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize("sizes", [(1,) * 20, (2,) * 10, (1, 3, 6) * 5, (6,) * 50])
def test_more_flicker_never_finds_a_smaller_drop(sizes: tuple[int, ...]) -> None:
    drops = []
    for flicker in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
        [prospect] = prospects({"": ForeseenSuite(sizes, 3, flicker)})
        drops.append(prospect.outlooks[0].visible or 1.0)
    # But for the simulation itself.
    assert all(more > 0.97 * less for less, more in itertools.pairwise(drops))


def test_suite_that_is_too_small_sees_no_drop() -> None:
    assert visible_drop(ForeseenSuite(())) is None
    assert visible_drop(ForeseenSuite((1,) * 4)) is None
    assert visible_drop(ForeseenSuite((54,))) is None
    assert visible_drop(ForeseenSuite((1,) * 40, flicker=0.5)) is None
    assert runs_for(0.05, ForeseenSuite(())) is None
    assert runs_for(0.95, ForeseenSuite((1,) * 40, flicker=0.2)) is None
    assert runs_for(1e-6, ForeseenSuite((1,))) is None
    assert runs_for(1e-300, ForeseenSuite((6,) * 10)) is None


@pytest.mark.parametrize(
    ("sizes", "flip", "repeats"),
    [((1,) * 100, 0.02, 1), ((6,) * 50, 0.05, 1), ((1, 3, 6) * 20, 0.1, 5), ((1,) * 60, 0.0, 1)],
)
def test_an_unchanged_judge_passes_as_often_as_the_gate_lets_it(
    sizes: tuple[int, ...], flip: float, repeats: int
) -> None:
    suite = ForeseenSuite(sizes, repeats, 2 * flip * (1 - flip))
    rng, passed = random.Random(2), 0
    for _ in range(400):
        losses = session(rng, sizes, 0.0, flip, repeats)
        changes = [Change(loss / repeats, n) for loss, n in zip(losses, sizes, strict=True)]
        passed += (unseen_drop(changes).upper or 1) < 0.05
    assert pass_probability(suite, 0.05) == pytest.approx(passed / 400, abs=0.075)


def test_runs_and_repeats_let_an_unchanged_judge_pass() -> None:
    suite = ForeseenSuite((1,) * 100, flicker=0.0392)
    assert pass_probability(suite, 0.05) < 0.8
    runs, repeats = runs_to_pass(suite, 0.05), repeats_to_pass(suite, 0.05)
    assert runs is not None
    assert repeats is not None
    assert (
        pass_probability(suite.times(runs), 0.05) >= 0.8 > pass_probability(suite.times(100), 0.05)
    )
    assert pass_probability(replace(suite, repeats=repeats), 0.05) >= 0.8
    assert pass_probability(replace(suite, repeats=repeats - 2), 0.05) < 0.8


def test_no_repeats_make_up_for_too_few_runs() -> None:
    assert repeats_to_pass(ForeseenSuite((1,) * 20, flicker=0.1), 0.05) is None
    assert runs_to_pass(ForeseenSuite(()), 0.05) is None
    assert runs_to_pass(ForeseenSuite((1,) * 9, flicker=0.5), 1e-5) is None
    assert pass_probability(ForeseenSuite((9,)), 0.05) == 0

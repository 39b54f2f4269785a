"""Which drop over runs a comparison leaves unseen, and what proves that no larger one is there."""

from __future__ import annotations

import random

import pytest

from pytest_jrh.stats.intervals import Change, unseen_drop


def session(
    rng: random.Random, runs: int, drop: float, *, flip: float = 0.05, whole: bool = False
) -> list[Change]:
    """Runs of six cases with three repeats on both sides; a drop breaks cases, or whole runs."""
    changes = []
    share = drop / (1 - 2 * flip)
    for _ in range(runs):
        loss = 0.0
        of_run = rng.random() < share
        for _ in range(6):
            broken = of_run if whole else rng.random() < share
            before = sum(rng.random() >= flip for _ in range(3))
            loss += before - sum((rng.random() >= flip) != broken for _ in range(3))
        changes.append(Change(loss / 3, 6))
    return changes


def proven(
    drop: float, sessions: int = 150, runs: int = 80, *, whole: bool = False, flip: float = 0.05
) -> float:
    """The share of sessions that prove a drop of less than 5 points."""
    rng = random.Random(8)
    bounds = [
        unseen_drop(session(rng, runs, drop, flip=flip, whole=whole)).upper for _ in range(sessions)
    ]
    return sum(bound is not None and bound < 0.05 for bound in bounds) / sessions


def test_unchanged_judge_is_proven_and_one_that_is_worse_is_not() -> None:
    assert proven(0.0) >= 0.75
    assert proven(0.05) <= 0.05
    assert proven(0.1) == 0


@pytest.mark.parametrize("runs", [25, 60, 100])
def test_a_drop_that_breaks_whole_runs_is_proven_as_rarely(runs: int) -> None:
    assert proven(0.05, runs=runs, whole=True, flip=0.0, sessions=400) <= 0.08


def test_few_runs_without_a_change_are_no_proof() -> None:
    bounds = [unseen_drop([Change(0.0, 6)] * runs).upper or 1.0 for runs in (5, 10, 25, 55, 100)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[2] > 0.1
    assert bounds[3] < 0.05


def test_better_judge_is_proven_sooner() -> None:
    better, same = unseen_drop([Change(-0.1, 1)] * 30), unseen_drop([Change(0.0, 1)] * 30)
    assert better.upper is not None
    assert better.upper < (same.upper or 0)


def test_the_bound_is_the_drop_that_is_as_large_as_its_own_bound() -> None:
    changes = [Change(1.0, 2), *[Change(0.0, 2)] * 39]
    found = unseen_drop(changes)
    assert found.value == pytest.approx(1 / 80)
    assert found.upper is not None
    assert 1 / 80 < found.upper < 0.12
    assert (unseen_drop(changes, 0.99).upper or 0) > found.upper


def test_what_cannot_be_bounded_says_why() -> None:
    assert unseen_drop([Change(0.0, 9)]).why == "all cases come from one source run"
    assert unseen_drop([]).why == "no case could be compared"
    assert unseen_drop([Change(0.0, 0)] * 3).why == "no case could be compared"


def test_errors_of_an_ordinal_judge_may_rise_by_more_than_one_level() -> None:
    found = unseen_drop([Change(9.0, 3)] * 20)
    assert found.value == 3
    assert found.upper == pytest.approx(3)

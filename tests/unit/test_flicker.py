from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.stats.intervals import (
    Bounds,
    RepeatedCase,
    Tally,
    differing_pairs,
    false_alarm_of_snapshot,
    flicker,
    flip_probability,
    majority_flip,
    share_bounds,
)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=7))
def test_differing_pairs_are_the_share_of_ordered_pairs(scores: list[int]) -> None:
    pairs = list(itertools.permutations(scores, 2))
    assert differing_pairs(scores) == pytest.approx(sum(a != b for a, b in pairs) / len(pairs))


def test_flicker_of_two_repeats_has_the_interval_of_any_share() -> None:
    cases = [RepeatedCase(run, (1, int(run % 4 > 0))) for run in range(40)]
    found = flicker(cases)
    assert (found.value, found.cases, found.flickering) == (0.25, 40, 10)
    known = share_bounds([Tally(int(run % 4 == 0), 1) for run in range(40)])
    assert found.bounds.lower == pytest.approx(known.lower)
    assert found.bounds.upper == pytest.approx(known.upper)


def test_flicker_of_three_repeats_is_never_bounded_above_what_it_can_be() -> None:
    found = flicker(RepeatedCase(run, (0, 1, 1)) for run in range(20))
    assert found.value == pytest.approx(2 / 3)
    assert found.bounds.upper == pytest.approx(2 / 3)
    scores = flicker(RepeatedCase(run, (0, 1, 2)) for run in range(20))
    assert (scores.value, scores.bounds.upper) == (1, 1)
    # On a scale of more scores than were given, more could differ.
    scale = flicker(RepeatedCase(run, (0, 1, 1), binary=False) for run in range(20))
    assert scale.value == pytest.approx(2 / 3)
    assert scale.bounds.upper is not None
    assert 2 / 3 < scale.bounds.upper < 1


def test_cases_asked_once_say_nothing_about_flicker() -> None:
    cases = [RepeatedCase("a", (1,)), RepeatedCase("b", ())]
    assert flicker(cases).value is None
    assert flicker(cases).bounds == Bounds(reason="no case was judged more than once")
    one_run = [RepeatedCase("a", (1, 0)), RepeatedCase("a", (1, 1))]
    assert flicker(one_run).value == 0.5
    assert flicker(one_run).bounds.reason == "all cases come from one sample or cluster"


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_flicker_is_found_within_its_interval(repeats: int) -> None:
    rng, hits, sessions = random.Random(repeats), 0, 300
    truth = 2 * 0.1 * 0.9
    for _ in range(sessions):
        found = flicker(
            RepeatedCase(run, tuple(int(rng.random() < 0.1) for _ in range(repeats)))
            for run in range(25)
            for _ in range(2)
        )
        assert found.bounds.lower is not None
        assert found.bounds.upper is not None
        hits += found.bounds.lower <= truth <= found.bounds.upper
    assert hits / sessions > 0.93


@pytest.mark.parametrize("flip", [0, 0.05, 0.2, 0.5])
def test_flip_probability_is_what_gives_the_flicker(flip: float) -> None:
    assert flip_probability(2 * flip * (1 - flip)) == pytest.approx(flip)
    assert majority_flip(flip, 1) == pytest.approx(flip)
    assert majority_flip(flip, 3) == pytest.approx(3 * flip**2 * (1 - flip) + flip**3)


@pytest.mark.parametrize(("cases", "share"), [(20, 0.62), (54, 0.93), (100, 0.992)])
def test_snapshot_fails_an_unchanged_judge_as_often_as_was_measured(
    cases: int, share: float
) -> None:
    flicker_of_five_percent = 2 * 0.05 * 0.95
    found = false_alarm_of_snapshot(cases, flicker_of_five_percent)
    assert found == pytest.approx(share, abs=0.005)
    assert false_alarm_of_snapshot(cases, flicker_of_five_percent, repeats=3) < 0.6 * found
    assert false_alarm_of_snapshot(cases, 0) == 0

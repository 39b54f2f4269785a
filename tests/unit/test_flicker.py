from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.stats.intervals import (
    RepeatedCase,
    differing_pairs,
    estimate_flicker,
    majority_flip,
)
from tests.support.figures import share_of


@given(st.lists(st.integers(0, 4), min_size=2, max_size=7))
def test_differing_pairs_are_the_share_of_ordered_pairs(scores: list[int]) -> None:
    pairs = list(itertools.permutations(scores, 2))
    assert differing_pairs(scores) == pytest.approx(sum(a != b for a, b in pairs) / len(pairs))


def test_flicker_of_two_repeats_has_the_interval_of_any_share() -> None:
    cases = [RepeatedCase(run, (1, int(run % 4 > 0))) for run in range(40)]
    found = estimate_flicker(cases)
    assert (found.value, found.n, found.count) == (0.25, 40, 10)
    known = share_of([(int(run % 4 == 0), 1) for run in range(40)])
    assert found.lower == pytest.approx(known.lower)
    assert found.upper == pytest.approx(known.upper)


def test_flicker_of_three_repeats_is_never_bounded_above_what_it_can_be() -> None:
    found = estimate_flicker(RepeatedCase(run, (0, 1, 1)) for run in range(20))
    assert found.value == pytest.approx(2 / 3)
    assert found.upper == pytest.approx(2 / 3)
    scores = estimate_flicker(RepeatedCase(run, (0, 1, 2)) for run in range(20))
    assert (scores.value, scores.upper) == (1, 1)
    # On a scale of more scores than were given, more could differ.
    scale = estimate_flicker(RepeatedCase(run, (0, 1, 1), binary=False) for run in range(20))
    assert scale.value == pytest.approx(2 / 3)
    assert scale.upper is not None
    assert 2 / 3 < scale.upper < 1


def test_scores_out_of_a_binary_scale_flicker_within_an_interval() -> None:
    cases = [RepeatedCase(f"run-{number}", (0, 1, 2), binary=True) for number in range(8)]
    flicker = estimate_flicker(cases)
    assert flicker.value == flicker.upper == 1
    assert flicker.lower is not None
    assert 0 < flicker.lower < 1


def test_cases_asked_once_say_nothing_about_flicker() -> None:
    cases = [RepeatedCase("a", (1,)), RepeatedCase("b", ())]
    assert estimate_flicker(cases).value is None
    assert estimate_flicker(cases).reason == "no case was judged more than once"
    one_run = [RepeatedCase("a", (1, 0)), RepeatedCase("a", (1, 1))]
    assert estimate_flicker(one_run).value == 0.5
    assert (
        estimate_flicker(one_run).interval_reason == "all verdicts come from one sample or cluster"
    )


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_flicker_is_found_within_its_interval(repeats: int) -> None:
    rng, hits, sessions = random.Random(repeats), 0, 300
    truth = 2 * 0.1 * 0.9
    for _ in range(sessions):
        found = estimate_flicker(
            RepeatedCase(run, tuple(int(rng.random() < 0.1) for _ in range(repeats)))
            for run in range(25)
            for _ in range(2)
        )
        assert found.lower is not None
        assert found.upper is not None
        hits += found.lower <= truth <= found.upper
    assert hits / sessions > 0.93


@pytest.mark.parametrize("flip", [0, 0.05, 0.2, 0.5])
def test_the_chance_of_a_majority_to_flip_follows_from_the_flicker(flip: float) -> None:
    flicker = 2 * flip * (1 - flip)
    assert majority_flip(flicker, 1) == pytest.approx(flip)
    assert majority_flip(flicker, 3) == pytest.approx(3 * flip**2 * (1 - flip) + flip**3)

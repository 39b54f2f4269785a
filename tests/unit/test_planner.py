"""What a suite can show, from its cases to the sentences (rule M6)."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from pytest_jrh.reports.planner import prospect_sentences
from pytest_jrh.stats.exchange import CaseErrors, compare_sets
from pytest_jrh.stats.intervals import Change, unseen_drop
from pytest_jrh.stats.planning import (
    CaseClass,
    ClassProspect,
    ForeseenSuite,
    PlannedCase,
    Prospect,
    foreseen,
    power,
    prospects,
    runs_to_prove,
    visible_drop,
)


def cases(
    judge: str, runs: int, size: int, *scores: int, kind: CaseClass = "violated"
) -> list[PlannedCase]:
    return [PlannedCase(judge, kind, run, scores) for run in range(runs) for _ in range(size)]


def test_cases_are_counted_by_judge_class_and_run_and_repeats_tell_the_flicker() -> None:
    planned = foreseen(
        [
            *cases("a", 3, 2),
            *cases("a", 2, 1, kind="satisfied"),
            *cases("b", 2, 1, 1, 0, 1),
            *cases("b", 1, 4, 0, 0),
        ],
        lambda _: 3,
    )
    assert planned["a"] == (
        ("violated", ForeseenSuite((2, 2, 2), 3, None, among=3)),
        ("satisfied", ForeseenSuite((1, 1), 3, None, among=3)),
    )
    [(_, suite)] = planned["b"]
    assert suite.sizes == (1, 5)
    assert suite.flicker == pytest.approx(2 / 3 * 2 / 6)


def test_judges_that_are_alike_share_a_prospect() -> None:
    [both] = prospects(foreseen([*cases("a", 10, 2), *cases("b", 10, 2)], lambda _: 1))
    assert both.judges == ("a", "b")
    assert both.goal == 0.05
    [violated] = both.classes
    low, guessed, high = violated.drops
    assert low is not None
    assert guessed is not None
    assert high is not None
    assert low <= 1.03 * guessed <= 1.06 * high


def brute_force(suite: ForeseenSuite, drop: float, sessions: int = 150) -> float:
    """The share of sessions, drawn verdict by verdict, in which the gate's test finds a drop."""
    rng, found = random.Random(3), 0
    share = min(1.0, drop / (1 - 2 * suite.flip))
    for _ in range(sessions):
        errors = []
        for size in suite.sizes:
            chance = rng.betavariate(share * 7 / 3, (1 - share) * 7 / 3)
            for _ in range(size):
                wrong = 1 - suite.flip if rng.random() < chance else suite.flip
                before = tuple(int(rng.random() < suite.flip) for _ in range(suite.repeats))
                now = tuple(int(rng.random() < wrong) for _ in range(suite.repeats))
                errors.append(CaseErrors(before, now))
        [test] = compare_sets(errors, [range(len(errors))])
        found += test.p_value <= 0.025
    return found / sessions


@pytest.mark.parametrize(
    ("sizes", "flip", "repeats", "drop"),
    [((1,) * 20, 0.0, 1, 0.35), ((2,) * 10, 0.1, 3, 0.25), ((6,) * 9, 0.05, 3, 0.1)],
)
def test_power_is_that_of_the_gates_test(
    sizes: tuple[int, ...], flip: float, repeats: int, drop: float
) -> None:
    suite = ForeseenSuite(sizes, repeats, 2 * flip * (1 - flip))
    # Three standard errors of 150 sessions.
    assert power(suite, drop) == pytest.approx(brute_force(suite, drop), abs=0.12)


def test_visible_drop_is_where_power_is_eighty_percent() -> None:
    suite = ForeseenSuite((1, 3, 6) * 5, flicker=0.05)
    drop = visible_drop(suite)
    assert drop is not None
    assert power(suite, drop) == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize("repeats", [1, 3, 5])
@pytest.mark.parametrize("sizes", [(1,) * 20, (2,) * 10, (1, 3, 6) * 5])
def test_more_flicker_never_finds_a_smaller_drop(sizes: tuple[int, ...], repeats: int) -> None:
    drops = [
        visible_drop(ForeseenSuite(sizes, repeats, flicker)) or 1.0
        for flicker in (0.0, 0.05, 0.1, 0.2, 0.3)
    ]
    # But for the simulation itself.
    assert all(more > 0.97 * less for less, more in itertools.pairwise(drops))


def test_suite_that_is_too_small_sees_no_drop() -> None:
    assert visible_drop(ForeseenSuite(())) is None
    assert visible_drop(ForeseenSuite((1,) * 4)) is None
    assert visible_drop(ForeseenSuite((1,) * 40, flicker=0.5)) is None


@pytest.mark.parametrize(("sizes", "flip", "repeats"), [((6,) * 10, 0.05, 3), ((1,) * 10, 0.02, 1)])
def test_runs_prove_that_nothing_has_changed(
    sizes: tuple[int, ...], flip: float, repeats: int
) -> None:
    suite = ForeseenSuite(sizes, repeats, 2 * flip * (1 - flip))
    runs = runs_to_prove([suite], 0.05)
    assert runs is not None
    rng, passed = random.Random(5), 0
    for _ in range(200):
        changes = []
        for size in suite.times(runs).sizes:
            flips = [rng.random() < flip for _ in range(2 * size * repeats)]
            loss = sum(flips[::2]) - sum(flips[1::2])
            changes.append(Change(loss / repeats, size))
        upper = unseen_drop(changes).upper
        passed += upper is not None and upper < 0.05
    assert passed / 200 == pytest.approx(0.8, abs=0.1)


def test_both_classes_have_to_be_proven() -> None:
    suite = ForeseenSuite((3,) * 20, 3, 0.1)
    one, both = runs_to_prove([suite], 0.05), runs_to_prove([suite, suite], 0.05)
    assert one is not None
    assert both is not None
    assert one < both


def test_runs_that_have_cases_of_one_class_alone_prove_nothing_of_the_other() -> None:
    in_each, in_half = ForeseenSuite((1,) * 20), ForeseenSuite((1,) * 20, among=40)
    enough, of_half = runs_to_prove([in_each] * 2, 0.05), runs_to_prove([in_half] * 2, 0.05)
    assert enough is not None
    assert of_half == 2 * enough
    assert runs_to_prove([ForeseenSuite((1,), among=100)], 0.05) is not None


def test_no_runs_prove_that_nothing_at_all_is_lost() -> None:
    assert runs_to_prove([ForeseenSuite((3,) * 20)], 0) is None
    assert runs_to_prove([ForeseenSuite((3,) * 20)], 1e-6) is None
    assert runs_to_prove([ForeseenSuite(())], 0.05) is None


def test_nothing_is_foreseen_of_nothing() -> None:
    assert prospects(foreseen([], lambda _: 1)) == []


SUITE = ForeseenSuite((3,) * 9)


def text(*classes: ClassProspect, runs: int | None = 168, judges: tuple[str, ...] = ("",)) -> str:
    return " ".join(prospect_sentences([Prospect(judges, classes, 0.05, runs)]))


def test_sentences_state_what_they_assume() -> None:
    violated = ClassProspect("violated", SUITE, (0.251, 0.304, 0.38))
    satisfied = ClassProspect("satisfied", replace(SUITE, sizes=(1,) * 9), (0.5, 0.5, 0.5))
    assert text(violated, satisfied) == (
        "Of 27 violated cases from 9 runs, a drop of 30 points is found in 80% of sessions, if "
        "what breaks in one run correlates by 0.3 (25 to 38 points for 0 to 0.6). Of 9 satisfied "
        "cases from 9 runs, a drop of 50 points is found in 80% of sessions. To prove that no "
        "more than 5 points are lost (gate.proof) takes about 170 runs like these, if nothing has "
        "changed. 5% of verdicts are taken to flip by themselves, as each case is judged once "
        "(evaluation_config.repeats)."
    )


def test_repeats_that_are_still_to_come_are_not_said_to_be_missing() -> None:
    planned = ClassProspect("violated", replace(SUITE, repeats=3), (0.1, 0.2, 0.3))
    assert text(planned).endswith(
        "5% of verdicts are taken to flip by themselves, until the 3 repeats of each case show how "
        "many do."
    )


def test_sentences_with_a_known_flicker_and_what_no_number_finds() -> None:
    suite = ForeseenSuite((3,) * 9, 3, 0.04)
    found = ClassProspect("all", suite, (0.1, 0.2, None))
    assert text(found, judges=("strict", "mild")).startswith(
        "strict, mild: of 27 cases from 9 runs, 3 repeats, flicker 4.0%, a drop of 20 points is "
        "found in 80% of sessions, if what breaks in one run correlates by 0.3 (10 to none for 0 "
        "to 0.6). To prove"
    )
    assert "flip by themselves" not in text(found)
    none = text(ClassProspect("all", suite, (None, None, None)), runs=None)
    assert none.startswith("Of 27 cases from 9 runs, 3 repeats, flicker 4.0%, no drop is found")
    assert "takes more than 100,000 runs" in none

from __future__ import annotations

import random

from pytest_jrh.stats.comparison import Change, DropDecision, decide_drop
from pytest_jrh.stats.formulas import Estimate


def session(rng: random.Random, runs: int, drop: float, *, flip: float = 0.05) -> list[Change]:
    """Runs of six cases with three repeats on both sides."""
    changes = []
    for _ in range(runs):
        loss = 0.0
        for _ in range(6):
            broken = rng.random() < drop / (1 - 2 * flip)
            before = sum(rng.random() >= flip for _ in range(3))
            loss += before - sum((rng.random() >= flip) != broken for _ in range(3))
        changes.append(Change(loss / 3, 6))
    return changes


def verdicts(drop: float, sessions: int = 150) -> dict[str, float]:
    rng = random.Random(8)
    found = [decide_drop(session(rng, 50, drop), 0.05).verdict for _ in range(sessions)]
    return {
        verdict: found.count(verdict) / sessions for verdict in ("PASS", "FAIL", "INCONCLUSIVE")
    }


def test_unchanged_judge_passes_and_one_that_is_worse_does_not() -> None:
    assert verdicts(0.0)["PASS"] >= 0.96
    assert verdicts(0.1)["PASS"] == 0
    assert verdicts(0.1)["FAIL"] >= 0.96
    assert verdicts(0.05)["PASS"] <= 0.08


def test_few_cases_without_a_change_are_no_proof() -> None:
    assert decide_drop([Change(0, 1)] * 20, 0.05).verdict == "INCONCLUSIVE"
    assert decide_drop([Change(0, 1)] * 200, 0.05).verdict == "PASS"
    assert decide_drop([Change(1, 1)] * 20 + [Change(0, 1)] * 20, 0.05).verdict == "FAIL"


def test_better_judge_passes_and_never_fails() -> None:
    decision = decide_drop([Change(-1, 2), Change(0, 2)] * 20, 0.05)
    assert decision.verdict == "PASS"
    assert decision.drop.value == -0.25


def test_limit_is_for_the_upper_bound_and_the_estimate() -> None:
    changes = [Change(1, 6)] * 5 + [Change(0, 6)] * 45
    passed = decide_drop(changes, 0.06)
    assert passed.verdict == "PASS"
    assert passed.drop.upper is not None
    assert decide_drop(changes, passed.drop.upper - 0.005).verdict == "INCONCLUSIVE"
    assert decide_drop(changes, passed.drop.value or 0).verdict == "INCONCLUSIVE"


def test_number_of_runs_decides_at_eighty_percent() -> None:
    rng, decided, asked = random.Random(3), 0, 0
    for true_drop in (0.0, 0.0, 0.1, 0.1) * 12:
        decision = decide_drop(session(rng, 10, true_drop, flip=0.1), 0.05)
        if decision.verdict == "INCONCLUSIVE" and decision.runs is not None:
            assert decision.runs > 10
            if decision.runs <= 400:
                asked += 1
                again = decide_drop(session(rng, decision.runs, true_drop, flip=0.1), 0.05)
                decided += again.verdict != "INCONCLUSIVE"
    assert asked > 20
    assert decided / asked >= 0.75


def test_repeats_help_where_flips_are_what_varies() -> None:
    changes = [Change(each, 4) for each in (2, -2, 1, -1, 0, 0, 1, -1, 1, -1) * 10]
    by_flips = decide_drop(changes, 0.05, flicker=0.35, repeats=1)
    assert by_flips.verdict == "INCONCLUSIVE"
    assert by_flips.repeats == 3
    assert decide_drop(changes, 0.05, flicker=0.0, repeats=1).repeats is None
    assert decide_drop(changes, 0.05).repeats is None


def test_what_cannot_be_decided_says_why() -> None:
    assert decide_drop([], 0.05) == DropDecision(
        "INCONCLUSIVE", Estimate(why="no case could be compared")
    )
    one = decide_drop([Change(0, 12)], 0.05)
    assert one.drop.reason == "all cases come from one source run"

"""What a suite can show, from its cases to the sentences (rule M6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_jrh.reports.planner import prospect_sentences
from pytest_jrh.stats.planning import (
    ForeseenSuite,
    Outlook,
    Passing,
    PlannedCase,
    Prospect,
    foreseen,
    prospects,
    runs_to_prove,
)


def cases(judge: str, runs: int, size: int, *scores: int) -> list[PlannedCase]:
    return [PlannedCase(judge, run, scores) for run in range(runs) for _ in range(size)]


def test_cases_are_counted_by_judge_and_run_and_repeats_tell_the_flicker() -> None:
    found = foreseen(
        [*cases("a", 3, 2), *cases("b", 2, 1, 1, 0, 1), *cases("b", 1, 4, 0, 0)], lambda _: 3
    )
    assert found["a"] == ForeseenSuite((2, 2, 2), 3, None)
    assert found["b"].sizes == (1, 5)
    assert found["b"].flicker == pytest.approx(2 / 3 * 2 / 6)
    assert found["b"].cases == 6


def test_judges_that_are_alike_share_a_prospect() -> None:
    [both] = prospects(foreseen([*cases("a", 30, 2), *cases("b", 30, 2)], lambda _: 1))
    assert both.judges == ("a", "b")
    none, some = both.outlooks
    assert none.flicker == 0
    assert some.flicker == pytest.approx(0.095)
    assert none.visible is not None
    assert some.visible is not None
    assert none.visible < some.visible
    assert none.runs is not None
    assert some.runs is not None
    assert some.repeated_runs is not None
    assert none.runs < some.repeated_runs < some.runs
    assert none.repeated_runs is None


def test_a_known_flicker_gives_one_outlook() -> None:
    suite = ForeseenSuite((6,) * 30, 3, 0.095)
    [prospect] = prospects({"": suite})
    [outlook] = prospect.outlooks
    assert outlook.flicker == 0.095
    assert (outlook.repeated_runs, outlook.passing) == (None, None)
    assert prospect.goal == 0.05


def test_runs_that_pass_are_those_that_an_undecided_gate_asks_for() -> None:
    suite = ForeseenSuite((6,) * 12, 1, 0.095)
    [prospect] = prospects({"": suite}, max_drop=0.05)
    [outlook] = prospect.outlooks
    assert outlook.passing is not None
    assert outlook.passing.share < 0.5
    assert outlook.passing.runs == runs_to_prove([suite], 0.05)


def test_a_proof_of_each_judge_is_as_likely_in_a_panel() -> None:
    suite = ForeseenSuite((6,) * 70, 1, 0.095)
    [alone] = prospects({"a": suite}, max_drop=0.05)
    [together] = prospects({"a": suite, "b": suite, "c": suite}, max_drop=0.05)
    assert alone.outlooks == together.outlooks


def test_the_class_that_needs_most_runs_decides_and_nothing_proves_a_drop_of_none() -> None:
    small, large = ForeseenSuite((1,) * 12, 1, 0.095), ForeseenSuite((6,) * 12, 1, 0.095)
    assert runs_to_prove([small, large], 0.05) == runs_to_prove([small], 0.05)
    assert runs_to_prove([small], 0.0) is None
    assert runs_to_prove([], 0.05) is None


def test_nothing_is_foreseen_of_nothing() -> None:
    assert prospects(foreseen([], lambda _: 1)) == []


SUITE = ForeseenSuite((3,) * 18)
NO_FLIPS = Outlook(0.0, 0.176, 61, None, None)
FLIPS = Outlook(0.095, 0.2251, 168, 93, None)


def text(prospect: Prospect) -> str:
    return " ".join(prospect_sentences([prospect]))


def test_sentences_without_a_known_flicker() -> None:
    assert text(Prospect(("",), SUITE, 0.05, None, (NO_FLIPS, FLIPS))) == (
        "54 cases from 18 runs: a drop of 18 points is found in 80% of sessions if no verdict "
        "flips, one of 23 points if 5% do. A drop of 5 points takes about 61 runs like these if "
        "no verdict flips, about 170 if 5% do (93 with repeats: 3). This assumes "
        "that a change breaks cases of one run together, with a correlation of 0.3. How many "
        "verdicts flip is not known, as no case was judged more than once "
        "(evaluation_config.repeats)."
    )


def test_sentences_with_a_known_flicker_and_a_gate() -> None:
    suite = ForeseenSuite((3,) * 18, 3, 0.04)
    outlook = Outlook(0.04, 0.2, 93, None, Passing(0.032, 55, 5))
    assert text(Prospect(("strict", "mild"), suite, 0.01, 0.01, (outlook,))) == (
        "strict, mild (54 cases from 18 runs, 3 repeats, flicker 4.0%): a drop of 20 points is "
        "found in 80% of sessions. A drop of 1 point takes about 93 runs like these. "
        "gate.proof of 1 point: a judge that has not changed passes in 3% of sessions; 80% "
        "takes 55 runs like these, or repeats: 5. This assumes that a change "
        "breaks cases of one run together, with a correlation of 0.3."
    )


def test_sentences_of_what_passes_already_and_of_what_no_number_decides() -> None:
    sure = replace(FLIPS, repeated_runs=None, passing=Passing(0.9991, None, None))
    said = text(Prospect(("",), replace(SUITE, flicker=0.095), 0.05, 0.05, (sure,)))
    assert "a judge that has not changed passes in over 99% of sessions." in said
    none = Outlook(0.0, None, None, None, Passing(0.0, 39, None))
    some = Outlook(0.095, None, None, None, Passing(0.06, 92, None))
    said = text(Prospect(("",), ForeseenSuite((1,)), 0.05, 0.05, (none, some)))
    assert "1 case from 1 run: no drop is found in 80% of sessions. A drop of" in said
    assert "A drop of 5 points takes more than 100,000 runs." in said
    assert (
        "passes in under 1% of sessions if no verdict flips, in 6% if 5% do; 80% takes 39 or 92 "
        "runs like these."
    ) in said

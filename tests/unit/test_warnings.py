"""Judges that look fine and judge nothing are named, over all cases and per rubric; sound ones are
not."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.model import CaseResult, CaseSpec
from pytest_jrh.core.text import dollars
from pytest_jrh.reports.json_values import panel_data, table_data
from pytest_jrh.stats.figures import (
    all_warnings,
    percent,
    range_text,
    sections,
)
from pytest_jrh.stats.intervals import Estimate
from pytest_jrh.stats.panels import panels
from pytest_jrh.stats.statistics import tabulate
from tests.support.judged_sessions import (
    Answer,
    always,
    coin,
    judged,
    result_of,
    right,
    scored,
)
from tests.support.made_cases import (
    LEVELS,
    make_result,
    make_spec,
    result_with,
)

THREE = ("privacy", "refund_policy", "tone")


def warnings_of(results: list[CaseResult]) -> list[str]:
    (section,) = sections(tabulate(results))
    return all_warnings(section.total, section.rubrics)


def only_on(rubric: str, answer: Answer) -> Answer:
    return lambda spec, label: answer(spec, label) if spec.rubric_id == rubric else label


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (always(1), "tone: constant verdict: 1 (violated) for all 48 cases."),
        (lambda spec, label: 1 - label, "tone: worth little: kappa -1.00 where 0 is chance ("),
        (coin(3), "tone: worth little: kappa "),
    ],
)
def test_a_judge_that_is_worth_nothing_on_one_rubric_of_three_is_named(
    answer: Answer, said: str
) -> None:
    found = warnings_of(judged(only_on("tone", answer), runs=24, rubrics=THREE))
    assert found[-1].startswith(said)
    assert not any(rubric in line for rubric in THREE[:2] for line in found)


def test_what_is_true_of_the_whole_suite_is_not_said_of_each_rubric() -> None:
    assert warnings_of(judged(always(1), rubrics=THREE)) == [
        "Constant verdict: 1 (violated) for all 72 cases."
    ]


def test_rubrics_with_one_class_are_said_in_one_line() -> None:
    results = [
        result
        for result in judged(right, rubrics=THREE)
        if result.spec.rubric_id == "tone" or result.spec.test == "agent_perturbation"
    ]
    assert warnings_of(results) == [
        "privacy, refund_policy: only violated cases: a judge that always says 1 would get 100%."
    ]


def test_a_nearly_constant_judge_is_named_although_it_is_right_in_three_of_four() -> None:
    def lenient(spec: CaseSpec, label: int) -> int:
        return 0 if spec.run_id in ("run-001", "run-002") and label == 1 else 1

    results = judged(lenient, runs=60, rubrics=("tone",))
    few = [
        result
        for result in results
        if result.spec.test == "agent_perturbation" or int(result.spec.run_id[-3:]) < 20
    ]
    (found,) = warnings_of(few)
    assert found.startswith("Worth little: kappa -0.0")


def test_a_suite_with_few_satisfied_cases_does_not_make_a_sound_judge_near_constant() -> None:
    results = judged(right, runs=60, rubrics=("tone",))
    skewed = [
        result
        for result in results
        if result.spec.test == "agent_perturbation" or result.spec.run_id == "run-000"
    ]
    assert warnings_of(skewed) == []
    missed = [
        result
        if result.label == 1
        else result_of(make_spec("run-000", test="agent_positives", rubric_id="tone"), always(1))
        for result in skewed
    ]
    # One satisfied case says nothing about a judge, but a verdict that is always the same does.
    assert warnings_of(missed) == ["Constant verdict: 1 (violated) for all 61 cases."]


def test_four_cases_of_a_rubric_are_too_few_to_name_a_judge() -> None:
    results = judged(right, rubrics=("law", "tone"))
    wrong = judged(always(0), runs=2, rubrics=("small",))
    assert warnings_of([*results, *wrong]) == []


def by_level(answer: Answer, runs: int = 10) -> list[CaseResult]:
    """Two ordinal rubrics, of which the judge is sound on one."""
    specs = [
        make_spec(f"run-{run}", suite="kind", rubric_id=rubric, target_score=level.score)
        for rubric in ("clear", "warm")
        for run in range(runs)
        for level in LEVELS
    ]
    return [result_of(spec, only_on("warm", answer)) for spec in specs]


def test_ordinal_judges_that_are_worth_little_on_one_rubric_are_named() -> None:
    (turned,) = warnings_of(scored(lambda spec, label: 2 - label))
    assert turned.startswith("Worth little: weighted kappa -1.00 where 0 is chance (-1.00 to -0.")
    inverted = warnings_of(by_level(lambda spec, label: 2 - label))
    assert inverted[-1].startswith("warm: worth little: weighted kappa -1.00 where 0 is chance (")
    assert warnings_of(by_level(always(1))) == ["warm: constant verdict: 1 for all 30 cases."]
    rng = random.Random(5)
    found = warnings_of(by_level(lambda spec, label: rng.randrange(3), runs=20))
    assert found[-1].startswith("warm: worth little: weighted kappa")


def sound_sessions(share: float, rubrics: int, runs: int, of: int) -> Iterator[list[CaseResult]]:
    """Sessions of a judge right with this probability, whose mistakes come in runs."""
    rng = random.Random(7)
    for _ in range(of):
        hard = {run: rng.random() for run in range(runs)}

        def answer(spec: CaseSpec, label: int, hard: dict[int, float] = hard) -> int:
            drawn = hard[int(spec.run_id[-3:])] if rng.random() < 0.3 else rng.random()
            return label if drawn < share else 1 - label

        names = [f"rubric-{number}" for number in range(rubrics)]
        yield judged(answer, runs=runs, rubrics=names)


@pytest.mark.parametrize(("rubrics", "runs"), [(1, 4), (3, 10), (10, 4)])
def test_sound_judges_are_rarely_warned_about(rubrics: int, runs: int) -> None:
    """At 80%, the worst that is called sound, at most one session of twenty may have a warning."""
    for share, most in ((0.8, 0.05), (0.9, 0.03)):
        found = [bool(warnings_of(each)) for each in sound_sessions(share, rubrics, runs, 60)]
        assert sum(found) / len(found) <= most


SCORES = st.integers(-1, 5) | st.sampled_from([10**13, -(10**400)])
ANY_RESULT = st.builds(
    result_with,
    st.builds(
        make_result,
        st.builds(
            make_spec,
            st.sampled_from([f"run-{run}" for run in range(8)]),
            test=st.sampled_from(["agent_perturbation", "agent_positives", "agent_labels"]),
            rubric_id=st.sampled_from(["policy", "tone"]),
            judge=st.sampled_from(["mild", "strict"]),
            target_score=st.none() | SCORES,
        ),
        st.sampled_from(["agree", "disagree", "no_case", "model_error", "generated"]),
    ),
    expected=st.none() | SCORES,
    score=st.none() | SCORES,
    scores=st.lists(SCORES, max_size=3).map(tuple),
)


@given(st.lists(ANY_RESULT, max_size=40))
@settings(max_examples=60, deadline=None)
def test_every_list_of_results_has_figures_or_says_why_not(results: list[CaseResult]) -> None:
    table = tabulate(results)
    for statistics in (*table.rubrics, *table.judges, table.overall):
        for estimate in statistics.figures.values():
            known = [estimate.value, estimate.lower, estimate.upper]
            assert bool(estimate.why) == (None in known)
            assert all(math.isfinite(number) for number in known if number is not None)
    assert json.dumps(table_data(table))
    of_floats = [result for result in results if all(abs(n) < 10**15 for n in result.scores)]
    assert json.dumps(list(map(panel_data, panels(of_floats))))


def test_a_binary_suite_with_scores_out_of_its_scale_has_warnings_without_their_names() -> None:
    results = [
        result_with(result, score=2, scores=(2,), outcome="disagree")
        for result in judged(always(1))
    ]
    assert warnings_of(results) == [f"Constant verdict: 2 for all {len(results)} cases."]


def test_nearly_all_is_not_printed_as_all() -> None:
    assert percent(2000 / 2001) == ">99.9%"
    assert percent(1 / 2001) == "<0.1%"
    assert [percent(1.0), percent(0.0), percent(0.999), percent(0.001)] == [
        "100.0%",
        "0.0%",
        "99.9%",
        "0.1%",
    ]
    assert percent(200_000 / 200_001, 3) == ">99.999%"
    assert range_text(Estimate(1.0, 0.99999, 1.0)) == "99.9-100.0"
    assert range_text(Estimate(0.0, 0.0, 0.00001)) == "0.0-0.1"


def test_a_cost_below_a_hundredth_of_a_cent_is_not_printed_as_nothing() -> None:
    assert [dollars(each) for each in (0.00003, 0.0001, 0.0, 1234.5)] == [
        "<$0.0001",
        "$0.0001",
        "$0.0000",
        "$1,234.5000",
    ]


def test_a_tie_of_repeats_is_a_wrong_verdict_without_a_score() -> None:
    results = judged(right, rubrics=("tone",))
    tied = [result_with(results[0], outcome="disagree", score=None), *results[1:]]
    (said,) = warnings_of(tied)
    assert said.startswith("Ties: in 1 of 24 cases")

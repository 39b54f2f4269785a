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

from pytest_jrh.core.cases import CaseSpec
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.text import dollars
from pytest_jrh.reports.for_programs import data_of, section_data
from pytest_jrh.stats.figures import all_warnings, percent, range_text, sections
from pytest_jrh.stats.intervals import Estimate
from pytest_jrh.stats.statistics import panels, statistics_of
from pytest_jrh.stats.verdicts import Verdicts
from tests.support.judged_sessions import Answer, always, coin, judged, scored
from tests.support.made_cases import make_result, make_spec, result_with

THREE = ("privacy", "refund_policy", "tone")


def warnings_of(results: list[CaseResult]) -> list[str]:
    (section,) = sections(Verdicts.of(results))
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


def test_an_ordinal_judge_that_is_worth_nothing_is_named() -> None:
    assert warnings_of(scored(always(1))) == ["Constant verdict: 1 for all 30 cases."]
    (turned,) = warnings_of(scored(lambda spec, label: (label + 1) % 3))
    assert turned.startswith("Worth little: weighted kappa -0.50 where 0 is chance (-0.")


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
            test=st.sampled_from(["agent_perturbation", "agent_positives", "labels"]),
            rubric_id=st.sampled_from(["policy", "tone"]),
            judge=st.sampled_from(["mild", "strict"]),
            target_score=st.none() | SCORES,
        ),
        st.sampled_from(["agree", "disagree", "no_case", "model_error", "generated"]),
    ),
    label=st.none() | SCORES,
    score=st.none() | SCORES,
    scores=st.lists(SCORES, max_size=3).map(tuple),
)


@given(st.lists(ANY_RESULT, max_size=40))
@settings(max_examples=60, deadline=None)
def test_every_list_of_results_has_figures_or_says_why_not(results: list[CaseResult]) -> None:
    verdicts = Verdicts.of(results)
    judges = sections(verdicts)
    rubrics = [statistics for section in judges for statistics in section.rubrics]
    totals = [section.total for section in judges]
    for statistics in (*rubrics, *totals, statistics_of(verdicts)):
        for estimate in statistics.figures.values():
            known = [estimate.value, estimate.lower, estimate.upper]
            assert bool(estimate.why) == (None in known)
            assert all(math.isfinite(number) for number in known if number is not None)
    assert json.dumps(list(map(section_data, judges)))
    of_floats = [result for result in results if all(abs(n) < 10**15 for n in result.scores)]
    assert json.dumps(list(map(data_of, panels(Verdicts.of(of_floats)))))


def test_nearly_all_is_not_printed_as_all() -> None:
    assert percent(2000 / 2001) == ">99.9%"
    assert percent(1 / 2001) == "<0.1%"
    assert [percent(1.0), percent(0.0), percent(0.999), percent(0.001)] == [
        "100.0%",
        "0.0%",
        "99.9%",
        "0.1%",
    ]
    assert range_text(Estimate(1.0, 0.99999, 1.0)) == "99.9-100.0"
    assert range_text(Estimate(0.0, 0.0, 0.00001)) == "0.0-0.1"


def test_a_cost_below_a_hundredth_of_a_cent_is_not_printed_as_nothing() -> None:
    assert [dollars(each) for each in (0.00003, 0.0001, 0.0, 1234.5)] == [
        "<$0.0001",
        "$0.0001",
        "$0.00",
        "$1,234.50",
    ]

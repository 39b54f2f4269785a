"""The figures of real judges over 400 trajectories with labels by construction, where they are
there; and what one more mistake does to figures as reports show them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.model import CaseResult, Outcome
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import Section, sections
from pytest_jrh.stats.statistics import Statistics, describe, tabulate
from tests.support.judged_sessions import always, judged, result_of, right
from tests.support.made_cases import make_result, make_spec

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "trajectory-judge"
# True positives, false positives, false negatives, true negatives, and kappa.
JUDGES = {
    "programmatic": (200, 0, 100, 100, 0.500),
    "outcome:qwen2.5:14b": (184, 33, 116, 67, 0.222),
    "step:qwen2.5:14b": (257, 0, 43, 100, 0.749),
    "step:llama3.1:8b": (297, 100, 3, 0, -0.015),
    "selfcons3:qwen2.5:14b": (253, 1, 47, 99, 0.723),
}
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data/trajectory-judge")


@cache
def verdicts() -> dict[str, tuple[CaseResult, ...]]:
    """By judge; trajectories of one instance are one cluster."""
    lines = (DATA / "trajectories.jsonl").read_text("utf-8").splitlines()
    runs = {run["trajectory_id"]: run for run in map(json.loads, lines)}
    found: dict[str, list[CaseResult]] = {judge: [] for judge in JUDGES}
    for line in map(json.loads, (DATA / "verdicts.jsonl").read_text("utf-8").splitlines()):
        run = runs[line["trajectory_id"]]
        label, score = int(run["label"]["faulty"]), int(line["faulty"])
        test = "agent_perturbation" if label else "agent_positives"
        spec = make_spec(line["trajectory_id"], test=test, rubric_id="faulty")
        outcome: Outcome = "agree" if label == score else "disagree"
        found[line["judge_id"]].append(
            make_result(spec, outcome, score, cluster=run["instance_id"])
        )
    return {judge: tuple(results) for judge, results in found.items()}


def section_of(judge: str) -> Section:
    (section,) = sections(tabulate(verdicts()[judge]))
    return section


@needs_data
@pytest.mark.parametrize("judge", JUDGES)
def test_tables_and_kappa_of_real_judges(judge: str) -> None:
    *table, kappa = JUDGES[judge]
    statistics = section_of(judge).total
    (satisfied, violated) = statistics.matrices["binary"].counts
    assert [violated[1], satisfied[1], violated[0], satisfied[0]] == table
    interval = statistics.figures["kappa"]
    assert interval.value == pytest.approx(kappa, abs=0.0005)
    assert interval.lower is not None
    assert interval.upper is not None
    assert interval.lower < kappa < interval.upper


@needs_data
def test_the_judge_that_nearly_always_says_faulty_is_named_and_no_other() -> None:
    said = {judge: section_warnings(section_of(judge)) for judge in JUDGES}
    assert said.pop("step:llama3.1:8b") == [
        "Near-constant verdict: 1 (violated) for 397 of 400 cases (kappa -0.01)."
    ]
    assert not any(said.values())


def bounds(statistics: Statistics) -> dict[str, tuple[float, float]]:
    """The intervals of the shares of what is right, as reports have them."""
    found = {name: statistics.figures[name] for name in ("accuracy", "recall", "paired_accuracy")}
    alarms = statistics.figures["false_positive_rate"]
    ends = {
        name: (each.lower, each.upper)
        for name, each in found.items()
        if each.lower is not None and each.upper is not None
    }
    if alarms.lower is not None and alarms.upper is not None:
        ends["spared"] = (1 - alarms.upper, 1 - alarms.lower)
    return ends


@given(
    runs=st.integers(2, 12),
    wrong=st.lists(st.integers(0, 47), max_size=20, unique=True),
    more=st.integers(0, 47),
)
@settings(max_examples=80, deadline=None)
def test_one_more_mistake_never_raises_a_bound_of_any_figure(
    runs: int, wrong: list[int], more: int
) -> None:
    results = judged(right, runs=runs)
    at = {place % len(results) for place in wrong}
    more %= len(results)

    def with_mistakes(places: set[int]) -> list[CaseResult]:
        return [
            result_of(
                make_spec(each.spec.run_id, test=each.spec.test, rubric_id=each.spec.rubric_id),
                always(1 - (each.expected or 0)),
            )
            if place in places
            else each
            for place, each in enumerate(results)
        ]

    before, after = (bounds(describe(with_mistakes(places))) for places in (at, at | {more}))
    for name, ends in after.items():
        assert ends[0] <= before[name][0] + 1e-12
        assert ends[1] <= before[name][1] + 1e-12

"""The figures of real judges over 400 trajectories with labels by construction, where they are
there; and what one more mistake does to figures as reports show them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from pytest_jrh.core.model import CaseResult, Outcome
from pytest_jrh.stats.figures import Section, all_warnings, sections
from pytest_jrh.stats.statistics import tabulate
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
def test_judges_are_worth_little_where_even_the_upper_end_of_kappa_is_low() -> None:
    said = {}
    for judge in JUDGES:
        section = section_of(judge)
        said[judge] = all_warnings(section.total, section.rubrics)
    assert {judge for judge, lines in said.items() if lines} == {
        "programmatic",
        "outcome:qwen2.5:14b",
        "step:llama3.1:8b",
    }
    assert said["step:llama3.1:8b"] == [
        "Worth little: kappa -0.01 where 0 is chance (-0.04 to 0.01)."
    ]

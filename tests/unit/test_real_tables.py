"""Figures of real tables against scikit-learn's, and as their authors counted them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.stats.intervals import Estimate, grouped

ROOT = Path(__file__).parents[2]
AGENTS = ROOT / "examples/strong_judges/agent-as-a-judge.csv"
LLMBAR = ROOT / "examples/strong_judges/llmbar-gpt4.csv"
TRAJECTORIES = ROOT.parent / "shared/data/trajectory-judge"
PROMPTS = ("vanilla_norules", "vanilla", "cot", "metrics_reference", "swap")

needs_trajectories = pytest.mark.skipif(
    not TRAJECTORIES.is_dir(), reason="../shared/data/trajectory-judge is not there"
)


def trajectories() -> CheckedTable:
    """Five judges on 400 runs, with what went wrong as the rubric."""

    def lines(name: str) -> list[dict[str, Any]]:
        return list(map(json.loads, (TRAJECTORIES / name).read_text("utf-8").splitlines()))

    runs = {run["trajectory_id"]: run for run in lines("trajectories.jsonl")}
    rows = []
    for verdict in lines("verdicts.jsonl"):
        run = runs[verdict["trajectory_id"]]
        rows.append(
            {
                "case": verdict["trajectory_id"],
                "judge": verdict["judge_id"],
                "verdict": verdict["faulty"],
                "label": run["label"]["faulty"],
                "cluster": run["instance_id"],
                "rubric": run["label"]["failure_type"] or "clean",
            }
        )
    return check_table(
        rows, judge="judge", cluster="cluster", rubric="rubric", map={"true": 1, "false": 0}
    )


def agents(rubric: str) -> CheckedTable:
    return check_table(AGENTS, rubric=rubric, cluster="task", one="violated")


def test_an_agent_as_a_judge_misses_64_of_697_and_raises_50_false_alarms_on_401() -> None:
    figures = agents("agent").judges["verdict"].figures
    recall, alarms = figures["recall"], figures["false_positive_rate"]
    assert (recall.n - (recall.count or 0), recall.n) == (64, 697)
    assert (alarms.count, alarms.n) == (50, 401)


@needs_trajectories
def test_all_figures_are_scikit_learns() -> None:
    known = pytest.importorskip("sklearn.metrics")
    compared = 0
    tables = [agents("agent"), agents("task"), trajectories()]
    for prompt in PROMPTS:
        tables.append(
            check_table(LLMBAR, verdict=prompt, rubric="subset", cluster="item", one="violated")
        )
    for figures, labels, answers in (level for table in tables for level in levels(table)):
        for name, value in expected(known, labels, answers).items():
            assert figures[name].value == pytest.approx(value, abs=1e-12), name
            compared += 1
    assert compared == 542


def levels(
    table: CheckedTable,
) -> Iterator[tuple[Mapping[str, Estimate], Sequence[int], Sequence[int]]]:
    """The figures of each judge over all and per rubric, with the labels and answers."""
    for judge, reliability in table.judges.items():
        results = [
            result
            for result in table.results
            if result.judge in ("", judge) and result.label is not None
        ]
        by_rubric = grouped((result.spec.rubric_id, result) for result in results)
        of_rubrics = [(reliability.rubrics[rubric], of) for rubric, of in by_rubric.items()]
        for figures, of_level in [(reliability.figures, results), *of_rubrics]:
            labels = [result.label or 0 for result in of_level]
            yield figures, labels, [result.score or 0 for result in of_level]


def expected(known: Any, labels: Sequence[int], answers: Sequence[int]) -> dict[str, float]:
    """What scikit-learn gives, of what is defined for these labels."""
    values = {"accuracy": known.accuracy_score(labels, answers)}
    if 1 in labels:
        values["recall"] = known.recall_score(labels, answers)
    if 0 in labels:
        values["false_positive_rate"] = 1 - known.recall_score(labels, answers, pos_label=0)
    if len(set(labels)) > 1:
        values["balanced_accuracy"] = known.balanced_accuracy_score(labels, answers)
        values["kappa"] = known.cohen_kappa_score(labels, answers)
    return {name: value for name, value in values.items() if math.isfinite(value)}

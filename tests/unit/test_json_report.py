"""`{model}_report.json` beside its published schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_jrh.core.model import CaseResult
from pytest_jrh.judges.judge import JudgeSettings
from pytest_jrh.reports.rand_files import judge_report
from pytest_jrh.reports.session import SuiteRun
from pytest_jrh.stats.panels import panels
from pytest_jrh.store.records import json_value
from tests.support.judged_sessions import (
    HOSTILE,
    always,
    coin,
    judged,
    right,
    scored,
    session_of,
    wrong_on,
)
from tests.support.made_cases import LEVELS, RUBRIC, make_result, make_spec, make_suite

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SCHEMA = json.loads((Path(__file__).parents[1] / "data/report.schema.json").read_text("utf-8"))


def report_of(
    folder: Path,
    results: Sequence[CaseResult],
    before: Iterable[CaseResult] | None = None,
    **changes: Any,
) -> Any:
    """The report as it is read from disk, after the schema has accepted it."""
    suite = make_suite(folder, **changes)
    session = session_of(results, before)
    ran = len(results)
    report = judge_report(
        SuiteRun(suite, results, specs=()),
        suite.judges[0].name or "",
        results,
        next(iter(session.decisions.values()), None),
        next(iter(panels(results)), None),
    )
    report["session"] = {"cases": ran, "kept": 0, "of": ran, "interrupted": False}
    read = json.loads(json.dumps(json_value(report), allow_nan=False))
    jsonschema.Draft7Validator(SCHEMA).validate(read)
    return read


def test_schema_is_itself_valid() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "results",
    [
        pytest.param([], id="nothing"),
        pytest.param([make_result(outcome="model_error")], id="no verdict"),
        pytest.param(judged(right), id="all right"),
        pytest.param(
            [*judged(right, judge="a"), *judged(coin(), judge="b"), *judged(always(0), judge="c")],
            id="panel",
        ),
    ],
)
def test_report_fits_its_schema(tmp_path: Path, results: list[CaseResult]) -> None:
    report_of(tmp_path, results)
    report_of(tmp_path, results, before=judged(wrong_on("run-001")))


def test_ordinal_report_shows_the_whole_scale(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    rubric = session_of(scored(right)).rubrics["helpfulness", RUBRIC.id]
    results = [result for result in scored(right) if result.spec.target_score != 2]
    report = report_of(
        tmp_path, results, name="helpfulness", mode="ordinal", rubrics=(rubric,), tests=suite.tests
    )
    ordinal = report["statistics"]["overall"]["ordinal"]
    assert ordinal["confusion_matrix"] == {
        "labels": [level.score for level in LEVELS],
        "counts": [[10, 0, 0], [0, 10, 0], [0, 0, 0]],
    }
    assert ordinal["weighted_kappa"] == {"value": 1.0, "reason": None}


@pytest.mark.parametrize(
    ("answer", "matrix"),
    [(always(1), [[0, 24], [0, 24]]), (always(0), [[24, 0], [24, 0]])],
)
def test_judge_that_never_changes_its_answer_has_no_kappa(
    tmp_path: Path, answer: Any, matrix: Any
) -> None:
    overall = report_of(tmp_path, judged(answer))["statistics"]["overall"]
    assert overall["accuracy"]["value"] == 0.5
    assert overall["binary"]["kappa"] == {"value": 0.0, "reason": None}
    assert overall["binary"]["confusion_matrix"]["counts"] == matrix


@pytest.mark.parametrize(
    ("answer", "warned"),
    [
        (always(1), "Constant verdict: 1 (violated) for all 48 cases"),
        (always(0), "Constant verdict: 0 (satisfied) for all 48 cases"),
        (coin(), "Worth little: kappa -0.08 where 0 is chance ("),
        (right, None),
    ],
)
def test_judge_that_judges_nothing_is_called_so(
    tmp_path: Path, answer: Any, warned: str | None
) -> None:
    warnings = report_of(tmp_path, judged(answer))["statistics"]["warnings"]
    assert len(warnings) == (warned is not None)
    assert warned is None or warnings[0].startswith(warned)


def test_coin_has_a_kappa_near_zero(tmp_path: Path) -> None:
    binary = report_of(tmp_path, judged(coin(), runs=200))["statistics"]["overall"]["binary"]
    assert abs(binary["kappa"]["value"]) < 0.1


def test_figures_of_one_test_alone_are_null_with_the_reason(tmp_path: Path) -> None:
    results = [result for result in judged(right) if result.spec.test == "agent_positives"]
    binary = report_of(tmp_path, results)["statistics"]["rubrics"]["tone"]["binary"]
    assert binary["recall"] == {
        "count": 0,
        "n": 0,
        "value": None,
        "reason": "no perturbation was judged",
    }
    assert binary["kappa"] == {"value": None, "reason": "one class only: every label is 0"}


def test_gate_and_baseline_are_told_with_their_cases(tmp_path: Path) -> None:
    gate = report_of(tmp_path, judged(wrong_on("run-003")), judged(wrong_on("run-001")))["gate"]
    assert (gate["word"], gate["passed"]) == ("PASS", True)
    assert (
        gate["headline"]
        == "the judge is not shown to be worse than before: 4 of 48 cases newly wrong"
    )
    assert len(gate["baseline"]["regressions"]) == len(gate["baseline"]["fixes"]) == 4
    # Two violations are lost and two are won.
    assert gate["sets"][0]["p_value"] == 11 / 16


def test_report_says_how_the_judges_of_a_panel_agree(tmp_path: Path) -> None:
    results = [*judged(right, judge="a"), *judged(always(1), judge="b")]
    judge = JudgeSettings("a", make_suite(tmp_path).judges[0].stage)
    panel = report_of(tmp_path, results, judges=(judge,))["panel"]
    assert panel["pairs"][0]["agreement"] == {"count": 24, "n": 48, "value": 0.5, "reason": None}
    assert panel["accuracy_over_all"]["value"] == 0.5
    assert len(panel["without_majority"]) == 24


def test_hostile_ids_are_values_like_any_other(tmp_path: Path) -> None:
    report = report_of(tmp_path, [make_result(make_spec(HOSTILE, rubric_id=HOSTILE))])
    assert list(report["statistics"]["rubrics"]) == [HOSTILE]

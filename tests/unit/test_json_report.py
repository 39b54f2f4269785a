"""`{model}_report.json` beside its published schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from pytest_jrh.core.results import CaseResult
from pytest_jrh.reports.rand_files import judge_report
from pytest_jrh.reports.session import Session
from pytest_jrh.store.records import json_value
from tests.support.judged_sessions import (
    always,
    coin,
    judged,
    panel,
    result_of,
    right,
    session_of,
    wrong_on,
)
from tests.support.made_cases import make_result, make_spec, make_suite

SCHEMA = json.loads((Path(__file__).parents[1] / "data/report.schema.json").read_text("utf-8"))


def check_report(
    folder: Path, results: Sequence[CaseResult], before: Iterable[CaseResult] | None = None
) -> None:
    suite = make_suite(folder)
    names = dict.fromkeys(result.judge for result in results) or [""]
    judges = tuple(replace(suite.judges[0], name=name or None) for name in names)
    suite = replace(suite, judges=judges)
    session, ran = session_of(results, before), len(results)
    for name in names:
        report = judge_report(suite, name, session)
        assert (report["panel"] is None) == (len(names) == 1)
        report["session"] = {"cases": ran, "kept": 0, "of": ran, "interrupted": False}
        read = json.loads(json.dumps(json_value(report), allow_nan=False))
        jsonschema.Draft7Validator(SCHEMA).validate(read)


@pytest.mark.parametrize(
    "results",
    [
        pytest.param([], id="nothing"),
        pytest.param([make_result(outcome="model_error")], id="no verdict"),
        pytest.param(judged(right), id="all right"),
        pytest.param(panel({"a": right, "b": coin(), "c": always(0)}), id="panel"),
    ],
)
def test_report_fits_its_schema(tmp_path: Path, results: list[CaseResult]) -> None:
    check_report(tmp_path, results)
    check_report(tmp_path, results, before=judged(wrong_on("run-001")))


def test_the_report_has_the_interval_in_numbers(tmp_path: Path) -> None:
    """Of a judge that is right on every violation of nine runs, as other reports print it."""
    results = [result_of(make_spec(f"run-{number}"), right) for number in range(9)]
    report = judge_report(make_suite(tmp_path), "", Session(results))
    statistics = report["statistics"]["overall"]
    bootstrap = report["all_metrics"]["agent_perturbation"]["bootstrap"]
    for interval in (statistics["interval"], statistics["binary"]["intervals"]["recall"]):
        assert (interval["lower"], interval["upper"]) == pytest.approx((0.7008549, 1.0))
    assert (bootstrap["lower_ci"], bootstrap["upper_ci"]) == pytest.approx((0.7008549, 1.0))

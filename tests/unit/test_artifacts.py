import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pytest_jrh.config.suite import Suite
from pytest_jrh.core import one_line
from pytest_jrh.core.cases import Case, CaseSpec
from pytest_jrh.core.files import LineFile
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult
from pytest_jrh.judges.judge import JudgeSettings
from pytest_jrh.reports.ending import write_suite_outputs
from pytest_jrh.reports.rand_files import debug_files, judge_file_names
from pytest_jrh.reports.session import Extent, Session
from pytest_jrh.store.made_cases import Outputs
from pytest_jrh.store.records import stored_line
from tests.support.made_cases import make_case, make_result, make_spec, make_suite, suite_run

A, B, C = make_spec("a"), make_spec("b"), make_spec("c")
P = make_spec("a", test="agent_positives")
SPECS = (A, B, C, P)
RESULTS = (
    make_result(A, "disagree"),
    make_result(B, "no_case", detail="not confirmed: the verifier says PASS"),
    make_result(C, "model_error"),
    make_result(P, labelled_by="unconfirmed"),
)
TEST_FOLDER = "cases/agent_perturbation"
BOTH = ("agent_perturbation", "agent_positives")
MODEL = "openai/gpt-4.1-mini"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """A suite that writes RAND's files, too."""
    return make_suite(tmp_path, rand=True)


def write(
    suite: Suite,
    specs: Sequence[CaseSpec] = SPECS,
    results: Iterable[CaseResult] = RESULTS,
    cases: Iterable[Case] | None = None,
) -> Outputs:
    redactor = Redactor()
    spool = LineFile(suite.config_file.parent / ".spool" / uuid4().hex)
    for case in [make_case(A), make_case(P, edited=False)] if cases is None else cases:
        spool.add(stored_line(case, redactor))
    spool.close()
    run = suite_run(suite, results, specs, spools=[spool.path])
    extents = {suite.name: Extent(len(run.results), len(specs), interrupted=False)}
    outputs = Outputs(redactor)
    write_suite_outputs(run, Session((), redactor=redactor, extents=extents), outputs)
    return outputs


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def report_of(suite: Suite) -> Any:
    text = (suite.results_dir / "openai_gpt-4.1-mini_report.json").read_text("utf-8")
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def names(folder: Path) -> set[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and ".spool" not in path.parts]
    return {str(path.relative_to(folder)) for path in files}


def test_cases_and_ledger_are_all_that_is_written_of_a_suite(tmp_path: Path) -> None:
    done = write(make_suite(tmp_path))
    assert done.problems == []
    assert names(tmp_path) == {
        f"{TEST_FOLDER}/agent_perturbations.jsonl",
        "cases/agent_positives/agent_perturbations.jsonl",
        "outputs/refunds/results.jsonl",
    }
    assert list(done.records.entries) == [generation_id(A), generation_id(P)]


def test_rerun_writes_the_same_bytes_and_keeps_older_records(suite: Suite, tmp_path: Path) -> None:
    write(suite)
    before = {name: (tmp_path / name).stat().st_ino for name in names(tmp_path)}
    write(suite, results=reversed(RESULTS), cases=[make_case(P, edited=False), make_case(A)])
    assert {name: (tmp_path / name).stat().st_ino for name in names(tmp_path)} == before
    # None is passed off as this run's.
    write(suite, [A], [make_result(A, "model_error")], [])
    assert (tmp_path / TEST_FOLDER / "agent_perturbations.jsonl").read_text().count("\n") == 1
    assert rows(suite.results_dir / "synthetic_agent_perturbation.csv") == []


def test_report_has_rands_keys_and_numbers(suite: Suite) -> None:
    write(suite)
    report = report_of(suite)
    meta = {"module_name": "refunds", "dataset": "log.eval", "autograder_model": MODEL}
    assert report["meta_data"].items() >= meta.items()
    negative, positive = (report["all_metrics"][test] for test in BOTH)
    metrics = {"pass_rate": "0.00%", "passed": 0, "total": 1, "metric_type": "accuracy_score"}
    assert negative["metrics"].items() >= {**metrics, "metric_score": 0.0}.items()
    assert positive["metrics"]["pass_rate"] == "100.00%"
    assert negative["bootstrap"].items() >= {"mean": 0.0, "lower_ci": 0.0, "reason": None}.items()
    assert negative["outcomes"] == {"disagree": 1, "model_error": 1, "no_case": 1}

    # Without a verdict there is no score.
    write(suite, [C], [make_result(C, "invalid_response")], [])
    metrics = report_of(suite)["all_metrics"]["agent_perturbation"]["metrics"]
    assert (metrics["pass_rate"], metrics["metric_score"]) == (None, None)
    assert metrics["metric_reason"] == "no verdict was given"


def test_frozen_suite_reads_its_file_and_leaves_it_alone(suite: Suite, tmp_path: Path) -> None:
    write(suite)
    made = tmp_path / TEST_FOLDER / "agent_perturbations.jsonl"
    frozen = made.rename(tmp_path / "frozen.jsonl")
    before = frozen.read_bytes()
    results = [make_result(A), make_result(B, "no_case")]
    write(make_suite(tmp_path, rand=True, frozen=frozen), [A, B], results, [])
    assert (frozen.read_bytes(), made.exists()) == (before, False)
    assert len(rows(suite.results_dir / "synthetic_agent_perturbation.csv")) == 1


def test_judges_of_a_panel_have_files_of_their_own(suite: Suite) -> None:
    stage = suite.judges[0].stage
    judges = [JudgeSettings(name, stage) for name in ("strict", "lax", "LAX")]
    judges.append(JudgeSettings("other", replace(stage, model="x/y")))
    files = judge_file_names(replace(suite, judges=tuple(judges)))
    assert files["strict"] == "openai_gpt-4.1-mini_strict"
    assert files["other"] == "x_y"
    assert len({name.lower() for name in files.values()}) == 4


def test_file_that_cannot_be_written_costs_no_other(suite: Suite, tmp_path: Path) -> None:
    audit, *_ = debug_files(make_case(A), tmp_path / TEST_FOLDER)
    blocked = [
        suite.results_dir / "synthetic_agent_perturbation.csv",
        tmp_path / TEST_FOLDER / "agent_perturbations.jsonl" / "x",
        audit,
    ]
    for path in blocked:
        path.mkdir(parents=True)
    done = write(suite)
    assert len(done.problems) == 3
    assert len(rows(suite.results_dir / "agent_perturbation_results_openai_gpt-4.1-mini.csv")) == 3
    assert (suite.results_dir / "openai_gpt-4.1-mini_report.json").exists()
    assert not list(tmp_path.rglob(".jrh-*"))
    assert any(f"{blocked[0]} was not written: " in problem for problem in done.problems)


def test_debug_bundle_has_rands_keys_and_both_transcripts(tmp_path: Path) -> None:
    files = debug_files(make_case(A), tmp_path)
    audited, original, perturbed = map(one_line, files.values())
    audit = json.loads(audited)
    keys = "run_id target_rubric failure_confirmed failure_rationale final_summary plan edits"
    assert audit.keys() >= {*keys.split()}
    assert audit["edits"][0]["edited_content"] == "I have refunded order 17 in full."
    assert "outside the window" in original
    assert "I have refunded order 17" in perturbed
    # That of a hostile id stays in its folder.
    case = make_case(make_spec("../../x", rubric_id="a/../b", target_score=2))
    audit, *transcripts = debug_files(case, tmp_path)
    assert audit.parent == tmp_path / "debug"
    assert audit.name.endswith("__score_2_edits_audit.json")
    assert {path.parent for path in transcripts} == {tmp_path / "debug/transcripts"}

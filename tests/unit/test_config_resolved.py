"""Whole configs: every key, RAND's own, and the metrics on offer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_jrh.config import load as resolve
from pytest_jrh.config.load import load_suite
from tests.support.configs import AGENT, CONFIG, FULL, Folder, changed

AGENTHARM = Path(__file__).parents[3] / "shared" / "data" / "agentharm"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_known_keys_without_meaning_are_named_once_together(folder: Folder) -> None:
    of_evaluation = ["aggregation_reference_column", "overwrite_results", "bootstrap_size"]
    of_evaluation += ["bootstrap_repetitions", "get_cost_curves"]
    names = [
        "admin.test_debug_mode",
        "admin.dataset_config.use_original_data_as_expected",
        "admin.perturbation_config.preprocess_columns_map",
        *(f"admin.evaluation_config.{name}" for name in of_evaluation),
        "synthetic_data_params.validation_model_name",
        "synthetic_data_params.max_workers",
        f"{AGENT}.trace_messages",
        "test_stochastic_stability_config",
        "admin.evaluation_config.judges[0].preprocess_columns_map",
    ]
    notice = f"{CONFIG}: not used by agentic tests: {', '.join(names)}"
    assert notice in folder.load(FULL).notices


@pytest.mark.skipif(not AGENTHARM.is_dir(), reason="the shared AgentHarm data is not here")
def test_rands_agentharm_config_loads_unchanged(tmp_path: Path) -> None:
    shutil.copytree(AGENTHARM, tmp_path / "agentharm")
    root = tmp_path / "agentharm"
    suite = load_suite(Path("inputs/configs/config_agentharm.yml"), cwd=root, rootdir=root)
    assert (suite.name, suite.mode, suite.config.cases.sample, suite.config.cases.seed) == (
        "config_agentharm",
        "binary",
        5,
        87,
    )
    assert [(rubric.id, rubric.line) for rubric in suite.rubrics] == [("agentharm", 2)]
    assert suite.logs[0] == root / "inputs/data/agentharm/agentharm.eval"
    assert suite.tests[0].output_dir == root / "outputs/agent_perturbation/agentharm"
    assert suite.stages["verifier"].model == "openai/gpt-4.1-mini"
    assert suite.instruction.startswith("Assess the harmfulness")
    assert suite.config.cases.preprocess == ("agent_helpers.preprocessors.drop_reasoning_traces",)
    assert (
        suite.config.recording.max_workers,
        suite.config.rand.review,
    ) == (5, True)


def test_a_metric_may_need_scikit_learn(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "admin.evaluation_config.metric"
    monkeypatch.setattr(resolve, "find_spec", lambda name: None)
    suite = folder.load(changed(key, "precision_score"))
    assert suite.config.rand.metric == "precision_score"
    assert any("scikit-learn is not installed" in notice for notice in suite.notices)
    assert not any("scikit" in notice for notice in folder.load(changed(key, "f1_score")).notices)

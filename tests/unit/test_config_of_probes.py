"""What a config may say of probes, and which mistakes are said before anything is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.cases.probes import PROBES
from tests.support.configs import AGENT, ORDINAL_RUBRIC, Folder, changed

TESTS = "admin.perturbation_config.tests_to_run"
ASKING = [probe.name for probe in PROBES.values() if probe.asks]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def with_tests(*tests: str, **agent: Any) -> dict[str, Any]:
    return {**changed(TESTS, list(tests)), AGENT: agent}


@pytest.mark.parametrize("name", ASKING)
def test_a_probe_that_asks_changes_cases_that_violate_their_rubric(
    folder: Folder, name: str
) -> None:
    data = with_tests("agent_perturbation", "agent_positives", name)
    assert folder.load(data).probes[name].of == ("agent_perturbation",)
    problem = folder.problem(with_tests("agent_positives", name))
    assert (problem.key, problem.hint is not None) == (f"{TESTS}[1]", True)
    assert "rubric" in problem.message
    assert "there is none" in problem.message


@pytest.mark.parametrize("name", ASKING)
def test_a_probe_that_asks_needs_two_answers(folder: Folder, name: str) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    data = with_tests("agent_perturbation", name)
    data["admin"]["evaluation_config"]["template"] = "agent_autograder"
    assert folder.problem(data).message == f"{name} is for binary suites: on a scale it has no case"


def test_natural_runs_need_the_stages_that_a_probe_asks_and_no_others(folder: Folder) -> None:
    (folder.root / "labels.csv").write_text("run_id,rubric_id,label\nr,kind,1\n", encoding="utf-8")
    data = with_tests("agent_labels", "verdict_pressure", labels={"path": "labels.csv"})
    data["synthetic_data_params"] = {}
    data[AGENT]["editor"] = {"model": "openai/e"}
    assert set(folder.load(data).stages) == {"editor", "verifier"}
    data["admin"]["perturbation_config"]["tests_to_run"] = ["agent_labels", "position"]
    assert not folder.load(data).stages

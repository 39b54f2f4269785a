"""The models of a config's stages and judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.model import RateLimit, StageModel
from tests.support.configs import AGENT, Folder, changed, minimal, without


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize("summary", [{}, None])
def test_a_summary_that_says_nothing_takes_after_the_editor(
    folder: Folder, summary: object
) -> None:
    data = minimal()
    editor = {
        "model": "e",
        "temperature": 1,
        "system_prompt": "s",
        "max_tokens": 5,
        "api_base": "http://h/v1",
    }
    data[AGENT] = {"editor": {**editor, "timeout": 9}, "summary": summary}
    stages = folder.load(data).stages
    assert stages["summary"] == StageModel(
        "summary", "e", temperature=1.0, system_prompt="s", timeout=9.0, api_base="http://h/v1"
    )
    assert stages["verifier"] == StageModel("verifier", "e", timeout=9.0, api_base="http://h/v1")
    assert stages["planner"] == StageModel("planner", "openai/maker")


def test_a_stage_with_its_own_model_does_not_inherit_the_editors_server(folder: Folder) -> None:
    data = minimal()
    data[AGENT] = {
        "editor": {"model": "e", "api_base": "http://h/v1", "temperature": 1},
        "summary": {"model": "s"},
        "verifier": {"model": "v", "rate_limit": {"calls": 3, "period": 60}},
    }
    stages = folder.load(data).stages
    assert stages["summary"] == StageModel("summary", "s")
    assert stages["verifier"] == StageModel("verifier", "v", rate_limit=RateLimit(3, 60.0))


def test_every_stage_and_judge_takes_from_the_section_models_what_it_does_not_set(
    folder: Folder,
) -> None:
    data = minimal()
    data["models"] = {
        "max_tokens": 900,
        "timeout": 30,
        "api_base": "http://all/v1",
        "temperature": 0,
    }
    data[AGENT] = {
        "editor": {"max_tokens": 5},
        "verifier": {"model": "v", "api_base": "http://own/v1"},
    }
    data["synthetic_data_params"]["max_tokens_generation"] = 7
    suite = folder.load(data)
    common: dict[str, Any] = {"timeout": 30.0, "api_base": "http://all/v1", "temperature": 0.0}
    maker = "openai/maker"
    assert suite.stages == {
        "planner": StageModel("planner", maker, max_tokens=900, **common),
        "editor": StageModel("editor", maker, max_tokens=5, **common),
        "summary": StageModel("summary", maker, max_tokens=900, **common),
        "verifier": StageModel(
            "verifier", "v", max_tokens=900, **{**common, "api_base": "http://own/v1"}
        ),
    }
    assert suite.judges[0].stage == StageModel("judge", "openai/judge", max_tokens=900, **common)
    data["judge"] = {"timeout": 9, "api_base": "http://own/v1"}
    data["admin"]["evaluation_config"]["judges"] = [
        {"name": "a"},
        {"name": "b", "model": "m", "max_tokens": 1},
    ]
    first, second = (judge.stage for judge in folder.load(data).judges)
    own = {**common, "timeout": 9.0, "api_base": "http://own/v1"}
    assert first == StageModel("judge", "openai/judge", max_tokens=900, **own)
    # The server is that of the model that the section names.
    assert second == StageModel("judge", "m", max_tokens=1, **{**common, "timeout": 9.0})


def test_verifier_false_turns_it_off(folder: Folder) -> None:
    suite = folder.load(changed(f"{AGENT}.verifier", False))
    assert set(suite.stages) == {"planner", "editor", "summary"}


def test_without_any_model_the_error_names_the_key_once(folder: Folder) -> None:
    problem = folder.problem(without("synthetic_data_params.generation_model_name"))
    assert problem.key == f"{AGENT}.editor.model"
    assert problem.message == f"no model for the planner; set {AGENT}.editor.model"
    judge = folder.problem(without("admin.evaluation_config.autograder_model_name"))
    assert (judge.key, judge.message) == (
        "judge.model",
        "no model for the judge; set judge.model",
    )


def test_judges_of_a_panel_have_distinct_names_and_the_suites_template(folder: Folder) -> None:
    judges = [{"name": "a"}, {"name": "a"}, {"name": "b", "template": "agent_autograder"}]
    twice = folder.problem(changed("admin.evaluation_config.judges", judges[:2]))
    template = folder.problem(changed("admin.evaluation_config.judges", judges))
    assert twice.key == "admin.evaluation_config.judges[1].name"
    assert "duplicate name" in twice.message
    assert template.key == "admin.evaluation_config.judges[2].template"
    assert "must be the suite's, agent_judge" in template.message
    nameless = folder.problem(changed("admin.evaluation_config.judges", [{"model": "m"}]))
    assert nameless.key == "admin.evaluation_config.judges[0].name"
    assert "is missing" in nameless.message

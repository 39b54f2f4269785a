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


def test_every_stage_falls_back_to_the_generation_model_and_sets_nothing_else(
    folder: Folder,
) -> None:
    suite = folder.load(minimal())
    assert suite.stages == {
        name: StageModel(name, "openai/maker")
        for name in ("planner", "editor", "summary", "verifier")
    }
    assert suite.judges[0].stage == StageModel("judge", "openai/judge")
    assert (suite.judges[0].name, suite.judges[0].show_reasoning) == (None, False)


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
    data["judge"] = {"timeout": 9}
    data["admin"]["evaluation_config"]["judges"] = [
        {"name": "a"},
        {"name": "b", "model": "m", "max_tokens": 1},
    ]
    first, second = (judge.stage for judge in folder.load(data).judges)
    assert first == StageModel(
        "judge", "openai/judge", max_tokens=900, **{**common, "timeout": 9.0}
    )
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


def test_prompt_files_are_found_and_must_be_there(folder: Folder) -> None:
    (folder.root / "p.md").write_text("x", encoding="utf-8")
    data = minimal()
    data[AGENT] = {"planner": {"prompt_path": "./p.md"}}
    data["judge"] = {"prompt_path": "p.md", "show_reasoning": True}
    suite = folder.load(data)
    assert suite.stages["planner"].prompt_path == str(folder.root / "p.md")
    assert suite.judges[0].stage.prompt_path == str(folder.root / "p.md")
    assert suite.judges[0].show_reasoning
    problem = folder.problem(changed(f"{AGENT}.editor.prompt_path", "q.md"))
    assert problem.key == f"{AGENT}.editor.prompt_path"
    assert folder.problem(changed("judge.prompt_path", "inputs")).message.endswith("not a file")


def test_a_panel_takes_from_the_judge_section_what_it_does_not_set(folder: Folder) -> None:
    data = minimal()
    data["judge"] = {"temperature": 0, "api_base": "http://h/v1", "show_reasoning": True}
    data["admin"]["evaluation_config"]["judges"] = [
        {"name": "a"},
        {
            "name": "b",
            "model": "m",
            "temperature": 1,
            "template": "agent_judge",
            "show_reasoning": False,
        },
    ]
    first, second = folder.load(data).judges
    assert (first.name, first.show_reasoning) == ("a", True)
    assert first.stage == StageModel(
        "judge", "openai/judge", temperature=0.0, api_base="http://h/v1"
    )
    assert (second.name, second.show_reasoning) == ("b", False)
    assert second.stage == StageModel("judge", "m", temperature=1.0)


def test_each_judge_of_a_panel_may_have_repeats_of_its_own(folder: Folder) -> None:
    data = minimal()
    data["judge"] = {"repeats": 5}
    data["admin"]["evaluation_config"] |= {
        "repeats": 3,
        "judges": [{"name": "a"}, {"name": "b", "repeats": 2}],
    }
    suite = folder.load(data)
    assert [suite.repeats_of(name) for name in ("a", "b")] == [5, 2]
    assert folder.load(changed("judge.repeats", 7)).repeats_of("") == 7
    assert folder.load(changed("admin.evaluation_config.repeats", 7)).repeats_of(None) == 7
    problem = folder.problem(changed("judge.repeats", 0))
    assert "must be an integer from 1 to 99" in problem.message


def test_a_prompt_may_answer_with_values_that_a_map_turns_into_scores(folder: Folder) -> None:
    words = {"yes": 1, "no": 0}
    data = changed("judge.score_map", words)
    problem = folder.problem(data)
    assert problem.key == "judge.score_map"
    assert "the built-in one asks for scores" in problem.message
    (folder.root / "p.md").write_text("{{ rubric }} {{ transcript }}", encoding="utf-8")
    data["judge"]["prompt_path"] = "p.md"
    suite = folder.load(data)
    assert suite.judges[0].section.score_map == words
    data["admin"]["evaluation_config"]["judges"] = [
        {"name": "a"},
        {"name": "b", "score_map": {"1": 0, "2": 1}},
        {"name": "c", "python": "pkg.mod:function"},
    ]
    maps = [judge.section.score_map for judge in folder.load(data).judges]
    assert maps == [words, {"1": 0, "2": 1}, None]
    data["judge"]["score_map"] = {"yes": 1, "no": 2}
    problem = folder.problem(data)
    assert problem.key == "judge.score_map.no"
    assert "got 2; must be 1 (violated) or 0 (satisfied)" in problem.message


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


def test_a_single_judge_given_as_a_mapping_is_a_panel_of_one(folder: Folder) -> None:
    assert [
        each.name
        for each in folder.load(changed("admin.evaluation_config.judges", {"name": "a"})).judges
    ] == ["a"]


def test_a_judges_bad_model_is_not_also_a_missing_one(folder: Folder) -> None:
    data = without("admin.evaluation_config.autograder_model_name")
    data["admin"]["evaluation_config"]["judges"] = [
        {"name": "a", "model": 3},
        {"name": "b", "model": "m"},
    ]
    assert folder.problem(data).key == "admin.evaluation_config.judges[0].model"

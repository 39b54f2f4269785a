"""Config files: their schema, their defaults and what is said about mistakes (rules A)."""

from __future__ import annotations

import contextlib
import importlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_jrh.documents.reading import MAX_BYTES, read_document
from pytest_jrh.errors import InputError, Problem
from pytest_jrh.models import RateLimit, StageModel
from pytest_jrh.suite import resolve
from pytest_jrh.suite.config import load_suite, looks_like_suite

if TYPE_CHECKING:
    from pytest_jrh.suite.suite import Suite

AGENTHARM = Path(__file__).parents[3] / "shared" / "data" / "agentharm"
AGENT = "test_agent_perturbation_config"
CONFIG = "inputs/configs/demo.yml"
ORDINAL_RUBRIC = [
    {
        "id": "kind",
        "instructions": "Is it kind?",
        "score_levels": [{"score": n, "label": f"{n}!"} for n in range(4)],
    }
]


def minimal() -> dict[str, Any]:
    return {
        "admin": {
            "module_name": "demo",
            "dataset_config": {
                "dataset_name": "demo.eval",
                "default_params_path": {"rubric": "rubric.json"},
            },
            "perturbation_config": {"tests_to_run": ["agent_perturbation", "agent_positives"]},
            "evaluation_config": {
                "template": "agent_judge",
                "autograder_model_name": "openai/judge",
            },
        },
        "synthetic_data_params": {"generation_model_name": "openai/maker"},
        AGENT: {},
    }


class Folder:
    """A project folder in which suites are written and loaded."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "inputs/data/demo"
        self.data.mkdir(parents=True)
        (root / "inputs/configs").mkdir()
        (self.data / "demo.eval").write_bytes(b"log")
        self.rubrics(
            [
                {"id": "kind", "instructions": "Is it kind?"},
                {"id": "safe", "instructions": "Is it safe?"},
            ]
        )

    def rubrics(self, entries: object) -> None:
        (self.data / "rubric.json").write_text(json.dumps(entries), encoding="utf-8")

    def config(self, data: object) -> Path:
        return self.text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False))

    def text(self, text: str) -> Path:
        (self.root / CONFIG).write_text(text, encoding="utf-8")
        return Path(CONFIG)

    def load(self, data: object, **options: Any) -> Suite:
        return load_suite(self.config(data), cwd=self.root, rootdir=self.root, **options)

    def problems(self, data: object, **options: Any) -> tuple[Problem, ...]:
        with pytest.raises(InputError) as caught:
            self.load(data, **options)
        return caught.value.problems

    def problem(self, data: object, **options: Any) -> Problem:
        (problem,) = self.problems(data, **options)
        return problem


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def changed(path: str, value: object) -> dict[str, Any]:
    """The minimal config with one dotted key set."""
    data = minimal()
    here = data
    *sections, key = path.split(".")
    for section in sections:
        here = here.setdefault(section, {})
    here[key] = value
    return data


def without(path: str) -> dict[str, Any]:
    data = minimal()
    here = data
    *sections, key = path.split(".")
    for section in sections:
        here = here[section]
    del here[key]
    return data


def test_a_minimal_config_takes_every_default(folder: Folder) -> None:
    suite = folder.load(minimal())
    root = folder.root
    assert (suite.name, suite.module_name, suite.mode) == ("demo", "demo", "binary")
    assert suite.config_file == root / CONFIG
    assert suite.source.path == folder.data / "demo.eval"
    assert suite.rubric_file == folder.data / "rubric.json"
    assert [rubric.id for rubric in suite.rubrics] == ["kind", "safe"]
    assert (
        suite.generation.max_summary_messages,
        suite.generation.max_edit_rounds,
        suite.generation.pass_required,
    ) == (20, 3, True)
    assert (suite.output.write_jsonl, suite.generation.overwrite, suite.max_workers) == (
        True,
        True,
        10,
    )
    assert (suite.source.sample_num, suite.source.sampling_seed) == (None, 8234)
    assert (suite.replay.record_mode, suite.replay.judge_record_mode, suite.replay.frozen) == (
        None,
        None,
        None,
    )
    assert suite.replay.cassette_dir == root / "inputs/cassettes/demo"
    assert suite.custom_prompts_dir == root / "inputs/custom_prompts/demo"
    assert suite.output.dir == root / "outputs/demo"
    assert (suite.output.format, suite.output.metric, suite.output.aggregation_method) == (
        "csv",
        "accuracy_score",
        None,
    )
    assert (
        suite.instruction,
        suite.source.preprocessors,
        suite.notices,
        suite.generation.use_hitl,
    ) == (
        "",
        (),
        (),
        False,
    )
    assert suite.dataset_name == "demo.eval"


def test_negatives_and_positives_have_their_own_folders_unless_one_is_given(folder: Folder) -> None:
    negatives, positives = folder.load(minimal()).tests
    assert (negatives.name, negatives.objective) == ("agent_perturbation", "fail")
    assert negatives.output_dir == folder.root / "outputs/agent_perturbation/demo"
    assert (positives.name, positives.objective) == ("agent_positives", "pass")
    assert positives.output_dir == folder.root / "outputs/agent_positives"
    shared = folder.load(changed(f"{AGENT}.output.dir", "./inputs/suites/demo"))
    assert {test.output_dir for test in shared.tests} == {folder.root / "inputs/suites/demo"}


def test_objective_pass_turns_the_negatives_alone(folder: Folder) -> None:
    suite = folder.load(changed(f"{AGENT}.objective", "pass"))
    assert [test.objective for test in suite.tests] == ["pass", "pass"]


def test_a_test_that_is_not_to_be_evaluated_is_only_generated(folder: Folder) -> None:
    suite = folder.load(changed("admin.evaluation_config.tests_to_evaluate", ["agent_positives"]))
    assert [(test.name, test.evaluate) for test in suite.tests] == [
        ("agent_perturbation", False),
        ("agent_positives", True),
    ]
    empty = folder.load(changed("admin.evaluation_config.tests_to_evaluate", []))
    assert all(test.evaluate for test in empty.tests)


def test_the_template_of_the_agent_block_decides_the_mode(folder: Folder) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    assert (
        folder.load(changed(f"{AGENT}.autograder_template", "agent_autograder")).mode == "ordinal"
    )
    assert (
        folder.load(changed("admin.evaluation_config.template", "agent_autograder")).mode
        == "ordinal"
    )


def test_the_log_and_the_rubrics_of_the_agent_block_come_first(folder: Folder) -> None:
    (folder.root / "other.eval").write_bytes(b"log")
    (folder.root / "other.yml").write_text("- {id: z, instructions: x}\n", encoding="utf-8")
    data = minimal()
    data[AGENT] = {"input_log_path": "./other.eval", "rubric_path": "./other.yml"}
    suite = folder.load(data)
    assert suite.source.path == folder.root / "other.eval"
    assert [rubric.id for rubric in suite.rubrics] == ["z"]


def test_files_named_beside_the_config_stand_in_for_its_own(folder: Folder) -> None:
    (folder.root / "other.eval").write_bytes(b"log")
    (folder.root / "other.yml").write_text("- {id: z, instructions: x}\n", encoding="utf-8")
    data = minimal()
    data[AGENT] = {"input_log_path": "./missing.eval", "rubric_path": "./missing.yml"}
    suite = folder.load(data, rubric_file=Path("other.yml"), log_path=Path("other.eval"))
    assert suite.source.path == folder.root / "other.eval"
    assert suite.rubric_file == folder.root / "other.yml"
    assert [rubric.id for rubric in suite.rubrics] == ["z"]
    problems = folder.problems(data, rubric_file=Path("no.yml"), log_path=Path("no.eval"))
    assert {problem.file for problem in problems} == {"no.yml", "no.eval"}


def test_relative_paths_are_tried_from_the_start_folder_then_rootdir_then_beside_the_config(
    tmp_path: Path,
) -> None:
    cwd, rootdir, beside = tmp_path / "cwd", tmp_path / "root", tmp_path / "elsewhere"
    for place in (cwd, rootdir, beside):
        place.mkdir()
    data = minimal()
    data[AGENT] = {"input_log_path": "a.eval", "rubric_path": "r.json"}
    (beside / "s.yml").write_text(yaml.safe_dump(data), encoding="utf-8")

    def load() -> Suite:
        return load_suite(beside / "s.yml", cwd=cwd, rootdir=rootdir)

    (beside / "r.json").write_text('[{"id": "a", "instructions": "x"}]', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load()
    (problem,) = caught.value.problems
    assert problem.key == f"{AGENT}.input_log_path"
    for place in (cwd, rootdir, beside):
        assert str(place / "a.eval") in problem.message
    for place in (beside, rootdir, cwd):
        (place / "a.eval").write_bytes(b"log")
        assert load().source.path == place / "a.eval"
    assert load().rubric_file == beside / "r.json"


def test_a_missing_file_names_one_that_is_there(folder: Folder) -> None:
    problem = folder.problem(changed("admin.dataset_config.dataset_name", "dmo.eval"))
    assert problem.hint == "inputs/data/demo/demo.eval is there"


def test_sampling_falls_back_key_by_key(folder: Folder) -> None:
    data = minimal()
    data["synthetic_data_params"] |= {"sample_num_from_orig": 5, "seed": 87}
    assert (folder.load(data).source.sample_num, folder.load(data).source.sampling_seed) == (5, 87)
    data[AGENT] = {"sample_num_from_orig": 2}
    assert (folder.load(data).source.sample_num, folder.load(data).source.sampling_seed) == (2, 87)
    data[AGENT] = {"sample_num_from_orig": 0, "sampling_seed": 0}
    assert (folder.load(data).source.sample_num, folder.load(data).source.sampling_seed) == (
        None,
        0,
    )
    data[AGENT] = {"sample_num_from_orig": None}
    assert folder.load(data).source.sample_num == 5


def test_the_instruction_is_read_from_the_modules_folder(folder: Folder) -> None:
    (folder.data / "task.txt").write_text("Judge well.\n", encoding="utf-8")
    data = minimal()
    data["admin"]["dataset_config"]["default_params_path"]["instruction"] = "task.txt"
    assert folder.load(data).instruction == "Judge well."
    data["admin"]["dataset_config"]["default_params_path"]["instruction"] = "tusk.txt"
    assert folder.problem(data).hint == "inputs/data/demo/task.txt is there"


def test_preprocessors_keep_their_order_and_may_be_one_name(folder: Folder) -> None:
    data = minimal()
    data[AGENT] = {"transcript_preprocessor": "pkg.one"}
    assert folder.load(data).source.preprocessors == ("pkg.one",)
    data[AGENT] = {
        "transcript_preprocessors": ["pkg.b", "pkg:a"],
        "transcript_preprocessor": "pkg.one",
    }
    assert folder.load(data).source.preprocessors == ("pkg.b", "pkg:a")


def test_a_time_stamp_is_taken_as_it_is_written(folder: Folder) -> None:
    text = yaml.safe_dump(minimal()).replace(
        "module_name: demo", "module_name: demo\n  time_stamp: 20251103_1222"
    )
    assert folder.load(text).output.dir == folder.root / "outputs/demo_20251103_1222"


def test_null_is_the_same_as_no_key(folder: Folder) -> None:
    data = minimal()
    data[AGENT] = dict.fromkeys(
        ("planner", "summary", "verifier", "transcript_preprocessor", "output", "objective")
    )
    data["judge"] = None
    assert replace(folder.load(data), resolved={}) == replace(folder.load(minimal()), resolved={})


def test_replay_and_existing_folders_follow_the_path_rule(folder: Folder, tmp_path: Path) -> None:
    data = minimal()
    data["replay"] = {"cassette_dir": "tapes", "record_mode": "once", "judge_record_mode": "all"}
    suite = folder.load(data)
    assert (
        suite.replay.cassette_dir,
        suite.replay.record_mode,
        suite.replay.judge_record_mode,
    ) == (
        folder.root / "tapes",
        "once",
        "all",
    )
    (folder.root / "inputs/configs/tapes").mkdir()
    assert folder.load(data).replay.cassette_dir == folder.root / "inputs/configs/tapes"


def test_every_stage_falls_back_to_the_generation_model_and_sets_nothing_else(
    folder: Folder,
) -> None:
    suite = folder.load(minimal())
    assert suite.generation.stages == {
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
    stages = folder.load(data).generation.stages
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
    stages = folder.load(data).generation.stages
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
    assert suite.generation.stages == {
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
    assert set(suite.generation.stages) == {"planner", "editor", "summary"}
    assert suite.resolved[AGENT]["verifier"] is False


def test_without_any_model_the_error_names_both_keys_once(folder: Folder) -> None:
    problem = folder.problem(without("synthetic_data_params.generation_model_name"))
    assert problem.key == "synthetic_data_params.generation_model_name"
    assert f"{AGENT}.planner.model" in problem.message
    judge = folder.problem(without("admin.evaluation_config.autograder_model_name"))
    assert "autograder_model_name" in judge.message
    assert "judge.model" in judge.message


def test_prompt_files_are_found_and_must_be_there(folder: Folder) -> None:
    (folder.root / "p.md").write_text("x", encoding="utf-8")
    data = minimal()
    data[AGENT] = {"planner": {"prompt_path": "./p.md"}}
    data["judge"] = {"prompt_path": "p.md", "show_reasoning": True}
    suite = folder.load(data)
    assert suite.generation.stages["planner"].prompt_path == str(folder.root / "p.md")
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


def test_judges_of_a_panel_have_distinct_names_and_the_suites_template(folder: Folder) -> None:
    judges = [{"name": "a"}, {"name": "a"}, {"name": "b", "template": "agent_autograder"}]
    twice, template = folder.problems(changed("admin.evaluation_config.judges", judges))
    assert twice.key == "admin.evaluation_config.judges[1].name"
    assert "duplicate name" in twice.message
    assert template.key == "admin.evaluation_config.judges[2].template"
    assert "must be agent_judge, because the suite is binary" in template.message
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


def ordinal() -> dict[str, Any]:
    return changed("admin.evaluation_config.template", "agent_autograder")


def test_only_the_targeted_rubrics_are_kept(folder: Folder) -> None:
    suite = folder.load(changed(f"{AGENT}.target_rubric_ids", ["safe"]))
    assert [rubric.id for rubric in suite.rubrics] == ["safe"]
    problem = folder.problem(changed(f"{AGENT}.target_rubric_ids", ["safe", "knid"]))
    assert problem.key == f"{AGENT}.target_rubric_ids[1]"
    assert "kind, safe" in problem.message
    assert problem.hint == "kind is the nearest id"


def test_targets_are_every_score_and_for_positives_the_highest(folder: Folder) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    negatives, positives = folder.load(ordinal()).tests
    assert negatives.targets == {"kind": (0, 1, 2, 3)}
    assert positives.targets == {"kind": (3,)}
    assert folder.load(minimal()).tests[0].targets == {"kind": (None,)}


@pytest.mark.parametrize("targets", ["0, 2 ,2", [2, 0], ["2", 0]])
def test_score_targets_are_a_list_or_text(folder: Folder, targets: object) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    data = ordinal()
    data[AGENT] = {"score_targets": targets}
    assert folder.load(data).tests[0].targets == {"kind": (0, 2)}


def test_a_score_target_outside_the_scale_names_the_range(folder: Folder) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    data = ordinal()
    data[AGENT] = {"score_targets": [1, 7]}
    problem = folder.problem(data)
    assert problem.key == f"{AGENT}.score_targets"
    assert problem.message == 'got 7; the scores of the rubric "kind" go from 0 to 3'


@pytest.mark.parametrize(
    ("own", "general"),
    [
        ({"lowest_score": "1", "highest_score": 3}, {"min_score": 0, "max_score": 9}),
        ({}, {"min_score": "1", "max_score": "3"}),
        ({"lowest_score": 1}, {"highest_score": 3, "lowest_score": 0}),
    ],
)
def test_a_rubric_without_levels_takes_the_configured_range(
    folder: Folder, own: object, general: object
) -> None:
    data = ordinal()
    data[AGENT]["autograder_default_params"] = own
    data["admin"]["dataset_config"]["default_params"] = general
    suite = folder.load(data)
    assert [level.score for level in suite.rubrics[0].score_levels] == [1, 2, 3]
    assert suite.tests[1].targets == {"kind": (3,), "safe": (3,)}


def test_without_levels_and_range_each_rubric_is_named_with_its_line(folder: Folder) -> None:
    (folder.data / "rubric.json").write_text(
        '[\n{"id": "a", "instructions": "x"}\n]', encoding="utf-8"
    )
    problem = folder.problem(ordinal())
    assert (problem.file, problem.line) == ("inputs/data/demo/rubric.json", 2)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ("a", 3, "must be an integer"),
        (3, 1, "lowest first"),
        (0, 10**6, "2 to 1000 levels"),
        (True, 3, "got true"),
    ],
)
def test_a_range_that_is_no_range_is_refused(
    folder: Folder, low: object, high: object, message: str
) -> None:
    data = ordinal()
    data[AGENT]["autograder_default_params"] = {"lowest_score": low, "highest_score": high}
    first = folder.problems(data)[0]
    assert first.key == f"{AGENT}.autograder_default_params.lowest_score"
    assert message in first.message


def test_a_reversed_range_is_one_problem_whichever_rubrics_rely_on_it(folder: Folder) -> None:
    data = changed("admin.evaluation_config.template", "agent_autograder")
    data[AGENT]["autograder_default_params"] = {"lowest_score": 5, "highest_score": 1}
    problem = folder.problem(data)
    assert problem.key == f"{AGENT}.autograder_default_params.lowest_score"
    assert "from 5 to 1" in problem.message


def test_a_range_that_is_no_range_does_not_hide_a_bad_scale(folder: Folder) -> None:
    folder.rubrics(
        [{"id": "kind", "instructions": "?", "score_levels": [{"score": 0, "label": "one"}]}]
    )
    data = changed("admin.evaluation_config.template", "agent_autograder")
    data[AGENT]["autograder_default_params"] = {"lowest_score": "few", "highest_score": 1}
    bound, scale = folder.problems(data)
    assert "integer" in bound.message
    assert "a scale of one score" in scale.message


@pytest.mark.parametrize("section", ["synthetic_data_params", AGENT])
def test_a_negative_number_of_runs_is_refused_and_0_and_null_mean_all(
    folder: Folder, section: str
) -> None:
    problem = folder.problem(changed(f"{section}.sample_num_from_orig", -3))
    assert (problem.key, problem.message) == (
        f"{section}.sample_num_from_orig",
        "got -3; must be an integer >= 0 (0 or null: all runs)",
    )
    assert problem.line is not None
    assert folder.load(changed(f"{section}.sample_num_from_orig", 0)).source.sample_num is None
    assert folder.load(changed(f"{section}.sample_num_from_orig", None)).source.sample_num is None


@pytest.mark.parametrize(
    "name", ["label_flip", "format_invariance_2", "verbosity_bias_long", "stochastic_stability"]
)
def test_rands_tests_of_single_answers_are_said_not_to_exist_here(
    folder: Folder, name: str
) -> None:
    problem = folder.problem(
        changed("admin.perturbation_config.tests_to_run", ["agent_perturbation", name])
    )
    assert problem.message == f'got "{name}"; must be agent_perturbation or agent_positives'
    assert (
        problem.hint
        == f"RAND's harness has {name} for single answers; here only the agentic ones exist"
    )


def test_rands_templates_for_single_answers_are_said_not_to_exist_here(folder: Folder) -> None:
    problem = folder.problem(changed("admin.evaluation_config.template", "single_judge"))
    assert problem.hint is not None
    assert "only the agentic ones exist" in problem.hint


def test_score_levels_in_a_binary_suite_are_said_to_have_no_effect(folder: Folder) -> None:
    folder.rubrics([*ORDINAL_RUBRIC, {"id": "safe", "instructions": "Is it safe?"}])
    (notice,) = folder.load(minimal()).notices
    assert notice.startswith(f"{CONFIG}: score_levels of the rubrics kind have no effect")
    assert "agent_autograder" in notice


def test_score_targets_in_a_binary_suite_are_said_to_have_no_effect(folder: Folder) -> None:
    (notice,) = folder.load(changed(f"{AGENT}.score_targets", [1])).notices
    assert "score_targets has no effect" in notice


def test_unknown_key_names_the_nearest_match_and_its_line(folder: Folder) -> None:
    problem = folder.problem(
        "admin:\n  modul_name: x\n"
        + yaml.safe_dump(minimal()).split("admin:\n", 1)[1].replace("  module_name: demo\n", "")
    )
    assert (problem.file, problem.line, problem.key) == (CONFIG, 2, "admin.modul_name")
    assert problem.message.startswith("unknown key; the keys of admin are module_name, ")
    assert problem.hint == "module_name is the nearest key"


def test_a_key_in_the_wrong_section_is_told_where_it_belongs(folder: Folder) -> None:
    problem = folder.problem(changed("admin.tests_to_run", ["agent_positives"]))
    assert problem.hint == "it belongs to admin.perturbation_config.tests_to_run"


def test_a_secret_in_a_config_is_refused_and_not_repeated(folder: Folder) -> None:
    problem = folder.problem(changed(f"{AGENT}.editor.api_key", "sk-" + "a" * 40))
    assert "environment" in (problem.hint or "")
    assert "sk-" not in str(problem)


@pytest.mark.parametrize(
    ("path", "value", "message", "hint"),
    [
        (
            "admin.perturbation_config.use_HITL_process",
            "false",
            'got "false"; must be true or false',
            "without quotes",
        ),
        (f"{AGENT}.pass_required", 1, "got 1; must be true or false", None),
        (f"{AGENT}.max_edit_rounds", 0, "got 0; must be an integer >= 1", None),
        (f"{AGENT}.max_edit_rounds", 1.5, "got 1.5; must be an integer", None),
        (f"{AGENT}.max_edit_rounds", True, "got true; must be an integer", None),
        (f"{AGENT}.sampling_seed", "87", 'got "87"; must be an integer', None),
        (f"{AGENT}.objective", "fial", 'got "fial"; must be fail or pass', "fail is the nearest"),
        (f"{AGENT}.output.dir", 3, "got 3; must be a path", None),
        (
            f"{AGENT}.output",
            "x",
            'got "x"; must be a mapping with the keys dir, results_dir, write_jsonl, overwrite',
            None,
        ),
        (
            f"{AGENT}.planner",
            "gpt-5",
            'got "gpt-5"; must be a mapping',
            'write planner: {model: "gpt-5"}',
        ),
        (f"{AGENT}.planner.temperature", "hot", 'got "hot"; must be a number >= 0', None),
        (f"{AGENT}.planner.temperature", -1, "got -1; must be a number >= 0", None),
        (f"{AGENT}.planner.temperature", float("nan"), "got nan; must be a number", None),
        (f"{AGENT}.planner.timeout", 0, "got 0; must be a number of seconds above 0", None),
        (f"{AGENT}.planner.max_tokens", 0.5, "got 0.5; must be an integer", None),
        (f"{AGENT}.planner.api_base", "host:80", 'got "host:80"; must be a URL', None),
        (f"{AGENT}.planner.model", 5, "got 5; must be text", 'write "5" in quotes'),
        (f"{AGENT}.planner.model", "", 'got ""; must be text', None),
        (f"{AGENT}.planner.rate_limit.calls", 3, "is missing; must be a number above 0", None),
        (f"{AGENT}.verifier", True, "got true; must be a mapping", None),
        (
            f"{AGENT}.target_rubric_ids",
            "kind",
            'got "kind"; must be a list of rubric ids',
            "write [kind]",
        ),
        (f"{AGENT}.score_targets", "1,x", 'got "x"; must be integers', None),
        (
            f"{AGENT}.transcript_preprocessors",
            [3],
            "got 3; must be the dotted name of a function",
            None,
        ),
        (
            "admin.evaluation_config.template",
            "single_judge",
            "agent_judge (binary) or agent_autograder",
            None,
        ),
        ("admin.evaluation_config.max_workers", "5", 'got "5"; must be an integer', None),
        (
            "admin.evaluation_config.aggregation_method",
            "mean",
            "must be majority_vote or null",
            None,
        ),
        (
            "admin.evaluation_config.tests_to_evaluate",
            ["x"],
            'got "x"; must be agent_perturbation or agent_positives',
            None,
        ),
        (
            "admin.perturbation_config.tests_to_run",
            ["agent_positive"],
            'got "agent_positive"',
            "agent_positives is",
        ),
        ("admin.perturbation_config.tests_to_run", [], "no test is to be run", None),
        ("admin.dataset_config.default_params_path", {"rubric": 3}, "got 3; must be text", None),
        (
            "admin.dataset_config.default_params_path.instuction",
            "i.txt",
            "unknown key",
            "instruction is the nearest",
        ),
        (
            "admin.evaluation_config.metric",
            "kappa",
            'got "kappa"; must be',
            "cohen_kappa_score is the nearest",
        ),
        (
            "admin.dataset_config",
            [],
            "got a list; must be a mapping with the keys dataset_name",
            None,
        ),
        (
            "admin.output_file_format",
            "xls",
            'got "xls"; must be csv or xlsx',
            "xlsx is the nearest",
        ),
        ("replay.record_mode", "new", "must be none, once, new_episodes or all", None),
        ("replay.frozen", 1, "got 1; must be true", None),
        ("gate.min_accuracy", 90, "got 90; must be a number from 0 to 1", None),
        ("gate.min_accuracy", {"x": 0.9}, 'got a threshold for "x"', None),
        ("gate.lower_bound", "no", 'got "no"; must be true or false', None),
        ("gate.max_regressions", -1, "got -1; must be an integer >= 0", None),
        ("judge.show_reasoning", "yes", 'got "yes"; must be true or false', None),
        ("planer", {}, "unknown key; the sections of a config are admin", None),
    ],
)
def test_a_bad_value_says_what_was_there_and_what_may_be_there(
    folder: Folder, path: str, value: object, message: str, hint: str | None
) -> None:
    problem = folder.problems(changed(path, value))[0]
    assert (problem.key or "").startswith(path.rpartition(".")[0])
    assert message in problem.message
    assert "nput should" not in problem.message
    if hint:
        assert hint in (problem.hint or "")


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "..", ".", "a\nb", "x" * 300])
def test_names_that_would_leave_their_folder_are_refused(folder: Folder, name: str) -> None:
    problem = folder.problem(changed("admin.module_name", name))
    assert problem.key == "admin.module_name"
    assert "plain name" in problem.message
    stamp = folder.problem(changed("admin.time_stamp", name))
    assert stamp.key == "admin.time_stamp"


def test_a_suite_whose_file_name_cannot_name_a_folder_is_refused(folder: Folder) -> None:
    odd = folder.root / "inputs/configs/a\nb.yml"
    odd.write_text(yaml.safe_dump(minimal()), encoding="utf-8")
    with pytest.raises(InputError, match="rename the file"):
        load_suite(odd, cwd=folder.root, rootdir=folder.root)


def test_a_test_to_evaluate_must_be_run(folder: Folder) -> None:
    data = changed("admin.perturbation_config.tests_to_run", ["agent_perturbation"])
    data["admin"]["evaluation_config"]["tests_to_evaluate"] = ["agent_positives"]
    problem = folder.problem(data)
    assert problem.key == "admin.evaluation_config.tests_to_evaluate[0]"
    assert problem.hint == "add agent_positives to tests_to_run"


def test_every_mistake_of_the_config_and_the_rubrics_is_reported_at_once(folder: Folder) -> None:
    folder.rubrics(
        [
            {"id": "a"},
            {"id": "b", "instructions": "x", "score_levels": [{"score": 0.5, "label": "x"}]},
        ]
    )
    data = minimal()
    data["admin"]["evaluation_config"]["metric"] = "acuracy_score"
    data["admin"]["dataset_config"]["dataset_name"] = "no.eval"
    data["admin"]["evaluation_config"]["template"] = "judge"
    data[AGENT] = {"planner": {"modle": "x", "prompt_path": "no.md"}, "max_edit_rounds": "3"}
    keys = [problem.key for problem in folder.problems(data)]
    assert keys == [
        "admin.dataset_config.dataset_name",
        "admin.evaluation_config.template",
        "admin.evaluation_config.metric",
        f"{AGENT}.planner.modle",
        f"{AGENT}.planner.prompt_path",
        f"{AGENT}.max_edit_rounds",
        "[0].instructions",
        "[1].score_levels[0].score",
    ]


def test_a_section_that_is_missing_is_reported_once_per_thing_that_is_needed(
    folder: Folder,
) -> None:
    messages = [str(problem) for problem in folder.problems({"admin": {}})]
    needed = (
        "module_name",
        "template",
        "tests_to_run",
        "input_log_path",
        "rubric_path",
        "autograder_model_name",
    )
    for name in (*needed, "generation_model_name"):
        assert sum(f".{name}:" in message for message in messages) == 1
    assert len(messages) == len(needed) + 1


def test_values_are_shortened_and_stripped_of_escapes(folder: Folder) -> None:
    problem = folder.problem(changed(f"{AGENT}.objective", "\x1b[31mred\x1b[0m\x07 " + "x" * 500))
    assert "\x1b" not in problem.message
    assert "\x07" not in problem.message
    assert '"red' in problem.message
    assert len(problem.message) < 130


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "is empty"),
        ("# only a comment\n", 1, "is empty"),
        ("- a\n- b\n", 1, "holds a list"),
        ("text\n", 1, 'holds "text"'),
        ("admin:\n  a: [1,\n", 2, "unclosed bracket"),
        ("admin:\n  a: {b: 1\n  c: 2\n", 2, "unclosed bracket"),
        (
            'admin:\n  a: "b\n  c: 1\n' + "  d: 1\n" * 20,
            2,
            "unclosed quote",
        ),
        ("admin:\n  a: 'b\n---\n  c: 1\n", 2, "unclosed quote"),
        (
            'admin:\n  a: "b\n  c: 1\n  d: "e"\n',
            2,
            "unclosed quote: it ends at the next quote, in line 4",
        ),
        ("admin:\n  a: 'b'\n  c: 'it's'\n", 3, "is not valid YAML"),
        ("admin:\n\tmodule_name: x\n", 2, "indented with a tab"),
        ("admin: {}\n---\nadmin: {}\n", 2, "second document"),
        ("admin: *nothing\n", 1, "is not valid YAML"),
        ("admin: \x00\n", 1, "control character U+0000"),
        (
            "admin: !!python/object/apply:os.system ['true']\n",
            1,
            "python/object/apply:os.system is not supported",
        ),
        ("admin: !secret x\n", 1, "the YAML tag !secret is not supported"),
        ("admin:\n  ? [a]\n  : b\n", 2, "cannot be a key"),
        ("admin: !!int x\n", 1, "cannot be read as int"),
        ("admin: " + "9" * 5000 + "\n", 1, "cannot be read as int"),
        ("admin:\n  module_name: a\n  module_name: b\n", 3, "in lines 2 and 3"),
        ("admin: &a [*a]\n", 1, "recursive alias"),
        ("[" * 200_000, 1, "nested more than 100 levels"),
        ("admin: " + "{a: " * 5000 + "}" * 5000, 1, "nested more than 100 levels"),
        ("{<<: 3}\n", 1, "takes a mapping"),
    ],
)
def test_yaml_that_cannot_be_a_config_is_refused_with_its_line(
    folder: Folder, text: str, line: int, message: str
) -> None:
    (problem,) = [each for each in folder.problems(text) if message in str(each)]
    assert (problem.file, problem.line) == (CONFIG, line)


def test_alias_bombs_are_refused(folder: Folder) -> None:
    wide = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
    )
    assert "aliases are too large" in folder.problem(wide).message
    deep = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 500))
    assert "nested more than" in folder.problem(deep).message


def test_merge_keys_work_and_keep_their_lines(folder: Folder) -> None:
    text = yaml.safe_dump(minimal()).replace(
        f"{AGENT}: {{}}",
        f"{AGENT}:\n  planner: &p\n    model: m\n    temperature: 1e-1\n  editor:\n    <<: *p\n   "
        " model: e\n",
    )
    stages = folder.load(text).generation.stages
    assert stages["editor"] == StageModel("editor", "e", temperature=0.1)
    broken = text.replace("1e-1", "warm")
    lines = {problem.line for problem in folder.problems(broken)}
    assert lines == {broken[: broken.index("warm")].count("\n") + 1}


def test_files_that_are_no_text_are_refused(folder: Folder) -> None:
    path = folder.root / CONFIG

    def message() -> str:
        with pytest.raises(InputError) as caught:
            load_suite(path, cwd=folder.root, rootdir=folder.root)
        return str(caught.value)

    path.write_bytes(b"admin:\n  a: \xff\n")
    assert message().startswith(f"{CONFIG}:2: is not UTF-8 text")
    path.write_bytes(b"PK\x03\x04\x00\x00")
    assert "control character" in message()
    path.write_bytes(b"a" * (MAX_BYTES + 1))
    assert "at most" in message()
    path.unlink()
    assert "no such file" in message()
    path.mkdir()
    assert "is a folder" in message()


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(folder: Folder) -> None:
    (folder.root / CONFIG).write_bytes(
        b"\xef\xbb\xbf" + yaml.safe_dump(minimal()).replace("\n", "\r\n").encode()
    )
    assert load_suite(Path(CONFIG), cwd=folder.root, rootdir=folder.root).module_name == "demo"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_value_anywhere_gives_a_traceback(folder: Folder, data: st.DataObject) -> None:
    config = yaml.safe_load(FULL)
    paths = list(_paths(config))
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
        ),
        max_leaves=6,
    )
    for path in data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3)):
        here: Any = config
        for part in path[:-1]:
            here = here[part] if isinstance(here, dict) and part in here else {}
        if isinstance(here, dict):
            here[path[-1]] = data.draw(values)
    with contextlib.suppress(InputError):
        folder.load(config)


def _paths(config: dict[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in config.items():
        found.append((*prefix, key))
        if isinstance(value, dict):
            found.extend(_paths(value, (*prefix, key)))
    return found


FULL = """\
admin:
  module_name: demo
  time_stamp: null
  test_debug_mode: false
  output_file_format: csv
  dataset_config:
    dataset_name: demo.eval
    default_params_path: {rubric: rubric.json}
    use_original_data_as_expected: false
    default_params: {min_score: "1", max_score: "6"}
  perturbation_config:
    use_HITL_process: true
    tests_to_run: [agent_perturbation, agent_positives]
    preprocess_columns_map: {request: r}
  evaluation_config:
    template: agent_autograder
    autograder_model_name: openai/judge
    judges: [{name: a, model: m, template: agent_autograder, preprocess_columns_map: {}}]
    overwrite_results: true
    max_workers: 5
    tests_to_evaluate: [agent_perturbation]
    metric: accuracy_score
    bootstrap_size: 0.1
    bootstrap_repetitions: 1
    get_cost_curves: false
    aggregation_method: majority_vote
    aggregation_reference_column: x
synthetic_data_params: {generation_model_name: openai/maker, validation_model_name: v, max_workers: 5, seed: 1}
test_stochastic_stability_config: {anything: [1, {at: all}]}
test_agent_perturbation_config:
  input_log_path: ./inputs/data/demo/demo.eval
  rubric_path: ./inputs/data/demo/rubric.json
  target_rubric_ids: [kind]
  planner: {model: p, temperature: 1, system_prompt: s, max_tokens: 9, timeout: 1.5, api_base: "http://h/v1"}
  editor: {rate_limit: {calls: 1, period: 2}}
  summary: {}
  verifier: {model: v}
  max_summary_messages: 60
  max_edit_rounds: 20
  transcript_preprocessors: [agent_helpers.preprocessors.drop_reasoning_traces]
  trace_messages: false
  autograder_default_params: {lowest_score: 1, highest_score: 3}
  score_targets: "1,3"
  objective: fail
  pass_required: false
  output: {dir: ./outputs/x, write_jsonl: true, overwrite: false}
  sample_num_from_orig: 5
  sampling_seed: 87
judge: {temperature: 0, show_reasoning: true}
gate: {min_accuracy: {agent_perturbation: 0.85}, lower_bound: true, max_regressions: 1, min_cases: 2}
replay: {cassette_dir: tapes, record_mode: none, judge_record_mode: all, frozen: false}
"""


def test_known_keys_without_meaning_are_named_once_together(folder: Folder) -> None:
    (notice,) = folder.load(FULL).notices
    assert notice == (
        f"{CONFIG}: not used by agentic tests: admin.test_debug_mode, "
        "admin.dataset_config.use_original_data_as_expected, "
        "admin.perturbation_config.preprocess_columns_map, "
        "admin.evaluation_config.judges[0].preprocess_columns_map, admin.evaluation_config."
        "{aggregation_reference_column, overwrite_results, bootstrap_size, bootstrap_repetitions, "
        "get_cost_curves}, "
        "synthetic_data_params.{validation_model_name, max_workers}, "
        f"{AGENT}.trace_messages, test_stochastic_stability_config"
    )


def test_the_resolved_config_leaves_nothing_open_and_loads_to_the_same_suite(
    folder: Folder,
) -> None:
    for text in (FULL, yaml.safe_dump(minimal())):
        suite = folder.load(text)
        written = yaml.safe_dump(dict(suite.resolved), sort_keys=False)
        again = folder.load(written)
        assert replace(again, notices=()) == replace(suite, notices=())
        assert yaml.safe_dump(dict(again.resolved), sort_keys=False) == written
        assert str(folder.root) not in written


@pytest.mark.skipif(not AGENTHARM.is_dir(), reason="the shared AgentHarm data is not here")
def test_rands_agentharm_config_loads_unchanged(tmp_path: Path) -> None:
    shutil.copytree(AGENTHARM, tmp_path / "agentharm")
    root = tmp_path / "agentharm"
    suite = load_suite(Path("inputs/configs/config_agentharm.yml"), cwd=root, rootdir=root)
    assert (suite.name, suite.mode, suite.source.sample_num, suite.source.sampling_seed) == (
        "config_agentharm",
        "binary",
        5,
        87,
    )
    assert [(rubric.id, rubric.line) for rubric in suite.rubrics] == [("agentharm", 2)]
    assert suite.source.path == root / "inputs/data/agentharm/agentharm.eval"
    assert suite.tests[0].output_dir == root / "outputs/agent_perturbation/agentharm"
    assert suite.generation.stages["verifier"].model == "openai/gpt-4.1-mini"
    assert suite.instruction.startswith("Assess the harmfulness")
    assert suite.source.preprocessors == ("agent_helpers.preprocessors.drop_reasoning_traces",)
    assert (suite.max_workers, suite.generation.use_hitl) == (5, True)


def test_a_metric_needs_scikit_learn_and_a_known_name(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = folder.problem(changed("admin.evaluation_config.metric", "f1_scor"))
    assert unknown.hint == "f1_score is the nearest"
    monkeypatch.setattr(resolve, "find_spec", lambda name: None)
    missing = folder.problem(changed("admin.evaluation_config.metric", "f1_score"))
    assert "pytest-jrh[sklearn]" in (missing.hint or "")
    assert (
        folder.load(changed("admin.evaluation_config.metric", "accuracy_score")).output.metric
        == "accuracy_score"
    )


@pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_every_metric_on_offer_is_a_number_of_labels_against_labels() -> None:
    metrics = importlib.import_module("sklearn.metrics")

    for name in resolve.METRICS:
        assert isinstance(float(getattr(metrics, name)([0, 1, 1, 0], [0, 1, 0, 0])), float)


def test_xlsx_without_openpyxl_is_csv_and_says_so(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = changed("admin.output_file_format", "xlsx")
    monkeypatch.setattr(resolve, "find_spec", lambda name: None)
    suite = folder.load(data)
    assert suite.output.format == "csv"
    assert "pytest-jrh[xlsx]" in suite.notices[0]
    monkeypatch.setattr(resolve, "find_spec", lambda name: object())
    assert folder.load(data).output.format == "xlsx"


def test_a_frozen_suite_needs_its_cases_and_no_log(folder: Folder) -> None:
    (folder.data / "demo.eval").unlink()
    data = changed(f"{AGENT}.output.dir", "inputs/suites/demo")
    assert "the log" in folder.problem(data).message
    data["replay"] = {"frozen": True}
    problem = folder.problem(data)
    assert problem.key == "replay.frozen"
    assert "inputs/suites/demo/agent_perturbations.jsonl" in problem.message
    cases = folder.root / "inputs/suites/demo/agent_perturbations.jsonl"
    cases.parent.mkdir(parents=True)
    cases.write_text("", encoding="utf-8")
    assert folder.load(data).replay.frozen == cases
    del data["replay"]
    assert folder.load(data, frozen=True).replay.frozen == cases
    del data["admin"]["dataset_config"]["dataset_name"]
    data["replay"] = {"frozen": "./inputs/suites/demo/agent_perturbations.jsonl"}
    assert folder.load(data).replay.frozen == cases


def test_a_frozen_suite_over_two_folders_asks_for_one(folder: Folder) -> None:
    problem = folder.problem(changed("replay.frozen", True))
    assert f"set {AGENT}.output.dir" in (problem.hint or "")


def test_suites_are_told_from_other_files(folder: Folder, tmp_path: Path) -> None:
    def looks(text: str) -> bool:
        (tmp_path / "x.yml").write_text(text, encoding="utf-8")
        return looks_like_suite(tmp_path / "x.yml")

    assert looks("# a suite\nadmin:\n\tbroken: [\n")
    assert looks(f'"{AGENT}": {{}}\n')
    assert looks('{"synthetic_data_params": {}, "admin": {}}')
    assert not looks("- id: a\n  instructions: admin: x\n")
    assert not looks("users:\n  admin: me\n")
    assert not looks("")
    assert not looks_like_suite(tmp_path)
    assert not looks_like_suite(tmp_path / "missing.yml")


def test_a_config_may_be_json(folder: Folder) -> None:
    path = folder.root / "suite.json"
    path.write_text(json.dumps(minimal(), indent=1).replace("/", "\\/"), encoding="utf-8")
    assert (
        load_suite(path, cwd=folder.root, rootdir=folder.root).generation.stages["editor"].model
        == "openai/maker"
    )


def test_lines_are_those_of_the_keys(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text("a:\n  b:\n    - c: 1\n\n    - c: 2\n", encoding="utf-8")
    document = read_document(path)
    assert [
        document.line(key)
        for key in [("a",), ("a", "b"), ("a", "b", 1), ("a", "b", 1, "c"), ("a", "z")]
    ] == [
        1,
        2,
        5,
        5,
        1,
    ]


def test_loading_a_suite_imports_nothing_heavy() -> None:
    heavy = "('litellm', 'inspect_ai', 'vcr', 'jinja2', 'sklearn', 'openpyxl', 'pytest', 'numpy')"
    code = (
        f"import sys, pytest_jrh.suite.config; print([name for name in {heavy} if name in "
        "sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "judged",
    [{"tests_to_run": ["agent_perturbation"]}, {"tests_to_evaluate": ["agent_perturbation"]}],
)
def test_a_minimal_accuracy_for_a_test_without_verdicts_is_refused(
    folder: Folder, judged: dict[str, list[str]]
) -> None:
    (name, tests), *_ = judged.items()
    section = "perturbation_config" if name == "tests_to_run" else "evaluation_config"
    config = changed("gate.min_accuracy", {"agent_positives": 0.9})
    config["admin"]["perturbation_config"]["tests_to_run"] = [
        "agent_perturbation",
        "agent_positives",
    ]
    config["admin"].setdefault(section, {})[name] = tests
    (problem,) = folder.problems(config)
    assert problem.key == "gate.min_accuracy.agent_positives"
    assert "the suite has no verdicts; it judges agent_perturbation" in problem.message

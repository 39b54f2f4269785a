"""Config files: what they take where they say nothing, and the files they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from pytest_jrh.config.load import load_suite, looks_like_suite
from pytest_jrh.core.errors import InputError
from tests.support.configs import AGENT, ORDINAL_RUBRIC, Folder, changed, minimal

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_minimal_config_takes_every_default(folder: Folder) -> None:
    suite = folder.load(minimal())
    root, config = folder.root, suite.config
    assert (suite.name, suite.module_name, suite.mode) == ("demo", "demo", "binary")
    assert suite.logs[0] == folder.data / "demo.eval"
    assert [rubric.id for rubric in suite.rubrics] == ["kind", "safe"]
    assert (config.cases.edits_at_most, config.cases.sample, config.cases.seed) == (3, 0, 8234)
    assert (config.rand.summary_turns, config.rand.confirmed, config.rand.renew) == (20, True, True)
    assert (config.recording.mode, config.recording.max_workers) == (None, 10)
    assert config.rand.metric == "accuracy_score"
    assert suite.cassette_dir == root / "inputs/cassettes/demo"
    assert suite.custom_prompts_dir == root / "inputs/custom_prompts/demo"
    assert suite.results_dir == root / "outputs/demo"
    assert (suite.instruction, suite.frozen, suite.notices) == ("", None, ())


def test_keys_that_mean_nothing_are_named(folder: Folder) -> None:
    suite = folder.load(changed("admin.test_debug_mode", value=True))
    [notice] = suite.notices
    assert notice.endswith("demo.yml: not used by agentic tests: admin.test_debug_mode")


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
    assert suite.logs[0] == folder.root / "other.eval"
    assert [rubric.id for rubric in suite.rubrics] == ["z"]


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
        assert load().logs[0] == place / "a.eval"
    assert load().rubrics[0].file == str(beside / "r.json")


def test_sampling_falls_back_key_by_key(folder: Folder) -> None:
    data = minimal()
    data["synthetic_data_params"] |= {"sample_num_from_orig": 5, "seed": 87}
    assert (folder.load(data).config.cases.sample, folder.load(data).config.cases.seed) == (5, 87)
    data[AGENT] = {"sample_num_from_orig": 2}
    assert (folder.load(data).config.cases.sample, folder.load(data).config.cases.seed) == (2, 87)
    data[AGENT] = {"sample_num_from_orig": 0, "sampling_seed": 0}
    assert (folder.load(data).config.cases.sample, folder.load(data).config.cases.seed) == (0, 0)
    data[AGENT] = {"sample_num_from_orig": None}
    assert folder.load(data).config.cases.sample == 5


def test_a_time_stamp_is_taken_as_it_is_written(folder: Folder) -> None:
    text = yaml.safe_dump(minimal()).replace(
        "module_name: demo", "module_name: demo\n  time_stamp: 20251103_1222"
    )
    assert folder.load(text).results_dir == folder.root / "outputs/demo_20251103_1222"


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
    assert folder.load(data).frozen == cases
    del data["replay"]
    assert folder.load(data, frozen=True).frozen == cases
    del data["admin"]["dataset_config"]["dataset_name"]
    data["replay"] = {"frozen": "./inputs/suites/demo/agent_perturbations.jsonl"}
    assert folder.load(data).frozen == cases


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

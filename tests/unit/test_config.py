"""Config files: what they take where they say nothing, and the files they name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from pytest_jrh.config.load import load_suite, looks_like_suite
from pytest_jrh.core.documents import read_document
from pytest_jrh.core.errors import InputError
from tests.support.configs import AGENT, CONFIG, ORDINAL_RUBRIC, Folder, changed, minimal

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_minimal_config_takes_every_default(folder: Folder) -> None:
    suite = folder.load(minimal())
    root = folder.root
    assert (suite.name, suite.module_name, suite.mode) == ("demo", "demo", "binary")
    assert suite.config_file == root / CONFIG
    assert suite.logs[0] == folder.data / "demo.eval"
    assert suite.rubrics[0].file == str(folder.data / "rubric.json")
    assert [rubric.id for rubric in suite.rubrics] == ["kind", "safe"]
    assert (
        suite.config.rand.summary_turns,
        suite.config.cases.edits_at_most,
        suite.config.rand.confirmed,
    ) == (20, 3, True)
    assert (
        suite.config.rand.write_jsonl,
        suite.config.rand.renew,
        suite.config.recording.max_workers,
    ) == (
        True,
        True,
        10,
    )
    assert (suite.config.cases.sample, suite.config.cases.seed) == (0, 8234)
    assert (suite.config.recording.mode, suite.frozen) == (None, None)
    assert suite.cassette_dir == root / "inputs/cassettes/demo"
    assert suite.custom_prompts_dir == root / "inputs/custom_prompts/demo"
    assert suite.results_dir == root / "outputs/demo"
    assert suite.config.rand.metric == "accuracy_score"
    assert (
        suite.instruction,
        suite.config.cases.preprocess,
        suite.notices,
        suite.config.rand.review,
    ) == (
        "",
        (),
        (),
        False,
    )
    assert suite.logs[0].name == "demo.eval"


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


def test_a_missing_file_names_one_that_is_there(folder: Folder) -> None:
    problem = folder.problem(changed("admin.dataset_config.dataset_name", "dmo.eval"))
    assert problem.hint == "inputs/data/demo/demo.eval is there"


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
    assert folder.load(data).config.cases.preprocess == ("pkg.one",)
    data[AGENT] = {
        "transcript_preprocessors": ["pkg.b", "pkg:a"],
        "transcript_preprocessor": "pkg.one",
    }
    assert folder.load(data).config.cases.preprocess == ("pkg.b", "pkg:a")


def test_a_time_stamp_is_taken_as_it_is_written(folder: Folder) -> None:
    text = yaml.safe_dump(minimal()).replace(
        "module_name: demo", "module_name: demo\n  time_stamp: 20251103_1222"
    )
    assert folder.load(text).results_dir == folder.root / "outputs/demo_20251103_1222"


def test_null_is_the_same_as_no_key(folder: Folder) -> None:
    data = minimal()
    data[AGENT] = dict.fromkeys(
        ("planner", "summary", "verifier", "transcript_preprocessor", "output", "objective")
    )
    data["judge"] = None
    assert folder.load(data) == folder.load(minimal())


def test_replay_and_existing_folders_follow_the_path_rule(folder: Folder, tmp_path: Path) -> None:
    data = minimal()
    data["replay"] = {"cassette_dir": "tapes", "record_mode": "once"}
    suite = folder.load(data)
    assert (suite.cassette_dir, suite.config.recording.mode) == (folder.root / "tapes", "once")
    (folder.root / "inputs/configs/tapes").mkdir()
    assert folder.load(data).cassette_dir == folder.root / "inputs/configs/tapes"


def test_xlsx_of_a_config_of_rands_is_csv_and_says_so(folder: Folder) -> None:
    [notice] = folder.load(changed("admin.output_file_format", "xlsx")).notices
    assert notice.endswith(
        "output_file_format is xlsx; tables are CSV, which spreadsheets open, too"
    )


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


def test_a_config_may_be_json(folder: Folder) -> None:
    path = folder.root / "suite.json"
    path.write_text(json.dumps(minimal(), indent=1).replace("/", "\\/"), encoding="utf-8")
    assert (
        load_suite(path, cwd=folder.root, rootdir=folder.root).stages["editor"].model
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
    heavy = "('litellm', 'inspect_ai', 'vcr', 'jinja2', 'sklearn', 'pytest', 'numpy')"
    code = (
        f"import sys, pytest_jrh.config.load; print([name for name in {heavy} if name in "
        "sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support import suites
from tests.support.suites import (
    REMOVED,
    built_log,
    copy_agentharm,
    merged,
    rubric,
    run,
    write_suite,
)

if TYPE_CHECKING:
    from pathlib import Path


def samples_in(log: Path) -> list[Any]:
    with zipfile.ZipFile(log) as archive:
        names = sorted(name for name in archive.namelist() if name.startswith("samples/"))
        return [json.loads(archive.read(name)) for name in names]


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


class TestWriteSuite:
    def test_writes_a_config_that_names_the_files_beside_it(self, tmp_path: Path) -> None:
        suite = write_suite(tmp_path, name="shop")
        config = loaded(suite.config)
        dataset = config["admin"]["dataset_config"]
        assert suite.option == "--jrh-config=inputs/configs/shop.yml"
        assert suite.data == tmp_path / "inputs" / "data" / config["admin"]["module_name"]
        assert (suite.data / dataset["dataset_name"]).is_file()
        assert [
            entry["id"] for entry in loaded(suite.data / dataset["default_params_path"]["rubric"])
        ] == ["rubric-1"]
        assert config["admin"]["perturbation_config"]["tests_to_run"] == [
            "agent_perturbation",
            "agent_positives",
        ]
        assert config["admin"]["evaluation_config"]["template"] == "agent_judge"

    def test_ordinal_rubrics_have_levels_and_no_yaml_aliases(self, tmp_path: Path) -> None:
        suite = write_suite(tmp_path, mode="ordinal", rubrics=2)
        text = (suite.data / "rubrics.yml").read_text(encoding="utf-8")
        assert [level["score"] for level in yaml.safe_load(text)[1]["score_levels"]] == [0, 1, 2]
        assert "&" not in text
        assert loaded(suite.config)["admin"]["evaluation_config"]["template"] == "agent_autograder"

    def test_takes_runs_and_rubrics_of_the_tests_own(self, tmp_path: Path) -> None:
        messages = [
            {"role": "user", "content": "Hi", "id": "u"},
            {"role": "assistant", "content": "Hello", "id": "a"},
        ]
        suite = write_suite(
            tmp_path,
            runs=[run(1), run(1, epoch=2), run(2, messages=messages, target="Hello")],
            rubrics=[{"id": "tone", "instructions": "Be kind."}],
        )
        samples = samples_in(suite.data / "runs.eval")
        assert [(sample["id"], sample["epoch"]) for sample in samples] == [
            ("run-1", 1),
            ("run-1", 2),
            ("run-2", 1),
        ]
        assert [message["content"] for message in samples[2]["messages"]] == ["Hi", "Hello"]
        assert samples[2]["target"] == "Hello"
        assert samples[0]["messages"][2]["tool_calls"][0]["function"] == "look_up_order"
        assert loaded(suite.data / "rubrics.yml") == [{"id": "tone", "instructions": "Be kind."}]

    def test_copies_a_log_that_is_there(self, tmp_path: Path) -> None:
        log = tmp_path / "mine.json"
        log.write_text("not a log")
        suite = write_suite(tmp_path, log=log)
        assert (suite.data / "runs.json").read_text() == "not a log"
        assert loaded(suite.config)["admin"]["dataset_config"]["dataset_name"] == "runs.json"

    def test_suites_share_a_folder(self, tmp_path: Path) -> None:
        one, two = (write_suite(tmp_path, name=name) for name in ("one", "two"))
        assert one.config.parent == two.config.parent
        assert one.data != two.data
        assert one.cassettes != two.cassettes

    def test_overrides_reach_the_config(self, tmp_path: Path) -> None:
        overrides = {"admin": {"module_name": REMOVED}, "replay": {"record_mode": "once"}}
        config = loaded(write_suite(tmp_path, overrides=overrides).config)
        assert "module_name" not in config["admin"]
        assert config["admin"]["perturbation_config"]["tests_to_run"]
        assert config["replay"] == {"record_mode": "once"}


def test_a_log_is_built_once_for_equal_samples() -> None:
    assert built_log([run(1)]) == built_log([run(1)])
    assert built_log([run(1)]) != built_log([run(2)])


def test_merging_replaces_lists_and_changes_nothing_in_place() -> None:
    base = {"a": {"b": [1, 2], "c": 3}, "d": 4}
    assert merged(base, {"a": {"b": [5]}, "d": REMOVED, "e": {"f": 6}}) == {
        "a": {"b": [5], "c": 3},
        "e": {"f": 6},
    }
    assert base == {"a": {"b": [1, 2], "c": 3}, "d": 4}


def test_binary_rubrics_have_no_levels() -> None:
    assert set(rubric(1)) == {"id", "instructions"}


class TestAgentharm:
    @pytest.fixture
    def original(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        config = tmp_path / "there" / "inputs" / "configs" / "config_agentharm.yml"
        config.parent.mkdir(parents=True)
        config.write_text("admin: {module_name: agentharm}  # as published\n")
        monkeypatch.setattr(suites, "_AGENTHARM", tmp_path / "there")
        return config

    def test_is_copied_to_the_byte(self, original: Path, tmp_path: Path) -> None:
        suite = copy_agentharm(tmp_path / "copy")
        assert suite.config.read_bytes() == original.read_bytes()
        assert (suite.name, suite.module) == ("config_agentharm", "agentharm")

    def test_variants_stand_beside_the_original(self, original: Path, tmp_path: Path) -> None:
        suite = copy_agentharm(
            tmp_path / "copy", overrides={"admin": {"output_file_format": "csv"}}, name="all_runs"
        )
        assert loaded(suite.config) == {
            "admin": {"module_name": "agentharm", "output_file_format": "csv"}
        }
        assert suite.config.with_name("config_agentharm.yml").read_bytes() == original.read_bytes()

    def test_is_skipped_where_it_is_absent(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(suites, "_AGENTHARM", tmp_path / "nowhere")
        with pytest.raises(pytest.skip.Exception, match="not there"):
            copy_agentharm(tmp_path / "copy")

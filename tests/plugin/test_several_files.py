"""A suite on several files, two of which have runs of one id: the whole way through a session."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.plugin.recorded import run_pytest
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, built_log, run, write_suite

AGENT = "test_agent_perturbation_config"
TURNS = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
SHARED = "note: tiny: 1 id of runs in more than one file"
GATE = ("--jrh-baseline=base.json",)


@pytest.fixture(scope="module")
def recorded_folder(tmp_path_factory: pytest.TempPathFactory) -> SuiteFiles:
    """A folder with two logs and a file of conversations, recorded once."""
    folder = tmp_path_factory.mktemp("several")
    suite = write_suite(folder, runs=1, tests=["agent_perturbation"])
    logs = suite.data / "logs"
    logs.mkdir()
    for name in ("gpt", "claude"):
        shutil.copyfile(built_log([run(1)]), logs / f"{name}.eval")
    line = json.dumps({"id": "chat", "messages": TURNS})
    (logs / "more.jsonl").write_text(line, encoding="utf-8")
    (logs / "notes.json").write_text("{}", encoding="utf-8")
    config = yaml.safe_load(suite.config.read_text(encoding="utf-8"))
    config[AGENT] = {"input_log_path": "inputs/data/tiny/logs"}
    suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    with ModelServer() as server:
        done = run_pytest(
            folder,
            suite.option,
            "--jrh-record-mode=once",
            *GATE,
            "--jrh-update-baseline",
            env=server.environment,
        )
    assert done.code == pytest.ExitCode.OK, done.stdout
    return suite


@pytest.fixture
def several(recorded_folder: SuiteFiles, tmp_path: Path) -> SuiteFiles:
    folder = tmp_path / "copy"
    shutil.copytree(recorded_folder.folder, folder)
    return SuiteFiles(folder, folder / "inputs/configs/tiny.yml", "tiny")


def test_runs_of_all_files_are_replayed_compared_and_reported(several: SuiteFiles) -> None:
    outputs = ("--jrh-report=r.html", "--jrh-report=s.md")
    done = run_pytest(several.folder, several.option, "-rA", "-v", *GATE, *outputs)
    assert done.code == pytest.ExitCode.OK, done.stdout
    names = sorted(line.rpartition("::")[2] for line in done.lines if line.startswith("PASSED"))
    assert names == ["chat[e1]", "run-1@gpt[e1]", "run-1[e1]"]
    assert done.stdout.count(SHARED) == 1
    assert done.stdout.count("left out 1 file that does not look like transcripts: notes.json") == 1
    assert "3 of 3 cases of the baseline compared: 0 regressions, 0 fixes" in done.stdout
    assert all((several.folder / name).exists() for name in ("r.html", "s.md"))
    assert "run-1@gpt" in (several.folder / "r.html").read_text(encoding="utf-8")


def test_what_is_planned_and_what_is_unused_is_known_of_all_files(several: SuiteFiles) -> None:
    (several.data / "logs" / "claude.eval").unlink()
    unused = run_pytest(several.folder, several.option, "--jrh-prune", "--jrh-plan")
    # The id is in one file now, and goes by its own name again.
    assert "run-1@gpt.e1.generation.yaml" in unused.stdout
    assert "run-1.e1.generation.yaml" not in unused.stdout


def test_a_damaged_file_among_them_is_a_usage_error_that_names_it(several: SuiteFiles) -> None:
    (several.data / "logs" / "more.jsonl").write_text('{"id": 1,', encoding="utf-8")
    done = run_pytest(several.folder, several.option)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "inputs/data/tiny/logs/more.jsonl:1: is not valid JSON" in done.stderr


def test_a_log_that_is_added_leaves_recordings_and_baseline_of_the_first_valid(
    tmp_path: Path,
) -> None:
    suite = write_suite(tmp_path, runs=1, tests=["agent_perturbation"])
    logs = suite.data / "logs"
    logs.mkdir()
    shutil.copyfile(built_log([run(1)]), logs / "first.eval")
    config = yaml.safe_load(suite.config.read_text(encoding="utf-8"))
    config[AGENT] = {"input_log_path": "inputs/data/tiny/logs"}
    suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    update = ("--jrh-record-mode=once", *GATE, "--jrh-update-baseline")
    with ModelServer() as server:
        run_pytest(tmp_path, suite.option, *update, env=server.environment)
    shutil.copyfile(logs / "first.eval", logs / "second.eval")
    done = run_pytest(tmp_path, suite.option, "-rA", "-v", *GATE)
    assert "1 of 1 case of the baseline compared: 0 regressions, 0 fixes" in done.stdout
    assert any(line.startswith("PASSED") and "::run-1[e1]" in line for line in done.lines)
    assert any(line.startswith("ERROR") and "::run-1@second[e1]" in line for line in done.lines)


def test_a_plan_says_which_runs_cannot_be_read(several: SuiteFiles) -> None:
    spoken = [{"role": "user", "text": "Hi."}, {"role": "assistant", "text": "Hello."}]
    with (several.data / "logs" / "more.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps({"id": "other", "messages": spoken}))
    planned = run_pytest(several.folder, several.option, "--jrh-plan")
    assert planned.code == pytest.ExitCode.OK, planned.stdout
    text = " ".join(planned.stdout.split())
    assert "1 case with an invalid input (input_error), about which nothing is asked" in text
    assert "cannot be read: line 2: message 0 has text in place of content." in text

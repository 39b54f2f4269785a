"""A suite on ATIF trajectories and on a job of Harbor: the whole way."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_jrh.__main__ import main
from pytest_jrh.sources import open_sources
from tests.plugin.labelled import content
from tests.plugin.recorded import run_pytest
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.results import results_in
from tests.support.suites import REMOVED, SuiteFiles, write_suite
from tests.support.trajectories import (
    EXAMPLES,
    HELLO,
    trajectory,
    write,
    write_job,
    write_lines,
    write_trial,
)

AGENT = "test_agent_perturbation_config"


def reconfigure(suite: SuiteFiles, **keys: Any) -> None:
    config = yaml.safe_load(suite.config.read_text("utf-8"))
    config.setdefault(AGENT, {}).update(keys)
    suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")


def test_what_was_recorded_of_json_lines_answers_for_the_trajectories(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "runs.jsonl", EXAMPLES)
    suite = write_suite(tmp_path / "suite", log=lines)
    reconfigure(suite, input_log_path="inputs/data/tiny/runs.jsonl")
    with ModelServer() as server:
        recorded = run_pytest(
            suite.folder,
            suite.option,
            "-rA",
            "--jrh-record-mode=once",
            env=server.environment,
        )
    assert recorded.code == pytest.ExitCode.OK, recorded.stdout
    cases = case_lines(recorded.lines)
    assert len(cases) == 2 * len(EXAMPLES)
    shutil.rmtree(suite.folder / "outputs")
    for example in EXAMPLES:
        write(suite.data / "atif" / f"{example.run_id}.json", example.trajectory)
    reconfigure(suite, input_log_path="inputs/data/tiny/atif")
    replayed = run_pytest(suite.folder, suite.option, "-rA")
    assert replayed.code == pytest.ExitCode.OK, replayed.stdout
    assert case_lines(replayed.lines) == cases
    assert any("  0 calls, " in line for line in replayed.lines)
    assert "unrecorded" not in replayed.stdout


def case_lines(lines: list[str]) -> list[str]:
    """The outcome of each case, with its id."""
    outcomes = ("PASSED ", "FAILED ", "SKIPPED ", "ERROR ")
    return sorted(line.partition(" - ")[0] for line in lines if line.startswith(outcomes))


def labelled_job(folder: Path, **labels: Any) -> SuiteFiles:
    """A suite on a job of 12 trials, of which one has no reward and one no trajectory."""
    lines = write_lines(folder.parent / "runs.jsonl", EXAMPLES[:1])
    suite = write_suite(
        folder,
        log=lines,
        tests=("agent_labels",),
        name="job",
        overrides={"synthetic_data_params": REMOVED},
    )
    job = write_job(suite.data / "monday")
    for number in range(12):
        rewards: Mapping[str, Any] | None = {"rewards": {"reward": float(number % 4 != 0)}}
        value = trajectory(*HELLO, session_id=f"s{number}")
        write_trial(
            job,
            f"task-{number // 3}__{number:02}",
            None if number == 11 else value,
            verifier_result=None if number == 10 else rewards,
        )
    section = {"scorer": "reward", "map": {1: "satisfied", 0: "violated"}, **labels}
    reconfigure(suite, input_log_path="inputs/data/job/monday", labels=section)
    return suite


def test_the_rewards_of_a_job_are_labels_of_its_trials(tmp_path: Path) -> None:
    suite = labelled_job(tmp_path / "suite")
    with ModelServer(override(Obedient(), judge=content)) as server:
        done = run_pytest(
            suite.folder,
            suite.option,
            "-rA",
            "--jrh-record-mode=once",
            env=server.environment,
        )
    # The judge finds no violation: trials 0, 4 and 8, whose reward is 0, are disagreements.
    failed = [line for line in case_lines(done.lines) if line.startswith("FAILED")]
    assert [line.rpartition("::")[2] for line in failed] == [
        "task-0__00[e1]",
        "task-1__04[e1]",
        "task-2__08[e1]",
    ]
    assert "3 failed, 7 passed, 1 skipped" in done.lines[-1]
    assert "1 run without the score of reward: no label." in done.stdout
    replayed = run_pytest(suite.folder, suite.option)
    assert "10 replayed" in replayed.stdout
    assert {result.spec.cluster for result in results_in(suite.results)} == {
        f"orders/task-{n}" for n in range(4)
    }


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        ({"map": None}, "has the values 0.0, 1.0, and no map says which of them is violated"),
        ({"scorer": "rewards"}, "the scorers are reward"),
    ],
)
def test_rewards_that_nobody_explained_or_that_are_not_there_are_refused(
    tmp_path: Path, labels: dict[str, Any], complaint: str
) -> None:
    suite = labelled_job(tmp_path / "suite", **labels)
    done = run_pytest(suite.folder, suite.option)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert complaint in " ".join(done.stderr.split())


def test_a_broken_trajectory_ends_the_session_before_any_call(tmp_path: Path) -> None:
    suite = labelled_job(tmp_path / "suite")
    trial = suite.data / "monday" / "task-0__00"
    value = trajectory(*HELLO)
    value["steps"][1]["mesage"] = value["steps"][1].pop("message")
    write(trial / "agent" / "trajectory.json", value)
    done = run_pytest(suite.folder, suite.option)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    said = " ".join(done.stderr.split())
    assert "task-0__00/agent/trajectory.json:13: steps[1]: unknown fields: mesage" in said
    assert "Traceback" not in done.stderr


def test_a_suite_is_started_on_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = labelled_job(tmp_path / "suite").data / "monday"
    folder = tmp_path / "new"
    folder.mkdir()
    assert main(["init", "refunds", "--log", str(job), "--folder", str(folder)]) == 0
    assert "12 runs" in capsys.readouterr().out
    copied = folder / "inputs" / "data" / "refunds" / "runs"
    files = sorted(str(file.relative_to(copied)) for file in copied.rglob("*.json*"))
    assert len(files) == 12 + 11
    assert files[:2] == ["task-0__00/agent/trajectory.json", "task-0__00/result.json"]


def test_a_job_whose_tasks_have_names_of_any_language_is_copied_with_its_rewards(
    tmp_path: Path,
) -> None:
    names = ["café__ab", "naïve task__cd"]
    for reward, name in enumerate(names):
        rewards = {"rewards": {"reward": float(reward)}}
        write_trial(tmp_path / "job", name, trajectory(*HELLO), verifier_result=rewards)
    assert main(["init", "new", "--log", str(tmp_path / "job"), "--folder", str(tmp_path)]) == 0
    with open_sources((tmp_path / "inputs" / "data" / "new" / "runs",)) as source:
        assert {run.key: run.scores for run in source.fields()} == {
            (name, 1): {"reward": float(reward)} for reward, name in enumerate(names)
        }

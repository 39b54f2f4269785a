"""Real labelled runs as suites: what their authors' tables say comes out of a session."""

from __future__ import annotations

import csv
import json
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plugin.recorded import Done, run_pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
TRAJECTORIES = DATA / "trajectory-judge"
AIRLINE = DATA / "tau-bench" / "gpt-4o-airline.json"
# By judge: kappa, and true positives, false positives, false negatives, true negatives.
PUBLISHED = {
    "programmatic": (0.500, (200, 0, 100, 100)),
    "outcome:qwen2.5:14b": (0.222, (184, 33, 116, 67)),
    "step:qwen2.5:14b": (0.749, (257, 0, 43, 100)),
    "step:llama3.1:8b": (-0.015, (297, 100, 3, 0)),
    "selfcons3:qwen2.5:14b": (0.723, (253, 1, 47, 99)),
}
JUDGES = """
import json
from functools import cache
from pathlib import Path

@cache
def verdicts():
    with Path({path!r}).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {{(row["judge_id"], row["trajectory_id"]): row for row in rows}}

def said(judge, case):
    row = verdicts()[judge, case.metadata["trajectory"]]
    return int(row["faulty"]), row["rationale"]
"""


def write(folder: Path, name: str, config: dict[str, Any]) -> str:
    """Write a suite of one binary rubric; gives the option that runs it."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    rubrics = [{"id": "process", "instructions": "The agent keeps to the process."}]
    (folder / "rubrics.yml").write_text(yaml.safe_dump(rubrics), encoding="utf-8")
    config["test_agent_perturbation_config"]["output"] = {"rand": True}
    (folder / f"{name}.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return f"--jrh-config={name}.yml"


def config(agent: Mapping[str, Any], evaluation: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "admin": {
            "module_name": "natural",
            "perturbation_config": {"tests_to_run": ["agent_labels"]},
            "evaluation_config": {"template": "agent_judge", **evaluation},
        },
        "test_agent_perturbation_config": {"rubric_path": "rubrics.yml", **agent},
    }


def write_trajectories(
    folder: Path, seed: int | None = None, names: Sequence[str] = tuple(PUBLISHED)
) -> str:
    """The trajectories as conversations with a label each, and the recorded judges as functions.

    With a `seed` the labels are shuffled.
    """
    rows = [
        json.loads(line)
        for line in (TRAJECTORIES / "trajectories.jsonl").read_text("utf-8").splitlines()
    ]
    labels = [int(row["label"]["faulty"]) for row in rows]
    if seed is not None:
        random.Random(seed).shuffle(labels)
    with (folder / "runs.jsonl").open("w", encoding="utf-8") as file:
        for row in rows:
            messages = [
                {"role": "user", "content": row["goal"]},
                {"role": "assistant", "content": row["final_answer"] or "(none)"},
            ]
            run = {
                "id": row["trajectory_id"],
                "cluster": row["instance_id"],
                "messages": messages,
                "metadata": {"trajectory": row["trajectory_id"]},
            }
            file.write(json.dumps(run) + "\n")
    with (folder / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["run_id", "label"])
        writer.writerows(zip((row["trajectory_id"] for row in rows), labels, strict=True))
    code = JUDGES.format(path=str(TRAJECTORIES / "verdicts.jsonl"))
    judges = []
    for number, name in enumerate(names):
        code += f"\ndef judge_{number}(case):\n    return said({name!r}, case)\n"
        judges.append({"name": name, "python": f"judges.py:judge_{number}"})
    (folder / "judges.py").write_text(code, encoding="utf-8")
    agent = {"input_log_path": "runs.jsonl", "labels": {"path": "labels.csv", "by": "program"}}
    return write(folder, "trajectories", config(agent, {"judges": judges}))


def reports(folder: Path) -> dict[str, Any]:
    found = [json.loads(path.read_text("utf-8")) for path in folder.rglob("*_report.json")]
    return {report["meta_data"]["judge"]: report for report in found}


def files(folder: Path) -> dict[str, bytes]:
    """The files of a folder but the HTML page, which says how long the session took."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".html"
    }


@pytest.mark.skipif(not TRAJECTORIES.is_dir(), reason="../shared/data/trajectory-judge")
def test_five_recorded_judges_of_400_labelled_trajectories(tmp_path: Path) -> None:
    option = write_trajectories(tmp_path)
    done = run_pytest(tmp_path, option, "--tb=no", "-v")
    assert any(line.split() == ["labels", "400", "by", "a", "program"] for line in done.lines)
    found = reports(tmp_path / "outputs")
    for name, (kappa, counts) in PUBLISHED.items():
        overall = found[name]["statistics"]["overall"]
        [[true_negatives, false_positives], [false_negatives, true_positives]] = overall["binary"][
            "confusion_matrix"
        ]["counts"]
        assert (true_positives, false_positives, false_negatives, true_negatives) == counts
        assert overall["binary"]["kappa"]["value"] == pytest.approx(kappa, abs=6e-4)


# The best of the published judges, and a program.
TWO_JUDGES = ("step:qwen2.5:14b", "programmatic")


@dataclass(frozen=True, slots=True)
class Shuffled:
    """A session of two judges in one process, whose labels are shuffled, and its folder."""

    folder: Path
    option: str
    done: Done


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory: pytest.TempPathFactory) -> Shuffled:
    folder = tmp_path_factory.mktemp("shuffled")
    option = write_trajectories(folder, seed=8234, names=TWO_JUDGES)
    return Shuffled(folder, option, run_pytest(folder, option, "-q", "--tb=no"))


@pytest.mark.skipif(not TRAJECTORIES.is_dir(), reason="../shared/data/trajectory-judge")
def test_shuffled_labels_leave_no_agreement_beyond_chance(shuffled: Shuffled) -> None:
    found = reports(shuffled.folder / "outputs")
    assert set(found) == set(TWO_JUDGES)
    for report in found.values():
        interval = report["statistics"]["overall"]["binary"]["intervals"]["kappa"]
        assert interval["lower"] <= 0 <= interval["upper"]


@pytest.mark.skipif(not TRAJECTORIES.is_dir(), reason="../shared/data/trajectory-judge")
def test_workers_leave_the_same_bytes_of_400_trajectories(
    shuffled: Shuffled, tmp_path: Path
) -> None:
    shutil.copytree(shuffled.folder, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "outputs")
    again = run_pytest(tmp_path, shuffled.option, "-q", "--tb=no", "-n", "2")
    assert again.code == shuffled.done.code
    assert files(tmp_path / "outputs") == files(shuffled.folder / "outputs")


@pytest.mark.skipif(not AIRLINE.is_file(), reason="../shared/data/tau-bench")
def test_rewards_of_a_program_are_labels(tmp_path: Path) -> None:
    shutil.copyfile(AIRLINE, tmp_path / "runs.json")
    (tmp_path / "judges.py").write_text(
        "def judge(case):\n    assert 'reward' not in case.metadata\n    return 0\n",
        encoding="utf-8",
    )
    agent = {
        "input_log_path": "runs.json",
        "input_format": {
            "messages": "/traj",
            "id": ["/task_id", "/trial"],
            "cluster": "/task_id",
            "metadata": "/reward",
        },
        "labels": {"metadata": "reward", "map": {"1.0": 0, "0.0": 1}},
    }
    suite = config(agent, {}) | {"judge": {"python": "judges.py:judge"}}
    done = run_pytest(tmp_path, write(tmp_path, "airline", suite), "--tb=no", "-v")
    assert any(line.split() == ["labels", "200", "by", "a", "program"] for line in done.lines)
    [report] = reports(tmp_path / "outputs").values()
    counts = report["statistics"]["overall"]["binary"]["confusion_matrix"]["counts"]
    assert counts == [[84, 0], [116, 0]]

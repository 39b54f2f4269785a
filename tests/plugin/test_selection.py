"""A run of a selection, or one that is interrupted, leaves the results of all other cases as they
are."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_jrh.__main__ import main
from tests.plugin.gated import LAX, TINY, WORKERS, Project

RESULTS = Path("outputs", "tiny")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def counts(folder: Path) -> dict[str, int]:
    """Rows of every table and lines of every JSONL file, by name."""
    tables = {
        path.name: len(list(csv.DictReader(path.open(encoding="utf-8-sig"))))
        for path in folder.glob("*.csv")
    }
    return tables | {"results.jsonl": len(lines(folder / "results.jsonl"))}


def report(folder: Path) -> dict[str, Any]:
    [path] = folder.glob("*_report.json")
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value


@WORKERS
def test_a_selection_updates_its_cases_and_keeps_the_others(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    folder = project.folder / RESULTS
    pytester.runpytest(project.suite.option)
    before, whole = counts(folder), report(folder)
    assert whole["session"] == {"cases": 8, "kept": 0, "of": 8, "interrupted": False}
    done = pytester.runpytest(project.suite.option, "-k", "run-1", "--jrh-report=part.md", *workers)
    assert any(line.endswith("(6 cases deselected)") for line in done.outlines)
    assert "(6 cases deselected)" in (project.folder / "part.md").read_text("utf-8")
    assert counts(folder) == before
    part = report(folder)
    assert part["session"] == {"cases": 2, "kept": 6, "of": 8, "interrupted": False}
    assert part["statistics"] == whole["statistics"]
    assert [line["case_id"].split("::")[3] for line in lines(folder / "results.jsonl")] == [
        f"run-{number}[e1]" for number in (1, 2, 3, 4, 1, 2, 3, 4)
    ]
    assert sum(line["extra"].get("kept", False) for line in lines(folder / "results.jsonl")) == 6


def test_results_of_another_judge_or_another_version_of_a_case_are_not_kept(
    pytester: pytest.Pytester, project: Project
) -> None:
    pytester.runpytest(project.suite.option)
    path = project.folder / RESULTS / "results.jsonl"
    told = lines(path)
    told[1]["case_digest"] = "0" * 64
    told[2]["judge_digest"] = "0" * 64
    path.write_text("".join(f"{json.dumps(line)}\n" for line in told), encoding="utf-8")
    done = pytester.runpytest(project.suite.option, "-k", "run-1")
    left = "note: 1 result of earlier sessions left out of results.jsonl: "
    assert f"{left}the case has changed (rubric, transcript or label)." in done.outlines
    assert f"{left}the judge has changed (model, prompt or parameters)." in done.outlines
    assert counts(project.folder / RESULTS)["results.jsonl"] == 6


def test_results_of_another_config_are_not_kept_and_unreadable_ones_are_said(
    pytester: pytest.Pytester, project: Project
) -> None:
    path = project.folder / RESULTS / "results.jsonl"
    pytester.runpytest(project.suite.option)
    whole = path.read_text("utf-8")
    path.write_text(whole.replace(TINY, "another/tiny.yaml"), encoding="utf-8")
    pytester.runpytest(project.suite.option, "-k", "run-4")
    assert len(lines(path)) == 2
    damaged = whole.replace('"scores":[', '"scores":["', 1)
    assert damaged != whole
    path.write_text(damaged, encoding="utf-8")
    done = pytester.runpytest(project.suite.option, "-k", "run-4")
    done.stdout.fnmatch_lines(
        [
            "*The results of earlier sessions cannot be used, and were replaced.*",
            "*results.jsonl:1: not a case result: *",
        ]
    )
    assert len(lines(path)) == 2


def test_a_whole_run_drops_records_of_cases_that_are_gone(
    pytester: pytest.Pytester, project: Project
) -> None:
    pytester.runpytest(project.suite.option)
    path = project.suite.negatives / "agent_perturbations.jsonl"
    record = path.read_text("utf-8").splitlines()[0]
    with path.open("a", encoding="utf-8") as file:
        file.write(record.replace("run-1", "run-99") + "\n")
        file.write(record.replace('"tiny', '"another') + "\n")
    pytester.runpytest(project.suite.option, "-k", "run-1")
    assert len(lines(path)) == 6
    done = pytester.runpytest(project.suite.option)
    assert (
        f"note: 1 record of cases that are no longer in the suite dropped from {path}."
        in done.outlines
    )
    assert (
        sorted(line["case_id"].split("::")[0] for line in lines(path)) == ["another"] + ["tiny"] * 4
    )


def test_an_interrupted_session_says_so_in_every_report(
    pytester: pytest.Pytester, project: Project
) -> None:
    pytester.runpytest(f"--jrh-config={LAX}", "-k", "not agent_perturbation")
    names = ["--jrh-report=part.html", "--jrh-report=part.md"]
    done = pytester.runpytest(f"--jrh-config={LAX}", "-x", *names)
    said = "interrupted: 1 of 8 cases kept; the same command goes on"
    assert f"! {said}" in " ".join(" ".join(done.outlines).split())
    assert said in (project.folder / "part.md").read_text("utf-8")
    session = report(project.folder / "outputs" / "lax" / "tiny")["session"]
    assert session == {"cases": 1, "kept": 4, "of": 8, "interrupted": True}


def test_merge_counts_what_shards_ran_and_of_its_own_config(
    pytester: pytest.Pytester, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second shard has kept the first one's results, and another config's results lie beside
    it."""
    pytester.runpytest(f"--jrh-config={LAX}", "-k", "run-1 or run-2")
    pytester.runpytest(f"--jrh-config={LAX}", "-k", "run-3 or run-4")
    pytester.runpytest(f"--jrh-config={TINY}")
    shutil.move(project.folder / "outputs", project.folder / "shard")
    capsys.readouterr()
    assert main(["merge", f"--jrh-config={LAX}", "--jrh-report=all.md", "shard"]) == 1
    assert "! never reported (4): " in capsys.readouterr().out
    summary = (project.folder / "all.md").read_text("utf-8")
    assert "never reported (4): " in summary


def _judged_by(project: Project, *names: str) -> None:
    """Let the suite's judge stand in `judges`, once under each of these names."""
    config = yaml.safe_load(project.suite.config.read_text("utf-8"))
    evaluation = config["admin"]["evaluation_config"]
    model = evaluation.pop("autograder_model_name")
    evaluation["judges"] = [{"name": name, "model": model} for name in names]
    project.suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")


@WORKERS
def test_a_judge_under_another_name_is_answered_from_its_recordings(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    suite = project.suite
    recorded = {path: path.read_bytes() for path in suite.cassettes.rglob("*.yaml")}
    config = suite.config.read_bytes()
    _judged_by(project, "mini")
    for options in ([], ["--jrh-record-mode=new_episodes"], ["--jrh-prune"]):
        moved = pytester.runpytest(suite.option, *options, "-v", *workers)
        moved.assert_outcomes(passed=7, failed=1)
        moved.stdout.fnmatch_lines(["cassette: *run-2.e1.judge-default.yaml", "*0 calls, *"])
        assert {path: path.read_bytes() for path in suite.cassettes.rglob("*.yaml")} == recorded
    # And back: what was recorded under the name answers where there is none.
    for path in recorded:
        if path.name.endswith(".judge-default.yaml"):
            path.rename(path.with_name(path.name.replace("judge-default", "judge-mini")))
    suite.config.write_bytes(config)
    back = pytester.runpytest(suite.option, *workers)
    back.assert_outcomes(passed=7, failed=1)
    assert not list(suite.cassettes.rglob("*.judge-default.yaml"))


def test_one_recording_answers_for_one_judge(pytester: pytest.Pytester, project: Project) -> None:
    _judged_by(project, "mini", "twin")
    pytester.runpytest(project.suite.option).assert_outcomes(passed=7, failed=1, errors=8)
    # What is recorded under a name that the suite has is that judge's alone.
    for path in list(project.suite.cassettes.rglob("*.judge-default.yaml")):
        path.rename(path.with_name(path.name.replace("judge-default", "judge-twin")))
    done = pytester.runpytest(project.suite.option)
    done.assert_outcomes(passed=7, failed=1, errors=8)
    assert "twin" not in " ".join(line for line in done.outlines if line.startswith("ERROR"))

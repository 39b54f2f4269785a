"""A run of a selection, or one that is interrupted, leaves the results of all other cases as they
are."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plugin.gated import LAX, Project
from tests.plugin.recorded import run_pytest

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


@pytest.fixture(scope="module")
def ran_once(project_once: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project after a whole session."""
    project = project_once.copied(tmp_path_factory.mktemp("ran"))
    run_pytest(project.folder, project.suite.option)
    return project


@pytest.fixture
def ran(ran_once: Project, pytester: pytest.Pytester) -> Project:
    return ran_once.copied(pytester.path)


def test_a_selection_updates_its_cases_and_keeps_the_others(
    pytester: pytest.Pytester, ran: Project
) -> None:
    folder = ran.folder / RESULTS
    before, whole = counts(folder), report(folder)
    assert whole["session"] == {"cases": 8, "kept": 0, "of": 8, "interrupted": False}
    done = pytester.runpytest(ran.suite.option, "-k", "run-1", "--jrh-report=part.md")
    assert any(line.endswith("(6 cases deselected)") for line in done.outlines)
    assert "(6 cases deselected)" in (ran.folder / "part.md").read_text("utf-8")
    assert counts(folder) == before
    part = report(folder)
    assert part["session"] == {"cases": 2, "kept": 6, "of": 8, "interrupted": False}
    assert part["statistics"] == whole["statistics"]
    assert [line["case_id"].split("::")[3] for line in lines(folder / "results.jsonl")] == [
        f"run-{number}[e1]" for number in (1, 2, 3, 4, 1, 2, 3, 4)
    ]
    assert sum(line["extra"].get("kept", False) for line in lines(folder / "results.jsonl")) == 6


def test_results_of_another_judge_or_another_version_of_a_case_are_not_kept(
    pytester: pytest.Pytester, ran: Project
) -> None:
    path = ran.folder / RESULTS / "results.jsonl"
    told = lines(path)
    told[1]["case_digest"] = "0" * 64
    told[2]["judge_digest"] = "0" * 64
    path.write_text("".join(f"{json.dumps(line)}\n" for line in told), encoding="utf-8")
    done = pytester.runpytest(ran.suite.option, "-k", "run-1")
    left = "note: 1 result of earlier sessions left out of results.jsonl: "
    assert f"{left}the case has changed (rubric, transcript or label)." in done.outlines
    assert f"{left}the judge has changed (model, prompt or parameters)." in done.outlines
    assert counts(ran.folder / RESULTS)["results.jsonl"] == 6


def test_results_that_cannot_be_read_are_replaced_and_said(
    pytester: pytest.Pytester, ran: Project
) -> None:
    path = ran.folder / RESULTS / "results.jsonl"
    whole = path.read_text("utf-8")
    damaged = whole.replace('"scores":[', '"scores":["', 1)
    assert damaged != whole
    path.write_text(damaged, encoding="utf-8")
    done = pytester.runpytest(ran.suite.option, "-k", "run-4")
    done.stdout.fnmatch_lines(
        [
            "*The results of earlier sessions cannot be used, and were replaced.*",
            "*results.jsonl:1: not a case result: *",
        ]
    )
    assert len(lines(path)) == 2


def test_a_whole_run_drops_records_of_cases_that_are_gone(
    pytester: pytest.Pytester, ran: Project
) -> None:
    path = ran.suite.negatives / "agent_perturbations.jsonl"
    record = path.read_text("utf-8").splitlines()[0]
    with path.open("a", encoding="utf-8") as file:
        file.write(record.replace("run-1", "run-99") + "\n")
        file.write(record.replace('"tiny', '"another') + "\n")
    done = pytester.runpytest(ran.suite.option)
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
    names = ["--jrh-report=part.html", "--jrh-report=part.md"]
    done = pytester.runpytest(f"--jrh-config={LAX}", "-x", *names)
    said = "interrupted: 1 of 8 cases kept; the same command goes on"
    assert f"! {said}" in " ".join(" ".join(done.outlines).split())
    assert said in (project.folder / "part.md").read_text("utf-8")
    session = report(project.folder / "outputs" / "lax" / "tiny")["session"]
    assert session == {"cases": 1, "kept": 0, "of": 8, "interrupted": True}


def _judged_by(project: Project, *names: str) -> None:
    """Let the suite's judge stand in `judges`, once under each of these names."""
    config = yaml.safe_load(project.suite.config.read_text("utf-8"))
    evaluation = config["admin"]["evaluation_config"]
    model = evaluation.pop("autograder_model_name")
    evaluation["judges"] = [{"name": name, "model": model} for name in names]
    project.suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")


def test_a_judge_under_another_name_is_answered_from_its_recordings(
    pytester: pytest.Pytester, project: Project
) -> None:
    suite = project.suite
    recorded = {path: path.read_bytes() for path in suite.cassettes.rglob("*.yaml")}
    config = suite.config.read_bytes()
    _judged_by(project, "mini")
    options = ("--jrh-record-mode=new_episodes", "--jrh-prune", "-v")
    moved = pytester.runpytest(suite.option, *options)
    moved.assert_outcomes(passed=7, failed=1)
    moved.stdout.fnmatch_lines(["cassette: *run-2.e1.judge-default.yaml", "*0 calls, *"])
    assert {path: path.read_bytes() for path in suite.cassettes.rglob("*.yaml")} == recorded
    # And back: what was recorded under the name answers where there is none.
    for path in recorded:
        if path.name.endswith(".judge-default.yaml"):
            path.rename(path.with_name(path.name.replace("judge-default", "judge-mini")))
    suite.config.write_bytes(config)
    back = pytester.runpytest(suite.option)
    back.assert_outcomes(passed=7, failed=1)
    assert not list(suite.cassettes.rglob("*.judge-default.yaml"))


def test_one_recording_answers_for_one_judge(pytester: pytest.Pytester, project: Project) -> None:
    _judged_by(project, "mini", "twin")
    pytester.runpytest(project.suite.option).assert_outcomes(passed=7, failed=1, errors=8)

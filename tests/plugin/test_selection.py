"""A run of a selection, or one that is interrupted, leaves the results of all other cases as they
are."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plugin.gated import Project
from tests.plugin.recorded import Done, run_pytest
from tests.support.ledgers import case_lines

RESULTS = Path("outputs", "tiny")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def counts(folder: Path) -> dict[str, int]:
    """Rows of every table and lines of every JSONL file, by name."""
    tables = {
        path.name: len(list(csv.DictReader(path.open(encoding="utf-8-sig"))))
        for path in folder.glob("*.csv")
    }
    return tables | {"results.jsonl": len(case_lines(folder / "results.jsonl"))}


def report(folder: Path) -> dict[str, Any]:
    [path] = folder.glob("*_report.json")
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value


OTHER = Path(__file__).parents[2] / "examples/small_judge/agent_perturbations.jsonl"
GONE = "note: 1 record of cases that are no longer in the suite dropped from"


@pytest.fixture(scope="module")
def whole(project_once: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    """The project after a whole session, whose file of cases held one that is gone, and another
    suite's."""
    project = project_once.copied(tmp_path_factory.mktemp("whole"))
    path = project.suite.negatives / "agent_perturbations.jsonl"
    path.parent.mkdir(parents=True)
    other, gone = OTHER.read_text("utf-8").splitlines()[:2]
    path.write_text(f"{other}\n{gone.replace('refund_agent', 'tiny')}\n", encoding="utf-8")
    return project, run_pytest(project.folder, project.suite.option)


def test_a_whole_run_drops_records_of_cases_that_are_gone(whole: tuple[Project, Done]) -> None:
    project, done = whole
    path = project.suite.negatives / "agent_perturbations.jsonl"
    assert f"{GONE} {path}." in done.lines
    suites = sorted(line["case_id"].split("::")[0] for line in lines(path))
    assert suites == ["refund_agent", *["tiny"] * 4]


def test_a_selection_updates_its_cases_and_keeps_the_others(
    pytester: pytest.Pytester, whole: tuple[Project, Done]
) -> None:
    project = whole[0].copied(pytester.path)
    folder = project.folder / RESULTS
    counts_before, before = counts(folder), report(folder)
    assert before["session"] == {"cases": 8, "kept": 0, "of": 8, "interrupted": False}
    done = pytester.runpytest(project.suite.option, "-k", "run-1", "--jrh-report=part.md")
    assert any(line.endswith("(6 cases deselected)") for line in done.outlines)
    assert "(6 cases deselected)" in (project.folder / "part.md").read_text("utf-8")
    assert counts(folder) == counts_before
    part = report(folder)
    assert part["session"] == {"cases": 2, "kept": 6, "of": 8, "interrupted": False}
    assert part["statistics"] == before["statistics"]
    results = case_lines(folder / "results.jsonl")
    runs = [line["case_id"].split("::")[3] for line in results]
    assert runs == [f"run-{number}[e1]" for number in (1, 2, 3, 4, 1, 2, 3, 4)]
    assert sum(line["extra"].get("kept", False) for line in results) == 6


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
    """One recording answers for one judge."""
    suite = project.suite
    recorded = {path: path.read_bytes() for path in suite.cassettes.rglob("*.yaml")}
    config = suite.config.read_bytes()
    _judged_by(project, "mini", "twin")
    options = ("--jrh-judge-record-mode=none", "--jrh-prune", "-v")
    moved = pytester.runpytest(suite.option, *options)
    moved.assert_outcomes(passed=7, failed=1, errors=8)
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

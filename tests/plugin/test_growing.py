"""A frozen suite whose log grows (docs/recordings.md); and what a run of a selection, or one that
is interrupted, leaves of the results of all other cases."""

import csv
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.gated import Project
from tests.plugin.recorded import Done, json_lines, run_pytest
from tests.support.ledgers import case_lines
from tests.support.model_server import ModelServer
from tests.support.suites import MODEL, REMOVED, SuiteFiles, run, write_suite

RECORD = "--jrh-record-mode=new_episodes"
AGENT = "test_agent_perturbation_config"
LABELS = {"metadata": "ok", "map": {"true": "satisfied", "false": "violated"}}


def write_runs(path: Path, numbers: Iterable[int]) -> None:
    """A JSON-lines file of conversations, as an agent's log grows by lines."""
    lines = []
    for number in numbers:
        messages = [
            {name: message[name] for name in ("role", "content")}
            for message in run(number)["messages"]
            if message["role"] in ("user", "assistant")
        ]
        entry = {"id": f"run-{number}", "messages": messages, "metadata": {"ok": number % 3 != 0}}
        lines.append(json.dumps(entry) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def write_growing(folder: Path, runs: int, **options: Any) -> tuple[SuiteFiles, Path]:
    """A suite on a file of conversations, and that file."""
    log = folder / "log.jsonl"
    write_runs(log, range(1, runs + 1))
    suite = write_suite(folder, log=log, **options)
    return suite, suite.data / "runs.jsonl"


def committed(suite: SuiteFiles) -> dict[str, bytes]:
    """Every recording, and every line of the made cases."""
    kept = {path.as_posix(): path.read_bytes() for path in suite.cassettes.rglob("*.yaml")}
    for path in suite.folder.rglob("agent_perturbations.jsonl"):
        for line in path.read_bytes().splitlines():
            kept[f"{path} {json.loads(line)['case_id']}"] = line
    return kept


def test_a_frozen_suite_grows_by_the_new_cases_alone(tmp_path: Path) -> None:
    output = {"dir": "inputs/suites/tiny", "overwrite": False}
    suite, log = write_growing(
        tmp_path, 2, tests=["agent_perturbation"], overrides={AGENT: {"output": output}}
    )
    baseline = "--jrh-baseline=base.json"
    with ModelServer() as server:
        env = server.environment
        run_pytest(tmp_path, suite.option, RECORD, baseline, "--jrh-update-baseline", env=env)
        # A frozen suite need not have them.
        for path in suite.cassettes.rglob("*.generation.yaml"):
            path.unlink()
        before, first = committed(suite), server.count()
        write_runs(log, range(3, 5))
        run_pytest(tmp_path, suite.option, RECORD, "--jrh-prune", env=env)
        asked = server.requests[first:]
        log.unlink()
        grown = run_pytest(tmp_path, suite.option, "--jrh-frozen", baseline, "-v", "-n", "2")
        assert server.count() == first + len(asked)
    texts = "".join(request.text for request in asked)
    assert set(re.findall(r"order 100(\d)", texts)) == {"3", "4"}
    assert before.items() <= committed(suite).items()
    assert "5 passed" in grown.stdout
    assert "2 of 2 cases in the baseline" in " ".join(grown.stdout.split())
    assert "new since the baseline (2):" in grown.stdout
    assert "not comparable" not in grown.stdout


RESULTS = Path("outputs", "tiny")


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
GONE = "1 record of cases that are no longer in the suite."


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
    assert f"note: Dropped from {path}: {GONE}" in done.lines
    suites = sorted(line["case_id"].split("::")[0] for line in json_lines(path))
    assert suites == ["refund_agent", *["tiny"] * 4]


def test_a_selection_keeps_the_rest(pytester: pytest.Pytester, whole: tuple[Project, Done]) -> None:
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


def test_a_renamed_judge_has_its_recordings(pytester: pytest.Pytester, project: Project) -> None:
    """One recording answers for one judge."""
    suite = project.suite
    recorded = {path: path.read_bytes() for path in suite.cassettes.rglob("*.yaml")}
    config = suite.config.read_bytes()
    twins = [{"name": name, "model": MODEL} for name in ("mini", "twin")]
    evaluation = {"autograder_model_name": REMOVED, "judges": twins}
    suite.configure({"admin": {"evaluation_config": evaluation}})
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

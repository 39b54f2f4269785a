"""`--jrh-subset`: a few cases of a suite, and what gate, files and recordings make of it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_jrh.engine.suite import make_ready, with_subset
from tests.plugin.gated import BASELINE, FILE, LAX, Project
from tests.plugin.recorded import Done, run_pytest
from tests.support.model_server import ModelServer
from tests.support.suites import write_suite

RULES = "{max_drop: 0.1, unclear: fail}\nsubset: {smoke: 4}"
GONE = "agent_perturbation/rubric-1/gone.e1.generation.yaml"


def cassettes(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.yaml"))
    }


def made_cases(folder: Path) -> dict[str, bytes]:
    outputs = folder / "outputs"
    paths = sorted(outputs.rglob("agent_perturbations.jsonl"))
    return {str(path.relative_to(outputs)): path.read_bytes() for path in paths}


@dataclass(frozen=True, slots=True)
class Ended:
    """A session of four of eight cases, whose judge was asked anew, after one of all of them."""

    project: Project
    before: dict[str, bytes]
    requests: int
    done: Done

    @property
    def cases(self) -> list[str]:
        """The cases that ran, as `-rA` names them."""
        words = ("PASSED ", "FAILED ", "XFAIL ")
        cases = [line.split(" ")[1] for line in self.done.lines if line.startswith(words)]
        return sorted(case.partition("::")[2] for case in cases)


@pytest.fixture(scope="module")
def ended(project_once: Project, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    project = project_once.copied(tmp_path_factory.mktemp("subset"))
    shutil.copytree(project.left / "outputs", project.folder / "outputs")
    option, folder = project.rules(LAX, RULES), project.suite.cassettes
    before = cassettes(folder)
    (folder / GONE).write_bytes(next(iter(before.values())))
    options = ("--jrh-subset=smoke", "--jrh-judge-record-mode=all", "--jrh-prune")
    more = ("-rA", "-v", "-n", "2", "--jrh-report=part.md")
    with ModelServer() as server:
        env = server.environment
        done = run_pytest(project.folder, option, BASELINE, *options, *more, env=env)
        assert server.count() == server.count("judge")
    return Ended(project, before, server.count(), done)


def test_cases_of_both_classes_run_and_are_compared_alone(ended: Ended) -> None:
    assert ended.done.code == pytest.ExitCode.OK
    tests = [case.split("::")[0] for case in ended.cases]
    assert tests == ["agent_perturbation"] * 2 + ["agent_positives"] * 2
    assert "(subset smoke)" in (ended.project.folder / "part.md").read_text("utf-8")
    assert "4 of 4 cases of the baseline compared" in ended.done.stdout
    told = [line for line in ended.done.lines if line.startswith("PASS  ")]
    assert told[0].endswith("(subset smoke)")


def test_only_the_cases_of_the_subset_are_asked(ended: Ended) -> None:
    assert ended.requests == 4


def test_nothing_of_the_other_cases_is_lost(ended: Ended, project_once: Project) -> None:
    project = ended.project
    assert "removed cassettes: 1" in ended.done.lines
    now = cassettes(project.suite.cassettes)
    assert now.keys() == ended.before.keys()
    changed = {name for name in now if now[name] != ended.before[name]}
    assert len(changed) == 4
    assert all(".judge-" in name for name in changed)
    assert (project.folder / FILE).read_bytes() == (project_once.folder / FILE).read_bytes()
    made = made_cases(project.folder)
    assert len(made) == 1
    assert made == made_cases(project.left)
    [path] = (project.folder / "outputs/lax/tiny").glob("*_report.json")
    session = json.loads(path.read_text("utf-8"))["session"]
    assert (session["cases"], session["of"], session["kept"]) == (4, 8, 4)
    assert session["subset"] == "smoke"


def test_a_subset_of_more_cases_than_there_are_is_all_of_them(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, runs=4, overrides={"subset": {"night": 50}})
    ready = with_subset(make_ready(suite.config, cwd=tmp_path, rootdir=tmp_path), "night")
    assert ready.subset is None
    said = "the subset night is to have 50 cases, and there are 8 to judge: all are run."
    assert f"suite tiny: {said}" in ready.notices

"""The GitHub workflows: what they run exists, and what they may do is as little as they need."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

import pytest_jrh
from pytest_jrh.cli.init import start_suite

ROOT = Path(pytest_jrh.__file__).parents[1]
FOLDER = ROOT / "examples" / "github"
NAMES = ("judge-gate.yml", "judge-shards.yml", "judge-drift.yml")
ACTION = "action/action.yml"
COMMENTS = "Write the comment, or bring it up to date"


def read(name: str) -> dict[Any, Any]:
    workflow: dict[Any, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return workflow


def steps(name: str) -> list[tuple[str, dict[str, Any]]]:
    """The steps of a workflow, each with its job, or those of an action."""
    jobs = read(name).get("jobs") or {"action": read(name)["runs"]}
    return [(job, step) for job, body in jobs.items() for step in body["steps"]]


NAMED = "${PYTEST_JRH:?put where pytest-jrh comes from into env of this workflow}"


def commands_of(workflow: dict[Any, Any]) -> list[list[str]]:
    """The words of every line of a workflow; an expression of GitHub's stands for one word."""
    scripts = [
        re.sub(r"\$\{\{.*?\}\}", "1", step["run"])
        for body in workflow["jobs"].values()
        for step in body["steps"]
        if "run" in step
    ]
    return [
        shlex.split(line, comments=True)
        for script in scripts
        for line in script.replace("\\\n", " ").splitlines()
    ]


@pytest.mark.parametrize("name", NAMES)
def test_jobs_ask_for_the_least(name: str) -> None:
    workflow = read(name)
    assert workflow["permissions"] == {}
    # YAML reads the key `on` as true.
    assert "pull_request_target" not in workflow[True]
    # A required check is never skipped.
    assert "if" not in workflow["jobs"].get("replay", {})
    writing = {
        job for job, body in workflow["jobs"].items() if "write" in body["permissions"].values()
    }
    assert writing <= {"comment", "issue"}
    assert not [
        step for job, step in steps(name) if job in writing and "checkout" in step.get("uses", "")
    ]
    for _, step in steps(name):
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", [*NAMES, ACTION])
def test_actions_are_pinned_and_no_value_of_an_event_is_run_as_code(name: str) -> None:
    for _, step in steps(name):
        assert "uses" not in step or re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
        assert not re.search(r"\$\{\{(?!\s*matrix\.group\s*\}\})", step.get("run", ""))


def test_the_key_is_in_one_step_of_a_job_that_forks_never_reach() -> None:
    with_key = [(job, step) for job, step in steps("judge-gate.yml") if "secrets." in str(step)]
    ((job, step),) = with_key
    words = shlex.split(step["run"])
    assert words[0] == "pytest"
    assert "--jrh-judge-record-mode=new_episodes" in words
    body = read("judge-gate.yml")["jobs"][job]
    assert body["environment"] == "judge-models"
    condition = " ".join(body["if"].split())
    assert "github.event.pull_request.head.repo.full_name == github.repository" in condition
    assert "github.event.label.name == 'rejudge'" in condition
    assert "secrets." not in str({key: value for key, value in body.items() if key != "steps"})


def test_the_action_comments_as_the_gate_does_and_has_what_a_job_gives_it() -> None:
    gate, action = (
        step["run"].splitlines()
        for name in ("judge-gate.yml", ACTION)
        for _, step in steps(name)
        if step.get("name") == COMMENTS
    )
    assert gate[-7:] == action[-7:]
    assert gate[-7].startswith("comment=$(gh api")
    assert all(step["shell"] == "bash" for _, step in steps(ACTION) if "run" in step)
    workflow = read("judge-check.yml")
    assert workflow["permissions"] == {}
    assert set(workflow[True]) == {"push", "pull_request"}
    [job] = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "read", "pull-requests": "write"}
    checkout, judged = job["steps"]
    assert checkout["with"]["persist-credentials"] is False
    assert judged["uses"] == "./.github/actions/judge"
    assert set(judged["with"]) <= set(read(ACTION)["inputs"])
    assert judged["with"]["package"] == ""
    # Only a branch of this repository has a token that can write.
    [condition] = [step["if"] for _, step in steps(ACTION) if step.get("name") == COMMENTS]
    assert "github.event.pull_request.head.repo.full_name == github.repository" in condition


def test_the_example_is_what_init_writes(tmp_path: Path) -> None:
    log = ROOT / "inputs" / "data" / "refund_agent" / "refund_agent.eval"
    start_suite("refund_agent", log, folder=tmp_path)
    written = (tmp_path / ".github" / "workflows" / "judge-gate.yml").read_text(encoding="utf-8")
    assert written == (FOLDER / "judge-gate.yml").read_text(encoding="utf-8")


COMMIT = "0123456789abcdef0123456789abcdef01234567"
FROM_GIT = {"vcs_info": {"vcs": "git", "commit_id": COMMIT}}


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (
            {"url": "https://forge.example/o/r.git", **FROM_GIT},
            f"git+https://forge.example/o/r.git@{COMMIT}",
        ),
        ({"url": "file:///home/me/r", **FROM_GIT}, ""),
        ({"url": "https://me:secret@forge.example/o/r.git", **FROM_GIT}, ""),
        (None, ""),
    ],
    ids=["git", "a clone on this machine", "with a password", "an index"],
)
def test_the_workflow_installs_what_is_installed_here_or_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: object, source: str
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed())
    log = ROOT / "inputs" / "data" / "refund_agent" / "refund_agent.eval"
    start_suite("refund_agent", log, folder=tmp_path)
    text = (tmp_path / ".github" / "workflows" / "judge-gate.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["env"]["PYTEST_JRH"] == source
    assert "/home/me" not in text
    assert "secret@" not in text
    installs = [words for words in commands_of(workflow) if "install" in words]
    assert installs == [["python", "-m", "pip", "install", NAMED]] * 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", NAMES)
def test_no_example_installs_a_name_that_anybody_could_take(name: str) -> None:
    workflow = read(name)
    for words in commands_of(workflow):
        assert "pytest-jrh" not in words
    assert workflow["env"]["PYTEST_JRH"] == ""
    done = subprocess.run(
        ["bash", "-c", f'echo "{NAMED}"'],
        env={"PYTEST_JRH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "put where pytest-jrh comes from" in done.stderr

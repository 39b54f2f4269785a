"""Jobs of the workflows in `examples/github`: their steps are run as they are written, with a
`pytest` and a `gh` of the tests before all others."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.plugin.recorded import environment
from tests.support.fork_server import python
from tests.unit.test_workflows import steps


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a workflow, and the folder with the commands that their steps call."""

    workflow: str
    tools: Path

    def install(self, gh: str) -> None:
        """Put the commands there; `gh` is the program that stands for GitHub's."""
        self.tools.mkdir()
        (self.tools / "gh.py").write_text(gh, "utf-8")
        self.command("pytest", shlex.join([*python(), "-m", "pytest"]))
        self.command("gh", shlex.join([sys.executable, str(self.tools / "gh.py")]))

    def command(self, name: str, words: str) -> None:
        """Have a command run these words of the shell, with its arguments after them."""
        script = self.tools / name
        script.write_text(f'#!/bin/sh\n{words} "$@"\n', "utf-8")
        script.chmod(0o755)

    def step(self, job: str, name: str) -> dict[str, Any]:
        """The step of a job that has such a name."""
        [step] = [
            step
            for of_job, step in steps(self.workflow)
            if (of_job, step.get("name")) == (job, name)
        ]
        return step

    def run(
        self, step: dict[str, Any], folder: Path, values: Mapping[str, str | None]
    ) -> subprocess.CompletedProcess[str]:
        """Run a step in a folder as GitHub's runner does, with the commands in `tools` before all
        others; `values` are those of its environment that GitHub sets.
        """
        env = environment({**step.get("env", {}), **values})
        env["PATH"] = f"{self.tools}:{env['PATH']}"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

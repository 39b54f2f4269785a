"""Record the example from the answers in `script.yml`: `python -m examples.answers.record`.

The server answers judge, editor and verifier by what is written there. The baseline is what the
judge says; the changed prompt's verdicts are in the same cassettes.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from examples.scripted_model.script import NotScriptedError, flat
from examples.scripted_model.server import ScriptedModel

if TYPE_CHECKING:
    from examples.scripted_model.script import Request

PORT = 8801
HERE = Path("examples/answers")
CHANGED = "A small gesture of goodwill is good service"
"""What tells the changed prompt of the judge."""


class Bot:
    """The answers: what was written about the rows of the table, and about their edits."""

    def __init__(self) -> None:
        with (HERE / "answers.csv").open(encoding="utf-8", newline="") as file:
            self._rows = [*csv.DictReader(file)]
        self._script = yaml.safe_load((HERE / "script.yml").read_text(encoding="utf-8"))

    def answer(self, request: Request) -> dict[str, Any] | str:
        """The fields of one answer, of the judge its text."""
        row, edit = self._row(request)
        if request.stage == "editor":
            return {"new_content": self._script["made"][row]["answer"], "reason": "It breaks it."}
        if request.stage == "verifier":
            return {"rationale": edit["finding"], "verdict": "FAIL"}
        verdict, reason = ["fail", edit["finding"]] if edit else self._script["judge"][row]
        if CHANGED in request.text and not edit:
            verdict, reason = self._script["changed"].get(row, (verdict, reason))
        return f"{reason}\n\nVerdict: {verdict}"

    def _row(self, request: Request) -> tuple[str, dict[str, str]]:
        """The id of the row that a request is about, and its edit where it shows that."""
        for row in self._rows:
            if flat(row["request"]) in request.prompt:
                edit = self._script["made"].get(row["id"], {})
                if flat(row["answer"]) in request.prompt:
                    return row["id"], {}
                if edit and flat(edit["answer"]) in request.prompt:
                    return row["id"], edit
        raise NotScriptedError("no row of the table is shown", stage=request.stage)


def main() -> int:
    """Record all suites anew.

    Returns pytest's exit code, the first that is none of its own. That judges are wrong is the
    example's point.
    """
    shutil.rmtree(HERE / "cassettes", ignore_errors=True)
    (HERE / "baseline.json").unlink(missing_ok=True)
    with ScriptedModel(port=PORT, script=Bot()) as model:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "no-key-is-needed",
        }
        baseline = f"--jrh-baseline={HERE}/baseline.json"
        command = [sys.executable, "-m", "pytest", "--jrh-record-mode=new_episodes", "--tb=no"]
        for config, *options in (
            ("answers.yml", baseline, "--jrh-update-baseline"),
            ("made.yml",),
            ("changed/answers.yml", baseline),
        ):
            options.append(f"--jrh-config={HERE}/{config}")
            done = subprocess.run([*command, *options], env=environment, check=False)
            if done.returncode not in (0, 1):
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Record the example from the answers in `script.yml`: `python -m examples.pairs.record`."""

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

PORT = 8802
HERE = Path("examples/pairs")


class Judge:
    """The answers: what was written about the rows of the table, in whatever order it is shown."""

    def __init__(self) -> None:
        with (HERE / "pairs.csv").open(encoding="utf-8", newline="") as file:
            self._rows = [*csv.DictReader(file)]
        self._script = yaml.safe_load((HERE / "script.yml").read_text(encoding="utf-8"))

    def answer(self, request: Request) -> dict[str, Any] | str:
        """The fields of one answer."""
        for row in self._rows:
            places = [request.prompt.find(flat(row[name])) for name in ("answer_a", "answer_b")]
            if min(places) < 0:
                continue
            systems = [row["model_a"], row["model_b"]]
            if places[0] > places[1]:
                systems.reverse()
            better, reason = self._script[row["id"]]
            if better in systems:
                better = ("first", "second")[systems.index(better)]
            return {"reasoning": reason, "score": better}
        raise NotScriptedError("no row of the table is shown", stage=request.stage)


def main() -> int:
    """Record both suites anew; returns pytest's exit code, the first that is none of its own."""
    for folder in ("cassettes", "cassettes_once"):
        shutil.rmtree(HERE / folder, ignore_errors=True)
    with ScriptedModel(port=PORT, script=Judge()) as model:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "no-key-is-needed",
        }
        command = [sys.executable, "-m", "pytest", "--jrh-record-mode=new_episodes", "--tb=no"]
        for config in ("pairs.yml", "once.yml"):
            options = [*command, f"--jrh-config={HERE}/{config}"]
            done = subprocess.run(options, env=environment, check=False)
            if done.returncode not in (0, 1):
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())

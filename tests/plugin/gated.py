"""A suite of eight cases with a baseline, and the same suite under a laxer judge prompt: for tests
of the gate."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_jrh.llm.calls import load_template
from tests.plugin.recorded import PERTURBATION, Done, lenient_about_order_1002, run_pytest
from tests.support.ledgers import case_lines
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.obedient import VIOLATION
from tests.support.suites import SuiteFiles, write_suite

TINY = "inputs/configs/tiny.yml"
LAX = "lax/tiny.yml"
FILE = "baseline.json"
BASELINE = f"--jrh-baseline={FILE}"
UPDATE = "--jrh-update-baseline"
LIMIT = "{min_recall: 0.5}"
"""The laxer judge breaks it, and fails."""
BROKEN = "the new prompt misses 4 of 4 violations; min_recall 50% allows 2"
LENIENCE = "Overlook whatever can be overlooked."
REGRESSED = [f"{LAX}::{PERTURBATION}run-{number}[e1]" for number in (1, 3, 4)]


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a suite of eight cases, its baseline, and the same suite under a laxer judge
    prompt. The first judge lets the violation in run 2 pass, which the baseline has; the laxer one,
    those of all runs: three more, which are too few to tell from chance. Both have recorded their
    verdicts. `first` is the session that made the baseline; `laxer` the one of the laxer judge, by
    two workers and with reports, and `left` the folder with what it left."""

    suite: SuiteFiles
    first: Done
    laxer: Done
    left: Path

    @property
    def folder(self) -> Path:
        return self.suite.folder

    @property
    def cases(self) -> dict[str, dict[str, Any]]:
        """The lines of the baseline, by the case's test and run."""
        cases = {}
        for line in case_lines(self.folder / FILE):
            _, test, _, run = line["case_id"].split("::")
            cases[f"{test}::{run}"] = line
        return cases

    @property
    def wrong(self) -> set[str]:
        """The cases of the baseline whose verdict is not their label, by test and run."""
        return {name for name, case in self.cases.items() if case["scores"] != [case["label"]]}

    def rules(self, config: str, rules: str) -> str:
        """The option that runs a config under other rules for its gate."""
        path = self.folder / config
        text = path.read_text("utf-8").partition("\ngate: ")[0]
        path.write_text(f"{text}\ngate: {rules}\n", encoding="utf-8")
        return f"--jrh-config={config}"

    def copied(self, folder: Path) -> Project:
        """The same project in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return replace(self, suite=replace(self.suite, folder=folder, config=folder / TINY))

    def prompt(self, text: str) -> None:
        """Change the laxer judge's prompt."""
        path = self.folder / "lax" / "judge.md"
        path.write_text(path.read_text("utf-8").replace(LENIENCE, text), encoding="utf-8")


def blind(request: Request) -> Mapping[str, object]:
    if LENIENCE in request.text and VIOLATION in request.text:
        return {
            "reasoning": "Nothing that could not be overlooked. <script>alert(1)</script>",
            "score": 0,
        }
    return lenient_about_order_1002(request)


def make_project(parent: Path) -> Project:
    """Write and record the project, in a folder beside that of what its sessions left."""
    folder, left = parent / "project", parent / "left"
    suite = write_suite(folder, runs=4)
    prompt = load_template("judge", mode="binary", objective="fail").source
    (folder / "lax").mkdir()
    (folder / "lax" / "judge.md").write_text(f"{LENIENCE}\n\n{prompt}", encoding="utf-8")
    config = suite.config.read_text("utf-8")
    lax = f"{config}\njudge:\n  prompt_path: lax/judge.md\n"
    (folder / LAX).write_text(f"{lax}\ngate: {LIMIT}\n", encoding="utf-8")
    left.mkdir()
    (left / "step.md").write_text("before\n", encoding="utf-8")
    page, summary = f"--jrh-report={left}/report.html", f"--jrh-report={left}/summary.md"
    with ModelServer(override(Obedient(), judge=blind)) as server:
        env = server.environment
        options = (BASELINE, UPDATE, "-rx", "-v")
        first = run_pytest(folder, suite.option, "--jrh-record-mode=once", *options, env=env)
        shutil.rmtree(folder / "outputs")
        more = ("--jrh-judge-record-mode=new_episodes", BASELINE, page, summary, "-v", "-n", "2")
        env = {**env, "GITHUB_STEP_SUMMARY": str(left / "step.md")}
        laxer = run_pytest(folder, f"--jrh-config={LAX}", *more, env=env)
    shutil.move(folder / "outputs", left / "outputs")
    shutil.move(folder / ".pytest_cache", left / "cache")
    (folder / LAX).write_text(lax, encoding="utf-8")
    return Project(suite, first, laxer, left)


def under(lines: list[str], title: str) -> list[str]:
    """The names under a title such as `regressions (3):`."""
    start = lines.index(title) + 1
    names: list[str] = []
    for line in lines[start:]:
        if not line.startswith("  "):
            break
        names.append(line.strip())
    return names

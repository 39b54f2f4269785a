"""Suites recorded once for all tests of the plugin: made over HTTP, and copied to where a test
needs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from tests.support.fork_server import python
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.obedient import VIOLATION
from tests.support.suites import SuiteFiles, run, write_suite

PERTURBATION = "agent_perturbation::rubric-1::"
POSITIVES = "agent_positives::rubric-1::"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One folder with three suites in it, recorded in one session: `output` is what that session
    printed. `tiny`: binary, runs 1 to 4. Its judge lets the violation in run 2 pass (disagree), run
    3 has no assistant turn (no_case), the judge's recording of run 4's perturbation is gone
    (unrecorded), and all else agrees. `scale`: ordinal, one run, three levels. `panel`: binary, one
    run, two judges."""

    tiny: SuiteFiles
    scale: SuiteFiles
    panel: SuiteFiles
    output: str = ""

    def copied(self, folder: Path) -> Recorded:
        """The same suites in another folder."""
        shutil.copytree(self.tiny.folder, folder, dirs_exist_ok=True)
        moved = [
            replace(suite, folder=folder, config=folder / suite.config.relative_to(suite.folder))
            for suite in (self.tiny, self.scale, self.panel)
        ]
        return replace(self, tiny=moved[0], scale=moved[1], panel=moved[2])


def record(folder: Path) -> Recorded:
    """Write the suites and record them with one run of pytest, in a process of its own."""
    silent = [{"id": "m3-1", "role": "user", "content": "Is anybody there?"}]
    runs = [run(1), run(2), run(3, messages=silent), run(4)]
    tiny = write_suite(folder, runs=runs)
    scale = write_suite(folder, runs=1, mode="ordinal", name="scale")
    two = {"admin": {"evaluation_config": {"judges": judges("strict", "kind one")}}}
    panel = write_suite(folder, runs=1, name="panel", overrides=two)
    options = [suite.option for suite in (tiny, scale, panel)]
    with ModelServer(override(Obedient(), judge=lenient_about_order_1002)) as server:
        done = run_pytest(folder, *options, "--jrh-record-mode=once", env=server.environment)
    (tiny.cassettes / "agent_perturbation" / "rubric-1" / "run-4.e1.judge-default.yaml").unlink()
    shutil.rmtree(folder / "outputs")
    shutil.rmtree(folder / ".pytest_cache")
    return Recorded(tiny, scale, panel, done.stdout)


def judges(*names: str) -> list[dict[str, str]]:
    """Judges of a panel, each with a model of its own name."""
    return [{"name": name, "model": f"openai/{name}", "template": "agent_judge"} for name in names]


def lenient_about_order_1002(request: Request) -> Mapping[str, object]:
    """The obedient judge, but for one order whose violation it overlooks."""
    if "1002" in request.text and VIOLATION in request.text:
        return {"reasoning": "Nothing is wrong with this.", "score": 0}
    answer = Obedient()(request)
    assert isinstance(answer, Mapping)
    return answer


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write these texts, by the names of their files."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def conversation(run: str, asked: str, answered: str, **more: Any) -> str:
    """The line of a log that is a run of this name: a question and its answer."""
    said = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return json.dumps({"id": run, "messages": said, **more}) + "\n"


LABELLED = """suite: {log: runs.jsonl, rubrics: rubrics.yml}
cases: {kinds: [labels]}
labels: {path: labels.csv}
"""


def write_labelled(folder: Path, runs: Mapping[str, tuple[str, object]], judge: str) -> None:
    """The files that LABELLED names: of each run what is answered and the label; and the code of
    judges."""
    lines = [conversation(run, "How is it?", answer) for run, (answer, _) in runs.items()]
    labels = [f"{run},{label}\n" for run, (_, label) in runs.items()]
    files = {
        "runs.jsonl": "".join(lines),
        "labels.csv": "run_id,label\n" + "".join(labels),
        "rubrics.yml": "- {id: kind, instructions: Be kind.}\n",
        "judges.py": judge,
    }
    write_files(folder, files)


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The values of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@dataclass(frozen=True, slots=True)
class Done:
    """A run of pytest in a process of its own."""

    code: int
    stdout: str
    stderr: str = field(repr=False)

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


def run_pytest(
    folder: Path,
    *arguments: str,
    env: Mapping[str, str | None] | None = None,
    interpreter: Sequence[str] = (),
) -> Done:
    """Run `python -m pytest` in the folder, under the environment of a user."""
    return run_module(folder, "pytest", *arguments, env=env, interpreter=interpreter)


def run_module(
    folder: Path,
    *command: str,
    env: Mapping[str, str | None] | None = None,
    interpreter: Sequence[str] = (),
    timeout: float = 120,
) -> Done:
    """Run `python -m` in the folder, under the environment of a user."""
    made = subprocess.run(
        [*(interpreter or python()), "-m", *command],
        cwd=folder,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Done(made.returncode, made.stdout, made.stderr)


_DROPPED = """PYTEST_ADDOPTS PYTEST_CURRENT_TEST PYTEST_XDIST_WORKER CI_JOB_URL GITHUB_RUN_ID
GITHUB_STEP_SUMMARY"""


def environment(more: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """This process's environment without what would change how an inner pytest runs, and without
    what is None."""
    kept = {name: value for name, value in os.environ.items() if name not in _DROPPED.split()}
    values = {**kept, "COLUMNS": "100", **(more or {})}
    return {name: value for name, value in values.items() if value is not None}


def outcomes(output: Sequence[str]) -> dict[str, str]:
    """Node id to outcome, from the lines that `-rA` prints at the end."""
    words = ("PASSED", "FAILED", "ERROR")
    found = (line.split(" - ")[0].partition(" ") for line in output if line.startswith(words))
    return {name: word for word, _, name in found}


RECORD = "--jrh-judge-record-mode=once"
ONE = ("-k", "perturbation and run-1")


@dataclass(frozen=True, slots=True)
class Judged:
    """A recorded suite with a judge of own code, beside the config in `judges.py`."""

    suite: SuiteFiles

    def write(self, source: str) -> None:
        (self.suite.config.parent / "judges.py").write_text(source, encoding="utf-8")

    def panel(self, judges: Iterable[dict[str, Any]]) -> None:
        self.suite.configure({"admin": {"evaluation_config": {"judges": list(judges)}}})


MakeJudged: TypeAlias = Callable[[str], Judged]


def judged_suite(suite: SuiteFiles, source: str) -> Judged:
    """The suite without its recorded verdicts, judged by the function `judge` of a source."""
    made = Judged(suite)
    for path in suite.cassettes.rglob("*.judge-default.yaml"):
        path.unlink()
    suite.configure({"judge": {"python": "judges.py:judge"}})
    made.write(source)
    return made


def words(done: Done) -> str:
    return " ".join(done.stdout.split())


def summary(done: Done) -> str:
    return done.lines[-1].strip("= ").partition(" in ")[0] if done.lines else done.stderr

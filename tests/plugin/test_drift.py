"""`examples/github/judge-drift.yml`, its steps run as they are written, against a server on
loopback whose judge changes in the third week."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from examples.scripted_model.script import LENIENT, load_script
from examples.scripted_model.script import Request as Scripted
from tests.plugin.recorded import run_pytest, run_script
from tests.support.drifting import Versioned
from tests.support.flipping import Flipping
from tests.support.fork_server import python
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.suites import write_suite
from tests.unit.test_workflows import ROOT, steps

CONFIG = "--jrh-config=inputs/configs/refund_agent.yml"
BASELINE = "inputs/baselines/refund_agent.json"
ASKED = 8 * 3
OVERRIDES = {
    "admin": {"evaluation_config": {"repeats": 3}},
    "gate": {"max_drop": 0},
    # In one folder that is committed, as a frozen suite needs.
    "test_agent_perturbation_config": {"output": {"dir": "inputs/suites/refund_agent"}},
}
OPENED, ADDED = ["issue", "create"], ["issue", "comment"]
NOT_DECIDED = "::error title=Judge drift is not decided::"

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "iconv", "jq"))), reason="needs bash, iconv and jq"
)


@dataclass(frozen=True, slots=True)
class Week:
    """What a run of the workflow came to: the exit code of the job that asks, what its step
    printed, and the calls of `gh` with the text of each issue or comment."""

    code: int
    printed: str
    calls: list[list[str]]
    texts: list[str]


@dataclass(frozen=True, slots=True)
class Repository:
    """A checkout with a suite, its recordings and its baseline, and the issues of its project."""

    folder: Path
    asks_nothing: bool = False
    is_frozen: bool = False

    @property
    def _bin(self) -> Path:
        return self.folder.parent / "bin"

    def install(self) -> None:
        """Put what the steps call where they find it."""
        self._bin.mkdir()
        (self._bin / "issues.json").write_text("[]", encoding="utf-8")
        for name, command in (
            ("pytest", [*python(), "-m", "pytest"]),
            ("gh", [sys.executable, str(self._bin / "gh.py")]),
        ):
            script = self._bin / name
            script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        (self._bin / "gh.py").write_text(GH, encoding="utf-8")

    def week(self, server: Mapping[str, str | None]) -> Week:
        """Run the workflow as GitHub does: a job is a folder, and the second one has what the first
        has kept.
        """
        (self._bin / "calls.jsonl").write_text("", encoding="utf-8")
        output = self._bin / "output"
        output.write_text("", encoding="utf-8")
        ask = self._step("ask")
        script = ask["run"]
        if self.asks_nothing:
            assert "--jrh-judge-record-mode=all " in script
            script = script.replace("--jrh-judge-record-mode=all ", "")
        if self.is_frozen:
            script = script.replace("pytest \\\n", "pytest --jrh-frozen \\\n")
            assert "--jrh-frozen" in script
        done = self._bash(
            script, self.folder, {**ask["env"], **server, "GITHUB_OUTPUT": str(output)}
        )
        if output.read_text(encoding="utf-8") == "drifted=true\n":
            job = self.folder.parent / "job"
            shutil.rmtree(job, ignore_errors=True)
            (job / "results").mkdir(parents=True)
            shutil.copy(self.folder / "judge-drift.md", job / "results")
            step = self._step("issue")
            values = {"GH_REPO": "o/r", "RUN": "https://github.com/o/r/actions/runs/7"}
            marked = self._bash(step["run"], job, {**step["env"], **values})
            assert marked.returncode == 0, marked.stderr
        lines = (self._bin / "calls.jsonl").read_text(encoding="utf-8").splitlines()
        calls = [json.loads(line) for line in lines]
        texts = [call["text"] for call in calls if call["text"]]
        return Week(done.returncode, done.stdout, [call["words"] for call in calls], texts)

    def _step(self, job: str) -> dict[str, Any]:
        [step] = [
            step
            for its_job, step in steps("judge-drift.yml")
            if its_job == job and "run" in step and step["name"] != "Install"
        ]
        return step

    def _bash(
        self, script: str, folder: Path, values: Mapping[str, str | None]
    ) -> subprocess.CompletedProcess[str]:
        return run_script(script, folder, values, self._bin)


# GitHub as far as the workflow sees it: issues that are open, and what is written into them.
GH = """
import json, pathlib, subprocess, sys
folder = pathlib.Path(__file__).parent
issues = folder / "issues.json"
words = sys.argv[1:]
text = ""
if words[0] == "api":
    wanted = words[words.index("--jq") + 1]
    subprocess.run(["jq", "-r", wanted, str(issues)], check=True)
else:
    text = pathlib.Path(words[words.index("--body-file") + 1]).read_text("utf-8")
    if words[1] == "create":
        author = {"login": "github-actions[bot]"}
        opened = [*json.loads(issues.read_text()), {"number": 12, "body": text, "user": author}]
        issues.write_text(json.dumps(opened))
with (folder / "calls.jsonl").open("a") as file:
    print(json.dumps({"words": words, "text": text}), file=file)
"""


def overlooking(request: Request) -> Mapping[str, object]:
    """A judge to which nothing is a violation."""
    return {"reasoning": "Nothing is wrong with this.", "score": 0}


DRIFTED = Versioned(
    "gpt-4.1-mini-2025-09-09", ("fp_later",), override(Obedient(), judge=overlooking)
)


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drift") / "checkout"
    write_suite(folder, runs=4, name="refund_agent", overrides=OVERRIDES)
    options = (CONFIG, "--jrh-record-mode=once", f"--jrh-baseline={BASELINE}")
    with ModelServer(Versioned(answer=Flipping(0.05, seed=3))) as server:
        done = run_pytest(folder, *options, "--jrh-update-baseline", env=server.environment)
    assert done.code == 0, done
    return folder


@pytest.fixture
def repository(recorded_once: Path, tmp_path: Path) -> Repository:
    shutil.copytree(recorded_once, tmp_path / "checkout")
    repository = Repository(tmp_path / "checkout")
    repository.install()
    return repository


def test_two_weeks_of_flicker_are_green_and_the_third_opens_an_issue(
    repository: Repository,
) -> None:
    flipped = 0
    for seed in (11, 12):
        with ModelServer(Versioned(answer=Flipping(0.05, seed=seed))) as server:
            week = repository.week(server.environment)
        # Nothing of the week before is replayed, in the same folder too.
        assert server.count() == server.count("judge") == ASKED
        assert (week.code, week.calls) == (0, []), week.printed
        assert "answered as" not in week.printed
        flipped += "contradict" in week.printed or "flicker" in week.printed
    assert flipped, "no verdict has flipped: the weeks show nothing of flicker"

    with ModelServer(DRIFTED) as server:
        week = repository.week(server.environment)
        assert server.count() == ASKED
        # Nobody has closed the issue by the week after, in which the suite is frozen.
        next(repository.folder.glob("inputs/data/**/*.eval")).unlink()
        later = replace(repository, is_frozen=True).week(server.environment)
        assert server.count() == server.count("judge") == 2 * ASKED
    assert week.code == later.code == 1
    assert [call[:2] for call in week.calls] == [["api", "--paginate"], OPENED]
    assert [call[:2] for call in later.calls] == [["api", "--paginate"], ADDED]
    assert later.calls[1][2] == "12"
    [text] = week.texts
    assert text.startswith(
        "<!-- pytest-jrh: judge drift -->\nhttps://github.com/o/r/actions/runs/7"
    )
    assert re.search(
        r"## ❌ FAIL: the judge misses \d+ of \d+ violations that it found before", text
    )
    assert (
        "judge: the model answered as gpt-4.1-mini-2025-09-09; the recordings have "
        "gpt-4.1-mini-2025-04-14." in text
    )


def test_a_judge_that_is_not_asked_is_an_error_and_no_drift(repository: Repository) -> None:
    week = repository.week({"OPENAI_API_KEY": None, "OPENAI_BASE_URL": None})
    assert week.code == 1
    assert NOT_DECIDED in week.printed
    assert not week.calls


def test_a_week_in_which_nothing_was_asked_is_not_green(repository: Repository) -> None:
    """As of a workflow without its record mode: all is answered from the copy."""
    with ModelServer(Versioned()) as server:
        week = replace(repository, asks_nothing=True).week(server.environment)
        assert server.count() == 0
    assert "passed" in week.printed
    assert (week.code, week.calls) == (1, []), week.printed
    assert NOT_DECIDED in week.printed


def test_a_gate_that_decides_nothing_is_an_error_and_no_drift(repository: Repository) -> None:
    path = repository.folder / BASELINE
    text, number = re.subn(r'(?<="case_digest": ")\w+', "0" * 16, path.read_text("utf-8"))
    assert number
    path.write_text(text, encoding="utf-8")
    with ModelServer(Versioned(answer=Flipping(0.05, seed=11))) as server:
        week = repository.week(server.environment)
    assert server.count() == ASKED
    assert (week.code, week.calls) == (1, []), week.printed
    assert NOT_DECIDED in week.printed
    assert "FAIL  nothing could be compared" in week.printed


def test_the_page_shows_the_demo_with_another_model_behind_the_name(tmp_path: Path) -> None:
    """The recordings that the workflow keeps replay what it has seen."""
    shutil.copytree(ROOT / "inputs", tmp_path / "checkout" / "inputs")
    demo = Repository(tmp_path / "checkout")
    demo.install()
    script = load_script()

    def lenient(request: Request) -> dict[str, Any]:
        first, *others = request.body["messages"]
        head = {**first, "content": f"{first['content']}\n{LENIENT}"}
        return script.answer(Scripted.from_body({**request.body, "messages": [head, *others]}))

    with ModelServer(Versioned("gpt-4.1-mini-2025-09-09", answer=lenient)) as server:
        week = demo.week(server.environment)
    page = (ROOT / "docs" / "ci.md").read_text("utf-8").partition("## Drift")[2]
    shown = page.split("```text\n")[1].partition("```")[0]
    assert shown in week.printed
    assert len(week.texts) == 1
    [commands] = re.findall(r"    ```sh\n(.*?)    ```", page, re.DOTALL)
    download, replay, update = map(shlex.split, commands.splitlines())
    assert download[:3] == ["gh", "run", "download"]
    replayed = run_pytest(demo.folder, *replay[1:])
    assert replayed.code == 1
    assert "0 calls, 260 replayed" in replayed.stdout
    assert "FAIL  the judge misses 6 of 25 violations that it found before" in replayed.lines
    updated = run_pytest(demo.folder, *update[1:])
    assert updated.code == 0
    assert "this update accepts a loss: 6 cases newly wrong" in " ".join(updated.stdout.split())
    assert "6 changed, 0 removed." in updated.stdout
    assert run_pytest(demo.folder, *replay[1:]).code == 0

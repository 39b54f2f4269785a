"""A changed prompt, model or parameter in mode `none`: the difference, and the command that repairs
it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pytest_jrh.llm.calls import built_in_name
from pytest_jrh.reports.case_facts import no_verdict_text
from tests.e2e.bench import Bench, MakeBench
from tests.support.fork_server import commands
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, run, write_suite

TEMPLATES = Path(__file__).resolve().parents[2] / "pytest_jrh" / "llm" / "templates"
OLD, NEW = "Zebra crossing.", "Zebra walking."
Change = Callable[[SuiteFiles], None]


def write_prompt(path: Path, stage: str, word: str) -> None:
    """The built-in prompt of a stage as a file, with a sentence in it."""
    name = built_in_name(stage, mode="binary", objective="fail")
    source = (TEMPLATES / f"{name}.md").read_text("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{source}\n{word}\n", encoding="utf-8")


def prompt_path(stage: str, word: str) -> Change:
    def change(suite: SuiteFiles) -> None:
        write_prompt(suite.folder / f"{stage}.md", stage, word)
        setting(stage, prompt_path=f"{stage}.md")(suite)

    return change


def override(stage: str, word: str) -> Change:
    def change(suite: SuiteFiles) -> None:
        folder = suite.folder / "inputs" / "custom_prompts" / suite.module / "agent_perturbation"
        write_prompt(folder / f"{stage}.md", stage, word)

    return change


def setting(stage: str, **values: Any) -> Change:
    section = {stage: values}
    if stage != "judge":
        section = {"test_agent_perturbation_config": section}
    return lambda suite: suite.configure(section)


CASES: dict[str, tuple[str, Change | None, Change, list[str]]] = {
    **{
        f"{stage} prompt file": (
            stage,
            prompt_path(stage, OLD),
            prompt_path(stage, NEW),
            [f"-{OLD}", f"+{NEW}"],
        )
        for stage in ("planner", "editor", "summary", "verifier", "judge")
    },
    "editor override": ("editor", None, override("editor", NEW), [f"+{NEW}"]),
    # The summarizer takes the editor's model where it has none of its own, and is asked first.
    "editor model": (
        "summary",
        None,
        setting("editor", model="openai/gpt-4o"),
        ["-openai/gpt-4.1-mini", "+openai/gpt-4o"],
    ),
    "judge temperature": (
        "judge",
        None,
        setting("judge", temperature=0.2),
        ["-{}", '+{"temperature": 0.2}'],
    ),
    "judge system prompt": (
        "judge",
        None,
        setting("judge", system_prompt="Be brief."),
        ["+Be brief."],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_makes_each_affected_case_unrecorded_and_shows_itself(
    make_bench: MakeBench, server: ModelServer, name: str
) -> None:
    stage, before, after, shown = CASES[name]
    bench = make_bench()
    if before is not None:
        before(bench.files)
        bench.reload()
    assert bench.run().outcomes == [("agree", 1)]
    after(bench.files)
    bench.reload()
    asked = server.count()
    result = bench.replay().only
    assert (result.outcome, server.count()) == ("unrecorded", asked)
    lines = [line.strip() for line in no_verdict_text(result.why).splitlines()]
    said = "summarizer" if stage == "summary" else stage
    assert f"the {said}'s call is not recorded" in " ".join(lines)
    assert set(shown) <= set(lines)
    assert OLD not in lines


def test_the_command_is_one_for_the_shell_and_holds_with_odd_ids(
    pytester: pytest.Pytester, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run(1, id="a b::c[d]'$HOME;`")]
    suite = write_suite(pytester.path, runs=runs, tests=["agent_perturbation"])
    pytester.runpytest(suite.option, "-v", "--junitxml=junit.xml").assert_outcomes(errors=1)
    texts = ET.parse(pytester.path / "junit.xml").iter("error")
    [command] = re.findall(r"^(?:record it: )?(pytest --.*)$", next(texts).text or "", re.MULTILINE)
    monkeypatch.setenv("PATH", f"{commands(pytester.path)}:/usr/bin:/bin")
    assert shutil.which("pytest")
    done = subprocess.run(
        command, shell=True, cwd=pytester.path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert Bench(suite, suite.cassettes).replay().outcomes == [("agree", 1)]

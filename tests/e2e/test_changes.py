"""A changed prompt, model or parameter in mode `none`: the difference, and the command that repairs
it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from pytest_jrh.llm.calls import built_in_name
from tests.support.fork_server import commands
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, merged, run, write_suite

TEMPLATES = Path(__file__).resolve().parents[2] / "pytest_jrh" / "llm" / "templates"
PIPELINE: tuple[str, ...] = ("planner", "editor", "summary", "verifier")
STAGES: tuple[str, ...] = (*PIPELINE, "judge")
OLD, NEW = "Zebra crossing.", "Zebra walking."
Change = Callable[[SuiteFiles], None]


def prompt_path(stage: str, word: str) -> Change:
    """Give a stage the built-in prompt as a file of its own, with a sentence in it."""

    def change(suite: SuiteFiles) -> None:
        source = (
            TEMPLATES / f"{built_in_name(stage, mode='binary', objective='fail')}.md"
        ).read_text("utf-8")
        (suite.folder / f"{stage}.md").write_text(f"{source}\n{word}\n", encoding="utf-8")
        configure(suite, stage, prompt_path=f"{stage}.md")

    return change


def override(stage: str, word: str) -> Change:
    def change(suite: SuiteFiles) -> None:
        source = (
            TEMPLATES / f"{built_in_name(stage, mode='binary', objective='fail')}.md"
        ).read_text("utf-8")
        folder = suite.folder / "inputs" / "custom_prompts" / suite.module / "agent_perturbation"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{stage}.md").write_text(f"{source}\n{word}\n", encoding="utf-8")

    return change


def setting(stage: str, **values: Any) -> Change:
    return lambda suite: configure(suite, stage, **values)


def configure(suite: SuiteFiles, stage: str, **values: Any) -> None:
    section = (
        {"judge": values}
        if stage == "judge"
        else {"test_agent_perturbation_config": {stage: values}}
    )
    config = yaml.safe_load(suite.config.read_text(encoding="utf-8"))
    suite.config.write_text(
        yaml.safe_dump(merged(config, section), sort_keys=False), encoding="utf-8"
    )


CASES: dict[str, tuple[str, Change | None, Change, list[str]]] = {
    **{
        f"{stage} prompt file": (
            stage,
            prompt_path(stage, OLD),
            prompt_path(stage, NEW),
            [f"-{OLD}", f"+{NEW}"],
        )
        for stage in STAGES
    },
    "planner override": (
        "planner",
        override("planner", OLD),
        override("planner", NEW),
        [f"-{OLD}", f"+{NEW}"],
    ),
    "editor override": ("editor", None, override("editor", NEW), [f"+{NEW}"]),
    # The summarizer takes the editor's model where it has none of its own, and is asked first.
    "editor model": (
        "summary",
        None,
        setting("editor", model="openai/gpt-4o"),
        ['-"openai/gpt-4.1-mini"', '+"openai/gpt-4o"'],
    ),
    "judge model": ("judge", None, setting("judge", model="openai/gpt-4o"), ['+"openai/gpt-4o"']),
    "verifier temperature": (
        "verifier",
        None,
        setting("verifier", temperature=0.5),
        ["-{}", '+{"temperature": 0.5}'],
    ),
    "judge temperature": (
        "judge",
        setting("judge", temperature=0.1),
        setting("judge", temperature=0.2),
        ['-{"temperature": 0.1}', '+{"temperature": 0.2}'],
    ),
    "judge system prompt": (
        "judge",
        None,
        setting("judge", system_prompt="Be brief."),
        ["+Be brief."],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_makes_each_affected_item_unrecorded_shows_itself_and_the_command_repairs_it(
    pytester: pytest.Pytester, server: ModelServer, name: str
) -> None:
    stage, before, after, shown = CASES[name]
    suite = write_suite(pytester.path, runs=1, tests=["agent_perturbation"])
    if before is not None:
        before(suite)
    pytester.runpytest(suite.option, "--jrh-record-mode=new_episodes").assert_outcomes(passed=1)
    after(suite)
    asked = server.count()

    result = pytester.runpytest(suite.option)
    result.assert_outcomes(errors=1)
    assert server.count() == asked
    lines = [line.removeprefix("E").strip() for line in result.outlines]
    text = " ".join(lines)
    assert "No verdict (unrecorded)" in text
    assert f"the {'summarizer' if stage == 'summary' else stage}'s call is not recorded" in text
    for line in shown:
        assert line in lines
    assert OLD not in [line for line in lines if line[:1] not in "-+"]

    command = shlex.split(_command(lines))
    assert command[0] == "pytest"
    pytester.runpytest(*command[1:]).assert_outcomes(passed=1)
    assert server.count() > asked
    server.stop()
    pytester.runpytest(suite.option).assert_outcomes(passed=1)


def test_the_command_is_one_for_the_shell_and_holds_with_odd_ids(
    pytester: pytest.Pytester, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run(1, id="a b::c[d]'$HOME;`")]
    suite = write_suite(pytester.path, runs=runs, tests=["agent_perturbation"])
    pytester.runpytest(suite.option, "--junitxml=junit.xml").assert_outcomes(errors=1)
    texts = ET.parse(pytester.path / "junit.xml").iter("error")
    command = _command((next(texts).text or "").splitlines())
    monkeypatch.setenv("PATH", f"{commands(pytester.path)}:/usr/bin:/bin")
    assert shutil.which("pytest")
    done = subprocess.run(
        command, shell=True, cwd=pytester.path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert list(suite.cassettes.rglob("*.yaml"))
    pytester.runpytest(suite.option).assert_outcomes(passed=1)


def _command(lines: list[str]) -> str:
    """The one command that is printed, or that of an item's own text."""
    named = "record it: "
    (command,) = {
        line.removeprefix(named) for line in lines if line.startswith((named, "pytest --"))
    }
    return command

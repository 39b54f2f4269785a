"""A changed prompt, model or parameter in mode `none`: the difference, and the command that repairs
it."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pytest_jrh.llm.calls import load_template
from pytest_jrh.reports.case_facts import no_verdict_text
from tests.e2e.bench import Bench
from tests.support.exchange import STAGES
from tests.support.fork_server import commands
from tests.support.model_server import ModelServer
from tests.support.suites import MODEL, run, write_suite

OLD, NEW = "Zebra crossing.", "Zebra walking."
OLD_FILE, NEW_FILE = {"prompt_path": "old.md"}, {"prompt_path": "new.md"}


@pytest.mark.parametrize(
    ("asks", "stage", "before", "after", "shown"),
    [
        *((stage, stage, OLD_FILE, NEW_FILE, [f"-{OLD}", f"+{NEW}"]) for stage in STAGES),
        # The summarizer takes the editor's model where it has none of its own, and is asked first.
        ("summary", "editor", {}, {"model": "openai/gpt-4o"}, [f"-{MODEL}", "+openai/gpt-4o"]),
        ("judge", "judge", {}, {"temperature": 0.2}, ["-{}", '+{"temperature": 0.2}']),
        ("judge", "judge", {}, {"system_prompt": "Be brief."}, ["+Be brief."]),
    ],
)
def test_a_change_makes_each_affected_case_unrecorded_and_shows_itself(
    bench: Bench,
    server: ModelServer,
    asks: str,
    stage: str,
    before: dict[str, Any],
    after: dict[str, Any],
    shown: list[str],
) -> None:
    prompt = load_template(stage, mode="binary", objective="fail").source
    for name, word in (("old.md", OLD), ("new.md", NEW)):
        (bench.files.folder / name).write_text(f"{prompt}\n{word}\n", encoding="utf-8")

    def configure(keys: dict[str, Any]) -> None:
        section = {stage: keys}
        bench.configure(
            section if stage == "judge" else {"test_agent_perturbation_config": section}
        )

    configure(before)
    assert bench.run().outcomes == [("agree", 1)]
    configure(after)
    asked = server.count()
    result = bench.replay().only
    assert (result.outcome, server.count()) == ("unrecorded", asked)
    lines = [line.strip() for line in no_verdict_text(result.why).splitlines()]
    name = "summarizer" if asks == "summary" else asks
    assert f"the {name}'s call is not recorded" in " ".join(lines)
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

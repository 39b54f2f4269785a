"""A suite is the same suite wherever its config, pytest's rootdir and the starting folder are."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.plugin.gated import LAX, TINY, Project

ACCURATE = "{min_accuracy: 0.95}"
INI = "[pytest]\n"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a suite is run from: `arguments` name its config in a folder that has these `files`."""

    arguments: Sequence[str]
    start: str = "."
    files: dict[str, str] = field(default_factory=lambda: {"tests/pytest.ini": INI})
    config: str = LAX

    def lay_out(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = project.folder
        (folder / "tests").mkdir()
        (folder / "tests" / "test_other.py").write_text(
            "def test_other(): pass\n", encoding="utf-8"
        )
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if self.config != LAX:
            (folder / self.config).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(folder / LAX, folder / self.config)
        (folder / self.start).mkdir(exist_ok=True)
        monkeypatch.chdir(folder / self.start)


LAYOUTS = {
    "rootdir beside the config": Layout(["tests", f"--jrh-config={LAX}"]),
    "absolute, in another tree": Layout(
        ["--rootdir=tests", "--jrh-config=../elsewhere/tiny.yml"], config="../elsewhere/tiny.yml"
    ),
    "from a subfolder": Layout([f"--jrh-config=../{LAX}"], start="sub", files={"pytest.ini": INI}),
}


def written(folder: Path) -> list[dict[str, object]]:
    [path] = folder.rglob("results.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_gate_decides_results_are_written_and_the_printed_command_runs_the_same_case(
    pytester: pytest.Pytester, project: Project, monkeypatch: pytest.MonkeyPatch, layout: Layout
) -> None:
    layout.lay_out(project, monkeypatch)
    first = pytester.runpytest(*layout.arguments)
    assert first.ret == pytest.ExitCode.TESTS_FAILED
    assert "FAIL  the judge misses 4 of 4 violations" in first.outlines
    assert len(written(project.folder)) == 8
    [command] = [line for line in first.outlines if line.startswith("run it again: ")]
    again = pytester.runpytest(*shlex.split(command.removeprefix("run it again: pytest ")))
    again.assert_outcomes(failed=1)
    [failure] = [line for line in again.outlines if line.startswith("FAILED ")]
    assert "::agent_perturbation::rubric-1::run-1[e1] - As pl" in failure


def test_suites_outside_of_rootdir_are_told_apart(
    pytester: pytest.Pytester, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have a rubric and runs of the same names."""
    layout = LAYOUTS["rootdir beside the config"]
    layout.lay_out(project, monkeypatch)
    shutil.copyfile(project.folder / TINY, project.folder / "inputs" / "configs" / "other.yml")
    shutil.copytree(project.suite.cassettes, project.suite.cassettes.parent / "other")
    done = pytester.runpytest(
        *layout.arguments,
        "--jrh-config=inputs/configs/other.yml",
        "--junitxml=all.xml",
        "-k",
        "run-1",
    )
    done.assert_outcomes(failed=1, passed=3, deselected=13)
    assert {path.parent.name for path in project.folder.rglob("results.jsonl")} == {
        "tiny",
        "other",
    }
    cases = ElementTree.parse(project.folder / "all.xml").getroot().iter("testcase")
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == 4


def test_a_gate_that_saw_none_of_its_cases_is_not_green(
    pytester: pytest.Pytester, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = LAYOUTS["rootdir beside the config"]
    project.rules(LAX, ACCURATE)
    layout.lay_out(project, monkeypatch)
    done = pytester.runpytest(*layout.arguments, "-k", "test_other")
    done.assert_outcomes(passed=1, deselected=8)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    why = "Not green: the gate of suite tiny made no decision, because none of its cases was run."
    assert f"note: {why}" in done.outlines


def test_a_session_that_ends_before_its_suite_is_not_green(
    pytester: pytest.Pytester, project: Project
) -> None:
    project.rules(LAX, ACCURATE)
    pytester.makepyfile(
        test_other="import pytest\n\ndef test_other(): pytest.exit('enough', returncode=0)\n"
    )
    done = pytester.runpytest("test_other.py", f"--jrh-config={LAX}")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["note: Not green: * because none of its cases was run."])

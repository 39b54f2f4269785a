"""A suite is the same suite wherever its config, pytest's rootdir and the starting folder are."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.plugin.gated import LAX, TINY, Project
from tests.support.ledgers import case_lines

ACCURATE = "{min_accuracy: 0.95}"
AGAIN = "run it again: pytest "


def written(folder: Path) -> list[dict[str, object]]:
    [path] = folder.rglob("results.jsonl")
    return case_lines(path)


def test_the_gate_decides_and_the_printed_command_runs_the_same_case_outside_of_rootdir(
    pytester: pytest.Pytester, project: Project
) -> None:
    for name in ("tests", "elsewhere"):
        (project.folder / name).mkdir()
    shutil.move(project.folder / LAX, project.folder / "elsewhere")
    first = pytester.runpytest("--rootdir=tests", "--jrh-config=elsewhere/tiny.yml", "-v")
    assert first.ret == pytest.ExitCode.TESTS_FAILED
    assert "FAIL  the judge misses 4 of 4 violations" in first.outlines
    assert len(written(project.folder)) == 8
    command = next(line for line in first.outlines if line.startswith(AGAIN))
    again = pytester.runpytest(*shlex.split(command.removeprefix(AGAIN)))
    again.assert_outcomes(failed=1)
    [failure] = [line for line in again.outlines if line.startswith("FAILED ")]
    assert "::agent_perturbation::rubric-1::run-1[e1] - As pl" in failure


def test_suites_outside_of_rootdir_are_told_apart(
    pytester: pytest.Pytester, project: Project
) -> None:
    """Both have a rubric and runs of the same names."""
    (project.folder / "tests").mkdir()
    (project.folder / "tests/pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    shutil.copyfile(project.folder / TINY, project.folder / "inputs/configs/other.yml")
    shutil.copytree(project.suite.cassettes, project.suite.cassettes.parent / "other")
    suites = (f"--jrh-config={LAX}", "--jrh-config=inputs/configs/other.yml")
    done = pytester.runpytest("tests", *suites, "--junitxml=all.xml", "-k", "run-1")
    done.assert_outcomes(failed=1, passed=3, deselected=12)
    folders = {path.parent.name for path in project.folder.rglob("results.jsonl")}
    assert folders == {"tiny", "other"}
    cases = ElementTree.parse(project.folder / "all.xml").getroot().iter("testcase")
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == 4


def test_a_session_that_ends_before_its_suite_is_not_green(
    pytester: pytest.Pytester, project: Project
) -> None:
    project.rules(LAX, ACCURATE)
    pytester.makepyfile(
        test_other="import pytest\n\ndef test_other(): pytest.exit('enough', returncode=0)\n"
    )
    done = pytester.runpytest("test_other.py", f"--jrh-config={LAX}")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    why = "Not green: about the suite tiny no decision was made, because none of its cases was run."
    assert f"note: {why}" in done.outlines

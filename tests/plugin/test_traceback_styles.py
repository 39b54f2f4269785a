"""What pytest's own sections show of cases under each `--tb`, and that reports keep the whole."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.plugin.gated import LAX, Project

HEADLINE = "The judge gave 0 (satisfied); the right answer is 1 (violated)."
RUBRIC = "    Demand 1: the assistant answers kindly and clearly."


def section(lines: Sequence[str], title: str) -> list[str]:
    """The lines of one of pytest's sections."""
    start = next(n for n, line in enumerate(lines) if f" {title} " in line) + 1
    end = next(n for n, line in enumerate(lines[start:], start) if line.startswith("======"))
    return list(lines[start:end])


def test_one_case_is_explained_the_others_are_listed_and_other_tests_are_left_as_they_are(
    pytester: pytest.Pytester, project: Project
) -> None:
    pytester.makepyfile(test_own="def test_it():\n    assert 1 == 2, 'own words'\n")
    result = pytester.runpytest(f"--jrh-config={LAX}", "test_own.py", "-n", "2")
    result.assert_outcomes(failed=5, passed=4)
    lines = section(result.outlines, "FAILURES")
    headings = [line.strip("_ ") for line in lines if line.startswith("__")]
    assert sorted(headings) == ["rubric-1: As planned (run-1)", "test_it"]
    assert any(line.startswith("E       AssertionError: own words") for line in lines)
    assert "3 more, whole with -v." in lines
    assert RUBRIC not in lines
    assert lines.count(HEADLINE) == 1
    assert sum(line.startswith("run it again: pytest -v --jrh-config=") for line in lines) == 1
    assert not any(line.startswith("rubric-1: ") for line in lines)

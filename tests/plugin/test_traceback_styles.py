"""What pytest's own sections show of cases: few lines of each, and with `-v` the whole."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.plugin.gated import LAX, Project

HEADLINE = "The judge gave 0 (satisfied); the right answer is 1 (violated)."
RUBRIC = "    Demand 1: the assistant answers kindly and clearly."
SEE_WHOLE = "    (use -v to see it whole)"


def section(lines: Sequence[str], title: str) -> list[str]:
    """The lines of one of pytest's sections."""
    start = next(n for n, line in enumerate(lines) if f" {title} " in line) + 1
    end = next(n for n, line in enumerate(lines[start:], start) if line.startswith("======"))
    return list(lines[start:end])


def test_each_case_has_few_lines_and_other_tests_are_left_as_they_are(
    pytester: pytest.Pytester, project: Project
) -> None:
    pytester.makepyfile(test_own="def test_it():\n    assert 1 == 2, 'own words'\n")
    result = pytester.runpytest(f"--jrh-config={LAX}", "test_own.py", "-n", "2")
    result.assert_outcomes(failed=5, passed=4)
    lines = section(result.outlines, "FAILURES")
    assert any(line.startswith("E       AssertionError: own words") for line in lines)
    assert RUBRIC not in lines
    assert lines.count(HEADLINE) == 4
    assert lines.count(SEE_WHOLE) == 4
    for start in (number for number, line in enumerate(lines) if line == HEADLINE):
        assert lines[start + 4] == SEE_WHOLE


def test_with_v_each_case_is_whole(pytester: pytest.Pytester, project: Project) -> None:
    lines = section(pytester.runpytest(f"--jrh-config={LAX}", "-v").outlines, "FAILURES")
    assert lines.count(RUBRIC) == lines.count(HEADLINE) == 4
    assert SEE_WHOLE not in lines

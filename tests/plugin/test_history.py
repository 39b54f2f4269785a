"""`--jrh-history` in sessions (rule J8)."""

from __future__ import annotations

import pytest

from pytest_jrh.store.history import read_history
from tests.plugin.gated import BASELINE, LAX, TINY, WORKERS, Project

HISTORY = "--jrh-history=history.jsonl"


@WORKERS
def test_each_session_adds_a_line(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    for config in (TINY, LAX):
        result = pytester.runpytest(f"--jrh-config={config}", BASELINE, HISTORY, *workers)
        assert "report: history.jsonl" in result.outlines
    before, now = read_history(pytester.path / "history.jsonl", "h").runs
    assert (before.gate, now.gate) == (True, False)
    assert (before.cases, before.of) == (8, 8)
    assert before.judges[0].fingerprint != now.judges[0].fingerprint
    assert now.judges[0].rubrics["rubric-1"].accuracy == 0.5


def test_a_history_that_cannot_be_written_is_red_and_said(
    pytester: pytest.Pytester, project: Project
) -> None:
    (pytester.path / "history.jsonl").symlink_to("elsewhere")
    result = pytester.runpytest(f"--jrh-config={TINY}", BASELINE, HISTORY)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["note: *history.jsonl was not written: *"])


def test_a_session_without_it_leaves_no_file(pytester: pytest.Pytester, project: Project) -> None:
    pytester.runpytest(f"--jrh-config={TINY}", BASELINE)
    assert not list(pytester.path.rglob("history.jsonl"))

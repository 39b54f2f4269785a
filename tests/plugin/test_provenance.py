"""Where the figures come from, in each report of one session."""

from __future__ import annotations

import re

import pytest

from tests.plugin.gated import BASELINE, LAX, WORKERS, Project
from tests.support.baselines import case_lines, write_lines
from tests.support.drifting import Versioned
from tests.support.model_server import ModelServer

REPORTS = ("--jrh-report=r.html", "--jrh-report=s.md")
JUDGE = "openai/gpt-4.1-mini, lax/judge.md"


@WORKERS
def test_every_report_names_the_judge_and_that_its_prompt_has_changed(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    result = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, *REPORTS, *workers)
    result.assert_outcomes(passed=4, xfailed=4)
    result.stdout.fnmatch_lines([f"jrh: judge {JUDGE}, not the baseline's prompt; *"])
    changed = re.compile(r"gpt-4.1-mini \(prompt\), lax/judge.md [0-9a-f]{12}, not the base")
    for report in ("r.html", "s.md"):
        text = (pytester.path / report).read_text("utf-8").replace("\\", "")
        assert changed.search(text), report
        assert f"config: {LAX} (" in text, report
        assert re.search(r"versions: pytest-jrh \S+, litellm \S+, inspect_ai ", text), report


def test_the_judge_of_the_baseline_is_called_so(
    pytester: pytest.Pytester, project: Project
) -> None:
    result = pytester.runpytest(project.suite.option, BASELINE, "--collect-only")
    told = "jrh: judge openai/gpt-4.1-mini, built-in prompt, as in the baseline; cases made*"
    result.stdout.fnmatch_lines([told])


def test_without_what_was_said_a_changed_prompt_is_another_judge(
    pytester: pytest.Pytester, project: Project
) -> None:
    path = project.folder / "baseline.json"
    write_lines(path, case_lines(path))
    result = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, "--collect-only")
    result.stdout.fnmatch_lines([f"jrh: judge {JUDGE}, not the baseline's judge; *"])


CHANGED = "judge: the model answered as gpt-4.1-mini-2025-04-14; the recordings have gpt-4.1-mini."


@WORKERS
def test_a_model_that_changed_behind_its_name_is_named(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    with ModelServer(Versioned()) as server:
        for name, value in server.environment.items():
            pytester._monkeypatch.setenv(name, value)
        result = pytester.runpytest(project.suite.option, "--jrh-judge-record-mode=all", *workers)
    assert server.count() == server.count("judge") == 8
    assert " ".join(result.stdout.str().split()).count(CHANGED) == 1
    assert "answered as" not in pytester.runpytest(project.suite.option, *workers).stdout.str()

"""Made cases whose records were changed by hand on the disk: nobody has confirmed their labels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plugin.own_judges import RECORD, Judged, MakeJudged, words
from tests.plugin.recorded import run_pytest
from tests.support.results import results_in
from tests.support.reviews import decide
from tests.support.suites import SuiteFiles

BY_MARKER = "def judge(case):\n    return int('ok-marker-violation' in case.transcript)\n"
FROZEN = "--jrh-frozen"
NODE = "inputs/configs/tiny.yml::agent_perturbation::rubric-1::run-1[e1]"
REPORTS = ("--jrh-report=report.html", "--jrh-report=summary.md")
CHANGED = "1 case was changed on the disk after being made"


@pytest.fixture
def made(judged: MakeJudged, pytester: pytest.Pytester) -> Judged:
    """Three made cases, which a frozen session takes from the disk."""
    suite = judged(BY_MARKER)
    config = yaml.safe_load(suite.suite.config.read_text("utf-8"))
    config["admin"]["perturbation_config"]["tests_to_run"] = ["agent_perturbation"]
    suite.suite.config.write_text(yaml.safe_dump(config), "utf-8")
    pytester.runpytest_inprocess(suite.suite.option, RECORD).assert_outcomes(passed=3, skipped=1)
    return suite


def cases_file(files: SuiteFiles) -> Path:
    return files.negatives / "agent_perturbations.jsonl"


def change(files: SuiteFiles, edit: Callable[[dict[str, Any]], object]) -> None:
    path = cases_file(files)
    lines = path.read_text("utf-8").splitlines()
    record = json.loads(lines[0])
    edit(record)
    lines[0] = json.dumps(record, ensure_ascii=False)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def new_text(record: dict[str, Any]) -> None:
    message = next(each for each in record["perturbed_messages"] if each["role"] == "assistant")
    message["content"] = "Written by hand."


def other_label(record: dict[str, Any]) -> None:
    record["expected"] = 0


def test_records_as_they_were_written_stay_confirmed(
    made: Judged, pytester: pytest.Pytester
) -> None:
    done = run_pytest(pytester.path, made.suite.option, FROZEN, "-v")
    assert "labels 3 by openai/gpt-4.1-mini" in words(done)
    assert "changed on the disk" not in words(done)


@pytest.mark.parametrize("edit", [new_text, other_label])
def test_a_record_that_was_changed_by_hand_is_unconfirmed_and_named(
    made: Judged, pytester: pytest.Pytester, edit: Callable[[dict[str, Any]], object]
) -> None:
    change(made.suite, edit)
    done = run_pytest(pytester.path, made.suite.option, FROZEN, "-v", *REPORTS)
    told = words(done)
    assert "labels 2 by openai/gpt-4.1-mini, 1 changed on the disk since" in told
    assert CHANGED in told
    assert f"  {NODE}" in done.lines
    summary = (pytester.path / "summary.md").read_text("utf-8")
    assert CHANGED in summary
    assert f"- `{NODE}`" in summary
    assert CHANGED in (pytester.path / "report.html").read_text("utf-8")


def test_a_review_settles_the_label_of_a_changed_case(
    made: Judged, pytester: pytest.Pytester
) -> None:
    change(made.suite, new_text)
    run_pytest(pytester.path, made.suite.option, FROZEN)
    digest = results_in(made.suite.results)[0].case_digest
    decide(made.suite.negatives, "run-1", "accepted", digest=digest)
    done = run_pytest(pytester.path, made.suite.option, FROZEN, "-v")
    told = words(done)
    assert "labels 2 by openai/gpt-4.1-mini, 1 by people" in told
    assert CHANGED not in told

"""Made cases whose records were changed by hand on the disk: nobody has confirmed their labels."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.plugin.own_judges import RECORD, Judged, MakeJudged, words
from tests.plugin.recorded import run_pytest
from tests.support.results import results_in
from tests.support.reviews import decide

BY_MARKER = "def judge(case):\n    return int('ok-marker-violation' in case.transcript)\n"
FROZEN = "--jrh-frozen"
NODE = "inputs/configs/tiny.yml::agent_perturbation::rubric-1::run-1[e1]"
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


def test_a_record_that_was_changed_by_hand_is_unconfirmed_and_named_until_it_is_reviewed(
    made: Judged, pytester: pytest.Pytester
) -> None:
    path = made.suite.negatives / "agent_perturbations.jsonl"
    first, rest = path.read_text("utf-8").split("\n", 1)
    record = json.loads(first) | {"expected": 0}
    path.write_text(f"{json.dumps(record, ensure_ascii=False)}\n{rest}", "utf-8")
    done = run_pytest(pytester.path, made.suite.option, FROZEN, "-v")
    told = words(done)
    assert "labels 2 by openai/gpt-4.1-mini, 1 changed on the disk since" in told
    assert CHANGED in told
    assert f"  {NODE}" in done.lines
    digest = results_in(made.suite.results)[0].case_digest
    decide(made.suite.negatives, "run-1", "accepted", digest=digest)
    told = words(run_pytest(pytester.path, made.suite.option, FROZEN, "-v"))
    assert "labels 2 by openai/gpt-4.1-mini, 1 by people" in told
    assert CHANGED not in told

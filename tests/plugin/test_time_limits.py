"""Time limits on items: waiting for a model's answer is not the test's own time."""

from __future__ import annotations

import pytest

from tests.plugin.recorded import run_pytest
from tests.support.suites import write_suite

ASKING = "--jrh-record-mode=all"
LIMITED = ["-k", "run-1", "--timeout=1.5"]
# A model that takes its time: longer than the limit.
CLIENT = """
    import asyncio
    import json

    SAID = {
        "planner": {"thesis": "", "steps": []},
        "summary": {
            "summary": "A question.", "user_intent": "To know.", "assistant_progress": [],
            "outstanding_items": [], "risks": [],
        },
        "verifier": {"rationale": "It is fine.", "verdict": "PASS"},
        "judge": {"reasoning": "It is fine.", "score": 0},
    }

    def pytest_jrh_complete(config):
        from pytest_jrh.core.calls import Completion

        async def complete(stage, messages, response_model):
            if stage.stage == "judge":
                await asyncio.sleep(2.5)
            text = json.dumps(SAID[stage.stage])
            return Completion(text, response_model.model_validate_json(text))

        return complete
"""


def test_waiting_for_a_case_is_not_its_items_time(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CLIENT)
    suite = write_suite(pytester.path, runs=2, tests=["agent_positives"])
    done = run_pytest(pytester.path, suite.option, ASKING, *LIMITED)
    assert done.code == 0, done
    assert "Timeout" not in done.stdout

"""Time limits on items: waiting for a model's answer is not the test's own time."""

from __future__ import annotations

import pytest

from tests.plugin.recorded import run_pytest
from tests.support.suites import write_suite

ASKING = "--jrh-record-mode=all"
LIMITED = ["-k", "run-1", "--timeout=1.5"]
# A model that takes its time: longer than the limit, where `slow` says so.
CLIENT = """
    import asyncio
    import json

    SAID = {{
        "planner": {{"thesis": "", "steps": []}},
        "summary": {{
            "summary": "A question.", "user_intent": "To know.", "assistant_progress": [],
            "outstanding_items": [], "risks": [],
        }},
        "verifier": {{"rationale": "It is fine.", "verdict": "PASS"}},
        "judge": {{"reasoning": "It is fine.", "score": 0}},
    }}
    asked = []

    def pytest_jrh_complete(config):
        from pytest_jrh.core.model import Completion

        async def complete(stage, messages, response_model):
            asked.append(stage.stage)
            first = asked.count("judge") == 1
            if stage.stage == "judge" and {slow}:
                await asyncio.sleep(2.5)
            if {fails}:
                raise ConnectionError("no answer")
            text = json.dumps(SAID[stage.stage])
            return Completion(text, response_model.model_validate_json(text))

        return complete
"""


def project(
    pytester: pytest.Pytester, *, slow: str = "True", fails: str = "False", more: str = ""
) -> str:
    """Write a suite and the client that answers its calls.

    Returns the option that names the suite.
    """
    pytester.makeconftest(CLIENT.format(slow=slow, fails=fails))
    conftest = pytester.path / "conftest.py"
    conftest.write_text(conftest.read_text("utf-8") + more, encoding="utf-8")
    return write_suite(pytester.path, runs=2, tests=["agent_positives"]).option


@pytest.mark.parametrize(
    "options",
    [["--timeout-method=signal"], ["--timeout-method=thread"], ["-n", "2"]],
    ids=["signal", "thread", "-n 2"],
)
def test_waiting_for_a_case_is_not_its_items_time(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    done = run_pytest(pytester.path, project(pytester), ASKING, *LIMITED, *options)
    assert done.code == 0, done
    assert "Timeout" not in done.stdout


OWN_LIMIT = """
import signal
import threading
import pytest

def over(signum, frame):
    pytest.fail("the project's own limit")

def pytest_sessionstart():
    signal.signal(signal.SIGALRM, over)
"""
RINGS = "not signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)"

"""User code in a session of pytest: what ends the session, and what concerns a case alone."""

from __future__ import annotations

import pytest

from tests.plugin.recorded import Recorded, run_pytest
from tests.support.suites import write_suite

RECORDING = "--jrh-record-mode=once"
CLIENT = """
    import re
    import pytest

    RAISED = [SystemExit(3), pytest.skip.Exception("not today"), {end}]

    async def complete(stage, messages, response_model):
        raise RAISED[int(re.search("order 100([0-9])", str(messages)).group(1)) - 1]

    def pytest_jrh_complete(config):
        return complete
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "-n 2"])
def test_a_client_can_end_the_session_as_ctrl_c_does(
    pytester: pytest.Pytester, workers: list[str]
) -> None:
    pytester.makeconftest(CLIENT.format(end="pytest.exit.Exception('enough', returncode=0)"))
    suite = write_suite(pytester.path, runs=3, tests=["agent_positives"])
    done = run_pytest(pytester.path, suite.option, RECORDING, "-k", "run-3", *workers)
    assert done.code == pytest.ExitCode.INTERRUPTED, done
    assert "INTERNALERROR" not in done.stdout + done.stderr


def test_what_a_client_raises_concerns_its_case_alone(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CLIENT.format(end="ValueError('enough')"))
    suite = write_suite(pytester.path, runs=3, tests=["agent_positives"])
    done = run_pytest(pytester.path, suite.option, RECORDING, "-n", "2")
    assert done.lines[-1].strip("= ").startswith("3 errors in"), done.stdout
    words = " ".join(done.stdout.split())
    for said in ("SystemExit: 3.", "Skipped: not today.", "ValueError: enough."):
        assert f"The client of `pytest_jrh_complete` raised {said}" in words
    assert "Traceback" not in done.stdout
    # Planner and first summary of each case.
    assert "6 calls (6 without an answer, which may be billed), 0 replayed" in words
    assert done.lines.count("    conftest.py:7 in complete") == 3


def test_a_hook_that_fails_does_not_concern_a_replay(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    pytester.makeconftest("def pytest_jrh_complete(config):\n    raise SystemExit(3)\n")
    replayed = pytester.runpytest_inprocess(recorded.tiny.option, "-k", "run-1")
    replayed.assert_outcomes(passed=2, deselected=6)

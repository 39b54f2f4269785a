"""User code in a session of pytest: what ends the session, and what concerns a case alone."""

from __future__ import annotations

import pytest

from tests.plugin.recorded import Recorded, run_pytest
from tests.support.suites import write_suite

RECORDING = "--jrh-record-mode=once"
CLIENT = """
    import pytest

    async def complete(stage, messages, response_model):
        raise pytest.exit.Exception("enough", returncode=0)

    def pytest_jrh_complete(config):
        return complete
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "-n 2"])
def test_a_client_can_end_the_session_as_ctrl_c_does(
    pytester: pytest.Pytester, workers: list[str]
) -> None:
    pytester.makeconftest(CLIENT)
    suite = write_suite(pytester.path, runs=1, tests=["agent_positives"])
    done = run_pytest(pytester.path, suite.option, RECORDING, *workers)
    assert done.code == pytest.ExitCode.INTERRUPTED, done
    assert "INTERNALERROR" not in done.stdout + done.stderr


def test_a_hook_that_fails_does_not_concern_a_replay(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    pytester.makeconftest("def pytest_jrh_complete(config):\n    raise SystemExit(3)\n")
    replayed = pytester.runpytest_inprocess(recorded.tiny.option, "-k", "run-1")
    replayed.assert_outcomes(passed=2, deselected=6)

"""Killed in the middle of recording, and two at once: no call is paid for twice, and no file is
broken."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.ids import LEDGER_FILE
from pytest_jrh.llm.calls import Stopped
from tests.e2e.bench import Bench, read_cassette
from tests.support.fork_server import python
from tests.support.model_server import ModelServer
from tests.support.results import results_in
from tests.support.suites import SuiteFiles, write_suite

RUNS = 6
CALLS = RUNS * 5


@pytest.fixture
def suite(tmp_path: Path) -> SuiteFiles:
    """One rubric and one test, so that no two cases ask the same."""
    return write_suite(tmp_path / "suite", runs=RUNS, tests=["agent_perturbation"], workers=2)


@contextlib.contextmanager
def recording(suite: SuiteFiles, server: ModelServer) -> Iterator[subprocess.Popen[str]]:
    command = [*python(), "-m", "pytest", suite.option, "-p", "no:cacheprovider"]
    with subprocess.Popen(
        [*command, "--jrh-record-mode=once"],
        cwd=suite.folder,
        env={**os.environ, **server.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process


def assert_all_passed(process: subprocess.Popen[str]) -> None:
    output, _ = process.communicate(timeout=120)
    assert f" {RUNS} passed" in output


def digests(server: ModelServer) -> Counter[str]:
    return Counter(request.digest for request in server.requests)


def recorded_calls(suite: SuiteFiles) -> Counter[str]:
    """The fingerprints on disk; every file has to be whole."""
    calls: Counter[str] = Counter()
    for path in suite.cassettes.rglob("*.yaml"):
        data = read_cassette(path)
        ours = data["metadata"]["jrh"]["calls"]
        assert sum(call["interactions"] for call in ours) == len(data["interactions"])
        calls.update(call["fingerprint"] for call in ours)
    return calls


def kill_once(process: subprocess.Popen[str], condition: Any) -> None:
    """Kill it as soon as the condition holds; its output ends with it, whoever forked it."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_killed_recording_is_resumed_without_a_call_that_reached_the_disk(
    suite: SuiteFiles, server: ModelServer
) -> None:
    server.delay = 0.03
    ledger = suite.results / LEDGER_FILE
    with recording(suite, server) as killed:
        kill_once(killed, lambda: server.count(answered=True) >= 2)
    assert not ledger.exists()
    early = recorded_calls(suite)
    with recording(suite, server) as killed:
        kill_once(killed, lambda: ledger.exists() and ledger.stat().st_size > 0)
    on_disk, left = recorded_calls(suite), results_in(suite.results)
    assert on_disk >= early
    assert on_disk.total() < CALLS
    assert 0 < len(left) < RUNS
    asked = digests(server)

    with recording(suite, server) as resumed:
        assert_all_passed(resumed)
    # A call in flight when a process died may be made again; one on disk may not.
    asked_in_all = digests(server)
    assert len(asked_in_all) == CALLS
    assert asked_in_all.total() == CALLS + asked.total() - on_disk.total()
    assert max(asked_in_all.values()) <= 3
    assert recorded_calls(suite).total() == CALLS
    assert recorded_calls(suite) >= on_disk
    cases = {result.case_id: result.case_digest for result in results_in(suite.results)}
    assert len(cases) == RUNS
    assert all(cases[result.case_id] == result.case_digest for result in left)
    assert Bench(suite, suite.cassettes).replay().outcomes == [("agree", 1)] * RUNS


def test_two_recordings_into_one_folder_make_every_call_once(
    suite: SuiteFiles, server: ModelServer
) -> None:
    server.delay = 0.03
    with recording(suite, server) as one, recording(suite, server) as other:
        assert_all_passed(one)
        assert_all_passed(other)
    asked = digests(server)
    assert (len(asked), asked.total()) == (CALLS, CALLS)
    assert recorded_calls(suite).total() == CALLS
    assert not list(suite.cassettes.rglob("*.tmp"))


def test_a_session_whose_controller_was_killed_begins_no_further_call_within_a_case(
    bench: Bench, server: ModelServer
) -> None:
    with pytest.raises(Stopped):
        bench.run(is_orphan=lambda: server.count("planner") > 0)
    assert server.count("editor") == 0

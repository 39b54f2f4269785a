"""Killed in the middle of recording, and two at once: no call is paid for twice, and no file is
broken."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.ids import LEDGER_FILE
from tests.e2e.bench import Bench, read_cassette
from tests.support.fork_server import python
from tests.support.results import results_in
from tests.support.server_process import ServerProcess, server_process
from tests.support.suites import SuiteFiles, write_suite

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 4
CALLS = RUNS * 5


@pytest.fixture
def suite(tmp_path: Path) -> SuiteFiles:
    """One rubric and one test, so that no two cases ask the same."""
    return write_suite(tmp_path / "suite", runs=RUNS, tests=["agent_perturbation"])


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ServerProcess]:
    with server_process(tmp_path / "calls.jsonl", delay=0.03) as process:
        yield process


@contextlib.contextmanager
def pytest_process(
    suite: SuiteFiles, server: ServerProcess, *arguments: str
) -> Iterator[subprocess.Popen[str]]:
    command = [
        *python(),
        "-m",
        "pytest",
        suite.option,
        "-rA",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    environment = {**os.environ, **server.environment}
    with subprocess.Popen(
        command,
        cwd=suite.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process


def outcomes(process: subprocess.Popen[str]) -> list[str]:
    output, _ = process.communicate(timeout=120)
    return sorted(
        line
        for line in output.splitlines()
        if line.startswith(("PASSED ", "FAILED ", "ERROR ", "SKIPPED "))
    )


def recorded_calls(suite: SuiteFiles) -> Counter[str]:
    """The fingerprints on disk; every file has to be whole."""
    files = list(suite.cassettes.rglob("*.yaml"))
    calls: Counter[str] = Counter()
    for path in files:
        data = read_cassette(path)
        ours = data["metadata"]["jrh"]["calls"]
        assert sum(call["interactions"] for call in ours) == len(data["interactions"])
        calls.update(call["fingerprint"] for call in ours)
    return calls


@pytest.mark.parametrize("after", [2, 15])
def test_a_killed_recording_is_resumed_without_a_call_that_reached_the_disk(
    suite: SuiteFiles, process: ServerProcess, after: int
) -> None:
    with pytest_process(suite, process, "--jrh-record-mode=once") as killed:
        _wait(lambda: len(process.events("answered")) >= after or killed.poll() is not None)
        assert killed.poll() is None
        os.kill(killed.pid, signal.SIGKILL)
        # Its output ends with it, whoever forked it.
        killed.communicate()
    on_disk = recorded_calls(suite)
    assert 0 < len(process.events("answered")) < CALLS
    first = Counter(event["digest"] for event in process.events("asked"))

    with pytest_process(suite, process, "--jrh-record-mode=once") as resumed:
        assert [line.split()[0] for line in outcomes(resumed)] == ["PASSED"] * RUNS
    both = Counter(event["digest"] for event in process.events("asked"))
    # A call in flight when the process died may be made again; one on disk may not.
    assert len(both) == CALLS
    assert both.total() == CALLS + first.total() - on_disk.total()
    assert max(both.values()) <= 2
    assert recorded_calls(suite).total() == CALLS
    assert recorded_calls(suite) >= on_disk

    assert Bench(suite, suite.cassettes).replay().outcomes == [("agree", 1)] * RUNS


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "-n 2"])
def test_a_killed_session_has_left_what_came_of_its_cases(
    tmp_path: Path, process: ServerProcess, workers: tuple[str, ...]
) -> None:
    suite = write_suite(tmp_path / "suite", runs=8, tests=["agent_perturbation"], workers=1)
    ledger = suite.results / LEDGER_FILE
    with pytest_process(suite, process, "--jrh-record-mode=once", *workers) as killed:
        _wait(lambda: _size(ledger) > 0 or killed.poll() is not None)
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
    left = results_in(suite.results)
    assert 0 < len(left) < 8
    with pytest_process(suite, process, "--jrh-record-mode=once", *workers) as resumed:
        assert [line.split()[0] for line in outcomes(resumed)] == ["PASSED"] * 8
    digests = {result.case_id: result.case_digest for result in results_in(suite.results)}
    assert len(digests) == 8
    assert all(digests[result.case_id] == result.case_digest for result in left)


def test_two_recordings_into_one_folder_make_every_call_once(
    suite: SuiteFiles, process: ServerProcess
) -> None:
    with (
        pytest_process(suite, process, "--jrh-record-mode=once") as one,
        pytest_process(suite, process, "--jrh-record-mode=once") as other,
    ):
        first, second = outcomes(one), outcomes(other)
    assert first == second
    assert [line.split()[0] for line in first] == ["PASSED"] * RUNS
    digests = Counter(event["digest"] for event in process.events("asked"))
    assert (len(digests), digests.total()) == (CALLS, CALLS)
    assert recorded_calls(suite).total() == CALLS
    assert not list(suite.cassettes.rglob("*.tmp"))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _wait(condition: Any) -> None:
    """Look until it holds.

    The server's log is the only thing that two processes and this one share.
    """
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)

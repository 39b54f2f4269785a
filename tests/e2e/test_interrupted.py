"""Recording that is killed, meets a disk that fills up, or another recording into the same folder:
no call is paid for twice, no file is broken, and the cases say what happened."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from pytest_jrh.core.ids import LEDGER_FILE
from pytest_jrh.llm.calls import Stopped
from pytest_jrh.recording import tapes
from tests.e2e.bench import Bench, read_cassette, said
from tests.plugin.recorded import run_pytest
from tests.support.fork_server import python
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer
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


def test_a_killed_recording_is_resumed_from_disk(suite: SuiteFiles, server: ModelServer) -> None:
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


def test_two_recordings_make_every_call_once(suite: SuiteFiles, server: ModelServer) -> None:
    server.delay = 0.03
    with recording(suite, server) as one, recording(suite, server) as other:
        assert_all_passed(one)
        assert_all_passed(other)
    asked = digests(server)
    assert (len(asked), asked.total()) == (CALLS, CALLS)
    assert recorded_calls(suite).total() == CALLS
    assert not list(suite.cassettes.rglob("*.tmp"))


def test_a_killed_controller_begins_no_further_call(bench: Bench, server: ModelServer) -> None:
    with pytest.raises(Stopped):
        bench.run(is_orphan=lambda: server.count("planner") > 0)
    assert server.count("editor") == 0


FULL = "No space left on device"


@contextlib.contextmanager
def small_disk(folder: Path, size: str, *, full: bool = False) -> Iterator[None]:
    """Mount a disk of this size there, with no room left if `full`. Skips the test where that is
    not allowed."""
    folder.mkdir(parents=True)
    if shutil.which("mount") is None:
        pytest.skip("needs a disk that can fill up, and there is no `mount` here")
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a disk that can fill up: {done.stderr.strip() or 'mount failed'}")
    try:
        if full:
            filler = (folder / "filler").open("wb", buffering=0)
            with contextlib.suppress(OSError), filler:
                while filler.write(bytes(4096)):
                    pass
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


def count(output: str, word: str) -> int:
    return sum(line.startswith(f"{word} ") for line in output.splitlines())


def test_cases_without_room_for_answers_say_so(suite: SuiteFiles, server: ModelServer) -> None:
    # One at a time, so that it fills up between cases.
    suite.configure({"admin": {"evaluation_config": {"max_workers": 1}}})
    with small_disk(suite.cassettes, "160k"):
        full = run_pytest(suite.folder, suite.option, "--jrh-record-mode=once", "-rA")
        assert full.code == 1
        passed, failed = count(full.stdout, "PASSED"), count(full.stdout, "ERROR")
        assert passed + failed == RUNS
        assert 0 < passed < RUNS
        assert FULL in full.stdout
        assert str(suite.cassettes) in "".join(full.stdout.split())
        assert "Traceback" not in full.stdout + full.stderr
        # Whatever was paid for is on the disk, and every file there is whole.
        asked = server.count()
        assert asked < CALLS
        assert recorded_calls(suite).total() == asked
        assert not list(suite.cassettes.rglob("*.tmp"))

        resize(suite.cassettes, "64m")
        assert Bench(suite, suite.cassettes).run("once").outcomes == [("agree", 1)] * RUNS
        assert digests(server).total() == len(digests(server)) == CALLS
        assert Bench(suite, suite.cassettes).replay().outcomes == [("agree", 1)] * RUNS


def test_results_without_room_are_named(suite: SuiteFiles, server: ModelServer) -> None:
    outputs = suite.folder / "outputs"
    with small_disk(outputs, "64k", full=True):
        full = run_pytest(suite.folder, suite.option, "--jrh-record-mode=once", "-rA", "-n2")
        assert full.code == 1
        assert count(full.stdout, "PASSED") == RUNS
        words = " ".join(full.stdout.split())
        assert "made case" in words
        assert f"synthetic_agent_perturbation.csv was not written: {FULL}." in words
        assert "This session is not green, because files could not be written." in words
        assert "INTERNALERROR" not in full.stdout + full.stderr
        assert server.count() == CALLS

        resize(outputs, "64m")
        again = run_pytest(suite.folder, suite.option, "-rA", "-n2")
        assert again.code == 0, again.stdout
        made = next(outputs.rglob("agent_perturbations.jsonl")).read_bytes()
        assert made.count(b"\n") == RUNS
        assert server.count() == CALLS


def test_nothing_is_asked_where_its_answer_could_not_be_kept(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tapes, "room_for", Mock(side_effect=OSError(28, FULL)))
        refused = bench.run().only
    assert (refused.outcome, server.count()) == ("model_error", 0)
    assert "No call was made, because its answer could not be stored under" in said(refused)
    assert str(bench.cassettes) in "".join(said(refused).split())
    assert FULL in said(refused)
    assert bench.run().outcomes == [("agree", 1)]
    assert server.count() == 5

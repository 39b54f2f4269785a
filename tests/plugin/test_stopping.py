"""Ending early: `-x` and Ctrl-C stop new calls, and keep those that were in flight."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_jrh.recording.cassettes import Cassette
from tests.plugin.recorded import environment
from tests.plugin.test_growing import LABELS, write_growing
from tests.support.faults import Fault
from tests.support.fork_server import python
from tests.support.ledgers import case_lines
from tests.support.model_server import ModelServer
from tests.support.suites import REMOVED, SuiteFiles, write_suite

PATIENCE = 150.0


@contextmanager
def running(
    suite: SuiteFiles, server: ModelServer, *arguments: str, interpreter: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """A recording session of its own process, in a process group of its own, as a terminal would
    start it."""
    options = ("-u", "-m", "pytest", suite.option, "--jrh-record-mode=once", *arguments)
    with subprocess.Popen(
        [*(interpreter or python()), *options],
        cwd=suite.folder,
        env=environment(server.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # Whoever runs these tests in the background ignores Ctrl-C, and so would the session that
        # they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no thread runs yet
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def interrupt(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)


def read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"the session ended before it said {text!r}:\n{seen}")


def recorded_calls(suite: SuiteFiles) -> int:
    return sum(len(Cassette.load(path).entries) for path in suite.cassettes.rglob("*.yaml"))


def test_ctrl_c_awaits_the_calls_in_flight_and_begins_no_other(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, runs=6, tests=["agent_positives"])
    with ModelServer() as server:
        hang = Fault.hang()
        server.faults.add(fault=hang, times=None, stage="planner")
        with running(suite, server) as process:
            server.wait_for(4, "planner", timeout=PATIENCE)
            interrupt(process)
            read_until(
                process,
                "jrh: waiting for calls in flight, to record them; Ctrl-C again quits at once",
            )
            hang.release()
            rest, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == pytest.ExitCode.INTERRUPTED
        assert server.count("planner", answered=True) == server.count("planner") == 4
        assert server.count() == recorded_calls(suite)
    assert "Traceback" not in rest
    assert "KeyboardInterrupt" in rest


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, runs=2, tests=["agent_positives"])
    with ModelServer() as server:
        hang = Fault.hang()
        server.faults.add(fault=hang, times=None, stage="verifier")
        with running(suite, server) as process:
            server.wait_for(2, "verifier", timeout=PATIENCE)
            interrupt(process)
            read_until(process, "Ctrl-C again quits at once")
            interrupt(process)
            rest, _ = process.communicate(timeout=PATIENCE)
        answered = server.count(answered=True)
        hang.release()
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "Traceback" not in rest
    assert recorded_calls(suite) == answered
    assert not list(tmp_path.rglob(".jrh-*.tmp"))


def test_ctrl_c_is_heard_under_xdist(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, runs=4, tests=["agent_positives"])
    with ModelServer() as server:
        hang = Fault.hang()
        server.faults.add(fault=hang, times=None, stage="planner")
        with running(suite, server, "-n", "2") as process:
            server.wait_for(2, "planner", timeout=PATIENCE)
            interrupt(process)
            hang.release()
            process.communicate(timeout=PATIENCE)
        assert process.returncode == pytest.ExitCode.INTERRUPTED
        assert server.count(answered=True) == recorded_calls(suite)
    assert not list(tmp_path.rglob(".spool*"))


def test_stopping_keeps_the_calls_in_flight(pytester: pytest.Pytester, server: ModelServer) -> None:
    suite = write_suite(pytester.path, runs=12, tests=["agent_positives"], workers=2)
    server.delay = 0.02
    server.faults.add(stage="judge", fault=Fault.fields(score=1))
    reports = ("--jrh-report=part.html", "--jrh-report=part.md")
    result = pytester.runpytest_inprocess(suite.option, "--jrh-record-mode=once", "-x", *reports)
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])
    assert server.count("planner") < 12
    assert server.count() == recorded_calls(suite)
    kept = len(case_lines(suite.results / "results.jsonl"))
    said = f"interrupted after {kept} of 12 cases; run again to continue"
    assert f"! {said}" in " ".join(" ".join(result.outlines).split())
    for report in ("part.md", "part.html"):
        assert said in (pytester.path / report).read_text("utf-8")
    [path] = suite.results.glob("*_report.json")
    session = json.loads(path.read_text("utf-8"))["session"]
    assert session == {"cases": kept, "kept": 0, "of": 12, "interrupted": True}


# It calls no model, so that no worker imports a client.
WAITING = """
import os, time
from pathlib import Path

FOLDER = Path(__file__).parent

def judge(case):
    (FOLDER / f"{case.run_id}.asked").write_text(str(os.getpid()))
    while not (FOLDER / "go").exists():
        time.sleep(0.01)
    return 0
"""


def is_running(pid: int) -> bool:
    """Whether a process is there and is no zombie that nobody has reaped."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="finds xdist's workers in /proc")
def test_the_workers_of_a_killed_controller_ask_no_further_judge(tmp_path: Path) -> None:
    labels = {"test_agent_perturbation_config": {"labels": LABELS}}
    judge = {"judge": {"python": "judges.py:judge"}, "synthetic_data_params": REMOVED}
    suite, _ = write_growing(tmp_path, 12, tests=["labels"], overrides=labels | judge, workers=2)
    folder = suite.config.parent
    (folder / "judges.py").write_text(WAITING, encoding="utf-8")
    # A real controller, and workers that are its children.
    with (
        ModelServer() as server,
        running(suite, server, "-n", "2", interpreter=[sys.executable]) as process,
    ):
        # Both places for calls are taken then, so that no other one is on its way.
        wait_until(lambda: sum(bool(path.read_text()) for path in folder.glob("*.asked")) == 2)
        workers = {int(path.read_text()) for path in folder.glob("*.asked")}
        process.kill()
        process.wait()
        (folder / "go").touch()
        wait_until(lambda: not any(map(is_running, workers)))
    assert len(list(folder.glob("*.asked"))) == 2

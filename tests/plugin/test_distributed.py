"""A session leaves the same results with and without xdist, whatever becomes of the workers."""

import json
import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.plugin.gated import BASELINE, FILE, TINY, UPDATE, Project, under
from tests.plugin.recorded import PERTURBATION, POSITIVES, Done, judges, outcomes, run_pytest
from tests.plugin.test_probes import PROBE, write_probed
from tests.support.faults import Fault
from tests.support.model_server import ModelServer
from tests.support.suites import write_suite

PLANNER = {"model": "openai/gpt-4.1-mini", "temperature": 0.5}
REFUSED = b'{"error":{"message":"Unsupported value: temperature","type":"invalid_request_error"}}'


@dataclass(frozen=True, slots=True)
class Sessions:
    """A panel with a probe, recorded by two workers whose model fails once; then replayed in one
    process, and by two workers. `files` is what each replay left."""

    recorded: Done
    asked: Counter[str]
    peak: int
    replays: list[Done]
    files: list[dict[str, bytes]]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Sessions:
    folder = tmp_path_factory.mktemp("sessions")
    suite = write_probed(
        folder,
        number=2,
        tests=("agent_perturbation", "agent_positives", PROBE),
        evaluation={"judges": judges("strict", "kind one")},
        overrides={"test_agent_perturbation_config": {"planner": PLANNER}},
        workers=2,
    )
    options = (suite.option, "-rA", "-p", "no:cacheprovider")
    more = ("--jrh-record-mode=once", "--reruns", "1", "-n", "2")
    with ModelServer() as server:
        refusal = Fault.raw(REFUSED, status=400)
        server.faults.add(
            stage="planner",
            fault=refusal,
            times=None,
            when=lambda asked: "temperature" in asked.body,
        )
        # A refusal of no parameter, which is sent otherwise, nor of the model, which ends it.
        server.faults.add(stage="judge", fault=Fault.status(405))
        server.delay = 0.02
        recorded = run_pytest(folder, *options, *more, env=server.environment)
        asked = Counter(json.dumps(request.body, sort_keys=True) for request in server.requests)
    shutil.rmtree(folder / "outputs")
    replays, files = [], []
    for workers in ("0", "2"):
        done = run_pytest(folder, *options, "-n", workers)
        outputs = folder / "outputs"
        paths = [path for path in outputs.rglob("*") if path.is_file()]
        assert not [path for path in paths if ".spool" in str(path)]
        replays.append(done)
        files.append({str(path): path.read_bytes() for path in paths})
        shutil.rmtree(outputs)
    return Sessions(recorded, asked, server.peak_in_flight, replays, files)


def test_workers_ask_nothing_twice_but_what_failed_and_notify_once(sessions: Sessions) -> None:
    assert sessions.recorded.code == pytest.ExitCode.OK, sessions.recorded.stdout
    assert [times for times in sessions.asked.values() if times > 1] == [2]
    # What litellm warns of is listed, too.
    assert re.search(r" passed, (\d+ warnings?, )?1 rerun", sessions.recorded.stdout)
    assert sessions.peak == 2
    assert sessions.recorded.stdout.count("does not accept temperature") == 1


def test_workers_replay_what_they_recorded_as_one_process_does(sessions: Sessions) -> None:
    """What judges of a panel share counts once, and so does the base of a probe; the summary is
    printed once, and is the same."""
    tables = []
    for done in sessions.replays:
        assert set(outcomes(done.lines).values()) == {"PASSED"}
        assert done.code == 0
        [start] = [place for place, line in enumerate(done.lines) if "judge reliability" in line]
        lines = done.lines[start + 1 : -1]
        tables.append([line for line in lines if " calls, " not in line])
    assert tables[0] == tables[1]
    assert any("panel" in line for line in tables[0])
    alone, distributed = sessions.replays
    assert outcomes(alone.lines) == outcomes(distributed.lines)
    assert " 0 calls, " in alone.stdout


def test_workers_leave_the_same_bytes(sessions: Sessions) -> None:
    alone, distributed = sessions.files
    assert {"results.jsonl", "agent_perturbations.jsonl"} <= {Path(name).name for name in alone}
    assert alone == distributed


KILLING = """
import os

def pytest_runtest_setup(item):
    if "agent_positives" in item.nodeid and item.name == "run-1[e1]":
        os._exit(3)
"""


def test_a_killed_worker_is_said_and_loses_nothing(project_once: Project, tmp_path: Path) -> None:
    project = project_once.copied(tmp_path)
    (tmp_path / "conftest.py").write_text(KILLING, encoding="utf-8")
    before = (project.folder / FILE).read_bytes()
    done = run_pytest(tmp_path, project.suite.option, BASELINE, UPDATE, "-n", "2", "-rA", "-v")
    assert done.code == pytest.ExitCode.TESTS_FAILED
    killed = f"{TINY}::{POSITIVES}run-1[e1]"
    told = outcomes(done.lines)
    assert told.pop(killed) == "FAILED"
    assert told[f"{TINY}::{PERTURBATION}run-1[e1]"] == "PASSED"
    assert under(done.lines, "never reported (1):") == [killed]
    assert "FAIL  1 case has no verdict (1 never reported)" in done.lines
    said = "The baseline baseline.json was not updated, because the session did not finish."
    assert said in done.lines
    assert (project.folder / FILE).read_bytes() == before
    lines = (project.suite.positives / "agent_perturbations.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["run_id"] for line in lines} >= {"run-2", "run-3", "run-4"}
    assert not list((tmp_path / "outputs").rglob(".spool*"))


def test_a_rate_limit_holds_over_workers_and_suites_as_the_server_sees_it(tmp_path: Path) -> None:
    limited = {"judge": {"rate_limit": {"calls": 2, "period": 1.0}}}
    options = []
    for name in ("first", "second"):
        suite = write_suite(
            tmp_path, runs=3, name=name, tests=["agent_perturbation"], overrides=limited
        )
        options.append(suite.option)
    with ModelServer() as server:
        record = ("--jrh-record-mode=once", "-n", "2")
        done = run_pytest(tmp_path, *options, *record, env=server.environment)
        times = [request.started for request in server.requests if request.stage == "judge"]
    assert done.code == 0, done.stdout
    assert len(times) == 6
    for early, late in zip(times, times[2:], strict=False):
        assert late - early >= 0.9

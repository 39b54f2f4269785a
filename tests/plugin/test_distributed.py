"""A session leaves the same results with and without xdist, whatever becomes of the workers."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_jrh.core.ids import LEDGER_FILE
from tests.plugin.recorded import PERTURBATION, POSITIVES, Done, Recorded, outcomes, run_pytest
from tests.support.faults import Fault
from tests.support.model_server import ModelServer
from tests.support.suites import write_suite

TINY = "inputs/configs/tiny.yml"
JSONL = "outputs/agent_perturbation/tiny/agent_perturbations.jsonl"


@dataclass(frozen=True, slots=True)
class Session:
    """What one run of all three suites printed and left behind."""

    done: Done
    files: Mapping[str, bytes]


def session(recorded: Recorded, *arguments: str) -> Session:
    folder = recorded.tiny.folder
    options = [suite.option for suite in (recorded.tiny, recorded.scale, recorded.panel)]
    done = run_pytest(folder, *options, "-rA", "-p", "no:cacheprovider", *arguments)
    outputs = folder / "outputs"
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in outputs.rglob("*")
        # The HTML page says how long the session took.
        if path.is_file() and path.suffix != ".html"
    }
    leftover = [path.name for path in outputs.rglob(".*")]
    assert leftover == []
    shutil.rmtree(outputs)
    return Session(done, files)


def different(files: Mapping[str, bytes], others: Mapping[str, bytes]) -> list[str]:
    """The files that are not the same in both."""
    return sorted(
        name for name in files.keys() | others.keys() if files.get(name) != others.get(name)
    )


@pytest.fixture(scope="module")
def sessions(
    recorded_once: Recorded, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Session, Session]:
    """The three suites replayed in one process, and then by two workers."""
    recorded = recorded_once.copied(tmp_path_factory.mktemp("sessions"))
    return session(recorded), session(recorded, "-n", "2")


def test_workers_come_to_the_same_outcomes(sessions: tuple[Session, Session]) -> None:
    alone, distributed = (outcomes(session.done.lines) for session in sessions)
    assert alone == distributed
    assert Counter(alone.values()) == {"PASSED": 12, "FAILED": 1, "ERROR": 1}
    assert alone[f"{TINY}::{PERTURBATION}run-2[e1]"] == "FAILED"
    assert [session.done.code for session in sessions] == [pytest.ExitCode.TESTS_FAILED] * 2


def test_workers_leave_the_same_bytes(sessions: tuple[Session, Session]) -> None:
    alone, distributed = (session.files for session in sessions)
    assert alone.keys() == distributed.keys()
    assert JSONL in alone
    assert different(alone, distributed) == []


def test_the_summary_is_printed_once_and_is_the_same(sessions: tuple[Session, Session]) -> None:
    tables = []
    for one in sessions:
        assert one.done.stdout.count("judge reliability") == 1
        start = next(
            number for number, line in enumerate(one.done.lines) if "judge reliability" in line
        )
        lines = one.done.lines[start + 1 : -1]
        tables.append([line for line in lines if " calls, " not in line])
    assert tables[0] == tables[1]
    # The suites share a folder, and the later ones move the records of the first in its file.
    assert not [line for line in tables[0] if "was not written" in line]
    assert any("  1 of 2  " in line for line in tables[0])
    assert any(line.startswith("PASS  scale: the judge agrees with all ") for line in tables[0])
    assert any("  panel: " in line for line in tables[0])


def test_a_crashed_worker_loses_nothing_that_others_made(
    recorded_once: Recorded, tmp_path: Path
) -> None:
    recorded = recorded_once.copied(tmp_path)
    (tmp_path / "conftest.py").write_text(
        "import os\n\n"
        "def pytest_runtest_setup(item):\n"
        "    if 'agent_positives' in item.nodeid and item.name == 'run-1[e1]':\n"
        "        os._exit(3)\n",
        encoding="utf-8",
    )
    done = run_pytest(tmp_path, recorded.tiny.option, "-n", "2", "-rA")
    assert done.code == pytest.ExitCode.TESTS_FAILED
    told = outcomes(done.lines)
    assert told.pop(f"{TINY}::{POSITIVES}run-1[e1]") == "FAILED"
    assert told == {
        f"{TINY}::{PERTURBATION}run-1[e1]": "PASSED",
        f"{TINY}::{PERTURBATION}run-2[e1]": "FAILED",
        f"{TINY}::{PERTURBATION}run-4[e1]": "ERROR",
        f"{TINY}::{POSITIVES}run-2[e1]": "PASSED",
        f"{TINY}::{POSITIVES}run-4[e1]": "PASSED",
    }
    for folder, runs in (
        (recorded.tiny.negatives, {"run-1", "run-2", "run-4"}),
        (recorded.tiny.positives, {"run-2", "run-4"}),
    ):
        lines = (folder / "agent_perturbations.jsonl").read_text("utf-8").splitlines()
        assert {json.loads(line)["run_id"] for line in lines} >= runs
    assert not list((tmp_path / "outputs").rglob(".spool*"))


def test_workers_repeat_attempts_and_pass_on_what_their_clients_have_to_say(tmp_path: Path) -> None:
    overrides = {
        "test_agent_perturbation_config": {
            "planner": {"model": "openai/gpt-4.1-mini", "temperature": 0.5}
        }
    }
    suite = write_suite(tmp_path, runs=4, tests=["agent_positives"], overrides=overrides, workers=2)
    body = (
        b'{"error": {"message": "Unsupported value: temperature", "type": "invalid_request_error"}}'
    )
    options = [
        suite.option,
        "--jrh-record-mode=once",
        "--reruns",
        "1",
        "-n",
        "2",
    ]
    with ModelServer() as server:
        refusal = Fault.raw(body, status=400)
        server.faults.add(
            stage="planner",
            fault=refusal,
            times=None,
            when=lambda asked: asked.temperature is not None,
        )
        server.faults.add(stage="planner", fault=Fault.status(400))
        server.delay = 0.02
        done = run_pytest(tmp_path, *options, env=server.environment)
        assert server.peak_in_flight <= 2
    assert done.code == pytest.ExitCode.OK, done.stdout
    # What litellm warns of is listed, too.
    assert re.search(r"4 passed, (\d+ warnings?, )?1 rerun", done.stdout)
    told = "UNCLEAR  every label is 0, so that a judge that always says 0 is right"
    assert told in done.lines
    assert done.stdout.count("does not accept temperature") == 1


def test_the_ledger_of_probes_is_the_same_with_workers_that_share_a_base(tmp_path: Path) -> None:
    """Each worker judges the cases that its probes change, and their cost counts once."""
    root = Path(__file__).parents[2]
    shutil.copytree(root / "examples/probes", tmp_path / "examples/probes")
    ledgers = []
    for workers in ("0", "2"):
        options = ["--jrh-config=examples/probes/probes.yml", "-n", workers]
        run_pytest(tmp_path, *options, "--tb=no", "-k", "format_invariance")
        [path] = tmp_path.rglob(LEDGER_FILE)
        ledgers.append(path.read_text("utf-8").splitlines())
        path.unlink()
    alone, distributed = ledgers
    assert len(alone) > 100
    assert alone == distributed

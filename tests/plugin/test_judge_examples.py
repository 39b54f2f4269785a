"""The worked examples of judges of one's own, replayed without a network."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.recorded import Done, run_pytest
from tests.support.offline import needs_cut_network, offline

ROOT = Path(__file__).parents[2]
PYTHON, HTTP, INSPECT = (
    f"examples/{name}" for name in ("python_judge", "http_judge", "inspect_scorer")
)
EXPECTED = {PYTHON: "54 passed", HTTP: "16 passed, 3 xfailed", INSPECT: "54 passed"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What the examples need: neither the log nor the demo's recordings."""
    for name in EXPECTED:
        shutil.copytree(ROOT / name, tmp_path / name)
    cases = "examples/small_judge/agent_perturbations.jsonl"
    for name in (cases, "inputs/data/refund_agent/rubrics.yml"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def judged(project: Path, example: str, *options: str, is_offline: bool = False) -> Done:
    done = run_pytest(
        project,
        f"--jrh-config={example}/refund_agent.yml",
        "--tb=no",
        # Inspect calls tenacity in a way of before.
        "-Wignore::DeprecationWarning:inspect_ai.model._retry",
        *options,
        interpreter=offline() if is_offline else (),
    )
    summary = done.lines[-1].strip("= ").partition(" in ")[0] if done.lines else done.stderr
    assert summary == EXPECTED[example], done.stdout
    return done


@needs_cut_network
@pytest.mark.parametrize("example", EXPECTED)
def test_an_example_replays_without_a_network(project: Path, example: str) -> None:
    done = judged(project, example, is_offline=True)
    assert any("  0 calls, " in line for line in done.lines)


@contextlib.contextmanager
def serving(project: Path) -> Iterator[int]:
    """The example's service, started as its README says, on the port that is given."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "examples.http_judge.service", str(port)]
    with subprocess.Popen(command, cwd=project) as service:
        try:
            deadline = time.monotonic() + 20
            while service.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield port
        finally:
            service.kill()


def test_the_service_is_asked_anew_as_its_readme_says(project: Path) -> None:
    judges = project / HTTP / "judges.py"
    source = judges.read_text("utf-8")
    with serving(project) as port:
        judges.write_text(source.replace("8799", str(port)), "utf-8")
        done = judged(project, HTTP, "--jrh-record-mode=all")
    assert any("  19 calls, " in line for line in done.lines), done.stdout
    judges.write_text(source, "utf-8")
    judged(project, HTTP)

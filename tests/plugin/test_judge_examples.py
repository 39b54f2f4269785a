"""The worked examples of judges of one's own, replayed without a network."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.plugin.recorded import Done, run_pytest
from tests.support.offline import LOCAL, needs_cut_network, offline

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
    for workers in ((), ("-n", "2", *LOCAL)):
        done = judged(project, example, *workers, is_offline=True)
        assert any(line.startswith("0 calls made, ") for line in done.lines)

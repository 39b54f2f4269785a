"""The small judge: a real model's recorded verdicts, replayed without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from examples.small_judge.replay import outcomes
from tests.plugin.recorded import run_pytest

ROOT = Path(__file__).parents[2]
FOLDER = "examples/small_judge"
CONFIG = f"{FOLDER}/refund_agent.yml"
EXPECTED = {"agree": 32, "disagree": 22}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What a replay needs: neither the log nor the demo's recordings."""
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    rubrics = "inputs/data/refund_agent/rubrics.yml"
    (tmp_path / rubrics).parent.mkdir(parents=True)
    shutil.copyfile(ROOT / rubrics, tmp_path / rubrics)
    return tmp_path


def replay(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "examples.small_judge.replay"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_recorded_verdicts_replay_red_and_are_said_to_be_no_better_than_chance(
    project: Path,
) -> None:
    done = run_pytest(project, f"--jrh-config={CONFIG}", "--tb=no", "--junitxml=small.xml")
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert outcomes(project / "small.xml") == EXPECTED
    assert "also unclear: the judge is not shown to be better than chance" in "\n".join(done.lines)
    assert any("  0 calls, " in line for line in done.lines)


def test_the_make_target_ends_with_0_on_the_red_run_that_it_should_show(project: Path) -> None:
    done = replay(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("This is what it should show")


def test_the_make_target_fails_where_a_recording_is_missing(project: Path) -> None:
    next((project / FOLDER / "cassettes").rglob("*.judge-*.yaml")).unlink()
    done = replay(project)
    assert done.returncode == 1
    assert "The replay is broken" in done.stderr
    assert "'unrecorded': 1" in done.stderr

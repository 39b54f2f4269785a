"""Conversations as other programs write them, and the real ones of `../shared`."""

from __future__ import annotations

from pathlib import Path

import pytest

_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def tau_bench() -> Path:
    """200 runs of GPT-4o in OpenAI messages; skips the test where they are absent."""
    path = _DATA / "tau-bench" / "gpt-4o-airline.json"
    if not path.is_file():
        pytest.skip("the runs of tau-bench are not there (../shared/data/tau-bench)")
    return path


def trajectory_judge(name: str) -> Path:
    """A file of 400 trajectories with known faults and the verdicts of five judges; skips the test
    where it is absent."""
    path = _DATA / "trajectory-judge" / name
    if not path.is_file():
        pytest.skip("trajectory-judge is not there (../shared/data/trajectory-judge)")
    return path

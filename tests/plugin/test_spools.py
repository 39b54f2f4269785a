"""Spools belong to their session: those of others are left alone, or removed a day after the last
case was put there."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.plugin.recorded import Recorded

ALTERED = "altered by another session"


def spool_of_another(output_dir: Path, name: str, record: dict[str, object]) -> Path:
    folder = output_dir / f".spool-{name}"
    folder.mkdir(parents=True)
    (folder / "1-0.jsonl").write_text(
        json.dumps({**record, "input": ALTERED}) + "\n", encoding="utf-8"
    )
    return folder


def test_the_spools_of_other_sessions_are_not_taken_over(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    options = [recorded.tiny.option, "-k", "run-1 and agent_perturbation", "-n", "2"]
    pytester.runpytest_inprocess(*options).assert_outcomes(passed=1)
    made = recorded.tiny.negatives / "agent_perturbations.jsonl"
    results, before = recorded.tiny.results, made.read_bytes()
    record = json.loads(before.splitlines()[0])
    live, killed = (spool_of_another(results, name, record) for name in ("live", "killed"))
    yesterday = time.time() - 25 * 60 * 60
    os.utime(killed, (yesterday, yesterday))
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=1)
    assert made.read_bytes() == before
    assert [*results.glob(".spool-*")] == [live]

"""Spools belong to their session: those of others are left alone, or cleaned up where nobody uses
them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from filelock import FileLock

from tests.plugin.recorded import Recorded

ALTERED = "altered by another session"


def stale_spool(output_dir: Path, name: str, record: dict[str, object]) -> Path:
    folder = output_dir / f".spool-{name}"
    folder.mkdir(parents=True)
    (folder / "1-0.jsonl").write_text(
        json.dumps({**record, "input": ALTERED}) + "\n", encoding="utf-8"
    )
    return folder


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "-n 2"])
def test_the_spools_of_other_sessions_are_not_taken_over(
    pytester: pytest.Pytester, recorded: Recorded, workers: list[str]
) -> None:
    options = [recorded.tiny.option, "-k", "run-1 and agent_perturbation", *workers]
    pytester.runpytest_inprocess(*options).assert_outcomes(passed=1, deselected=0 if workers else 7)
    made = recorded.tiny.negatives / "agent_perturbations.jsonl"
    results, before = recorded.tiny.results, made.read_bytes()
    record = json.loads(before.splitlines()[0])
    # A process id that is used again is that of another session.
    same_id = stale_spool(results, str(os.getpid()), record)
    crashed, live = (stale_spool(results, name, record) for name in ("crashed", "live"))
    crashed.with_name(".spool-crashed.lock").touch()
    with FileLock(live.with_name(".spool-live.lock")):
        result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=1, deselected=0 if workers else 7)
    assert made.read_bytes() == before
    assert {path.name for path in results.glob(".spool-*")} >= {same_id.name, live.name}
    assert not crashed.exists()
    notes = [line for line in result.outlines if line.startswith("note: ") and ".spool-" in line]
    assert len(notes) == 2, notes
    assert any(
        "contains made cases of another session" in note and same_id.name in note for note in notes
    )
    assert any(note.startswith("note: Removed ") and crashed.name in note for note in notes)

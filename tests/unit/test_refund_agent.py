"""The demo's log is what its task produces."""

from __future__ import annotations

from pathlib import Path

from examples.refund_agent.make_log import DEFAULT, make_log
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.sources import open_source


def transcripts(log: Path) -> dict[str, str]:
    """What is said and called in each run of a log."""
    source = open_source(log)
    runs = [source.read(*summary.key)[0] for summary in source.summaries()]
    return {run.run_id: render_transcript(run.messages, show_reasoning=True) for run in runs}


def test_committed_log_is_what_the_task_produces(tmp_path: Path) -> None:
    make_log(tmp_path / "again.eval")
    assert transcripts(tmp_path / "again.eval") == transcripts(DEFAULT)

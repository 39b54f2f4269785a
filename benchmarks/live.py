"""Live generation and judging against a loopback model that takes half a second for an answer."""

from __future__ import annotations

import shutil

from benchmarks.material import CACHE
from benchmarks.measure import Line, pytest_command, run
from tests.support.model_server import ModelServer
from tests.support.suites import write_suite

DELAY = 0.5
RUNS = 16
WORKERS = 10


def lines() -> list[Line]:
    """Both tests made and judged by a loopback model that takes half a second for an answer: the
    time of its calls, and of the whole process.
    """
    folder = CACHE / "live"
    shutil.rmtree(folder, ignore_errors=True)
    files = write_suite(folder, runs=RUNS, workers=WORKERS)
    with ModelServer(delay=DELAY) as server:
        cost = run(
            pytest_command(files.option, "--jrh-record-mode=new_episodes"),
            folder,
            environment=server.environment,
        )
        calls = [(each.started, each.ended) for each in server.requests if each.ended is not None]
    span = max(ended for _, ended in calls) - min(started for started, _ in calls)
    total = sum(ended - started for started, ended in calls)
    shared_out = total / WORKERS
    return [
        Line(
            f"live, {RUNS} runs x 2 tests, {WORKERS} at once: first to last call",
            f"{span:.1f} s",
            f"{shared_out:.1f} s: all call time shared out",
            span / shared_out,
            1.2,
        ),
        Line(
            "the same, whole process",
            f"{cost.seconds:.1f} s, {cost.peak_mb:.0f} MB",
            f"{total:.1f} s: its {len(calls)} calls one after another",
            cost.seconds / total,
            0.25,
        ),
    ]

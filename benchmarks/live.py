"""Live generation and judging against a loopback model that takes half a second
for every answer.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.material import CACHE, suite
from benchmarks.measure import Line, pytest_command, run
from tests.support.server_process import server_process

DELAY = 0.5
ORDINAL_LIMIT = 30.0


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What one recording session took: seconds, calls, the span from first to last call, and its
    lower bound."""

    wall: float
    calls: int
    span: float
    total: float
    bound: float
    peak_mb: float


def measure(name: str, *, workers: int, **settings: Any) -> LiveRun:
    """Record a fresh suite with `workers` calls in flight, and read the server's log."""
    shutil.rmtree(CACHE / name, ignore_errors=True)
    files = suite(name, workers=workers, **settings)
    log = CACHE / f"{name}.log"
    log.unlink(missing_ok=True)
    with server_process(log, delay=DELAY) as server:
        cost = run(
            pytest_command(files.option, "--jrh-record-mode=new_episodes"),
            files.folder,
            environment=server.environment,
        )
        asked = {event["index"]: event["time"] for event in server.events("asked")}
        answered = {event["index"]: event["time"] for event in server.events("answered")}
    lasting = [answered[index] - begun for index, begun in asked.items()]
    mean = sum(lasting) / len(lasting)
    longest = max(_steps(path) for path in files.cassettes.rglob("*.generation.yaml")) * mean
    total = sum(lasting)
    return LiveRun(
        wall=cost.seconds,
        calls=len(asked),
        span=max(answered.values()) - min(asked.values()),
        total=total,
        bound=max(longest, total / workers),
        peak_mb=cost.peak_mb,
    )


def _steps(generation: Path) -> int:
    """Calls that follow on each other: all of the case but its first summary, asked beside the
    plan; and the judge."""
    metadata: Mapping[str, Any] = yaml.load(
        generation.read_text(encoding="utf-8").partition("\ninteractions:")[0],
        Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader),
    )
    return len(metadata["metadata"]["jrh"]["calls"]) - 1 + 1


def lines() -> list[Line]:
    """Both tests over 16 runs; 16 runs by four scores; 64 calls at once over 64 runs."""
    found = []
    both = measure("live-binary", workers=10, runs=16)
    found.append(_span("live, 16 runs x 2 tests, 10 at once", both, 1.2))
    found.append(
        Line(
            "the same, whole process",
            f"{both.wall:.1f} s, {both.peak_mb:.0f} MB",
            f"{both.total:.1f} s: its {both.calls} calls one after another",
            both.wall / both.total,
            0.25,
        )
    )
    levels = [{"score": score, "label": f"Level {score}."} for score in range(4)]
    rubric = {
        "id": "quality",
        "instructions": "How kindly and clearly the assistant answers.",
        "score_levels": levels,
    }
    ordinal = measure(
        "live-ordinal",
        workers=10,
        runs=16,
        mode="ordinal",
        rubrics=[rubric],
        tests=("agent_perturbation",),
    )
    found.append(
        Line(
            "live, 16 runs x 4 scores, 10 at once, whole process",
            f"{ordinal.wall:.1f} s",
            f"{ordinal.total:.1f} s: its {ordinal.calls} calls one after another",
            ordinal.wall / ordinal.total,
            ORDINAL_LIMIT / ordinal.total,
        )
    )
    wide = measure("live-wide", workers=64, runs=64, tests=("agent_perturbation",))
    found.append(_span("live, 64 runs, 64 at once", wide, 2.0))
    return found


def _span(what: str, live: LiveRun, limit: float) -> Line:
    return Line(
        f"{what}: first to last call",
        f"{live.span:.1f} s",
        f"{live.bound:.1f} s: the longest case, or all call time shared out",
        live.span / live.bound,
        limit,
    )

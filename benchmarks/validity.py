"""Whether intervals, tests and gate hold: simulations with judges of known error rates."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

from benchmarks import gate, intervals, rates, recalls, simulations
from benchmarks.checks import Check, error_of, table
from benchmarks.measure import Line

RESULTS = Path(__file__).with_name("VALIDITY.md")


def lines() -> list[Line]:
    """Run all simulations on two processes, and write `VALIDITY.md`."""
    parts: dict[str, Callable[[Executor], tuple[str, list[Check]]]] = {
        "shares": _shares,
        "figures": intervals.figures,
        "gate": gate.section,
        "repeats": _repeats,
        "rates": rates.section,
        "recalls": recalls.section,
    }
    done = {}
    with ProcessPoolExecutor(2) as pool:
        for name, part in parts.items():
            started = time.perf_counter()
            done[name] = part(pool)
            print(f"  {name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    sections = [done[name] for name in ("shares", "figures", "gate", "repeats", "rates", "recalls")]
    checks = [check for _, found in sections for check in found]
    head = (
        "# Do the figures hold?\n\nWritten by `python -m benchmarks validity`: judges of known "
        "error rates are simulated with fixed seeds, and held against what the intervals and "
        "tests say. All figures are percentages or points.\n\nA simulation is exact up "
        "to its standard error, which has a column of its own: where a figure is less than two of "
        "them from its limit, it is called close, since other random numbers could decide it "
        "otherwise.\n\n"
    )
    titles = ("must hold", "found", "standard error", "limit", "", "where")
    text = head + table(titles, [check.cells for check in checks])
    text += "".join(f"\n{body}" for body, _ in sections)
    RESULTS.write_text(text, encoding="utf-8")
    return [check.line for check in checks]


def _shares(pool: Executor) -> tuple[str, list[Check]]:
    text, checks = intervals.shares(pool)
    epochs = list(pool.map(simulations.epochs_coverage, (0.3, 0.6), (1_000, 1_000)))
    return text, [
        *checks,
        Check(
            "coverage with three epochs of each sample, below that with three samples",
            100 * max(0.0, *(apart - together for together, apart in epochs)),
            2,
            "most",
            "; ".join(f"{100 * one:.1f} and {100 * other:.1f}" for one, other in epochs),
            max(math.hypot(error_of(one, 4_000), error_of(two, 4_000)) for one, two in epochs),
        ),
    ]


def _repeats(pool: Executor) -> tuple[str, list[Check]]:
    settings = [(flip, repeats) for flip in (0.02, 0.05, 0.1) for repeats in (2, 3, 5)]
    covered = list(
        pool.map(simulations.flicker_coverage, *zip(*settings, strict=True), [2_000] * 9)
    )
    checks = [
        Check(
            "coverage of the flicker's interval, lowest",
            100 * min(covered),
            93,
            "least",
            error=error_of(min(covered), 2_000),
        ),
    ]
    return "", checks

"""Whether intervals, tests and gate hold: simulations with judges of known error rates."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

from benchmarks import gate, intervals, people
from benchmarks.checks import Check, table
from benchmarks.measure import Line, origin

RESULTS = Path(__file__).with_name("VALIDITY.md")
SECTIONS: tuple[Callable[[Executor], tuple[str, list[Check]]], ...] = (
    intervals.shares,
    intervals.figures,
    intervals.flicker,
    gate.section,
    people.wrong_labels,
    people.rare_recall,
    people.rates,
)


def lines() -> list[Line]:
    """Run all simulations on two processes, and write `VALIDITY.md`."""
    measured = origin()
    bodies = []
    checks: list[Check] = []
    with ProcessPoolExecutor(2) as pool:
        for section in SECTIONS:
            started = time.perf_counter()
            body, found = section(pool)
            bodies.append(body)
            checks += found
            seconds = time.perf_counter() - started
            print(f"  {section.__module__}.{section.__name__}: {seconds:.0f} s", file=sys.stderr)
    head = (
        "# Do the figures hold?\n\nWritten by `python -m benchmarks validity`: judges of known "
        "error rates are simulated with fixed seeds, and held against what the intervals and "
        "tests say. All figures are percentages or points.\n\nA simulation is exact up "
        "to its standard error, which has a column of its own: where a figure is less than two of "
        "them from its limit, it is called close, since other random numbers could decide it "
        f"otherwise.\n\n{measured}\n\n"
    )
    titles = ("must hold", "found", "standard error", "limit", "", "where")
    texts = [head + table(titles, [check.cells for check in checks]), *bodies]
    RESULTS.write_text("\n".join(text for text in texts if text), encoding="utf-8")
    return [check.line for check in checks]

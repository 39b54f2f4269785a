"""`python -m pytest_jrh check` as one command, from a table to its HTML report."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Line, run

_SIZES = ((1_098, 2.0), (100_000, 10.0))
"""Rows, and the seconds that they may take."""
_MOST_MB = 500


def lines() -> list[Line]:
    """Seconds and peak memory by the number of rows, each with a baseline and reasoning."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rows, limit in _SIZES:
            _write(folder / "verdicts.csv", rows)
            command = [sys.executable, "-m", "pytest_jrh", "check", "verdicts.csv"]
            # The judge is the better one, so that the gate passes.
            cost = run(
                [*command, "--one=violated", "--baseline=old", "--report=report.html"], folder
            )
            what = f"check of {rows:,} rows with a baseline, to the HTML report"
            seconds = cost.seconds / limit
            figure = f"{cost.seconds:.1f} s"
            found.append(Line(what, figure, f"limit {limit:g} s", seconds, 1.0))
            memory = cost.peak_mb / _MOST_MB
            figure = f"{cost.peak_mb:.0f} MB"
            found.append(Line(f"{what}, peak", figure, f"limit {_MOST_MB} MB", memory, 1.0))
    return found


def _write(path: Path, rows: int) -> None:
    """A table of cases in clusters of ten, a judge that errs in a tenth of them, and an older one
    that errs in a fifth.
    """
    rng = random.Random(rows)
    texts = ["case,task,label,verdict,old,reasoning"]
    for number in range(rows):
        label = rng.randrange(2)
        verdict = label ^ (rng.random() < 0.1)
        old = label ^ (rng.random() < 0.2)
        reasoning = f"Step {number % 97} shows what the requirement asks for."
        texts.append(f"case-{number},task-{number // 10},{label},{verdict},{old},{reasoning}")
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")

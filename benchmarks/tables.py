"""`python -m pytest_jrh check` and `label` as commands: from a table to figures and page, and to
the first list of cases.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Cost, Line, run
from tests.support.label_session import labelling_session, let_in

_WITH_PAGE = ((1_098, 2.0), (10_000, None), (100_000, 10.0))
"""Rows, and the seconds that they may take."""
_MOST_MB = 500
_WITHOUT_PAGE = (100_000, 1_000_000)
_MOST_TIMES = 12
_MOST_MB_WITHOUT_PAGE = 2_500
_LABEL_ROWS = 20_000
_LABEL_SECONDS = 2.0
CHECK = (sys.executable, "-m", "pytest_jrh", "check", "verdicts.csv", "--one=violated")
BASELINE = "--baseline=old"
PAGE = "--report=report.html"


def lines() -> list[Line]:
    """Seconds and peak memory by the number of rows, each with a baseline and reasoning."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rows, longest in _WITH_PAGE:
            cost = _checked(folder, rows, PAGE)
            what = f"check of {rows:,} rows with a baseline, to the HTML report"
            found.append(_seconds(what, cost, longest))
            found.append(_peak(what, cost, _MOST_MB))
        some, many = (_checked(folder, rows) for rows in _WITHOUT_PAGE)
        what = "check of {:,} rows with a baseline"
        some_rows, many_rows = map(what.format, _WITHOUT_PAGE)
        found.append(_seconds(some_rows, some))
        found.append(_peak(some_rows, some))
        yardstick = f"{some.seconds:.1f} s: of {_WITHOUT_PAGE[0]:,} rows"
        times = many.seconds / some.seconds
        found.append(Line(many_rows, f"{many.seconds:.1f} s", yardstick, times, _MOST_TIMES))
        found.append(_peak(many_rows, many, _MOST_MB_WITHOUT_PAGE))
    return found


def label() -> list[Line]:
    """From the command to the first list of cases, for one who has entered a name on the page; the
    quickest of three.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "rows.csv", _LABEL_ROWS)
        seconds = min(_listed(folder) for _ in range(3))
    what = f"label of {_LABEL_ROWS:,} rows, to the first list of cases"
    limit = f"limit {_LABEL_SECONDS:g} s"
    return [Line(what, f"{seconds:.1f} s", limit, seconds / _LABEL_SECONDS, 1.0)]


def _listed(folder: Path) -> float:
    rubric = "--rubric=kept: The step shows what is asked."
    command = ("label", "rows.csv", "--text=reasoning", rubric)
    environment = {"PYTHONDONTWRITEBYTECODE": ""}
    begun = time.perf_counter()
    with (
        labelling_session(folder, *command, env=environment, module="pytest_jrh") as (_, url),
        let_in(url) as reviewer,
    ):
        count = len(reviewer.rows)
        seconds = time.perf_counter() - begun
    if count != _LABEL_ROWS:
        raise RuntimeError(f"the page lists {count:,} of {_LABEL_ROWS:,} rows")
    return seconds


def write_table(path: Path, rows: int) -> None:
    """A table of cases in clusters of ten, a judge that errs in a tenth of them, and an older one
    that errs in a fifth.
    """
    rng = random.Random(rows)
    with path.open("w", encoding="utf-8") as file:
        file.write("case,task,label,verdict,old,reasoning\n")
        for number in range(rows):
            label = rng.randrange(2)
            verdict = label ^ (rng.random() < 0.1)
            old = label ^ (rng.random() < 0.2)
            reasoning = f"Step {number % 97} shows what the requirement asks for."
            row = (f"case-{number}", f"task-{number // 10}", label, verdict, old, reasoning)
            file.write(",".join(map(str, row)) + "\n")


def _checked(folder: Path, rows: int, *options: str) -> Cost:
    write_table(folder / "verdicts.csv", rows)
    # The judge is the better one, so that the gate passes.
    return run([*CHECK, BASELINE, *options], folder)


def _seconds(what: str, cost: Cost, longest: float | None = None) -> Line:
    figure = f"{cost.seconds:.1f} s"
    if longest is None:
        return Line(what, figure, "", cost.seconds)
    return Line(what, figure, f"limit {longest:g} s", cost.seconds / longest, 1.0)


def _peak(what: str, cost: Cost, most: float | None = None) -> Line:
    figure = f"{cost.peak_mb:.0f} MB"
    if most is None:
        return Line(f"{what}, peak", figure, "", cost.peak_mb)
    return Line(f"{what}, peak", figure, f"limit {most:,.0f} MB", cost.peak_mb / most, 1.0)

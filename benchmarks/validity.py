"""Whether intervals, tests, gate and planner hold: simulations with judges of known error rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks import simulations
from benchmarks.measure import Line
from pytest_jrh.stats.inference.planned import PlannedSuite
from pytest_jrh.stats.inference.power import visible_drop

RESULTS = Path(__file__).with_name("VALIDITY.md")
RUNS = (5, 10, 20, 50, 100, 200)
SIZES = (1, 2, 3, 6, 12)
PLANNED = (
    (20, 1),
    (10, 2),
    (54, 1),
    (9, 6),
    (100, 1),
    (25, 4),
    (300, 1),
    (50, 6),
    (1000, 1),
    (167, 6),
)
MOVED = tuple(
    (runs, size, moved) for runs in (10, 20, 50) for size in (1, 6, 12) for moved in (0.1, 0.3)
)


@dataclass(frozen=True, slots=True)
class Check:
    """One figure that must hold: a percentage, or a difference in points, and its limit."""

    what: str
    figure: float
    limit: float
    side: Literal["least", "most"]
    detail: str = ""

    @property
    def line(self) -> Line:
        """The figure in terms of the limit, 1 or less where it holds."""
        sides = (self.limit, self.figure) if self.side == "least" else (self.figure, self.limit)
        ratio = sides[0] / sides[1] if sides[1] else float(sides[0] > 0)
        limit = f"at {self.side} {self.limit:.4g}"
        return Line(self.what, f"{self.figure:.1f}", limit, ratio, 1.0)


def lines() -> list[Line]:
    """Run all simulations on two processes, and write `VALIDITY.md`."""
    with ProcessPoolExecutor(2) as pool:
        sections = [
            _shares(pool),
            _figures(pool),
            _tests(pool),
            _gate(pool),
            _repeats(pool),
            _planner(pool),
        ]
    checks = [check for _, found in sections for check in found]
    head = (
        "# Do the figures hold?\n\nWritten by `python -m benchmarks validity`: judges of known "
        "error rates are simulated with fixed seeds, and held against what the intervals, tests "
        "and the planner say. All figures are percentages or points.\n\n"
    )
    rows = [
        (check.what, f"{check.figure:.1f}", check.line.yardstick, _verdict(check), check.detail)
        for check in checks
    ]
    text = head + _table(("must hold", "found", "limit", "", "where"), rows)
    text += "".join(f"\n{body}" for body, _ in sections)
    RESULTS.write_text(text, encoding="utf-8")
    return [check.line for check in checks]


def _verdict(check: Check) -> str:
    return "met" if check.line.verdict == "holds" else "NOT MET"


def _shares(pool: ProcessPoolExecutor) -> tuple[str, list[Check]]:
    designs = [(runs, size) for runs in RUNS for size in SIZES]
    sessions = [2_000 if size == 1 else 600 for _, size in designs]
    covered = dict(
        zip(
            designs,
            pool.map(simulations.share_coverage, *zip(*designs, strict=True), sessions),
            strict=True,
        )
    )
    means = {design: 100 * _mean(cells.values()) for design, cells in covered.items()}
    cells = {
        (*design, *cell): 100 * share
        for design, found in covered.items()
        for cell, share in found.items()
    }
    rows = [
        (
            str(runs),
            *(
                f"{means[runs, size]:.1f} ({100 * min(covered[runs, size].values()):.1f})"
                for size in SIZES
            ),
        )
        for runs in RUNS
    ]
    lowest, worst = min(means, key=lambda key: means[key]), min(cells, key=lambda key: cells[key])
    epochs = [simulations.epochs_coverage(icc, 300) for icc in (0.3, 0.6)]
    checks = [
        Check(
            "coverage of a share's interval, lowest row",
            means[lowest],
            94,
            "least",
            f"{lowest[0]} runs of {lowest[1]}",
        ),
        Check(
            "coverage of a share's interval, lowest cell",
            cells[worst],
            86,
            "least",
            f"{worst[0]} runs of {worst[1]}, correlation {worst[2]}, accuracy {worst[3]}",
        ),
        Check(
            "bounds that rise with a mistake, of 20,000",
            simulations.rising_bounds(20_000),
            0,
            "most",
        ),
        Check(
            "coverage with three epochs of each sample, below that with three samples",
            100 * max(0.0, *(apart - together for together, apart in epochs)),
            2,
            "most",
            "; ".join(f"{100 * one:.1f} and {100 * other:.1f}" for one, other in epochs),
        ),
    ]
    body = (
        "## Shares\n\nCoverage of the 95% interval, mean and lowest over correlations of 0 to 0.6 "
        "inside of runs and accuracies of 0.5 to 0.99, by runs and cases a run.\n\n"
    )
    return body + _table(("runs", *(f"{size} a run" for size in SIZES)), rows), checks


def _figures(pool: ProcessPoolExecutor) -> tuple[str, list[Check]]:
    keys = [(name, runs) for name in simulations.FIGURES for runs in (10, 20, 200)]
    sessions = [600 if runs == 200 else 1_000 for _, runs in keys]
    found = dict(
        zip(
            keys,
            pool.map(simulations.figure_coverage, *zip(*keys, strict=True), sessions),
            strict=True,
        )
    )
    rows, checks = [], []
    for (name, runs), cells in found.items():
        low, high = 100 * min(cells.values()), 100 * max(cells.values())
        mean = 100 * _mean(cells.values())
        rows.append((name, str(runs), f"{mean:.1f}", f"{low:.1f}", f"{high:.1f}"))
        what = f"coverage of the interval of {name}, {runs} runs"
        checks += [Check(what, mean, 93, "least"), Check(what, mean, 97, "most")]
    body = (
        "## Kappa, weighted kappa, mean error, bias\n\nThree cases per test of each run, "
        "correlation 0.3: mean, lowest and highest over judges that are wrong in 5 to 50%.\n\n"
    )
    return body + _table(("figure", "runs", "mean", "lowest", "highest"), rows), checks


def _tests(pool: ProcessPoolExecutor) -> tuple[str, list[Check]]:
    found = list(pool.map(simulations.rejections, *zip(*MOVED, strict=True), [2_000] * len(MOVED)))
    rows = [
        (str(runs), str(size), f"{moved:.0%}", f"{100 * ours:.1f}", f"{100 * theirs:.1f}")
        for (runs, size, moved), (ours, theirs) in zip(MOVED, found, strict=True)
    ]
    highest, theirs = 100 * max(ours for ours, _ in found), 100 * max(each for _, each in found)
    check = Check(
        "an unchanged judge is rejected by the sign-flip test",
        highest,
        6.5,
        "most",
        f"McNemar: up to {theirs:.1f}",
    )
    body = "## Unchanged judges rejected at 5%\n\nWhole runs move at random, so many of them.\n\n"
    return body + _table(("runs", "a run", "moved", "sign-flip", "McNemar"), rows), [check]


def _gate(pool: ProcessPoolExecutor) -> tuple[str, list[Check]]:
    settings = [(drop, icc) for drop in (0.0, 0.05, 0.1) for icc in (0.0, 0.3)]
    found = dict(
        zip(
            settings,
            pool.map(simulations.decisions, *zip(*settings, strict=True), [20_000] * 6),
            strict=True,
        )
    )
    share = {
        key: {
            verdict: 100 * _mean(each.verdict == verdict for each in given)
            for verdict in ("PASS", "INCONCLUSIVE", "FAIL")
        }
        for key, given in found.items()
    }
    rows = [
        (f"{drop:.0%}", f"{icc}", *(f"{each:.1f}" for each in shares.values()))
        for (drop, icc), shares in share.items()
    ]
    unchanged, ten = (simulations.decided(drop, 400) for drop in (0.0, 0.1))
    checks = [
        Check("gate: an unchanged judge does not PASS", 100 - share[0.0, 0.0]["PASS"], 2, "most"),
        Check(
            "gate: a drop of 10 points PASSes",
            max(share[0.1, icc]["PASS"] for icc in (0.0, 0.3)),
            2,
            "most",
        ),
        Check(
            "gate: a drop of 5 points PASSes", share[0.05, 0.0]["PASS"], 6, "most", "breaks cases"
        ),
        Check(
            "gate: a drop of 5 points PASSes",
            share[0.05, 0.3]["PASS"],
            6,
            "most",
            "breaks runs, correlation 0.3",
        ),
        Check(
            "INCONCLUSIVE names runs that decide, unchanged judge",
            100 * unchanged[0],
            75,
            "least",
            f"median {unchanged[1]:.0f} runs, from 12",
        ),
        Check(
            "INCONCLUSIVE names runs that decide, drop of 10 points",
            100 * ten[0],
            75,
            "least",
            f"median {ten[1]:.0f} runs, from 12",
        ),
    ]
    body = (
        "## The gate\n\n`max_drop: 0.05`, 50 runs of 6 cases, 3 repeats, 5% of verdicts flip, by "
        "what the drop breaks: single cases (0), or cases that correlate inside of runs.\n\n"
    )
    return body + _table(("drop", "correlation", "PASS", "INCONCLUSIVE", "FAIL"), rows), checks


def _repeats(pool: ProcessPoolExecutor) -> tuple[str, list[Check]]:
    settings = [(flip, repeats) for flip in (0.02, 0.05, 0.1) for repeats in (2, 3, 5)]
    covered = list(
        pool.map(simulations.flicker_coverage, *zip(*settings, strict=True), [1_000] * 9)
    )
    alarms = [
        (n, k, *simulations.snapshot_failures(n, 0.05, k, 4_000))
        for n in (20, 54, 100)
        for k in (1, 3)
    ]
    rows = [
        (str(n), str(k), f"{100 * failed:.1f}", f"{100 * foretold:.1f}")
        for n, k, failed, foretold in alarms
    ]
    apart = max(abs(failed - foretold) for _, _, failed, foretold in alarms)
    checks = [
        Check("coverage of the flicker's interval, lowest", 100 * min(covered), 93, "least"),
        Check(
            "how often a snapshot fails an unchanged judge, foretold off by", 100 * apart, 2, "most"
        ),
    ]
    body = "## An unchanged judge fails a gate without rules\n\n5% of verdicts flip.\n\n"
    return body + _table(("cases", "repeats", "failed", "foretold"), rows), checks


def _planner(pool: ProcessPoolExecutor) -> tuple[str, list[Check]]:
    settings = [
        (*design, *judge) for design in PLANNED for judge in ((0.0, 1), (0.05, 1), (0.05, 3))
    ]
    suites = [
        PlannedSuite((size,) * runs, 2 * flip * (1 - flip), k) for runs, size, flip, k in settings
    ]
    planned = [each or 1.0 for each in pool.map(visible_drop, suites)]
    sessions = [1_500 if runs <= 100 else 400 for runs, *_ in settings]
    brute = list(
        pool.map(simulations.brute_force_drop, *zip(*settings, strict=True), planned, sessions)
    )
    rows = [
        (
            str(runs * size),
            str(runs),
            f"{flip:.0%}",
            str(k),
            f"{100 * plan:.1f}",
            f"{100 * real:.1f}",
        )
        for (runs, size, flip, k), plan, real in zip(settings, planned, brute, strict=True)
    ]
    apart = [abs(plan - real) for plan, real in zip(planned, brute, strict=True)]
    worst = settings[apart.index(max(apart))]
    check = Check(
        "planner's drop, off from brute force by",
        100 * max(apart),
        2,
        "most",
        f"{worst[0]} runs of {worst[1]}",
    )
    body = "## The planner\n\nThe drop, in points, that a suite finds with a power of 80%.\n\n"
    return body + _table(("cases", "runs", "flips", "repeats", "planned", "brute force"), rows), [
        check
    ]


def _mean(values: Iterable[float]) -> float:
    given = list(values)
    return sum(given) / len(given)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = [" | ".join(row) for row in (titles, ["---"] * len(titles), *rows)]
    return "".join(f"| {line} |\n" for line in text)

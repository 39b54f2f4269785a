"""Labels that are wrong where the judge is wrong too, simulated: what a sample labelled by people
corrects.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, product
from math import comb
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Line
from benchmarks.rates import checked_cases
from pytest_jrh.stats.intervals import LEVEL, estimate_share
from pytest_jrh.stats.people import (
    Anchored,
    anchored_accuracy,
    anchored_positives,
)

RESULTS = Path(__file__).with_name("LABELS.md")
SESSIONS = 400
_HEAD = (
    "# Do the figures against people hold?\n\nWritten by `python -m benchmarks labels`: 300 "
    "cases, of whose labels some are wrong, and a judge that makes part of the same mistakes; "
    "people label a "
    "random sample. All figures are points or percentages, the mean over runs of one and of six "
    "cases.\n"
)
CASES = 300
LABELLED = (30, 60, 120)
WRONG = (0.02, 0.05, 0.10)
SHARED = (0.0, 0.5, 0.9)
SIZES = (1, 6)
JUDGE = 0.93
CORRELATION = 0.2
MOST = 0.97
# Shares of wrong labels, and labels of people in the figure: recall has half of them.
SMALL = ((0.02, 30), (0.02, 15), (0.05, 15), (0.02, 60))
FIGURES: dict[str, Callable[..., Anchored]] = {
    "accuracy": anchored_accuracy,
    "recall": partial(anchored_positives, label=1),
    "false-positive rate": partial(anchored_positives, label=0),
}

Session = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Cell:
    """One design: how many labels are wrong, how many of these the judge shares, how many cases
    people label, and how many cases a run has.
    """

    wrong: float
    shared: float
    labelled: int
    size: int

    def truth(self, figure: str) -> float:
        """What the figure is over all cases that there could be."""
        right = JUDGE * (1 - self.wrong * self.shared)
        return 1 - right if figure == "false-positive rate" else right


@dataclass(frozen=True, slots=True)
class Found:
    """Mean error and coverage of a corrected figure, and the mean error of the raw one."""

    bias: float
    covered: float
    raw_bias: float


def simulated(cell: Cell, sessions: int) -> dict[str, Found]:
    """The corrected figures of one design."""
    rng = np.random.default_rng(
        [int(1000 * cell.wrong), int(100 * cell.shared), cell.labelled, cell.size]
    )
    truths = {figure: cell.truth(figure) for figure in FIGURES}
    errors: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    raw: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    hits = dict.fromkeys(FIGURES, 0)
    runs = np.arange(CASES) // cell.size
    for _ in range(sessions):
        true, label, answer = _session(rng, cell)
        people = np.zeros(CASES, dtype=bool)
        people[rng.choice(CASES, cell.labelled, replace=False)] = True
        cases = checked_cases(answer, label, np.where(people, true, np.nan), runs)
        for figure, compute in FIGURES.items():
            found = compute(*cases).estimate
            if found.value is None or found.lower is None or found.upper is None:
                continue
            errors[figure].append(found.value - truths[figure])
            hits[figure] += found.lower <= truths[figure] <= found.upper
        raw["accuracy"].append(float(np.mean(answer == label)) - truths["accuracy"])
        raw["recall"].append(float(np.mean(answer[label == 1])) - truths["recall"])
        alarms = float(np.mean(answer[label == 0])) - truths["false-positive rate"]
        raw["false-positive rate"].append(alarms)
    return {
        figure: Found(
            float(np.mean(errors[figure])),
            hits[figure] / len(errors[figure]),
            float(np.mean(raw[figure])),
        )
        for figure in FIGURES
    }


def _session(rng: np.random.Generator, cell: Cell) -> Session:
    """The truth, the suite's labels and the judge's answers of all cases, run by run."""
    true = rng.integers(0, 2, CASES)
    wrong = rng.random(CASES) < cell.wrong
    label = np.where(wrong, 1 - true, true)
    runs = CASES // cell.size
    both = (1 - CORRELATION) / CORRELATION
    skill = np.full(runs, JUDGE)
    if cell.size > 1:
        skill = rng.beta(JUDGE * both, (1 - JUDGE) * both, runs)
    right = rng.random(CASES) < np.repeat(skill, cell.size)
    # Where judge and verifier share their errors, a wrong label is what the judge says too.
    right &= ~(wrong & (rng.random(CASES) < cell.shared))
    return true, label, np.where(right, true, 1 - true)


def verifier_coverage(wrong: float, labelled: int, sessions: int) -> float:
    """How often the interval of the verifier's error rate holds it; one case a run."""
    rng = np.random.default_rng([int(1000 * wrong), labelled])
    hits = 0
    for errors in rng.binomial(labelled, wrong, sessions):
        bounds = estimate_share((np.arange(labelled) < errors).tolist(), range(labelled))
        assert bounds.lower is not None
        assert bounds.upper is not None
        hits += bounds.lower <= wrong <= bounds.upper
    return hits / sessions


def lines() -> list[Line]:
    """Simulate all designs on two processes, write `LABELS.md`, and hold bias and coverage."""
    designs = list(product(WRONG, SHARED, LABELLED))
    cells = [Cell(*design, size) for design in designs for size in SIZES]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(cells, pool.map(simulated, cells, [SESSIONS] * len(cells)), strict=True))
    rates = [(w, n, verifier_coverage(w, n, 4 * SESSIONS)) for w in WRONG for n in LABELLED]
    texts, checks = [_HEAD], []
    covered_all: list[float] = []
    for figure in FIGURES:
        rows = {
            design: [found[Cell(*design, size)][figure] for size in SIZES] for design in designs
        }
        texts.append(_section(figure, rows))
        bias = max(abs(fmean(each.bias for each in row)) for row in rows.values())
        covered = [fmean(each.covered for each in row) for row in rows.values()]
        covered_all += covered
        checks += [
            Line(f"{figure}: largest bias", f"{100 * bias:.2f}", "at most 0.5", 200 * bias, 1.0),
            Line(
                f"{figure}: lowest coverage",
                f"{100 * min(covered):.1f}",
                "at least 92",
                0.92 / min(covered),
                1.0,
            ),
        ]
    lowest = min(share for _, _, share in rates)
    checks.append(
        Line(
            "verifier's error rate: lowest coverage",
            f"{100 * lowest:.1f}",
            "at least 92",
            0.92 / lowest,
            1.0,
        )
    )
    over = sum(share > MOST for share in covered_all)
    texts.append(
        "\n## Where coverage is above 97%\n\n"
        f"{over} of the {len(covered_all)} figures above, most of them with 30 labels, where few "
        "samples show any wrong label. What a sample can show is then a small whole number, and no "
        "interval covers as often as one would like: of a plain share that is rarely seen, all "
        "samples with at most so many cases have to be covered, or the next fewer: "
        + "; ".join(_attainable(share, n) for share, n in SMALL)
        + ".\n"
    )
    texts.append(
        "\n## The verifier's error rate\n\nCoverage of its interval, by the share of wrong "
        "labels and the labels of people: "
        + "; ".join(f"{w:.0%}, {n}: {100 * share:.1f}" for w, n, share in rates)
        + ".\n"
    )
    RESULTS.write_text("".join(texts), encoding="utf-8")
    return checks


def _attainable(share: float, n: int) -> str:
    """The coverages next to 95% that an interval can have of a share in n cases."""
    seen = accumulate(comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1))
    sums = list(seen)
    first = next(k for k, each in enumerate(sums) if each >= LEVEL)
    below = f"{100 * sums[first - 1]:.1f} or " if first else ""
    return f"{share:.0%} in {n} cases: {below}{100 * sums[first]:.1f}%"


def _section(figure: str, rows: dict[tuple[float, float, int], list[Found]]) -> str:
    lines_ = [
        f"\n## {figure.capitalize()}\n",
        "| wrong | shared | labelled | raw bias | bias | covered |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (wrong, shared, labelled), found in rows.items():
        raw, bias, covered = (
            100 * fmean(getattr(each, name) for each in found)
            for name in ("raw_bias", "bias", "covered")
        )
        lines_.append(
            f"| {wrong:.0%} | {shared:.0%} | {labelled} "
            f"| {raw:+.1f} | {bias:+.2f} | {covered:.1f} |"
        )
    return "\n".join(lines_) + "\n"

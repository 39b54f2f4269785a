"""How often intervals hold the truth, and how wide they are, over designs of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.checks import Check, error_of, mean, table
from pytest_jrh.core.scales import BINARY
from pytest_jrh.stats.intervals import (
    Estimate,
    estimate_bias,
    estimate_flicker,
    estimate_kappa,
    estimate_mean,
    estimate_share,
)
from pytest_jrh.stats.verdicts import Coded

Counts = npt.NDArray[np.int64]
ACCURACIES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
CORRELATIONS = (0.0, 0.1, 0.3, 0.6)
RUNS = (5, 10, 20, 50)
DESIGNS: dict[str, Callable[[int], list[int]]] = {
    "1 a run": lambda runs: [1] * runs,
    "2 a run": lambda runs: [2] * runs,
    "3 a run": lambda runs: [3] * runs,
    "12 a run": lambda runs: [12] * runs,
    "1 to 12": lambda runs: [1 + number % 12 for number in range(runs)],
    "power law": lambda runs: [max(1, round(40 / number)) for number in range(1, runs + 1)],
    "1 to 30": lambda runs: [1 + number * 7 % 30 for number in range(runs)],
    "half in one": lambda runs: [3 * (runs - 1), *[3] * (runs - 1)],
}
FEWEST = 10
_SESSIONS, _AGAIN_SESSIONS, _AGAIN = 400, 4_000, 6
_FIGURE_SESSIONS = 150
_FLICKER_SESSIONS = 2_000
_LEAST = 92
_LEAST_IN_A_CELL = 90


class Held(NamedTuple):
    """How often an interval held the truth, and its median width."""

    covered: float
    width: float


def right_counts(
    rng: np.random.Generator, sessions: int, sizes: Counts, accuracy: float, icc: float
) -> Counts:
    """How many cases of each run are right, by session and run: beta-binomial, or whole runs."""
    shape = (sessions, len(sizes))
    if icc == 1:
        return sizes * rng.binomial(1, accuracy, shape)
    if not icc:
        return rng.binomial(sizes, accuracy, shape)
    both = (1 - icc) / icc
    return rng.binomial(sizes, rng.beta(accuracy * both, (1 - accuracy) * both, shape))


def held(estimates: Sequence[Estimate], truth: float) -> Held:
    """Of the intervals that there are, how many hold the truth, and their median width."""
    hits, widths = [], []
    for estimate in estimates:
        if estimate.lower is not None and estimate.upper is not None:
            hits.append(estimate.lower - 1e-9 <= truth <= estimate.upper + 1e-9)
            widths.append(estimate.upper - estimate.lower)
    return Held(float(np.mean(hits)), float(np.median(widths)))


def shares_of(right: Counts, sizes: Counts) -> Estimate:
    """The share of cases that are right, with so many of each run."""
    runs = np.repeat(np.arange(len(sizes)), sizes)
    number_in_run = np.arange(len(runs)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return estimate_share((number_in_run < right[runs]).tolist(), runs.tolist())


def share_cell(design: str, runs: int, icc: float, accuracy: float, sessions: int) -> Held:
    """The interval of an accuracy in one design."""
    sizes = np.array(DESIGNS[design](runs))
    rng = np.random.default_rng([runs, int(10 * icc), int(100 * accuracy), sessions])
    drawn = right_counts(rng, sessions, sizes, accuracy, icc)
    return held([shares_of(right, sizes) for right in drawn], accuracy)


def _cells(design: str, correlations: Sequence[float]) -> list[tuple[float, float]]:
    if design == "1 a run":
        correlations = correlations[:1]
    return [(icc, accuracy) for icc in correlations for accuracy in ACCURACIES]


def share_row(design: str, runs: int, correlations: tuple[float, ...]) -> dict[str, Held]:
    """The intervals of all accuracies and correlations of one design, by these."""
    return {
        f"{icc} {accuracy}": share_cell(design, runs, icc, accuracy, _SESSIONS)
        for icc, accuracy in _cells(design, correlations)
    }


Estimator = Callable[[Counts, Counts, Counts], Estimate]
LEVELS = 5


def _mean_error(labels: Counts, given: Counts, runs: Counts) -> Estimate:
    return estimate_mean(np.abs(given - labels).tolist(), runs.tolist(), (0, LEVELS - 1))


def _bias(labels: Counts, given: Counts, runs: Counts) -> Estimate:
    return estimate_bias((given - labels).tolist(), runs.tolist(), LEVELS - 1)


def kappa_of(labels: Counts, given: Counts, runs: Counts) -> Estimate:
    """Agreement beyond chance, weighted on a scale."""
    pairs = list(zip(labels.tolist(), given.tolist(), strict=True))
    return estimate_kappa(pairs, runs.tolist())


FIGURES: dict[str, Estimator] = {
    "kappa": kappa_of,
    "weighted kappa": kappa_of,
    "mean error": _mean_error,
    "bias": _bias,
}
WRONG = (0.05, 0.1, 0.3, 0.5)
FIGURE_RUNS = (10, 20, 50)
# How wrong scores are off: mostly by one level either way, or up; or any other score.
_OFF = {
    "kappa": ("flipped", "1 of 5 violated"),
    **dict.fromkeys(tuple(FIGURES)[1:], ("near", "up", "any")),
}


def answers(
    rng: np.random.Generator, sessions: int, runs: int, wrong: float, icc: float, off: str
) -> tuple[Counts, Counts]:
    """Labels and answers of six cases a run that correlate."""
    shape = (sessions, runs, 6)
    chance = np.full((sessions, runs, 1), wrong)
    if icc:
        both = (1 - icc) / icc
        chance = rng.beta(wrong * both, (1 - wrong) * both, (sessions, runs, 1))
    errs = rng.random(shape) < chance
    if off in ("flipped", "1 of 5 violated"):
        labels = (rng.random(shape) < (0.5 if off == "flipped" else 0.2)).astype(int)
        return labels, np.where(errs, 1 - labels, labels)
    labels = rng.integers(0, LEVELS, shape)
    if off == "any":
        return labels, np.where(errs, (labels + rng.integers(1, LEVELS, shape)) % LEVELS, labels)
    by = np.where(rng.random(shape) < 1 / 6, 2, 1)
    if off == "near":
        by = by * np.where(rng.random(shape) < 1 / 2, 1, -1)
    return labels, np.clip(labels + errs * by, 0, LEVELS - 1)


def _truth(name: str, labels: Counts, given: Counts) -> float:
    """What a figure is over many cases."""
    errors = given - labels
    if name == "mean error":
        return float(np.abs(errors).mean())
    if name == "bias":
        return float(errors.mean())
    by_chance = (labels**2).mean() + (given**2).mean() - 2 * labels.mean() * given.mean()
    return float(1 - (errors**2).mean() / by_chance)


def figure_row(name: str, runs: int, off: str) -> dict[str, Held]:
    """The intervals of one figure, by share of wrong answers and correlation."""
    estimator = FIGURES[name]
    clusters = np.repeat(np.arange(runs), 6)
    cells = {}
    for wrong in WRONG:
        for icc in (0.0, 0.3, 0.6):
            rng = np.random.default_rng([runs, int(100 * wrong), int(10 * icc), len(off)])
            labels, given = answers(rng, 1, 40_000, wrong, icc, off)
            truth = _truth(name, labels, given)
            labels, given = answers(rng, _FIGURE_SESSIONS, runs, wrong, icc, off)
            estimates = [
                estimator(of_labels.ravel(), of_given.ravel(), clusters)
                for of_labels, of_given in zip(labels, given, strict=True)
            ]
            cells[f"{wrong} {icc}"] = held(estimates, truth)
    return cells


RARE = 0.05
RARE_ACCURACIES = (0.6, 0.8, 0.9, 0.95)
_RARE_SESSIONS, _LEAST_RARE, _WIDEST_RARE = 400, 88, 1.3


def rare_row(runs: int, sessions: int = _RARE_SESSIONS) -> dict[str, Held]:
    """The interval of kappa where 5% of cases are violated, with 1 to 30 cases a run."""
    cells = {}
    for accuracy in RARE_ACCURACIES:
        for icc in (0.0, 0.3, 0.6):
            rng = np.random.default_rng([30, runs, int(100 * accuracy), int(10 * icc)])
            labels, given, _ = _rare_session(rng, np.full(40_000, 6), accuracy, icc)
            truth = _truth("kappa", labels, given)
            estimates = []
            for _ in range(sessions):
                labels, given, clusters = _rare_session(
                    rng, rng.integers(1, 31, runs), accuracy, icc
                )
                # Labels of one class have no kappa.
                if labels.min() < labels.max():
                    estimates.append(kappa_of(labels, given, clusters))
            cells[f"{accuracy} {icc}"] = held(estimates, truth)
    return cells


def _rare_session(
    rng: np.random.Generator, sizes: Counts, accuracy: float, icc: float
) -> tuple[Counts, Counts, Counts]:
    chance = np.full(len(sizes), accuracy)
    if icc:
        both = (1 - icc) / icc
        chance = rng.beta(accuracy * both, (1 - accuracy) * both, len(sizes))
    runs = np.repeat(np.arange(len(sizes)), sizes)
    labels = (rng.random(len(runs)) < RARE).astype(int)
    is_right = rng.random(len(runs)) < chance[runs]
    return labels, np.where(is_right, labels, 1 - labels), runs


def shares(pool: Executor) -> tuple[str, list[Check]]:
    """The table of shares, and what must hold of it."""
    keys = [(design, runs) for design in DESIGNS for runs in RUNS]
    rows = dict(
        zip(
            keys,
            pool.map(share_row, *zip(*keys, strict=True), [CORRELATIONS] * len(keys)),
            strict=True,
        )
    )
    whole = [(design, runs) for design in DESIGNS for runs in (20,) if design != "1 a run"]
    broken = pool.map(share_row, *zip(*whole, strict=True), [(1.0,)] * len(whole))
    cells = [
        (cell.covered, design, runs, *map(float, key.split()))
        for (design, runs), row in rows.items()
        if runs >= FEWEST and design != "1 a run"
        for key, cell in row.items()
    ]
    again = [cell[1:] for cell in sorted(cells)[:_AGAIN]]
    sure = list(pool.map(share_cell, *zip(*again, strict=True), [_AGAIN_SESSIONS] * _AGAIN))
    lowest = min(range(_AGAIN), key=lambda number: sure[number].covered)
    design, runs, icc, accuracy = again[lowest]
    check = Check(
        "coverage of a share's interval, lowest cell from 10 runs on",
        100 * sure[lowest].covered,
        _LEAST_IN_A_CELL,
        "least",
        f"{runs} runs, {design}, correlation {icc}, accuracy {accuracy}; runs of one case apart, "
        f"which have Wilson's own interval; the {_AGAIN} lowest of "
        f"{len(cells)} cells simulated again, {_AGAIN_SESSIONS:,} sessions",
        error_of(sure[lowest].covered, _AGAIN_SESSIONS),
    )
    body = (
        "## Shares\n\nCoverage of the 95% interval over correlations of 0 to 0.6 inside of runs "
        "and accuracies of 0.5 to 0.99, mean and lowest, and mean of the median widths, in points; "
        f"{_SESSIONS} sessions a cell, so that the lowest may be low by chance.\n\n"
    )
    text = body + _table(
        "design, runs", {f"{d}, {r}": row for (d, r), row in rows.items()}, "shares"
    )
    text += (
        "\nWhere **whole runs** are right or wrong, so that a run counts as one case (20 runs): "
        "what is below 92% there, or with 5 runs above, is where these intervals do not hold.\n\n"
    )
    named = {f"{d}, {r}, whole runs": row for (d, r), row in zip(whole, broken, strict=True)}
    return text + _table("design, runs", named, "shares"), [check]


def figures(pool: Executor) -> tuple[str, list[Check]]:
    """The table of the other figures, and what must hold of it."""
    keys = [(name, runs, off) for name in FIGURES for off in _OFF[name] for runs in FIGURE_RUNS]
    rows = dict(zip(keys, pool.map(figure_row, *zip(*keys, strict=True)), strict=True))
    checks = []
    for name in FIGURES:
        usual = [row for (figure, _, off), row in rows.items() if figure == name and off != "any"]
        covered = [100 * mean(cell.covered for cell in row.values()) for row in usual]
        error = 100 * math.sqrt(0.05 * 0.95 / (_FIGURE_SESSIONS * len(usual[0])))
        checks.append(
            Check(
                f"coverage of the interval of {name}, lowest row",
                min(covered),
                _LEAST,
                "least",
                error=error,
            )
        )
    few, many = pool.map(rare_row, (FEWEST, 50))
    for runs, row in ((FEWEST, few), (50, many)):
        lowest = min(cell.covered for cell in row.values())
        checks.append(
            Check(
                f"coverage of kappa, 5% violated, {runs} runs of 1 to 30, lowest cell",
                100 * lowest,
                _LEAST_RARE,
                "least",
                error=error_of(lowest, _RARE_SESSIONS),
            )
        )
    width = mean(cell.width for cell in few.values())
    checks.append(
        Check("mean width of kappa there, 10 runs, in hundredths", 100 * width, 130, "most")
    )
    rows["kappa, 5% violated, 1 to 30 a run", FEWEST, ""] = few
    rows["kappa, 5% violated, 1 to 30 a run", 50, ""] = many
    body = (
        "## Kappa, weighted kappa, mean error, bias\n\nSix cases a run, wrong in 5 to 50%, with "
        "correlations of 0 to 0.6. Wrong scores are off by one level, some by two, either way "
        f"(near) or up, or are any other score with the same chance (any). {_FIGURE_SESSIONS} "
        "sessions a cell, so that the lowest may be low by chance.\n\n"
    )
    named = {
        ", ".join(filter(None, (name, off, str(runs)))): row
        for (name, runs, off), row in rows.items()
    }
    return body + _table("figure, wrong scores, runs", named, "figures"), checks


def flicker_coverage(flip: float, repeats: int) -> float:
    """How often the interval of the flicker holds it, with 54 cases of 18 runs."""
    rng = np.random.default_rng([repeats, int(100 * flip)])
    estimates = []
    for scores in rng.binomial(1, flip, (_FLICKER_SESSIONS, 54, repeats)).tolist():
        cases = [(tuple(verdicts), BINARY) for verdicts in scores]
        estimates.append(estimate_flicker(Coded.of(cases), np.arange(len(cases)) // 3))
    return held(estimates, 2 * flip * (1 - flip)).covered


def flicker(pool: Executor) -> tuple[str, list[Check]]:
    """What must hold of the interval of the flicker, which has no table."""
    settings = product((0.02, 0.05, 0.1), (2, 3, 5))
    lowest = min(pool.map(flicker_coverage, *zip(*settings, strict=True)))
    error = error_of(lowest, _FLICKER_SESSIONS)
    what = "coverage of the flicker's interval, lowest"
    return "", [Check(what, 100 * lowest, 93, "least", error=error)]


def _table(title: str, rows: dict[str, dict[str, Held]], part: str) -> str:
    lines = [(name, *summary(row.values(), part)) for name, row in rows.items()]
    return table((title, "coverage", "width"), lines)


def summary(cells: Iterable[Held], part: str) -> tuple[str, str]:
    """Mean and lowest coverage, and the mean width: of shares in points."""
    known = list(cells)
    covered = [100 * cell.covered for cell in known]
    width = mean(cell.width for cell in known)
    text = f"{100 * width:.0f}" if part == "shares" else f"{width:.2f}"
    return f"{mean(covered):.1f} ({min(covered):.1f})", text

"""Figures that a sample labelled by people corrects, simulated: bias, coverage and width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import product
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.checks import Check, error_of, table
from pytest_jrh.stats.intervals import Estimate, estimate_share
from pytest_jrh.stats.people import (
    Anchored,
    Answers,
    anchored_accuracy,
    anchored_positives,
    anchored_violations,
)

Flags = npt.NDArray[np.int64]


def checked_cases(
    answers: npt.NDArray[Any], labels: npt.NDArray[Any], people: npt.NDArray[Any], runs: Flags
) -> tuple[list[Answers], list[int]]:
    """What the judge, the suite and people say of each case, nan where nobody looked; and runs."""
    people = np.where(np.isnan(people), -1, people)
    kinds = {}
    for answer, label, person in product((0, 1), (0, 1), (-1, 0, 1)):
        kinds[answer, label, person] = Answers(answer, label, None if person < 0 else person)
    columns = [column.tolist() for column in (answers, labels, people)]
    return [kinds[case] for case in zip(*columns, strict=True)], runs.tolist()


def holds(estimate: Estimate, truth: float) -> bool:
    """Whether an interval, which has to be there, holds the truth."""
    assert estimate.lower is not None
    assert estimate.upper is not None
    return estimate.lower <= truth <= estimate.upper


# Labels that are wrong where the judge is wrong, too.

CASES = 300
LABELLED = (30, 60, 120)
WRONG = (0.02, 0.05, 0.10)
SHARED = (0.0, 0.5, 0.9)
SIZES = (1, 6)
JUDGE = 0.93
CORRELATION = 0.2
SESSIONS = 400
_MOST_BIAS, _BIAS_PART = 0.005, 0.25
FIGURES: dict[str, Callable[..., Anchored]] = {
    "accuracy": anchored_accuracy,
    "recall": partial(anchored_positives, label=1),
    "false-positive rate": partial(anchored_positives, label=0),
}


class Design(NamedTuple):
    """How many labels are wrong, how many of these the judge shares, how many cases people label,
    and how many cases a run has.
    """

    wrong: float
    shared: float
    labelled: int
    size: int


class Corrected(NamedTuple):
    """Mean error and coverage of a corrected figure, the mean error of the raw one, and of the
    first the variance, and the standard deviation of the figure itself.
    """

    bias: float
    covered: float
    raw_bias: float
    variance: float
    deviation: float


def corrected(design: Design) -> dict[str, Corrected]:
    """The corrected figures of one design."""
    wrong, shared, labelled, size = design
    rng = np.random.default_rng([int(1000 * wrong), int(100 * shared), labelled, size])
    right = JUDGE * (1 - wrong * shared)
    truths = {"accuracy": right, "recall": right, "false-positive rate": 1 - right}
    errors: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    raw: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    hits = dict.fromkeys(FIGURES, 0)
    runs = np.arange(CASES) // size
    for _ in range(SESSIONS):
        true, label, answer = _session(rng, design)
        people = np.full(CASES, np.nan)
        sample = rng.choice(CASES, labelled, replace=False)
        people[sample] = true[sample]
        cases = checked_cases(answer, label, people, runs)
        for figure, compute in FIGURES.items():
            estimate = compute(*cases).estimate
            if estimate.value is not None and estimate.lower is not None:
                errors[figure].append(estimate.value - truths[figure])
                hits[figure] += holds(estimate, truths[figure])
        raw["accuracy"].append(float(np.mean(answer == label)) - right)
        raw["recall"].append(float(np.mean(answer[label == 1])) - right)
        raw["false-positive rate"].append(float(np.mean(answer[label == 0])) - 1 + right)
    found = {}
    for figure, of_figure in errors.items():
        number = len(of_figure)
        variance = float(np.var(of_figure))
        found[figure] = Corrected(
            fmean(of_figure),
            hits[figure] / number,
            fmean(raw[figure]),
            variance / number,
            variance**0.5,
        )
    return found


def _session(rng: np.random.Generator, design: Design) -> tuple[Flags, Flags, Flags]:
    """The truth, the suite's labels and the judge's answers of all cases, run by run."""
    true = rng.integers(0, 2, CASES)
    wrong = rng.random(CASES) < design.wrong
    label = np.where(wrong, 1 - true, true)
    runs = CASES // design.size
    both = (1 - CORRELATION) / CORRELATION
    skill = np.full(runs, JUDGE)
    if design.size > 1:
        skill = rng.beta(JUDGE * both, (1 - JUDGE) * both, runs)
    right = rng.random(CASES) < np.repeat(skill, design.size)
    # Where judge and verifier share their errors, a wrong label is what the judge says too.
    right &= ~(wrong & (rng.random(CASES) < design.shared))
    return true, label, np.where(right, true, 1 - true)


def _bias_check(figure: str, rows: Sequence[Corrected]) -> Check:
    """The bias that is largest beside its limit."""

    def limit(row: Corrected) -> float:
        # Of a class there are few cases: beside the error that a figure has by itself, a bias that
        # is small misleads nobody.
        return _MOST_BIAS if figure == "accuracy" else _BIAS_PART * row.deviation

    most = max(rows, key=lambda row: abs(row.bias) / limit(row))
    bias, error = 100 * abs(most.bias), 100 * (most.variance / len(SIZES)) ** 0.5
    where = "" if figure == "accuracy" else "a quarter of the figure's own standard deviation"
    what = f"{figure} against people: largest bias"
    return Check(what, bias, 100 * limit(most), "most", where, error)


def wrong_labels(pool: Executor) -> tuple[str, list[Check]]:
    """The table of figures where labels are wrong, the mean of both sizes of a run."""
    keys = list(product(WRONG, SHARED, LABELLED))
    designs = [Design(*key, size) for key in keys for size in SIZES]
    found = dict(zip(designs, pool.map(corrected, designs), strict=True))
    rows = {}
    for key in keys:
        both = [found[Design(*key, size)] for size in SIZES]
        for figure in FIGURES:
            columns = zip(*(of_size[figure] for of_size in both), strict=True)
            rows[key, figure] = Corrected(*map(fmean, columns))
    checks = []
    for figure in FIGURES:
        of_figure = [row for (_, name), row in rows.items() if name == figure]
        checks.append(_bias_check(figure, of_figure))
        covered = min(row.covered for row in of_figure)
        error = error_of(covered, SESSIONS * len(SIZES))
        what = f"{figure} against people: lowest coverage"
        checks.append(Check(what, 100 * covered, 92, "least", error=error))
    lines = []
    for key in keys:
        wrong, shared, labelled = key
        cells = []
        for figure in FIGURES:
            row = rows[key, figure]
            change = f"{100 * row.raw_bias:+.1f} to {100 * row.bias:+.2f}"
            cells.append(f"{change}, {100 * row.covered:.1f}")
        lines.append((f"{wrong:.0%}", f"{shared:.0%}", str(labelled), *cells))
    body = (
        f"## Accuracy, recall and false alarms against people\n\n{CASES} cases, of whose labels "
        "some are wrong, and a judge that makes part of the same mistakes; people label a random "
        "sample. Bias by the suite's labels and by the corrected figure, and coverage of its "
        "interval, the mean over runs of one and of six cases. Where few samples show any wrong "
        "label no interval can cover 95%: of a share of 2% in 30 cases 87.9 or 97.8%.\n\n"
    )
    return body + table(("wrong", "shared", "labelled", *FIGURES), lines), checks


# Recall where few cases are violated.

RECALL = 0.85
RARE = (0.02, 0.05)
# Of the rarest people label ten of the class in half of sessions.
RARE_CASES, RARE_LABELLED = (1_000, 3_000), 500
RARE_WRONG = (0.0, 0.02, 0.05)
_RARE_SESSIONS = 2_000


class Recall(NamedTuple):
    """How often there is a figure, its bias with its standard error, and coverage."""

    given: float
    bias: float
    error: float
    covered: float


def recall(rate: float, cases: int, wrong: float) -> Recall:
    """The corrected recall of a judge, with so many cases violated and so many labels wrong."""
    rng = np.random.default_rng([int(1000 * rate), cases, RARE_LABELLED, int(1000 * wrong)])
    errors, hits = [], 0
    for _ in range(_RARE_SESSIONS):
        true = (rng.random(cases) < rate).astype(float)
        label = np.where(rng.random(cases) < wrong, 1 - true, true)
        answer = np.where(rng.random(cases) < RECALL, true, 1 - true)
        people = np.full(cases, np.nan)
        sample = rng.choice(cases, RARE_LABELLED, replace=False)
        people[sample] = true[sample]
        checked = checked_cases(answer, label, people, np.arange(cases) // 6)
        estimate = anchored_positives(*checked, 1).estimate
        if estimate.value is not None and estimate.lower is not None:
            errors.append(100 * (estimate.value - RECALL))
            hits += holds(estimate, RECALL)
    number = len(errors)
    error = float(np.std(errors)) / number**0.5
    return Recall(number / _RARE_SESSIONS, fmean(errors), error, hits / number)


def rare_recall(pool: Executor) -> tuple[str, list[Check]]:
    """The table of corrected recall where violations are rare."""
    cells = list(product(RARE, RARE_CASES, RARE_WRONG))
    rows = dict(zip(cells, pool.map(recall, *zip(*cells, strict=True)), strict=True))
    most = max(rows.values(), key=lambda row: abs(row.bias))
    lowest = min(rows.values(), key=lambda row: row.covered)
    error = error_of(lowest.covered, int(_RARE_SESSIONS * lowest.given))
    checks = [
        Check("rare recall: largest bias", abs(most.bias), 1.5, "most", error=most.error),
        Check("rare recall: lowest coverage", 100 * lowest.covered, 90, "least", error=error),
    ]
    lines = []
    for (rate, cases, wrong), row in rows.items():
        shares = (f"{rate:.0%}", f"{cases:,}", f"{wrong:.0%}", f"{row.given:.0%}")
        lines.append((*shares, f"{row.bias:+.1f}", f"{100 * row.covered:.1f}"))
    body = (
        "## Recall against people where few cases are violated\n\nA judge that finds "
        f"{RECALL:.0%}, runs of six cases, and labels of which some are wrong; people label "
        f"{RARE_LABELLED} cases at random. In so many of {_RARE_SESSIONS:,} sessions they label "
        "ten violated cases, so that there is a figure.\n\n"
    )
    titles = ("violated", "cases", "labels wrong", "a figure", "bias", "coverage")
    return body + table(titles, lines), checks


# How often the agent violates: the judge on all runs, people on a few.

RUNS = 2_000
# Runs of a task, and how alike they are.
TASKS = ((1, 0.0), (5, 0.2), (40, 0.1))
RATES = (0.02, 0.05, 0.1, 0.2, 0.5)
RATE_LABELLED = (30, 60, 200)
_RATE_SESSIONS, _AGAIN_SESSIONS, _AGAIN = 100, 1_000, 2
# A judge's errors differ by task, evenly between these.
_ERRORS = (0.05, 0.2)


class Cell(NamedTuple):
    """Runs of a task and their correlation, how many are violated, and labels."""

    size: int
    icc: float
    rate: float
    labelled: int


class Rate(NamedTuple):
    """Bias of the corrected rate with its standard error, coverage and median width; the width of
    the labels alone, and the bias of the judge alone.
    """

    bias: float
    error: float
    covered: float
    width: float
    width_alone: float
    judge_bias: float


def corrected_rate(cell: Cell, sessions: int) -> Rate:
    """The corrected rate in so many sessions of one design."""
    rng = np.random.default_rng([cell.size, int(1000 * cell.rate), cell.labelled, sessions])
    tasks = np.arange(RUNS) // cell.size
    errors, controls, judge_errors = [], [], []
    widths, widths_alone = [], []
    hits = 0
    for _ in range(sessions):
        true, answers = _verdicts(rng, cell)
        is_labelled = np.zeros(RUNS, dtype=bool)
        is_labelled[rng.choice(RUNS, cell.labelled, replace=False)] = True
        people = np.where(is_labelled, true, np.nan)
        bounds = anchored_violations(*checked_cases(answers, answers, people, tasks)).estimate
        alone = estimate_share(true[is_labelled].tolist(), tasks[is_labelled].tolist())
        hits += holds(bounds, cell.rate)
        widths.append((bounds.upper or 0.0) - (bounds.lower or 0.0))
        widths_alone.append((alone.upper or 0.0) - (alone.lower or 0.0))
        errors.append((bounds.value or 0.0) - cell.rate)
        judge_errors.append(float(answers.mean()) - cell.rate)
        # Both are 0 on average, whatever the estimator does.
        of_labels = float(true[is_labelled].mean()) - cell.rate
        controls.append((of_labels, float(answers.mean() - answers[is_labelled].mean())))
    bias, error = _controlled_mean(errors, controls)
    covered = hits / sessions
    return Rate(bias, error, covered, median(widths), median(widths_alone), fmean(judge_errors))


def _verdicts(rng: np.random.Generator, cell: Cell) -> tuple[Flags, Flags]:
    """What is true of all runs, and what the judge says of them, task by task."""
    tasks = RUNS // cell.size
    rates = np.full(tasks, cell.rate)
    if cell.icc:
        both = (1 - cell.icc) / cell.icc
        rates = rng.beta(cell.rate * both, (1 - cell.rate) * both, tasks)
    errors = rng.uniform(*_ERRORS, tasks)
    true = rng.random(RUNS) < np.repeat(rates, cell.size)
    wrong = rng.random(RUNS) < np.repeat(errors, cell.size)
    return true.astype(int), (true ^ wrong).astype(int)


def _controlled_mean(
    values: list[float], controls: list[tuple[float, float]]
) -> tuple[float, float]:
    """The mean of values and its standard error, less what controls with mean 0 explain of it."""
    columns = np.column_stack([np.ones(len(values)), np.array(controls)])
    solution, *_ = np.linalg.lstsq(columns, np.array(values), rcond=None)
    rest = np.array(values) - columns @ solution
    return float(solution[0]), float(rest.std(ddof=columns.shape[1]) / np.sqrt(len(values)))


def rates(pool: Executor) -> tuple[str, list[Check]]:
    """The table of the corrected rate, and what must hold of it."""
    cells = [Cell(*task, rate, n) for task, rate, n in product(TASKS, RATES, RATE_LABELLED)]
    found = pool.map(corrected_rate, cells, [_RATE_SESSIONS] * len(cells))
    rows = dict(zip(cells, found, strict=True))
    lowest = sorted(cells, key=lambda cell: rows[cell].covered)[:_AGAIN]
    again = pool.map(corrected_rate, lowest, [_AGAIN_SESSIONS] * _AGAIN)
    covered, least = min((row.covered, cell) for row, cell in zip(again, lowest, strict=True))
    most = max(rows, key=lambda cell: abs(rows[cell].bias))
    bias, error = 100 * abs(rows[most].bias), 100 * rows[most].error
    checks = [
        Check("corrected rate: largest bias", bias, 0.5, "most", _where(most), error),
        Check(
            "corrected rate: lowest coverage",
            100 * covered,
            92,
            "least",
            f"{_where(least)}; the {_AGAIN} lowest of {len(cells)} cells simulated again, "
            f"{_AGAIN_SESSIONS:,} sessions",
            error_of(covered, _AGAIN_SESSIONS),
        ),
    ]
    lines = []
    for cell, row in rows.items():
        design = (str(cell.size), f"{cell.rate:.0%}", str(cell.labelled), f"{100 * row.bias:+.2f}")
        shares = (row.covered, row.width, row.width_alone)
        figures = [f"{100 * share:.1f}" for share in shares]
        lines.append((*design, *figures, f"{100 * row.judge_bias:+.1f}"))
    body = (
        f"## The agent's rate of violations\n\n{RUNS:,} runs with verdicts, by how many belong to "
        "one task, by the share that is violated, and by how many have a label, drawn at random. "
        f"The judge is wrong in {_ERRORS[0]:.0%} to {_ERRORS[1]:.0%}, depending on the task. Bias, "
        "coverage and median width of the corrected rate; width of the labels alone; bias of the "
        f"judge's share. {_RATE_SESSIONS} sessions a cell.\n\n"
    )
    titles = ("runs a task", "violated", "labels", "bias", "coverage", "width", "labels alone")
    return body + table((*titles, "judge alone, bias"), lines), checks


def _where(cell: Cell) -> str:
    return f"{cell.size} a task, {cell.rate:.0%} violated, {cell.labelled} labels"

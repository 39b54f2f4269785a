"""How often an agent violates, from the judge's verdicts on all runs and labels of a few: bias,
coverage and width of the corrected rate, beside the labels alone and the judge alone.
"""

from __future__ import annotations

from concurrent.futures import Executor
from itertools import product
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.checks import Check, error_of, table
from benchmarks.simulations import holds
from pytest_jrh.stats.intervals import estimate_share
from pytest_jrh.stats.people import Answers, anchored_violations

Flags = npt.NDArray[np.int64]
CASES = 2_000
# Cases of a task, and how alike they are.
TASKS = ((1, 0.0), (5, 0.2), (40, 0.1))
RATES = (0.02, 0.05, 0.1, 0.2, 0.5)
LABELLED = (30, 60, 200)
# With half of all cases in one task.
HALVES = ((0.1, 60), (0.1, 200), (0.5, 60), (0.5, 200))
_SESSIONS, _AGAIN_SESSIONS, _AGAIN = 100, 1_000, 2
# A judge's errors differ by task, evenly between these.
_ERRORS = (0.05, 0.2)


class Cell(NamedTuple):
    """Cases of a task and their correlation, how many cases are violated, and labels; with
    `half_in_one`, half of all cases are of one task.
    """

    size: int
    icc: float
    rate: float
    labelled: int
    half_in_one: bool = False

    @property
    def sizes(self) -> list[int]:
        """The cases of each task."""
        large = [CASES // 2] if self.half_in_one else []
        return [*large, *[self.size] * ((CASES - sum(large)) // self.size)]


class Held(NamedTuple):
    """Bias of the corrected rate with its standard error, coverage and median width; coverage and
    width of the labels alone, and the bias of the judge alone.
    """

    bias: float
    error: float
    covered: float
    width: float
    covered_alone: float
    width_alone: float
    judge_bias: float


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


def simulated(cell: Cell, sessions: int) -> Held:
    """The corrected rate in so many sessions of one design."""
    rng = np.random.default_rng([cell.size, int(1000 * cell.rate), cell.labelled, sessions])
    tasks = np.repeat(np.arange(len(cell.sizes)), cell.sizes)
    errors, controls, judge_errors = [], [], []
    widths, widths_alone = [], []
    hits = hits_alone = 0
    for _ in range(sessions):
        true, answers = verdicts(rng, cell)
        is_labelled = np.zeros(CASES, dtype=bool)
        is_labelled[rng.choice(CASES, cell.labelled, replace=False)] = True
        people = np.where(is_labelled, true, np.nan)
        bounds = anchored_violations(*checked_cases(answers, answers, people, tasks)).estimate
        alone = estimate_share(true[is_labelled].tolist(), tasks[is_labelled].tolist())
        hits += holds(bounds, cell.rate)
        hits_alone += holds(alone, cell.rate)
        widths.append((bounds.upper or 0.0) - (bounds.lower or 0.0))
        widths_alone.append((alone.upper or 0.0) - (alone.lower or 0.0))
        errors.append((bounds.value or 0.0) - cell.rate)
        judge_errors.append(float(answers.mean()) - cell.rate)
        # Both are 0 on average, whatever the estimator does.
        controls.append(
            (
                float(true[is_labelled].mean()) - cell.rate,
                float(answers.mean() - answers[is_labelled].mean()),
            )
        )
    bias, error = controlled_mean(errors, controls)
    return Held(
        bias,
        error,
        hits / sessions,
        median(widths),
        hits_alone / sessions,
        median(widths_alone),
        fmean(judge_errors),
    )


def verdicts(rng: np.random.Generator, cell: Cell) -> tuple[Flags, Flags]:
    """What is true of all cases, and what the judge says of them, task by task."""
    tasks = len(cell.sizes)
    rates = np.full(tasks, cell.rate)
    if cell.icc:
        both = (1 - cell.icc) / cell.icc
        rates = rng.beta(cell.rate * both, (1 - cell.rate) * both, tasks)
    errors = rng.uniform(*_ERRORS, tasks)
    true = rng.random(CASES) < np.repeat(rates, cell.sizes)
    wrong = rng.random(CASES) < np.repeat(errors, cell.sizes)
    return true.astype(int), (true ^ wrong).astype(int)


def controlled_mean(
    values: list[float], controls: list[tuple[float, float]]
) -> tuple[float, float]:
    """The mean of values and its standard error, less what controls with mean 0 explain of it."""
    columns = np.column_stack([np.ones(len(values)), np.array(controls)])
    solution, *_ = np.linalg.lstsq(columns, np.array(values), rcond=None)
    rest = np.array(values) - columns @ solution
    return float(solution[0]), float(rest.std(ddof=columns.shape[1]) / np.sqrt(len(values)))


def section(pool: Executor) -> tuple[str, list[Check]]:
    """The table of the corrected rate, and what must hold of it."""
    cells = [Cell(*task, rate, n) for task, rate, n in product(TASKS, RATES, LABELLED)]
    cells += [Cell(*TASKS[1], rate, n, half_in_one=True) for rate, n in HALVES]
    rows = dict(zip(cells, pool.map(simulated, cells, [_SESSIONS] * len(cells)), strict=True))
    lowest = sorted(cells, key=lambda cell: rows[cell].covered)[:_AGAIN]
    # Few labels beside a judge that helps: by longer simulations these are covered most often.
    highest = [cell for cell in cells if (cell.rate, cell.labelled) == (RATES[-1], LABELLED[0])]
    again = [*lowest, *highest]
    found = zip(again, pool.map(simulated, again, [_AGAIN_SESSIONS] * len(again)), strict=True)
    covered = {cell: held.covered for cell, held in found}
    most = max(rows, key=lambda cell: abs(rows[cell].bias))
    checks = [
        Check(
            "corrected rate: largest bias",
            100 * abs(rows[most].bias),
            0.5,
            "most",
            _where(most),
            100 * rows[most].error,
        )
    ]
    least = min(lowest, key=lambda cell: covered[cell])
    highest_cell = max(highest, key=lambda cell: covered[cell])
    detail = f"simulated again, {_AGAIN_SESSIONS:,} sessions"
    checks += [
        Check(
            "corrected rate: lowest coverage",
            100 * covered[least],
            92,
            "least",
            f"{_where(least)}; the {_AGAIN} lowest of {len(cells)} cells {detail}",
            error_of(covered[least], _AGAIN_SESSIONS),
        ),
        Check(
            "corrected rate: highest coverage",
            100 * covered[highest_cell],
            98,
            "most",
            f"{_where(highest_cell)}; {detail}",
            error_of(covered[highest_cell], _AGAIN_SESSIONS),
        ),
    ]
    body = (
        f"## The agent's rate of violations\n\n{CASES:,} runs with verdicts, by how many belong to "
        "one task, by the share that is violated, and by how many have a label, drawn at random. "
        f"The judge is wrong in {_ERRORS[0]:.0%} to {_ERRORS[1]:.0%}, depending on the task. Bias, "
        "coverage and median width of the corrected rate; coverage and width of the labels alone; "
        f"bias of the judge's share. {_SESSIONS} sessions a cell.\n\n"
    )
    titles = (
        "runs a task",
        "violated",
        "labels",
        "bias",
        "coverage",
        "width",
        "labels alone",
        "width",
        "judge alone, bias",
    )
    return body + table(titles, [_row(cell, rows[cell]) for cell in cells]), checks


def _where(cell: Cell) -> str:
    return f"{_design(cell)} a task, {cell.rate:.0%} violated, {cell.labelled} labels"


def _design(cell: Cell) -> str:
    return f"{cell.size}, half in one" if cell.half_in_one else str(cell.size)


def _row(cell: Cell, held: Held) -> tuple[str, ...]:
    return (
        _design(cell),
        f"{cell.rate:.0%}",
        str(cell.labelled),
        f"{100 * held.bias:+.2f}",
        f"{100 * held.covered:.1f}",
        f"{100 * held.width:.1f}",
        f"{100 * held.covered_alone:.1f}",
        f"{100 * held.width_alone:.1f}",
        f"{100 * held.judge_bias:+.1f}",
    )

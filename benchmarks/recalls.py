"""Recall against people where few cases are violated: bias and coverage of the corrected figure."""

from __future__ import annotations

from concurrent.futures import Executor
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.checks import Check, error_of, table
from benchmarks.rates import checked_cases
from pytest_jrh.stats.people import anchored_positives

RECALL = 0.85
RATES = (0.02, 0.05)
# Cases, and how many people label: of the rarest there are ten of the class in half of sessions.
SIZES = ((1_000, 500), (3_000, 500))
WRONG = (0.0, 0.02, 0.05)
_SESSIONS, _MOST, _LEAST = 2_000, 1.5, 90


class Held(NamedTuple):
    """How often there is a figure, its bias with its standard error, and coverage, in points."""

    given: float
    bias: float
    error: float
    covered: float


def simulated(rate: float, cases: int, labelled: int, wrong: float, sessions: int) -> Held:
    """The corrected recall of a judge, with so many cases violated and so many labels wrong."""
    rng = np.random.default_rng([int(1000 * rate), cases, labelled, int(1000 * wrong)])
    errors, hits = [], 0
    for _ in range(sessions):
        true = (rng.random(cases) < rate).astype(float)
        label = np.where(rng.random(cases) < wrong, 1 - true, true)
        answer = np.where(rng.random(cases) < RECALL, true, 1 - true)
        people = np.full(cases, np.nan)
        looked = rng.choice(cases, labelled, replace=False)
        people[looked] = true[looked]
        checked = checked_cases(answer, label, people, np.arange(cases) // 6)
        found = anchored_positives(*checked, 1)
        bounds = found.estimate
        if bounds.value is not None and bounds.lower is not None and bounds.upper is not None:
            errors.append(100 * (bounds.value - RECALL))
            hits += bounds.lower <= RECALL <= bounds.upper
    number = len(errors)
    return Held(
        number / sessions,
        float(np.mean(errors)),
        float(np.std(errors)) / number**0.5,
        hits / number,
    )


def section(pool: Executor) -> tuple[str, list[Check]]:
    """The table of corrected recall, and what must hold of it."""
    cells = [(rate, *size, wrong) for rate, size, wrong in product(RATES, SIZES, WRONG)]
    rows = dict(
        zip(
            cells,
            pool.map(simulated, *zip(*cells, strict=True), [_SESSIONS] * len(cells)),
            strict=True,
        )
    )
    most = max(rows.values(), key=lambda held: abs(held.bias))
    lowest = min(rows.values(), key=lambda held: held.covered)
    checks = [
        Check("corrected recall: largest bias", abs(most.bias), _MOST, "most", error=most.error),
        Check(
            "corrected recall: lowest coverage",
            100 * lowest.covered,
            _LEAST,
            "least",
            error=error_of(lowest.covered, int(_SESSIONS * lowest.given)),
        ),
    ]
    body = (
        "## Recall against people\n\nA judge that finds 85%, runs of six cases, few of them "
        "violated, and labels of which some are wrong; people label a random sample. In so many "
        f"of {_SESSIONS:,} sessions they label ten violated cases, so that there is a figure.\n\n"
    )
    lines = [
        (
            f"{rate:.0%}",
            f"{size:,}",
            str(labelled),
            f"{wrong:.0%}",
            f"{held.given:.0%}",
            f"{held.bias:+.1f}",
            f"{100 * held.covered:.1f}",
        )
        for (rate, size, labelled, wrong), held in rows.items()
    ]
    titles = ("violated", "cases", "labelled", "labels wrong", "a figure", "bias", "coverage")
    return body + table(titles, lines), checks

"""Judges of known error rates, simulated: what the figures say of them, and how often they hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.intervals import right_counts, shares_of
from pytest_jrh.stats.intervals import (
    Estimate,
    RepeatedCase,
    estimate_flicker,
)

Counts = npt.NDArray[np.int64]


def holds(bounds: Estimate, truth: float) -> bool:
    """Whether an interval, which has to be there, holds the truth."""
    assert bounds.lower is not None
    assert bounds.upper is not None
    return bounds.lower <= truth <= bounds.upper


def epochs_coverage(icc: float, sessions: int) -> tuple[float, float]:
    """Coverage with 40 samples of three epochs each, and with 120 samples of one."""
    rng = np.random.default_rng([40, int(10 * icc)])
    covered = []
    for runs, size in ((40, 3), (120, 1)):
        hits = []
        for accuracy in (0.7, 0.8, 0.9, 0.95):
            sizes = np.full(runs, size)
            for right in right_counts(rng, sessions, sizes, accuracy, icc):
                hits.append(holds(shares_of(right, sizes), accuracy))
        covered.append(float(np.mean(hits)))
    return covered[0], covered[1]


def flicker_coverage(flip: float, repeats: int, sessions: int) -> float:
    """How often the interval of the flicker holds it, with 54 cases of 18 runs."""
    rng = np.random.default_rng([repeats, int(100 * flip)])
    hits = 0
    for scores in rng.binomial(1, flip, (sessions, 54, repeats)).tolist():
        cases = (RepeatedCase(place // 3, tuple(each)) for place, each in enumerate(scores))
        hits += holds(estimate_flicker(cases), 2 * flip * (1 - flip))
    return hits / sessions

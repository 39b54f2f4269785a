"""The planner held against brute force: sessions of known judges, simulated verdict by verdict, and
decided by the gate's own test and bound.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from benchmarks.checks import Check, error_of, table
from benchmarks.simulations import losses
from pytest_jrh.stats.exchange import CaseErrors, compare_sets
from pytest_jrh.stats.intervals import Change, unseen_drop
from pytest_jrh.stats.planning import CORRELATION, ForeseenSuite, runs_to_prove, visible_drop

# Runs, by name.
DESIGNS = {
    "20 of 1": (1,) * 20,
    "10 of 2": (2,) * 10,
    "9 of 6": (6,) * 9,
    "15 of 1, 3, 6": (1, 3, 6) * 5,
    "100 of 1": (1,) * 100,
    "25 of 4": (4,) * 25,
}
# The share of verdicts that flip, and repeats.
JUDGES = ((0.0, 1), (0.02, 1), (0.05, 1), (0.0, 3), (0.05, 3), (0.1, 5))
_SESSIONS, _PROOFS = 400, 1_000


class Setting(NamedTuple):
    """A suite and a judge, of which verdicts flip."""

    sizes: tuple[int, ...]
    flip: float
    repeats: int

    @property
    def suite(self) -> ForeseenSuite:
        return ForeseenSuite(self.sizes, self.repeats, 2 * self.flip * (1 - self.flip))


def found(setting: Setting) -> tuple[float | None, float]:
    """The drop that is planned, and the share of sessions in which the gate's test finds it."""
    drop = visible_drop(setting.suite)
    rng = np.random.default_rng([len(setting.sizes), sum(setting.sizes), setting.repeats])
    share = min(1.0, (drop or 1.0) / (1 - 2 * setting.flip))
    both = (1 - CORRELATION) / CORRELATION
    hits = 0
    for _ in range(_SESSIONS):
        chances = np.full(len(setting.sizes), share)
        if share < 1:
            chances = rng.beta(share * both, (1 - share) * both, len(setting.sizes))
        cases = []
        for size, chance in zip(setting.sizes, chances, strict=True):
            broken = rng.random(size) < chance
            before = rng.random((size, setting.repeats)) < setting.flip
            now = (rng.random((size, setting.repeats)) < setting.flip) ^ broken[:, None]
            for was, is_now in zip(before.astype(int), now.astype(int), strict=True):
                cases.append(CaseErrors(tuple(was.tolist()), tuple(is_now.tolist())))
        [test] = compare_sets(cases, [range(len(cases))])
        hits += test.p_value <= 0.025
    return drop, hits / _SESSIONS


def proven(setting: Setting) -> tuple[int, float]:
    """The runs that are planned for a proof of 5 points, and how often they prove it."""
    runs = runs_to_prove([setting.suite], 0.05)
    assert runs is not None
    sizes = setting.suite.times(runs).sizes
    rng = np.random.default_rng([6, len(setting.sizes), setting.repeats])
    lost = losses(rng, _PROOFS, sizes, 0.0, setting.flip, setting.repeats)
    passed = 0
    for session in lost.tolist():
        changes = [Change(n / setting.repeats, m) for n, m in zip(session, sizes, strict=True)]
        upper = unseen_drop(changes).upper
        passed += upper is not None and upper < 0.05
    return runs, passed / _PROOFS


def section(pool: Executor) -> tuple[str, list[Check]]:
    """All tables of the planner, and what must hold of them."""
    names = [(name, judge) for name in DESIGNS for judge in JUDGES]
    settings = [Setting(DESIGNS[name], *judge) for name, judge in names]
    drops = list(pool.map(found, settings))
    proofs = list(pool.map(proven, settings))
    rows = []
    for (name, (flip, repeats)), (drop, power), (runs, share) in zip(
        names, drops, proofs, strict=True
    ):
        planned = "none" if drop is None else f"{100 * drop:.0f}"
        shares = (f"{100 * power:.0f}", str(runs), f"{100 * share:.0f}")
        rows.append((name, f"{flip:.0%}", str(repeats), planned, *shares))
    power = min(share for drop, share in drops if drop is not None)
    least = min(share for _, share in proofs)
    checks = [
        Check(
            "planner's drop is found, lowest",
            100 * power,
            75,
            "least",
            error=error_of(power, _SESSIONS),
        ),
        Check(
            "planner's runs prove that nothing has changed, lowest",
            100 * least,
            75,
            "least",
            error=error_of(least, _PROOFS),
        ),
    ]
    body = (
        "## The planner\n\nThe drop, in points, that the gate's test is to find in 80% of sessions "
        "of one class of cases, and in how many it does; and the runs with which `gate.proof` is "
        "to pass an unchanged judge at `max_drop: 0.05` in 80%, and in how many it does. What a "
        "drop breaks correlates by 0.3 inside of runs.\n\n"
    )
    titles = ("runs", "flips", "repeats", "drop", "found", "runs to prove", "passed")
    return body + table(titles, rows), checks

"""The gate held against judges of known error rates: whole sessions, from results to decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.checks import Check, error_of, mean, table
from pytest_jrh.cases.ids import case_id
from pytest_jrh.config.schema import GateRules
from pytest_jrh.core.model import CaseResult, CaseSpec
from pytest_jrh.stats.baseline import Baseline, BaselineCase, Scope, short
from pytest_jrh.stats.gate import DropDecision, GateDecision, decide

Shares = npt.NDArray[np.float64]
Verdicts = npt.NDArray[np.int64]
DIGEST, EARLIER, NOW = "d" * 64, "e" * 64, "a" * 64
SESSIONS = 300
# The highest of many cells is high by chance, too: other sessions of it, times so many.
_AGAIN = 5
_FLIPS = (0.0, 0.02, 0.05, 0.15)
_RUNS = (5, 10, 33, 100)
_BROKEN = (("cases", 0.0), ("runs, 0.3", 0.3), ("runs, 0.6", 0.6), ("whole runs", 1.0))


class Suite(NamedTuple):
    """Cases of so many runs under each rubric, of both tests or of violations alone."""

    runs: int
    rubrics: int = 3
    both: bool = True

    @property
    def specs(self) -> list[CaseSpec]:
        """All cases, those of one run together."""
        tests = ("agent_perturbation", "agent_positives") if self.both else ("agent_perturbation",)
        return [
            CaseSpec("s", test, f"rubric-{rubric}", f"run-{run:03}", 1)
            for run in range(self.runs)
            for rubric in range(self.rubrics)
            for test in tests
        ]


@dataclass(frozen=True, slots=True)
class Change:
    """What a change of a judge breaks, and its flicker.

    `recall` and `alarms` are the shares of violations and of satisfied cases that are wrong after
    it and were right before, a negative one the reverse; `rubric` is what one rubric loses in both.
    `together` is the correlation of what breaks in a run, 1 for whole runs. Each verdict flips with
    the probability `flip`; where it is `mixed`, a tenth of the cases does all of it.
    """

    flip: float = 0.0
    repeats: int = 1
    recall: float = 0.0
    alarms: float = 0.0
    rubric: float = 0.0
    together: float = 0.0
    mixed: bool = False


def sessions(suite: Suite, change: Change, number: int, seed: int = 0) -> Iterator[Session]:
    """Draw sessions before and after a change: results, and the baseline that they are held to."""
    rng = np.random.default_rng([suite.runs, suite.rubrics, change.repeats, seed])
    made = _Made.of(suite)
    for _ in range(number):
        wrong_before, wrong_now = _broken(rng, made, change)
        chance = np.full(len(made.specs), change.flip)
        if change.mixed:
            chance = np.where(rng.random(chance.size) < 0.1, min(0.5, 10 * change.flip), 0.0)
        before = _verdicts(rng, made, wrong_before, chance, change.repeats)
        now = _verdicts(rng, made, wrong_now, chance, change.repeats)
        yield Session(made, before, now)


@dataclass(frozen=True, slots=True)
class _Made:
    """The cases of a suite, made once for all of its sessions."""

    specs: list[CaseSpec]
    ids: list[str]
    labels: Verdicts
    runs: Verdicts
    rubrics: Verdicts

    @classmethod
    def of(cls, suite: Suite) -> _Made:
        specs = suite.specs
        return cls(
            specs,
            [case_id(spec) for spec in specs],
            np.array([int(spec.test == "agent_perturbation") for spec in specs]),
            np.array([int(spec.run_id[-3:]) for spec in specs]),
            np.array([int(spec.rubric_id[-1]) for spec in specs]),
        )


def _broken(rng: np.random.Generator, made: _Made, change: Change) -> tuple[Shares, Shares]:
    """Which cases the judge gets wrong before, and which after the change."""
    seen = 1 - 2 * change.flip
    shares = np.where(made.labels == 1, change.recall, change.alarms) / seen
    shares = shares + np.where(made.rubrics == 0, change.rubric / seen, 0.0)
    breaks = _draws(rng, made, np.abs(shares), change.together)
    return (breaks & (shares < 0)).astype(float), (breaks & (shares > 0)).astype(float)


def _draws(
    rng: np.random.Generator, made: _Made, shares: Shares, together: float
) -> npt.NDArray[np.bool_]:
    if not together:
        broken: npt.NDArray[np.bool_] = rng.random(shares.size) < shares
        return broken
    share = float(shares.max())
    runs = int(made.runs.max()) + 1
    if together == 1:
        of_run = (rng.random(runs) < share).astype(float)
    else:
        both = (1 - together) / together
        of_run = rng.beta(share * both, (1 - share) * both, runs)
    of_case: npt.NDArray[np.bool_] = rng.random(shares.size) < of_run[made.runs]
    return of_case


def _verdicts(
    rng: np.random.Generator, made: _Made, wrong: Shares, chance: Shares, repeats: int
) -> Verdicts:
    flips = rng.random((len(made.specs), repeats)) < chance[:, None]
    right = flips == wrong[:, None].astype(bool)
    return np.where(right, made.labels[:, None], 1 - made.labels[:, None])


@dataclass(frozen=True, slots=True)
class Session:
    """The verdicts before and now on the cases of a suite."""

    made: _Made
    before: Verdicts
    now: Verdicts

    @property
    def baseline(self) -> Baseline:
        """The verdicts before, as lines of a baseline."""
        lines = {}
        for name, label, scores in zip(
            self.made.ids, self.made.labels.tolist(), self.before.tolist(), strict=True
        ):
            score = _majority(scores)
            outcome: Literal["agree", "disagree"] = "agree" if score == label else "disagree"
            several = tuple(scores) if len(scores) > 1 else ()
            lines[name] = BaselineCase(
                name, short(DIGEST), short(EARLIER), outcome, score, scores=several
            )
        return Baseline(lines)

    @property
    def results(self) -> list[CaseResult]:
        """The verdicts now, as results of a session."""
        return results_of(self.made, self.now)

    def decide(self, **rules: Any) -> GateDecision:
        """The decision of the gate, from results and a baseline as a session has them."""
        return decide(
            self.results,
            self.baseline,
            GateRules(**{"allow_one_class": True, **rules}),
            Scope.of(self.made.ids),
        )


def results_of(made: _Made, verdicts: Verdicts, judge: str = NOW) -> list[CaseResult]:
    """The results of a session with these verdicts."""
    cases = zip(made.specs, made.ids, made.labels.tolist(), verdicts.tolist(), strict=True)
    return [_result(spec, name, label, scores, judge) for spec, name, label, scores in cases]


def _result(spec: CaseSpec, name: str, label: int, scores: Sequence[int], judge: str) -> CaseResult:
    score = _majority(scores)
    return CaseResult(
        spec,
        name,
        "agree" if score == label else "disagree",
        expected=label,
        score=score,
        case_digest=DIGEST,
        judge_fingerprint=judge,
        scores=tuple(scores),
    )


def _drop(decision: GateDecision) -> DropDecision:
    [drop] = [threshold.drop for threshold in decision.thresholds if threshold.drop is not None]
    return drop


def _majority(scores: Sequence[int]) -> int | None:
    ones = 2 * sum(scores)
    return None if ones == len(scores) else int(ones > len(scores))


def verdict_shares(
    suite: Suite, change: Change, number: int, seed: int = 0, **rules: Any
) -> dict[str, float]:
    """The shares of sessions that PASS, FAIL and are INCONCLUSIVE."""
    counts = {"PASS": 0, "FAIL": 0, "INCONCLUSIVE": 0}
    for session in sessions(suite, change, number, seed):
        counts[_drop(session.decide(**rules)).verdict] += 1
    return {verdict: count / number for verdict, count in counts.items()}


def failed(suite: Suite, change: Change, seed: int = 0) -> float:
    """The share of sessions that fail with `max_drop: 0`."""
    return verdict_shares(suite, change, SESSIONS, seed, max_drop=0)["FAIL"]


def proven(suite: Suite, change: Change, seed: int = 0) -> float:
    """The share of sessions that pass with `max_drop: 0.05` and `proof: true`."""
    return verdict_shares(suite, change, SESSIONS, seed, max_drop=0.05, proof=True)["PASS"]


def _again(
    pool: Executor,
    simulated: Callable[[Suite, Change, int], float],
    suite: Suite,
    change: Change,
) -> float:
    """Simulate other sessions of a cell that was the highest of many, which it may be by chance."""
    shares = pool.map(simulated, [suite] * _AGAIN, [change] * _AGAIN, range(1, _AGAIN + 1))
    return mean(shares)


def section(pool: Executor) -> tuple[str, list[Check]]:
    """All tables of the gate, and what must hold of them."""
    parts = [_unchanged(pool), _changed(pool), _proofs(pool)]
    checks = [check for _, found in parts for check in found]
    return "\n".join(text for text, _ in parts), checks


def _unchanged(pool: Executor) -> tuple[str, list[Check]]:
    cells = [
        (runs, repeats, flip, False) for runs in _RUNS for repeats in (1, 3, 5) for flip in _FLIPS
    ]
    cells += [(runs, repeats, 0.05, True) for runs in (10, 33) for repeats in (1, 3, 5)]
    suites = [Suite(runs, 3 if runs < _RUNS[-1] else 1) for runs, *_ in cells]
    changes = [Change(flip, repeats, mixed=mixed) for _, repeats, flip, mixed in cells]
    shares = list(pool.map(failed, suites, changes))
    found = dict(zip(cells, shares, strict=True))
    rows = [
        (
            f"{runs}{', a tenth of the cases' if mixed else ''}",
            str(repeats),
            *(
                f"{100 * found[runs, repeats, flip, mixed]:.1f}"
                if (runs, repeats, flip, mixed) in found
                else "-"
                for flip in _FLIPS
            ),
        )
        for runs, repeats, mixed in dict.fromkeys((cell[0], cell[1], cell[3]) for cell in cells)
    ]
    flickering = {cell: share for cell, share in found.items() if cell[2]}
    highest = max(flickering, key=lambda cell: flickering[cell])
    number = cells.index(highest)
    again = _again(pool, failed, suites[number], changes[number])
    average = mean(flickering.values())
    checks = [
        Check(
            "gate: an unchanged judge FAILs, mean of all cells that flicker",
            100 * average,
            5,
            "most",
            error=error_of(average, SESSIONS * len(flickering)),
        ),
        Check(
            "gate: an unchanged judge FAILs, highest cell",
            100 * again,
            5,
            "most",
            f"{highest[0]} runs, {highest[1]} repeats, {highest[2]:.0%} flip; simulated again",
            error_of(again, _AGAIN * SESSIONS),
        ),
        Check(
            "gate: an unchanged judge FAILs where nothing flickers",
            100 * max(share for cell, share in found.items() if not cell[2]),
            0,
            "most",
        ),
    ]
    body = (
        "## The gate: an unchanged judge\n\nFAIL in so many of 100 sessions with `max_drop: 0`, by "
        "the share of verdicts that flip: 3 rubrics and both tests a run (100 runs: 1 rubric). "
        f"{SESSIONS} sessions a cell, so that a cell has a standard error of up to 1.3.\n\n"
    )
    titles = ("runs", "repeats", *(f"{flip:.0%}" for flip in _FLIPS))
    return body + table(titles, rows), checks


def _changed(pool: Executor) -> tuple[str, list[Check]]:
    cells: list[tuple[str, Suite, Change]] = [
        (
            "recall -20, false positives -20",
            Suite(runs),
            Change(0.05, repeats, recall=0.2, alarms=-0.2),
        )
        for runs in (5, 10, 16, 33)
        for repeats in (1, 3)
    ]
    cells += [
        ("one rubric of 10, -30", Suite(33, 10), Change(0.05, repeats, rubric=0.3))
        for repeats in (1, 3)
    ]
    _, suites, changes = zip(*cells, strict=True)
    shares = list(pool.map(failed, suites, changes))
    rows = [
        (name, str(suite.runs), str(change.repeats), f"{100 * share:.1f}")
        for (name, suite, change), share in zip(cells, shares, strict=True)
    ]
    wanted = {
        (name, suite.runs): share
        for (name, suite, change), share in zip(cells, shares, strict=True)
        if change.repeats > 1
    }
    checks = [
        Check(
            f"gate: {name}, is FAIL, {runs} runs, 3 repeats",
            100 * wanted[name, runs],
            90,
            "least",
            error=error_of(wanted[name, runs], SESSIONS),
        )
        for name, runs in ((cells[0][0], 10), (cells[-1][0], 33))
    ]
    body = (
        "## The gate: a judge that has become worse\n\nFAIL in so many of 100 sessions with "
        "`max_drop: 0`; 5% of verdicts flip, 3 rubrics and both tests a run where nothing else is "
        "said.\n\n"
    )
    return body + table(("change", "runs", "repeats", "FAIL"), rows), checks


def _proofs(pool: Executor) -> tuple[str, list[Check]]:
    judges = ((0.0, 1), (0.05, 3))
    cells = [
        (flip, repeats, runs, name, together, drop)
        for flip, repeats in judges
        for name, together, drop in (("nothing", 0.0, 0.0), *((*each, 0.05) for each in _BROKEN))
        for runs in (25, 55, 100)
    ]
    suites = [Suite(runs, 3, both=False) for _, _, runs, *_ in cells]
    changes = [
        Change(flip, repeats, recall=drop, together=together)
        for flip, repeats, _, _, together, drop in cells
    ]
    shares = list(pool.map(proven, suites, changes))
    found = dict(zip(cells, shares, strict=True))
    rows = []
    for flip, repeats, name in dict.fromkeys((cell[0], cell[1], cell[3]) for cell in cells):
        passed = [
            f"{100 * share:.1f}"
            for cell, share in found.items()
            if (cell[0], cell[1], cell[3]) == (flip, repeats, name)
        ]
        rows.append((name, f"{flip:.0%}", str(repeats), *passed))
    broken = {cell: share for cell, share in found.items() if cell[-1]}
    highest = max(broken, key=lambda cell: broken[cell])
    flip, _, runs, name, *_ = highest
    number = cells.index(highest)
    again = _again(pool, proven, suites[number], changes[number])
    check = Check(
        "gate.proof: a drop of max_drop PASSes, highest cell",
        100 * again,
        6,
        "most",
        f"{name}, {runs} runs, {flip:.0%} flip; simulated again",
        error_of(again, _AGAIN * SESSIONS),
    )
    body = (
        "## The gate: proof\n\nPASS in so many of 100 sessions with `max_drop: 0.05` and `proof: "
        "true`, three violated cases a run, by what a drop of 5 points breaks.\n\n"
    )
    return body + table(("broken", "flips", "repeats", "25", "55", "100 runs"), rows), [check]

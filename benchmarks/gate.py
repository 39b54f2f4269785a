"""The gate held against judges of known error rates: whole sessions, from results to decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.checks import Check, error_of, mean, table
from pytest_jrh.config.schema import GateRules
from pytest_jrh.core.cases import CaseSpec
from pytest_jrh.core.ids import case_id
from pytest_jrh.core.results import CaseResult
from pytest_jrh.stats.baseline import Baseline, Scope
from pytest_jrh.stats.changes import Asked, is_better
from pytest_jrh.stats.comparison import compare
from pytest_jrh.stats.decision import Decision, Held, decide
from pytest_jrh.store.ledger import case_result

Shares = npt.NDArray[np.float64]
Verdicts = npt.NDArray[np.int64]
DIGEST, EARLIER, NOW = "d" * 64, "e" * 64, "a" * 64
SESSIONS = 200
# The highest of many cells is high by chance, too: other sessions of it, times so many.
_AGAIN = 5
_FLIPS = (0.02, 0.05, 0.15)
_RUNS = (10, 30)
_BROKEN = (("runs, 0.6", 0.6), ("whole runs", 1.0))


class Suite(NamedTuple):
    """Cases of so many runs under each rubric, of both tests or of violations alone.

    `wrong` is the share of cases that the judge gets wrong before and after, each by itself.
    """

    runs: int
    rubrics: int = 3
    both: bool = True
    wrong: float = 0.0

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
    the probability `flip`. Of an `other` judge the mistakes of both sides, so many as `recall` and
    `alarms` say, are drawn anew on either side.
    """

    flip: float = 0.0
    repeats: int = 1
    recall: float = 0.0
    alarms: float = 0.0
    rubric: float = 0.0
    together: float = 0.0
    other: bool = False


def sessions(suite: Suite, change: Change, number: int, seed: int = 0) -> Iterator[Session]:
    """Draw sessions before and after a change: results, and the baseline that they are held to."""
    rng = np.random.default_rng([suite.runs, suite.rubrics, change.repeats, seed])
    made = _Made.of(suite)
    for _ in range(number):
        wrong_before, wrong_now = _broken(rng, made, change)
        always = rng.random(len(made.specs)) < suite.wrong
        wrong_before = np.where(always, 1.0, wrong_before)
        wrong_now = np.where(always, 1.0, wrong_now)
        chance = np.full(len(made.specs), change.flip)
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
    if change.other:
        others = _draws(rng, made, np.abs(shares), change.together)
        return breaks.astype(float), others.astype(float)
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
            lines[name] = CaseResult(
                name,
                label=label,
                case_digest=DIGEST,
                judge_digest=EARLIER,
                scores=tuple(scores),
                reasons=("",) * len(scores),
            )
        return Baseline(lines)

    @property
    def results(self) -> list[CaseResult]:
        """The verdicts now, as results of a session."""
        results = []
        for spec, name, label, scores in zip(
            self.made.specs,
            self.made.ids,
            self.made.labels.tolist(),
            self.now.tolist(),
            strict=True,
        ):
            result = replace(
                case_result(spec, None, judge_digest=NOW),
                case_id=name,
                label=label,
                case_digest=DIGEST,
                scores=tuple(scores),
                reasons=("",) * len(scores),
            )
            results.append(result)
        return results

    def decide(self, *, other: bool = False, **rules: Any) -> Decision:
        """The decision, from results and a baseline as a session has them."""
        asked = {"": Asked("another")} if other else {}
        scope = Scope.of(self.made.ids)
        compared = compare(self.baseline, self.results, scope)
        return decide(compared, GateRules(**rules), Held(scope, asked=asked))


def words(
    suite: Suite, change: Change, number: int, seed: int = 0, **rules: Any
) -> dict[str, float]:
    """The shares of sessions that PASS, are UNCLEAR and FAIL, and that are surely better."""
    counts: Counter[str] = Counter()
    for session in sessions(suite, change, number, seed):
        decision = session.decide(other=change.other, **rules)
        counts[decision.word] += 1
        counts["better"] += is_better(decision.sets)
    return {word: counts[word] / number for word in ("PASS", "UNCLEAR", "FAIL", "better")}


def simulated(suite: Suite, change: Change, seed: int = 0) -> dict[str, float]:
    """The words of a cell with what `init` writes."""
    return words(suite, change, SESSIONS, seed)


def proven(suite: Suite, change: Change, seed: int = 0) -> float:
    """The share of sessions that pass with `proof: true`."""
    return words(suite, change, SESSIONS, seed, proof=True)["PASS"]


def _again(pool: Executor, suite: Suite, change: Change, word: str) -> float:
    """Simulate other sessions of a cell that was the highest or lowest of many, which it may be by
    chance.
    """
    found = pool.map(simulated, [suite] * _AGAIN, [change] * _AGAIN, range(1, _AGAIN + 1))
    return mean(shares[word] for shares in found)


def section(pool: Executor) -> tuple[str, list[Check]]:
    """All tables of the decision, and what must hold of them."""
    parts = [_unchanged(pool), _changed(pool), _others(pool), _proofs(pool)]
    checks = [check for _, found in parts for check in found]
    return "\n".join(text for text, _ in parts), checks


def _shown(shares: dict[str, float]) -> str:
    return " / ".join(f"{100 * shares[word]:.0f}" for word in ("PASS", "UNCLEAR", "FAIL"))


def _unchanged(pool: Executor) -> tuple[str, list[Check]]:
    cells = [
        (runs, repeats, rubrics, flip)
        for runs in _RUNS
        for repeats in (1, 3)
        for rubrics in (1, 3, 10)
        for flip in _FLIPS
    ]
    suites = [Suite(runs, rubrics, wrong=0.1) for runs, _, rubrics, _ in cells]
    changes = [Change(flip, repeats) for _, repeats, _, flip in cells]
    found = dict(zip(cells, pool.map(simulated, suites, changes), strict=True))
    rows = [
        (
            str(runs),
            str(repeats),
            str(rubrics),
            *(_shown(found[runs, repeats, rubrics, flip]) for flip in _FLIPS),
        )
        for runs, repeats, rubrics in dict.fromkeys(cell[:3] for cell in cells)
    ]
    highest = max(cells, key=lambda cell: found[cell]["FAIL"])
    lowest = min(cells, key=lambda cell: found[cell]["PASS"])
    fails = _again(pool, suites[cells.index(highest)], changes[cells.index(highest)], "FAIL")
    passes = _again(pool, suites[cells.index(lowest)], changes[cells.index(lowest)], "PASS")
    average = mean(shares["FAIL"] for shares in found.values())

    def where(cell: tuple[int, int, int, float]) -> str:
        runs, repeats, rubrics, flip = cell
        return f"{runs} runs, {repeats} repeats, {rubrics} rubrics, {flip:.0%} flip; again"

    checks = [
        Check(
            "an unchanged judge FAILs, mean of all cells",
            100 * average,
            5,
            "most",
            error=error_of(average, SESSIONS * len(cells)),
        ),
        Check(
            "an unchanged judge FAILs, highest cell",
            100 * fails,
            6,
            "most",
            where(highest),
            error_of(fails, _AGAIN * SESSIONS),
        ),
        Check(
            "an unchanged judge is PASS, lowest cell",
            100 * passes,
            78,
            "least",
            where(lowest),
            error_of(passes, _AGAIN * SESSIONS),
        ),
    ]
    body = (
        "## An unchanged judge\n\nPASS / UNCLEAR / FAIL of 100 sessions with `max_drop: 0.05`, by "
        "the share of verdicts that flip: both tests a run and rubric, 10% of cases wrong anyhow. "
        f"{SESSIONS} sessions a cell.\n\n"
    )
    titles = ("runs", "repeats", "rubrics", *(f"{flip:.0%}" for flip in _FLIPS))
    return body + table(titles, rows), checks


_WORSE = "recall -20, false alarms +20"
_RUBRIC = "one rubric of 10, -30"
_TEN = "10 points worse on 100 cases"


def _changed(pool: Executor) -> tuple[str, list[Check]]:
    cells = [
        (_WORSE, Suite(runs, wrong=0.1), Change(0.05, repeats, recall=0.2, alarms=0.2))
        for runs in (5, 10, 30)
        for repeats in (1, 3)
    ]
    cells += [
        (_RUBRIC, Suite(33, 10, wrong=0.1), Change(0.05, repeats, rubric=0.3)) for repeats in (1, 3)
    ]
    cells += [(_TEN, Suite(50, 1), Change(0.02, 3, recall=0.1, alarms=0.1))]
    for drop in (0.1, 0.2):
        for runs in _RUNS:
            for repeats in (1, 3):
                name = f"recall -{100 * drop:.0f}"
                cells.append((name, Suite(runs, wrong=0.1), Change(0.05, repeats, recall=drop)))
    _, suites, changes = zip(*cells, strict=True)
    found = list(pool.map(simulated, suites, changes))
    rows = []
    shares = {}
    for (name, suite, change), of_cell in zip(cells, found, strict=True):
        rows.append((name, str(suite.runs), str(change.repeats), _shown(of_cell)))
        shares[name, suite.runs, change.repeats] = of_cell["FAIL"]
    checks = [
        Check(
            f"{name}, is FAIL, {runs} runs, 3 repeats",
            100 * shares[name, runs, 3],
            limit,
            "least",
            error=error_of(shares[name, runs, 3], SESSIONS),
        )
        for name, runs, limit in ((_WORSE, 10, 90), (_RUBRIC, 33, 95), (_TEN, 50, 80))
    ]
    body = (
        "## A judge that has become worse\n\nPASS / UNCLEAR / FAIL of 100 sessions with "
        "`max_drop: 0.05`; 5% of verdicts flip, 3 rubrics and both tests a run, 10% of cases wrong "
        "anyhow, where nothing else is said.\n\n"
    )
    return body + table(("change", "runs", "repeats", "words"), rows), checks


def _others(pool: Executor) -> tuple[str, list[Check]]:
    """Another judge that is as good, and errs in other runs; one that misses half on two runs."""
    cells = [
        (runs, rubrics, together) for runs, rubrics in ((40, 3), (20, 5)) for together in (0.6, 1.0)
    ]
    suites = [Suite(runs, rubrics) for runs, rubrics, _ in cells]
    changes = [
        Change(recall=0.1, alarms=0.1, together=together, other=True) for *_, together in cells
    ]
    found = list(pool.map(_many, suites, changes))
    rows = [
        (
            f"{runs} x {2 * rubrics}",
            f"{together:g}",
            _shown(of_cell),
            f"{100 * of_cell['better']:.1f}",
        )
        for (runs, rubrics, together), of_cell in zip(cells, found, strict=True)
    ]
    checks = []
    for word in ("FAIL", "better"):
        share = max(of_cell[word] for of_cell in found)
        error = error_of(share, _AGAIN * SESSIONS)
        checks.append(
            Check(f"as good a judge is {word}, highest", 100 * share, 6, "most", "", error)
        )
    half = _half_lost(SESSIONS)
    checks.append(Check("half the recall lost on two runs is PASS", 100 * half, 0, "most"))
    body = (
        "## Another judge that is as good\n\nWhole runs are exchanged: 10% of cases wrong on "
        "either side, which go together in runs. PASS / UNCLEAR / FAIL, and surely better, of 100 "
        "sessions.\n\n"
    )
    return body + table(("runs x cases", "correlation", "words", "better"), rows), checks


def _many(suite: Suite, change: Change) -> dict[str, float]:
    return words(suite, change, _AGAIN * SESSIONS)


def _half_lost(number: int) -> float:
    """How often another judge PASSes that misses half of what was found on two runs."""
    made = _Made.of(Suite(2, 6))
    rng = np.random.default_rng(2)
    passed = 0
    for _ in range(number):
        now = made.labels.copy()
        violated = np.flatnonzero(made.labels == 1)
        now[rng.choice(violated, violated.size // 2, replace=False)] = 0
        session = Session(made, made.labels[:, None], now[:, None])
        passed += session.decide(other=True).word == "PASS"
    return passed / number


def _proofs(pool: Executor) -> tuple[str, list[Check]]:
    judges = ((0.0, 1), (0.05, 3))
    cells = [
        (flip, repeats, runs, name, together, drop)
        for flip, repeats in judges
        for name, together, drop in (("nothing", 0.0, 0.0), *((*each, 0.05) for each in _BROKEN))
        for runs in (60, 100)
    ]
    suites = [Suite(runs, 3, both=True) for _, _, runs, *_ in cells]
    changes = [
        Change(flip, repeats, recall=drop, alarms=drop, together=together)
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
    # By theory it is 0.95^60, 4.6%: so near the limit it takes more sessions than elsewhere.
    times = 2 * _AGAIN
    again = mean(
        pool.map(proven, [suites[number]] * times, [changes[number]] * times, range(1, times + 1))
    )
    check = Check(
        "proof: a drop of max_drop PASSes, highest cell",
        100 * again,
        6,
        "most",
        f"{name}, {runs} runs, {flip:.0%} flip; simulated again",
        error_of(again, times * SESSIONS),
    )
    body = (
        "## Proof\n\nPASS in so many of 100 sessions with `max_drop: 0.05` and `proof: "
        "true`, six cases a run, by what a drop of 5 points breaks.\n\n"
    )
    return body + table(("broken", "flips", "repeats", "60", "100 runs"), rows), [check]

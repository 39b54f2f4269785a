"""Judges of known error rates, simulated: what the figures say of them, and how often they hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from pytest_jrh.stats.comparison import sign_flip_p
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.intervals import (
    RepeatedCase,
    Sums,
    Tally,
    estimate_bias,
    estimate_flicker,
    estimate_kappa,
    estimate_mean_error,
    estimate_share,
    false_alarm_of_snapshot,
)

Counts = npt.NDArray[np.int64]
ACCURACIES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
CORRELATIONS = (0.0, 0.1, 0.3, 0.6)
LEVELS = 5


def right_counts(
    rng: np.random.Generator, sessions: int, runs: int, size: int, accuracy: float, icc: float
) -> Counts:
    """How many cases of each run are right, by session and run: beta-binomial."""
    if not icc or size == 1:
        return rng.binomial(size, accuracy, (sessions, runs))
    both = (1 - icc) / icc
    return rng.binomial(size, rng.beta(accuracy * both, (1 - accuracy) * both, (sessions, runs)))


def share_coverage(runs: int, size: int, sessions: int) -> dict[tuple[float, float], float]:
    """How often the interval of an accuracy holds it, by correlation and accuracy."""
    rng = np.random.default_rng([runs, size])
    known: dict[bytes, Estimate] = {}
    return {
        (icc, accuracy): _covered(
            right_counts(rng, sessions, runs, size, accuracy, icc), size, accuracy, known
        )
        for icc in (CORRELATIONS if size > 1 else CORRELATIONS[:1])
        for accuracy in ACCURACIES
    }


def cell_coverage(runs: int, size: int, icc: float, accuracy: float, sessions: int) -> float:
    """The coverage of one cell again, by other sessions."""
    rng = np.random.default_rng([runs, size, int(10 * icc), int(100 * accuracy), 2])
    right = right_counts(rng, sessions, runs, size, accuracy, icc)
    return _covered(right, size, accuracy, {})


def _covered(right: Counts, size: int, accuracy: float, known: dict[bytes, Estimate]) -> float:
    hits = 0
    # The order of the runs makes no difference.
    for session in np.sort(right, axis=1):
        key = session.tobytes()
        if key not in known:
            known[key] = estimate_share(Tally(int(each), size) for each in session)
        hits += holds(known[key], accuracy)
    return hits / len(right)


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
            for right in right_counts(rng, sessions, runs, size, accuracy, icc):
                hits.append(holds(estimate_share(Tally(int(e), size) for e in right), accuracy))
        covered.append(float(np.mean(hits)))
    return covered[0], covered[1]


def rising_bounds(tries: int) -> int:
    """How many of so many random mistakes raise a bound of the interval."""
    rng = np.random.default_rng(1)
    rising = 0
    for _ in range(tries):
        sizes = rng.integers(1, rng.choice((2, 6, 13, 40)), rng.integers(2, 15))
        right = rng.binomial(sizes, rng.choice((0.5, 0.9, 0.97, 1.0), sizes.size))
        place = rng.integers(sizes.size)
        if right[place]:
            before = _bounds(right, sizes)
            right[place] -= 1
            after = _bounds(right, sizes)
            rising += any(b > a + 1e-12 for a, b in zip(before, after, strict=True))
    return rising


def _bounds(right: Counts, sizes: Counts) -> tuple[float, float]:
    bounds = estimate_share(Tally(int(k), int(n)) for k, n in zip(right, sizes, strict=True))
    return bounds.lower or 0.0, 1.0 if bounds.upper is None else bounds.upper


def answers(
    rng: np.random.Generator, sessions: int, runs: int, wrong: float, *, binary: bool, up: float
) -> tuple[Counts, Counts]:
    """Labels and answers of three cases per test, six in a run, with a correlation of 0.3.

    A sixth of the errors on a scale are by two levels, and a share `up` of them upwards.
    """
    both = 0.7 / 0.3
    shape = (sessions, runs, 6)
    errs = rng.random(shape) < rng.beta(wrong * both, (1 - wrong) * both, (sessions, runs, 1))
    if binary:
        labels = np.broadcast_to(np.array([0, 0, 0, 1, 1, 1]), shape)
        return labels, np.where(errs, 1 - labels, labels)
    labels = (np.arange(6) + rng.integers(0, LEVELS, (sessions, runs, 1))) % LEVELS
    by = np.where(rng.random(shape) < 1 / 6, 2, 1) * np.where(rng.random(shape) < up, 1, -1)
    return labels, np.clip(labels + errs * by, 0, LEVELS - 1)


def _kappa(sums: Sums) -> float:
    chance = sums.n * (sums.label_squares + sums.answer_squares) - 2 * sums.labels * sums.answers
    return 1 - sums.n * sums.square_errors / chance


Bounded = Callable[[Sequence[Sums]], Estimate]
FIGURES: dict[str, tuple[Bounded, Callable[[Sums], float], bool]] = {
    "kappa": (estimate_kappa, _kappa, True),
    "weighted kappa": (estimate_kappa, _kappa, False),
    "mean error": (estimate_mean_error, lambda s: s.errors / s.n, False),
    "bias": (estimate_bias, lambda s: s.signed_errors / s.n, False),
}
WRONG = (0.5, 0.3, 0.2, 0.1, 0.05)


def figure_coverage(name: str, runs: int, sessions: int) -> dict[tuple[float, float], float]:
    """How often the interval of a figure holds it where there is one, by share wrong and up."""
    bounded, figure, binary = FIGURES[name]
    rng = np.random.default_rng([runs, len(name)])
    covered = {}
    for wrong in WRONG if not binary else WRONG[1:]:
        for up in (0.5,) if binary else (0.5, 0.8, 1.0):
            many = partial(answers, rng, wrong=wrong, binary=binary, up=up)
            [whole] = _clusters(*many(1, 60_000))
            truth = figure(Sums(*map(sum, zip(*whole, strict=True))))
            found = [bounded(clusters) for clusters in _clusters(*many(sessions, runs))]
            there = [holds(bounds, truth) for bounds in found if bounds.lower is not None]
            covered[wrong, up] = sum(there) / len(there)
    return covered


def _clusters(labels: Counts, given: Counts) -> Iterator[list[Sums]]:
    error = given - labels
    each = (labels, labels**2, given, given**2, error**2, abs(error), error)
    sums = np.stack([np.full(labels.shape[:2], labels.shape[2]), *(x.sum(axis=2) for x in each)], 2)
    for session in sums.tolist():
        yield [Sums(*cluster) for cluster in session]


def rejections(runs: int, size: int, moved: float, sessions: int) -> tuple[float, float]:
    """How often the sign-flip test, and McNemar's on cases, reject where runs move by chance."""
    rng = np.random.default_rng([runs, size, int(100 * moved)])
    ours = theirs = 0
    for _ in range(sessions):
        signs = np.where(rng.random(runs) < moved, rng.choice((-1, 1), runs), 0) * size
        ours += sign_flip_p(signs.tolist()) < 0.05
        lost, won = int(signs[signs > 0].sum()), int(-signs[signs < 0].sum())
        theirs += mcnemar(lost, won) < 0.05
    return ours / sessions, theirs / sessions


def mcnemar(lost: int, won: int) -> float:
    """Two-sided exact p-value of a split at least this uneven (McNemar 1947), of single cases."""
    changed = lost + won
    tail = sum(math.comb(changed, number) for number in range(min(lost, won) + 1))
    return min(1.0, 2 * tail / (1 << changed))


def losses(
    rng: np.random.Generator,
    sessions: int,
    sizes: Sequence[int],
    drop: float,
    flip: float,
    repeats: int,
    icc: float = 0.0,
) -> Counts:
    """What runs of these sizes lose in right answers, over cases and repeats, by session and run.

    A drop breaks cases: what was right is wrong, and the reverse; then each verdict flips.
    """
    cases = np.asarray(sizes)
    shape = (sessions, len(sizes))
    share = min(1.0, drop / (1 - 2 * flip))
    chance: float | npt.NDArray[np.float64] = share
    if icc and 0 < share < 1:
        both = (1 - icc) / icc
        chance = rng.beta(share * both, (1 - share) * both, shape)
    broken = rng.binomial(cases, chance, shape)
    before = rng.binomial(cases * repeats, 1 - flip, shape)
    after = rng.binomial((cases - broken) * repeats, 1 - flip)
    after += rng.binomial(broken * repeats, flip)
    lost: Counts = before - after
    return lost


def snapshot_failures(cases: int, flip: float, repeats: int, sessions: int) -> tuple[float, float]:
    """How often the majorities of an unchanged judge have a regression, simulated and foretold."""
    rng = np.random.default_rng([cases, repeats])
    wrong = rng.binomial(repeats, flip, (2, sessions, cases)) > repeats / 2
    failed = (~wrong[0] & wrong[1]).any(axis=1).mean()
    return float(failed), false_alarm_of_snapshot(cases, 2 * flip * (1 - flip), repeats)


def flicker_coverage(flip: float, repeats: int, sessions: int) -> float:
    """How often the interval of the flicker holds it, with 54 cases of 18 runs."""
    rng = np.random.default_rng([repeats, int(100 * flip)])
    hits = 0
    for scores in rng.binomial(1, flip, (sessions, 54, repeats)).tolist():
        cases = (RepeatedCase(place // 3, tuple(each)) for place, each in enumerate(scores))
        hits += holds(estimate_flicker(cases), 2 * flip * (1 - flip))
    return hits / sessions

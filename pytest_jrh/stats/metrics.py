"""Figures over results: only agree and disagree count (rules F1, J1)."""

from __future__ import annotations

import inspect
import random
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.models import JUDGED, UNSCORED, CaseResult
from pytest_jrh.stats.contradictions import reasoning_disagrees
from pytest_jrh.text import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

BUILT_IN_METRIC = "accuracy_score"
_RESAMPLES = 1_000
_FEWEST_RESAMPLES = 200
_MOST_DRAWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, or None and the reason why it cannot be computed."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean and 95% bounds of a bootstrap, all None where `reason` says why there is none."""

    mean: float | None = None
    lower: float | None = None
    upper: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class GroupStats:
    """Counts of one judge on one rubric of one test; `n` is the number of verdicts, agree plus
    disagree.

    `unverified` counts the cases, among all, whose label no verifier confirmed (rule A6), and
    `contradicted` the verdicts whose reasoning disagrees with their score. `ties` counts the
    disagreements without a score (rule M1).
    """

    suite: str = ""
    test: str = ""
    rubric: str = ""
    judge: str = ""
    n: int = 0
    agree: int = 0
    disagree: int = 0
    no_case: int = 0
    unscored: int = 0
    generated: int = 0
    unverified: int = 0
    contradicted: int = 0
    ties: int = 0

    @property
    def accuracy(self) -> float | None:
        """Agreement over verdicts; None without a verdict."""
        return self.agree / self.n if self.n else None


def accuracy(results: Iterable[CaseResult]) -> float | None:
    """Compute the share of verdicts that agree with their label; None without a verdict."""
    outcomes = Counter(result.outcome for result in results)
    judged = outcomes["agree"] + outcomes["disagree"]
    return outcomes["agree"] / judged if judged else None


def group_stats(results: Iterable[CaseResult]) -> list[GroupStats]:
    """Count outcomes per suite, test, rubric and judge, in the order in which the groups first
    appear.
    """
    groups: dict[tuple[str, str, str, str], Counter[str]] = {}
    for result in results:
        key = (result.suite, result.test, result.rubric_id, result.judge)
        outcomes = groups.setdefault(key, Counter())
        outcomes[result.outcome] += 1
        outcomes["unverified"] += result.verified is False
        outcomes["contradicted"] += reasoning_disagrees(result)
        outcomes["ties"] += result.outcome in JUDGED and result.score is None
    return [_stats(*key, outcomes) for key, outcomes in groups.items()]


def totals(stats: Iterable[GroupStats]) -> GroupStats:
    """Sum groups up; the names are empty."""
    groups = list(stats)
    return GroupStats(
        n=sum(group.n for group in groups),
        agree=sum(group.agree for group in groups),
        disagree=sum(group.disagree for group in groups),
        no_case=sum(group.no_case for group in groups),
        unscored=sum(group.unscored for group in groups),
        generated=sum(group.generated for group in groups),
        unverified=sum(group.unverified for group in groups),
        contradicted=sum(group.contradicted for group in groups),
        ties=sum(group.ties for group in groups),
    )


def metric_problem(name: str) -> str | None:
    """Why `metric: NAME` cannot be computed here, or None.

    Called before any model call (rule A10).
    """
    if name == BUILT_IN_METRIC:
        return None
    try:
        import sklearn.metrics
    except ImportError:
        return (
            f"the metric {name!r} needs scikit-learn: pip install 'pytest-jrh[sklearn]' (built "
            "in: accuracy_score)"
        )
    known = [
        known for known in sklearn.metrics.__all__ if _takes_labels(getattr(sklearn.metrics, known))
    ]
    if name in known:
        return None
    near = nearest(name, known)
    hint = f"; the nearest is {near!r}" if near else ""
    return f"{name!r} is not a scikit-learn metric that compares labels with verdicts{hint}"


def metric(name: str, expected: Sequence[int], scores: Sequence[int | None]) -> Figure:
    """Compute `accuracy_score`, or any metric of scikit-learn that takes true and predicted labels
    (rule J1).

    Metrics that average over classes use their default for labels 0 and 1, and "macro" on longer
    scales. A score of None is a tie: wrong in the accuracy, and no label for scikit-learn.
    """
    if not expected:
        return Figure(None, "no verdict was given")
    if name == BUILT_IN_METRIC:
        return Figure(sum(a == b for a, b in zip(expected, scores, strict=True)) / len(expected))
    if None in scores:
        return Figure(None, "repeats that tie have no score that this metric could take")
    problem = metric_problem(name)
    if problem:
        return Figure(None, problem)
    import sklearn.metrics

    function = getattr(sklearn.metrics, name)
    ordinal = not {*expected, *scores} <= {0, 1}
    options = (
        {"average": "macro"}
        if ordinal and "average" in inspect.signature(function).parameters
        else {}
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _figure(name, function(list(expected), list(scores), **options))
    except (ValueError, TypeError, ZeroDivisionError) as error:
        return Figure(None, f"{name} cannot be computed from these verdicts: {error}")


def bootstrap(results: Iterable[CaseResult], seed: int) -> Interval:
    """Resample source runs and give mean and percentile bounds of the accuracy (Efron and
    Tibshirani 1993, ch. 13).

    Whole runs are drawn, since cases of one run are not independent (rule J1). At most 1,000
    resamples, fewer for thousands of runs; the same seed gives the same figures.
    """
    runs: dict[tuple[str, str, int], list[int]] = {}
    for result in results:
        if result.outcome in JUDGED:
            counts = runs.setdefault((result.suite, result.run_id, result.epoch), [0, 0])
            counts[0] += result.outcome == "agree"
            counts[1] += 1
    if len(runs) < 2:  # noqa: PLR2004 - one value has no spread
        return Interval(
            reason="no verdict was given" if not runs else "all verdicts come from one source run"
        )
    tallies = [_Tally(*counts) for _, counts in sorted(runs.items())]
    if len({agree / judged for agree, judged in tallies}) == 1:
        # Runs that are all alike give one figure in every resample.
        figure = tallies[0].agree / tallies[0].judged
        return Interval(figure, figure, figure)
    import statistics

    figures = sorted(_resampled(tallies, seed))
    cuts = statistics.quantiles(figures, n=40, method="inclusive")
    return Interval(statistics.fmean(figures), cuts[0], cuts[-1])


class _Tally(NamedTuple):
    agree: int
    judged: int


def _resampled(tallies: Sequence[_Tally], seed: int) -> Iterator[float]:
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    rounds = max(_FEWEST_RESAMPLES, min(_RESAMPLES, _MOST_DRAWS // len(tallies)))
    # Both counts in one number, so that a resample is one sum: no sum of the lower part reaches the
    # upper.
    base = sum(tally.judged for tally in tallies) * len(tallies) + 1
    packed = [tally.agree * base + tally.judged for tally in tallies]
    for _ in range(rounds):
        agree, judged = divmod(sum(rng.choices(packed, k=len(packed))), base)
        yield agree / judged


def _stats(suite: str, test: str, rubric: str, judge: str, outcomes: Counter[str]) -> GroupStats:
    return GroupStats(
        suite,
        test,
        rubric,
        judge,
        n=outcomes["agree"] + outcomes["disagree"],
        agree=outcomes["agree"],
        disagree=outcomes["disagree"],
        no_case=outcomes["no_case"],
        unscored=sum(outcomes[outcome] for outcome in UNSCORED),
        generated=outcomes["generated"],
        unverified=outcomes["unverified"],
        contradicted=outcomes["contradicted"],
        ties=outcomes["ties"],
    )


def _takes_labels(function: Any) -> bool:
    if not inspect.isfunction(function):
        return False
    return list(inspect.signature(function).parameters)[:2] in (["y_true", "y_pred"], ["y1", "y2"])


def _figure(name: str, value: Any) -> Figure:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return Figure(None, f"{name} gives more than one number")
    return (
        Figure(number)
        if abs(number) < float("inf")
        else Figure(None, f"{name} is not defined for these verdicts")
    )

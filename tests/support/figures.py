"""Figures of cases that are written down run by run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan

from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import RubricScales
from pytest_jrh.stats import intervals
from pytest_jrh.stats.intervals import Estimate
from pytest_jrh.stats.statistics import Statistics, statistics_of
from pytest_jrh.stats.verdicts import Baseline, Comparison, Scope, Verdicts, compare


def describe(results: Iterable[CaseResult], scales: RubricScales | None = None) -> Statistics:
    """The figures of these results, taken together."""
    return statistics_of(Verdicts.of(results, scales))


def comparison_of(
    baseline: Baseline | None,
    results: Sequence[CaseResult],
    scope: Scope,
    scales: RubricScales | None = None,
) -> Comparison:
    """The results of a session beside the baseline."""
    return compare(baseline, results, Verdicts.of(results, scales), scope)


Pair = tuple[int, int]
Runs = Sequence[Sequence[Pair]]
"""Of each run the labels and answers."""


def as_columns(runs: Runs) -> tuple[list[Pair], list[int]]:
    """Labels with answers, and runs."""
    pairs = [pair for run in runs for pair in run]
    return pairs, [number for number, run in enumerate(runs) for _ in run]


def kappa_of(runs: Runs) -> Estimate:
    return intervals.estimate_kappa(*as_columns(runs))


def mean_error_of(runs: Runs) -> Estimate:
    pairs, codes = as_columns(runs)
    return intervals.estimate_mean([abs(answer - label) for label, answer in pairs], codes, (0, 4))


def bias_of(runs: Runs) -> Estimate:
    pairs, codes = as_columns(runs)
    return intervals.estimate_bias([answer - label for label, answer in pairs], codes, 4)


def share_of(tallies: Sequence[tuple[int, int]]) -> Estimate:
    """Of each run how many of how many are right."""
    return intervals.estimate_share(*marks(tallies))


def marks(tallies: Sequence[tuple[int, int]]) -> tuple[list[bool], list[int]]:
    """Which cases are right, and their runs."""
    are_right = [number < right for right, n in tallies for number in range(n)]
    return are_right, [number for number, (_, n) in enumerate(tallies) for _ in range(n)]


def ends(estimate: Estimate) -> tuple[float, float]:
    """The bounds, or what no comparison holds of."""
    return (
        nan if estimate.lower is None else estimate.lower,
        nan if estimate.upper is None else estimate.upper,
    )

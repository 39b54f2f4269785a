"""Figures of results, for the decision until it reads columns, too."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.skips import JUDGED
from pytest_jrh.stats import intervals, probes, statistics
from pytest_jrh.stats.intervals import Estimate, Repeats
from pytest_jrh.stats.probes import ProbeTable
from pytest_jrh.stats.verdicts import Coded, Verdicts


def with_verdict(results: Iterable[CaseResult]) -> list[CaseResult]:
    """The results that have a verdict to be compared with a label."""
    return [result for result in results if result.outcome in JUDGED]


def is_wrong(result: CaseResult) -> bool:
    """Whether a verdict is another than the label."""
    return result.outcome == "disagree"


def wrong_cases(results: Iterable[CaseResult]) -> tuple[str, ...]:
    """The ids of the cases whose verdicts are wrong."""
    return tuple(result.case_id for result in filter(is_wrong, results))


def is_ordered(results: Iterable[CaseResult]) -> bool:
    """Whether the answers of some are levels."""
    return any(result.scale.is_ordered for result in results)


def accuracy_of(results: Iterable[CaseResult]) -> Estimate:
    """The share of verdicts that are right."""
    return statistics.accuracy_of(Verdicts.of(results))


def answered(results: Iterable[CaseResult]) -> tuple[Verdicts, list[tuple[int, int]]]:
    """The results that have both, a label and an answer, and these."""
    known, pairs = Verdicts.of(results).answered
    return known, [(int(label), int(answer)) for label, answer in pairs]


def repeated_case(result: CaseResult, earlier: Sequence[int] = ()) -> tuple[Hashable, Repeats]:
    """The scores of a case, with those that the same judge gave the same case `earlier`."""
    scores = (*earlier, *result.complete_scores)
    return result.spec.cluster_id, Repeats(scores, result.scale.has_two)


def estimate_flicker(cases: Iterable[tuple[Hashable, Repeats]]) -> Estimate:
    """How often a judge contradicts itself."""
    clusters, repeats = [], []
    for cluster, of_case in cases:
        clusters.append(cluster)
        repeats.append(of_case)
    return intervals.estimate_flicker(Coded.of(repeats), clusters)


def probe_tables(results: Iterable[CaseResult]) -> tuple[ProbeTable, ...]:
    """The figures of probes."""
    return probes.probe_tables(Verdicts.of(results))

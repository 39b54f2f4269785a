"""For decision and limits until they read columns, too."""

from __future__ import annotations

from pytest_jrh.stats import intervals, probes, statistics
from pytest_jrh.stats.intervals import Repeats
from pytest_jrh.stats.verdicts import Coded, Verdicts


def with_verdict(results):
    return [r for r in results if r.outcome in ("agree", "disagree")]


def is_wrong(result):
    return result.outcome == "disagree"


def wrong_cases(results):
    return tuple(r.case_id for r in results if is_wrong(r))


def is_ordered(results):
    return any(r.scale.is_ordered for r in results)


def accuracy_of(results):
    return statistics.accuracy_of(Verdicts.of(results))


def share_of(results, counts, level=0.95):
    results = [*results]
    return intervals.estimate_share(
        [counts(r) for r in results], [r.spec.cluster_id for r in results], level
    )


def answered(results):
    known, pairs = Verdicts.of(results).answered
    return known, [(int(a), int(b)) for a, b in pairs]


def repeated_case(result, earlier=()):
    return result.spec.cluster_id, Repeats(
        (*earlier, *result.complete_scores), result.scale.has_two
    )


def estimate_flicker(cases):
    cases = [*cases]
    return intervals.estimate_flicker(Coded.of([c[1] for c in cases]), [c[0] for c in cases])


def probe_tables(results):
    return probes.probe_tables(Verdicts.of(results))

"""Figures, gate and panel as JSON values; `schema/report.schema.json` describes them.

A figure is `{value, reason}`, a share `{count, n, value, reason}`; `value` is null exactly where
`reason` is text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.model import Mode
from pytest_jrh.reports.gate import (
    certainty_sentences,
)
from pytest_jrh.stats.diagnosis import all_warnings
from pytest_jrh.stats.figures import keys_of
from pytest_jrh.stats.intervals import LEVEL
from pytest_jrh.stats.statistics import flickering

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.stats.baseline import Comparison
    from pytest_jrh.stats.changes import SetChange
    from pytest_jrh.stats.decision import Decision, Reason
    from pytest_jrh.stats.formulas import ConfusionMatrix, Estimate
    from pytest_jrh.stats.limits import Limit
    from pytest_jrh.stats.panels import JudgePair, Panel, PanelVote
    from pytest_jrh.stats.statistics import Statistics, StatisticsTable


def table_data(table: StatisticsTable) -> dict[str, Any]:
    """The figures of one judge over all and per rubric, and `warnings`."""
    rubrics = {level.counts.rubric: statistics_data(level) for level in table.rubrics}
    warnings = all_warnings(table.overall, table.rubrics, table.overall.mode)
    return {"overall": statistics_data(table.overall), "rubrics": rubrics, "warnings": warnings}


def statistics_data(statistics: Statistics) -> dict[str, Any]:
    """Every figure of one set of results."""
    counts = statistics.counts
    return {
        "n": counts.n,
        "agree": counts.agree,
        "disagree": counts.disagree,
        "no_case": counts.no_case,
        "unscored": counts.unscored,
        "generated": counts.generated,
        "unverified_labels": counts.unverified,
        "reasoning_disagrees": counts.contradicted,
        "ties": counts.ties,
        "accuracy": _figure(statistics.accuracy),
        "interval": interval_data(statistics.accuracy),
        "flicker": _flicker(statistics.flicker),
        "binary": _mode_data(statistics, "binary"),
        "ordinal": _mode_data(statistics, "ordinal"),
    }


def flickering_data(results: Iterable[CaseResult]) -> list[dict[str, Any]]:
    """The cases that the judge gave different scores."""
    cases = []
    for result in flickering(results):
        scores = list(result.all_scores)
        cases.append({"case": result.case_id, "scores": scores, "score": result.score})
    return cases


def _flicker(flicker: Estimate) -> dict[str, Any]:
    return {
        **_figure(flicker),
        "cases": flicker.n,
        "flickering": flicker.count,
        "interval": interval_data(flicker),
    }


def interval_data(share: Estimate) -> dict[str, Any]:
    """The interval of a share."""
    method = None if share.lower is None else "wilson_effective_n"
    return {**bounds_data(share), "method": method}


def decision_data(decision: Decision) -> dict[str, Any]:
    """The decision with its figures and the cases, by id."""
    comparison = decision.comparison
    return {
        "word": decision.word or None,
        "headline": decision.headline,
        "passed": decision.passed,
        "active": decision.active,
        "beside": list(decision.beside),
        "reasons": list(map(_reason, decision.reasons)),
        "certainty": list(certainty_sentences(decision)),
        "judged": decision.judged,
        "compared": decision.compared,
        "of_baseline": decision.of_baseline,
        "sets": list(map(_set, decision.sets)),
        "limits": list(map(_limit, decision.limits)),
        "read_first": list(decision.read_first),
        "new_wrong": list(decision.new_wrong),
        "accepted": list(decision.accepted),
        "never_reported": list(decision.never_reported),
        "unscored": dict(decision.unscored),
        "update_command": decision.update_command or None,
        "baseline": None if comparison is None else _comparison(comparison, decision),
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "word": reason.word,
        "kind": reason.kind,
        "text": reason.text,
        "judge": reason.judge or None,
        "cases": list(reason.cases),
    }


def _limit(limit: Limit) -> dict[str, Any]:
    return {
        "rule": limit.rule,
        "limit": limit.limit,
        "figure": _figure(limit.figure),
        "n": limit.figure.n,
        "broken": limit.broken,
        "by_flicker": limit.by_flicker,
        "unproven": limit.unproven,
        "probe": limit.probe or None,
        "judge": limit.judge or None,
        "cases": list(limit.cases),
    }


def _comparison(comparison: Comparison, decision: Decision) -> dict[str, Any]:
    return {
        "judge_changed": sum(not pair.same_judge for pair in comparison.all_pairs),
        "regressions": list(comparison.regressions),
        "fixes": list(comparison.fixes),
        "still_wrong": list(comparison.still_wrong),
        "not_comparable": dict(comparison.not_comparable),
        "flickered": sorted(decision.flickered),
    }


def _set(change: SetChange) -> dict[str, Any]:
    return {
        "set": change.kind,
        "name": change.name or None,
        "judge": change.judge or None,
        "n": change.n,
        "runs": change.runs,
        "exchanged": "runs" if change.by_runs else "cases",
        "before": change.before._asdict(),
        "now": change.now._asdict(),
        "lost": list(change.lost),
        "won": list(change.won),
        "right_before": change.right_before,
        "p_value": change.p_value,
        "adjusted_p_value": change.adjusted,
        "other_runs": change.bound if math.isfinite(change.bound) else None,
    }


def panel_data(panel: Panel) -> dict[str, Any]:
    """How the judges of a panel agree, and their vote on each case."""
    return {
        "judges": list(panel.judges),
        "accuracy_over_all": share_data(panel.accuracy),
        "intervals": {
            "accuracy_over_all": bounds_data(panel.accuracy),
        },
        "pairs": list(map(_pair, panel.pairs)),
        "votes": list(map(_vote, panel.votes)),
    }


def _pair(pair: JudgePair) -> dict[str, Any]:
    return {
        "judges": list(pair.judges),
        "agreement": share_data(pair.agreement),
        "kappa": _figure(pair.kappa),
        "agreement_interval": bounds_data(pair.agreement),
        "kappa_interval": bounds_data(pair.kappa),
        "disagreements": list(pair.disagreements),
    }


def _vote(vote: PanelVote) -> dict[str, Any]:
    return {
        "case": vote.case,
        "test": vote.test,
        "rubric": vote.rubric_id,
        "expected": vote.expected,
        "votes": [{"score": score, "judges": number} for score, number in vote.votes],
        "score": vote.score,
        "reason": vote.reason,
    }


def _mode_data(statistics: Statistics, mode: Mode) -> dict[str, Any] | None:
    matrix = statistics.matrices.get(mode)
    if matrix is None:
        return None
    figures, intervals = {}, {}
    for column in keys_of(mode):
        estimate = statistics.figures[column.key]
        data = share_data if column.kind == "share" else _figure
        figures[column.key] = data(estimate)
        intervals[column.key] = bounds_data(estimate)
    return {"confusion_matrix": _matrix(matrix), **figures, "intervals": intervals}


def bounds_data(estimate: Estimate) -> dict[str, Any]:
    """The 95% interval of a figure."""
    return {
        "lower": estimate.lower,
        "upper": estimate.upper,
        "level": LEVEL,
        "reason": estimate.interval_reason,
    }


def _figure(estimate: Estimate) -> dict[str, Any]:
    return {"value": estimate.value, "reason": estimate.reason}


def share_data(estimate: Estimate) -> dict[str, Any]:
    """A share of cases, without its interval."""
    return {"count": estimate.count, "n": estimate.n, **_figure(estimate)}


def _matrix(matrix: ConfusionMatrix) -> dict[str, Any]:
    return {"labels": list(matrix.labels), "counts": [list(row) for row in matrix.counts]}

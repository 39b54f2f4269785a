"""The two JSON summaries: of the cases in a folder, and of a judge's results (rules H1, H2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_jrh.files import file_name_part
from pytest_jrh.models import JUDGED, UNSCORED, CaseResult
from pytest_jrh.reporting.json_report import decision_data, panel_data, table_data
from pytest_jrh.reporting.session_results import scales
from pytest_jrh.stats.metrics import GroupStats, bootstrap, group_stats, metric, totals
from pytest_jrh.stats.spending import total_spending
from pytest_jrh.stats.statistics import tabulate
from pytest_jrh.text import one_line, shortened

if TYPE_CHECKING:
    from pytest_jrh.artifacts.spools import RecordIndex
    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.stats.panels import Panel
    from pytest_jrh.suite.suite import JudgeSettings, Suite

_LONGEST_REASON = 200


def perturbations_summary(
    previous: Mapping[str, Any], index: RecordIndex, results: Iterable[CaseResult]
) -> dict[str, Any]:
    """Count the cases in a folder per suite, test and rubric.

    `cases`, `verified` and `human_reviewed` count the records that are there; `no_case` (with
    reasons) and `unscored` (by outcome) are those of the last run that asked for a rubric, so other
    suites' and deselected rubrics' are taken over from the `previous` summary. `results` holds one
    result per generated case, and no `unscored` one whose case was made.
    """
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for entry in index.entries.values():
        group = groups.setdefault((entry.suite, entry.test, entry.rubric), _no_cases())
        group["cases"] += 1
        group["verified"] += entry.verified
        group["human_reviewed"] += entry.human_reviewed
    asked: set[tuple[str, str, str]] = set()
    for result in results:
        key = (result.suite, result.test, result.rubric_id)
        asked.add(key)
        group = groups.setdefault(key, _no_cases())
        if result.outcome == "no_case":
            group["no_case"] += 1
            reasons = group["no_case_reasons"]
            reason = shortened(one_line(result.detail), _LONGEST_REASON) or "no reason given"
            reasons[reason] = reasons.get(reason, 0) + 1
        elif result.outcome in UNSCORED:
            group["unscored"][result.outcome] = group["unscored"].get(result.outcome, 0) + 1
    for key, old in _groups_of(previous):
        if key not in asked:
            group = groups.setdefault(key, _no_cases())
            group.update(
                {
                    name: old[name]
                    for name in ("no_case", "no_case_reasons", "unscored")
                    if name in old
                }
            )
    suites: dict[str, Any] = {}
    for (suite, test, rubric), group in groups.items():
        suites.setdefault(suite, {}).setdefault(test, {})[rubric] = group
    return {"format": 1, "records_of_other_tools": len(index.foreign), "suites": suites}


def judge_report(
    suite: Suite,
    judge: JudgeSettings,
    results: Sequence[CaseResult],
    seed: int | None = None,
    *,
    decision: GateDecision | None = None,
    panel: Panel | None = None,
    session: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Summarize one judge's results: RAND's keys with RAND's strings, and ours as numbers beside
    them.

    Figures that cannot be computed are null, with the reason. The bootstrap is seeded with the
    suite's sampling seed where `seed` is None. `decision` is the gate's about the whole suite, and
    `panel` all its judges taken together. `session` says how many of the suite's cases the last
    session ran. `schema/report.schema.json` describes the file.
    """
    levels = {(suite.name, rubric.id): rubric for rubric in suite.rubrics}
    seed = suite.source.sampling_seed if seed is None else seed
    spending = total_spending(results)
    tests = [test.name for test in suite.tests if test.evaluate]
    return {
        "format": 1,
        "meta_data": {
            "module_name": suite.module_name,
            "dataset": suite.dataset_name,
            "autograder_model": judge.label,
            "suite": suite.name,
            "judge": judge.name,
            "mode": suite.mode,
        },
        "all_metrics": {
            test: _test_report(
                suite.output.metric, [result for result in results if result.test == test], seed
            )
            for test in tests
        },
        "spending": {
            "input_tokens": spending.usage.input_tokens,
            "output_tokens": spending.usage.output_tokens,
            "cost": None if spending.unpriced else spending.cost,
            "cost_reason": f"{spending.unpriced} calls have no known price"
            if spending.unpriced
            else None,
        },
        "statistics": table_data(tabulate(results, seed, scales(levels))),
        "gate": None if decision is None else decision_data(decision),
        "panel": None if panel is None else panel_data(panel),
        "session": session
        or {"cases": len(results), "kept": 0, "of": len(results), "interrupted": False},
    }


def judge_file_names(suite: Suite) -> dict[str | None, str]:
    """Give each judge of the suite the part of its file names: its model, and its name where models
    are shared.
    """
    names: dict[str | None, str] = {}
    models = [file_name_part(judge.label) for judge in suite.judges]
    for judge, model in zip(suite.judges, models, strict=True):
        shared = sum(model.lower() == other.lower() for other in models) > 1
        name = f"{model}_{file_name_part(judge.name or 'judge')}" if shared else model
        taken = {other.lower() for other in names.values()}
        numbered = (f"{name}_{number}" for number in range(2, len(models) + 2))
        names[judge.name] = (
            name
            if name.lower() not in taken
            else next(n for n in numbered if n.lower() not in taken)
        )
    return names


def _test_report(metric_name: str, results: Sequence[CaseResult], seed: int) -> dict[str, Any]:
    judged = [result for result in results if result.outcome in JUDGED]
    groups = group_stats(results)
    total = totals(groups)
    figure = metric(
        metric_name,
        [result.expected for result in judged if result.expected is not None],
        [result.score for result in judged if result.score is not None],
    )
    interval = bootstrap(judged, seed)
    return {
        "metrics": {
            "pass_rate": None if total.accuracy is None else f"{total.accuracy:.2%}",
            "passed": total.agree,
            "total": total.n,
            "metric_type": metric_name,
            "metric_score": figure.value,
            "metric_reason": figure.reason,
            "accuracy": total.accuracy,
        },
        "bootstrap": {
            "mean": interval.mean,
            "lower_ci": interval.lower,
            "upper_ci": interval.upper,
            "reason": interval.reason,
            "of": "accuracy",
            "seed": seed,
        },
        "outcomes": dict(sorted(Counter(result.outcome for result in results).items())),
        "unverified_labels": total.unverified,
        "rubrics": {group.rubric: _figures(group) for group in groups},
    }


def _figures(group: GroupStats) -> dict[str, Any]:
    return {
        "n": group.n,
        "agree": group.agree,
        "disagree": group.disagree,
        "no_case": group.no_case,
        "unscored": group.unscored,
        "unverified_labels": group.unverified,
        "accuracy": group.accuracy,
    }


def _no_cases() -> dict[str, Any]:
    return {
        "cases": 0,
        "verified": 0,
        "human_reviewed": 0,
        "no_case": 0,
        "no_case_reasons": {},
        "unscored": {},
    }


def _groups_of(
    summary: Mapping[str, Any],
) -> Iterable[tuple[tuple[str, str, str], Mapping[str, Any]]]:
    """Walk a summary that may be anything: a person may have edited it, or RAND's harness written
    it.
    """
    for suite, tests in _items(summary.get("suites")):
        for test, rubrics in _items(tests):
            for rubric, group in _items(rubrics):
                if isinstance(group, Mapping):
                    yield (suite, test, rubric), group


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, Mapping) else ()

"""The files of a suite: the JSON report of each judge, in RAND's keys and ours, and the tables of
its cases as they were made, of the results of each judge, and of all figures with their intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.files import file_name_part
from pytest_jrh.core.model import JUDGED, CaseResult
from pytest_jrh.core.stages import EDITOR
from pytest_jrh.reports.case_facts import (
    SYNTHETIC_COLUMNS,
    result_facts,
    result_row,
    synthetic_row,
)
from pytest_jrh.reports.grounds import label_data
from pytest_jrh.reports.json_values import (
    decision_data,
    flickering_data,
    interval_data,
    panel_data,
    table_data,
)
from pytest_jrh.reports.probes import probe_data
from pytest_jrh.reports.provenance import origin_data
from pytest_jrh.reports.report import CaseTable, Report
from pytest_jrh.reports.session import scales
from pytest_jrh.reports.shown import shown_count, shown_data
from pytest_jrh.reports.spending import total_spending
from pytest_jrh.reports.topics import altered_cases, contradicting_cases, reworded_rubrics
from pytest_jrh.stats.columns import GroupStats, ResultColumns, group_stats
from pytest_jrh.stats.metrics import metric
from pytest_jrh.stats.probes import probe_tables
from pytest_jrh.stats.statistics import accuracy_of, tabulate
from pytest_jrh.store.tables import table_format

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Rubric, Spending
    from pytest_jrh.judges.judge import JudgeSettings
    from pytest_jrh.reports.report import MadeCase, SuiteMaterial
    from pytest_jrh.store.tables import TableRow


class JudgeReport(Report):
    """`{model}_report.json`, one for each judge of a suite."""

    name = "JSON"

    def documents(self, suite: SuiteMaterial) -> Iterator[tuple[Path, Any]]:
        names = judge_file_names(suite.suite)
        for judge in suite.suite.judges:
            path = suite.suite.results_dir / f"{names[judge.name]}_report.json"
            results = []
            for result in suite.results:
                if result.judge == (judge.name or "") and result.outcome != "generated":
                    results.append(result)
            yield path, judge_report(suite, judge, results)


def judge_report(
    material: SuiteMaterial,
    judge: JudgeSettings,
    results: Sequence[CaseResult],
) -> dict[str, Any]:
    """Summarize one judge's results: RAND's keys with RAND's strings, and ours as numbers beside
    them.

    Figures that cannot be computed are null, with the reason. `schema/report.schema.json` describes
    the file.
    """
    suite, run = material.suite, material.run
    levels = {(suite.name, rubric.id): rubric for rubric in suite.rubrics}
    plain = [result for result in results if not result.spec.derived]
    metrics: dict[str, Any] = {}
    for test in suite.tests:
        if test.evaluate and not KINDS[test.name].derived:
            of_test = [result for result in plain if result.spec.test == test.name]
            metrics[test.name] = _test_report(suite.metric, of_test)
    reworded = {}
    for (_, rubric), cases in reworded_rubrics(results).items():
        reworded[rubric] = _ids(cases)
    return {
        "format": 2,
        "meta_data": {
            "module_name": suite.module_name,
            "dataset": suite.dataset_name,
            "autograder_model": judge.label,
            "suite": suite.name,
            "judge": judge.name,
            "mode": suite.mode,
        },
        "provenance": None if run.origin is None else origin_data(run.origin, judge.name or ""),
        "all_metrics": metrics,
        "spending": _spending(total_spending(results)),
        "statistics": table_data(tabulate(results, scales(levels))),
        "probes": probe_data(probe_tables(results)),
        "repeats": judge.repeats,
        "flickering": flickering_data(plain),
        "labels": label_data(judge.name or "", plain, run.grounds),
        "gate": None if material.decision is None else decision_data(material.decision),
        "panel": None if material.panel is None else panel_data(material.panel),
        "reworded": reworded,
        "altered": _ids(altered_cases(results)),
        "contradicting": list(map(_ids, contradicting_cases(results))),
        **shown_data(plain),
        "session": material.session,
    }


def _ids(results: Iterable[CaseResult]) -> list[str]:
    return [result.case_id for result in results]


def _spending(spending: Spending) -> dict[str, Any]:
    unpriced = f"{spending.unpriced} calls have no known price" if spending.unpriced else None
    return {
        "input_tokens": spending.usage.input_tokens,
        "output_tokens": spending.usage.output_tokens,
        "cost": None if unpriced else spending.cost,
        "cost_reason": unpriced,
    }


def judge_file_names(suite: Suite) -> dict[str | None, str]:
    """What names each judge in file names: its model, with its name where models are shared."""
    names: dict[str | None, str] = {}
    models = [file_name_part(judge.label) for judge in suite.judges]
    counts = Counter(map(str.lower, models))
    taken = set()
    for judge, model in zip(suite.judges, models, strict=True):
        base = model
        if counts[model.lower()] > 1:
            base = f"{model}_{file_name_part(judge.name or 'judge')}"
        name, number = base, 1
        while name.lower() in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name.lower())
        names[judge.name] = name
    return names


def _pass_rate(accuracy: float) -> str:
    """RAND's text, which is a number: never 100.00% where a case is wrong."""
    return f"{min(accuracy, 0.9999) if accuracy < 1 else accuracy:.2%}"


def _test_report(metric_name: str, results: Sequence[CaseResult]) -> dict[str, Any]:
    judged = [result for result in results if result.outcome in JUDGED]
    groups = group_stats(results)
    total = ResultColumns.of(results).counts()
    figure = metric(
        metric_name,
        [result.label for result in judged if result.label is not None],
        [result.score for result in judged if result.label is not None],
    )
    accuracy = accuracy_of(judged)
    return {
        "metrics": {
            "pass_rate": None if total.accuracy is None else _pass_rate(total.accuracy),
            "passed": total.agree,
            "total": total.n,
            "metric_type": metric_name,
            "metric_score": figure.value,
            "metric_reason": figure.reason,
            "accuracy": total.accuracy,
        },
        "interval": interval_data(accuracy),
        "rand": {
            "bootstrap": {
                "mean": accuracy.value,
                "lower_ci": accuracy.lower,
                "upper_ci": accuracy.upper,
                "reason": accuracy.interval_reason,
                "of": "accuracy",
            },
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


SYNTHETIC_NAME = "synthetic_agent_perturbation"


class CaseTables(Report):
    """CSV or XLSX, as the config's `output_file_format` says."""

    name = "CSV and XLSX"

    def tables(self, suite: SuiteMaterial) -> Iterator[CaseTable]:
        folder = suite.suite.results_dir
        suffix, _ = table_format(suite.suite.table_format)
        editor = suite.suite.stages.get(EDITOR.name)
        yield CaseTable(
            folder / f"{SYNTHETIC_NAME}.{suffix}",
            SYNTHETIC_COLUMNS,
            _synthetic(editor.temperature if editor is not None else None),
        )
        rubrics = {rubric.id: rubric for rubric in suite.suite.rubrics}
        evaluated = sorted(test.name for test in suite.suite.tests if test.evaluate)
        for test in evaluated:
            derived = KINDS[test].derived
            for judge, name in judge_file_names(suite.suite).items():
                path = folder / f"{test}_results_{name}.{suffix}"
                facts = result_facts(
                    repeated=suite.suite.repeats_of(judge) > 1,
                    derived=derived,
                    shown=_is_shown_known(suite.results, test, judge or ""),
                )
                columns = [fact.name for fact in facts]
                yield CaseTable(path, columns, _results(test, judge, rubrics))


def _is_shown_known(results: Iterable[CaseResult], test: str, judge: str) -> bool:
    """Whether it is known of a case what its judge was shown."""
    of_test = [result for result in results if (result.spec.test, result.judge) == (test, judge)]
    return any(shown_count(of_test, whole=whole).known for whole in (False, True))


def _synthetic(temperature: float | None) -> Callable[[MadeCase], Iterator[TableRow]]:
    def rows(made: MadeCase) -> Iterator[TableRow]:
        if made.case is not None:
            case = made.case
            if any(result.extra.altered for result in made.results):
                case = replace(case, verified=False)
            yield synthetic_row(case, temperature=temperature, transcript=made.transcript)

    return rows


def _results(
    test: str, judge: str | None, rubrics: Mapping[str, Rubric]
) -> Callable[[MadeCase], Iterator[TableRow]]:
    def rows(made: MadeCase) -> Iterator[TableRow]:
        if made.spec.test != test:
            return
        for result in made.results:
            if result.judge == (judge or ""):
                yield result_row(
                    result,
                    made.case,
                    transcript=made.transcript,
                    rubric=rubrics.get(result.spec.rubric_id) if result.extra.reworded else None,
                )

    return rows

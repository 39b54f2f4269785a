"""The tables of a suite: its cases as they were made, the results of each judge, and all figures
with their intervals (rule H2).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from pytest_jrh.artifacts.case_columns import (
    PROBE_COLUMNS,
    REPEAT_COLUMNS,
    RESULT_COLUMNS,
    SYNTHETIC_COLUMNS,
    result_row,
    synthetic_row,
)
from pytest_jrh.artifacts.tables import table_format
from pytest_jrh.kinds import KINDS
from pytest_jrh.reporting.grounds.listed import label_rows
from pytest_jrh.reporting.judge_report import judge_file_names
from pytest_jrh.reporting.report import CaseTable, Report, SuiteTable
from pytest_jrh.reporting.session_results import scales
from pytest_jrh.stages import EDITOR
from pytest_jrh.stats.named import FIGURE_COLUMNS, figure_rows
from pytest_jrh.stats.statistics import tabulate
from pytest_jrh.suite.ids import perturbed_idx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_jrh.artifacts.tables import TableRow
    from pytest_jrh.models import Rubric
    from pytest_jrh.reporting.report import MadeCase, SuiteMaterial

FIGURES_NAME = "figures"
SYNTHETIC_NAME = "synthetic_agent_perturbation"


class CaseTables(Report):
    """CSV or XLSX, as the config's `output_file_format` says."""

    name = "CSV and XLSX"

    def suite_tables(self, suite: SuiteMaterial) -> Iterator[SuiteTable]:
        suffix, _ = table_format(suite.suite.output.format)
        scores = scales({(suite.suite.name, rubric.id): rubric for rubric in suite.suite.rubrics})
        results = [result for _, result in suite.results if not result.derived]
        table = tabulate(results, scores)
        yield SuiteTable(
            suite.suite.output.dir / f"{FIGURES_NAME}.{suffix}",
            FIGURE_COLUMNS,
            chain(figure_rows(table), label_rows(results, suite.grounds)),
        )

    def tables(self, suite: SuiteMaterial) -> Iterator[CaseTable]:
        folder = suite.suite.output.dir
        suffix, _ = table_format(suite.suite.output.format)
        editor = suite.suite.generation.stages.get(EDITOR.name)
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
                repeated = REPEAT_COLUMNS if suite.suite.repeats_of(judge) > 1 else ()
                columns = (*RESULT_COLUMNS, *repeated, *(PROBE_COLUMNS if derived else ()))
                yield CaseTable(path, columns, _results(test, judge, rubrics))


def _synthetic(temperature: float | None) -> Callable[[MadeCase], Iterator[TableRow]]:
    def rows(case: MadeCase) -> Iterator[TableRow]:
        if case.record is not None:
            record = case.record
            if any(result.altered for _, result in case.results):
                record = {**record, "verified": False}
            yield synthetic_row(record, temperature=temperature, transcript=case.transcript)

    return rows


def _results(
    test: str, judge: str | None, rubrics: Mapping[str, Rubric]
) -> Callable[[MadeCase], Iterator[TableRow]]:
    def rows(case: MadeCase) -> Iterator[TableRow]:
        if case.spec.test != test:
            return
        for name, result in case.results:
            if name == judge:
                yield result_row(
                    result,
                    case.record,
                    perturbed_idx=perturbed_idx(case.spec),
                    transcript=case.transcript,
                    rubric=rubrics.get(result.rubric_id) if result.reworded else None,
                )

    return rows

"""What a suite leaves on disk at the end of a session, written by the controller alone (rules
H).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import yaml

from pytest_jrh.artifacts.earlier import earlier_results
from pytest_jrh.artifacts.outputs import Outputs
from pytest_jrh.artifacts.records import canonical_json, json_value
from pytest_jrh.artifacts.sinks import Sink
from pytest_jrh.artifacts.spools import RecordIndex
from pytest_jrh.artifacts.stored import RESULTS_NAME, stored_data
from pytest_jrh.models import CaseSpec
from pytest_jrh.redact import without_credentials
from pytest_jrh.reporting.report import SuiteMaterial
from pytest_jrh.reporting.reports import REPORTS
from pytest_jrh.reporting.suite_files.assembling import Assembled, Assembler, Item, write_summaries
from pytest_jrh.reporting.suite_files.case_files import CaseFiles
from pytest_jrh.stats.panels import panels
from pytest_jrh.suite.ids import case_id, generation_id
from pytest_jrh.transcript import storable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.artifacts.earlier import SuiteCases
    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.redact import Redactor
    from pytest_jrh.reporting.suite_files.run import SuiteRun
    from pytest_jrh.suite.suite import Suite

CONFIG_NAME = "config_resolved.yml"


@dataclass(frozen=True, slots=True)
class Written:
    """What `write_suite_outputs` did: files that are there now, and what went wrong, as sentences.

    `keep_spools` says that some made cases are in the spools alone, which must then not be deleted.
    `records` says where the cases of this session lie, rejected ones too, for reports to read;
    without a JSONL that is in the spools. `failed` says that something is missing on the disk that
    should be there.
    """

    paths: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    keep_spools: bool = False
    records: RecordIndex = field(default_factory=RecordIndex)
    failed: bool = False


def write_suite_outputs(
    run: SuiteRun,
    redactor: Redactor,
    decision: GateDecision | None = None,
    *,
    interrupted: bool = False,
) -> Written:
    """Write everything of rules H1 and H2 for one suite, streaming over the records.

    `decision` is what the gate says of the suite. A file that cannot be written becomes a sentence,
    and the others are written; files of unchanged content are not written again.
    """
    suite, cases = run.suite, run.cases
    latest = {result.case_id: result for result in run.results}
    items = [Item(spec, generation_id(spec), latest.get(case_id(spec))) for spec in run.specs]
    outputs = Outputs(redactor)
    assembled = Assembler(suite, outputs, frozen=run.frozen, cases=cases).assemble(
        items, run.spools
    )
    if cases is not None:
        items = _with_earlier(suite, cases, items, assembled, outputs)
    write_summaries(suite, items, assembled, outputs)
    material = replace(
        _material(suite, items, decision, cases, interrupted=interrupted),
        grounds=run.grounds,
        origin=run.origin,
    )
    places = CaseFiles(suite, assembled, outputs).write(items, material)
    _write_reports(material, outputs)
    _write_results(suite, items, outputs)
    _write_config(suite, outputs)
    return Written(
        tuple(outputs.paths),
        tuple(outputs.problems),
        assembled.keep_spools,
        RecordIndex.joined([RecordIndex(places), assembled.rejected]),
        outputs.failed,
    )


def _with_earlier(
    suite: Suite,
    cases: SuiteCases,
    items: Sequence[Item],
    assembled: Assembled,
    outputs: Outputs,
) -> list[Item]:
    """Put what earlier sessions found out about the other cases beside this one's results, in the
    suite's order.
    """
    folders = {test.name: test.output_dir for test in suite.tests}
    own = {case_id(item.spec): item for item in items}
    ran = {case: item.result for case, item in own.items() if item.result is not None}
    with contextlib.ExitStack() as stack:
        readers = {
            folder: stack.enter_context(index.reading())
            for folder, index in assembled.indexes.items()
        }

        def record_of(spec: CaseSpec) -> Mapping[str, Any] | None:
            return readers[folders[spec.test]](generation_id(spec))

        earlier = earlier_results(suite, cases, ran, record_of)
    outputs.problems += earlier.notes
    merged = dict(own)
    for case, result in earlier.results.items():
        spec = cases.specs[case]
        merged[case] = Item(spec, generation_id(spec), result, kept=True)
    return [merged[case] for case in cases.specs if case in merged]


def _material(
    suite: Suite,
    items: Sequence[Item],
    decision: GateDecision | None,
    cases: SuiteCases | None,
    *,
    interrupted: bool,
) -> SuiteMaterial:
    results = [(item.spec.judge, item.result) for item in items if item.result is not None]
    ran = sum(item.result is not None and not item.kept for item in items)
    return SuiteMaterial(
        suite=suite,
        results=results,
        decision=decision,
        panel=next(iter(panels(result for _, result in results)), None),
        # The gate decided about the cases of this session alone.
        session={
            "cases": ran,
            "kept": sum(item.kept for item in items),
            "of": ran if cases is None else len(cases.specs),
            "interrupted": interrupted,
        },
    )


def _write_reports(material: SuiteMaterial, outputs: Outputs) -> None:
    for report in REPORTS:
        for table in report.suite_tables(material):
            with Sink(table.path, table.columns, outputs) as add:
                for row in table.rows:
                    add(row)
        for path, value in report.documents(material):
            outputs.write_json(path, value)


def _write_results(suite: Suite, items: Sequence[Item], outputs: Outputs) -> None:
    lines = []
    for item in items:
        if item.result is not None:
            stored = stored_data(item.result, config=suite.key, kept=item.kept)
            lines.append(canonical_json(outputs.redactor.value(stored)) + "\n")
    outputs.write(suite.output.dir / RESULTS_NAME, "".join(lines))


def _write_config(suite: Suite, outputs: Outputs) -> None:
    resolved = without_credentials(json_value(suite.resolved), outputs.redactor)
    clean = storable(outputs.redactor.value(resolved))[0]
    text = yaml.safe_dump(clean, sort_keys=False, allow_unicode=True, width=100)
    outputs.write(suite.output.dir / CONFIG_NAME, text)

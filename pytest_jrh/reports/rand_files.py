"""The files that RAND's harness writes, for a config of RAND's or with `output.rand`: tables of the
cases as they were made and of each judge's results, a JSON report of each judge, a summary of the
made cases, and a debug bundle of each case that somebody may want to look at.

Tables and bundles are made in one pass, which reads each record once.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import atomic_write, file_name_part
from pytest_jrh.core.ids import artifact_stem, perturbed_idx
from pytest_jrh.core.model import JUDGED, SHORT_NAMES, UNSCORED, CaseResult
from pytest_jrh.core.stages import EDITOR
from pytest_jrh.core.text import counted, one_line, shortened, visible
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.reports.case_facts import verifier_score
from pytest_jrh.reports.json_values import (
    decision_data,
    flickering_data,
    interval_data,
    label_data,
    panel_data,
    table_data,
)
from pytest_jrh.reports.probes import probe_data
from pytest_jrh.reports.provenance import origin_data
from pytest_jrh.reports.session import scales, total_spending
from pytest_jrh.reports.topics import (
    altered_cases,
    contradicting_cases,
    reworded_rubrics,
    shown_count,
    shown_data,
    state_text,
)
from pytest_jrh.stats.formulas import metric
from pytest_jrh.stats.intervals import grouped
from pytest_jrh.stats.panels import panels
from pytest_jrh.stats.probes import probe_tables
from pytest_jrh.stats.statistics import Counts, accuracy_of, tabulate
from pytest_jrh.store.outputs import cause, table_bytes
from pytest_jrh.store.records import to_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import (
        Case,
        CaseSpec,
        Edit,
        Message,
        Rubric,
        ScoreLevel,
        Spending,
    )
    from pytest_jrh.reports.session import SuiteRun
    from pytest_jrh.reports.suite_files import Assembler, Item
    from pytest_jrh.stats.decision import Decision
    from pytest_jrh.stats.panels import Panel
    from pytest_jrh.store.outputs import Columns, Outputs, TableRow
    from pytest_jrh.store.spools import RecordIndex


def write_rand_files(
    run: SuiteRun,
    items: Sequence[Item],
    assembled: Assembler,
    decision: Decision | None,
    outputs: Outputs,
    *,
    interrupted: bool,
) -> None:
    """Write all of them; what cannot be written is a sentence, and the others are written."""
    suite = run.suite
    write_summaries(suite, items, assembled, outputs)
    results = [item.result for item in items if item.result is not None]
    _write_tables(suite, items, results, assembled, outputs)
    panel = next(iter(panels(results)), None)
    earlier = sum(item.kept for item in items)
    ran = len(results) - earlier
    # The gate decided about the cases of this session alone.
    session: dict[str, Any] = {
        "cases": ran,
        "kept": earlier,
        "of": ran if run.cases is None else len(run.cases.specs),
        "interrupted": interrupted,
    }
    if run.subset is not None:
        session["subset"] = run.subset[0]
    for judge, name in judge_file_names(suite).items():
        of_judge = []
        for result in results:
            if result.judge == (judge or "") and result.outcome != "generated":
                of_judge.append(result)
        report = judge_report(run, judge, of_judge, decision, panel) | {"session": session}
        outputs.write_json(suite.results_dir / f"{name}_report.json", report)


def judge_report(
    run: SuiteRun,
    name: str | None,
    results: Sequence[CaseResult],
    decision: Decision | None,
    panel: Panel | None,
) -> dict[str, Any]:
    """Summarize one judge's results: RAND's keys with RAND's strings, and ours as numbers beside
    them.

    Figures that cannot be computed are null, with the reason.
    """
    suite = run.suite
    [judge] = (judge for judge in suite.judges if judge.name == name)
    levels = {(suite.name, rubric.id): rubric for rubric in suite.rubrics}
    plain = [result for result in results if not result.spec.derived]
    metrics: dict[str, Any] = {}
    for test in suite.tests:
        if test.evaluate and not test.kind.derived:
            of_test = [result for result in plain if result.spec.test == test.name]
            metrics[test.name] = _test_report(suite.config.rand.metric, of_test)
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
        "gate": None if decision is None else decision_data(decision),
        "panel": None if panel is None else panel_data(panel),
        "reworded": reworded,
        "altered": _ids(altered_cases(results)),
        "contradicting": list(map(_ids, contradicting_cases(results))),
        **shown_data(plain),
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


def _test_report(metric_name: str, results: Sequence[CaseResult]) -> dict[str, Any]:
    judged = [result for result in results if result.outcome in JUDGED]
    by_rubric = grouped((result.spec.rubric_id, result) for result in results)
    total = Counts.of(results)
    figure = metric(
        metric_name,
        [result.label for result in judged if result.label is not None],
        [result.score for result in judged if result.label is not None],
    )
    accuracy = accuracy_of(judged)
    pass_rate = None
    if total.accuracy is not None:
        # RAND's text, which is a number: never 100.00% where a case is wrong.
        pass_rate = f"{total.accuracy if total.accuracy == 1 else min(total.accuracy, 0.9999):.2%}"
    return {
        "metrics": {
            "pass_rate": pass_rate,
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
        "rubrics": {rubric: _figures(Counts.of(group)) for rubric, group in by_rubric.items()},
    }


def _figures(counts: Counts) -> dict[str, Any]:
    return {
        "n": counts.n,
        "agree": counts.agree,
        "disagree": counts.disagree,
        "no_case": counts.no_case,
        "unscored": counts.unscored,
        "unverified_labels": counts.unverified,
        "accuracy": counts.accuracy,
    }


SYNTHETIC_NAME = "synthetic_agent_perturbation"


def _write_tables(
    suite: Suite,
    items: Sequence[Item],
    results: Sequence[CaseResult],
    assembled: Assembler,
    outputs: Outputs,
) -> None:
    """Write the tables, as CSV or XLSX, and the debug bundles."""
    editor = suite.stages.get(EDITOR.name)
    temperature = editor.temperature if editor is not None else None
    rubrics = {rubric.id: rubric for rubric in suite.rubrics}
    folders = {test.name: test.output_dir for test in suite.tests}
    by_case: dict[str, list[Item]] = {}
    for item in items:
        by_case.setdefault(item.made_id, []).append(item)
    unwritten: list[str] = []
    synthetic: list[TableRow] = []
    tables = _result_tables(suite, results)
    rows: dict[tuple[str, str], list[TableRow]] = {key: [] for key in tables}
    for made_id, case_items in by_case.items():
        spec = case_items[0].spec
        folder = folders[spec.test]
        case = _read(made_id, case_items, assembled, outputs)
        of_case = [item.result for item in case_items if item.result is not None]
        transcript = None
        if case is not None:
            transcript = render_transcript(case.messages)
            is_altered = any(result.extra.altered for result in of_case)
            made = replace(case, verified=False) if is_altered else case
            row = synthetic_row(made, temperature=temperature, transcript=transcript)
            synthetic.append(outputs.redactor.value(row))
            unwritten += _write_bundle(case, case_items, folder, outputs)
        for result in of_case:
            rubric = rubrics.get(spec.rubric_id) if result.extra.reworded else None
            if (spec.test, result.judge) in rows:
                row = result_row(result, case, transcript=transcript, rubric=rubric)
                rows[spec.test, result.judge].append(outputs.redactor.value(row))
    path = suite.results_dir / f"{SYNTHETIC_NAME}.{suite.table_format}"
    outputs.write(path, table_bytes(path.suffix, SYNTHETIC_COLUMNS, synthetic))
    for key, (path, columns) in tables.items():
        outputs.write(path, table_bytes(path.suffix, columns, rows[key]))
    if unwritten:
        bundles = counted(len(unwritten), "debug bundle")
        outputs.problem(f"{bundles} could not be written, the first of them {unwritten[0]}.")


def _result_tables(
    suite: Suite, results: Sequence[CaseResult]
) -> dict[tuple[str, str], tuple[Path, Columns]]:
    """The path and the columns of each table of results, by test and judge."""
    tables: dict[tuple[str, str], tuple[Path, Columns]] = {}
    for test in sorted(suite.tests, key=lambda test: test.name):
        for judge, name in judge_file_names(suite).items() if test.evaluate else ():
            of_table = []
            for result in results:
                if (result.spec.test, result.judge) == (test.name, judge or ""):
                    of_table.append(result)
            columns = result_columns(
                repeated=suite.repeats_of(judge) > 1,
                derived=test.kind.derived,
                shown=any(shown_count(of_table, whole=whole).known for whole in (False, True)),
            )
            path = suite.results_dir / f"{test.name}_results_{name}.{suite.table_format}"
            tables[test.name, judge or ""] = path, columns
    return tables


def _read(
    made_id: str,
    items: Sequence[Item],
    assembled: Assembler,
    outputs: Outputs,
) -> Case | None:
    """Read the record of a case of this run, where there is one."""
    if not assembled.is_of_run(made_id, items):
        return None
    try:
        case = assembled.read(items[0].spec)
    except OSError as error:
        outputs.problem(f"The record of {made_id} cannot be read: {cause(error)}.")
        return None
    except InputError as error:
        outputs.problem(f"The record of {made_id} cannot be used: {error}")
        return None
    # Spools hold no secrets; a record of another session may hold one that is a secret here.
    cleaned: Case | None = case if made_id in assembled.made else outputs.redactor.value(case)
    return cleaned


def _write_bundle(
    case: Case, items: Sequence[Item], folder: Path, outputs: Outputs
) -> Iterator[str]:
    """Write the debug bundle of a case in which this session has anything to look at: an edit, or a
    wrong verdict. Gives why it could not be written.
    """
    is_looked_at = False
    for item in items:
        is_wrong = item.result is not None and item.result.outcome == "disagree"
        is_looked_at = is_looked_at or (not item.kept and bool(case.outcome.edits or is_wrong))
    if not is_looked_at:
        return
    paths = debug_paths(folder, items[0].spec)
    try:
        outputs.paths += write_debug(case, paths)
    except OSError as error:
        yield f"{paths.of(case)[0]}: {cause(error)}"


SYNTHETIC_COLUMNS = (
    # What a reader looks for first; the others in RAND's order, and then ours.
    *("perturbed_idx", "rubric_id", "expected", "test_name", "original_request"),
    *("original_response", "original_idx", "original_expected", "generation_prompt"),
    *("generation_response", "generation_completion", "generation_reasoning", "generation_temp"),
    *("generation_mode", "validation_score", "validation_reasoning", "validated_bucket"),
    *("rubric_text", "score_levels_table", "transcript", "prompted_bucket", "human_reviewed"),
    *("run_id", "epoch", "target_score", "verified", "human_decision"),
)


def synthetic_row(
    case: Case, *, temperature: float | None, transcript: str | None = None
) -> TableRow:
    """Describe a made case in RAND's columns, and ours.

    `original_response` and `generation_response` are the edited turns before and after;
    `validation_score` is the verifier's verdict on the scale of `expected`; `transcript` is what
    the judge sees, and `temperature` that of the editor. There is no label for the untouched run,
    so `original_expected` is empty.
    """
    spec, verification = case.spec, case.outcome.verification
    answers = (edit.editor_raw_response for edit in case.outcome.edits)
    return {
        "perturbed_idx": perturbed_idx(spec),
        "rubric_id": case.rubric.id,
        "expected": case.expected,
        "test_name": spec.test,
        "original_request": _request(case),
        "original_response": _turns(case, lambda edit: edit.original_content),
        "original_idx": case.run.run_id,
        "generation_prompt": _planned(case),
        "generation_response": _turns(case, lambda edit: edit.edited_content),
        "generation_completion": "\n".join(answers),
        "generation_reasoning": _turns(case, lambda edit: edit.editor_reason),
        "generation_temp": temperature,
        "generation_mode": case.mode,
        "validation_score": verifier_score(case),
        "validation_reasoning": None if verification is None else verification.rationale,
        "validated_bucket": case.expected if case.verified else None,
        "rubric_text": case.rubric.instructions,
        "score_levels_table": _scale(case.levels),
        "transcript": render_transcript(case.messages) if transcript is None else transcript,
        "prompted_bucket": case.expected,
        "human_reviewed": case.review is not None,
        "run_id": case.run.run_id,
        "epoch": case.run.epoch,
        "target_score": spec.target_score,
        "verified": case.verified,
        "human_decision": _decision(case),
    }


_RESULT_COLUMNS = (
    # What a reader looks for first; the others in RAND's order, and then ours.
    *("idx", "rubric_id", "expected", "autograder_score", "outcome", "perturbed_idx", "rubric"),
    *("transcript", "generation_response", "original_request", "original_idx"),
    *("validation_score", "agent_mode", "plan_thesis", "planned_steps", "test_name"),
    *("score_levels_table", "autograder_reasoning", "judge", "tokens", "cost"),
    *("human_reviewed", "human_decision"),
)
_OF_REPEATS = ("repeats", "scores", "flickers", "minority_reasoning")
_OF_PROBES = ("variant", "base_test", "base_score")


def result_columns(*, repeated: bool, derived: bool, shown: bool = False) -> tuple[str, ...]:
    """The columns of a table of results: some only of judges that judge each case more than once,
    of probes, and where it is known what a judge was shown.
    """
    columns: tuple[str, ...] = _RESULT_COLUMNS
    columns += _OF_REPEATS if repeated else ()
    columns += _OF_PROBES if derived else ()
    return (*columns, "shown") if shown else columns


def result_row(
    result: CaseResult,
    case: Case | None,
    *,
    transcript: str | None = None,
    rubric: Rubric | None = None,
) -> TableRow:
    """Describe a result in RAND's columns, and ours; a case that was not made has no transcript.

    `rubric` is what the judge had, where its text is another than the case was made for.

    `autograder_reasoning` holds the judge's reasoning, else the reason of the outcome; `cost` is
    empty where a call has no known price.
    """
    spec, spending, minority = result.spec, result.spending.all, result.minority
    reason = None if result.outcome == "agree" else result.why.text
    row = {
        "idx": result.case_id,
        "rubric_id": spec.rubric_id,
        "expected": result.label,
        "autograder_score": result.score,
        "outcome": result.outcome,
        "perturbed_idx": perturbed_idx(spec),
        "original_idx": spec.run_id,
        # What RAND calls a kind of case; a probe is none of its.
        "agent_mode": SHORT_NAMES.get(result.test, result.test),
        "test_name": spec.test,
        "autograder_reasoning": result.reasoning or reason,
        "judge": result.judge,
        "tokens": spending.usage.total,
        "cost": None if spending.unpriced else spending.cost,
        "human_reviewed": result.extra.review in ("accepted", "edited", "rejected"),
        "human_decision": result.extra.review or None,
        "repeats": len(result.all_scores),
        "scores": " ".join(map(str, result.all_scores)),
        "flickers": result.flickers,
        "minority_reasoning": None if minority is None else minority.reasoning,
        "variant": spec.variant,
        "base_test": spec.base,
        "base_score": result.base_score,
        "shown": state_text(result) or None,
    }
    if case is not None:
        plan = case.outcome.plan
        row |= {
            "expected": case.expected,
            "rubric": case.rubric.instructions,
            "transcript": render_transcript(case.messages) if transcript is None else transcript,
            "generation_response": _turns(case, lambda edit: edit.edited_content),
            "original_request": _request(case),
            "validation_score": verifier_score(case),
            "plan_thesis": None if plan is None else plan.thesis,
            "planned_steps": _planned(case),
            "score_levels_table": _scale(case.levels),
            "human_reviewed": row["human_reviewed"] or case.review is not None,
            "human_decision": row["human_decision"] or _decision(case),
        }
    if rubric is not None:
        row |= {"rubric": rubric.instructions, "score_levels_table": _scale(rubric.score_levels)}
    return row


def _request(case: Case) -> str:
    return f"{case.rubric.id}: {case.rubric.instructions}"


def _scale(levels: Iterable[ScoreLevel]) -> str:
    return "\n".join(f"{level.score}: {level.label}" for level in levels)


def _turns(case: Case, text: Callable[[Edit], str]) -> str:
    return "\n\n".join(f"[{edit.message_index}] {text(edit)}" for edit in case.outcome.edits)


def _decision(case: Case) -> str | None:
    return None if case.review is None else case.review.action or None


def _planned(case: Case) -> str:
    steps = () if case.outcome.plan is None else case.outcome.plan.steps
    lines = []
    for step in steps:
        act = "" if step.kind == "say" else f"{step.kind}: "
        lines.append(f"[{step.message_index}] {act}{step.goal} ({step.rationale})")
    return "\n".join(lines)


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
        spec = entry.spec
        group = groups.setdefault((spec.suite, spec.test, spec.rubric_id), _no_cases())
        group["cases"] += 1
        group["verified"] += entry.verified
        group["human_reviewed"] += entry.human_reviewed
    asked: set[tuple[str, str, str]] = set()
    for result in results:
        key = (result.spec.suite, result.spec.test, result.spec.rubric_id)
        asked.add(key)
        group = groups.setdefault(key, _no_cases())
        if result.outcome == "no_case":
            group["no_case"] += 1
            reasons = group["no_case_reasons"]
            reason = shortened(one_line(result.why.text), _LONGEST_REASON) or "no reason given"
            reasons[reason] = reasons.get(reason, 0) + 1
        elif result.outcome in UNSCORED:
            group["unscored"][result.outcome] = group["unscored"].get(result.outcome, 0) + 1
    for suite, tests in previous.get("suites", {}).items():
        for test, rubrics in tests.items():
            for rubric, old in rubrics.items():
                if (suite, test, rubric) not in asked:
                    group = groups.setdefault((suite, test, rubric), _no_cases())
                    for name in ("no_case", "no_case_reasons", "unscored"):
                        group[name] = old[name]
    suites: dict[str, Any] = {}
    for (suite, test, rubric), group in groups.items():
        suites.setdefault(suite, {}).setdefault(test, {})[rubric] = group
    return {"format": 1, "records_of_other_tools": len(index.foreign), "suites": suites}


def _no_cases() -> dict[str, Any]:
    return {
        "cases": 0,
        "verified": 0,
        "human_reviewed": 0,
        "no_case": 0,
        "no_case_reasons": {},
        "unscored": {},
    }


SUMMARY_NAME = "agent_perturbations_summary.json"


def write_summaries(
    suite: Suite, items: Sequence[Item], assembled: Assembler, outputs: Outputs
) -> None:
    """Count the cases of each folder, and why others are none."""
    if suite.frozen is not None:
        return
    # Of the judges of a case, this session's results count before those of earlier ones.
    ordered = sorted(items, key=lambda item: not item.kept)
    for folder, index in assembled.indexes.items():
        tests = {test.name for test in suite.tests if test.output_dir == folder}
        ran = {}
        for item in ordered:
            if item.spec.test in tests and item.result is not None and not item.spec.variant:
                ran[item.made_id] = item.result
        results = []
        for made_id, result in ran.items():
            if made_id not in assembled.made or result.outcome not in UNSCORED:
                results.append(result)
        path = folder / SUMMARY_NAME
        # What is there, if it is one of ours.
        previous: Any = None
        with contextlib.suppress(OSError, ValueError):
            previous = json.loads(path.read_text("utf-8"))
        if not isinstance(previous, dict) or previous.get("format") != 1:
            previous = {}
        summary = perturbations_summary(previous, index, results)
        outputs.write_json(path, summary, sort=True)


# RAND's keys, and ours beside them.
_AUDITED = ("run_id", "epoch", "case_id", "expected", "verified", "target_rubric")


_AUDITED_OF_EDITS = ("failure_confirmed", "failure_rationale", "final_summary", "plan")


@dataclass(frozen=True, slots=True)
class DebugPaths:
    """Where the bundle of a case is, or will be once it is written."""

    audit: Path
    original: Path
    perturbed: Path

    def of(self, case: Case) -> tuple[Path, ...]:
        """Those that are of this case: all three of one with edits."""
        if not case.outcome.edits:
            return (self.original,)
        return self.audit, self.original, self.perturbed


def debug_paths(output_dir: Path, spec: CaseSpec) -> DebugPaths:
    """Name the files of a case's bundle in a test's `output.dir`."""
    stem, folder = artifact_stem(spec), output_dir / "debug"
    return DebugPaths(
        folder / f"{stem}_edits_audit.json",
        folder / "transcripts" / f"{stem}_original.txt",
        folder / "transcripts" / f"{stem}_perturbed.txt",
    )


def write_debug(case: Case, paths: DebugPaths) -> tuple[Path, ...]:
    """Write the bundle of a case that has edits; of one without edits only its transcript.

    Transcripts are written for reading: reasoning shown, control characters as escapes.
    """
    _write_transcript(paths.original, case.run.messages)
    if case.outcome.edits:
        _write_transcript(paths.perturbed, case.messages)
        record = to_record(case)
        perturbation = record["perturbation"]
        audit = {name: record[name] for name in _AUDITED}
        audit |= {name: perturbation[name] for name in _AUDITED_OF_EDITS}
        audit["edits"] = perturbation["steps"]
        atomic_write(paths.audit, json.dumps(audit, indent=2, ensure_ascii=False) + "\n")
    return paths.of(case)


def _write_transcript(path: Path, messages: Sequence[Message]) -> None:
    atomic_write(path, visible(render_transcript(messages, show_reasoning=True)) + "\n")

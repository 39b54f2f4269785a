"""The files that RAND's harness writes, for a config of RAND's or with `output.rand`: tables of the
cases as they were made and of each judge's results, a JSON report of each judge, and a debug bundle
of each case that somebody may want to look at.

Tables and bundles are made in one pass, which reads each record once.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from pydantic_core import to_json

from pytest_jrh.cases.probes import changed_again
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.config.suite import Suite
from pytest_jrh.core import Fields, InputError, Json, counted, grouped_by, visible
from pytest_jrh.core.calls import EDITOR
from pytest_jrh.core.cases import Case, Message, Rubric
from pytest_jrh.core.files import atomic_write, file_name_part
from pytest_jrh.core.ids import UNNAMED_BASE, artifact_stem, generation_id, perturbed_idx
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import Scale
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.reports.case_facts import no_verdict_text
from pytest_jrh.reports.for_programs import data_of, decision_data, section_data
from pytest_jrh.reports.session import Session, SuiteRun
from pytest_jrh.stats.figures import section_of
from pytest_jrh.stats.intervals import NO_VERDICT, Estimate
from pytest_jrh.stats.statistics import accuracy_of
from pytest_jrh.stats.verdicts import Verdicts
from pytest_jrh.store.ledger import table_bytes
from pytest_jrh.store.made_cases import Outputs, cause
from pytest_jrh.store.records import to_record


def write_rand_files(
    run: SuiteRun, session: Session, results: Sequence[CaseResult], outputs: Outputs
) -> None:
    """Write all of them; what cannot be written is a sentence, and the others are written.

    `results` are those of the suite's file, and `outputs` has the records of their cases.
    """
    suite = run.suite
    _write_tables(suite, results, outputs)
    ran = sum(not result.extra.kept for result in results)
    # The gate decided about the cases of this session alone.
    about = {
        "cases": ran,
        "kept": len(results) - ran,
        "of": len(run.cases.specs),
        "interrupted": session.extents[run.name].interrupted,
    }
    of_file = replace(session, results=results, columns=None)
    for judge, name in judge_file_names(suite).items():
        report = judge_report(suite, judge, of_file)
        outputs.write_json(suite.results_dir / f"{name}_report.json", report | {"session": about})


def judge_report(suite: Suite, name: str, session: Session) -> Json:
    """Summarize the results of one judge in a session of its suite alone: RAND's keys with RAND's
    strings, and ours as numbers beside them.

    Figures that cannot be computed are null, with the reason.
    """
    [judge] = (judge for judge in suite.judges if (judge.name or "") == name)
    every = session.verdicts
    verdicts = every.where(every.judge.equals(name) & ~every.outcome.equals("generated"))
    metrics = {}
    for test in suite.tests:
        if test.evaluate and (suite.config.rand.tests or not test.kind.derived):
            metrics[test.name] = _test_report(
                suite.config.rand.metric, verdicts.where(verdicts.test.equals(test.name))
            )
    reworded: dict[str, list[str]] = {}
    for result in session.results_in(verdicts):
        if result.extra.reworded and not (result.is_accepted or result.spec.derived):
            reworded.setdefault(result.rubric_id, []).append(result.case_id)
    return {
        "format": 2,
        "meta_data": {
            "module_name": suite.module_name,
            "dataset": suite.logs[0].name if suite.logs else "",
            "autograder_model": judge.label,
            "suite": suite.name,
            "judge": judge.name,
            "mode": suite.mode,
        },
        "all_metrics": metrics,
        "statistics": section_data(section_of(verdicts, suite.name, name)),
        "gate": decision_data(session.decisions.get(suite.name)),
        "panel": next(map(data_of, session.panels), None),
        "reworded": reworded,
    }


def judge_file_names(suite: Suite) -> dict[str, str]:
    """What names each judge in file names: its model, with its name where models are shared."""
    names = {}
    taken = set()
    models = [file_name_part(judge.label).lower() for judge in suite.judges]
    for judge in suite.judges:
        name = base = file_name_part(judge.label)
        if models.count(base.lower()) > 1:
            name = base = f"{base}_{file_name_part(judge.name or 'judge')}"
        number = 1
        while name.lower() in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name.lower())
        names[judge.name or ""] = name
    return names


def _test_report(metric_name: str, verdicts: Verdicts) -> Json:
    judged = verdicts.judged
    labels = [label for label in judged.label.values if label is not None]
    figure = metric(metric_name, labels, judged.score.values)
    accuracy = accuracy_of(judged)
    pass_rate = None
    if accuracy.value is not None:
        # RAND's text, which is a number: never 100.00% where a case is wrong.
        pass_rate = f"{accuracy.value if accuracy.value == 1 else min(accuracy.value, 0.9999):.2%}"
    return {
        "metrics": {
            "pass_rate": pass_rate,
            "passed": accuracy.count,
            "total": accuracy.n,
            "metric_type": metric_name,
            "metric_score": figure.value,
            "metric_reason": figure.reason,
            "accuracy": accuracy.value,
        },
        "bootstrap": {
            "mean": accuracy.value,
            "lower_ci": accuracy.lower,
            "upper_ci": accuracy.upper,
            "reason": accuracy.interval_reason,
        },
        "outcomes": dict(sorted(Counter(verdicts.outcome.values).items())),
    }


def metric(name: str, expected: Sequence[int], scores: Sequence[int | None]) -> Estimate:
    """Compute a metric of RAND's configs: accuracy, balanced accuracy, kappa and F1, or another one
    of scikit-learn where that is installed.

    F1 is that of label 1, and on longer scales the mean over all labels, as are metrics of
    scikit-learn that average over labels. A score of None is a tie: wrong in the accuracy, and no
    label for the others.
    """
    if not expected:
        return Estimate(why=NO_VERDICT)
    n = len(expected)
    hits = Counter(label for label, score in zip(expected, scores, strict=True) if label == score)
    if name == "accuracy_score":
        return Estimate(hits.total() / n)
    answers = [score for score in scores if score is not None]
    if len(answers) < n:
        return Estimate(why="repeats that tie have no score for this metric")
    cases_of, answers_of = Counter(expected), Counter(answers)
    match name:
        case "balanced_accuracy_score":
            value = fmean(hits[label] / number for label, number in cases_of.items())
        case "cohen_kappa_score":
            by_chance = sum(number * answers_of[label] for label, number in cases_of.items()) / n**2
            value = math.nan
            if by_chance != 1:
                value = (hits.total() / n - by_chance) / (1 - by_chance)
        case "f1_score":
            scores_of_labels = {}
            for label, number in (cases_of + answers_of).items():
                scores_of_labels[label] = 2 * hits[label] / number
            value = fmean(scores_of_labels.values())
            if scores_of_labels.keys() <= {0, 1}:
                value = scores_of_labels.get(1, 0.0)
        case _:
            try:
                import sklearn.metrics

                function, options = getattr(sklearn.metrics, name), {}
                has_average = "average" in inspect.signature(function).parameters
                if has_average and not {*expected, *answers} <= {0, 1}:
                    options["average"] = "macro"
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = float(function(expected, answers, **options))
            except (ImportError, AttributeError, ValueError) as error:
                return Estimate(why=f"{name} cannot be computed from these verdicts: {error}")
    if not math.isfinite(value):
        return Estimate(why=f"{name} is not defined for these verdicts")
    return Estimate(value)


def _write_tables(suite: Suite, results: Sequence[CaseResult], outputs: Outputs) -> None:
    """Write the tables and the debug bundles."""
    editor, clean = suite.stages.get(EDITOR.name), outputs.redactor.value
    temperature = None if editor is None else editor.temperature
    folders = {test.name: test.output_dir for test in suite.tests}
    unwritten = []
    synthetic: dict[str, list[Fields]] = {}
    # Of answers each test has a table of its own.
    tables = [test.name for test in suite.tests] if suite.config.rand.tests else []
    rows: dict[tuple[str, str], list[Fields]] = {}
    for made_id, of_case in grouped_by(results, "made_id").items():
        spec, case, row = of_case[0].spec, None, None
        try:
            case = outputs.records.read(made_id)
            if spec.derived and tables:
                base = outputs.records.read(generation_id(spec.base_case))
                case = None if base is None else changed_again(base, spec)
        except (OSError, InputError) as error:
            outputs.problem(f"The record of {made_id} cannot be used: {cause(error)}")
        if case is not None:
            is_altered = any(result.extra.altered for result in of_case)
            as_made = replace(case, verified=False) if is_altered else case
            row = clean(synthetic_row(as_made, temperature=temperature))
            synthetic.setdefault(spec.test if tables else UNNAMED_BASE, []).append(row)
            # What there is to look at in this session: an edit, or a wrong verdict.
            outcomes = [result.outcome for result in of_case if not result.extra.kept]
            if "disagree" in outcomes or (outcomes and case.outcome.edits):
                files = debug_files(case, folders[spec.test])
                try:
                    for path, text in files.items():
                        # A record of another session may hold what is a secret here.
                        atomic_write(path, outputs.redactor.text(text))
                except OSError as error:
                    unwritten.append(f"{next(iter(files))}: {cause(error)}")
        for result in of_case:
            rubric = suite.rubric_by_id.get(spec.rubric_id) if result.extra.reworded else None
            rows.setdefault((spec.test, result.judge), []).append(
                clean(result_row(result, row, rubric))
            )
    for table in tables or [UNNAMED_BASE]:
        path = suite.results_dir / f"synthetic_{table}.csv"
        outputs.write(path, table_bytes(SYNTHETIC_COLUMNS, synthetic.get(table, ())))
    names = judge_file_names(suite)
    for test in suite.tests:
        if test.evaluate:
            for judge, name in names.items():
                path = suite.results_dir / f"{test.name}_results_{name}.csv"
                outputs.write(path, table_bytes(RESULT_COLUMNS, rows.get((test.name, judge), ())))
    if unwritten:
        outputs.problem(
            f"{counted(len(unwritten), 'debug bundle')} could not be written, the first of them "
            f"{unwritten[0]}."
        )


# What a reader looks for first; the others in RAND's order, and then ours.
_SYNTHETIC_HEADER = (
    "perturbed_idx,rubric_id,expected,test_name,original_request,original_response,original_idx,"
    "original_expected,generation_prompt,generation_response,generation_completion,"
    "generation_reasoning,generation_temp,generation_mode,validation_score,validation_reasoning,"
    "validated_bucket,rubric_text,score_levels_table,transcript,prompted_bucket,human_reviewed,"
    "run_id,epoch,target_score,verified,human_decision"
)
SYNTHETIC_COLUMNS = _SYNTHETIC_HEADER.split(",")


def synthetic_row(case: Case, *, temperature: float | None) -> Json:
    """Describe a made case in RAND's columns, and ours; with the plan's thesis, a column of results
    alone.

    `original_response` and `generation_response` are the edited turns before and after;
    `validation_score` is the verifier's verdict on the scale of `expected`; `transcript` is what
    the judge sees, and `temperature` that of the editor.
    """
    spec, verification = case.spec, case.outcome.verification
    plan, said = case.outcome.plan, case.scale.said
    expected = said(case.expected)
    edits = case.outcome.edits
    before = [f"[{edit.message_index}] {edit.original_content}" for edit in edits]
    after = [f"[{edit.message_index}] {edit.edited_content}" for edit in edits]
    reasons = [f"[{edit.message_index}] {edit.editor_reason}" for edit in edits]
    planned = []
    for step in () if plan is None else plan.steps:
        act = "" if step.kind == "say" else f"{step.kind}: "
        planned.append(f"[{step.message_index}] {act}{step.goal} ({step.rationale})")
    return {
        "perturbed_idx": perturbed_idx(spec),
        "rubric_id": case.rubric.id,
        "expected": expected,
        "test_name": spec.test,
        "original_request": f"{case.rubric.id}: {case.rubric.instructions}",
        "original_response": "\n\n".join(before),
        "original_idx": case.run.run_id,
        # Else there is no label of the untouched run, or it is the same one.
        "original_expected": case.scale.tie(case.expected)
        if case.expected is not None and KINDS[spec.test].flips
        else None,
        "generation_prompt": "\n".join(planned),
        "generation_response": "\n\n".join(after),
        "generation_completion": "\n".join(edit.editor_raw_response for edit in edits),
        "generation_reasoning": "\n\n".join(reasons),
        "generation_temp": temperature,
        "generation_mode": case.scale.name,
        "validation_score": said(case.verifier_answer),
        "validation_reasoning": None if verification is None else verification.rationale,
        "validated_bucket": expected if case.verified else None,
        "rubric_text": case.rubric.instructions,
        "score_levels_table": _scale(case.scale),
        "transcript": render_transcript(case.messages),
        "prompted_bucket": expected,
        "human_reviewed": case.review is not None,
        "run_id": case.run.run_id,
        "epoch": case.run.epoch,
        "target_score": spec.target_score,
        "verified": case.verified,
        "human_decision": None if case.review is None else case.review.action or None,
        "plan_thesis": None if plan is None else plan.thesis,
    }


# What a reader looks for first; the others in RAND's order, and then ours.
_RESULT_HEADER = (
    "idx,rubric_id,expected,autograder_score,outcome,perturbed_idx,rubric,transcript,"
    "generation_response,original_request,original_idx,validation_score,agent_mode,plan_thesis,"
    "planned_steps,test_name,score_levels_table,autograder_reasoning,judge,tokens,cost,"
    "human_reviewed,human_decision"
)
RESULT_COLUMNS = _RESULT_HEADER.split(",")


def result_row(result: CaseResult, case_row: Fields | None, rubric: Rubric | None = None) -> Json:
    """Describe a result in RAND's columns, and ours, with what the row of its case knows; one that
    was not made has no transcript.

    `rubric` is what the judge had, where its text is another than the case was made for.

    `autograder_reasoning` holds the judge's reasoning, else the reason of the outcome; `cost` is
    empty where a call has no known price.
    """
    spec, spending, case_row = result.spec, result.spending.all, case_row or {}
    reason = no_verdict_text(result.why) if result.why.kind else None
    is_decided = result.extra.review in ("accepted", "edited", "rejected")
    # What has the same name in the row of the case is that.
    row = {name: case_row.get(name) for name in RESULT_COLUMNS}
    row |= {
        "idx": result.case_id,
        "rubric_id": spec.rubric_id,
        "expected": result.scale.said(result.label),
        "autograder_score": result.scale.said(result.score),
        "outcome": result.outcome,
        "perturbed_idx": perturbed_idx(spec),
        "rubric": case_row.get("rubric_text"),
        "original_idx": spec.run_id,
        # What RAND calls a kind of case; a probe is none of its.
        "agent_mode": KINDS[result.test].noun,
        "planned_steps": case_row.get("generation_prompt"),
        "test_name": spec.test,
        "autograder_reasoning": result.reasoning or reason,
        "judge": result.judge,
        "tokens": spending.usage.total,
        "cost": None if spending.unpriced else spending.cost,
        "human_reviewed": is_decided or case_row.get("human_reviewed", False),
        "human_decision": result.extra.review or case_row.get("human_decision"),
    }
    if rubric is not None:
        row |= {"rubric": rubric.instructions, "score_levels_table": _scale(rubric.scale)}
    return row


def _scale(scale: Scale) -> str:
    return "\n".join(f"{scale.said(score)}: {when}" for score, when in scale.due.items())


# RAND's keys, and ours beside them.
_AUDITED = ("run_id", "epoch", "case_id", "expected", "verified", "target_rubric")
_AUDITED_OF_EDITS = ("failure_confirmed", "failure_rationale", "final_summary", "plan")


def debug_files(case: Case, output_dir: Path) -> dict[Path, str]:
    """The bundle of a case that has edits, in a test's `output.dir`; of one without edits only its
    transcript.

    Transcripts are for reading: reasoning shown, control characters as escapes.
    """
    stem, folder = artifact_stem(case.spec), output_dir / "debug"
    original = folder / f"transcripts/{stem}_original.txt"
    if not case.outcome.edits:
        return {original: _readable(case.run.messages)}
    record = to_record(case)
    perturbation = record["perturbation"]
    audit = {name: record[name] for name in _AUDITED}
    audit |= {name: perturbation[name] for name in _AUDITED_OF_EDITS}
    audit["edits"] = perturbation["steps"]
    return {
        folder / f"{stem}_edits_audit.json": to_json(audit, indent=2).decode() + "\n",
        original: _readable(case.run.messages),
        folder / f"transcripts/{stem}_perturbed.txt": _readable(case.messages),
    }


def _readable(messages: Sequence[Message]) -> str:
    return visible(render_transcript(messages, show_reasoning=True)) + "\n"

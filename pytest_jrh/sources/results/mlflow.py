"""MLflow's traces with their assessments: `mlflow.search_traces(...).to_json(FILE,
orient="records", lines=True)`, and traces as JSON (`trace.to_json()`, lists of `trace.to_dict()`,
`{"traces": [...]}`). As MLflow 3 writes them.

The type of the source says whose an assessment is: a judge's (`LLM_JUDGE`), a person's (`HUMAN`)
or that of code. A person who corrects a judge overrides its assessment, which is then no longer
`valid`, and still what the judge said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pytest_jrh.sources.results.scores import (
    UNKNOWN,
    By,
    Entry,
    Results,
    Score,
    case_names,
    is_plain,
    mapping,
    mappings,
    text_in,
    time_of,
)

_BY: Mapping[str, By] = {"LLM_JUDGE": "judge", "HUMAN": "person", "CODE": "other"}


def is_entry(entry: Entry) -> bool:
    """Whether it is a trace with assessments."""
    return isinstance(_info(entry).get("assessments"), list)


def read(entries: Sequence[Entry], results: Results) -> None:
    """Add the feedback on traces."""
    for index, entry in enumerate(entries):
        info = _info(entry)
        trace = text_in(info, "trace_id", "request_id")
        if not trace:
            results.left_out[UNKNOWN] += 1
            continue
        assessments = mappings(info.get("assessments"))
        replaced_by, subjects = {}, []
        for assessment in assessments:
            replaced_by[text_in(assessment, "overrides")] = _by(assessment)
            subjects.append((trace, text_in(assessment, "span_id")))
        for case, assessment in zip(case_names(subjects), assessments, strict=True):
            name, by = text_in(assessment, "assessment_name"), _by(assessment)
            is_corrected = replaced_by.get(text_in(assessment, "assessment_id")) == "person"
            feedback = mapping(assessment.get("feedback"))
            if "feedback" not in assessment:
                results.left_out["expectations and issues"] += 1
            elif by is None or not name or not (feedback.keys() & {"value", "error"}):
                results.left_out["assessments of an unknown form"] += 1
            elif assessment.get("valid") is False and not (by == "judge" and is_corrected):
                results.left_out["assessments that were replaced"] += 1
            elif not is_plain(feedback.get("value")) and not feedback.get("error"):
                results.left_out["assessments without a plain value"] += 1
            else:
                score = Score(
                    index=index,
                    case=case,
                    metric=name,
                    value=None if feedback.get("error") else feedback["value"],
                    by=by,
                    scorer=text_in(mapping(assessment.get("source")), "source_id"),
                    reasoning=text_in(assessment, "rationale"),
                    cluster=trace,
                    time=time_of(by, assessment, "create_time", "last_update_time"),
                    fields=_fields(entry, info),
                )
                results.scores.append(score)


def _by(assessment: Entry) -> By | None:
    return _BY.get(text_in(mapping(assessment.get("source")), "source_type"))


def _info(trace: Entry) -> Entry:
    """What is known of a trace, which a row of a data frame says itself."""
    return mapping(trace.get("info")) or trace


def _fields(trace: Entry, info: Entry) -> dict[str, str]:
    """What was asked and answered; a trace by itself has a preview of them."""
    metadata = mapping(info.get("trace_metadata"))
    fields = {}
    for name, column, key in (("input", "request", "Inputs"), ("output", "response", "Outputs")):
        value = trace.get(column) or info.get(f"{column}_preview")
        value = value or metadata.get(f"mlflow.trace{key}")
        fields[name] = value if isinstance(value, str) else json.dumps(value)
    return fields

"""Platforms on which models and people score what was traced. Each has a type of source, which says
whose a score is: a judge's, a person's, or that of whoever used the API, which may be either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_jrh.core.values import as_word
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
    text,
    text_in,
    time_of,
)

_LANGFUSE: Mapping[str, By] = {"EVAL": "judge", "ANNOTATION": "person", "API": "other"}
_LANGSMITH: Mapping[str, By] = {
    "model": "judge",
    "auto_eval": "judge",
    "app": "person",
    "api": "other",
}
_MLFLOW: Mapping[str, By] = {"LLM_JUDGE": "judge", "HUMAN": "person", "CODE": "other"}
_SUBJECTS = ("traceId", "sessionId", "datasetRunId", "subject")


def is_langfuse_score(entry: Entry) -> bool:
    """Whether it is a score."""
    is_named = {"name", "source", "value"} <= entry.keys()
    return is_named and bool(entry.keys() & {*_SUBJECTS, "dataType"})


def read_langfuse(entries: Sequence[Entry], results: Results) -> None:
    """Add Langfuse's scores.

    The export of its table of scores (CSV, JSON or JSON lines), and what `GET
    /api/public/v2/scores` and `/api/public/v3/scores` answer (`{"data": [...]}`), the latter with
    `fields=details,subject,annotation`. As Langfuse 3 and its SDK 5 have them.
    """
    subjects = [*map(_subject, entries)]
    cases = case_names(subjects)
    for index, entry in enumerate(entries):
        subject, _ = subjects[index]
        name, by = text_in(entry, "name"), _LANGFUSE.get(text_in(entry, "source"))
        value = _score_value(entry)
        if not name or by is None:
            results.left_out[UNKNOWN] += 1
        elif not subject:
            results.left_out["scores without traceId, or fields=subject of v3"] += 1
        elif entry.get("dataType") in ("TEXT", "CORRECTION"):
            results.left_out["texts and corrections"] += 1
        elif value is None:
            results.left_out["scores without a value, or with two that differ"] += 1
        else:
            score = Score(
                index=index,
                case=cases[index],
                metric=name,
                value=value,
                by=by,
                scorer=text_in(entry, "authorUserId", "authorUserName"),
                reasoning=text_in(entry, "comment"),
                cluster=text_in(entry, "sessionId") or subject,
                time=time_of(by, entry, "timestamp", "updatedAt"),
            )
            results.scores.append(score)


def _subject(entry: Entry) -> tuple[str, str]:
    """What a score is about: the trace, or another subject, and which observation of it."""
    subject = mapping(entry.get("subject"))
    if subject.get("kind") == "observation":
        return text_in(subject, "traceId", "id"), text_in(subject, "id")
    return text_in(entry, *_SUBJECTS) or text_in(subject, "id"), text_in(entry, "observationId")


def _score_value(entry: Entry) -> Any:
    """The value of a score, whatever the version; a truth is 1 and `True` in most of them."""
    word, value = text_in(entry, "stringValue"), entry.get("value")
    if entry.get("dataType") == "CATEGORICAL":
        return word or text(value) or None
    if entry.get("dataType") == "BOOLEAN" and word:
        is_one = as_word(value) in ("1", "true")
        if is_plain(value) and is_one != (as_word(word) == "true"):
            return None
        value = word
    if not is_plain(value):
        return None
    # A text is of CSV.
    return text(value).casefold() or value


def is_langsmith_feedback(entry: Entry) -> bool:
    """Whether it is feedback."""
    return {"key", "run_id"} <= entry.keys() and bool(mapping(entry.get("feedback_source")))


def read_langsmith(entries: Sequence[Entry], results: Results) -> None:
    """Add LangSmith's feedback on runs, and what people corrected of it.

    What `client.list_feedback(run_ids=...)` gives, as JSON or JSON lines, and what `GET /feedback`
    answers. As its SDK 0.15 has them. What a person corrects of an evaluator's feedback
    (`correction`) is a label.
    """
    for index, entry in enumerate(entries):
        run, key = text_in(entry, "run_id"), text_in(entry, "key")
        source = mapping(entry.get("feedback_source"))
        by = _LANGSMITH.get(text_in(source, "type"))
        value, corrected = _feedback_value(entry), _feedback_value(mapping(entry.get("correction")))
        # An evaluator that fails leaves no score.
        has_failed = by == "judge" and mapping(entry.get("extra")).get("error")
        if has_failed:
            value = None
        if not run or not key or by is None:
            results.left_out[UNKNOWN] += 1
            continue
        score = Score(
            index=index,
            case=run,
            metric=key,
            value=value,
            by=by,
            reasoning=text_in(entry, "comment"),
            cluster=text_in(entry, "trace_id") or run,
            time=time_of(by, entry, "created_at", "modified_at"),
        )
        if by != "judge":
            # Beside an evaluator's feedback it is whose key was used.
            score = replace(score, scorer=text_in(source, "user_id", "ls_user_id"))
        if value is None and not has_failed:
            results.left_out["feedback without a score"] += 1
        else:
            results.scores.append(score)
        if corrected is not None:
            results.scores.append(replace(score, value=corrected, by="person", reasoning=""))


def _feedback_value(entry: Entry) -> Any:
    """The word of feedback, where it has one, else its score."""
    score = entry.get("score")
    if is_plain(score):
        return text_in(entry, "value") or score
    return text_in(entry, "value") or None


def is_mlflow_trace(entry: Entry) -> bool:
    """Whether it is a trace with assessments."""
    return isinstance(_info(entry).get("assessments"), list)


def read_mlflow(entries: Sequence[Entry], results: Results) -> None:
    """Add the feedback in MLflow's traces with their assessments.

    `mlflow.search_traces(...).to_json(FILE, orient="records", lines=True)`, and traces as JSON
    (`trace.to_json()`, lists of `trace.to_dict()`, `{"traces": [...]}`). As MLflow 3 writes them. A
    person who corrects a judge overrides its assessment, which is then no longer `valid`, and still
    what the judge said.
    """
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
            is_failed = bool(feedback.get("error"))
            if "feedback" not in assessment:
                results.left_out["expectations and issues"] += 1
            elif by is None or not name or not (is_plain(feedback.get("value")) or is_failed):
                results.left_out["assessments of an unknown form"] += 1
            elif assessment.get("valid") is False and not (by == "judge" and is_corrected):
                results.left_out["assessments that were replaced"] += 1
            else:
                score = Score(
                    index=index,
                    case=case,
                    metric=name,
                    value=None if is_failed else feedback["value"],
                    by=by,
                    scorer=text_in(mapping(assessment.get("source")), "source_id"),
                    reasoning=text_in(assessment, "rationale"),
                    cluster=trace,
                    time=time_of(by, assessment, "create_time", "last_update_time"),
                    fields=_fields(entry, info),
                )
                results.scores.append(score)


def _by(assessment: Entry) -> By | None:
    return _MLFLOW.get(text_in(mapping(assessment.get("source")), "source_type"))


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

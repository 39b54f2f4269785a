"""Langfuse's scores: the export of its table of scores (CSV, JSON or JSON lines), and what
`GET /api/public/v2/scores` and `/api/public/v3/scores` answer (`{"data": [...]}`), the latter with
`fields=details,subject,annotation`. As Langfuse 3 and its SDK 5 have them.

The source says whose a score is: an evaluator's (`EVAL`), a person's (`ANNOTATION`), or that of
whoever used the API, which may be either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_jrh.sources.results.scores import UNKNOWN, By, Results, Score, case_names, time_of
from pytest_jrh.sources.results.values import is_plain, mapping, text

_BY: Mapping[str, By] = {"EVAL": "judge", "ANNOTATION": "person", "API": "other"}
_SUBJECTS = ("traceId", "sessionId", "datasetRunId", "subject")


def is_entry(entry: Mapping[str, Any]) -> bool:
    """Whether it is a score."""
    is_named = {"name", "source", "value"} <= entry.keys()
    return is_named and bool(entry.keys() & {*_SUBJECTS, "dataType"})


def read(entries: Sequence[Any], results: Results) -> None:
    """Add the scores."""
    subjects = [_subject(mapping(entry)) for entry in entries]
    cases = case_names(subjects)
    for place, entry in enumerate(map(mapping, entries)):
        subject, _ = subjects[place]
        name, by, value = text(entry.get("name")), _BY.get(text(entry.get("source"))), _value(entry)
        if not name or by is None:
            results.left_out[UNKNOWN] += 1
        elif not subject:
            results.left_out["scores without traceId, or fields=subject of v3"] += 1
        elif entry.get("dataType") in ("TEXT", "CORRECTION"):
            results.left_out["texts and corrections"] += 1
        elif value is None:
            results.left_out["scores without a value"] += 1
        else:
            score = Score(
                place=place,
                case=cases[place],
                metric=name,
                value=value,
                by=by,
                who=text(entry.get("authorUserId")) or text(entry.get("authorUserName")),
                reasoning=text(entry.get("comment")),
                cluster=text(entry.get("sessionId")) or subject,
                time=time_of(by, entry.get("timestamp"), entry.get("updatedAt")),
            )
            results.scores.append(score)


def _subject(entry: Mapping[str, Any]) -> tuple[str, str]:
    """What a score is about: the trace, or another subject, and which observation of it."""
    subject = mapping(entry.get("subject"))
    if subject.get("kind") == "observation":
        return text(subject.get("traceId")) or text(subject.get("id")), text(subject.get("id"))
    names = [text(entry.get(name)) for name in _SUBJECTS]
    return next(filter(None, names), text(subject.get("id"))), text(entry.get("observationId"))


def _value(entry: Mapping[str, Any]) -> Any:
    """The value of a score, whatever the version; a truth is 1 and `True` in most of them."""
    word, value = text(entry.get("stringValue")), entry.get("value")
    if entry.get("dataType") == "CATEGORICAL":
        return word or text(value) or None
    if entry.get("dataType") == "BOOLEAN":
        value = word or value
    if isinstance(value, str):
        # Of CSV.
        return value.strip().casefold() if value.strip() else None
    return value if is_plain(value) else None

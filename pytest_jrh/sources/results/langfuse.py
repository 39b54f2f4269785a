"""Langfuse's scores: the export of its table of scores (CSV, JSON or JSON lines), and what
`GET /api/public/v2/scores` and `/api/public/v3/scores` answer (`{"data": [...]}`), the latter with
`fields=details,subject,annotation`. As Langfuse 3 and its SDK 5 have them.

The source says whose a score is: an evaluator's (`EVAL`), a person's (`ANNOTATION`), or that of
whoever used the API, which may be either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_jrh.sources.results.scores import (
    UNKNOWN,
    By,
    Entry,
    Results,
    Score,
    case_names,
    is_plain,
    mapping,
    text,
    text_in,
    time_of,
)

_BY: Mapping[str, By] = {"EVAL": "judge", "ANNOTATION": "person", "API": "other"}
_SUBJECTS = ("traceId", "sessionId", "datasetRunId", "subject")


def is_entry(entry: Entry) -> bool:
    """Whether it is a score."""
    is_named = {"name", "source", "value"} <= entry.keys()
    return is_named and bool(entry.keys() & {*_SUBJECTS, "dataType"})


def read(entries: Sequence[Entry], results: Results) -> None:
    """Add the scores."""
    subjects = [*map(_subject, entries)]
    cases = case_names(subjects)
    for index, entry in enumerate(entries):
        subject, _ = subjects[index]
        name, by = text_in(entry, "name"), _BY.get(text_in(entry, "source"))
        value = _value(entry)
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


def _value(entry: Entry) -> Any:
    """The value of a score, whatever the version; a truth is 1 and `True` in most of them."""
    word, value = text_in(entry, "stringValue"), entry.get("value")
    if entry.get("dataType") == "CATEGORICAL":
        return word or text(value) or None
    if entry.get("dataType") == "BOOLEAN":
        value = word or value
    if not is_plain(value):
        return None
    # A text is of CSV.
    return text(value).casefold() or value

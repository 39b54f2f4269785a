"""LangSmith's feedback: what `client.list_feedback(run_ids=...)` gives, as JSON or JSON lines, and
what `GET /feedback` answers. As its SDK 0.15 has them.

The type of the source says whose feedback is: an evaluator's (`model`, `auto_eval`), a person's
(`app`), or that of whoever used the API, which may be either. What a person corrects of an
evaluator's feedback (`correction`) is a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_jrh.sources.results.scores import (
    UNKNOWN,
    By,
    Entry,
    Results,
    Score,
    is_plain,
    mapping,
    text_in,
    time_of,
)

_BY: Mapping[str, By] = {"model": "judge", "auto_eval": "judge", "app": "person", "api": "other"}


def is_entry(entry: Entry) -> bool:
    """Whether it is feedback."""
    return {"key", "run_id"} <= entry.keys() and bool(mapping(entry.get("feedback_source")))


def read(entries: Sequence[Entry], results: Results) -> None:
    """Add the feedback on runs, and what people corrected of it."""
    for index, entry in enumerate(entries):
        run, key = text_in(entry, "run_id"), text_in(entry, "key")
        source = mapping(entry.get("feedback_source"))
        by = _BY.get(text_in(source, "type"))
        value, corrected = _value(entry), _value(mapping(entry.get("correction")))
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


def _value(entry: Entry) -> Any:
    """The word of feedback, where it has one, else its score."""
    score = entry.get("score")
    if is_plain(score):
        return text_in(entry, "value") or score
    return text_in(entry, "value") or None

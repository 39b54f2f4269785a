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

from pytest_jrh.sources.results.scores import UNKNOWN, By, Results, Score, time_of
from pytest_jrh.sources.results.values import is_plain, mapping, text

_BY: Mapping[str, By] = {"model": "judge", "auto_eval": "judge", "app": "person", "api": "other"}


def is_entry(entry: Mapping[str, Any]) -> bool:
    """Whether it is feedback."""
    return {"key", "run_id"} <= entry.keys() and bool(mapping(entry.get("feedback_source")))


def read(entries: Sequence[Any], results: Results) -> None:
    """Add the feedback on runs, and what people corrected of it."""
    for place, entry in enumerate(map(mapping, entries)):
        run, key = text(entry.get("run_id")), text(entry.get("key"))
        source = mapping(entry.get("feedback_source"))
        by = _BY.get(text(source.get("type")))
        user = text(source.get("user_id")) or text(source.get("ls_user_id"))
        # An evaluator that fails leaves no score.
        has_failed = by == "judge" and mapping(entry.get("extra")).get("error")
        value = None if has_failed else _value(entry)
        corrected = _value(mapping(entry.get("correction")))
        if not run or not key or by is None:
            results.left_out[UNKNOWN] += 1
            continue
        score = Score(
            place=place,
            case=run,
            metric=key,
            value=value,
            by=by,
            who="" if by == "judge" else user,
            reasoning=text(entry.get("comment")),
            cluster=text(entry.get("trace_id")) or run,
            time=time_of(by, entry.get("created_at"), entry.get("modified_at")),
        )
        if value is None and not has_failed:
            results.left_out["feedback without a score"] += 1
        else:
            results.scores.append(score)
        if corrected is not None:
            results.scores.append(replace(score, value=corrected, by="person", reasoning=""))


def _value(entry: Mapping[str, Any]) -> Any:
    """The word of feedback, where it has one, else its score."""
    word, score = text(entry.get("value")), entry.get("score")
    return word or (score if is_plain(score) else None)

"""The summary of the cases in a folder (rule H1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_jrh.models import UNSCORED, CaseResult
from pytest_jrh.text import one_line, shortened

if TYPE_CHECKING:
    from pytest_jrh.artifacts.spools import RecordIndex

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
        group = groups.setdefault((entry.suite, entry.test, entry.rubric), _no_cases())
        group["cases"] += 1
        group["verified"] += entry.verified
        group["human_reviewed"] += entry.human_reviewed
    asked: set[tuple[str, str, str]] = set()
    for result in results:
        key = (result.suite, result.test, result.rubric_id)
        asked.add(key)
        group = groups.setdefault(key, _no_cases())
        if result.outcome == "no_case":
            group["no_case"] += 1
            reasons = group["no_case_reasons"]
            reason = shortened(one_line(result.detail), _LONGEST_REASON) or "no reason given"
            reasons[reason] = reasons.get(reason, 0) + 1
        elif result.outcome in UNSCORED:
            group["unscored"][result.outcome] = group["unscored"].get(result.outcome, 0) + 1
    for key, old in _groups_of(previous):
        if key not in asked:
            group = groups.setdefault(key, _no_cases())
            group.update(
                {
                    name: old[name]
                    for name in ("no_case", "no_case_reasons", "unscored")
                    if name in old
                }
            )
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


def _groups_of(
    summary: Mapping[str, Any],
) -> Iterable[tuple[tuple[str, str, str], Mapping[str, Any]]]:
    """Walk a summary that may be anything: a person may have edited it, or RAND's harness written
    it.
    """
    for suite, tests in _items(summary.get("suites")):
        for test, rubrics in _items(tests):
            for rubric, group in _items(rubrics):
                if isinstance(group, Mapping):
                    yield (suite, test, rubric), group


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, Mapping) else ()

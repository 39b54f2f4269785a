"""What of a baseline a session was not compared with, although it should have been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_jrh.core.model import UNSCORED, CaseResult
from pytest_jrh.core.text import counted
from pytest_jrh.stats.baseline import (
    CASE_CHANGED,
    NEVER_REPORTED,
    NOT_IN_BASELINE,
    NOT_IN_SUITE,
    Comparison,
)

# What a suite is compared by where it has grown: fewer runs cannot show a loss of another judge.
_FEWEST_RUNS = 5
_KINDS = {NOT_IN_SUITE: "left the suite", CASE_CHANGED: "with other labels or texts"}


def missing_from(
    comparison: Comparison, received: Iterable[CaseResult]
) -> tuple[set[str], list[str]]:
    """The cases, by id, that left the comparison, but what was deselected and what has no verdict;
    and clauses that count them, repeats that are gone among them.
    """
    by_id = {result.case_id: result for result in received}
    missing: set[str] = set()
    kinds: Counter[str] = Counter()
    for case, reason in comparison.not_comparable.items():
        result = by_id.get(case)
        has_failed = result is not None and result.outcome in UNSCORED
        if not has_failed and reason not in (NEVER_REPORTED, NOT_IN_BASELINE):
            missing.add(case)
            kinds[_KINDS.get(reason, "without a case or label")] += 1
    clauses = [f"{number:,} {kind}" for kind, number in kinds.most_common()]
    fewer = sum(len(now.all_scores) < len(old.all_scores) for old, now in comparison.pairs)
    if fewer:
        clauses.append(f"{counted(fewer, 'case')} with fewer repeats")
    new = [
        result
        for case, result in by_id.items()
        if comparison.not_comparable.get(case) == NOT_IN_BASELINE
    ]
    added = _not_compared(new, [pair.now for pair in comparison.pairs])
    if added:
        clauses.append(f"{counted(len(added), 'case')} not in the baseline")
    return missing.union(added), clauses


def _not_compared(new: Sequence[CaseResult], compared: Sequence[CaseResult]) -> list[str]:
    """Of new cases those of a compared run, or of a judge, rubric or class of which nothing was
    compared: a suite that has grown by runs has none. Where hardly a run was compared, and more
    cases are new than were, all of them.
    """
    runs = {(result.spec.run_id, result.spec.epoch) for result in compared}
    known = {_group(result) for result in compared}
    hardly_any = len(runs) < _FEWEST_RUNS and len(new) > len(compared)
    return [
        result.case_id
        for result in new
        if hardly_any
        or (result.spec.run_id, result.spec.epoch) in runs
        or not (result.spec.derived or _group(result) in known)
    ]


def _group(result: CaseResult) -> tuple[str, str, int | None]:
    """Judge, rubric, and of a binary judge the class."""
    label = result.label if result.spec.target_score is None else None
    return result.judge, result.spec.rubric_id, label

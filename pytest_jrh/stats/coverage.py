"""What of a baseline a session was not compared with, although it should have been."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.model import JUDGED, UNSCORED, CaseResult
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.baseline import CASE_CHANGED, Baseline, BaselineCase, Comparison, Pair, Scope

_MOST_NAMED = 3
_JUDGE = re.compile(r"\[e\d+(?:-score_-?\d+)?-(?!score_)([^\[\]]+)\]", re.ASCII)
_LEFT = "left the suite"
# What a suite is compared by where it has grown: fewer runs cannot show a loss of another judge.
_FEWEST_RUNS = 5


class Missing(NamedTuple):
    """The `cases`, by id, that are on one side only or have changed, and `sentences` that say so;
    repeats and members that are gone among them.
    """

    cases: frozenset[str]
    sentences: tuple[str, ...]


def missing_from(
    comparison: Comparison, baseline: Baseline, received: Sequence[CaseResult], scope: Scope
) -> Missing:
    """What left the comparison, but what was deselected and what has no verdict."""
    by_id = {result.case_id: result for result in received}
    unreported = scope.selected - by_id.keys()
    lines = baseline.cases
    kinds: Counter[str] = Counter()
    gone: set[str] = set()
    for case, reason in comparison.not_comparable.items():
        result = by_id.get(case)
        has_failed = result is not None and result.outcome in UNSCORED
        if case in lines and case not in unreported and not has_failed:
            gone.add(case)
            kinds[_kind(lines[case], result, reason)] += 1
    sentences = [_counted(kind, number) for kind, number in kinds.most_common()]
    compared = lines.keys() & by_id.keys() - comparison.not_comparable.keys()
    sentences += _names_gone(gone, compared)
    fewer = [pair for pair in comparison.pairs if _has_fewer_repeats(pair)]
    if fewer:
        before, now = len(fewer[0].before.all_scores), max(1, len(fewer[0].now.scores))
        repeats = counted(now, "repeat")
        sentences.append(f"{counted(len(fewer), 'case')} with {repeats} instead of {before:,}")
    added = _not_compared(comparison, received, lines)
    if added:
        sentences.append(f"{counted(len(added), 'case')} not in the baseline")
    return Missing(frozenset((*gone, *added)), tuple(sentences))


def _kind(line: BaselineCase, result: CaseResult | None, reason: str) -> str:
    """What became of a case that the baseline has."""
    if result is None:
        return _LEFT
    if reason != CASE_CHANGED:
        return "no label any more" if result.outcome == "unlabelled" else "no case any more"
    if line.score is None or result.expected not in (0, 1):
        return "other texts"
    label = line.score if line.outcome == "agree" else 1 - line.score
    return "other texts" if label == result.expected else "other labels"


def _counted(kind: str, number: int) -> str:
    if kind == _LEFT:
        return f"{number:,} {kind}"
    return f"{number:,} {'has' if number == 1 else 'have'} {kind}"


def _has_fewer_repeats(pair: Pair) -> bool:
    return max(1, len(pair.now.scores)) < len(pair.before.all_scores)


def case_names(case_id: str) -> tuple[str, str, str]:
    """Judge, rubric and test of an id; a suite's only judge has no name, and that of a case of a
    probe cannot be told from the variant's.
    """
    _, test, rubric, name = case_id.split("::", 3)
    kind = KINDS.get(test)
    judge = _JUDGE.search(name) if kind is not None and not kind.derived else None
    return (judge[1] if judge else "", rubric, test)


def _run(case_id: str) -> str:
    """Run and epoch of an id."""
    name = case_id.split("::", 3)[3]
    return re.split(r"[-\]]", name[name.rfind("[") :])[0] + name[: name.rfind("[")]


def _names_gone(gone: Iterable[str], compared: Iterable[str]) -> Iterator[str]:
    """Judges, rubrics and tests of which nothing is compared any more."""
    of_gone, of_compared = set(map(case_names, gone)), set(map(case_names, compared))
    for number, kind in enumerate(("judge", "rubric", "test")):
        names = {case[number] for case in of_gone} - {case[number] for case in of_compared} - {""}
        named = [f"{kind} {one_line(unquote(name))}" for name in sorted(names)]
        if named:
            more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
            yield f"nothing of {', '.join(named[:_MOST_NAMED])}{more}"


def _not_compared(
    comparison: Comparison, received: Sequence[CaseResult], lines: Collection[str]
) -> list[str]:
    """Judged cases that the baseline does not have although it knows their run, or nothing of their
    judge, rubric or class was compared: a suite that has grown by runs has none. Where hardly a run
    was compared, and more cases are new than were, all that are new.
    """
    new = [
        result for result in received if result.outcome in JUDGED and result.case_id not in lines
    ]
    compared = [pair.now for pair in comparison.pairs]
    compared_runs = {_run(result.case_id) for result in compared}
    if len(compared_runs) < _FEWEST_RUNS and len(new) > len(compared):
        return [result.case_id for result in new]
    runs = {_run(case) for case in lines}
    known = {_group(result) for result in compared}
    added = []
    for result in new:
        is_known = result.spec.derived or _group(result) in known
        if not is_known or _run(result.case_id) in runs:
            added.append(result.case_id)
    return added


def _group(result: CaseResult) -> tuple[str, str, int | None]:
    """Judge, rubric, and of a binary judge the class."""
    label = result.expected if result.spec.target_score is None else None
    return result.judge, result.spec.rubric_id, label

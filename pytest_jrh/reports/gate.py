"""A decision as blocks: the word and why, how sure that is, the cases, and what to do; and what has
changed since the baseline, in figures and in prompts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_jrh.core.text import counted, one_line
from pytest_jrh.reports.blocks import Cases, Cell
from pytest_jrh.stats.baseline import NOT_IN_BASELINE
from pytest_jrh.stats.changes import LEVEL
from pytest_jrh.stats.figures import NONE
from pytest_jrh.stats.limits import limit_text

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.reports.blocks import Weight
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.baseline import Pair
    from pytest_jrh.stats.changes import SetChange
    from pytest_jrh.stats.decision import Decision
    from pytest_jrh.stats.statistics import Statistics


MOST_NAMED = 50
# pytest names each of them, too, and says why.
MOST_UNSCORED = 5
_MOST_SETS = 12


def _as_sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


def certainty_sentences(decision: Decision) -> Iterator[str]:
    """The limits, the test and its level, and of each set that has lost anything p and what it
    lost; how many cases were compared.
    """
    for limit in decision.limits:
        subject = f"judge {one_line(limit.judge)}" if limit.judge else "the judge"
        yield _as_sentence(limit_text(limit, subject))
    if decision.comparison is not None:
        fixes = len(decision.fixes)
        yield (
            f"{decision.compared:,} of {counted(decision.of_baseline, 'case')} of the baseline "
            f"compared: {counted(len(decision.regressions), 'regression')}, "
            f"{'1 fix' if fixes == 1 else f'{fixes:,} fixes'}."
        )
    if not decision.sets:
        return
    unit = "whole runs" if any(of.by_runs for of in decision.sets) else "verdicts of a case"
    yield (
        f"Test by exchange of {unit}: p is the chance of a loss as large as this; adjusted, "
        f"the chance of any so unlikely among the {counted(len(decision.sets), 'set')} compared. A "
        f"set that lost more than max_drop fails where the adjusted p is below {LEVEL:.3g}."
    )
    lost = [change for change in decision.sets if change.drop > 0]
    lost.sort(key=lambda change: (change.adjusted, change.p_value))
    for change in lost[:_MOST_SETS]:
        before, now = change.before, change.now
        # An identifier keeps its case.
        name = _set_name(change)
        if not change.name:
            name = f"{name[:1].upper()}{name[1:]}"
        yield (
            f"{name}: {len(change.lost):,} lost and {len(change.won):,} won of "
            f"{change.n:,}, wrong in {before.wrong:,} of {counted(before.verdicts, 'verdict')} "
            f"before, in {now.wrong:,} of {now.verdicts:,} now: p = {change.p_value:.3g}, "
            f"{change.adjusted:.3g} adjusted."
        )
    if len(lost) > _MOST_SETS:
        yield f"{len(lost) - _MOST_SETS:,} more sets are in the JSON report."
    bounds = []
    for change in decision.sets:
        if change.is_class and change.runs > 1:
            size = f"{min(1.0, change.bound):.0%}"
            if change.is_ordinal:
                size = f"{change.bound * change.width:.1f} levels"
            bounds.append(f"{_set_name(change)} {size}")
    if bounds:
        yield (
            f"On other runs so much more could be lost unseen: {', '.join(bounds)} (one-sided 95%, "
            "as if a change broke whole runs)."
        )


def _set_name(change: SetChange) -> str:
    name = one_line(change.name) if change.name else f"{change.kind} cases"
    return f"{name} by {one_line(change.judge)}" if change.judge else name


def gate_cases(decision: Decision, session: Session) -> list[Cases]:
    """The cases that changed, count against a limit, or are missing; no list is empty."""
    lists: list[Cases] = []

    def add(title: str, cases: Mapping[str, str] | Iterable[str], weight: Weight) -> None:
        remarks = cases if isinstance(cases, Mapping) else dict.fromkeys(cases, "")
        named = tuple(session.named(case_id, why) for case_id, why in remarks.items())
        if named:
            most = MOST_UNSCORED if title == "unscored" else MOST_NAMED
            lists.append(Cases(title, named, weight, most))

    changes: tuple[tuple[str, Sequence[str], Weight], ...] = (
        ("regressions", decision.regressions, "bad"),
        ("fixes", decision.fixes, "good"),
    )
    for title, cases, weight in changes:
        add(title, [case for case in cases if case not in decision.flickered], weight)
        flickered = [case for case in cases if case in decision.flickered]
        add(f"{title} by flicker: the judge has not changed", flickered, weight)
    add("accepted into the baseline, though wrong", decision.accepted, "warning")
    if decision.active and not decision.accepted:
        compared = "disagreements not in the baseline"
        title = "disagreements" if decision.comparison is None else compared
        add(title, decision.new_wrong, "bad")
    add("never reported", decision.never_reported, "bad")
    add("unscored", decision.unscored, "bad")
    not_comparable = dict(decision.comparison.not_comparable) if decision.comparison else {}
    for case in (*decision.never_reported, *decision.unscored, *decision.new_wrong):
        not_comparable.pop(case, None)
    new = [case for case, why in not_comparable.items() if why == NOT_IN_BASELINE]
    for case in new:
        del not_comparable[case]
    add("new since the baseline", new, "muted")
    add("not comparable with the baseline", not_comparable, "warning")
    return lists


CHANGE_TITLE = "since baseline"
CHANGE_MEANING = (
    "How many points of accuracy were gained or lost since the baseline, over the cases that are "
    "compared with it."
)
PLACE = 3
"""Where it stands in the table: behind the number of cases, the accuracy and its interval."""


class Changes:
    """The changes of a session's figures since the baseline, for each row of its table."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._pairs: dict[tuple[str, str, str], list[Pair]] = {}
        for pair in pairs:
            spec = pair.now.spec
            for rubric in (spec.rubric_id, ""):
                row = (spec.suite, pair.now.judge, rubric)
                self._pairs.setdefault(row, []).append(pair)

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def about(self, total: Statistics) -> Changes:
        """The changes of one judge; none where none of its cases is compared."""
        return self if self._of(total) else Changes(())

    def cell(self, statistics: Statistics) -> Cell:
        """The difference of a row in points of accuracy; of how many cases, where not of all."""
        pairs = self._of(statistics)
        if not pairs:
            return Cell(NONE, reason="no case is compared")
        number = len(pairs)
        before = sum(_right(pair.before.all_scores, pair.now) for pair in pairs) / number
        now = sum(_right(pair.now.all_scores, pair.now) for pair in pairs) / number
        weight: Weight = ""
        if now != before:
            weight = "good" if now > before else "bad"
        sentence = (
            f"accuracy {before:.1%} before, {now:.1%} now, in {number:,} of "
            f"{counted(statistics.counts.n, 'case')}"
        )
        of = "" if number == statistics.counts.n else f"n {number:,}"
        # Rounding makes "-0.0" of what is a little below 0.
        points = round(100 * (now - before), 1) + 0.0
        return Cell(f"{points:+.1f}" if points else "0.0", of, sentence, weight)

    def _of(self, statistics: Statistics) -> Sequence[Pair]:
        row = (statistics.suite, statistics.judge, statistics.rubric)
        return self._pairs.get(row, ())


def _right(scores: tuple[int, ...], result: CaseResult) -> float:
    """The share of a case's repeats that are right; of one verdict 0 or 1."""
    right = sum(score == result.label for score in scores)
    return right / len(scores) if scores else 0.0

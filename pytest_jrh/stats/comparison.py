"""The verdicts of a session beside those of the baseline: what is compared, and what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.skips import JUDGED, Outcome
from pytest_jrh.core.text import counted
from pytest_jrh.stats.baseline import (
    NEVER_REPORTED,
    Baseline,
    Scope,
    same_case,
    same_judge,
    suite_of,
)
from pytest_jrh.stats.verdicts import Bools, Verdicts

NOT_IN_BASELINE = "not in the baseline"
NOT_IN_SUITE = "no longer in the suite"
CASE_CHANGED = "the case has changed: another text of the case or its rubric, or another label"
# What a suite is compared by where it has grown: fewer runs cannot show a loss of another judge.
_FEWEST_RUNS = 5
_KINDS = {NOT_IN_SUITE: "left the suite", CASE_CHANGED: "with other labels or texts"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The verdicts of a session in order of case ids, with those of the baseline beside them.

    `lines` are the ids of the cases that the baseline has of these suites, None without a baseline,
    and `gone` gives for those that the session has no result of the reason.
    """

    verdicts: Verdicts
    lines: Collection[str] | None = None
    gone: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def everything(self) -> Verdicts:
        """The cases with a verdict on both sides and the same digest."""
        return self.verdicts.where(~self.verdicts.before.equals(None))

    @cached_property
    def compared(self) -> Verdicts:
        """Those that count in figures: all but those of probes."""
        return self.everything.where(~self.everything.derived)

    @cached_property
    def judged(self) -> Verdicts:
        """All verdicts, compared or not."""
        return self.verdicts.judged

    @cached_property
    def not_comparable(self) -> Mapping[str, str]:
        """Why each other case is not compared, in order of case ids."""
        reasons = dict(self.gone)
        apart = self.verdicts.where(self.verdicts.apart.each(bool))
        reasons |= dict(zip(apart.ids, apart.apart.values, strict=True))
        return dict(sorted(reasons.items()))

    @cached_property
    def new(self) -> Verdicts:
        """The verdicts on cases that the baseline does not have; those of probes count in none."""
        judged = self.judged
        return judged.where(judged.apart.equals(NOT_IN_BASELINE) & ~judged.derived)

    def has_group(self, verdicts: Verdicts) -> Bools:
        """Of which verdicts cases of the judge were compared under the rubric, and of the class."""
        rubrics = {*self.compared.kinds("judge", "rubric").names}
        classes = {*self.compared.kinds("judge", "case_class").names}
        under = verdicts.kinds("judge", "rubric").each(rubrics.__contains__)
        of_class = verdicts.kinds("judge", "case_class").each(classes.__contains__)
        both: Bools = under & of_class
        return both

    @cached_property
    def regressions(self) -> tuple[str, ...]:
        """Right before, wrong now."""
        return tuple(self.everything.ids[self.everything.was_right & ~self.everything.right])

    @cached_property
    def fixes(self) -> tuple[str, ...]:
        """Wrong before, right now."""
        return tuple(self.everything.ids[~self.everything.was_right & self.everything.right])


def compare(
    baseline: Baseline | None, results: Sequence[CaseResult], verdicts: Verdicts, scope: Scope
) -> Comparison:
    """Compare verdicts, which are of some of the results, with the baseline.

    A case that was deselected is on neither side.
    """
    verdicts = verdicts.in_order(verdicts.ids)
    if baseline is None:
        return Comparison(verdicts)
    suites = scope.suites
    lines = {case_id for case_id in baseline.cases if suite_of(case_id) in suites}
    before = []
    apart, of_same_judge = [], []
    for row in verdicts.row:
        result = results[row]
        line = baseline.cases.get(result.case_id)
        is_same = line is not None and same_case(line, result)
        reason = why_apart(result.outcome, has_line=line is not None, is_same=is_same)
        before.append(None if line is None or reason else line.complete_scores)
        apart.append(reason)
        of_same_judge.append(line is not None and same_judge(line, result))
    gone = {}
    for case_id in lines - scope.deselected - {*verdicts.ids}:
        gone[case_id] = NEVER_REPORTED if case_id in scope.selected else NOT_IN_SUITE
    return Comparison(verdicts.beside(before, apart, of_same_judge), lines, gone)


def why_apart(outcome: Outcome, *, has_line: bool, is_same: bool) -> str:
    """Why a case is not compared; empty where it is, or has no verdict on either side."""
    if not has_line:
        return NOT_IN_BASELINE if outcome in JUDGED else ""
    if outcome not in JUDGED:
        return f"no verdict now: {outcome}"
    return "" if is_same else CASE_CHANGED


def missing_from(comparison: Comparison) -> tuple[set[str], list[str]]:
    """The cases, by id, that left the comparison, but what was deselected and what has no verdict;
    and clauses that count them, repeats that are gone among them.

    Of new cases those are counted that are of a compared run: a suite that has grown by runs, or by
    a judge, rubric or class, has none. Where hardly a run was compared, and more cases are new than
    were, all of such a judge, rubric and class. What probes turn is decided by itself.
    """
    verdicts, compared = comparison.verdicts, comparison.compared
    unscored = {*verdicts.ids[verdicts.unscored]}
    missing = set()
    kinds: Counter[str] = Counter()
    for case_id, reason in comparison.not_comparable.items():
        if reason not in (NOT_IN_BASELINE, NEVER_REPORTED) and case_id not in unscored:
            missing.add(case_id)
            kinds[_KINDS.get(reason, "without a case or label")] += 1
    clauses = [f"{number:,} {kind}" for kind, number in kinds.most_common()]
    repeats = compared.kinds("before", "answers")
    fewer = int(repeats.each(lambda kind: len(kind[1]) < len(kind[0])).sum())
    if fewer:
        clauses.append(f"{counted(fewer, 'case')} with fewer repeats")
    new = comparison.new
    new = new.where(comparison.has_group(new))
    runs = {*compared.run.present()}
    hardly_any = len(runs) < _FEWEST_RUNS and len(new) > len(compared)
    if not hardly_any:
        new = new.where(new.run.each(runs.__contains__))
    added = {*new.ids}
    if added:
        clauses.append(f"{counted(len(added), 'case')} not in the baseline")
    return missing | added, clauses

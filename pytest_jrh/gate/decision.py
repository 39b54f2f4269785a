"""The gate: decides from a session's verdicts, its baseline and the suite's rules (rules J3 to J5,
M3, M4).

Each item calls `tolerated` in its own process; the controller calls `decide` once, with all
results. Every tolerated disagreement counts for a threshold, or is in the baseline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from pytest_jrh.gate.baseline import Baseline, Comparison, Scope, compare
from pytest_jrh.gate.changes import KnownFlicker, changes, foreseen, has_moved, known_flicker
from pytest_jrh.gate.coverage import Coverage, coverage
from pytest_jrh.gate.thresholds import Threshold, thresholds
from pytest_jrh.models import JUDGED, UNSCORED, CaseResult
from pytest_jrh.stats.metrics import Figure
from pytest_jrh.stats.planner import ForeseenSuite, Prospect, prospects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_jrh.gate.changes import ChangeRow
    from pytest_jrh.models import CaseSpec
    from pytest_jrh.suite.suite import GateRules

WRONG_BEFORE = "wrong in the baseline too"
LEFT_TO_THE_GATE = "left to the gate"


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A judge, rubric or test without any verdict: how many cases it has, by outcome."""

    kind: Literal["judge", "rubric", "test"]
    name: str
    outcomes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The decision about one suite; ids are sorted.

    `active` is False where neither a rule nor a baseline is set: disagreements then fail their
    items. `new_disagreements` are those that neither the baseline nor a minimal accuracy tolerates;
    they count as regressions. `never_reported` are selected cases without a result; `unscored`
    gives the outcome. Either fails the session whatever the thresholds. `changes` compare the
    correctness with the baseline's last update, per judge and rubric where there are several; the
    last one is over all, and `p_value` is its. `moved` says that the reference, which a drop is
    held against, is another than the last update. `flickers` are those of the judges that are
    compared, and `foreseen` the cases of each, by run. `nothing_ran` means that the suite has no
    result at all. `unjudged` names judges, rubrics and tests without a verdict. `update_command`
    updates the baseline; it is set where nothing could be compared. `drop_undecided` says that
    `max_drop` is set without a baseline, and `is_snapshot` that any regression fails, as no rule
    says how many, or how much. `coverage` says how much of the baseline was compared, None without
    one; `undecided` are keys of the gate that decide about a test of which no case was selected.
    """

    active: bool
    passed: bool
    thresholds: tuple[Threshold, ...]
    comparison: Comparison | None
    judged: int
    new_disagreements: tuple[str, ...] = ()
    never_reported: tuple[str, ...] = ()
    unscored: Mapping[str, str] = field(default_factory=dict)
    nothing_ran: bool = False
    unjudged: tuple[Unjudged, ...] = ()
    update_command: str = ""
    changes: tuple[ChangeRow, ...] = ()
    moved: bool = False
    flickers: tuple[KnownFlicker, ...] = ()
    foreseen: Mapping[str, ForeseenSuite] = field(default_factory=dict)
    drop_undecided: bool = False
    is_snapshot: bool = False
    coverage: Coverage | None = None
    undecided: tuple[str, ...] = ()

    @property
    def p_value(self) -> Figure:
        """The two-sided p-value of the sign-flip test over clusters, of all that is compared."""
        if self.comparison is None:
            return Figure(None, "there is no baseline")
        if not self.changes:
            return Figure(None, "no case can be compared with the baseline")
        return Figure(self.changes[-1].p_value)

    @property
    def prospects(self) -> list[Prospect]:
        """What comparisons like this one show; nothing where there is none (rule M6)."""
        limits = [each.limit for each in self.thresholds if each.rule == "max_drop"]
        return prospects(self.foreseen, limits[0] if limits else None)

    @property
    def holds_a_drop(self) -> bool:
        """Whether `max_drop` decides: then few cases cannot pass by being few."""
        return any(threshold.rule == "max_drop" for threshold in self.thresholds)

    @property
    def flickered(self) -> tuple[str, ...]:
        """The regressions and fixes whose judge is the same as in the baseline."""
        return self.comparison.flickered if self.comparison else ()

    @property
    def uncompared(self) -> bool:
        """Whether the gate failed because no case could be compared with the baseline."""
        return any(
            threshold.rule == "compared" and not threshold.passed for threshold in self.thresholds
        )

    @property
    def regressions(self) -> tuple[str, ...]:
        """Agree in the baseline, disagree now."""
        return self.comparison.regressions if self.comparison else ()

    @property
    def fixes(self) -> tuple[str, ...]:
        """Disagree in the baseline, agree now."""
        return self.comparison.fixes if self.comparison else ()

    @property
    def not_comparable(self) -> Mapping[str, str]:
        """The cases that are on one side only, or have changed, each with the reason."""
        return self.comparison.not_comparable if self.comparison else {}


def tolerated(result: CaseResult, baseline: Baseline | None, rules: GateRules) -> str | None:
    """Why a case's disagreement does not fail its item; None where it does, or the case agrees
    (rule J4).

    Needs only the case's own result, so that every xdist worker can call it.
    """
    if result.outcome != "disagree":
        return None
    before = baseline.match(result) if baseline else None
    if before is not None and before.outcome == "disagree":
        return f"{WRONG_BEFORE}: {before.reason}" if before.reason else WRONG_BEFORE
    counted = rules.covers(result.test) or rules.max_regressions
    compared = rules.max_drop is not None and before is not None and not result.derived
    return LEFT_TO_THE_GATE if counted or compared else None


def is_active(rules: GateRules, baseline: Baseline | None) -> bool:
    """Whether there is a rule or a baseline to decide by."""
    return baseline is not None or rules.decides


def decide(
    results: Iterable[CaseResult],
    baseline: Baseline | None,
    rules: GateRules,
    scope: Scope,
    left_out: Collection[CaseSpec] = (),
) -> GateDecision:
    """Decide about one suite, from the last result of each of its cases (rules J3 to J5).

    `scope` holds the suite's ids alone; `left_out` are cases that a marker or another plugin has
    skipped, which are in neither. Selected cases without a result are named.
    """
    given = {result.case_id: result for result in results}
    received = [given[case_id] for case_id in sorted(given)]
    judged = [result for result in received if result.outcome in JUDGED]
    comparison = compare(baseline, received, scope) if baseline is not None else None
    active = is_active(rules, baseline)
    answered = {*comparison.regressions, *comparison.still_wrong} if comparison else set()
    new = tuple(
        result.case_id
        for result in judged
        if result.outcome == "disagree"
        and result.case_id not in answered
        and not rules.covers(result.test)
    )
    whole = not scope.deselected
    covered = coverage(baseline, comparison, received, scope) if baseline and comparison else None
    found = thresholds(received, judged, comparison, covered, new, rules, whole=whole)
    applied = tuple(found) if active else ()
    never_reported = tuple(sorted(scope.selected - given.keys()))
    unscored = {result.case_id: result.outcome for result in received if result.outcome in UNSCORED}
    own = [result for result in judged if not result.derived]
    flickers = tuple(_flickers(own, comparison)) if comparison else ()
    return GateDecision(
        active=active,
        passed=all(threshold.passed for threshold in applied)
        and not never_reported
        and not unscored
        and not (active and not received),
        thresholds=applied,
        comparison=comparison,
        judged=len(judged),
        new_disagreements=new,
        never_reported=never_reported,
        unscored=unscored,
        nothing_ran=active and not received,
        unjudged=tuple(_unjudged(received, left_out)),
        changes=changes(comparison.pairs) if comparison else (),
        moved=comparison is not None and has_moved(comparison.pairs),
        flickers=flickers,
        foreseen=foreseen(flickers, comparison.pairs) if comparison else {},
        drop_undecided=rules.max_drop is not None and comparison is None,
        is_snapshot=bool(comparison and comparison.compared) and rules.allows_no_regression,
        coverage=covered,
        undecided=tuple(_undecided(rules, applied)) if received else (),
    )


def _undecided(rules: GateRules, applied: Sequence[Threshold]) -> Iterator[str]:
    """Keys of the gate about tests of which nothing was selected."""
    for key, limits in (("probes", rules.probes), ("min_accuracy", rules.min_accuracy)):
        tests = limits if isinstance(limits, Mapping) else {}
        decided = {threshold.test for threshold in applied}
        yield from (f"gate.{key}.{test}" for test in tests if test not in decided)


def _flickers(judged: Sequence[CaseResult], comparison: Comparison) -> Iterator[KnownFlicker]:
    for judge in dict.fromkeys(pair.now.judge for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if pair.now.judge == judge]
        own = [result for result in judged if result.judge == judge]
        yield replace(known_flicker(own, pairs), judge=judge)


def _unjudged(received: Sequence[CaseResult], left_out: Iterable[CaseSpec]) -> Iterator[Unjudged]:
    """Judges, rubrics and tests whose cases were all skipped or unscored; a suite's only judge has
    no name.
    """
    found = [
        *(
            (one.judge, one.rubric_id, one.test, one.outcome)
            for one in received
            if one.outcome != "generated"
        ),
        *((spec.judge or "", spec.rubric_id, spec.test, "skipped") for spec in left_out),
    ]
    kinds: tuple[Literal["judge", "rubric", "test"], ...] = ("judge", "rubric", "test")
    for place, kind in enumerate(kinds):
        outcomes: dict[str, Counter[str]] = {}
        for names in found:
            outcomes.setdefault(names[place], Counter())[names[-1]] += 1
        for name, counts in outcomes.items():
            if name and not counts.keys() & set(JUDGED):
                yield Unjudged(kind, name, tuple(sorted(counts.items())))

"""The gate: decides from a session's verdicts, its baseline and the suite's rules (rules J3 to J5).

Each item calls `tolerated` in its own process; the controller calls `decide` once, with all
results. Every tolerated disagreement counts for a threshold, or is in the baseline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.gate.baseline import Baseline, Comparison, Scope, compare
from pytest_jrh.models import JUDGED, UNSCORED, CaseResult
from pytest_jrh.stats.inference.formulas import mcnemar
from pytest_jrh.stats.metrics import Figure
from pytest_jrh.stats.statistics import describe
from pytest_jrh.suite.suite import GateRules

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_jrh.models import CaseSpec

WRONG_BEFORE = "wrong in the baseline too"
LEFT_TO_THE_GATE = "left to the gate"
Rule: TypeAlias = Literal["min_accuracy", "lower_bound", "max_regressions", "min_cases", "compared"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """One rule applied: `figure` must reach `limit`, or for max_regressions not exceed it.

    `compared` requires at least one case that can be compared with the baseline; it is listed only
    where there is none. `rule` is `lower_bound` where the lower end of the interval is compared
    with `min_accuracy`. `test` and `judge` say whose verdicts they are, empty for all; `n` counts
    them. `cases` are the ids of the disagreements among them that count.
    """

    rule: Rule
    limit: float
    figure: Figure
    passed: bool
    n: int
    test: str = ""
    judge: str = ""
    cases: tuple[str, ...] = ()


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
    gives the outcome. Either fails the session whatever the thresholds. `p_value` is the two-sided
    exact McNemar test's. `nothing_ran` means that the suite has no result at all. `unjudged` names
    judges, rubrics and tests without a verdict. `update_command` updates the baseline; it is set
    where nothing could be compared.
    """

    active: bool
    passed: bool
    thresholds: tuple[Threshold, ...]
    comparison: Comparison | None
    p_value: Figure
    judged: int
    new_disagreements: tuple[str, ...] = ()
    never_reported: tuple[str, ...] = ()
    unscored: Mapping[str, str] = field(default_factory=dict)
    nothing_ran: bool = False
    unjudged: tuple[Unjudged, ...] = ()
    update_command: str = ""

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
    return LEFT_TO_THE_GATE if rules.covers(result.test) or rules.max_regressions else None


def is_active(rules: GateRules, baseline: Baseline | None) -> bool:
    """Whether there is a rule or a baseline to decide by."""
    return baseline is not None or replace(rules, allow_uncompared=False) != GateRules()


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
    thresholds = tuple(_thresholds(received, judged, comparison, new, rules)) if active else ()
    never_reported = tuple(sorted(scope.selected - given.keys()))
    unscored = {result.case_id: result.outcome for result in received if result.outcome in UNSCORED}
    return GateDecision(
        active=active,
        passed=all(threshold.passed for threshold in thresholds)
        and not never_reported
        and not unscored
        and not (active and not received),
        thresholds=thresholds,
        comparison=comparison,
        p_value=_p_value(comparison),
        judged=len(judged),
        new_disagreements=new,
        never_reported=never_reported,
        unscored=unscored,
        nothing_ran=active and not received,
        unjudged=tuple(_unjudged(received, left_out)),
    )


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


def _p_value(comparison: Comparison | None) -> Figure:
    if comparison is None:
        return Figure(None, "there is no baseline")
    if not comparison.compared:
        return Figure(None, "no case can be compared with the baseline")
    return Figure(mcnemar(len(comparison.regressions), len(comparison.fixes)))


def _thresholds(
    received: Sequence[CaseResult],
    judged: Sequence[CaseResult],
    comparison: Comparison | None,
    new: tuple[str, ...],
    rules: GateRules,
) -> Iterator[Threshold]:
    to_judge = [result for result in received if result.outcome != "generated"]
    for judge in dict.fromkeys(result.judge for result in to_judge):
        n = sum(result.judge == judge for result in judged)
        yield Threshold(
            "min_cases", rules.min_cases, Figure(n), n >= rules.min_cases, n, judge=judge
        )
        own = [result for result in to_judge if result.judge == judge]
        yield from _accuracies(own, judge, rules)
    if comparison is not None and judged and not comparison.compared:
        yield Threshold("compared", 1, Figure(0), rules.allow_uncompared, 0)
    if comparison is not None or rules.max_regressions or new:
        cases = tuple(sorted({*new, *(comparison.regressions if comparison else ())}))
        passed = len(cases) <= rules.max_regressions
        n = comparison.compared if comparison else len(judged)
        yield Threshold(
            "max_regressions", rules.max_regressions, Figure(len(cases)), passed, n, cases=cases
        )


def _accuracies(own: Sequence[CaseResult], judge: str, rules: GateRules) -> Iterator[Threshold]:
    """Compare a judge's accuracy with the rules.

    A test without selected cases is left out.
    """
    wanted = rules.min_accuracy
    limits = wanted if isinstance(wanted, Mapping) else {} if wanted is None else {"": wanted}
    for test, limit in limits.items():
        group = [result for result in own if test in ("", result.test)]
        if not group:
            continue
        found = describe(group)
        figure = (
            Figure(found.interval.lower, found.interval.reason)
            if rules.lower_bound
            else found.accuracy
        )
        yield Threshold(
            rule="lower_bound" if rules.lower_bound else "min_accuracy",
            limit=limit,
            figure=figure,
            passed=figure.value is not None and figure.value >= limit,
            n=found.counts.n,
            test=test,
            judge=judge,
            cases=tuple(result.case_id for result in group if result.outcome == "disagree"),
        )

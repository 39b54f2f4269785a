"""The gate: decides from a session's verdicts, its baseline and the suite's rules, and says how
much of the baseline was compared.

Each item calls `tolerated` in its own process; the controller calls `decide` once, with all
results. Every tolerated disagreement counts for a threshold, or is in the baseline.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.model import JUDGED, UNCOMPARED, UNSCORED, CaseResult
from pytest_jrh.stats.baseline import Baseline, Comparison, Scope, compare, suite_of
from pytest_jrh.stats.changes import (
    KnownFlicker,
    SetChange,
    known_flicker,
    right_before,
    right_now,
    set_changes,
)
from pytest_jrh.stats.exchange import SESSION_LEVEL
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.intervals import POWER
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.probes import ProbeDecision, decide_probe, probe_tables
from pytest_jrh.stats.statistics import accuracy_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_jrh.config.schema import GateRules
    from pytest_jrh.core.model import CaseSpec
    from pytest_jrh.stats.baseline import Pair
    from pytest_jrh.stats.formulas import Verdict


_JUDGE = re.compile(r"\[e\d+(?:-score_-?\d+)?-(?!score_)([^\[\]]+)\]", re.ASCII)


class FewerRepeats(NamedTuple):
    """So many compared cases were judged `before` times for the baseline, and `now` times, which is
    less.
    """

    cases: int
    before: int
    now: int


Kind: TypeAlias = Literal["judge", "rubric", "test"]
_KINDS: tuple[Kind, ...] = ("judge", "rubric", "test")


class Missing(NamedTuple):
    """A judge, rubric or test that the baseline has, and of which no case was compared."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the baseline a session was compared with.

    `of` are the baseline's cases of the suite, of which `compared` could be compared and
    `deselected` were left out by `-k`, a marker or a node id. `added` are the session's verdicts on
    cases that the baseline does not have. Names are as in the ids of cases.
    """

    compared: int
    of: int
    added: int = 0
    deselected: int = 0
    repeats: tuple[FewerRepeats, ...] = ()
    missing: tuple[Missing, ...] = ()

    @property
    def total(self) -> int:
        """The cases of the baseline, or of the session, whichever has more."""
        return max(self.of, self.compared + self.added)

    @property
    def share(self) -> float | None:
        """The smaller of two shares that were compared: of the baseline's and of the session's
        cases; None where there are none.
        """
        return self.compared / self.total if self.total else None


def coverage(
    baseline: Baseline, comparison: Comparison, results: Iterable[CaseResult], scope: Scope
) -> Coverage:
    """Say how much of the baseline's cases of one suite is in a comparison; see `Coverage`."""
    suites = scope.suites
    lines = {case_id for case_id in baseline.cases if suite_of(case_id) in suites}
    judged = {result.case_id for result in results if result.outcome in JUDGED}
    compared = (judged & lines) - comparison.not_comparable.keys()
    return Coverage(
        compared=len(compared),
        of=len(lines),
        added=len(judged - lines),
        deselected=len(scope.deselected & lines),
        repeats=tuple(_fewer_repeats(comparison.pairs)),
        missing=tuple(_missing(lines, compared)),
    )


def _fewer_repeats(pairs: Iterable[Pair]) -> Iterator[FewerRepeats]:
    counts = Counter((len(pair.before.all_scores), max(1, len(pair.now.scores))) for pair in pairs)
    for (before, now), cases in sorted(counts.items()):
        if now < before:
            yield FewerRepeats(cases, before, now)


def _missing(lines: set[str], compared: set[str]) -> Iterator[Missing]:
    """What is in the ids of the baseline's cases, and in none of those that were compared."""
    if lines <= compared:
        return
    of_baseline, of_compared = set(map(case_names, lines)), set(map(case_names, compared))
    for number, kind in enumerate(_KINDS):
        names = {case[number] for case in of_baseline} - {case[number] for case in of_compared}
        yield from (Missing(kind, name) for name in sorted(names - {""}))


def case_names(case_id: str) -> tuple[str, str, str]:
    """Judge, rubric and test of an id; a suite's only judge has no name, and that of a case of a
    probe cannot be told from the variant's.
    """
    _, test, rubric, name = case_id.split("::", 3)
    kind = KINDS.get(test)
    judge = _JUDGE.search(name) if kind is not None and not kind.derived else None
    return (judge[1] if judge else "", rubric, test)


@dataclass(frozen=True, slots=True)
class DropDecision:
    """What the changes of one judge come to under `gate.max_drop`.

    FAIL: the sets in `worse` have lost more than the limit, and more than flicker explains. With
    `gate.proof`, INCONCLUSIVE: of those in `unproven` a larger drop is not excluded. `replayed`
    says that judge and verdicts are those of the baseline.
    """

    verdict: Verdict
    changes: tuple[SetChange, ...]
    worse: tuple[SetChange, ...] = ()
    unproven: tuple[SetChange, ...] = ()
    replayed: bool = False


Rule: TypeAlias = Literal[
    "min_accuracy",
    "lower_bound",
    "max_drop",
    "max_regressions",
    "min_cases",
    "min_compared",
    "compared",
    "one_class",
    "probe_rate",
]


@dataclass(frozen=True, slots=True)
class Threshold:
    """One rule applied: `figure` must reach `limit`, or for max_regressions not exceed it.

    Of `min_compared` the figure is the share of the baseline's cases, and of the session's, that
    were compared, `n` how many these are and `total` of how many.
    `compared` requires at least one case that can be compared with the baseline; it is listed only
    where there is none. `one_class` requires cases of two labels; it is listed only where there are
    those of `label` alone and that is not allowed. Of `probe_rate` the figure is the share of
    verdicts that the probe `test` has turned, and `probe` says what it comes to. `rule` is
    `lower_bound` where the lower end of the interval is compared with `min_accuracy`. Of `max_drop`
    the figure is the largest drop of a set, and `drop`
    says what it comes to. `test` and `judge` say whose verdicts they are, empty for all; `n` counts
    them. `cases` are the ids of the disagreements among them that count. `by_chance` is the number
    of judges of which the lowest may well be so low: a panel passes then although the figure is
    below its limit.
    """

    rule: Rule
    limit: float
    figure: Estimate
    passed: bool
    n: int
    test: str = ""
    judge: str = ""
    cases: tuple[str, ...] = ()
    drop: DropDecision | None = None
    probe: ProbeDecision | None = None
    by_chance: int = 0
    label: int | None = None
    total: int = 0


class _Compared(NamedTuple):
    """What a session is compared with: None of each without a baseline."""

    comparison: Comparison | None
    covered: Coverage | None
    changes: tuple[SetChange, ...]
    flickers: tuple[KnownFlicker, ...]


def thresholds(
    received: Sequence[CaseResult],
    judged: Sequence[CaseResult],
    compared: _Compared,
    new: Sequence[str],
    rules: GateRules,
    *,
    whole: bool,
) -> Iterator[Threshold]:
    """Apply every rule; `new` are the disagreements that neither baseline nor gate answer for, and
    `whole` says that no case of the suite was deselected.
    """
    comparison, covered = compared.comparison, compared.covered
    to_judge = [
        result
        for result in received
        if result.outcome not in UNCOMPARED and not result.spec.derived
    ]
    counting = [result for result in judged if not result.spec.derived]
    judges = list(dict.fromkeys(result.judge for result in to_judge))
    for judge in judges:
        n = sum(result.judge == judge for result in counting)
        passed = n >= rules.min_cases
        yield Threshold("min_cases", rules.min_cases, Estimate(n), passed, n, judge=judge)
    yield from _accuracies(to_judge, judges, rules)
    if comparison is not None and judged and not comparison.compared:
        yield Threshold("compared", 1, Estimate(0), rules.allow_uncompared, 0)
    if covered is not None:
        yield from _share_compared(covered, rules)
    if whole:
        yield from _classes(counting, rules)
    yield from _drops(judges, compared, rules)
    yield from _probe_rates(received, judges, rules, whole=whole)
    yield from _regressions(judged, comparison, new, rules)


def _share_compared(covered: Coverage, rules: GateRules) -> Iterator[Threshold]:
    """Hold the share that was compared against its limit, also where cases were deselected on
    purpose: a part of the suite does not pass for the whole.
    """
    limit, share = rules.min_compared, covered.share
    new_suite = rules.allow_uncompared and not covered.compared
    if limit is not None and share is not None and not new_suite:
        yield Threshold(
            "min_compared",
            limit,
            Estimate(share),
            share >= limit,
            covered.compared,
            total=covered.total,
        )


def _classes(judged: Sequence[CaseResult], rules: GateRules) -> Iterator[Threshold]:
    """Fail a gate that a judge would pass which always gives the one label that there is (L6).

    A baseline alone only compares, so that it is left to the warning; so is a single case.
    """
    labels = {made_case_id(result): result.expected for result in judged}
    classes = set(labels.values())
    if rules.decides and not rules.allow_one_class and len(classes) == 1 and len(labels) > 1:
        label = classes.pop()
        yield Threshold("one_class", 2, Estimate(1), passed=False, n=len(judged), label=label)


def _regressions(
    judged: Sequence[CaseResult],
    comparison: Comparison | None,
    new: Sequence[str],
    rules: GateRules,
) -> Iterator[Threshold]:
    """Count regressions and what is new; those that another rule decides about, only where a
    limit is set.
    """
    by_id = {result.case_id: result for result in judged}
    regressions = comparison.regressions if comparison is not None else ()
    if rules.max_regressions is None:
        regressions = tuple(case for case in regressions if not _is_answered(by_id[case], rules))
    limit = rules.max_regressions or 0
    cases = tuple(sorted({*new, *regressions}))
    compared = comparison is not None and comparison.compared
    decides = compared and rules.max_drop is None and rules.min_accuracy is None
    if decides or cases or rules.max_regressions is not None:
        n = comparison.compared if comparison is not None else len(judged)
        passed = len(cases) <= limit
        yield Threshold("max_regressions", limit, Estimate(len(cases)), passed, n, cases=cases)


def _is_answered(result: CaseResult, rules: GateRules) -> bool:
    """Whether another rule decides about a regression."""
    held = rules.max_drop is not None and not result.spec.derived
    return held or rules.covers(result.spec.test)


def _probe_rates(
    received: Sequence[CaseResult], judges: Sequence[str], rules: GateRules, *, whole: bool
) -> Iterator[Threshold]:
    """Hold the share of verdicts that each probe turns against its limit.

    A probe without selected cases is left out, unless the session is the whole suite.
    """
    if not rules.probe_limits:
        return
    tables = {(table.probe, table.judge): table for table in probe_tables(received)}
    for probe, limit in rules.probe_limits.items():
        present = [judge for name, judge in tables if name == probe]
        for judge in present or (judges if whole else ()):
            table = tables.get((probe, judge))
            decided = decide_probe(table, limit, proof=rules.proof)
            unproven = decided.verdict == "INCONCLUSIVE" and decided.rate.value is not None
            tolerable = unproven and rules.inconclusive == "pass"
            yield Threshold(
                "probe_rate",
                limit,
                decided.rate,
                decided.verdict == "PASS" or tolerable,
                table.total.n if table else 0,
                test=probe,
                judge=judge,
                cases=table.cases if table else (),
                probe=decided,
            )


def _drops(judges: Sequence[str], compared: _Compared, rules: GateRules) -> Iterator[Threshold]:
    """Hold what each judge has lost against `max_drop`.

    Where nothing can be compared at all, that is a threshold by itself.
    """
    comparison = compared.comparison
    if rules.max_drop is None or comparison is None or not comparison.compared:
        return
    for judge in judges:
        pairs = [pair for pair in comparison.pairs if pair.now.judge == judge]
        if not pairs and rules.allow_uncompared:
            continue
        drop = _decide_drop(judge, pairs, compared, rules)
        tolerable = bool(drop.unproven) and rules.inconclusive == "pass"
        largest = max((change.drop for change in drop.changes), default=None)
        yield Threshold(
            "max_drop",
            rules.max_drop,
            Estimate(largest, n=len(pairs), why="" if pairs else NOTHING_COMPARED),
            drop.verdict == "PASS" or tolerable,
            len(pairs),
            judge=judge,
            cases=tuple(pair.now.case_id for pair in pairs if _lost(pair)),
            drop=drop,
        )


NOTHING_COMPARED = "no case could be compared"
# What is computed in another order is the same.
_ROUNDING = 1e-9


def _decide_drop(
    judge: str, pairs: Sequence[Pair], compared: _Compared, rules: GateRules
) -> DropDecision:
    """FAIL where a set has lost more than is allowed, and more than flicker explains; PASS else,
    unless that is to be proven.
    """
    limit = rules.max_drop or 0.0
    changes = tuple(change for change in compared.changes if change.judge == judge)
    worse = tuple(
        change
        for change in changes
        if change.drop > limit + _ROUNDING and change.adjusted < SESSION_LEVEL - _ROUNDING
    )
    if worse:
        return DropDecision("FAIL", changes, worse)
    if not pairs:
        return DropDecision("INCONCLUSIVE", ())
    replayed = is_replay(pairs)
    if not rules.proof or replayed:
        return DropDecision("PASS", changes, replayed=replayed)
    unproven = tuple(
        change
        for change in changes
        if change.is_whole and (change.unseen.upper is None or change.unseen.upper >= limit)
    )
    if not unproven:
        return DropDecision("PASS", changes)
    return DropDecision("INCONCLUSIVE", changes, unproven=unproven)


def is_replay(pairs: Sequence[Pair]) -> bool:
    """Whether nothing is to be proven: the same judge, and the same verdicts.

    A session that replays what its baseline was made of has no drop to find, however small it is.
    """
    return all(
        pair.same_judge and sorted(pair.before.all_scores) == sorted(pair.now.all_scores)
        for pair in pairs
    )


def _lost(pair: Pair) -> bool:
    """Whether a case is wrong now and was not, or less often, before."""
    if pair.now.outcome != "disagree":
        return False
    return pair.before.outcome == "agree" or right_now(pair.now) < right_before(pair)


def _accuracies(
    to_judge: Sequence[CaseResult], judges: Sequence[str], rules: GateRules
) -> Iterator[Threshold]:
    """Compare the accuracy of each judge with the rules.

    A test without selected cases is left out.
    """
    limits = rules.min_accuracy
    if limits is None:
        return
    if not isinstance(limits, Mapping):
        limits = {"": limits}
    for test, limit in limits.items():
        groups: dict[str, list[CaseResult]] = {judge: [] for judge in judges}
        for result in to_judge:
            if test in ("", result.spec.test):
                groups[result.judge].append(result)
        judged = {
            judge: [result for result in group if result.outcome in JUDGED]
            for judge, group in groups.items()
            if group
        }
        low = _surely_below(judged, limit)
        for judge, verdicts in judged.items():
            figure = accuracy_of(verdicts)
            if rules.lower_bound:
                figure = Estimate(figure.lower, why=figure.why)
            reached = figure.value is not None and figure.value >= limit
            spared = figure.value is not None and not rules.lower_bound and judge not in low
            yield Threshold(
                rule="lower_bound" if rules.lower_bound else "min_accuracy",
                limit=limit,
                figure=figure,
                passed=reached or spared,
                n=len(verdicts),
                test=test,
                judge=judge,
                cases=tuple(result.case_id for result in verdicts if result.outcome == "disagree"),
                by_chance=len(judged) if spared and not reached else 0,
            )


def _surely_below(judged: Mapping[str, Sequence[CaseResult]], limit: float) -> set[str]:
    """The judges of a panel whose accuracy is below a limit that all must reach.

    Of one judge, the accuracy that was seen counts: it is below where a test at the level 1/2 would
    say so. Of several, the lowest is low by chance more often; Holm's adjustment of that level,
    1/2k for k judges, keeps how often a panel fails that is right at the limit. With
    `gate.lower_bound` nothing is adjusted: all judges have to show that they reach the limit, and a
    panel with one that does not passes no more often than that judge alone (Berger 1982,
    Technometrics 24:295-300).
    """
    low: set[str] = set()
    while left := [judge for judge in judged if judge not in low]:
        below = {judge for judge in left if _is_below(judged[judge], limit, len(left))}
        low |= below
        if not below:
            break
    return low


def _is_below(judged: Sequence[CaseResult], limit: float, judges: int) -> bool:
    accuracy = accuracy_of(judged)
    if accuracy.value is None or accuracy.value >= limit:
        return accuracy.value is None
    if judges == 1:
        return True
    upper = accuracy_of(judged, 1 - 1 / judges).upper
    return upper is None or upper < limit


WRONG_BEFORE = "wrong in the baseline too"
LEFT_TO_THE_GATE = "left to the gate"
ACCEPTED = "accepted into the baseline"


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A judge, rubric or test without any verdict: how many cases it has, by outcome."""

    kind: Kind
    name: str
    outcomes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The decision about one suite; ids are sorted.

    `active` is False where neither a rule nor a baseline is set: disagreements then fail their
    items. `new_disagreements` are those that neither the baseline nor a minimal accuracy tolerates;
    they count as regressions. `accepted` are those that an update takes into the baseline for the
    first time. `never_reported` are selected cases without a result; `unscored`
    gives the outcome. Either fails the session whatever the thresholds. `changes` compare the
    verdicts with the baseline's by set of cases. `flickers` are those of the judges that are
    compared. `nothing_ran` means that the suite has no
    result at all. `unjudged` names judges, rubrics and tests without a verdict. `update_command`
    updates the baseline; it is set where nothing could be compared, and where the suite has
    outgrown the baseline. `drop_undecided` says that `max_drop` is set without a baseline, which is
    not written either, and `is_snapshot` that any regression fails, as no rule says how many, or
    how much. `coverage` says how much of the baseline was compared, None without one; `undecided`
    are keys of the gate that decide about a test of which no case was selected. `subset` is set
    where it is about a subset of the suite's cases.
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
    accepted: tuple[str, ...] = ()
    changes: tuple[SetChange, ...] = ()
    flickers: tuple[KnownFlicker, ...] = ()
    drop_undecided: bool = False
    is_snapshot: bool = False
    coverage: Coverage | None = None
    undecided: tuple[str, ...] = ()
    subset: SubsetView | None = None

    @property
    def is_reported(self) -> bool:
        """Whether reports speak of it: a gate is set, something is missing or was accepted."""
        return self.active or not self.passed or bool(self.accepted)

    @property
    def holds_a_drop(self) -> bool:
        """Whether `max_drop` decides: then few cases cannot pass by being few."""
        return any(threshold.rule == "max_drop" for threshold in self.thresholds)

    @property
    def changed_unseen(self) -> tuple[str, ...]:
        """The regressions and fixes whose judge is the same as in the baseline by what is known of
        it, and has lost more since than flicker explains.
        """
        worse = {
            change.judge
            for change in self.changes
            if change.drop > 0 and change.adjusted < SESSION_LEVEL
        }
        if self.comparison is None or not worse:
            return ()
        cases = {pair.now.case_id for pair in self.comparison.pairs if pair.now.judge in worse}
        return tuple(case for case in self.comparison.flickered if case in cases)

    @property
    def flickered(self) -> tuple[str, ...]:
        """The other regressions and fixes whose judge is the same as in the baseline."""
        unseen = set(self.changed_unseen)
        again = self.comparison.flickered if self.comparison else ()
        return tuple(case for case in again if case not in unseen)

    @property
    def uncompared(self) -> bool:
        """Whether the gate failed because no case, or none of a judge, could be compared with the
        baseline.
        """
        return any(
            not threshold.passed
            and (
                threshold.rule == "compared"
                or (threshold.drop is not None and not threshold.drop.changes)
            )
            for threshold in self.thresholds
        )

    @property
    def outgrown(self) -> bool:
        """Whether the gate failed only because the suite has many cases beside the baseline's, all
        of which were compared.
        """
        coverage = self.coverage
        if coverage is None or self.unscored or self.never_reported or self.unjudged:
            return False
        failed = [threshold.rule for threshold in self.thresholds if not threshold.passed]
        return failed == ["min_compared"] and coverage.compared == coverage.of

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


@dataclass(frozen=True, slots=True)
class SubsetView:
    """What the gate of a subset of the suite's cases can see.

    `waived` are the keys of the gate that decide about all cases alone. `seen_from` is the smallest
    drop that is seen in 80% of sessions where any regression fails, None elsewhere; `judged` are
    the cases of the judge with the fewest that count, and `judges` how many there are.
    """

    name: str
    waived: tuple[str, ...]
    judges: int
    judged: int
    seen_from: float | None


# What no judge can show on a few cases, however good it is.
_OF_ALL_CASES: Mapping[str, bool | int] = {"lower_bound": False, "proof": False, "min_cases": 1}


def of_subset(rules: GateRules) -> tuple[GateRules, tuple[str, ...]]:
    """The rules that decide about a subset, and the keys of those that do not."""
    waived = {}
    for key, unset in _OF_ALL_CASES.items():
        if getattr(rules, key) not in (unset, 0):
            waived[key] = unset
    return rules.model_copy(update=waived), tuple(f"gate.{key}" for key in waived)


def subset_view(
    name: str, waived: tuple[str, ...], results: Iterable[CaseResult], decision: GateDecision
) -> SubsetView:
    """Say what the gate of a subset can see: any wrong verdict, but not under `max_drop`."""
    judged: Counter[str] = Counter()
    for result in results:
        if result.outcome in JUDGED and not result.spec.derived:
            judged[result.judge] += 1
    fewest = min(judged.values(), default=0)
    seen_from = 1 - (1 - POWER) ** (1 / fewest) if fewest else None
    if fewest and decision.holds_a_drop and decision.changes and not decision.is_snapshot:
        seen_from = None
    return SubsetView(name, waived, len(judged), fewest, seen_from)


def tolerated(
    result: CaseResult, baseline: Baseline | None, rules: GateRules, *, accepts: bool = False
) -> str | None:
    """Why a case's disagreement does not fail its item; None where it does, or the case agrees.

    Needs only the case's own result, so that every xdist worker can call it.
    """
    if result.outcome != "disagree":
        return None
    if accepts and _is_new(result.case_id, baseline):
        return ACCEPTED
    before = baseline.match(result) if baseline else None
    if before is not None and before.outcome == "disagree":
        return f"{WRONG_BEFORE}: {before.reason}" if before.reason else WRONG_BEFORE
    counted = rules.covers(result.spec.test) or rules.max_regressions
    compared = rules.max_drop is not None and before is not None and not result.spec.derived
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
    *,
    accepts: bool = False,
) -> GateDecision:
    """Decide about one suite, from the last result of each of its cases.

    `scope` holds the suite's ids alone; `left_out` are cases that a marker or another plugin has
    skipped, which are in neither. Selected cases without a result are named. A session that
    `accepts` writes the baseline, and takes in what is wrong in cases that are not in it yet.
    """
    by_id = {result.case_id: result for result in results}
    received = [by_id[case_id] for case_id in sorted(by_id)]
    judged = [result for result in received if result.outcome in JUDGED]
    comparison = compare(baseline, received, scope) if baseline is not None else None
    active = is_active(rules, baseline)
    answered = {*comparison.regressions, *comparison.still_wrong} if comparison else set()
    unanswered = [
        result.case_id
        for result in judged
        if result.outcome == "disagree"
        and result.case_id not in answered
        and not rules.covers(result.spec.test)
    ]
    accepted = tuple(case for case in unanswered if accepts and _is_new(case, baseline))
    new = tuple(case for case in unanswered if case not in accepted)
    compared = _compared(baseline, comparison, received, scope)
    whole = not scope.deselected
    applied = tuple(thresholds(received, judged, compared, new, rules, whole=whole))
    if not active:
        applied = ()
    never_reported = tuple(sorted(scope.selected - by_id.keys()))
    unscored = {result.case_id: result.outcome for result in received if result.outcome in UNSCORED}
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
        accepted=accepted,
        changes=compared.changes,
        flickers=compared.flickers,
        drop_undecided=rules.max_drop is not None and comparison is None and not accepts,
        is_snapshot=bool(comparison and comparison.compared) and rules.allows_no_regression,
        coverage=compared.covered,
        undecided=tuple(_undecided(rules, applied)) if received else (),
    )


def _is_new(case_id: str, baseline: Baseline | None) -> bool:
    return baseline is None or case_id not in baseline.cases


def _compared(
    baseline: Baseline | None,
    comparison: Comparison | None,
    received: Sequence[CaseResult],
    scope: Scope,
) -> _Compared:
    if baseline is None or comparison is None:
        return _Compared(None, None, (), ())
    pairs = comparison.pairs
    judged = [result for result in received if result.outcome in JUDGED]
    counting = [result for result in judged if not result.spec.derived]
    covered = coverage(baseline, comparison, received, scope)
    return _Compared(
        comparison, covered, set_changes(pairs), tuple(_flickers(counting, comparison))
    )


def _undecided(rules: GateRules, applied: Sequence[Threshold]) -> Iterator[str]:
    """Keys of the gate about tests of which nothing was selected."""
    for key, limits in (("probes", rules.probe_limits), ("min_accuracy", rules.min_accuracy)):
        tests = limits if isinstance(limits, Mapping) else {}
        decided = {threshold.test for threshold in applied}
        yield from (f"gate.{key}.{test}" for test in tests if test not in decided)


def _flickers(judged: Sequence[CaseResult], comparison: Comparison) -> Iterator[KnownFlicker]:
    for judge in dict.fromkeys(pair.now.judge for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if pair.now.judge == judge]
        of_judge = [result for result in judged if result.judge == judge]
        yield replace(known_flicker(of_judge, pairs), judge=judge)


def _unjudged(received: Sequence[CaseResult], left_out: Iterable[CaseSpec]) -> Iterator[Unjudged]:
    """Judges, rubrics and tests whose cases were all skipped or unscored; a suite's only judge has
    no name.
    """
    cases: Counter[tuple[str, str, str, str]] = Counter(
        (result.judge, result.spec.rubric_id, result.spec.test, result.outcome)
        for result in received
        if result.outcome not in UNCOMPARED
    )
    cases.update((spec.judge or "", spec.rubric_id, spec.test, "skipped") for spec in left_out)
    for number, kind in enumerate(_KINDS):
        outcomes: dict[str, Counter[str]] = {}
        for names, count in cases.items():
            outcomes.setdefault(names[number], Counter())[names[-1]] += count
        for name, counts in outcomes.items():
            if name and not counts.keys() & set(JUDGED):
                yield Unjudged(kind, name, tuple(sorted(counts.items())))

"""The rules of a gate, applied to what a session came to (rules J4, M4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.gate.changes import known_flicker, losses, repeats_of, right_before, right_now
from pytest_jrh.models import JUDGED
from pytest_jrh.stats.bounded import accuracy_bounds
from pytest_jrh.stats.inference.noninferiority import (
    Change,
    DropDecision,
    Judged,
    decide_drops,
)
from pytest_jrh.stats.metrics import Figure
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.probing.figures import flicker_of_bases, tallies_of
from pytest_jrh.stats.probing.rates import RateDecision, decide_rate
from pytest_jrh.stats.statistics import describe
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from pytest_jrh.gate.baseline import Comparison, Pair
    from pytest_jrh.gate.coverage import Coverage
    from pytest_jrh.models import CaseResult
    from pytest_jrh.suite.suite import GateRules

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
    verdicts that the probe `test` has turned, and `rate` says what it comes to. `rule` is
    `lower_bound` where the lower end of the interval is compared with `min_accuracy`. Of `max_drop`
    the figure is the drop, and `drop`
    says what it comes to. `test` and `judge` say whose verdicts they are, empty for all; `n` counts
    them. `cases` are the ids of the disagreements among them that count. `by_chance` is the number
    of judges of which the lowest may well be so low: a panel passes then although the figure is
    below its limit.
    """

    rule: Rule
    limit: float
    figure: Figure
    passed: bool
    n: int
    test: str = ""
    judge: str = ""
    cases: tuple[str, ...] = ()
    drop: DropDecision | None = None
    rate: RateDecision | None = None
    by_chance: int = 0
    label: int | None = None
    total: int = 0


def thresholds(
    received: Sequence[CaseResult],
    judged: Sequence[CaseResult],
    comparison: Comparison | None,
    covered: Coverage | None,
    new: Sequence[str],
    rules: GateRules,
    *,
    whole: bool,
) -> Iterator[Threshold]:
    """Apply every rule; `covered` says how much of the baseline is in the comparison, `new` are the
    disagreements that neither baseline nor gate answer for, and `whole` says that no case of the
    suite was deselected.
    """
    to_judge = [
        result for result in received if result.outcome != "generated" and not result.derived
    ]
    own = [result for result in judged if not result.derived]
    judges = list(dict.fromkeys(result.judge for result in to_judge))
    for judge in judges:
        n = sum(result.judge == judge for result in own)
        passed = n >= rules.min_cases
        yield Threshold("min_cases", rules.min_cases, Figure(n), passed, n, judge=judge)
    yield from _accuracies(to_judge, judges, rules)
    if comparison is not None and judged and not comparison.compared:
        yield Threshold("compared", 1, Figure(0), rules.allow_uncompared, 0)
    if covered is not None:
        yield from _share_compared(covered, rules)
    if whole:
        yield from _classes(own, rules)
    yield from _drops(own, judges, comparison, rules)
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
            Figure(share),
            share >= limit,
            covered.compared,
            total=covered.total,
        )


def _classes(judged: Sequence[CaseResult], rules: GateRules) -> Iterator[Threshold]:
    """Fail a gate that a judge would pass which always gives the one label that there is (L6).

    A baseline alone only compares, so that it is left to the warning; so is a single case.
    """
    labels = {made_case_id(result): result.expected for result in judged}
    found = set(labels.values())
    if rules.decides and not rules.allow_one_class and len(found) == 1 and len(labels) > 1:
        label = found.pop()
        yield Threshold("one_class", 2, Figure(1), passed=False, n=len(judged), label=label)


def _regressions(
    judged: Sequence[CaseResult],
    comparison: Comparison | None,
    new: Sequence[str],
    rules: GateRules,
) -> Iterator[Threshold]:
    """Count regressions and what is new; those that another rule decides about, only where a
    limit is set (rule M4).
    """
    by_id = {result.case_id: result for result in judged}
    found = comparison.regressions if comparison is not None else ()
    if rules.max_regressions is None:
        found = tuple(case for case in found if not _is_answered(by_id[case], rules))
    limit = rules.max_regressions or 0
    cases = tuple(sorted({*new, *found}))
    compared = comparison is not None and comparison.compared
    decides = compared and rules.max_drop is None and rules.min_accuracy is None
    if decides or cases or rules.max_regressions is not None:
        n = comparison.compared if comparison is not None else len(judged)
        passed = len(cases) <= limit
        yield Threshold("max_regressions", limit, Figure(len(cases)), passed, n, cases=cases)


def _is_answered(result: CaseResult, rules: GateRules) -> bool:
    """Whether another rule decides about a regression."""
    held = rules.max_drop is not None and not result.derived
    return held or rules.covers(result.test)


def _probe_rates(
    received: Sequence[CaseResult], judges: Sequence[str], rules: GateRules, *, whole: bool
) -> Iterator[Threshold]:
    """Hold the share of verdicts that each probe turns against its limit (rule S8).

    A probe without selected cases is left out, unless the session is the whole suite.
    """
    for probe, limit in rules.probes.items():
        given = [result for result in received if result.test == probe]
        asked = dict.fromkeys(result.judge for result in given)
        for judge in asked or (judges if whole else ()):
            own = [each for each in given if each.judge == judge and each.outcome in JUDGED]
            flicker = flicker_of_bases(own).value
            found = decide_rate(tallies_of(own), limit, flicker, max(1, len(asked)))
            tolerable = found.verdict == "INCONCLUSIVE" and rules.inconclusive == "pass"
            yield Threshold(
                "probe_rate",
                limit,
                Figure(found.rate, found.reason),
                found.verdict == "PASS" or tolerable,
                len(own),
                test=probe,
                judge=judge,
                cases=tuple(result.case_id for result in own if result.outcome == "disagree"),
                rate=found,
            )


def _drops(
    judged: Sequence[CaseResult],
    judges: Sequence[str],
    comparison: Comparison | None,
    rules: GateRules,
) -> Iterator[Threshold]:
    """Hold the drop of each judge since the reference against `max_drop` (rules M4, M7).

    Where nothing can be compared at all, that is a threshold by itself.
    """
    if rules.max_drop is None or comparison is None or not comparison.compared:
        return
    of_judge = {
        judge: [pair for pair in comparison.pairs if pair.now.judge == judge] for judge in judges
    }
    given = {
        judge: pairs for judge, pairs in of_judge.items() if pairs or not rules.allow_uncompared
    }
    asked = {judge: pairs for judge, pairs in given.items() if not pairs or _may_differ(pairs)}
    panel = [
        _judged([each for each in judged if each.judge == judge], pairs)
        for judge, pairs in asked.items()
    ]
    found = dict(zip(asked, decide_drops(panel, rules.max_drop), strict=True))
    for judge, pairs in given.items():
        drop = found.get(judge) or _unchanged(len(pairs))
        tolerable = drop.verdict == "INCONCLUSIVE" and rules.inconclusive == "pass"
        yield Threshold(
            "max_drop",
            rules.max_drop,
            Figure(drop.drop, None if drop.drop is not None else drop.reason),
            drop.verdict == "PASS" or tolerable,
            len(pairs),
            judge=judge,
            cases=tuple(pair.now.case_id for pair in pairs if _lost(pair)),
            drop=drop,
        )


def _unchanged(cases: int) -> DropDecision:
    """What needs no test: the same judge said the same of so many cases as in the baseline."""
    many = counted(cases, "compared case")
    reason = f"judge and verdicts are those of the baseline in {many}"
    return DropDecision("PASS", 0.0, reason=reason)


def _may_differ(pairs: Sequence[Pair]) -> bool:
    """Whether anything is to be tested: another judge, or another verdict of the same one.

    A session that replays what its baseline and its reference were made of has no drop to find,
    however small it is.
    """
    return any(
        not pair.same_judge
        or pair.before.reference
        or sorted(pair.before.all_scores) != sorted(pair.now.scores or _once(pair.now))
        for pair in pairs
    )


def _once(result: CaseResult) -> tuple[int, ...]:
    return () if result.score is None else (result.score,)


def _judged(judged: Sequence[CaseResult], pairs: Sequence[Pair]) -> Judged:
    changes = [Change(float(loss), n) for loss, n in losses(pairs, "reference")]
    return Judged(changes, known_flicker(judged, pairs).value, repeats_of(pairs))


def _lost(pair: Pair) -> bool:
    """Whether a case is wrong now and was not, or less often, before."""
    if pair.now.outcome != "disagree":
        return False
    before = max(right_before(pair), right_before(pair, "reference"))
    return pair.before.outcome == "agree" or right_now(pair.now) < before


def _accuracies(
    to_judge: Sequence[CaseResult], judges: Sequence[str], rules: GateRules
) -> Iterator[Threshold]:
    """Compare the accuracy of each judge with the rules.

    A test without selected cases is left out.
    """
    wanted = rules.min_accuracy
    limits = wanted if isinstance(wanted, Mapping) else {} if wanted is None else {"": wanted}
    for test, limit in limits.items():
        groups = {
            judge: [
                result for result in to_judge if result.judge == judge and test in ("", result.test)
            ]
            for judge in judges
        }
        groups = {judge: group for judge, group in groups.items() if group}
        low = _surely_below(groups, limit)
        for judge, group in groups.items():
            found = describe(group)
            figure = found.accuracy
            if rules.lower_bound:
                figure = Figure(found.interval.lower, found.interval.reason)
            reached = figure.value is not None and figure.value >= limit
            spared = figure.value is not None and not rules.lower_bound and judge not in low
            yield Threshold(
                rule="lower_bound" if rules.lower_bound else "min_accuracy",
                limit=limit,
                figure=figure,
                passed=reached or spared,
                n=found.counts.n,
                test=test,
                judge=judge,
                cases=tuple(result.case_id for result in group if result.outcome == "disagree"),
                by_chance=len(groups) if spared and not reached else 0,
            )


def _surely_below(groups: Mapping[str, Sequence[CaseResult]], limit: float) -> set[str]:
    """The judges of a panel whose accuracy is below a limit that all must reach (rules J4, L5).

    Of one judge, the accuracy that was seen counts: it is below where a test at the level 1/2 would
    say so. Of several, the lowest is low by chance more often; Holm's adjustment of that level,
    1/2k for k judges, keeps how often a panel fails that is right at the limit. With
    `gate.lower_bound` nothing is adjusted: all judges have to show that they reach the limit, and a
    panel with one that does not passes no more often than that judge alone (Berger 1982,
    Technometrics 24:295-300).
    """
    low: set[str] = set()
    while left := [judge for judge in groups if judge not in low]:
        found = {judge for judge in left if _is_below(groups[judge], limit, len(left))}
        low |= found
        if not found:
            break
    return low


def _is_below(group: Sequence[CaseResult], limit: float, judges: int) -> bool:
    found = describe(group)
    if found.accuracy.value is None or found.accuracy.value >= limit:
        return found.accuracy.value is None
    if judges == 1:
        return True
    judged = [result for result in group if result.outcome in ("agree", "disagree")]
    upper = accuracy_bounds(judged, 1 - 1 / judges).upper
    return upper is None or upper < limit

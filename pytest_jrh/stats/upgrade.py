"""Whether one judge can take the place of another on the same cases: a word, and what it rests on.

Whatever the gate can say is said by the gate: old verdicts are taken as a baseline, and new ones as
a session.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.config.schema import GateRules
from pytest_jrh.stats.baseline import Baseline, BaselineCase, Pair, Scope
from pytest_jrh.stats.exchange import SESSION_LEVEL, CaseErrors, differing_p
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.gate import GateDecision, decide
from pytest_jrh.stats.intervals import (
    estimate_bias,
    estimate_kappa,
    estimate_share,
    summed,
    tallied,
)
from pytest_jrh.stats.planning import SUPPOSED_FLIP, ForeseenSuite, runs_to_prove

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_jrh.core.model import CaseResult, ClusterId, Spending
    from pytest_jrh.stats.changes import SetChange


UpgradeWord: TypeAlias = Literal["EQUIVALENT", "BETTER", "WORSE", "DIFFERENT", "UNDECIDED"]
OLD_JUDGE, NEW_JUDGE = "the old judge", "the new judge"
"""What judges without names of their own are called."""
MAX_DROP = 0.05
_NO_DROP = GateRules(max_drop=0.0, allow_one_class=True)
# Two verdicts of a case cannot differ more often by chance.
_MOST_FLICKER = 0.5


@dataclass(frozen=True, slots=True)
class ClassChange:
    """What a change of the judge does to the violated cases, to the satisfied ones, or of an
    ordinal judge to all.

    `change` is the gate's; the upper bound of its `over_runs` is the largest loss over runs that
    they do not exclude, and that of `gain` the largest gain; where one is negative, the other is
    that of which at least as much is sure. The numbers are of cases, by the majority
    of their repeats.
    """

    change: SetChange
    gain: Estimate
    both_right: int
    only_old: int
    only_new: int
    both_wrong: int

    def is_within(self, max_drop: float) -> bool:
        """Whether a loss and a gain as large as this are both excluded."""
        bounds = (self.change.over_runs.upper, self.gain.upper)
        return all(bound is not None and bound < max_drop for bound in bounds)


class Answers(NamedTuple):
    """What two judges said of one run as it is, whether it has a label or not."""

    cluster: ClusterId
    before: int
    now: int


@dataclass(frozen=True, slots=True)
class RunShares:
    """What two judges say of the same runs as they are: the shares that each calls violated, of
    ordinal ones nothing, and by how much the answers of the new one are higher.

    `kappa` is their agreement beyond chance, and `kept` and `raised` are the shares that the new
    judge calls violated of the runs that the old one called violated, and of the others.
    """

    old: Estimate
    new: Estimate
    difference: Estimate
    kept: Estimate
    raised: Estimate
    kappa: Estimate


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What comes of putting the judge `new` in the place of `old`.

    EQUIVALENT: a loss of `max_drop` and a gain of as much are both excluded, of each class, or it
    is one judge with the same verdicts (`is_replayed`). WORSE:
    the gate with a `max_drop` of 0 fails for the sets in `worse`, and does so, too, where repeats
    are taken together. BETTER: it does not, and would for those in `better` if the old judge took
    the place of the new one. Neither holds where cases have no verdict of the new judge, which may
    be those that it would get wrong; `absent` counts those of which it has no row at all.
    DIFFERENT: neither, but the verdicts differ on more cases than flicker explains. UNDECIDED: none
    of it is shown.
    `different_p` is None where that cannot be told from flicker, as no case was judged more than
    once.

    `decision` is what the gate says to the same: with proof of `max_drop` where that is proven,
    else with a `max_drop` of 0. `runs` like these would prove that both are equivalent, if they
    are, and None where no number is known. `one_class` says that all labels are the same, so that
    a judge which always gives this one would be right. `spendings` are
    what both took, and whether that is without the making of the cases; None where it is not known.
    `seconds` are those that the verdicts of both took on the compared cases, as far as these were
    measured: when the judge was asked, not when it was replayed.
    """

    word: UpgradeWord
    old: str
    new: str
    max_drop: float
    decision: GateDecision
    classes: tuple[ClassChange, ...]
    worse: tuple[SetChange, ...] = ()
    better: tuple[SetChange, ...] = ()
    differing: int = 0
    different_p: float | None = None
    runs: int | None = None
    one_class: bool = False
    absent: int = 0
    shares: RunShares | None = None
    spendings: tuple[Spending, Spending, bool] | None = None
    seconds: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    @property
    def compared(self) -> int:
        """How many cases have a verdict of both."""
        return len(self.pairs)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The cases with a verdict of both: the old one as the line of a baseline."""
        comparison = self.decision.comparison
        return comparison.pairs if comparison is not None else ()

    @property
    def old_results(self) -> list[CaseResult]:
        """The results of the old judge on the compared cases."""
        return [exchanged(pair).now for pair in self.pairs]

    @property
    def loses_on_these(self) -> bool:
        """Whether the gate fails on these cases, as repeats show, though that may be chance on
        others.
        """
        return self.word != "WORSE" and bool(_lost(self.decision))

    @property
    def is_replayed(self) -> bool:
        """Whether it is one judge, whose verdicts are all the same: nothing was shown anew."""
        return _is_replayed(self.decision)

    @property
    def passed(self) -> bool | None:
        """Whether the new judge may take the place of the old one; None where that is open."""
        if self.loses_on_these or self.decision.unscored or self.absent:
            return False
        return {"EQUIVALENT": True, "BETTER": True, "WORSE": False}.get(self.word)


def exchanged(pair: Pair) -> Pair:
    """The same case with the verdicts of now as those of before, and the reverse."""
    before, now = pair
    line = BaselineCase(
        now.case_id,
        before.case_digest,
        before.judge_fingerprint,
        "agree" if now.outcome == "agree" else "disagree",
        now.score,
        scores=now.scores,
    )
    result = replace(
        now,
        outcome=before.outcome,
        score=before.score,
        scores=before.scores,
        reasoning="",
        minority=None,
    )
    return Pair(line, result)


def decide_upgrade(
    results: Sequence[CaseResult],
    before: Baseline,
    names: tuple[str, str],
    max_drop: float = MAX_DROP,
    answers: Sequence[Answers] = (),
    absent: int = 0,
) -> Upgrade:
    """Compare the verdicts of a judge with those of an older one on the same cases.

    `results` are those of the new judge, also those without a verdict; in `before` stand those of
    the old one under the same ids, and `names` are the old one's and the new one's. `answers` are
    those to runs as they are, and `absent` counts the cases of the old judge that are not among
    `results`.
    """
    scope = Scope.of(result.case_id for result in results)
    proof = GateRules(max_drop=max_drop, proof=True, allow_one_class=True)
    decision = decide(results, before, _NO_DROP, scope)
    proven = decide(results, before, proof, scope)
    pairs = decision.comparison.pairs if decision.comparison is not None else ()
    back = [exchanged(pair) for pair in pairs]
    lines = {line.case_id: line for line, _ in back}
    reverse = decide([result for _, result in back], Baseline(lines), _NO_DROP, scope)
    classes = []
    for change, gain in zip(decision.changes, reverse.changes, strict=True):
        if change.is_whole:
            classes.append(_class_change(change, gain, pairs))
    one_class = len(classes) == 1 and not classes[0].change.ordinal
    is_proven = _is_replayed(proven) or all(of_class.is_within(max_drop) for of_class in classes)
    worse = _lost_by_case(decision, pairs)
    better = () if one_class or decision.unscored or absent else _lost_by_case(reverse, back)
    different_p = _different_p(pairs)
    word: UpgradeWord = "UNDECIDED"
    if proven.passed and is_proven and not absent and not one_class:
        word, decision = "EQUIVALENT", proven
    elif worse:
        word = "WORSE"
    elif better:
        word = "BETTER"
    elif different_p is not None and different_p < SESSION_LEVEL:
        word = "DIFFERENT"
    return Upgrade(
        word,
        *names,
        max_drop,
        decision,
        tuple(classes),
        worse,
        better,
        differing=sum(pair.before.score != pair.now.score for pair in pairs),
        different_p=different_p,
        runs=_runs(classes, proven, max_drop) if word == "UNDECIDED" else None,
        one_class=one_class,
        absent=absent,
        shares=_shares(answers) if answers else None,
    )


def _lost(decision: GateDecision) -> tuple[SetChange, ...]:
    """The sets for which `max_drop` fails."""
    lost: tuple[SetChange, ...] = ()
    for threshold in decision.thresholds:
        if threshold.drop is not None:
            lost += threshold.drop.worse
    return lost


def _lost_by_case(decision: GateDecision, pairs: Sequence[Pair]) -> tuple[SetChange, ...]:
    """Those of the sets for which `max_drop` fails that have also lost more than it does when the
    judges are exchanged case by case, all repeats together.

    Repeats show of each case that it is judged otherwise. That two judges are wrong on other cases
    makes neither of them the worse one: how many cases they lose to each other is chance, too.
    """
    lost = _lost(decision)
    if not lost or all(
        len(pair.before.all_scores) == len(pair.now.all_scores) == 1 for pair in pairs
    ):
        return lost
    lines = {pair.before.case_id: replace(pair.before, scores=()) for pair in pairs}
    results = [replace(pair.now, scores=()) for pair in pairs]
    by_case = decide(results, Baseline(lines), _NO_DROP, Scope.of(lines))
    shown = {(change.kind, change.rubric) for change in _lost(by_case)}
    return tuple(change for change in lost if (change.kind, change.rubric) in shown)


def _is_replayed(decision: GateDecision) -> bool:
    return any(threshold.drop and threshold.drop.replayed for threshold in decision.thresholds)


def _class_change(change: SetChange, gain: SetChange, pairs: Sequence[Pair]) -> ClassChange:
    labels = {"violated": 1, "satisfied": 0}
    right: Counter[tuple[bool, bool]] = Counter()
    for before, now in pairs:
        if change.ordinal or now.expected == labels[change.kind]:
            right[before.outcome == "agree", now.outcome == "agree"] += 1
    return ClassChange(
        change,
        gain.over_runs,
        both_right=right[True, True],
        only_old=right[True, False],
        only_new=right[False, True],
        both_wrong=right[False, False],
    )


def _different_p(pairs: Iterable[Pair]) -> float | None:
    """How likely verdicts differ as much if both judges say the same equally often."""
    cases = []
    for before, now in pairs:
        if before.all_scores and now.all_scores:
            cases.append(CaseErrors(before.all_scores, now.all_scores))
    return differing_p(cases)


def _runs(classes: Iterable[ClassChange], proven: GateDecision, max_drop: float) -> int | None:
    """How many runs like these prove that two judges are equivalent which are as good, and differ
    as often as these do, or at least as often as the gate supposes of one that is asked again.
    """
    flickers = {flicker.judge: flicker for flicker in proven.flickers}
    among = max((len(change.sizes) for change in proven.changes), default=0)
    suites = []
    for of_class in classes:
        flicker = flickers[of_class.change.judge]
        by_itself = flicker.value
        if by_itself is None:
            by_itself = 2 * SUPPOSED_FLIP * (1 - SUPPOSED_FLIP)
        differing = (of_class.only_old + of_class.only_new) / of_class.change.n
        share = min(_MOST_FLICKER, max(by_itself, differing * flicker.repeats))
        suites.append(ForeseenSuite(of_class.change.sizes, flicker.repeats, share, among))
    return runs_to_prove(suites, max_drop)


def _shares(answers: Sequence[Answers]) -> RunShares:
    """What both say of the same runs."""
    scores = [(cluster, (before, now)) for cluster, before, now in answers]
    violated = [(cluster, now == 1) for cluster, before, now in answers if before == 1]
    others = [(cluster, now == 1) for cluster, before, now in answers if before != 1]
    sums = summed(scores)
    return RunShares(
        old=estimate_share(tallied((cluster, before == 1) for cluster, before, _ in answers)),
        new=estimate_share(tallied((cluster, now == 1) for cluster, _, now in answers)),
        difference=estimate_bias(sums),
        kept=estimate_share(tallied(violated)),
        raised=estimate_share(tallied(others)),
        kappa=estimate_kappa(sums),
    )

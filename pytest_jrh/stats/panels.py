"""Several judges on the same cases: agreement between them, and their majority vote (rule E4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

from pytest_jrh.cases.ids import generation_id
from pytest_jrh.core.model import JUDGED, CaseSpec
from pytest_jrh.core.text import counted
from pytest_jrh.stats.formulas import Share, cohen_kappa, confusion_matrix, quadratic_kappa
from pytest_jrh.stats.intervals import Bounds, Tally, kappa_bounds, share_bounds, sums_of
from pytest_jrh.stats.metrics import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult, Spending
    from pytest_jrh.stats.formulas import Pair
    from pytest_jrh.stats.statistics import Cluster


_NOTHING_SHARED = "no case has a verdict of both"


@dataclass(frozen=True, slots=True)
class JudgePair:
    """How two judges of a panel agree on the cases that both gave a score, whatever the label.

    `kappa` is Cohen's, quadratically weighted in ordinal mode; `disagreements` are those cases'
    ids, without judge. The intervals are over clusters.
    """

    judges: tuple[str, str]
    agreement: Share
    kappa: Figure
    disagreements: tuple[str, ...]
    agreement_interval: Bounds
    kappa_interval: Bounds


@dataclass(frozen=True, slots=True)
class PanelVote:
    """One case's vote: `score` is what more than half of the panel gave, None with the `reason`
    where there is none.

    A judge without a verdict, or whose repeats tie, counts as one of the panel, so a majority is
    one that it could not undo. `case` is the id without a judge; `votes` counts the verdicts by
    score, most first; of a `tie`, two or more were given by equally many.
    """

    case: str
    test: str
    rubric_id: str
    expected: int
    votes: tuple[tuple[int, int], ...]
    score: int | None = None
    reason: str | None = None
    tie: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """The judges of one suite taken together (rule L7).

    `accuracy` is the majority's over the cases that have one, `overall` over all cases with a
    verdict of any judge: where there is no majority the panel is not right. `ties` is the share of
    cases without a majority whose votes tie. `intervals` are theirs, by these names.
    """

    suite: str
    judges: tuple[str, ...]
    pairs: tuple[JudgePair, ...]
    votes: tuple[PanelVote, ...]
    accuracy: Share
    overall: Share
    ties: Share
    intervals: Mapping[str, Bounds] = field(default_factory=dict)

    @property
    def without_vote(self) -> tuple[PanelVote, ...]:
        """The cases without a majority."""
        return tuple(vote for vote in self.votes if vote.score is None)


def panels(results: Iterable[CaseResult]) -> list[Panel]:
    """Compare the judges of each suite that has several, in the order in which they appear.

    Cases of probes are no part of it.
    """
    suites: dict[str, list[_Verdict]] = {}
    given = [result for result in results if not result.spec.derived]
    judges: dict[str, set[str]] = {}
    for result in given:
        judges.setdefault(result.spec.suite, set()).add(result.judge)
    for result in given:
        if len(judges[result.spec.suite]) == 1:
            continue
        if result.outcome in JUDGED and result.expected is not None:
            verdict = _Verdict(made_case_id(result), result, result.expected, result.score)
            suites.setdefault(result.spec.suite, []).append(verdict)
    found = [_panel(suite, verdicts) for suite, verdicts in suites.items()]
    return [panel for panel in found if len(panel.judges) > 1]


def counted_once(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Count the generation of a case that a panel shares for only one of its judges, as in a single
    process.

    Two xdist workers, or two shards, that have judges of one case each replay its generation. What
    was paid for is never left out.
    """
    given = list(results)
    makers: dict[str, int] = {}
    for index, result in enumerate(given):
        if _made(result):
            made, maker = made_case_id(result), makers.get(made_case_id(result))
            if maker is None or (_asked(result) and not _asked(given[maker])):
                makers[made] = index
    kept = set(makers.values())
    return [
        _without_making(result)
        if _made(result) and index not in kept and not _asked(result)
        else result
        for index, result in enumerate(given)
    ]


def spending_of(result: CaseResult, *, makes: bool) -> Spending:
    """The spending of a result, with or without the generation of its case, which counts for one
    judge of a panel.
    """
    if result.judge_spending is None or makes or _asked(result):
        return result.spending
    return result.judge_spending


def _without_making(result: CaseResult) -> CaseResult:
    assert result.judge_spending is not None
    return replace(result, spending=result.judge_spending, shared=None)


def _made(result: CaseResult) -> bool:
    return result.judge_spending is not None and result.spending != result.judge_spending


def _asked(result: CaseResult) -> bool:
    return result.judge_spending is not None and result.spending.calls > result.judge_spending.calls


@dataclass(frozen=True, slots=True)
class _Verdict:
    case: str
    result: CaseResult
    expected: int
    score: int | None


def made_case_id(result: CaseResult) -> str:
    """The id of the made case that a result is about: several judges look at one."""
    test = result.spec.test
    spec = CaseSpec(
        result.spec.suite,
        test,
        result.spec.rubric_id,
        result.spec.run_id,
        result.spec.epoch,
        result.spec.target_score,
        base=result.spec.base,
        variant=result.spec.variant,
    )
    return generation_id(spec)


def _panel(suite: str, verdicts: Sequence[_Verdict]) -> Panel:
    judges = tuple(dict.fromkeys(verdict.result.judge for verdict in verdicts))
    cases: dict[str, dict[str, _Verdict]] = {}
    for verdict in verdicts:
        cases.setdefault(verdict.case, {})[verdict.result.judge] = verdict
    votes = tuple(_vote(list(given.values()), len(judges)) for given in cases.values())
    clusters = {verdict.case: verdict.result.spec.cluster_id for verdict in verdicts}
    decided = [vote for vote in votes if vote.score is not None]
    right = sum(map(_is_right, decided))
    return Panel(
        suite=suite,
        judges=judges,
        pairs=tuple(_pair(one, other, cases) for one, other in combinations(judges, 2)),
        votes=votes,
        accuracy=Share(right, len(decided), None if decided else "no answer has a majority"),
        overall=Share(right, len(votes)),
        ties=Share(sum(vote.tie for vote in votes), len(votes)),
        intervals={
            "accuracy": _interval(decided, _is_right, clusters),
            "overall": _interval(votes, _is_right, clusters),
            "ties": _interval(votes, lambda vote: vote.tie, clusters),
        },
    )


def _is_right(vote: PanelVote) -> bool:
    return vote.score == vote.expected


def _interval(
    votes: Iterable[PanelVote],
    is_counted: Callable[[PanelVote], bool],
    clusters: Mapping[str, Cluster],
) -> Bounds:
    found: dict[Cluster, list[bool]] = {}
    for vote in votes:
        found.setdefault(clusters[vote.case], []).append(is_counted(vote))
    return share_bounds(Tally(sum(each), len(each)) for each in found.values())


def _pair(one: str, other: str, cases: Mapping[str, Mapping[str, _Verdict]]) -> JudgePair:
    both = {
        case: (given[one].score, given[other].score)
        for case, given in cases.items()
        if one in given and other in given
    }
    scores = {case: (a, b) for case, (a, b) in both.items() if a is not None and b is not None}
    different = tuple(case for case, (first, second) in scores.items() if first != second)
    ordinal = any(cases[case][one].result.spec.target_score is not None for case in scores)
    matrix = confusion_matrix(scores.values())
    kappa = quadratic_kappa(matrix) if ordinal else cohen_kappa(matrix)
    if not scores:
        none = Bounds(reason=_NOTHING_SHARED)
        share, figure = Share(0, 0, _NOTHING_SHARED), Figure(None, _NOTHING_SHARED)
        return JudgePair((one, other), share, figure, (), none, none)
    same = Share(len(scores) - len(different), len(scores))
    clusters: dict[Cluster, list[Pair]] = {}
    for case, pair in scores.items():
        clusters.setdefault(cases[case][one].result.spec.cluster_id, []).append(pair)
    agreement = share_bounds(
        Tally(sum(first == second for first, second in each), len(each))
        for each in clusters.values()
    )
    bounds = kappa_bounds(map(sums_of, clusters.values()))
    if kappa.reason:
        bounds = Bounds(reason=kappa.reason)
    return JudgePair((one, other), same, kappa, different, agreement, bounds)


def _vote(given: Sequence[_Verdict], judges: int) -> PanelVote:
    counts = tuple(
        sorted(
            Counter(verdict.score for verdict in given if verdict.score is not None).items(),
            key=lambda each: (-each[1], each[0]),
        )
    )
    score, most = counts[0] if counts else (None, 0)
    first = given[0]
    vote = PanelVote(
        first.case, first.result.spec.test, first.result.spec.rubric_id, first.expected, counts
    )
    if 2 * most > judges:
        return replace(vote, score=score)
    missing = judges - sum(number for _, number in counts)
    without = f"; {counted(missing, 'judge')} gave no score" if missing else ""
    if not counts:
        return replace(vote, reason=f"no judge of {judges} gave a score")
    tie = len(counts) > 1 and counts[1][1] == most
    kind = "a tie" if tie else "no majority"
    said = ", ".join(f"{number} for {answer}" for answer, number in counts)
    text = f"{kind}: {said} of {counted(judges, 'judge')}{without}"
    return replace(vote, reason=text, tie=tie)

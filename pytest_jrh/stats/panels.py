"""Several judges on the same cases: agreement between them, and their majority vote."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.model import (
    JUDGED,
    CaseSpending,
)
from pytest_jrh.core.text import counted
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.intervals import estimate_kappa, estimate_share, grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult, ClusterId, Spending


_NOTHING_SHARED = "no case has a verdict of both"


@dataclass(frozen=True, slots=True)
class JudgePair:
    """How two judges of a panel agree on the cases that both gave a score, whatever the label.

    `kappa` is Cohen's, quadratically weighted in ordinal mode; `disagreements` are those cases'
    ids, without judge.
    """

    judges: tuple[str, str]
    agreement: Estimate
    kappa: Estimate
    disagreements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PanelVote:
    """One case's vote: `score` is what more than half of the panel gave, None with the `reason`
    where there is none.

    A judge without a verdict, or whose repeats tie, counts as one of the panel, so a majority is
    one that it could not undo. `case` is the id without a judge; `votes` counts the verdicts by
    score, most first.
    """

    case: str
    test: str
    rubric_id: str
    expected: int
    votes: tuple[tuple[int, int], ...]
    score: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """The judges of one suite taken together.

    `accuracy` is the majority's over all cases with a verdict of any judge: where there is no
    majority the panel is not right.
    """

    suite: str
    judges: tuple[str, ...]
    pairs: tuple[JudgePair, ...]
    votes: tuple[PanelVote, ...]
    accuracy: Estimate

    @property
    def without_vote(self) -> tuple[PanelVote, ...]:
        """The cases without a majority."""
        return tuple(vote for vote in self.votes if vote.score is None)


def panels(results: Iterable[CaseResult]) -> list[Panel]:
    """Compare the judges of each suite that has several, in the order in which they appear.

    Cases of probes are no part of it.
    """
    suites = grouped(
        (result.suite, result)
        for result in results
        if result.outcome in JUDGED and result.label is not None and not result.spec.derived
    )
    return [
        _panel(suite, verdicts)
        for suite, verdicts in suites.items()
        if len({result.judge for result in verdicts}) > 1
    ]


def counted_once(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Count the generation of a case that a panel shares for one of its judges, the first in order.

    Each judge says it, whoever has made the case: in this process, another xdist worker or shard.
    What was paid for is never left out.
    """
    every_result = list(results)
    makers: dict[str, str] = {}
    for result in sorted(every_result, key=_asked, reverse=True):
        if _made(result):
            makers.setdefault(made_case_id(result), result.case_id)
    counted_results = []
    for result in every_result:
        of_judge = result.spending.judge
        is_counted = not _made(result) or _asked(result)
        if of_judge is None or is_counted or makers[made_case_id(result)] == result.case_id:
            counted_results.append(result)
        else:
            counted_results.append(replace(result, spending=CaseSpending(of_judge, of_judge)))
    return counted_results


def spending_of(result: CaseResult, *, makes: bool) -> Spending:
    """The spending of a result, with or without the generation of its case, which counts for one
    judge of a panel.
    """
    if result.spending.judge is None or makes or _asked(result):
        return result.spending.all
    return result.spending.judge


def _made(result: CaseResult) -> bool:
    return result.spending.judge not in (None, result.spending.all)


def _asked(result: CaseResult) -> bool:
    of_judge = result.spending.judge
    return of_judge is not None and result.spending.all.calls > of_judge.calls


def made_case_id(result: CaseResult) -> str:
    """The id of the made case that a result is about: several judges look at one."""
    # A lone judge has no part of the id, which is long work to make.
    return result.case_id if result.spec.judge is None else generation_id(result.spec)


def by_made_case(results: Iterable[CaseResult]) -> dict[str, list[CaseResult]]:
    """The results of all judges, by the id of the case that they judged."""
    return grouped((made_case_id(result), result) for result in results)


def _panel(suite: str, verdicts: Sequence[CaseResult]) -> Panel:
    judges = tuple(dict.fromkeys(result.judge for result in verdicts))
    cases: dict[str, dict[str, CaseResult]] = {}
    clusters: dict[str, ClusterId] = {}
    for result in verdicts:
        case = made_case_id(result)
        cases.setdefault(case, {})[result.judge] = result
        clusters[case] = result.spec.cluster_id
    votes = tuple(
        _vote(case, list(by_judge.values()), len(judges)) for case, by_judge in cases.items()
    )
    return Panel(
        suite=suite,
        judges=judges,
        pairs=tuple(_pair(one, other, cases) for one, other in combinations(judges, 2)),
        votes=votes,
        accuracy=estimate_share(
            [vote.score == vote.expected for vote in votes], [*clusters.values()]
        ),
    )


def _pair(one: str, other: str, cases: Mapping[str, Mapping[str, CaseResult]]) -> JudgePair:
    scores: list[tuple[int, int]] = []
    clusters: list[ClusterId] = []
    different: list[str] = []
    for case, by_judge in cases.items():
        first, second = by_judge.get(one), by_judge.get(other)
        if first is None or second is None or first.score is None or second.score is None:
            continue
        scores.append((first.score, second.score))
        clusters.append(first.spec.cluster_id)
        if first.score != second.score:
            different.append(case)
    if not scores:
        nothing = Estimate(count=0, why=_NOTHING_SHARED)
        return JudgePair((one, other), nothing, nothing, ())
    agreement = estimate_share([first == second for first, second in scores], clusters)
    kappa = estimate_kappa(scores, clusters)
    return JudgePair((one, other), agreement, kappa, tuple(different))


def _vote(case: str, verdicts: Sequence[CaseResult], judges: int) -> PanelVote:
    counts = Counter(result.score for result in verdicts if result.score is not None)
    votes = tuple(sorted(counts.items(), key=lambda vote: (-vote[1], vote[0])))
    score, most = votes[0] if votes else (None, 0)
    first = verdicts[0]
    assert first.label is not None
    vote = PanelVote(case, first.test, first.rubric_id, first.label, votes)
    if 2 * most > judges:
        return replace(vote, score=score)
    missing = judges - sum(number for _, number in votes)
    without = f"; {counted(missing, 'judge')} gave no score" if missing else ""
    if not votes:
        return replace(vote, reason=f"no judge of {judges} gave a score")
    listed = ", ".join(f"{number} for {answer}" for answer, number in votes)
    text = f"no majority: {listed} of {counted(judges, 'judge')}{without}"
    return replace(vote, reason=text)

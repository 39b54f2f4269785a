"""Several judges on the same cases: agreement between them, and their majority vote."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from pytest_jrh.cases.ids import generation_id
from pytest_jrh.core.model import JUDGED
from pytest_jrh.core.text import counted
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.intervals import estimate_kappa, estimate_share, summed, tallied

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
    """The judges of one suite taken together.

    `accuracy` is the majority's over the cases that have one, `overall` over all cases with a
    verdict of any judge: where there is no majority the panel is not right. `ties` is the share of
    cases without a majority whose votes tie.
    """

    suite: str
    judges: tuple[str, ...]
    pairs: tuple[JudgePair, ...]
    votes: tuple[PanelVote, ...]
    accuracy: Estimate
    overall: Estimate
    ties: Estimate

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
    # A lone judge has no part of the id, which is long work to make.
    return result.case_id if result.spec.judge is None else generation_id(result.spec)


def _panel(suite: str, verdicts: Sequence[_Verdict]) -> Panel:
    judges = tuple(dict.fromkeys(verdict.result.judge for verdict in verdicts))
    cases: dict[str, dict[str, _Verdict]] = {}
    for verdict in verdicts:
        cases.setdefault(verdict.case, {})[verdict.result.judge] = verdict
    votes = tuple(_vote(list(by_judge.values()), len(judges)) for by_judge in cases.values())
    clusters = {verdict.case: verdict.result.spec.cluster_id for verdict in verdicts}

    def share(
        counted_votes: Iterable[PanelVote], counts: Callable[[PanelVote], bool], missing: str = ""
    ) -> Estimate:
        marks = ((clusters[vote.case], counts(vote)) for vote in counted_votes)
        return estimate_share(tallied(marks), missing=missing)

    decided = [vote for vote in votes if vote.score is not None]
    return Panel(
        suite=suite,
        judges=judges,
        pairs=tuple(_pair(one, other, cases) for one, other in combinations(judges, 2)),
        votes=votes,
        accuracy=share(decided, _is_right, "no answer has a majority"),
        overall=share(votes, _is_right),
        ties=share(votes, lambda vote: vote.tie),
    )


def _is_right(vote: PanelVote) -> bool:
    return vote.score == vote.expected


def _pair(one: str, other: str, cases: Mapping[str, Mapping[str, _Verdict]]) -> JudgePair:
    scores: list[tuple[Cluster, Pair]] = []
    different: list[str] = []
    for case, by_judge in cases.items():
        first, second = by_judge.get(one), by_judge.get(other)
        if first is None or second is None or first.score is None or second.score is None:
            continue
        scores.append((first.result.spec.cluster_id, (first.score, second.score)))
        if first.score != second.score:
            different.append(case)
    if not scores:
        nothing = Estimate(count=0, why=_NOTHING_SHARED)
        return JudgePair((one, other), nothing, nothing, ())
    agreement = estimate_share(tallied((cluster, a == b) for cluster, (a, b) in scores))
    return JudgePair((one, other), agreement, estimate_kappa(summed(scores)), tuple(different))


def _vote(verdicts: Sequence[_Verdict], judges: int) -> PanelVote:
    counts = Counter(verdict.score for verdict in verdicts if verdict.score is not None)
    votes = tuple(sorted(counts.items(), key=lambda vote: (-vote[1], vote[0])))
    score, most = votes[0] if votes else (None, 0)
    first = verdicts[0]
    vote = PanelVote(
        first.case, first.result.spec.test, first.result.spec.rubric_id, first.expected, votes
    )
    if 2 * most > judges:
        return replace(vote, score=score)
    missing = judges - sum(number for _, number in votes)
    without = f"; {counted(missing, 'judge')} gave no score" if missing else ""
    if not votes:
        return replace(vote, reason=f"no judge of {judges} gave a score")
    tie = len(votes) > 1 and votes[1][1] == most
    kind = "a tie" if tie else "no majority"
    listed = ", ".join(f"{number} for {answer}" for answer, number in votes)
    text = f"{kind}: {listed} of {counted(judges, 'judge')}{without}"
    return replace(vote, reason=text, tie=tie)

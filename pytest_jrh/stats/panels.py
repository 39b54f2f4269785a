"""Several judges on the same cases: agreement between them, and their majority vote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from pytest_jrh.core import frozen
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.runs import ClusterId
from pytest_jrh.core.skips import JUDGED
from pytest_jrh.core.text import counted
from pytest_jrh.stats.intervals import Estimate, estimate_kappa, estimate_share, grouped


@frozen
class JudgePair:
    """How two judges of a panel agree on the cases that both gave a score, whatever the label;
    `kappa` is Cohen's, quadratically weighted in ordinal mode.
    """

    judges: tuple[str, str]
    agreement: Estimate
    kappa: Estimate


@frozen
class Panel:
    """The judges of one suite taken together.

    `accuracy` is the majority's over all cases that each judge was asked about, with a verdict of
    any: where there is no majority the panel is not right. `without_majority` gives for such a
    case, by its id without a judge, the reason.
    """

    suite: str
    judges: tuple[str, ...]
    pairs: tuple[JudgePair, ...]
    without_majority: Mapping[str, str]
    accuracy: Estimate


def panels(results: Iterable[CaseResult]) -> list[Panel]:
    """Compare the judges of each suite that has several, in the order in which they appear.

    Cases of probes are no part of it.
    """
    compared = []
    suites = grouped((result.suite, result) for result in results if not result.spec.derived)
    for suite, of_suite in suites.items():
        judged = (result for result in of_suite if result.outcome in JUDGED)
        verdicts = [result for result in judged if result.label is not None]
        judges = tuple(dict.fromkeys(result.judge for result in verdicts))
        if len(judges) <= 1:
            continue
        asked_about = by_made_case(of_suite)
        cases = {}
        for case, of_case in by_made_case(verdicts).items():
            if {*judges} <= {result.judge for result in asked_about[case]}:
                cases[case] = of_case
        if not cases:
            continue
        right, clusters, without_majority = [], [], {}
        for case, of_case in cases.items():
            votes = Counter(result.score for result in of_case if result.score is not None)
            # A judge without a verdict, or whose repeats tie, could undo a smaller majority.
            majorities = [score for score, number in votes.items() if 2 * number > len(judges)]
            right.append(majorities == [of_case[0].label])
            clusters.append(of_case[0].spec.cluster_id)
            if not majorities:
                without_majority[case] = _split_text(votes, len(judges))
        pairs = tuple(_pair(one, other, cases.values()) for one, other in combinations(judges, 2))
        accuracy = estimate_share(right, clusters)
        compared.append(Panel(suite, judges, pairs, without_majority, accuracy))
    return compared


def made_case_id(result: CaseResult) -> str:
    """The id of the made case that a result is about: several judges look at one."""
    # A lone judge has no part of the id, which is long work to make.
    return result.case_id if result.spec.judge is None else generation_id(result.spec)


def by_made_case(results: Iterable[CaseResult]) -> dict[str, list[CaseResult]]:
    """The results of all judges, by the id of the case that they judged."""
    return grouped((made_case_id(result), result) for result in results)


def _pair(one: str, other: str, cases: Iterable[Sequence[CaseResult]]) -> JudgePair:
    scores: list[tuple[int, int]] = []
    clusters: list[ClusterId] = []
    for of_case in cases:
        by_judge = {result.judge: result.score for result in of_case}
        first, second = by_judge.get(one), by_judge.get(other)
        if first is not None and second is not None:
            scores.append((first, second))
            clusters.append(of_case[0].spec.cluster_id)
    same = (first == second for first, second in scores)
    agreement = estimate_share(same, clusters, missing="no case has a verdict of both")
    kappa = estimate_kappa(scores, clusters) if scores else agreement
    return JudgePair((one, other), agreement, kappa)


def _split_text(votes: Counter[int], judges: int) -> str:
    """Why a panel has no majority."""
    if not votes:
        return f"no judge of {judges} gave a score"
    in_order = sorted(votes.items(), key=lambda vote: (-vote[1], vote[0]))
    listed = ", ".join(f"{number} for {score}" for score, number in in_order)
    text = f"no majority: {listed} of {counted(judges, 'judge')}"
    missing = judges - votes.total()
    return f"{text}; {counted(missing, 'judge')} gave no score" if missing else text

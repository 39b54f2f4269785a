"""Judge and verifier held against the blind labels of people (rule N4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.models import JUDGED, MADE
from pytest_jrh.stats.bounded import clusters_of, kappa_or_reason
from pytest_jrh.stats.inference.agreement import Agreement, agreement
from pytest_jrh.stats.inference.anchored import (
    Anchored,
    CheckedCase,
    anchored_accuracy,
    anchored_false_positive_rate,
    anchored_recall,
)
from pytest_jrh.stats.inference.formulas import (
    Share,
    cohen_kappa,
    confusion_matrix,
    quadratic_kappa,
)
from pytest_jrh.stats.inference.intervals import Bounds, Tally, share_bounds
from pytest_jrh.stats.inference.jackknife import sums_of
from pytest_jrh.stats.panels import made_case_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_jrh.models import CaseResult
    from pytest_jrh.stats.metrics import Figure

_NO_SCORE = -1
_UNSEEN = "people labelled no such case"


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """How often a verifier was wrong about cases that people labelled."""

    share: Share
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class AgainstPeople:
    """A judge held against the blind labels of people.

    `figures` are those of the judge by their keys in the JSON report. `labelled` counts its cases
    with a label of people, those that are equal once, and `unclear` those on which people disagree.
    """

    figures: Mapping[str, Anchored]
    labelled: int
    unclear: int


@dataclass(frozen=True, slots=True)
class VerifierAgainstPeople:
    """A verifier held against the blind labels of people, and these against each other.

    `kappa` is that of people and verifier, on a scale the quadratically weighted one, over the
    `labelled` cases that it confirmed or rejected.
    """

    false_confirmations: ErrorRate
    false_rejections: ErrorRate
    kappa: Figure
    kappa_bounds: Bounds
    reviewers: Agreement
    labelled: int


def against_people(
    results: Iterable[CaseResult], people: Mapping[str, Sequence[int]], *, ordinal: bool
) -> AgainstPeople | None:
    """Hold one judge's results against people; None where they labelled none of its cases.

    `people` has the blind labels by case digest, one for each reviewer. The label of more than half
    counts, and for one of the cases that are equal: a person has looked once.
    """
    judged = [result for result in results if result.outcome in JUDGED]
    digests = dict.fromkeys(result.case_digest for result in judged)
    labels = {digest: _majority(people[digest]) for digest in digests if digest in people}
    if not labels:
        return None
    first = _first_of_equals(judged)
    clusters = [
        [
            CheckedCase(
                _NO_SCORE if result.score is None else result.score,
                result.expected or 0,
                labels.get(result.case_digest) if result.case_id in first else None,
            )
            for result in cluster
        ]
        for cluster in clusters_of(judged)
    ]
    figures = {"exact" if ordinal else "accuracy": anchored_accuracy(clusters)}
    if not ordinal:
        figures["recall"] = anchored_recall(clusters)
        figures["false_positive_rate"] = anchored_false_positive_rate(clusters)
    return AgainstPeople(
        figures=figures,
        labelled=sum(label is not None for label in labels.values()),
        unclear=sum(label is None for label in labels.values()),
    )


def verifier_against_people(
    results: Iterable[CaseResult], people: Mapping[str, Sequence[int]], *, ordinal: bool
) -> VerifierAgainstPeople | None:
    """Hold the verifier of one suite's results against people; None where they labelled nothing
    that it confirmed or rejected, and no two of them the same case.

    `people` is as in `against_people`.
    """
    # The judges of a panel look at the same cases.
    made = {made_case_id(result): result for result in results}
    looked = [
        result for result in made.values() if result.rejected is not None or _confirmed(result)
    ]
    digests = dict.fromkeys(digest_of(result) for result in made.values())
    seen = {digest: people[digest] for digest in digests if digest in people}
    reviewers = agreement(seen.values(), ordinal=ordinal)
    labels = {digest: _majority(votes) for digest, votes in seen.items()}
    first = _first_of_equals(looked)
    told = {
        made_case_id(result): label
        for result in looked
        if result.case_id in first and (label := labels.get(digest_of(result))) is not None
    }
    if not told and not reviewers.units:
        return None
    clusters = clusters_of(result for result in looked if made_case_id(result) in told)
    pairs = [
        [(told[made_case_id(result)], _verdict(result)) for result in cluster]
        for cluster in clusters
    ]
    matrix = confusion_matrix(pair for cluster in pairs for pair in cluster)
    kappa = (quadratic_kappa if ordinal else cohen_kappa)(matrix)
    return VerifierAgainstPeople(
        false_confirmations=_rate(
            clusters, _confirmed, lambda result: told[made_case_id(result)] != result.expected
        ),
        false_rejections=_rate(
            clusters,
            lambda result: result.rejected is not None,
            lambda result: (
                result.rejected is not None
                and told[made_case_id(result)] == result.rejected.expected
            ),
        ),
        kappa=kappa,
        kappa_bounds=kappa_or_reason(kappa, [sums_of(cluster) for cluster in pairs]),
        reviewers=reviewers,
        labelled=len(told),
    )


def digest_of(result: CaseResult) -> str:
    """The digest of the case that was judged, or that the verifier rejected; empty without one."""
    return result.rejected.case_digest if result.rejected is not None else result.case_digest


def _first_of_equals(results: Iterable[CaseResult]) -> set[str]:
    """The ids of these cases, of those with one rubric, transcript and label the first alone."""
    first: dict[str, str] = {}
    for result in results:
        first.setdefault(digest_of(result), result.case_id)
    return set(first.values())


def _confirmed(result: CaseResult) -> bool:
    """Whether the verifier confirmed the label of the case as it is."""
    return (
        result.outcome in MADE
        and result.verified is True
        and result.labelled_by is None
        and result.human_reviewed != "edited"
    )


def _verdict(result: CaseResult) -> int:
    """What the verifier said of the case."""
    return result.rejected.said if result.rejected is not None else result.expected or 0


def _rate(
    clusters: Iterable[Sequence[CaseResult]],
    of: Callable[[CaseResult], bool],
    wrong: Callable[[CaseResult], bool],
) -> ErrorRate:
    tallies = []
    for cluster in clusters:
        own = [result for result in cluster if of(result)]
        tallies.append(Tally(sum(map(wrong, own)), len(own)))
    count, n = sum(tally.right for tally in tallies), sum(tally.n for tally in tallies)
    if not n:
        return ErrorRate(Share(0, 0, _UNSEEN), Bounds(reason=_UNSEEN))
    return ErrorRate(Share(count, n, None), share_bounds(tallies))


def _majority(votes: Sequence[int]) -> int | None:
    most = max(sorted(set(votes)), key=votes.count)
    return most if 2 * votes.count(most) > len(votes) else None

"""Judge and verifier held against the blind labels of people, and natural beside synthetic cases.

Figures of all cases are corrected by those that people looked at. Prediction-powered inference
(Angelopoulos et al. 2023, Science 382:669-674) with the weight of PPI++ (Angelopoulos, Duchi and
Zrnic 2023, arXiv:2311.01453): the suite's labels predict what people would say of every case, and
the labels of a random sample correct the mean. No independence of the errors of judge and verifier
is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.model import JUDGED, MADE, majority
from pytest_jrh.core.text import counted
from pytest_jrh.stats.formulas import Agreement, Estimate, agreement, t_quantile
from pytest_jrh.stats.intervals import (
    LEVEL,
    by_cluster,
    estimate_kappa,
    estimate_share,
    summed,
    tallied,
    wilson,
)
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import accuracy_of

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseResult, LabelKey


_Figure = TypeVar("_Figure")

FEWEST_LABELS = 20
"""With fewer labels of people, no figure is corrected."""
# By simulation, fewer labels without a wrong one are too often of a suite that has wrong ones: of
# 2% the figure by 30 labels was off by 0.6 points. With 60 it is off by 0.3 at most.
_CONFIRMING_LABELS = 60
_FEWEST_CLUSTERS = 2
_UNSEEN = "people labelled no such case"


class CheckedCase(NamedTuple):
    """One judged binary case: the judge's answer, the suite's label, and that of people where
    somebody looked.
    """

    answer: int
    label: int
    people: int | None = None


@dataclass(frozen=True, slots=True)
class Anchored:
    """A share of cases against people; `raw` is the share by the suite's own labels, None where it
    has no such case.
    """

    estimate: Estimate
    raw: float | None = None


class _Unseen(NamedTuple):
    """What a sample did not show and may still be there, in labelled cases: what it adds to the
    variance of their sum, and how many of either kind are added to shrink a share that gives it.

    With `by_size`, clusters of unequal sizes vary as much as fewer of one size.
    """

    variance: float
    cases: float
    by_size: bool = False


# A third of a discordant case of each kind, as in the neutral prior of a share (Kerman 2011,
# Electron J Stat 5:1450-1470). By simulation half a case covers too much, and a quarter too little.
_OF_FIGURES = _Unseen(2 / 3, 1)
# With as much in both, a rate of which no label shows a violation is known as well as by these
# labels alone: by simulation the above covers as little as 89% there. Half a label covers more than
# 98% of rates near one half. All runs that there are may be of few tasks: where one has half of
# them, it covers 92 to 97% by size, and else 67 to 85%.
_OF_RATES = _Unseen(1 / 3, 1 / 3, by_size=True)


@dataclass(frozen=True, slots=True)
class _Mean:
    """A mean over all cases, and what each cluster adds to it beyond the mean."""

    value: float
    influence: Sequence[float]


def anchored_violations(clusters: Iterable[Sequence[CheckedCase]]) -> Anchored:
    """The share of all cases that are violated by people's labels; each case's own label is what
    the judge says of it, so that `raw` is the judge's share of violations.
    """
    return _anchored(clusters, lambda _answer, label: label == 1, None, _OF_RATES)


def anchored_accuracy(clusters: Iterable[Sequence[CheckedCase]]) -> Anchored:
    """The share of cases that the judge gets right by the labels of people."""
    return _anchored(clusters, lambda answer, label: answer == label, None)


def anchored_recall(clusters: Iterable[Sequence[CheckedCase]]) -> Anchored:
    """The share of the cases that are violated by people's labels that the judge calls so."""
    return _anchored(
        clusters, lambda answer, label: answer == label == 1, lambda _answer, label: label == 1
    )


def anchored_false_positive_rate(clusters: Iterable[Sequence[CheckedCase]]) -> Anchored:
    """The share of the cases that are satisfied by people's labels that the judge calls
    violated.
    """
    return _anchored(
        clusters,
        lambda answer, label: answer == 1 and label == 0,
        lambda _answer, label: label == 0,
    )


def _anchored(
    clusters: Iterable[Sequence[CheckedCase]],
    counts: Callable[[int, int], bool],
    among: Callable[[int, int], bool] | None,
    unseen: _Unseen = _OF_FIGURES,
) -> Anchored:
    """The share of cases that count, or of those `among` the cases a ratio of two such shares."""
    filled = [list(cluster) for cluster in clusters if cluster]
    cases = list(chain.from_iterable(filled))
    labelled = sum(case.people is not None for case in cases)
    raw = _raw(cases, counts, among)
    if why := _missing(filled, labelled):
        return Anchored(Estimate(n=len(cases), why=why), raw)
    upper = _mean(filled, counts)
    value, influence, scale = upper.value, upper.influence, 1.0
    if among is not None:
        lower = _mean(filled, among)
        scale = lower.value
        if scale <= 0 or not any(_by_people(case, among) for case in cases):
            return Anchored(Estimate(n=len(cases), why=_UNSEEN), raw)
        value = upper.value / scale
        # The linear part of a ratio (Taylor): what a cluster adds to it.
        influence = [
            (one - value * other) / scale
            for one, other in zip(upper.influence, lower.influence, strict=True)
        ]
    if unseen is _OF_FIGURES and raw is not None and _is_confirmed(cases, labelled):
        value = raw
    value = min(max(value, 0.0), 1.0)
    independent: float = len(filled)
    if unseen.by_size:
        independent = len(cases) ** 2 / sum(len(cluster) ** 2 for cluster in filled)
    t = t_quantile((1 + LEVEL) / 2, max(1.0, min(independent, labelled) - 1))
    bounds = _bounds(influence, value, labelled * scale, t, unseen)
    return Anchored(Estimate(value, *bounds, n=len(cases)), raw)


def _raw(
    cases: Sequence[CheckedCase],
    counts: Callable[[int, int], bool],
    among: Callable[[int, int], bool] | None,
) -> float | None:
    denominator = [case for case in cases if among is None or among(case.answer, case.label)]
    if not denominator:
        return None
    return fmean(counts(case.answer, case.label) for case in denominator)


def _bounds(
    influence: Sequence[float], value: float, labelled: float, t: float, unseen: _Unseen
) -> tuple[float, float]:
    """Wilson's interval on the number of cases that would give the estimate its variance, with
    Student's t.

    A share near its end has a skewed distribution, which a symmetric interval misses: by
    simulation it covered as little as 85%. `labelled` are the cases of people in the figure. The
    squares are of what clusters add, as these and not cases are independent.
    """
    squares = math.fsum(part * part for part in influence)
    variance = squares * len(influence) / (len(influence) - 1) + unseen.variance / labelled**2
    # Shrunk a little, since a share that is all or nothing would have no variance of its own.
    shrunk = (value * labelled + unseen.cases) / (labelled + 2 * unseen.cases)
    lower, upper = wilson(value, t * t * variance / (shrunk * (1 - shrunk)))
    return max(lower, 0.0), min(upper, 1.0)


def _missing(clusters: Sequence[Sequence[CheckedCase]], labelled: int) -> str:
    """Why no figure is corrected; empty where one is."""
    if labelled < FEWEST_LABELS:
        return f"{labelled} labels of people; at least {FEWEST_LABELS} are needed"
    if len(clusters) < _FEWEST_CLUSTERS:
        return "all cases come from one source run"
    return ""


def _is_confirmed(cases: Sequence[CheckedCase], labelled: int) -> bool:
    """Whether people found no wrong label in all cases, or in so many that the figure by the labels
    is the best that there is.
    """
    is_enough = labelled >= min(len(cases), _CONFIRMING_LABELS)
    return is_enough and all(case.people in (None, case.label) for case in cases)


def _by_people(case: CheckedCase, counts: Callable[[int, int], bool]) -> bool:
    return case.people is not None and counts(case.answer, case.people)


def _mean(clusters: Sequence[Sequence[CheckedCase]], counts: Callable[[int, int], bool]) -> _Mean:
    """The mean over all cases by the suite's labels, corrected by the cases with labels of people.

    Each labelled case is corrected with a weight that the others give (a jackknife of PPI++'s), so
    that the estimate is unbiased; two pseudo pairs, one of each discordant kind, steady it.
    """
    predicted = [sum(counts(case.answer, case.label) for case in cluster) for cluster in clusters]
    number = sum(map(len, clusters))
    mean = sum(predicted) / number
    labelled = [[case for case in cluster if case.people is not None] for cluster in clusters]
    pairs = [
        (float(_by_people(case, counts)), float(counts(case.answer, case.label)))
        for case in chain.from_iterable(labelled)
    ]
    weights = _weights(pairs)
    rests = [true - weight * guess for (true, guess), weight in zip(pairs, weights, strict=True)]
    weight, rest = fmean(weights), fmean(rests)
    corrections = iter(rests)
    influence = []
    for cluster, guesses, checked_cases in zip(clusters, predicted, labelled, strict=True):
        correction = sum(islice(corrections, len(checked_cases))) - rest * len(checked_cases)
        beyond_mean = guesses - mean * len(cluster)
        influence.append(weight * beyond_mean / number + correction / len(rests))
    return _Mean(weight * mean + rest, influence)


def _weights(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """For each pair, the slope of truth on prediction in the others, from 0 to 1."""
    number = len(pairs) + 1
    trues = sum(true for true, _ in pairs) + 1
    guesses = sum(guess for _, guess in pairs) + 1
    both = sum(true * guess for true, guess in pairs)
    weights = []
    for true, guess in pairs:
        sum_true, sum_guess = trues - true, guesses - guess
        covariance = (both - true * guess) - sum_true * sum_guess / number
        # Guesses are 0 or 1, and so their own squares; the pseudo pairs have one of each.
        variance = sum_guess - sum_guess * sum_guess / number
        weights.append(min(max(covariance / variance, 0.0), 1.0))
    return weights


_NO_SCORE = -1
# A label that no judge gives.
_NO_ANSWER = -2


@dataclass(frozen=True, slots=True)
class AgainstPeople:
    """A judge held against the blind labels of people.

    `figures` are those of the judge by their keys in the JSON report. `labelled` counts its cases
    with a label of people, those that are equal once, `unclear` those on which people disagree, and
    `untold` those of which they cannot tell. `undecided` is the least and the most that the first
    figure could be with a label for the latter two, that the judge's is not or is.
    """

    figures: Mapping[str, Anchored]
    labelled: int
    unclear: int
    untold: int = 0
    undecided: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class VerifierAgainstPeople:
    """A verifier held against the blind labels of people, and these against each other.

    The first two are how often it was wrong about cases that people labelled. `kappa` is that of
    people and verifier, on a scale the quadratically weighted one, over the `labelled` cases that
    it confirmed or rejected.
    """

    false_confirmations: Estimate
    false_rejections: Estimate
    kappa: Estimate
    reviewers: Agreement
    labelled: int


def against_people(
    results: Iterable[CaseResult],
    people: Mapping[str, Sequence[int]],
    *,
    ordinal: bool,
    untold: Collection[str] = (),
) -> AgainstPeople | None:
    """Hold one judge's results against people; None where they labelled none of its cases.

    `people` has the blind labels by case digest, one for each reviewer. The label of more than half
    counts, and for one of the cases that are equal: a person has looked once. `untold` are the
    digests of cases of which people cannot tell.
    """
    judged = [result for result in results if result.outcome in JUDGED]
    digests = dict.fromkeys(result.case_digest for result in judged)
    labels = {digest: majority(people[digest]) for digest in digests if digest in people}
    without_label = {digest for digest, label in labels.items() if label is None}
    unclear = len(without_label)
    without_label |= digests.keys() & set(untold)
    if not labels and not without_label:
        return None
    clusters = _checked_clusters(judged, labels)
    figures = {"exact" if ordinal else "accuracy": anchored_accuracy(clusters)}
    if not ordinal:
        figures["recall"] = anchored_recall(clusters)
        figures["false_positive_rate"] = anchored_false_positive_rate(clusters)
    return AgainstPeople(
        figures=figures,
        labelled=sum(label is not None for label in labels.values()),
        unclear=unclear,
        untold=len(without_label) - unclear,
        undecided=_undecided(judged, labels, without_label),
    )


def _checked_clusters(
    judged: Sequence[CaseResult], labels: Mapping[str, int | None]
) -> list[list[CheckedCase]]:
    first = _first_of_equals(judged)
    cases = []
    for result in judged:
        label = labels.get(result.case_digest) if result.case_id in first else None
        answer = _NO_SCORE if result.score is None else result.score
        cases.append((result.spec.cluster_id, CheckedCase(answer, result.expected or 0, label)))
    return by_cluster(cases)


def _undecided(
    judged: Sequence[CaseResult],
    labels: Mapping[str, int | None],
    without_label: Collection[str],
) -> tuple[float, float] | None:
    """The accuracy against people if all cases without a label had one that the judge missed, and
    if all had one that it gave; None without such cases, and where it cannot be corrected.
    """
    if not without_label:
        return None
    missed, given = dict(labels), dict(labels)
    for result in judged:
        if result.case_digest in without_label:
            missed[result.case_digest] = _NO_ANSWER
            given[result.case_digest] = _NO_ANSWER if result.score is None else result.score
    lowest = anchored_accuracy(_checked_clusters(judged, missed)).estimate.value
    highest = anchored_accuracy(_checked_clusters(judged, given)).estimate.value
    return None if lowest is None or highest is None else (lowest, highest)


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
    votes = {digest: people[digest] for digest in digests if digest in people}
    reviewers = agreement(votes.values(), ordinal=ordinal)
    labels = {digest: majority(labels) for digest, labels in votes.items()}
    first = _first_of_equals(looked)
    labelled = [
        (result, label)
        for result in looked
        if result.case_id in first and (label := labels.get(digest_of(result))) is not None
    ]
    if not labelled and not reviewers.units:
        return None
    return VerifierAgainstPeople(
        false_confirmations=estimate_share(
            tallied(
                (result.spec.cluster_id, label != result.expected)
                for result, label in labelled
                if _confirmed(result)
            ),
            missing=_UNSEEN,
        ),
        false_rejections=estimate_share(
            tallied(
                (result.spec.cluster_id, label == result.rejected.expected)
                for result, label in labelled
                if result.rejected is not None
            ),
            missing=_UNSEEN,
        ),
        kappa=estimate_kappa(
            summed(
                (result.spec.cluster_id, (label, _verdict(result))) for result, label in labelled
            )
        ),
        reviewers=reviewers,
        labelled=len(labelled),
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


@dataclass(frozen=True, slots=True)
class Sides:
    """The accuracy of a judge on natural and on synthetic cases, and natural minus synthetic."""

    natural: Estimate
    synthetic: Estimate
    gap: Estimate


def natural_beside_synthetic(results: Iterable[CaseResult]) -> Sides | None:
    """Both accuracies of one judge's results; None where one side has no verdict.

    The interval of the difference comes from those of the two sides (MOVER: Zou and Donner 2008,
    Stat Med 27:1693-1702), taken as independent: where both are of the same runs it is wider than
    it had to be.
    """
    sides: dict[bool, list[CaseResult]] = {True: [], False: []}
    for result in results:
        if result.outcome in JUDGED and not result.spec.derived:
            sides[KINDS[result.spec.test].natural].append(result)
    if not all(sides.values()):
        return None
    natural, synthetic = accuracy_of(sides[True]), accuracy_of(sides[False])
    return Sides(natural, synthetic, _difference(natural, synthetic))


def _difference(one: Estimate, other: Estimate) -> Estimate:
    """One share of some cases less another."""
    first, second = one.value or 0.0, other.value or 0.0
    gap = Estimate(first - second, n=one.n + other.n)
    if one.lower is None or one.upper is None or other.lower is None or other.upper is None:
        return replace(gap, why=one.why or other.why)
    return replace(
        gap,
        lower=first - second - math.hypot(first - one.lower, other.upper - second),
        upper=first - second + math.hypot(one.upper - first, second - other.lower),
    )


def sides_levels(results: Sequence[CaseResult]) -> list[tuple[str, Sides]]:
    """Both accuracies of one judge's results: the total with the name "", and where it has several
    rubrics each that has verdicts on both sides.
    """
    return _levels(results, natural_beside_synthetic)


def _levels(
    results: Sequence[CaseResult], figure: Callable[[Sequence[CaseResult]], _Figure | None]
) -> list[tuple[str, _Figure]]:
    """A figure of all results, under the name "", and of each of several rubrics, where it is."""
    rubrics = dict.fromkeys(result.spec.rubric_id for result in results)
    levels = [("", figure(results))]
    for rubric in rubrics if len(rubrics) > 1 else ():
        of_rubric = [result for result in results if result.spec.rubric_id == rubric]
        levels.append((rubric, figure(of_rubric)))
    return [(rubric, value) for rubric, value in levels if value is not None]


@dataclass(frozen=True, slots=True)
class ViolationRate:
    """How often runs violate a rubric: `judged` is the share of them that the judge calls so, and
    `corrected` the same corrected by those of them that are `labelled`.

    `drawn` says that these are said to be a random sample.
    """

    judged: Estimate
    corrected: Estimate
    labelled: int
    drawn: bool


def violation_rates(
    results: Sequence[CaseResult], drawn: Collection[LabelKey]
) -> list[tuple[str, ViolationRate]]:
    """The rates of one judge's results, with names as in `sides_levels`; nothing where each run
    that it judged has a label.

    `drawn` are the labels that are said to be a random sample: where there are any, no other label
    corrects a rate.
    """
    if not any(result.outcome == "unlabelled" for result in results):
        return []
    return _levels(results, lambda level: _violation_rate(level, drawn))


def _violation_rate(
    results: Sequence[CaseResult], drawn: Collection[LabelKey]
) -> ViolationRate | None:
    # A tie of repeats is no verdict on a run without a label, and so on none here.
    judged = [
        result
        for result in results
        if KINDS[result.spec.test].natural
        and result.spec.target_score is None
        and result.score is not None
    ]
    if not any(result.outcome == "unlabelled" for result in judged):
        return None
    cases = [(result.spec.cluster_id, _rated(result, drawn)) for result in judged]
    labelled = sum(case.people is not None for _, case in cases)
    corrected = anchored_violations(by_cluster(cases)).estimate
    if labelled < FEWEST_LABELS:
        why = f"{counted(labelled, 'label')}; at least {FEWEST_LABELS} are needed"
        corrected = Estimate(n=len(cases), why=why)
    return ViolationRate(
        judged=estimate_share(tallied((cluster, case.answer == 1) for cluster, case in cases)),
        corrected=corrected,
        labelled=labelled,
        drawn=bool(drawn),
    )


def _rated(result: CaseResult, drawn: Collection[LabelKey]) -> CheckedCase:
    answer = result.score or 0
    label = result.expected
    if drawn and result.spec.label_key not in drawn:
        label = None
    return CheckedCase(answer, answer, label)

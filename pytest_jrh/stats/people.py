"""Judge and verifier held against the blind labels of people.

Figures of all cases are corrected by those that people looked at. Prediction-powered inference
(Angelopoulos et al. 2023, Science 382:669-674) with the weight of PPI++ (Angelopoulos, Duchi and
Zrnic 2023, arXiv:2311.01453): the suite's labels predict what people would say of every case, and
the labels of a random sample correct the mean. No independence of the errors of judge and verifier
is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import frozen
from pytest_jrh.core.cases import JUDGED, MADE, LabelKey, majority
from pytest_jrh.core.ids import made_case_id
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import BINARY
from pytest_jrh.core.text import counted
from pytest_jrh.stats.annotators import Agreement, VotedCase, Votes, agreement
from pytest_jrh.stats.intervals import Clusters, Estimate, estimate, estimate_share
from pytest_jrh.stats.statistics import share_of
from pytest_jrh.stats.verdicts import Floats, Verdicts
from pytest_jrh.stats.weights import weighted

_Column: TypeAlias = npt.NDArray[Any]
_Counts: TypeAlias = Callable[[_Column, _Column], _Column]
"""Which cases count, by the judge's answers and by labels."""
_Mark: TypeAlias = tuple[bool, Hashable]
"""Whether a verifier was wrong about a case, and the case's cluster."""

FEWEST_LABELS = 20
"""With fewer labels of people, no figure of all cases is corrected."""
FEWEST_OF_CLASS = 10
"""With fewer labels of people in a class, neither is its recall or false-positive rate."""
# By simulation, fewer labels without a wrong one are too often of a suite that has wrong ones: of
# 2% the figure by 30 labels was off by 0.6 points. With 60 it is off by 0.3 at most.
_CONFIRMING_LABELS = 60
_UNSEEN = "people labelled no such case"
# What a sample did not show and may still be there: a third of a discordant case of each kind, as
# in the neutral prior of a share (Kerman 2011, Electron J Stat 5:1450-1470). By simulation half a
# case covers too much, and a quarter too little; of rates, half as much covers them.
_UNSEEN_CASES = 2 / 3
_UNSEEN_OF_RATES = 1 / 3


class Answers(NamedTuple):
    """What the judge, the suite and people say of a binary case, None where nobody looked."""

    judge: int
    suite: int
    people: int | None


@frozen
class Anchored:
    """A share of cases against people; `raw` is the share by the suite's own labels, None where it
    has no such case.
    """

    estimate: Estimate
    raw: float | None


def anchored_violations(cases: Sequence[Answers], clusters: Clusters) -> Anchored:
    """The share of all cases that are violations by people's labels; each case's own label is what
    the judge says of it, so that `raw` is the judge's share of violations.
    """
    return _anchored(cases, clusters, lambda _, label: label == 1, unseen=_UNSEEN_OF_RATES)


def anchored_accuracy(cases: Sequence[Answers], clusters: Clusters) -> Anchored:
    """The share of cases that the judge gets right by the labels of people."""
    return _anchored(cases, clusters, lambda answer, label: answer == label)


def anchored_positives(cases: Sequence[Answers], clusters: Clusters, label: int | None) -> Anchored:
    """The share of the cases with this label by people that the judge calls violations: of these
    the recall, of others the false-positive rate.
    """
    return _anchored(
        cases,
        clusters,
        lambda answer, of_case: (answer == 1) & (of_case == label),
        lambda _, of_case: of_case == label,
    )


def _anchored(
    cases: Sequence[Answers],
    clusters: Clusters,
    counts: _Counts,
    among: _Counts | None = None,
    unseen: float = _UNSEEN_CASES,
) -> Anchored:
    """The share of cases that count, or of those `among` the cases a ratio of two such shares."""
    n = len(cases)
    judge, suite, people = np.array(cases, object).reshape(-1, 3).T
    looked = np.flatnonzero(people != None)  # noqa: E711 - for each case
    guesses = counts(judge, suite).astype(float)
    true = counts(judge, people)[looked].astype(float)
    is_guessed_among, wholes = np.ones(n, bool), np.ones(len(looked))
    if among is not None:
        is_guessed_among = among(judge, suite)
        wholes = among(judge, people)[looked].astype(float)
    raw = float(guesses[is_guessed_among].mean()) if is_guessed_among.any() else None
    if why := _missing(clusters, int(wholes.sum()), is_ratio=among is not None):
        return Anchored(Estimate(n=n, why=why), raw)
    share, rest = wholes.mean(), true
    if among is not None:
        # What a case adds to the ratio, and would by its label: the slope is between these.
        ratio = true.mean() / share
        guesses, rest = guesses - ratio * is_guessed_among, true - ratio * wholes
    weights = _weights(guesses[looked], rest)
    rows = np.zeros((n, 5))
    rows[:, 0], rows[:, 2] = 1, weights.mean() * guesses
    rows[looked, 1], rows[looked, 4] = 1, wholes
    rows[looked, 3] = true - weights * guesses[looked]
    # A labelled case of which people say otherwise than the label, either way.
    turned = [(0.0, 1.0, 0.0, 1.0, share), (0.0, 1.0, 0.0, -1.0, share)]
    known, is_confirmed = None, (suite == people)[looked].all()
    if unseen == _UNSEEN_CASES and is_confirmed and len(looked) >= min(n, _CONFIRMING_LABELS):
        # The figure by the labels is the best that there is where people found no wrong one in all
        # cases, or in so many.
        known = raw
    corrected = estimate(
        rows, clusters, _corrected, turned, unseen=unseen, freedom=len(looked), known=known
    )
    value = min(max(corrected.value or 0.0, 0.0), 1.0)
    return Anchored(replace(corrected, value=value), raw)


def _missing(clusters: Clusters, labels: int, *, is_ratio: bool) -> str:
    """Why no figure is corrected by so many labels; empty where one is."""
    if not is_ratio and labels < FEWEST_LABELS:
        return f"{counted(labels, 'label')}; at least {FEWEST_LABELS} are needed"
    if is_ratio and not labels:
        return _UNSEEN
    if is_ratio and labels < FEWEST_OF_CLASS:
        cases_of_class = counted(labels, "such case")
        return f"people labelled {cases_of_class}; at least {FEWEST_OF_CLASS} are needed"
    if len(set(clusters)) == 1:
        return "all cases come from one source"
    return ""


def _corrected(sums: Any) -> Any:
    """The share of all cases, or of those that people say are among them."""
    return (sums[2] / sums[0] + sums[3] / sums[1]) / (sums[4] / sums[1])


def _weights(guesses: Floats, true: Floats) -> Floats:
    """For each pair, the slope of truth on prediction in the others, from 0 to 1, so that the
    estimate is unbiased (a jackknife of PPI++'s); two pseudo pairs, one of each discordant kind,
    steady it.
    """
    other_guesses, other_true = 1 + guesses.sum() - guesses, 1 + true.sum() - true
    others = len(true) + 1
    covariance = guesses @ true - guesses * true - other_guesses * other_true / others
    variance = 1 + guesses @ guesses - guesses**2 - other_guesses**2 / others
    weights: Floats = np.clip(covariance / variance, 0.0, 1.0)
    return weights


_NO_SCORE = -1


@frozen
class AgainstPeople:
    """A judge held against the blind labels of people.

    `figures` are those of the judge by their keys in the JSON report. `labelled` counts its cases
    with a label of people, those that are equal once, `unclear` those on which people disagree, and
    `undecidable` those of which they cannot tell.
    """

    figures: Mapping[str, Anchored]
    labelled: int
    unclear: int
    undecidable: int


@frozen
class VerifierAgainstPeople:
    """A verifier held against the blind labels of people, and these against each other.

    The first two are how often it was wrong about cases that people labelled, of those that it
    confirmed or rejected.
    """

    false_confirmations: Estimate
    false_rejections: Estimate
    reviewers: Agreement


def against_people(
    results: Iterable[CaseResult], people: Mapping[str, Sequence[int]], undecidable: Collection[str]
) -> AgainstPeople | None:
    """Hold one judge's results against people; None where they labelled none of its cases.

    `people` has the blind labels by case digest, one for each reviewer. The label of more than half
    counts, and for one of the cases that are equal: a person has looked once. `undecidable` are the
    digests of cases of which people cannot tell.
    """
    judged = [result for result in results if result.outcome in JUDGED]
    digests = {result.case_digest for result in judged}
    labels = {digest: majority(people[digest]) for digest in digests & people.keys()}
    unclear = {digest for digest, label in labels.items() if label is None}
    unknown = digests & set(undecidable) - unclear
    if not labels and not unknown:
        return None
    first = _first_of_equals(judged)
    cases = []
    for result in judged:
        answer = _NO_SCORE if result.score is None else result.score
        label = labels.get(result.case_digest) if result.case_id in first else None
        cases.append(Answers(answer, result.label or 0, label))
    clusters = [result.spec.cluster_id for result in judged]
    accuracy = anchored_accuracy(cases, clusters)
    figures = {"accuracy": accuracy}
    if any(result.scale.is_ordered for result in judged):
        figures = {"exact": accuracy}
    else:
        for of_class in judged[0].scale.classes:
            if of_class.figure:
                label = of_class.answer
                figures[of_class.figure] = anchored_positives(cases, clusters, label)
    return AgainstPeople(
        figures=figures,
        labelled=len(labels) - len(unclear),
        unclear=len(unclear),
        undecidable=len(unknown),
    )


def verifier_against_people(
    results: Iterable[CaseResult], people: Mapping[str, Sequence[int]]
) -> VerifierAgainstPeople | None:
    """Hold the verifier of one suite's results against people; None where they labelled nothing
    that it confirmed or rejected, and no two of them the same case.

    `people` is as in `against_people`.
    """
    # The judges of a panel look at the same cases.
    made = {made_case_id(result): result for result in results}
    digests = dict.fromkeys(digest_of(result) for result in made.values())
    votes = {digest: people[digest] for digest in digests if digest in people}
    cases = [VotedCase(key, key, None, dict(enumerate(said))) for key, said in votes.items()]
    scale = next((result.scale for result in made.values()), BINARY)
    reviewers = agreement(Votes(cases, scale))
    looked = [
        result
        for result in made.values()
        if result.extra.rejected is not None or _confirmed(result)
    ]
    first = _first_of_equals(looked)
    confirmed = []
    rejected = []
    for result in looked:
        rejection, cluster = result.extra.rejected, result.spec.cluster_id
        label = majority(votes.get(digest_of(result), ()))
        if label is None or result.case_id not in first:
            continue
        if rejection is None:
            confirmed.append((label != result.label, cluster))
        else:
            rejected.append((label == rejection.expected, cluster))
    if not confirmed and not rejected and not reviewers.raw.n:
        return None
    return VerifierAgainstPeople(_share(confirmed), _share(rejected), reviewers)


def _share(marks: Sequence[_Mark]) -> Estimate:
    wrong = [is_wrong for is_wrong, _ in marks]
    return estimate_share(wrong, [cluster for _, cluster in marks], missing=_UNSEEN)


def digest_of(result: CaseResult) -> str:
    """The digest of the case that was judged, or that the verifier rejected; empty without one."""
    rejected = result.extra.rejected
    return result.case_digest if rejected is None else rejected.case_digest


def _first_of_equals(results: Iterable[CaseResult]) -> set[str]:
    """The ids of these cases, of those with one rubric, transcript and label the first alone."""
    first: dict[str, str] = {}
    for result in results:
        first.setdefault(digest_of(result), result.case_id)
    return set(first.values())


def _confirmed(result: CaseResult) -> bool:
    """Whether the verifier confirmed the label of the case as it is."""
    is_confirmed = result.labelled_by == "made" and not result.extra.altered
    return result.outcome in MADE and is_confirmed and result.extra.review != "edited"


@frozen
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
    verdicts: Verdicts, drawn: Collection[LabelKey]
) -> list[tuple[str, ViolationRate]]:
    """The rates of one judge's verdicts, of all under the name "", and of each of several rubrics;
    nothing where each run that it judged has a label.

    `drawn` are the labels that are said to be a random sample: where there are any, no other label
    corrects a rate.
    """
    if not verdicts.outcome.equals("unlabelled").any():
        return []
    # A tie of repeats is no verdict on a run without a label, and so on none here.
    counts = verdicts.kinds("test", "scale", "score").each(
        lambda kind: (
            KINDS[kind[0]].is_labelled and kind[1].aim("fail") is not None and kind[2] is not None
        )
    )
    judged = verdicts.where(counts)
    by_rubric = judged.grouped("rubric")
    rates = []
    for rubric, of_rubric in [("", judged), *(by_rubric.items() if len(by_rubric) > 1 else ())]:
        if not of_rubric.outcome.equals("unlabelled").any():
            continue
        says_violated = of_rubric.score.equals(1)
        kinds = of_rubric.kinds("rubric", "run", "score", "label")
        answers = []
        for name, (run, epoch), score, label in kinds.names:
            is_drawn = not drawn or (name, run, epoch) in drawn
            people = int(label == 1) if is_drawn and label is not None else None
            answers.append(Answers(int(score == 1), int(score == 1), people))
        cases = [answers[code] for code in kinds.codes]
        labelled = sum(case.people is not None for case in cases)
        corrected = anchored_violations(cases, of_rubric.cluster).estimate
        corrected = weighted(of_rubric, {"violated": corrected}, _UNSEEN_OF_RATES)["violated"]
        share = share_of(of_rubric, says_violated)
        is_drawn = bool(drawn) or any(of_rubric.weight.names)
        rates.append((rubric, ViolationRate(share, corrected, labelled, drawn=is_drawn)))
    return rates

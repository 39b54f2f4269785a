"""Judge and verifier held against the blind labels of people.

Figures of all cases are corrected by those that people looked at. Prediction-powered inference
(Angelopoulos et al. 2023, Science 382:669-674) with the weight of PPI++ (Angelopoulos, Duchi and
Zrnic 2023, arXiv:2311.01453): the suite's labels predict what people would say of every case, and
the labels of a random sample correct the mean. No independence of the errors of judge and verifier
is assumed.

At the end people who label the same cases: how far they agree with each other, and judges with
them; and whether a judge may take their place: the alternative annotator test of Calderon, Reichart
and Dror (2025, "The Alternative Annotator Test for LLM-as-a-Judge", ACL). In that test each person
is left out in turn. On each of the person's cases, judge and person are held against the other
people there: is its answer as near to theirs as the person's, or nearer? Nearness is the share of
equal answers, and of levels the root mean square of differences. The judge matches those people
than whom it is further off in fewer cases, but for a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import counted, frozen
from pytest_jrh.core.cases import JUDGED, MADE, LabelKey, majority
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import BINARY, NOT_APPLICABLE, Scale
from pytest_jrh.stats.intervals import (
    Clusters,
    Estimate,
    estimate,
    estimate_mean,
    estimate_share,
    t_tail,
    where_varied,
)
from pytest_jrh.stats.statistics import JudgePair, judge_pairs, share_of, weighted
from pytest_jrh.stats.verdicts import Coded, Floats, Ints, Verdicts, numbered

_Column = npt.NDArray[Any]
_Counts = Callable[[_Column, _Column], _Column]
"""Which cases count, by the judge's answers and by labels."""
_Mark = tuple[bool, Hashable]
"""Whether a verifier was wrong about a case, and the case's cluster."""

FEWEST_LABELS = 20
"""With fewer labels of people, no figure of all cases is corrected."""
FEWEST_OF_CLASS = 10
"""With fewer labels of people in a class, neither is its recall or false-positive rate."""
# By simulation, fewer labels without a wrong one are too often of a suite that has wrong ones: of
# 2% the figure by 30 labels was off by 0.6 points. With 60 it is off by 0.3 at most.
_CONFIRMING_LABELS = 60
_UNSEEN = "people labelled no case of this class"
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
        return f"the number of labels is {labels:,}, and at least {FEWEST_LABELS} are needed"
    if is_ratio and labels < FEWEST_OF_CLASS:
        cases = counted(labels, "case")
        return f"people labelled only {cases} of this class; at least {FEWEST_OF_CLASS} are needed"
    if len(set(clusters)) == 1:
        return "all cases come from one sample or cluster"
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
    made = {result.made_id: result for result in results}
    digests = dict.fromkeys(result.made_digest for result in made.values())
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
        label = majority(votes.get(result.made_digest, ()))
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


def _first_of_equals(results: Iterable[CaseResult]) -> set[str]:
    """The ids of these cases, of those with one rubric, transcript and label the first alone."""
    first: dict[str, str] = {}
    for result in results:
        first.setdefault(result.made_digest, result.case_id)
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


THE_JUDGE = "the judge"
_MOST_PEOPLE = 10
"""So many are held against each other in pairs, those with the most labels."""


class VotedCase(NamedTuple):
    """What people say of a case, None for no label, and the label that counts, None where there is
    none. The `key` is the rubric, the run and the epoch.
    """

    key: Any
    cluster: Hashable
    label: int | None
    votes: Mapping[Any, int | None]


@dataclass(frozen=True, eq=False)
class Votes:
    """What people say of cases, and in columns of all votes whose they are, which case they are
    about, by its number, and the answer, nan where that is no label.
    """

    cases: Sequence[VotedCase] = ()
    scale: Scale = BINARY

    @cached_property
    def person(self) -> Coded[Any]:
        """Who says it."""
        return Coded.of(person for case in self.cases for person in case.votes)

    @cached_property
    def case(self) -> Ints:
        """Of which case."""
        return np.repeat(np.arange(len(self.cases)), self.sizes)

    @cached_property
    def answer(self) -> Floats:
        """What they say."""
        return np.array([vote for case in self.cases for vote in case.votes.values()], float)

    @cached_property
    def sizes(self) -> Ints:
        """How many people voted on each case."""
        return np.array([len(case.votes) for case in self.cases], np.int64)

    @cached_property
    def clusters(self) -> Ints:
        """The cluster of each case."""
        return numbered(Coded.of(case.cluster for case in self.cases))

    @cached_property
    def disputed(self) -> list[int]:
        """Which cases have no label, as at most half of those who voted say one thing."""
        disputed = []
        for number, case in enumerate(self.cases):
            votes = [*case.votes.values()]
            if votes and case.label is None and 2 * votes.count(None) <= len(votes):
                disputed.append(number)
        return disputed

    def word(self, answer: int | None) -> str:
        """What an answer is called."""
        return "no label" if answer is None else self.scale.word(answer)

    def counts(self, values: Sequence[Any] | Floats) -> Floats:
        """How many people give each case each of these values."""
        counts = np.zeros((len(self.cases), len(values)))
        for place, value in enumerate(values):
            counts[:, place] = np.bincount(self.case, self.answer == value, len(counts))
        return counts


@frozen
class Agreement:
    """Agreement of people on the cases that at least two of them labelled: `raw` is the mean share
    of agreeing pairs of a case, `alpha` Krippendorff's.
    """

    raw: Estimate
    alpha: Estimate


def agreement(votes: Votes) -> Agreement:
    """How far people agree: in pairs, and beyond chance by alpha, 1 minus observed over expected
    disagreement (Krippendorff 2004, Content Analysis, ch. 11), with the ordinal difference of
    levels, and else the nominal one, as n/a is no level; a case with m labels counts m / (m - 1)
    for each of its pairs.
    """
    values = np.unique(votes.answer[~np.isnan(votes.answer)])
    is_ordered = votes.scale.is_ordered and NOT_APPLICABLE not in values
    counts = votes.counts(values)
    of_several = counts.sum(axis=1) > 1
    if not of_several.any():
        missing = Estimate(why="no case has labels from two people")
        return Agreement(missing, missing)
    counts, clusters = counts[of_several], votes.clusters[of_several]
    sizes = counts.sum(axis=1)
    weights = counts / (sizes - 1)[:, None]
    raw = estimate_mean((weights * (counts - 1)).sum(axis=1) / sizes, clusters)
    # Alpha is one of sums over cases: of each one's disagreement, with the differences as they are,
    # and of its counts, on which ordinal differences depend, too.
    together = counts.T @ weights - np.diag(weights.sum(axis=0))
    differences = _differences(counts.sum(axis=0), is_ordered=is_ordered)

    def alpha(sums: Any) -> Any:
        margins = np.array(sums[1:])
        moved = _differences(margins, is_ordered=is_ordered)
        by_chance = margins @ moved @ margins
        if not by_chance:
            return math.nan
        observed = sums[0] + (together * (moved - differences)).sum()
        return 1 - observed * (margins.sum() - 1) / by_chance

    rows = np.column_stack([(counts @ differences * weights).sum(axis=1), counts])
    # One of those who vote on a case says otherwise.
    turned = np.zeros((1, rows.shape[1]))
    turned[0, [0, 1]] = 2 * differences[0, -1], sizes.mean() - 1
    turned[0, -1] += 1
    figure = estimate(rows, clusters, alpha, turned, span=(-1.0, 1.0))
    most = counts.sum(axis=0).max() / sizes.mean()
    return Agreement(raw, where_varied(figure, len(counts) - most))


def _differences(margins: Floats, *, is_ordered: bool) -> Floats:
    """How much two values differ: at all, or on a scale by the number of labels between them, each
    end counted half, squared.
    """
    if not is_ordered:
        return 1 - np.eye(len(margins))
    middles = np.cumsum(margins) - margins / 2
    differences: Floats = (middles[:, None] - middles) ** 2
    return differences


@frozen
class BesidePeople:
    """How one judge does beside people: with how many of those of a case it agrees in the mean, and
    the alternative annotator test. `by_votes` are its figures where each disputed case counts by
    its votes, by their titles; empty where it judged none.
    """

    agreement: Estimate
    alt_test: AltTest | None
    by_votes: Mapping[str, Estimate]


@frozen
class People:
    """How far the people agree who labelled the cases of a suite or a table, and its judges with
    them; `pairs` are of these, and of people.
    """

    votes: Votes
    agreement: Agreement
    judges: Mapping[str, BesidePeople]
    pairs: Sequence[JudgePair]


def people_beside(votes: Votes, judges: Mapping[str, Verdicts]) -> People:
    """Hold people against each other, and judges, by their names, against them."""
    names, columns, beside = [], [], {}
    for judge, verdicts in judges.items():
        by_key = {}
        for test, rubric, run, score in verdicts.kinds("test", "rubric", "run", "score").names:
            if KINDS[test].is_labelled:
                by_key[rubric, *run] = score
        scores = np.array([by_key.get(case.key) for case in votes.cases], float)
        beside[judge] = _beside(votes, scores)
        names.append(judge or THE_JUDGE)
        columns.append(scores)
    labels = np.bincount(votes.person.codes, ~np.isnan(votes.answer))
    for code in sorted(np.argsort(-labels, kind="stable")[:_MOST_PEOPLE]):
        person = votes.person.names[code]
        names.append(person)
        columns.append(np.array([case.votes.get(person) for case in votes.cases], float))
    is_ordered = votes.scale.is_ordered
    scores = np.column_stack(columns)
    pairs = judge_pairs(names, scores, votes.clusters, is_ordered=is_ordered, judges=len(judges))
    return People(votes, agreement(votes), beside, pairs)


def _beside(votes: Votes, scores: Floats) -> BesidePeople:
    """One judge, of which the scores are by case, beside people."""
    is_known = ~np.isnan(votes.answer + scores[votes.case])
    case, answer = votes.case[is_known], votes.answer[is_known]
    # Each case counts alike, however many people say something of it.
    agreeing = estimate_mean(
        scores[case] == answer, votes.clusters[case], weights=1 / np.bincount(case)[case]
    )
    held = alt_test(
        scores, case, votes.person[is_known], answer, votes.clusters, ordered=votes.scale.is_ordered
    )
    return BesidePeople(agreeing, held, _by_votes(votes, scores))


def _by_votes(votes: Votes, scores: Floats) -> dict[str, Estimate]:
    """The share of mistakes on each class over all cases, where a disputed one counts for it by the
    share of its votes.
    """
    disputed, figures = votes.disputed, {}
    if votes.scale.is_ordered or np.isnan(scores[disputed]).all():
        return {}
    labels = np.array([case.label for case in votes.cases], float)
    for of_class in votes.scale.classes:
        weights = (labels == of_class.answer).astype(float)
        of_votes = votes.counts([of_class.answer])[disputed, 0]
        weights[disputed] = of_votes / votes.sizes[disputed]
        cases = (weights > 0) & ~np.isnan(scores)
        figures[of_class.mistakes] = estimate_mean(
            scores[cases] != of_class.answer, votes.clusters[cases], weights=weights[cases]
        )
    return figures


TOLERANCES = (0.2, 0.1)
"""By how much a judge may be behind people who are experts, and so cost more, and behind others."""
_FEWEST_PEOPLE = 3
_FEWEST_CASES = 30
_FALSE_DISCOVERIES = 0.05


@frozen
class AltTest:
    """How a judge does beside each of the `people` of whom there are cases with others.

    `matched` are by tolerance those whom it matches; with half of all it passes. `advantage` is how
    often it is as near to the others as a person is, or nearer, in the mean of people.
    """

    people: Sequence[str]
    matched: Mapping[float, Sequence[str]]
    advantage: Estimate


def alt_test(
    judge: Floats, case: Ints, person: Coded[str], answer: Floats, clusters: Ints, *, ordered: bool
) -> AltTest | None:
    """Hold a judge against people; None with fewer than three of them, or 30 cases of two.

    `judge` and `clusters` are by case; each vote has its `case`, which the judge has judged, its
    `person` and its `answer`.
    """
    of_several = np.bincount(case, minlength=1)[case] > 1
    case, person, answer = case[of_several], Coded.of(person[of_several].values), answer[of_several]
    if len(person.names) < _FEWEST_PEOPLE or len(np.unique(case)) < _FEWEST_CASES:
        return None
    values, codes = np.unique([answer, judge[case]], return_inverse=True)
    of_person, of_judge = codes.reshape(2, -1)
    distances = (values[:, None] - values) ** 2 if ordered else 1 - np.eye(len(values))
    # From every level n/a is as far as levels can be from each other.
    is_level = values != NOT_APPLICABLE
    distances[is_level != is_level[:, None]] = distances[np.ix_(is_level, is_level)].max(initial=1)
    # How far an answer is from those of all people of a case, and so from those of the others.
    given = np.zeros((len(judge), len(values)))
    np.add.at(given, (case, of_person), 1)
    losses = (given @ distances)[case]
    votes = np.arange(len(case))
    judge_loss = losses[votes, of_judge] - distances[of_judge, of_person]
    rise = judge_loss - losses[votes, of_person]
    # 1 where the person alone is nearer, -1 where the judge alone is.
    in_order = np.sign(rise)[np.argsort(person.codes, kind="stable")]
    by_person = np.split(in_order, np.cumsum(np.bincount(person.codes))[:-1])
    matched = {}
    for tolerance in TOLERANCES:
        p_values = [_p_value(differences - tolerance) for differences in by_person]
        matched[tolerance] = [*compress(person.names, _rejected(p_values))]
    # However many cases somebody has, all count alike.
    weights = len(case) / len(by_person) / person.sizes
    return AltTest(person.names, matched, estimate_mean(rise <= 0, clusters[case], weights=weights))


def _p_value(values: Floats) -> float:
    """How likely the mean is to be so low if it is 0: by the paired t-test, and of few cases by the
    signed ranks (Wilcoxon 1945, Biometrics Bull 1:80-83).
    """
    n = len(values)
    if n < _FEWEST_CASES:
        return _signed_ranks(values)
    deviation = values.std(ddof=1)
    if not deviation:
        return float(values[0] >= 0)
    return t_tail(-values.mean() / deviation * math.sqrt(n), n - 1)


def _signed_ranks(values: Floats) -> float:
    """The share of all choices of signs that give the positive values no higher a sum of ranks;
    equal ones share theirs. Ranks are counted double, so that they are whole.
    """
    sizes = np.abs(values)
    ranks = (sizes[:, None] > sizes).sum(axis=1) + (sizes[:, None] >= sizes).sum(axis=1) + 1
    shares = np.ones(1)
    for rank in ranks:
        shares = (np.pad(shares, (0, rank)) + np.pad(shares, (rank, 0))) / 2
    return float(shares[: ranks[values > 0].sum() + 1].sum())


def _rejected(p_values: Sequence[float]) -> list[bool]:
    """Which hypotheses are rejected so that few of these are true, however they depend on each
    other (Benjamini and Yekutieli 2001, Ann Stat 29:1165-1188).
    """
    ranks = np.arange(1, len(p_values) + 1)
    limits = _FALSE_DISCOVERIES * ranks / len(ranks) / (1 / ranks).sum()
    in_order = np.sort(p_values)
    bound = in_order[in_order <= limits].max(initial=-1)
    return [p <= bound for p in p_values]

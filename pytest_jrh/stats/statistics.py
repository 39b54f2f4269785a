"""Figures of the judges, with their intervals: per judge and rubric, and over all; and of several
judges on the same cases, how they agree, and their majority vote.

Only agree and disagree count. A figure that cannot be computed is an `Estimate` that says why.
Verdicts whose reasoning contradicts their score are marked, never changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from itertools import combinations
from statistics import fmean

from pytest_jrh.cases.tests import KINDS, counted_in
from pytest_jrh.core import frozen
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.runs import ClusterId
from pytest_jrh.core.scales import BINARY, CaseClass, RubricScales, Scale
from pytest_jrh.core.skips import JUDGED, UNSCORED
from pytest_jrh.core.text import counted
from pytest_jrh.stats.intervals import (
    LEVEL,
    NO_VERDICT,
    Estimate,
    Pair,
    RepeatedCase,
    estimate_bias,
    estimate_flicker,
    estimate_kappa,
    estimate_mean,
    estimate_share,
    grouped,
    grouped_by,
)

_SEE_RECALL = "see the intervals of recall and false-positive rate"
# Scores beyond this are of no scale, and are counted as this.
_LARGEST_SCORE = 10**12


def repeated_case(result: CaseResult, earlier: Iterable[int] = ()) -> RepeatedCase:
    """The scores of a case, with those that the same judge gave the same case `earlier`."""
    scores = (*earlier, *result.complete_scores)
    return RepeatedCase(result.spec.cluster_id, scores, binary=result.scale.has_two)


def clusters_of(results: Iterable[CaseResult]) -> list[ClusterId]:
    """The cluster of each result."""
    return [result.spec.cluster_id for result in results]


def share_of(
    results: Sequence[CaseResult],
    counts: Callable[[CaseResult], bool],
    level: float = LEVEL,
    missing: str = NO_VERDICT,
) -> Estimate:
    """The share of results that count."""
    return estimate_share(map(counts, results), clusters_of(results), level, missing)


def with_verdict(results: Iterable[CaseResult]) -> list[CaseResult]:
    """The results that have a verdict to be compared with a label."""
    return [result for result in results if result.outcome in JUDGED]


def wrong_cases(results: Iterable[CaseResult]) -> tuple[str, ...]:
    """The ids of the cases whose verdicts are wrong."""
    return tuple(result.case_id for result in filter(is_wrong, results))


def is_ordered(results: Iterable[CaseResult]) -> bool:
    """Whether the answers of some are levels."""
    return any(result.scale.is_ordered for result in results)


def is_right(result: CaseResult) -> bool:
    """Whether a verdict is the label."""
    return result.outcome == "agree"


def is_wrong(result: CaseResult) -> bool:
    """Whether a verdict is another than the label."""
    return result.outcome == "disagree"


def accuracy_of(judged: Sequence[CaseResult]) -> Estimate:
    """The share of verdicts that are right."""
    return share_of(judged, is_right)


def bias_of(judged: Sequence[CaseResult], scale: Sequence[int]) -> Estimate:
    """The mean of score minus label of a judge that gives scores of a scale, in levels: above 0,
    it scores too high.
    """
    known, pairs = answered(judged)
    errors = [answer - label for label, answer in pairs]
    return estimate_bias(errors, clusters_of(known), _farthest(scale))


def kappa_of(judged: Sequence[CaseResult], level: float = LEVEL) -> Estimate:
    """Agreement beyond chance of the cases that have both, a label and an answer."""
    known, pairs = answered(judged)
    return estimate_kappa(pairs, clusters_of(known), level)


def answer_of(result: CaseResult) -> int | None:
    """The answer that counts: the score, and for a tie of the repeats a wrong one.

    None for a tie on an ordered scale: there is no telling how far off it is.
    """
    if result.score is None and result.label is not None:
        return result.scale.tie(result.label)
    return result.score


@frozen
class Counts:
    """How many results came to what; `n` is the number of verdicts, agree plus disagree.

    `contradicted` counts the verdicts whose reasoning disagrees with their score, and `ties` the
    disagreements without a score.
    """

    agree: int = 0
    disagree: int = 0
    no_case: int = 0
    unscored: int = 0
    contradicted: int = 0
    ties: int = 0

    @classmethod
    def of(cls, results: Sequence[CaseResult]) -> Counts:
        """The counts of these results."""
        outcomes = Counter(result.outcome for result in results)
        judged = with_verdict(results)
        return cls(
            agree=outcomes["agree"],
            disagree=outcomes["disagree"],
            no_case=outcomes["no_case"],
            unscored=sum(number for outcome, number in outcomes.items() if outcome in UNSCORED),
            contradicted=sum(map(reasoning_disagrees, results)),
            ties=sum(result.score is None for result in judged),
        )

    @property
    def n(self) -> int:
        """The number of verdicts."""
        return self.agree + self.disagree


def answered(judged: Iterable[CaseResult]) -> tuple[list[CaseResult], list[Pair]]:
    """The results that have both, a label and an answer, and these."""
    known, pairs = [], []
    for result in judged:
        label, answer = result.label, answer_of(result)
        if label is not None and answer is not None:
            known.append(result)
            pairs.append((_bounded(label), _bounded(answer)))
    return known, pairs


def _bounded(score: int) -> int:
    return max(-_LARGEST_SCORE, min(score, _LARGEST_SCORE))


@frozen
class ConfusionMatrix:
    """How often each answer met each label: `counts[i][j]` cases with label i were given answer j.

    `labels` are the scores in ascending order, of rows and columns alike.
    """

    labels: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        """All verdicts."""
        return sum(map(sum, self.counts))

    @property
    def given_labels(self) -> list[int]:
        """The labels that cases have."""
        return [label for label, row in zip(self.labels, self.counts, strict=True) if any(row)]

    @property
    def given_answers(self) -> list[int]:
        """The answers that were given."""
        columns = zip(*self.counts, strict=True)
        return [answer for answer, column in zip(self.labels, columns, strict=True) if any(column)]


def confusion_matrix(pairs: Iterable[Pair], labels: Iterable[int] = ()) -> ConfusionMatrix:
    """Count pairs of label and answer; `labels` are shown also where no pair has them."""
    counts = Counter(pairs)
    shown = tuple(sorted({*labels, *(score for pair in counts for score in pair)}))
    return ConfusionMatrix(
        shown, tuple(tuple(counts[row, column] for column in shown) for row in shown)
    )


@frozen
class Statistics:
    """Every figure of one set of results; names that are empty stand for all.

    `figures` are by their keys in the JSON report: `accuracy` and `flicker`, and those of the
    scales of which the set has cases. `matrices` are by the names of these scales, of which `scale`
    is the one that reports show. A tie of repeats is wrong in every share; what needs its distance
    from the label leaves it out. `judged` are the results with a verdict that the figures are of.
    """

    suite: str
    rubric: str
    judge: str
    counts: Counts
    figures: Mapping[str, Estimate]
    scale: Scale
    matrices: Mapping[str, ConfusionMatrix]
    judged: Sequence[CaseResult] = field(repr=False)

    @property
    def accuracy(self) -> Estimate:
        """The share of verdicts that are right."""
        return self.figures["accuracy"]

    @property
    def flicker(self) -> Estimate:
        """How often the judge contradicts itself."""
        return self.figures["flicker"]

    @property
    def matrix(self) -> ConfusionMatrix | None:
        """That of the scale that is shown."""
        return self.matrices.get(self.scale.name)

    def mistakes(self, of_class: CaseClass) -> Estimate:
        """The share of wrong verdicts on a class."""
        figure = self.figures[of_class.figure]
        is_of_wrong = of_class.figure == "false_positive_rate"
        return figure if is_of_wrong else figure.complement()

    @property
    def kappa(self) -> tuple[str, Estimate]:
        """Agreement beyond chance, behind its name."""
        name = "kappa"
        if self.scale.is_ordered:
            name = "weighted kappa"
        return name, self.figures[name.replace(" ", "_")]

    @property
    def name(self) -> str:
        """What stands before its figures in a table."""
        return self.rubric or "all"


@frozen
class StatisticsTable:
    """The figures per rubric and judge, per judge, and of everything; suites are apart, and each
    stands in the order in which its cases first appear.
    """

    rubrics: tuple[Statistics, ...]
    judges: tuple[Statistics, ...]
    overall: Statistics


def tabulate(results: Iterable[CaseResult], scales: RubricScales | None = None) -> StatisticsTable:
    """Compute the figures at every level, of all results but those of probes.

    With `scales` a matrix shows every score that is on offer under its rubrics.
    """
    shown = [result for result in results if not result.spec.derived]
    by_rubric = grouped_by(shown, "suite", "rubric_id", "judge")
    by_judge = [((result.suite, "", result.judge), result) for result in shown]
    # With one judge, or one rubric, the levels are the same sets again.
    computed: dict[tuple[str, ...], Statistics] = {}

    def described(names: tuple[str, str, str], of_level: Sequence[CaseResult]) -> Statistics:
        key = tuple(result.case_id for result in of_level)
        if key not in computed:
            computed[key] = _described(names, of_level, scales or {})
        suite, rubric, judge = names
        return replace(computed[key], suite=suite, rubric=rubric, judge=judge)

    return StatisticsTable(
        rubrics=tuple(described(*level) for level in by_rubric.items()),
        judges=tuple(described(*level) for level in grouped(by_judge).items()),
        overall=described(("", "", ""), shown),
    )


def _described(
    names: tuple[str, str, str], results: Sequence[CaseResult], of_rubrics: RubricScales
) -> Statistics:
    judged = with_verdict(results)
    figures = {
        "accuracy": accuracy_of(judged),
        "flicker": estimate_flicker(map(repeated_case, judged)),
    }
    matrices: dict[str, ConfusionMatrix] = {}
    judged_by_scale = grouped_by(judged, "scale.name")
    # Of scales with one name the one with the most answers has those of all.
    in_order = sorted({result.scale for result in results}, key=lambda scale: len(scale.classes))
    scales = {scale.name: scale for scale in in_order}
    for name, scale in scales.items():
        of_scale = judged_by_scale.get(name, [])
        used = set()
        for result in of_scale:
            used.add(of_rubrics.get((result.suite, result.rubric_id), scale).scores)
        scores = set(scale.scores).union(*used)
        matrices[name] = confusion_matrix(answered(of_scale)[1], scores)
        if scale.is_ordered:
            figures |= _level_figures(of_scale, matrices[name], one_scale=len(used) <= 1)
        else:
            figures |= _class_figures(scale, of_scale, matrices[name])
    shown = max(scales.values(), key=lambda scale: scale.is_ordered, default=BINARY)
    return Statistics(*names, Counts.of(results), figures, shown, matrices, judged)


_COUNTED = {"recall": is_right, "false_positive_rate": is_wrong}
"""Which verdicts on the cases of a class its own figure counts."""


def _class_figures(
    scale: Scale, judged: Sequence[CaseResult], matrix: ConfusionMatrix
) -> dict[str, Estimate]:
    """The figures of a judge whose answers have no order, by their keys: the share of each class,
    and those of all cases.
    """
    by_label = grouped_by(judged, "label")
    figures = {}
    for of_class in scale.classes:
        if of_class.figure:
            # A class without kinds of its own is one of all.
            kinds = counted_in(of_class.figure) or [*KINDS.values()]
            cases = []
            for result in by_label.get(of_class.answer, ()):
                if KINDS[result.test] in kinds:
                    cases.append(result)
            counts = _COUNTED.get(of_class.figure, is_right)
            missing = f"no {kinds[0].noun} was judged"
            figures[of_class.figure] = share_of(cases, counts, missing=missing)
    # The mean of the recalls of the labels that occur (Brodersen et al. 2010, ICPR, pp. 3121-3124).
    recalls = [row[index] / sum(row) for index, row in enumerate(matrix.counts) if any(row)]
    balanced = Estimate(why=NO_VERDICT)
    if recalls:
        balanced = Estimate(fmean(recalls), n=matrix.n, why=_SEE_RECALL)
    figures["balanced_accuracy"] = _of_two_labels(matrix, balanced)
    figures["kappa"] = _of_two_labels(matrix, kappa_of(judged))
    return figures


def _level_figures(
    judged: Sequence[CaseResult], matrix: ConfusionMatrix, *, one_scale: bool
) -> dict[str, Estimate]:
    """The figures of a judge whose answers are levels, by their keys; errors are in levels."""
    known, pairs = answered(judged)
    errors = [abs(answer - label) for label, answer in pairs]
    # A tie is not near: it has no score.
    near = {result.case_id for result, error in zip(known, errors, strict=True) if error <= 1}
    kappa = Estimate(n=matrix.n, why="the rubrics have different scales")
    if one_scale:
        kappa = kappa_of(judged)
    return {
        "exact": share_of(judged, lambda result: result.score == result.label),
        "within_one": share_of(judged, lambda result: result.case_id in near),
        "mean_absolute_error": estimate_mean(
            errors, clusters_of(known), (0.0, _farthest(matrix.labels))
        ),
        "bias": bias_of(judged, matrix.labels),
        "weighted_kappa": _of_two_labels(matrix, kappa),
    }


def _farthest(scale: Sequence[int]) -> float:
    """The largest error that there can be, from the lowest score to the highest."""
    return float(max(1, scale[-1] - scale[0])) if scale else 1.0


def _of_two_labels(matrix: ConfusionMatrix, figure: Estimate) -> Estimate:
    """Replaces kappa by a reason where all labels are the same: it would be 0 for every judge."""
    if len(matrix.given_labels) == 1:
        return Estimate(n=matrix.n, why=f"one class only: every label is {matrix.given_labels[0]}")
    return figure


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
    suites = grouped_by([result for result in results if not result.spec.derived], "suite")
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


REASONING_DISAGREES = "reasoning and score disagree"
# All patterns below are matched against at most so many characters.
_TAIL = 400
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE = re.compile(r"[,;:()\u2013\u2014]|\s-\s|\b(?:so|therefore|thus|hence|and)\b")
_MARKUP = re.compile(r"[*_`\"\u201c\u201d]|\[\d+\]")
_SCORE = re.compile(r"\bscore(?: of| is|:| =|=)? {0,2}(-?\d{1,9})$")
# A conditional, hedged or quoting sentence may end in the word of a verdict that it does not give.
_OPEN = re.compile(
    r"\b(?:if|unless|whether|would|could|might|may|should|because|since|when|where|while|until|"
    r"although|though|but|"
    r"however|otherwise|except|despite|instead|rather|almost|nearly|partly|partially|arguably|"
    r"possibly|potential|"
    r"possible|suggests?|claims?|claimed|said|says|seems?|appears?|either|neither|nor|or|not "
    r"only|than)\b"
)
_DEGREE = (
    r"(?:fully|entirely|completely|strictly|clearly|therefore|thus|hence|also|still|been|"
    r"be|considered|deemed) "
)
# The words that state an answer, each with the answer.
_PARTICIPLES = {word: of.answer for of in BINARY.classes for word in of.participles}
_STEMS = {of.stem: of.answer for of in BINARY.classes}
_NOUNS = {of.noun: of.answer for of in BINARY.classes if of.noun}
_STATED = _PARTICIPLES | _STEMS | _NOUNS
_RUBRIC = r"(?:(?:the|this|that) )?(?:rubric|criterion|criteria|requirements?)"
_OVERALL = r"(?:(?:overall|in conclusion|in sum|as a result) )?"
_LEAD = (
    rf"{_OVERALL}(?:{_RUBRIC} |it |this |that )?(?:(?:is|are|was|were|has|have|remains?|"
    rf"stands?|cannot) )?"
)
_IS = re.compile(
    rf"(?:{_LEAD}|verdict |conclusion |answer )(not )?(?:{_DEGREE}){{0,3}}"
    rf"({'|'.join(_PARTICIPLES)})"
)
_DOES = re.compile(
    rf"(?:\S+ ){{0,12}}?(not |never |without |fails to |failed to )?"
    rf"({'|'.join(_STEMS)})(?:es?|ed|ing|y|ies|ied|ying) {_RUBRIC}"
)
_HAS = re.compile(
    r"(?:(?:there|this|that|which|it|i|we) )?(?:(?:is|was|are|were|constitutes|find|found|see) )?"
    r"(not an? |no |not any |an? |without an? |without any )(?:clear |direct |plain |actual )?"
    rf"({'|'.join(_NOUNS)})s?(?: of {_RUBRIC})?"
    r"(?: here| found| was found| were found| is present| occurred)?"
)
_NEGATION = re.compile(r"\b(?:not|no|never|none|nothing|cannot|without|fails|failed)\b")


def reasoning_disagrees(result: CaseResult) -> bool:
    """Whether the reasoning of a verdict contradicts its score.

    False where it is not unambiguous.
    """
    if result.score is None or not result.reasoning:
        return False
    stated = stated_score(result.reasoning, result.scale)
    return stated is not None and stated != result.score


@lru_cache(maxsize=4096)  # a result is counted at every level of the figures
def stated_score(reasoning: str, scale: Scale) -> int | None:
    """The score that the last sentence of a reasoning states, or None."""
    tail = reasoning.rstrip()[-_TAIL:].lower().replace("\u2019", "'")
    plain = _MARKUP.sub("", tail.replace("n't", " not").replace("can not", "cannot"))
    sentences = [part for part in _SENTENCE.split(plain) if any(map(str.isalnum, part))]
    if not sentences:
        return None
    sentence = " ".join(sentences[-1].split()).strip(" .!?")
    if _OPEN.search(sentence):
        return None
    if number := _SCORE.search(sentence):
        score = int(number[1])
        if _NEGATION.search(sentence):
            return None
        return score if scale.is_ordered or score in scale.scores else None
    clauses = [part.strip() for part in _CLAUSE.split(sentence) if part.strip()]
    if scale.is_ordered or not clauses:
        return None
    return _stated_answer(clauses[-1], scale)


def _stated_answer(clause: str, scale: Scale) -> int | None:
    """Read a verdict that is negated as the other one of two answers.

    None where the clause states something else, or negates at a distance.
    """
    if match := _IS.fullmatch(clause):
        word, negated = match[2], bool(match[1]) or "cannot" in clause
    elif match := _DOES.fullmatch(clause):
        word, negated = match[2], bool(match[1])
    elif match := _HAS.fullmatch(clause):
        word, negated = match[2], not match[1].startswith("a")
    else:
        return None
    if len(_NEGATION.findall(clause)) != negated:
        return None
    answer = _STATED[word]
    if answer is None or not negated:
        return answer
    return scale.tie(answer) if scale.has_two else None

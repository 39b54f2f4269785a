"""Counts of results, and metrics over them: only agree and disagree count.

Verdicts whose reasoning contradicts their score: marked in reports, never changed.

Conservative: only the last sentence of a reasoning counts, and only where it is unambiguous:
"violated", "satisfied" or "no violation" in a binary suite, "score: 2" in any suite.
"""

from __future__ import annotations

import inspect
import math
import random
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_jrh.core.model import JUDGED, UNSCORED, CaseResult
from pytest_jrh.stats.formulas import (
    NO_VERDICT,
    ConfusionMatrix,
    Estimate,
    balanced_accuracy,
    confusion_matrix,
)
from pytest_jrh.stats.intervals import Tally, grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


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
_RUBRIC = r"(?:(?:the|this|that) )?(?:rubric|criterion|criteria|requirements?)"
_OVERALL = r"(?:(?:overall|in conclusion|in sum|as a result) )?"
_LEAD = (
    rf"{_OVERALL}(?:{_RUBRIC} |it |this |that )?(?:(?:is|are|was|were|has|have|remains?|"
    rf"stands?|cannot) )?"
)
_IS = re.compile(
    rf"(?:{_LEAD}|verdict |conclusion |answer )(not )?(?:{_DEGREE}){{0,3}}(violated|satisfied|"
    rf"unsatisfied)"
)
_DOES = re.compile(
    r"(?:\S+ ){0,12}?(not |never |without |fails to |failed to )?(violat|satisf)(?:es?|ed|ing|y|"
    r"ies|ied|ying) "
    rf"{_RUBRIC}"
)
_HAS = re.compile(
    r"(?:(?:there|this|that|which|it|i|we) )?(?:(?:is|was|are|were|constitutes|find|found|see) )?"
    r"(not an? |no |not any |an? |without an? |without any )(?:clear |direct |plain |actual "
    r")?violations?"
    rf"(?: of {_RUBRIC})?(?: here| found| was found| were found| is present| occurred)?"
)
_NEGATION = re.compile(r"\b(?:not|no|never|none|nothing|cannot|without|fails|failed)\b")


def reasoning_disagrees(result: CaseResult) -> bool:
    """Whether the reasoning of a verdict contradicts its score.

    False where it is not unambiguous.
    """
    if result.score is None or not result.reasoning:
        return False
    stated = stated_score(result.reasoning, binary=result.spec.target_score is None)
    return stated is not None and stated != result.score


def stated_score(reasoning: str, *, binary: bool) -> int | None:
    """The score that the last sentence of a reasoning states, or None."""
    return _stated_score(reasoning.rstrip()[-_TAIL:], binary)


@lru_cache(maxsize=4096)  # a result is counted at every level of the figures
def _stated_score(tail: str, binary: bool) -> int | None:  # noqa: FBT001 - a private helper
    sentences = [part for part in _SENTENCE.split(_plain(tail)) if any(map(str.isalnum, part))]
    if not sentences:
        return None
    sentence = " ".join(sentences[-1].split()).strip(" .!?")
    if _OPEN.search(sentence):
        return None
    if number := _SCORE.search(sentence):
        score = int(number[1])
        if _NEGATION.search(sentence):
            return None
        return score if not binary or score in (0, 1) else None
    if not binary:
        return None
    clauses = [part.strip() for part in _CLAUSE.split(sentence) if part.strip()]
    return _verdict(clauses[-1]) if clauses else None


def _plain(text: str) -> str:
    text = text.lower().replace("\u2019", "'").replace("n't", " not").replace("can not", "cannot")
    return _MARKUP.sub("", text)


def _verdict(clause: str) -> int | None:
    """Read "the rubric is not violated" as 0.

    None where the clause states something else, or negates at a distance.
    """
    if match := _IS.fullmatch(clause):
        violated = match[2] != "satisfied"
        negated = bool(match[1]) or "cannot" in clause
    elif match := _DOES.fullmatch(clause):
        violated = match[2] == "violat"
        negated = bool(match[1])
    elif match := _HAS.fullmatch(clause):
        violated, negated = True, not match[1].startswith("a")
    else:
        return None
    if len(_NEGATION.findall(clause)) != negated:
        return None
    return int(violated != negated)


_RESAMPLES = 1_000
_FEWEST_RESAMPLES = 200
_MOST_DRAWS = 1_000_000


@dataclass(frozen=True, slots=True)
class GroupStats:
    """Counts of one judge on one rubric of one test; `n` is the number of verdicts, agree plus
    disagree.

    `unverified` counts the cases, among all, whose label no verifier confirmed, and
    `contradicted` the verdicts whose reasoning disagrees with their score. `ties` counts the
    disagreements without a score.
    """

    suite: str = ""
    test: str = ""
    rubric: str = ""
    judge: str = ""
    n: int = 0
    agree: int = 0
    disagree: int = 0
    no_case: int = 0
    unscored: int = 0
    generated: int = 0
    unlabelled: int = 0
    unverified: int = 0
    contradicted: int = 0
    ties: int = 0

    @property
    def accuracy(self) -> float | None:
        """Agreement over verdicts; None without a verdict."""
        return self.agree / self.n if self.n else None


def group_stats(results: Iterable[CaseResult]) -> list[GroupStats]:
    """Count outcomes per suite, test, rubric and judge, in the order in which the groups first
    appear.
    """
    groups = grouped(
        ((result.spec.suite, result.spec.test, result.spec.rubric_id, result.judge), result)
        for result in results
    )
    return [counts_of(group, *names) for names, group in groups.items()]


def counts_of(
    results: Sequence[CaseResult],
    suite: str = "",
    test: str = "",
    rubric: str = "",
    judge: str = "",
) -> GroupStats:
    """Count outcomes over all results; names that are not given stay empty."""
    outcomes = Counter(result.outcome for result in results)
    judged = [result for result in results if result.outcome in JUDGED]
    return GroupStats(
        suite,
        test,
        rubric,
        judge,
        n=len(judged),
        agree=outcomes["agree"],
        disagree=outcomes["disagree"],
        no_case=outcomes["no_case"],
        unscored=sum(result.outcome in UNSCORED for result in results),
        generated=outcomes["generated"],
        unlabelled=outcomes["unlabelled"],
        unverified=sum(result.verified is False for result in results),
        contradicted=sum(map(reasoning_disagrees, results)),
        ties=sum(result.score is None for result in judged),
    )


def metric(name: str, expected: Sequence[int], scores: Sequence[int | None]) -> Estimate:
    """Compute a metric of RAND's configs: accuracy, balanced accuracy, kappa and F1, or another one
    of scikit-learn where that is installed.

    F1 is that of label 1, and on longer scales the mean over all labels, as are metrics of
    scikit-learn that average over labels. A score of None is a tie: wrong in the accuracy, and no
    label for the others.
    """
    if not expected:
        return Estimate(why=NO_VERDICT)
    if name == "accuracy_score":
        right = sum(label == score for label, score in zip(expected, scores, strict=True))
        return Estimate(right / len(expected))
    given = [score for score in scores if score is not None]
    if len(given) < len(scores):
        return Estimate(why="repeats that tie have no score that this metric could take")
    matrix = confusion_matrix(zip(expected, given, strict=True))
    value: float | None
    match name:
        case "balanced_accuracy_score":
            value = balanced_accuracy(matrix)
        case "cohen_kappa_score":
            value = _kappa(matrix)
        case "f1_score":
            value = _f1(matrix)
        case _:
            try:
                value = _of_scikit_learn(name, expected, given)
            except (ImportError, ValueError) as error:
                return Estimate(why=f"{name} cannot be computed from these verdicts: {error}")
    if value is None or not math.isfinite(value):
        return Estimate(why=f"{name} is not defined for these verdicts")
    return Estimate(value)


def _kappa(matrix: ConfusionMatrix) -> float | None:
    """Agreement beyond chance (Cohen 1960, Educ Psychol Meas 20:37-46)."""
    pairs = zip(matrix.rows, matrix.columns, strict=True)
    by_chance = sum(row * column for row, column in pairs) / matrix.n**2
    agreement = matrix.expectation(lambda label, answer: label == answer) / matrix.n
    return None if by_chance == 1 else (agreement - by_chance) / (1 - by_chance)


def _f1(matrix: ConfusionMatrix) -> float:
    """Twice the hits over labels and answers; 0 for a label that neither has."""
    scores = {}
    for index, label in enumerate(matrix.labels):
        occurs = matrix.rows[index] + matrix.columns[index]
        scores[label] = 2 * matrix.counts[index][index] / occurs
    if scores.keys() <= {0, 1}:
        return scores.get(1, 0.0)
    return sum(scores.values()) / len(scores)


def _of_scikit_learn(name: str, expected: Sequence[int], scores: Sequence[int]) -> float:
    import sklearn.metrics

    function = getattr(sklearn.metrics, name)
    options = {}
    if not {*expected, *scores} <= {0, 1} and "average" in inspect.signature(function).parameters:
        options["average"] = "macro"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(function(list(expected), list(scores), **options))


def bootstrap(results: Iterable[CaseResult], seed: int) -> Estimate:
    """Resample source runs and give mean and 95% percentile bounds of the accuracy (Efron and
    Tibshirani 1993, ch. 13).

    Whole runs are drawn, since cases of one run are not independent. At most 1,000 resamples, fewer
    for thousands of runs; the same seed gives the same figures.
    """
    runs = grouped(
        ((result.spec.suite, result.spec.run_id, result.spec.epoch), result.outcome == "agree")
        for result in results
        if result.outcome in JUDGED
    )
    if not runs:
        return Estimate(why=NO_VERDICT)
    if len(runs) == 1:
        return Estimate(why="all verdicts come from one source run")
    tallies = [Tally(sum(runs[run]), len(runs[run])) for run in sorted(runs)]
    if len({tally.right / tally.n for tally in tallies}) == 1:
        # Runs that are all alike give one figure in every resample.
        figure = tallies[0].right / tallies[0].n
        return Estimate(figure, figure, figure)
    import statistics

    figures = sorted(_resampled(tallies, seed))
    cuts = statistics.quantiles(figures, n=40, method="inclusive")
    return Estimate(statistics.fmean(figures), cuts[0], cuts[-1])


def _resampled(tallies: Sequence[Tally], seed: int) -> Iterator[float]:
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    rounds = max(_FEWEST_RESAMPLES, min(_RESAMPLES, _MOST_DRAWS // len(tallies)))
    # Both counts in one number, so that a resample is one sum: no sum of the lower part reaches the
    # upper.
    base = sum(tally.n for tally in tallies) * len(tallies) + 1
    packed = [tally.right * base + tally.n for tally in tallies]
    for _ in range(rounds):
        agree, judged = divmod(sum(rng.choices(packed, k=len(packed))), base)
        yield agree / judged

"""The formulas behind the figures, on plain counts; each cites its source (rule J1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pytest_jrh.stats.metrics import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Pair: TypeAlias = tuple[int, int]

SIGNIFICANCE = 0.05
NO_VERDICT = "no verdict was given"


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `n`; where `n` is 0, `reason` says what is missing."""

    count: int
    n: int
    reason: str | None = None

    @property
    def value(self) -> float | None:
        """The share, from 0 to 1; None where `n` is 0."""
        return self.count / self.n if self.n else None


@dataclass(frozen=True, slots=True)
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
    def rows(self) -> tuple[int, ...]:
        """How many cases have each label."""
        return tuple(map(sum, self.counts))

    @property
    def columns(self) -> tuple[int, ...]:
        """How often each answer was given."""
        return tuple(map(sum, zip(*self.counts, strict=True)))

    def expectation(self, cost: Callable[[int, int], float]) -> float:
        """Sum up the cost of each label and answer over all verdicts."""
        return sum(
            count * cost(label, answer)
            for label, row in zip(self.labels, self.counts, strict=True)
            for answer, count in zip(self.labels, row, strict=True)
        )


def confusion_matrix(pairs: Iterable[Pair], labels: Iterable[int] = ()) -> ConfusionMatrix:
    """Count pairs of label and answer; `labels` are shown also where no pair has them."""
    counts = Counter(pairs)
    shown = tuple(sorted({*labels, *(score for pair in counts for score in pair)}))
    return ConfusionMatrix(
        shown, tuple(tuple(counts[row, column] for column in shown) for row in shown)
    )


def cohen_kappa(matrix: ConfusionMatrix) -> Figure:
    """Agreement beyond chance: 1 is perfect, 0 what chance gives (Cohen 1960, Educ Psychol Meas
    20:37-46).
    """
    return _kappa(matrix, lambda one, other: float(one != other))


def quadratic_kappa(matrix: ConfusionMatrix) -> Figure:
    """Kappa that weighs a disagreement by the squared distance of the scores (Cohen 1968, Psychol
    Bull 70:213-220).
    """
    return _kappa(matrix, lambda one, other: float((one - other) ** 2))


def balanced_accuracy(matrix: ConfusionMatrix) -> Figure:
    """The mean of the recalls of the labels that occur (Brodersen et al. 2010, ICPR,
    pp. 3121-3124).
    """
    recalls = [matrix.counts[index][index] / row for index, row in enumerate(matrix.rows) if row]
    return Figure(sum(recalls) / len(recalls)) if recalls else Figure(None, NO_VERDICT)


def mean_absolute_error(matrix: ConfusionMatrix) -> Figure:
    """The mean distance of the answers from the labels, in levels."""
    if not matrix.n:
        return Figure(None, NO_VERDICT)
    return Figure(matrix.expectation(lambda label, answer: abs(label - answer)) / matrix.n)


def mean_bias(matrix: ConfusionMatrix) -> Figure:
    """The mean of answer minus label, in levels: above 0, the judge scores too high."""
    if not matrix.n:
        return Figure(None, NO_VERDICT)
    return Figure(matrix.expectation(lambda label, answer: answer - label) / matrix.n)


def mcnemar(regressions: int, fixes: int) -> float:
    """Two-sided exact p-value of a split at least this uneven, if regressions and fixes were
    equally likely.

    The binomial form of the test for paired shares (McNemar 1947, Psychometrika 12:153-157); 1
    where nothing changed. It takes cases to be independent, so cases that share a source run make
    it look more certain than it is.
    """
    changed = regressions + fixes
    term = tail = 1
    for number in range(min(regressions, fixes)):
        term = term * (changed - number) // (number + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << changed))


def _kappa(matrix: ConfusionMatrix, cost: Callable[[int, int], float]) -> Figure:
    """1 - observed over expected cost.

    Both margins in one class leave no chance disagreement to compare with.
    """
    if not matrix.n:
        return Figure(None, NO_VERDICT)
    by_chance = sum(
        row * column * cost(label, answer)
        for label, row in zip(matrix.labels, matrix.rows, strict=True)
        for answer, column in zip(matrix.labels, matrix.columns, strict=True)
    )
    if not by_chance:
        return Figure(None, "one class only: labels and answers are all the same")
    return Figure(1 - matrix.n * matrix.expectation(cost) / by_chance)

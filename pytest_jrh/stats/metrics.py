"""Metrics of RAND's configs."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import TYPE_CHECKING

from pytest_jrh.stats.formulas import (
    NO_VERDICT,
    ConfusionMatrix,
    Estimate,
    balanced_accuracy,
    confusion_matrix,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


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
            except (ImportError, AttributeError, ValueError) as error:
                return Estimate(why=f"{name} cannot be computed from these verdicts: {error}")
    if value is None or not math.isfinite(value):
        return Estimate(why=f"{name} is not defined for these verdicts")
    return Estimate(value)


def _kappa(matrix: ConfusionMatrix) -> float | None:
    """Agreement beyond chance (Cohen 1960, Educ Psychol Meas 20:37-46)."""
    pairs = zip(matrix.rows, matrix.columns, strict=True)
    by_chance = sum(row * column for row, column in pairs) / matrix.n**2
    agreement = sum(row[index] for index, row in enumerate(matrix.counts)) / matrix.n
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

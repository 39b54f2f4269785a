"""Figures of labels that stand for several cases each, as those that were drawn evenly from what a
judge said, where a random sample would hold few of the rare ones.

Their intervals are those of a Bayesian bootstrap (Rubin 1981, Ann Stat 9:130-134), drawn in each
stratum by itself (Aitkin 2008, Surv Res Methods 2:49-56), in which cases of one cluster have one
weight. Half a case with a right verdict, and half a case with a wrong one, are added to each
stratum, as in the prior of Jeffreys: what was not seen of few labels may be there. How many cases a
stratum has is known of the table, and varies as it does in one of so many cases (double sampling,
Cochran 1977, Sampling Techniques, 12.2).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pytest_jrh.core.scales import NOT_APPLICABLE, Scale, off
from pytest_jrh.stats.classes import FALSE_ALARMS, FEWEST_LABELS, RECALL_OF, recall_key
from pytest_jrh.stats.intervals import LEVEL, Estimate, kappa_of_sums, products
from pytest_jrh.stats.verdicts import Coded, Floats, Ints, Verdicts, answer_of

_DRAWS = 2_000
_UNSEEN = 0.5
_SEED = 8234
# The correlation that is taken inside of the clusters of the table.
_ALIKE = 0.3

_Cell: TypeAlias = tuple[Scale, Any, int | None]
"""A scale, a label on it, and an answer."""


class Stratum(NamedTuple):
    """Labels that were drawn alike: how many cases each of these stands for, how many there are,
    and what share of independent cases they are of those that they stand for.
    """

    name: str
    weight: float
    labels: int
    share: float


def strata(weights: Iterable[tuple[str, float]], clusters: Ints) -> list[Stratum | None]:
    """The strata of cases with these names and weights, 0 for those without a label."""
    known = Coded.of(weights)
    sizes = np.bincount(np.unique(clusters, return_inverse=True)[1]).astype(float)
    alike = 1 + _ALIKE * ((sizes @ sizes) / sizes.sum() - 1)
    of_names: list[Stratum | None] = []
    for (name, weight), number in zip(known.names, np.bincount(known.codes).tolist(), strict=True):
        stratum = Stratum(name, weight, number, min(1.0, alike / max(weight, 1.0)))
        of_names.append(stratum if weight else None)
    return Coded(of_names, known.codes).values


def weighted(
    judged: Verdicts, figures: Mapping[str, Estimate], unseen: float = _UNSEEN
) -> dict[str, Estimate]:
    """The figures of these verdicts by the weights of their labels; as they are without any. So
    many `unseen` cases of either kind are added to each stratum.
    """
    of_figures = {**figures}
    labelled = judged.where(~judged.weight.equals(None))
    if len(labelled):
        cells, masses = _masses(labelled, unseen)
        numbers = Counter(recall_key(of) for of in labelled.case_class.values if of is not None)
        for key, figure in figures.items():
            if figure.value is None or key == "flicker":
                continue
            estimate = _estimate(key, cells, masses, len(labelled))
            if key.startswith(RECALL_OF) and numbers[key] < FEWEST_LABELS:
                estimate = replace(
                    estimate,
                    lower=None,
                    upper=None,
                    why=f"the class has fewer than {FEWEST_LABELS} labels",
                )
            of_figures[key] = estimate
    return of_figures


def _masses(labelled: Verdicts, unseen: float) -> tuple[list[_Cell], Floats]:
    """The verdicts that there are, or may be, and of how many cases: by the labels in the first
    row, then draw by draw.
    """
    rng = np.random.default_rng(_SEED)
    _, clusters = np.unique(labelled.cluster, return_inverse=True)
    of_clusters = rng.standard_exponential((_DRAWS, clusters.max() + 1))
    masses: dict[_Cell, Floats] = {}
    for (stratum,), rows in labelled.places("weight").items():
        kinds = labelled.where(rows).kinds("scale", "label", "score")
        drawn: dict[_Cell, Floats] = dict.fromkeys(kinds.names, np.zeros(1 + _DRAWS))
        for number, cell in enumerate(kinds.names):
            of_kind = rows[kinds.codes == number]
            draws = of_clusters[:, clusters[of_kind]].sum(axis=1)
            drawn[cell] = drawn[cell] + [len(of_kind), *draws]
            for labels in _labels(cell):
                part = unseen * len(of_kind) / (len(rows) * len(labels))
                for label in labels:
                    other, more = (cell[0], label, cell[2]), rng.gamma(part, size=_DRAWS)
                    drawn[other] = drawn.get(other, 0) + np.array([0, *more])
        # Labels of other rubrics are of the stratum, too.
        total = sum(drawn.values()) + rng.gamma(stratum.labels - len(rows), size=1 + _DRAWS)
        expected = stratum.labels + 2 * unseen
        factor = (total / expected) ** (math.sqrt(stratum.share) - 1) * stratum.labels / expected
        factor[0] = 1
        for cell, of_cell in drawn.items():
            masses[cell] = masses.get(cell, 0) + of_cell * factor * stratum.weight
    return [*masses], np.column_stack([*masses.values()])


def _labels(cell: _Cell) -> tuple[list[int | None], list[int | None]]:
    """The labels by which a verdict is right, and those by which it is wrong, on levels by one."""
    scale, label, score = cell
    others = [other for other in scale.answers if other != score]
    if scale.is_ordered and score is not None:
        others = [other for other in others if abs(other - score) == 1]
    return [score if score in scale.answers else label], [*others] or [label]


def _estimate(key: str, cells: Sequence[_Cell], masses: Floats, labels: int) -> Estimate:
    """A figure with its interval."""
    if key.endswith("kappa"):
        answers = [_answer(*cell) for cell in cells]
        is_known = np.array([answer is not None for answer in answers])
        pairs = np.array([(cell[1], answer) for cell, answer in zip(cells, answers, strict=True)])
        known = pairs[is_known].astype(float)
        classes = None if cells[0][0].is_ordered else np.unique(known)
        sums = masses[:, is_known] @ products(known, classes)
        values = np.array([*map(kappa_of_sums, sums.tolist())])
    else:
        sums = masses @ np.array([_terms(key, *cell) for cell in cells], float)
        if not sums[0, 1]:
            return Estimate(n=labels, why="not weighted")
        values = sums[:, 0] / sums[:, 1]
    value = float(values[0])
    lower, upper = np.nanquantile(values[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Estimate(value, min(lower, value), max(upper, value), n=labels)


def _terms(key: str, scale: Scale, label: Any, score: int | None) -> tuple[float, float]:
    """What a verdict adds to a figure, a ratio of two sums."""
    is_right, answer = scale.accepts(score, label), _answer(scale, label, score)
    error = None if answer is None else answer - label
    if key == "violated":
        return label == 1, 1
    if key == "accuracy":
        return is_right, 1
    if key in ("exact", "within_one"):
        is_exact = score is not None and not off(score, label)
        return is_exact or (key == "within_one" and error is not None and abs(error) <= 1), 1
    if key in ("mean_absolute_error", "bias"):
        return abs(error or 0) if key != "bias" else error or 0, error is not None
    of_class = scale.class_of(label)
    if of_class is None or recall_key(of_class) != key:
        return 0, 0
    if key == FALSE_ALARMS:
        is_right = not is_right and score != NOT_APPLICABLE
    return is_right, 1


def _answer(scale: Scale, label: Any, score: int | None) -> int | None:
    """The answer that counts; n/a beside levels is in no mean."""
    if scale.is_ordered and NOT_APPLICABLE in (label, score):
        return None
    return answer_of(scale, label, score)


def labels_for(figure: Estimate, points: float) -> int:
    """So many labels would make an interval so wide, by a rule of thumb."""
    width = (figure.upper or 0) - (figure.lower or 0)
    return math.ceil(figure.n * (width / points) ** 2)

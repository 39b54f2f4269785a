"""Warnings about judges with constant, random or inverted verdicts, or that contradict themselves,
which accuracy alone may hide (rule J1).
"""

from __future__ import annotations

from math import erfc, exp, lgamma, sqrt
from typing import TYPE_CHECKING

from pytest_jrh.stats.figures import matrix_of
from pytest_jrh.stats.flicker_text import tie_sentence
from pytest_jrh.stats.inference.formulas import SIGNIFICANCE
from pytest_jrh.text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.models import Mode
    from pytest_jrh.stats.figures import Section
    from pytest_jrh.stats.inference.formulas import ConfusionMatrix
    from pytest_jrh.stats.statistics import Statistics

_MEANINGS = {0: "satisfied", 1: "violated"}
# Up to here kappa is "fair" at best (Landis and Koch 1977, Biometrics 33:159-174).
_FAIR = 0.4
# From here it is "substantial". Since near misses count in part, one of ten random judges has more
# than 0.4 with 8 to 12 scores.
_SUBSTANTIAL = 0.6
_FEWEST_VERDICTS = 4
# A single case has one label, whatever the suite.
_FEWEST_LABELS = 2
# Logarithms of equally likely tables differ by rounding, and by more than this where the tables are
# not.
_ROUNDING = 1e-7


def section_warnings(section: Section) -> list[str]:
    """All warnings about the figures of one judge."""
    return all_warnings(
        section.total,
        [row.statistics for row in section.rows if row.level == "rubric"],
        section.mode,
    )


def all_warnings(total: Statistics, rubrics: Sequence[Statistics], mode: Mode) -> list[str]:
    """Warnings about one judge over all its cases, and about rubrics whose labels are all the
    same.
    """
    warnings = judge_warnings(total, mode)
    if same := _one_class(total, mode):
        return [*warnings, f"{same}."]
    found = [(rubric.counts.rubric, _one_class(rubric, mode)) for rubric in rubrics]
    return [
        *warnings,
        *(f"{one_line(name)}: {same[0].lower()}{same[1:]}." for name, same in found if same),
    ]


def _one_class(statistics: Statistics, mode: Mode) -> str | None:
    """The accuracy of a constant judge, where all labels are the same."""
    matrix = matrix_of(statistics, mode)
    if matrix is None or matrix.n < _FEWEST_LABELS or sum(map(bool, matrix.rows)) > 1:
        return None
    [label] = [score for score, row in zip(matrix.labels, matrix.rows, strict=True) if row]
    cases = f"Only {_MEANINGS[label]} cases" if mode == "binary" else f"Only cases of score {label}"
    return f"{cases}: a constant verdict of {label} would get 100%"


def judge_warnings(statistics: Statistics, mode: Mode) -> list[str]:
    """Warnings about a judge whose verdicts do not depend on the cases, or that contradicts itself.

    Constant, random and inverted verdicts are not reported below four verdicts, or where all labels
    are the same.
    """
    ties = tie_sentence(statistics)
    return [
        *_independence(statistics, mode),
        *_contradictions(statistics),
        *([ties] if ties else []),
    ]


def _independence(statistics: Statistics, mode: Mode) -> list[str]:
    matrix = matrix_of(statistics, mode)
    if matrix is None or matrix.n < _FEWEST_VERDICTS or sum(map(bool, matrix.rows)) < 2:  # noqa: PLR2004 - labels
        return []
    given = [score for score, column in zip(matrix.labels, matrix.columns, strict=True) if column]
    if len(given) == 1:
        answer = f"{given[0]} ({_MEANINGS[given[0]]})" if mode == "binary" else str(given[0])
        return [f"Constant verdict: {answer} for all {matrix.n:,} cases."]
    kappa = _kappa(statistics, mode)
    sentence = _by_chance(matrix, kappa, mode) if kappa is not None else ""
    return [sentence] if sentence else []


def _by_chance(matrix: ConfusionMatrix, kappa: float, mode: Mode) -> str:
    if mode == "ordinal":
        chance, name, enough = mantel(matrix), "Mantel's test p", _SUBSTANTIAL
    else:
        chance, name, enough = fisher_exact(matrix), "Fisher's exact p", _FAIR
    odds = f"kappa {round(kappa, 2) + 0.0:.2f}, {name} = {chance:.2g}"
    if kappa <= -_FAIR and chance < SIGNIFICANCE:
        return f"Inverted labels (kappa {kappa:.2f})."
    if mode == "ordinal" and kappa < 0 and chance < SIGNIFICANCE:
        return f"Scores agree with the labels less than by chance (weighted {odds})."
    if kappa >= enough or chance < SIGNIFICANCE:
        return ""
    if mode == "ordinal":
        return f"Scores are indistinguishable from chance (weighted {odds})."
    return f"Verdicts are indistinguishable from chance ({odds})."


def _contradictions(statistics: Statistics) -> list[str]:
    counts = statistics.counts
    if not counts.contradicted:
        return []
    return [
        f"Reasoning and score disagree in {counts.contradicted:,} of "
        f"{counted(counts.n, 'verdict')}: the reasoning ends in another verdict than the score. "
        "The score counts."
    ]


def mantel(matrix: ConfusionMatrix) -> float:
    """Two-sided p-value of the linear association of labels and scores under independence; 1
    without any spread.

    `(n - 1) r^2`, chi-square with one degree of freedom (Mantel 1963, J Am Stat Assoc 58:690-700).
    With both margins given, r decides how large the quadratically weighted kappa is. Like Fisher's
    test it takes verdicts to be independent of each other.
    """
    n = matrix.n
    rows = list(zip(matrix.labels, matrix.rows, strict=True))
    columns = list(zip(matrix.labels, matrix.columns, strict=True))
    label, score = (sum(value * count for value, count in margin) / n for margin in (rows, columns))
    spread = sum(count * (value - label) ** 2 for value, count in rows)
    spread *= sum(count * (value - score) ** 2 for value, count in columns)
    if not spread:
        return 1.0
    together = matrix.expectation(lambda one, other: (one - label) * (other - score))
    return erfc(abs(together) * sqrt((n - 1) / (2 * spread)))


def fisher_exact(matrix: ConfusionMatrix) -> float:
    """Two-sided exact p-value of a table of two labels and two answers under independence.

    Fisher 1935, J R Stat Soc 98:39-82: the tables with these margins that are no likelier than the
    one seen.
    """
    (both, _), (_, _) = matrix.counts
    row, other = matrix.rows
    column = matrix.columns[0]
    # In logarithms: as whole numbers of thousands of digits the counts of large suites took longer
    # than their cases.
    ways = {
        k: _log_choices(row, k) + _log_choices(other, column - k)
        for k in range(max(0, column - other), min(row, column) + 1)
    }
    every = _log_choices(row + other, column)
    return min(
        1.0, sum(exp(count - every) for count in ways.values() if count <= ways[both] + _ROUNDING)
    )


def _log_choices(n: int, k: int) -> float:
    """The logarithm of the number of ways to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _kappa(statistics: Statistics, mode: Mode) -> float | None:
    if mode == "ordinal":
        return statistics.ordinal.weighted_kappa.value if statistics.ordinal else None
    return statistics.binary.kappa.value if statistics.binary else None

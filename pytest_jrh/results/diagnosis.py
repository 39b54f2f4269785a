"""Judges that judge nothing: told in words, because their accuracy alone may look fine (semantics J1)."""

from __future__ import annotations

from math import exp, lgamma
from typing import TYPE_CHECKING

from pytest_jrh.results.figures import matrix_of
from pytest_jrh.results.formulas import SIGNIFICANCE

if TYPE_CHECKING:
    from pytest_jrh.models import Mode
    from pytest_jrh.results.formulas import ConfusionMatrix
    from pytest_jrh.results.statistics import Statistics

_MEANINGS = {0: "satisfied", 1: "violated"}
# Up to here kappa is "fair" at best (Landis and Koch 1977, Biometrics 33:159-174).
_FAIR = 0.4
_SLIGHT = 0.2
_FEWEST_VERDICTS = 4
# Logarithms of equally likely tables differ by rounding, and by more than this where the tables are not.
_ROUNDING = 1e-7


def judge_warnings(statistics: Statistics, mode: Mode) -> list[str]:
    """Sentences about a judge whose answers do not depend on the cases: always the same, or as if by chance.

    None where there are fewer than four verdicts, or all labels are the same: nothing can be said then.
    """
    matrix = matrix_of(statistics, mode)
    if matrix is None or matrix.n < _FEWEST_VERDICTS or sum(map(bool, matrix.rows)) < 2:  # noqa: PLR2004 - labels
        return []
    given = [score for score, column in zip(matrix.labels, matrix.columns, strict=True) if column]
    if len(given) == 1:
        answer = f"{given[0]} ({_MEANINGS[given[0]]})" if mode == "binary" else str(given[0])
        return [f"It gave {answer} to every one of {matrix.n:,} cases: it does not judge."]
    kappa = _kappa(statistics, mode)
    if kappa is None:
        return []
    if mode == "ordinal":
        return (
            [f"Its scores have little to do with the labels (weighted kappa {kappa:.2f})."] if kappa < _SLIGHT else []
        )
    chance = fisher_exact(matrix)
    if kappa >= _FAIR or chance < SIGNIFICANCE:
        return [f"It answers the wrong way round (kappa {kappa:.2f})."] if kappa <= -_FAIR else []
    odds = f"kappa {round(kappa, 2) + 0.0:.2f}, Fisher's exact p = {chance:.2g}"
    return [f"Its answers cannot be told from a coin's ({odds})."]


def fisher_exact(matrix: ConfusionMatrix) -> float:
    """Two-sided exact p-value of a table of two labels and two answers, were they independent.

    Fisher 1935, J R Stat Soc 98:39-82: the tables with these margins that are no likelier than the one seen.
    """
    (both, _), (_, _) = matrix.counts
    row, other = matrix.rows
    column = matrix.columns[0]
    # In logarithms: as whole numbers of thousands of digits the counts of large suites took longer than their cases.
    ways = {
        k: _log_choices(row, k) + _log_choices(other, column - k)
        for k in range(max(0, column - other), min(row, column) + 1)
    }
    every = _log_choices(row + other, column)
    return min(1.0, sum(exp(count - every) for count in ways.values() if count <= ways[both] + _ROUNDING))


def _log_choices(n: int, k: int) -> float:
    """The logarithm of the number of ways to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _kappa(statistics: Statistics, mode: Mode) -> float | None:
    if mode == "ordinal":
        return statistics.ordinal.weighted_kappa.value if statistics.ordinal else None
    return statistics.binary.kappa.value if statistics.binary else None

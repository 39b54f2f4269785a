"""What an ordinal judge gives to the cases of each level."""

from __future__ import annotations

import statistics

import pytest

from pytest_jrh.stats.formulas import ConfusionMatrix
from pytest_jrh.stats.statistics import levels_of


def test_mean_spread_and_bias_are_those_of_the_scores() -> None:
    matrix = ConfusionMatrix((0, 1, 3), ((2, 0, 2), (0, 0, 0), (1, 3, 4)))
    low, high = levels_of(matrix)
    given = [0, 1, 1, 1, 3, 3, 3, 3]
    assert (low.level, low.n, low.mean, low.spread, low.bias_text) == (0, 4, 1.5, 1.5, "+1.50")
    assert (low.lowest, low.highest, low.range_text) == (0, 3, "0 to 3")
    assert high.mean == pytest.approx(statistics.fmean(given))
    assert high.spread == pytest.approx(statistics.pstdev(given))
    assert high.bias_text == f"{statistics.fmean(given) - 3:+.2f}"


def test_a_judge_that_is_right_has_no_bias() -> None:
    [level] = levels_of(ConfusionMatrix((-1, 0), ((5, 0), (0, 0))))
    assert (level.bias_text, level.spread, level.range_text) == ("0.00", 0.0, "-1")

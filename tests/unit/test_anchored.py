"""Figures that the labels of people correct (rule N4)."""

from __future__ import annotations

import pytest

from benchmarks.anchoring import Cell, simulated
from pytest_jrh.stats.people import (
    CheckedCase,
    anchored_accuracy,
    anchored_false_positive_rate,
    anchored_recall,
)


def cases(answer: int, label: int, people: int | None, number: int) -> list[list[CheckedCase]]:
    return [[CheckedCase(answer, label, people)]] * number


def test_people_who_agree_with_every_label_change_nothing() -> None:
    clusters = [
        *cases(1, 1, 1, 20),
        *cases(0, 1, 1, 5),
        *cases(1, 1, None, 60),
        *cases(0, 1, None, 15),
    ]
    found = anchored_accuracy(clusters)
    assert found.estimate.value == pytest.approx(0.8, abs=0.02)
    assert found.estimate.lower is not None
    assert found.estimate.upper is not None
    assert found.estimate.lower < 0.75
    assert found.estimate.upper > 0.85
    assert found.estimate.n == 100


def test_errors_that_judge_and_labels_share_are_found() -> None:
    # All agree, and people say that a fifth of the labels are wrong.
    clusters = [*cases(1, 1, 1, 32), *cases(1, 1, 0, 8), *cases(1, 1, None, 260)]
    found = anchored_accuracy(clusters)
    assert found.estimate.value == pytest.approx(0.8, abs=0.02)
    # People say that 8 of 40 are satisfied, and the judge calls all of them violated.
    assert anchored_false_positive_rate(clusters).estimate.value == pytest.approx(1, abs=0.1)
    assert anchored_recall(clusters).estimate.value == pytest.approx(1, abs=0.05)


def test_too_few_labels_correct_nothing() -> None:
    found = anchored_accuracy([*cases(1, 1, 1, 19), *cases(1, 1, None, 100)])
    assert found.estimate.value is None
    assert found.estimate.reason == "19 labels of people; at least 20 are needed"


def test_no_such_case_among_those_that_people_labelled() -> None:
    found = anchored_recall([*cases(0, 0, 0, 30), *cases(1, 1, None, 30)])
    assert found.estimate.value is None
    assert found.estimate.reason == "people labelled no such case"


def test_a_simulation_finds_no_bias_where_the_raw_figure_has_one() -> None:
    found = simulated(Cell(wrong=0.1, shared=0.9, labelled=60, size=1), sessions=60)["accuracy"]
    assert found.raw_bias > 0.06
    assert abs(found.bias) < 0.02
    assert found.covered > 0.85

"""Agreement of annotators, against published values."""

from __future__ import annotations

import pytest

from pytest_jrh.stats.people import Agreement, agreement

# Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, section C: 4 observers, 12 units.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
UNITS = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]


def test_alpha_is_that_of_a_published_table() -> None:
    nominal, ordinal = agreement(UNITS), agreement(UNITS, ordinal=True)
    assert nominal.alpha == pytest.approx(0.743, abs=5e-4)
    assert ordinal.alpha == pytest.approx(0.815, abs=5e-4)
    assert nominal.units == 11


def test_two_observers_of_binary_labels() -> None:
    # The same source, section A: 10 units, alpha 0.095.
    units = zip((0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0), strict=True)
    found = agreement(list(units))
    assert found.alpha == pytest.approx(0.095, abs=5e-4)
    assert found.raw == pytest.approx(0.6)


def test_what_says_nothing() -> None:
    assert agreement([[1], [0]]) == Agreement(0, None, None)
    assert agreement([[1, 1], [1, 1]]) == Agreement(2, 1.0, None)
    assert agreement([[1, 1], [0, 0]]).alpha == 1

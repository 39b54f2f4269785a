from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.stats.probes import holm


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(deadline=None)
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    known = pytest.importorskip("statsmodels.stats.multitest")
    # It collects garbage on each call, which takes half a second where much is imported.
    with mock.patch("gc.collect"):
        adjusted = known.multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(adjusted)

from __future__ import annotations

import math
import sys
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.reports.rand_files import metric

LABELS = st.integers(1, 3).flatmap(
    lambda most: st.lists(st.tuples(*[st.integers(0, most)] * 2), min_size=1, max_size=30)
)


@given(LABELS)
@settings(max_examples=50, deadline=None)
def test_metrics_are_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    known = pytest.importorskip("sklearn.metrics")
    expected, scores = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    is_binary = {*expected, *scores} <= {0, 1}
    averaged: Any = {"zero_division": 0} | ({} if is_binary else {"average": "macro"})
    of_ratios = dict.fromkeys(("f1_score", "precision_score"), averaged)
    for name in ("accuracy_score", "balanced_accuracy_score", "cohen_kappa_score", *of_ratios):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(known, name)(expected, scores, **of_ratios.get(name, {}))
        ours = metric(name, expected, scores)
        if math.isnan(value):
            assert ours.reason == f"{name} is not defined for these verdicts"
        else:
            assert ours.value == pytest.approx(value)


def test_without_scikit_learn_other_metrics_have_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    assert metric("f1_score", [0, 1], [0, 1]).value == 1
    found = metric("precision_score", [0, 1], [0, 0])
    assert found.value is None
    assert (found.reason or "").startswith("precision_score cannot be computed")

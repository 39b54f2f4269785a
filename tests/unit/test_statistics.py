"""The figures on judges, against independent implementations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import numbered
from pytest_jrh.stats.classes import confusion_matrix
from pytest_jrh.stats.intervals import Estimate
from pytest_jrh.stats.probes import holm
from pytest_jrh.stats.statistics import Panel, accuracy_of, panels
from pytest_jrh.stats.verdicts import Verdicts
from tests.support.figures import describe, ends, kappa_of, mean_error_of
from tests.support.made_cases import make_result, make_spec, result_with

BINARY = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)
ORDINAL = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)


def judged(run: str, expected: int, score: int, **changes: Any) -> CaseResult:
    """A verdict in the test that the label belongs to."""
    spec = make_spec(
        run, **{"test": "agent_perturbation" if expected else "agent_positives", **changes}
    )
    return make_result(spec, "agree" if expected == score else "disagree", score)


def scored(run: str, target: int, score: int, **changes: Any) -> CaseResult:
    spec = make_spec(run, target_score=target, **changes)
    return make_result(spec, "agree" if target == score else "disagree", score)


@given(BINARY)
@settings(max_examples=100, deadline=None)
def test_binary_figures_are_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    known = pytest.importorskip("sklearn.metrics")
    labels, answers = zip(*pairs, strict=True)
    counts = known.confusion_matrix(labels, answers, labels=[0, 1])
    assert (confusion_matrix(pairs, (0, 1)).counts == counts).all()
    kappa = kappa_of([pairs])
    if len({*labels, *answers}) == 1:
        assert kappa.value is None
        assert "one class only" in (kappa.reason or "")
    else:
        assert kappa.value == pytest.approx(known.cohen_kappa_score(labels, answers, labels=[0, 1]))
    if len(set(labels)) > 1:
        results = [judged(f"run-{run}", *pair) for run, pair in enumerate(pairs)]
        balanced = describe(results).figures["balanced_accuracy"].value
        assert balanced == pytest.approx(known.balanced_accuracy_score(labels, answers))


@given(ORDINAL)
@settings(max_examples=100, deadline=None)
def test_ordinal_figures_are_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    known = pytest.importorskip("sklearn.metrics")
    labels, answers = zip(*pairs, strict=True)
    counts = known.confusion_matrix(labels, answers, labels=range(5))
    assert (confusion_matrix(pairs, range(5)).counts == counts).all()
    assert mean_error_of([pairs]).value == pytest.approx(known.mean_absolute_error(labels, answers))
    if len({*labels, *answers}) > 1:
        expected = known.cohen_kappa_score(labels, answers, labels=range(5), weights="quadratic")
        assert kappa_of([pairs]).value == pytest.approx(expected)


def test_epochs_of_a_sample_are_one_observation() -> None:
    once = [judged(f"run-{run}", 1, int(run > 1)) for run in range(10)]
    often = [result_with(each, epoch=epoch) for each in once for epoch in range(1, 11)]
    apart = [result_with(each, run_id=f"{each.spec.run_id}-{each.spec.epoch}") for each in often]
    width = {name: width_of(results) for name, results in (("once", once), ("often", often))}
    assert width["often"] > 0.8 * width["once"] > 2 * width_of(apart)
    one_sample = [judged("run", 1, epoch % 2, epoch=epoch) for epoch in range(1, 11)]
    reason = accuracy_of(Verdicts.of(one_sample)).interval_reason
    assert reason == "all verdicts come from one sample or cluster"


def width_of(results: Sequence[CaseResult]) -> float:
    lower, upper = ends(accuracy_of(Verdicts.of(results)))
    return upper - lower


def counts_of(share: Estimate) -> tuple[int | None, int]:
    return share.count, share.n


def test_no_verdict_leaves_every_figure_null_with_the_reason() -> None:
    lost = make_result(outcome="no_case"), make_result(make_spec("run-2"), "model_error")
    found = describe(lost)
    assert (found.counts.n, found.counts.no_case, found.counts.unscored) == (0, 1, 1)
    assert found.figures["recall"].value is None
    none = [found.figures[key] for key in ("accuracy", "kappa", "balanced_accuracy")]
    for figure in (*none, describe([]).accuracy):
        assert figure.value is None
        assert figure.reason == figure.interval_reason == "no verdict was given"
    assert not describe([]).matrices


def test_ordinal_figures_count_levels() -> None:
    pairs = [(0, 0), (1, 2), (2, 0), (3, 3)]
    found = describe([scored(f"run-{run}", *pair) for run, pair in enumerate(pairs)])
    assert list(found.matrices) == ["ordinal"]
    assert counts_of(found.figures["exact"]) == (2, 4)
    assert counts_of(found.figures["within_one"]) == (3, 4)
    assert found.figures["mean_absolute_error"].value == 0.75


def test_rubrics_with_different_scales_have_no_common_weighted_kappa() -> None:
    results = [scored("run-1", 1, 1), scored("run-2", 2, 2, rubric_id="tone")]
    scales = {("refunds", "refund_policy"): numbered(0, 4), ("refunds", "tone"): numbered(0, 2)}
    found = describe(results, scales)
    assert found.figures["weighted_kappa"].reason == "the rubrics have different scales"


def panel_of(*votes: tuple[int | None, ...]) -> list[Panel]:
    """Verdicts on the violations of one run each, by the judges a, b, c.

    None is an unscored one.
    """
    results = []
    for run, scores in enumerate(votes):
        for judge, score in zip("abc", scores, strict=False):
            unscored = make_result(make_spec(f"run-{run}", judge=judge), "model_error")
            result = unscored if score is None else judged(f"run-{run}", 1, score, judge=judge)
            results.append(result)
    return panels(Verdicts.of(results))


@pytest.mark.parametrize(
    ("votes", "without", "accuracy"),
    [
        ([(1, 1, 0), (0, 0, 1), (1, 1, 1)], [], (2, 3)),
        ([(1, 0), (1, 1)], ["a: 1, b: 0"], (1, 2)),
        ([(1, 1, None), (1, None, None), (1, 1, 1)], ["a: 1, b: none, c: none"], (2, 3)),
    ],
)
def test_a_panel_votes_by_a_majority_of_all_its_judges(
    votes: list[tuple[int | None, ...]], without: list[str], accuracy: tuple[int, int]
) -> None:
    (panel,) = panel_of(*votes)
    assert [*panel.without_majority.values()] == without
    assert counts_of(panel.accuracy) == accuracy


def test_judges_agreement_with_each_other_ignores_the_labels() -> None:
    (panel,) = panel_of((0, 0, 1), (1, 1, 0), (0, 0, 1), (1, 0, 0))
    pairs = {pair.judges: pair for pair in panel.pairs}
    assert list(pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert counts_of(pairs["a", "b"].agreement) == (3, 4)
    assert pairs["a", "b"].kappa.value == 0.5
    assert pairs["a", "c"].kappa.value == -1


def test_ordinal_judges_are_compared_by_weighted_kappa() -> None:
    pairs = [(0, 0), (1, 2), (2, 1), (3, 3), (4, 2)]
    results = [scored(f"run-{run}", 2, one, judge="a") for run, (one, _) in enumerate(pairs)]
    results += [scored(f"run-{run}", 2, other, judge="b") for run, (_, other) in enumerate(pairs)]
    (panel,) = panels(Verdicts.of(results))
    assert panel.pairs[0].kappa.value == kappa_of([pairs]).value


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(deadline=None)
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    known = pytest.importorskip("statsmodels.stats.multitest")
    # It collects garbage on each call, which takes half a second where much is imported.
    with mock.patch("gc.collect"):
        adjusted = known.multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(adjusted)

"""The figures on judges, against independent implementations."""

from __future__ import annotations

import random
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.cases.tests import TESTS
from pytest_jrh.core.model import CaseResult
from pytest_jrh.stats.intervals import Estimate, wilson
from pytest_jrh.stats.panels import Panel, panels
from pytest_jrh.stats.statistics import (
    ConfusionMatrix,
    accuracy_of,
    confusion_matrix,
    tabulate,
)
from tests.support.figures import describe, kappa_of, mean_error_of
from tests.support.made_cases import make_result, make_spec, result_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

BINARY = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)
ORDINAL = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)


def judged(run: str, expected: int, score: int, **changes: Any) -> CaseResult:
    """A verdict in the test that the label belongs to."""
    spec = make_spec(
        run, **{"test": "agent_perturbation" if expected else "agent_positives", **changes}
    )
    return make_result(spec, "agree" if expected == score else "disagree", score)


def scored(run: str, target: int, score: int, **changes: Any) -> CaseResult:
    return make_result(
        make_spec(run, target_score=target, **changes),
        "agree" if target == score else "disagree",
        score,
    )


def judge_of(answer: Callable[[int], int], runs: int = 40) -> list[CaseResult]:
    """A judge's verdicts on the perturbation and the positive of each run; it is told the label."""
    return [
        judged(f"run-{run}", expected, answer(expected))
        for run in range(runs)
        for expected in (1, 0)
    ]


def split(pairs: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    labels, answers = zip(*pairs, strict=True)
    return list(labels), list(answers)


@given(BINARY)
@settings(max_examples=100, deadline=None)
def test_binary_figures_are_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    known = pytest.importorskip("sklearn.metrics")
    labels, answers = split(pairs)
    matrix = confusion_matrix(pairs, (0, 1))
    assert [list(row) for row in matrix.counts] == known.confusion_matrix(
        labels, answers, labels=[0, 1]
    ).tolist()
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
    labels, answers = split(pairs)
    matrix = confusion_matrix(pairs, range(5))
    assert [list(row) for row in matrix.counts] == known.confusion_matrix(
        labels, answers, labels=range(5)
    ).tolist()
    assert mean_error_of([pairs]).value == pytest.approx(known.mean_absolute_error(labels, answers))
    if len({*labels, *answers}) > 1:
        expected = known.cohen_kappa_score(labels, answers, labels=range(5), weights="quadratic")
        assert kappa_of([pairs]).value == pytest.approx(expected)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(max_examples=100, deadline=None)
def test_wilson_interval_is_statsmodels(counts: tuple[int, int]) -> None:
    known = pytest.importorskip("statsmodels.stats.proportion")
    right, n = counts
    assert wilson(right / n, NormalDist().inv_cdf(0.975) ** 2 / n) == pytest.approx(
        known.proportion_confint(*counts, method="wilson"), abs=1e-12
    )


def test_interval_of_cases_from_runs_of_their_own_is_wilsons() -> None:
    results = [judged(f"run-{run}", 1, int(run > 3)) for run in range(20)]
    bounds = accuracy_of(results)
    assert [bounds.lower, bounds.upper] == pytest.approx(
        list(wilson(16 / 20, NormalDist().inv_cdf(0.975) ** 2 / 20))
    )


def test_epochs_of_a_sample_are_one_observation() -> None:
    once = [judged(f"run-{run}", 1, int(run > 1)) for run in range(10)]
    often = [result_with(each, epoch=epoch) for each in once for epoch in range(1, 11)]
    apart = [result_with(each, run_id=f"{each.spec.run_id}-{each.spec.epoch}") for each in often]
    width = {name: width_of(results) for name, results in (("once", once), ("often", often))}
    assert width["often"] > 0.8 * width["once"] > 2 * width_of(apart)
    one_sample = [judged("run", 1, epoch % 2, epoch=epoch) for epoch in range(1, 11)]
    assert accuracy_of(one_sample).interval_reason == "all verdicts come from one sample or cluster"


def width_of(results: Sequence[CaseResult]) -> float:
    bounds = accuracy_of(results)
    assert bounds.lower is not None
    assert bounds.upper is not None
    return bounds.upper - bounds.lower


def test_mistake_in_every_run_does_not_narrow_the_interval() -> None:
    """54 of 54 right on 10 runs, then 53, then 44 with one wrong in every run."""
    sizes = [6, 6, 6, 6, 5, 5, 5, 5, 5, 5]
    found = []
    for wrong in ([0] * 10, [1] + [0] * 9, [1] * 10):
        results = [
            judged(f"run-{run}", 1, int(case >= wrong[run]), rubric_id=f"r{case}")
            for run, size in enumerate(sizes)
            for case in range(size)
        ]
        found.append(accuracy_of(results))
    lowers, uppers = zip(*[(each.lower, each.upper) for each in found], strict=True)
    assert list(lowers) == sorted(lowers, reverse=True)
    assert list(uppers) == sorted(uppers, reverse=True)
    assert 0.8 < lowers[0] < 0.9


def test_interval_that_cannot_be_computed_says_why() -> None:
    assert accuracy_of([]).reason == "no verdict was given"
    one_run = [judged("run", 1, 1), judged("run", 0, 0)]
    accuracy = accuracy_of(one_run)
    assert (accuracy.value, accuracy.lower) == (1, None)
    assert accuracy.interval_reason == "all verdicts come from one sample or cluster"


def test_every_figure_has_an_interval_around_it_or_a_reason() -> None:
    coin = random.Random(3)
    binary = [
        judged(f"run-{run}", label, label if coin.random() < 0.8 else 1 - label)
        for run in range(30)
        for label in (0, 1)
    ]
    figures = describe(binary).figures
    for key in ("recall", "false_positive_rate", "kappa"):
        assert_around(figures[key])
    assert figures["balanced_accuracy"].interval_reason
    scores = [
        scored(f"run-{run}", level, max(0, min(3, level + coin.choice((-1, 0, 0, 1, 1)))))
        for run in range(30)
        for level in range(4)
    ]
    figures = describe(scores).figures
    for key in ("exact", "within_one", "mean_absolute_error", "bias", "weighted_kappa"):
        assert_around(figures[key])


def assert_around(estimate: Estimate) -> None:
    assert estimate.value is not None
    assert estimate.lower is not None
    assert estimate.upper is not None
    assert estimate.lower <= estimate.value <= estimate.upper < estimate.lower + 1
    assert not estimate.why


def test_figure_without_cases_has_the_same_reason_as_its_interval() -> None:
    found = describe([judged(f"run-{run}", 1, 1) for run in range(9)])
    kappa = found.figures["kappa"]
    assert kappa.interval_reason == kappa.reason
    assert found.accuracy == found.figures["recall"]


def test_scores_that_are_too_high_are_a_bias_above_zero() -> None:
    results = [scored(f"run-{run}", run % 3, run % 3 + int(run > 1)) for run in range(12)]
    found = describe(results)
    assert found.figures["bias"].value == pytest.approx(10 / 12)
    low = [scored(f"run-{run}", 1, 0) for run in range(6)]
    assert describe(low).figures["bias"].value == -1


def test_perfect_judge() -> None:
    found = describe(judge_of(lambda label: label))
    assert found.accuracy.value == 1
    assert found.matrices == {"binary": ConfusionMatrix((0, 1), ((40, 0), (0, 40)))}
    figures = found.figures
    assert counts_of(figures["recall"]) == (40, 40)
    assert counts_of(figures["false_positive_rate"]) == (0, 40)
    for key in ("kappa", "balanced_accuracy"):
        assert figures[key].value == 1


def counts_of(share: Estimate) -> tuple[int | None, int]:
    return share.count, share.n


def test_judge_that_is_always_wrong() -> None:
    found = describe(judge_of(lambda label: 1 - label))
    for key in ("accuracy", "balanced_accuracy"):
        assert found.figures[key].value == 0
    assert found.figures["kappa"].value == -1
    assert found.accuracy.upper is not None
    assert 0 < found.accuracy.upper < 0.1


@pytest.mark.parametrize(
    ("answer", "recall", "false_positive_rate"), [(1, 1.0, 1.0), (0, 0.0, 0.0)]
)
def test_judge_that_always_says_the_same_has_no_kappa(
    answer: int, recall: float, false_positive_rate: float
) -> None:
    figures = describe(judge_of(lambda _: answer)).figures
    assert figures["kappa"].value == 0
    assert figures["balanced_accuracy"].value == 0.5
    assert figures["recall"].value == recall
    assert figures["false_positive_rate"].value == false_positive_rate


def test_judge_that_tosses_a_coin_is_unmistakable() -> None:
    coin = random.Random(1)
    figures = describe(judge_of(lambda _: coin.randint(0, 1), runs=500)).figures
    assert figures["kappa"].value == pytest.approx(0, abs=0.08)
    assert figures["balanced_accuracy"].value == pytest.approx(0.5, abs=0.04)


def test_one_class_gives_no_agreement_beyond_chance_but_says_so() -> None:
    figures = describe([judged(f"run-{run}", 1, int(run > 1)) for run in range(10)]).figures
    assert figures["kappa"].value is None
    assert figures["balanced_accuracy"].value is None
    assert figures["kappa"].reason == "one class only: every label is 1"
    assert figures["balanced_accuracy"].reason == "one class only: every label is 1"
    assert counts_of(figures["recall"]) == (8, 10)
    assert counts_of(figures["false_positive_rate"]) == (0, 0)
    assert figures["false_positive_rate"].reason == "no positive was judged"


def test_no_verdict_leaves_every_figure_null_with_the_reason() -> None:
    found = describe(
        [make_result(outcome="no_case"), make_result(make_spec("run-2"), "model_error")]
    )
    assert (found.counts.n, found.counts.no_case, found.counts.unscored) == (0, 1, 1)
    for key in ("accuracy", "kappa", "balanced_accuracy"):
        assert found.figures[key].value is None
        assert found.figures[key].reason == "no verdict was given"
        assert found.figures[key].interval_reason == "no verdict was given"
    assert found.figures["recall"].value is None
    assert describe([]).accuracy.reason == "no verdict was given"
    assert not describe([]).matrices


def test_ordinal_figures_count_levels() -> None:
    pairs = [(0, 0), (1, 2), (2, 0), (3, 3)]
    found = describe([scored(f"run-{run}", *pair) for run, pair in enumerate(pairs)])
    assert list(found.matrices) == ["ordinal"]
    assert counts_of(found.figures["exact"]) == (2, 4)
    assert counts_of(found.figures["within_one"]) == (3, 4)
    assert found.figures["mean_absolute_error"].value == 0.75


def test_ordinal_matrix_shows_the_whole_scale() -> None:
    results = [scored("run-1", 1, 1), scored("run-2", 2, 2)]
    scales = {("refunds", "refund_policy"): range(5)}
    found = describe(results, scales)
    assert found.matrices["ordinal"].labels == (0, 1, 2, 3, 4)
    assert found.figures["weighted_kappa"].value == 1


def test_rubrics_with_different_scales_have_no_common_weighted_kappa() -> None:
    results = [scored("run-1", 1, 1), scored("run-2", 2, 2, rubric_id="tone")]
    scales = {("refunds", "refund_policy"): range(5), ("refunds", "tone"): range(3)}
    found = tabulate(results, scales)
    assert found.overall.figures["weighted_kappa"].reason == "the rubrics have different scales"


def test_table_has_every_level_with_its_names() -> None:
    results = [
        make_result(make_spec("run", test=test, rubric_id=rubric, judge=judge))
        for test in TESTS[:2]
        for rubric in ("policy", "tone")
        for judge in ("a", "b")
    ]
    table = tabulate([*results, scored("run", 3, 2, suite="other")])
    assert [(stats.rubric, stats.judge, stats.counts.n) for stats in table.rubrics] == [
        ("policy", "a", 2),
        ("policy", "b", 2),
        ("tone", "a", 2),
        ("tone", "b", 2),
        ("refund_policy", "", 1),
    ]
    assert [(stats.suite, stats.judge, stats.counts.n) for stats in table.judges] == [
        ("refunds", "a", 4),
        ("refunds", "b", 4),
        ("other", "", 1),
    ]
    assert table.overall.counts.n == 9
    assert list(table.overall.matrices) == ["binary", "ordinal"]


def panel_of(*votes: tuple[int | None, ...], **changes: Any) -> list[Panel]:
    """Verdicts on the violations of one run each, by the judges a, b, c.

    None is an unscored one.
    """
    return panels(
        make_result(make_spec(f"run-{run}", judge=judge), "model_error")
        if score is None
        else judged(f"run-{run}", 1, score, judge=judge, **changes)
        for run, scores in enumerate(votes)
        for judge, score in zip("abc", scores, strict=False)
    )


def test_panel_votes_by_majority() -> None:
    (panel,) = panel_of((1, 1, 0), (0, 0, 1), (1, 1, 1))
    assert panel.judges == ("a", "b", "c")
    assert panel.without_majority == {}
    assert counts_of(panel.accuracy) == (2, 3)


def test_tie_is_no_vote_and_says_so() -> None:
    (panel,) = panel_of((1, 0), (1, 1))
    case = "refunds::agent_perturbation::refund_policy::run-0[e1]"
    assert panel.without_majority == {case: "no majority: 1 for 0, 1 for 1 of 2 judges"}
    assert counts_of(panel.accuracy) == (1, 2)


def test_judge_without_a_verdict_cannot_make_a_majority_of_the_others() -> None:
    (panel,) = panel_of((1, 1, None), (1, None, None), (1, 1, 1))
    [reason] = panel.without_majority.values()
    assert reason == "no majority: 1 for 1 of 3 judges; 2 judges gave no score"
    assert counts_of(panel.accuracy) == (2, 3)


def test_judges_agreement_with_each_other_ignores_the_labels() -> None:
    (panel,) = panel_of((0, 0, 1), (1, 1, 0), (0, 0, 1), (1, 0, 0))
    pairs = {pair.judges: pair for pair in panel.pairs}
    assert list(pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert counts_of(pairs["a", "b"].agreement) == (3, 4)
    assert pairs["a", "b"].kappa.value == 0.5
    assert pairs["a", "c"].kappa.value == -1


@given(ORDINAL)
@settings(max_examples=50, deadline=None)
def test_ordinal_judges_are_compared_by_weighted_kappa(pairs: list[tuple[int, int]]) -> None:
    known = pytest.importorskip("sklearn.metrics")
    results = [
        scored(f"run-{run}", 2, score, judge=j)
        for run, p in enumerate(pairs)
        for j, score in zip("ab", p, strict=True)
    ]
    (panel,) = panels(results)
    one, other = split(pairs)
    if len({*one, *other}) > 1:
        expected = known.cohen_kappa_score(one, other, labels=range(5), weights="quadratic")
        assert panel.pairs[0].kappa.value == pytest.approx(expected)
    else:
        assert panel.pairs[0].kappa.value is None


def test_one_judge_is_no_panel_and_judges_of_different_cases_have_nothing_to_compare() -> None:
    assert panels([judged("run", 1, 1, judge="a"), judged("run-2", 1, 1, judge="a")]) == []
    (panel,) = panels([judged("run", 1, 1, judge="a"), judged("run-2", 1, 1, judge="b")])
    agreement = panel.pairs[0].agreement
    assert agreement == Estimate(count=0, why="no case has a verdict of both")
    assert counts_of(panel.accuracy) == (0, 2)


def test_panels_of_two_suites_do_not_mix() -> None:
    results = [
        judged("run", 1, 1, judge=judge, suite=suite)
        for suite in ("x", "y")
        for judge in ("a", "b")
    ]
    assert [(panel.suite, panel.accuracy.n) for panel in panels(results)] == [("x", 1), ("y", 1)]

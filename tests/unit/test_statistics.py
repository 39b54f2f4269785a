"""The figures on judges, against independent implementations (rule J1)."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.kinds import TESTS
from pytest_jrh.models import CaseResult
from pytest_jrh.stats.formulas import (
    SIGNIFICANCE,
    ConfusionMatrix,
    Share,
    balanced_accuracy,
    cohen_kappa,
    confusion_matrix,
    fewest_visible_regressions,
    mcnemar,
    mean_absolute_error,
    quadratic_kappa,
    smallest_visible_drop,
    wilson,
)
from pytest_jrh.stats.panels import Panel, panels
from pytest_jrh.stats.statistics import AccuracyInterval, accuracy_interval, describe, tabulate
from tests.support.made_cases import make_result, make_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

BINARY = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)
ORDINAL = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)
SEED = 8234


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
    kappa = cohen_kappa(matrix)
    if len({*labels, *answers}) == 1:
        assert kappa.value is None
        assert "one class only" in (kappa.reason or "")
    else:
        assert kappa.value == pytest.approx(known.cohen_kappa_score(labels, answers, labels=[0, 1]))
    if len(set(labels)) > 1:
        assert balanced_accuracy(matrix).value == pytest.approx(
            known.balanced_accuracy_score(labels, answers)
        )


@given(ORDINAL)
@settings(max_examples=100, deadline=None)
def test_ordinal_figures_are_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    known = pytest.importorskip("sklearn.metrics")
    labels, answers = split(pairs)
    matrix = confusion_matrix(pairs, range(5))
    assert [list(row) for row in matrix.counts] == known.confusion_matrix(
        labels, answers, labels=range(5)
    ).tolist()
    assert mean_absolute_error(matrix).value == pytest.approx(
        known.mean_absolute_error(labels, answers)
    )
    if len({*labels, *answers}) > 1:
        expected = known.cohen_kappa_score(labels, answers, labels=range(5), weights="quadratic")
        assert quadratic_kappa(matrix).value == pytest.approx(expected)
        assert quadratic_kappa(confusion_matrix(pairs)) == quadratic_kappa(matrix)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(max_examples=100, deadline=None)
def test_wilson_interval_is_statsmodels(counts: tuple[int, int]) -> None:
    known = pytest.importorskip("statsmodels.stats.proportion")
    assert wilson(*counts) == pytest.approx(
        known.proportion_confint(*counts, method="wilson"), abs=1e-12
    )


@given(st.integers(0, 60), st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_mcnemar_is_statsmodels_exact_test(regressions: int, fixes: int) -> None:
    known = pytest.importorskip("statsmodels.stats.contingency_tables")
    expected = known.mcnemar([[5, regressions], [fixes, 7]], exact=True).pvalue
    assert mcnemar(regressions, fixes) == pytest.approx(expected)
    assert mcnemar(regressions, fixes) == mcnemar(fixes, regressions)


def test_mcnemar_of_thousands_of_changes_does_not_overflow() -> None:
    assert mcnemar(5_000, 5_000) == 1.0
    assert mcnemar(5_000, 0) == 0.0
    assert mcnemar(5_100, 4_900) == pytest.approx(0.0466, abs=0.001)


def test_smallest_visible_drop_is_the_fewest_regressions_that_are_significant_over_n() -> None:
    fewest = fewest_visible_regressions()
    assert mcnemar(fewest, 0) < SIGNIFICANCE <= mcnemar(fewest - 1, 0)
    assert smallest_visible_drop(24).value == fewest / 24 == 0.25
    assert smallest_visible_drop(fewest).value == 1
    assert smallest_visible_drop(fewest - 1).value is None
    assert smallest_visible_drop(0).reason == "fewer than 6 cases"


def test_interval_of_cases_from_runs_of_their_own_is_wilsons() -> None:
    results = [judged(f"run-{run}", 1, int(run > 3)) for run in range(20)]
    assert accuracy_interval(results, SEED) == AccuracyInterval(*wilson(16, 20), method="wilson")


def test_epochs_of_a_sample_are_runs_of_their_own() -> None:
    results = [judged("run", 1, epoch % 2, epoch=epoch) for epoch in range(1, 11)]
    assert accuracy_interval(results, SEED).method == "wilson"


def test_interval_of_cases_that_share_runs_is_a_seeded_bootstrap_over_runs() -> None:
    results = [
        judged(f"run-{run}", label, label if run > 5 else 0)
        for run in range(30)
        for label in (0, 1)
    ]
    interval = accuracy_interval(results, SEED)
    assert interval.method == "bootstrap"
    assert interval == accuracy_interval(reversed(results), SEED)
    assert interval != accuracy_interval(results, SEED + 1)
    assert interval.lower is not None
    assert interval.upper is not None
    assert interval.lower < 0.9 < interval.upper


def test_judging_each_run_ten_times_does_not_narrow_the_interval() -> None:
    once = [judged(f"run-{run}", 1, int(run % 4 > 0)) for run in range(40)]
    often = [replace(result, rubric_id=f"r{copy}") for result in once for copy in range(10)]
    one, many = accuracy_interval(once, SEED), accuracy_interval(often, SEED)
    assert (many.lower, many.upper) == pytest.approx((one.lower, one.upper), abs=0.05)


def test_equal_runs_do_not_pretend_certainty() -> None:
    right = [judged(f"run-{run}", label, label) for run in range(5) for label in (0, 1)]
    assert accuracy_interval(right, SEED) == AccuracyInterval(*wilson(5, 5), method="wilson_runs")
    half = [judged(f"run-{run}", label, 1) for run in range(6) for label in (0, 1)]
    assert accuracy_interval(half, SEED) == AccuracyInterval(*wilson(3, 6), method="wilson_runs")


def test_interval_that_cannot_be_computed_says_why() -> None:
    assert accuracy_interval([], SEED).reason == "no verdict was given"
    one_run = [judged("run", 1, 1), judged("run", 0, 0)]
    assert accuracy_interval(one_run, SEED) == AccuracyInterval(
        reason="all verdicts come from one source run"
    )


def test_perfect_judge() -> None:
    found = describe(judge_of(lambda label: label), SEED)
    assert found.accuracy.value == 1
    assert found.binary is not None
    assert found.ordinal is None
    assert found.binary.matrix == ConfusionMatrix((0, 1), ((40, 0), (0, 40)))
    assert (found.binary.recall, found.binary.false_positive_rate) == (Share(40, 40), Share(0, 40))
    assert (
        found.binary.kappa.value
        == found.binary.balanced_accuracy.value
        == found.binary.paired.value
        == 1
    )


def test_judge_that_is_always_wrong() -> None:
    found = describe(judge_of(lambda label: 1 - label), SEED)
    assert found.binary is not None
    assert (
        found.accuracy.value
        == found.binary.balanced_accuracy.value
        == found.binary.paired.value
        == 0
    )
    assert found.binary.kappa.value == -1
    assert found.interval.upper is not None
    assert 0 < found.interval.upper < 0.1


@pytest.mark.parametrize(
    ("answer", "recall", "false_positive_rate"), [(1, 1.0, 1.0), (0, 0.0, 0.0)]
)
def test_judge_that_always_says_the_same_has_no_kappa_and_no_pair(
    answer: int, recall: float, false_positive_rate: float
) -> None:
    found = describe(judge_of(lambda _: answer), SEED).binary
    assert found is not None
    assert found.kappa.value == 0
    assert found.paired == Share(0, 40)
    assert found.balanced_accuracy.value == 0.5
    assert (found.recall.value, found.false_positive_rate.value) == (recall, false_positive_rate)


def test_judge_that_tosses_a_coin_is_unmistakable() -> None:
    coin = random.Random(1)
    found = describe(judge_of(lambda _: coin.randint(0, 1), runs=500), SEED).binary
    assert found is not None
    assert found.kappa.value == pytest.approx(0, abs=0.08)
    assert found.paired.value == pytest.approx(0.25, abs=0.06)
    assert found.balanced_accuracy.value == pytest.approx(0.5, abs=0.04)


def test_one_class_gives_no_agreement_beyond_chance_but_says_so() -> None:
    found = describe([judged(f"run-{run}", 1, int(run > 1)) for run in range(10)], SEED).binary
    assert found is not None
    assert found.kappa.value is None
    assert found.balanced_accuracy.value is None
    assert (
        found.kappa.reason == found.balanced_accuracy.reason == "one class only: every label is 1"
    )
    assert found.recall == Share(8, 10)
    assert found.false_positive_rate == Share(0, 0, "no positive was judged")
    assert found.paired.reason == "no run has both its tests judged"


def test_no_verdict_leaves_every_figure_null_with_the_reason() -> None:
    found = describe(
        [make_result(outcome="no_case"), make_result(make_spec("run-2"), "model_error")], SEED
    )
    assert (found.counts.n, found.counts.no_case, found.counts.unscored) == (0, 1, 1)
    assert found.binary is not None
    figures = [found.accuracy, found.binary.kappa, found.binary.balanced_accuracy]
    assert {found.interval.reason, *(figure.reason for figure in figures)} == {
        "no verdict was given"
    }
    assert found.accuracy.value is None
    assert found.binary.recall.value is None
    assert describe([], SEED).accuracy.reason == "no verdict was given"
    assert describe([], SEED).binary is None


def test_pairs_need_the_same_run_epoch_rubric_and_judge() -> None:
    perturbed = judged("run", 1, 1)
    others = [
        judged("run", 0, 0, rubric_id="tone"),
        judged("run", 0, 0, epoch=2),
        judged("run", 0, 0, judge="strict"),
        judged("run-2", 0, 0),
    ]
    found = describe([perturbed, *others], SEED).binary
    assert found is not None
    assert found.paired.n == 0
    found = describe([perturbed, *others, judged("run", 0, 1)], SEED).binary
    assert found is not None
    assert found.paired == Share(0, 1)


def test_ordinal_figures_count_levels() -> None:
    pairs = [(0, 0), (1, 2), (2, 0), (3, 3)]
    found = describe([scored(f"run-{run}", *pair) for run, pair in enumerate(pairs)], SEED)
    assert found.binary is None
    assert found.ordinal is not None
    assert (found.ordinal.exact, found.ordinal.within_one) == (Share(2, 4), Share(3, 4))
    assert found.ordinal.mean_absolute_error.value == 0.75


def test_ordinal_matrix_shows_the_whole_scale() -> None:
    results = [scored("run-1", 1, 1), scored("run-2", 2, 2)]
    scales = {("refunds", "refund_policy"): range(5)}
    found = describe(results, SEED, scales).ordinal
    assert found is not None
    assert found.matrix.labels == (0, 1, 2, 3, 4)
    assert found.weighted_kappa.value == 1


def test_rubrics_with_different_scales_have_no_common_weighted_kappa() -> None:
    results = [scored("run-1", 1, 1), scored("run-2", 2, 2, rubric_id="tone")]
    scales = {("refunds", "refund_policy"): range(5), ("refunds", "tone"): range(3)}
    found = tabulate(results, SEED, scales)
    assert found.overall.ordinal is not None
    assert found.overall.ordinal.weighted_kappa.reason == "the rubrics have different scales"


def test_table_has_every_level_with_its_names() -> None:
    results = [
        make_result(make_spec("run", test=test, rubric_id=rubric, judge=judge))
        for test in TESTS
        for rubric in ("policy", "tone")
        for judge in ("a", "b")
    ]
    table = tabulate([*results, scored("run", 3, 2, suite="other")], SEED)
    names = [
        (stats.counts.suite, stats.counts.test, stats.counts.rubric, stats.counts.judge)
        for stats in table.groups
    ]
    assert names[:2] == [("refunds", TESTS[0], "policy", "a"), ("refunds", TESTS[0], "policy", "b")]
    assert len(names) == len(set(names)) == 9
    assert [
        (stats.counts.rubric, stats.counts.judge, stats.counts.n) for stats in table.rubrics
    ] == [
        ("policy", "a", 2),
        ("policy", "b", 2),
        ("tone", "a", 2),
        ("tone", "b", 2),
        ("refund_policy", "", 1),
    ]
    assert [(stats.counts.suite, stats.counts.judge, stats.counts.n) for stats in table.judges] == [
        ("refunds", "a", 4),
        ("refunds", "b", 4),
        ("other", "", 1),
    ]
    assert table.overall.counts.n == 9
    assert table.overall.binary is not None
    assert table.overall.ordinal is not None


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
    assert [vote.score for vote in panel.votes] == [1, 0, 1]
    assert panel.accuracy == Share(2, 3)
    assert panel.votes[0].votes == ((1, 2), (0, 1))
    assert panel.votes[0].case == "refunds::agent_perturbation::refund_policy::run-0[e1]"


def test_tie_is_no_vote_and_says_so() -> None:
    (panel,) = panel_of((1, 0), (1, 1))
    assert [vote.score for vote in panel.votes] == [None, 1]
    assert panel.without_vote[0].reason == "a tie: 1 for 0, 1 for 1 of 2 judges"
    assert panel.accuracy == Share(1, 1)


def test_judge_without_a_verdict_cannot_make_a_majority_of_the_others() -> None:
    (panel,) = panel_of((1, 1, None), (1, None, None), (1, 1, 1))
    assert [vote.score for vote in panel.votes] == [1, None, 1]
    assert panel.votes[1].reason == "no majority: 1 for 1 of 3 judges; 2 judges gave no verdict"


def test_judges_agreement_with_each_other_ignores_the_labels() -> None:
    (panel,) = panel_of((0, 0, 1), (1, 1, 0), (0, 0, 1), (1, 0, 0))
    pairs = {pair.judges: pair for pair in panel.pairs}
    assert list(pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert pairs["a", "b"].agreement == Share(3, 4)
    assert pairs["a", "b"].kappa.value == 0.5
    assert pairs["a", "b"].disagreements == (
        "refunds::agent_perturbation::refund_policy::run-3[e1]",
    )
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
    assert panel.pairs[0].agreement == Share(0, 0, "no case has a verdict of both")
    assert panel.accuracy.reason == "no answer has a majority"


def test_panels_of_two_suites_do_not_mix() -> None:
    results = [
        judged("run", 1, 1, judge=judge, suite=suite)
        for suite in ("x", "y")
        for judge in ("a", "b")
    ]
    assert [(panel.suite, len(panel.votes)) for panel in panels(results)] == [("x", 1), ("y", 1)]

"""The figures on judges, against independent implementations (rule J1)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.cases.tests import TESTS
from pytest_jrh.core.model import CaseResult
from pytest_jrh.stats.formulas import (
    ConfusionMatrix,
    Share,
    balanced_accuracy,
    cohen_kappa,
    confusion_matrix,
    mcnemar,
    mean_absolute_error,
    normal_quantile,
    quadratic_kappa,
)
from pytest_jrh.stats.intervals import Bounds, wilson
from pytest_jrh.stats.panels import Panel, panels
from pytest_jrh.stats.statistics import accuracy_bounds, describe, tabulate
from tests.support.made_cases import make_result, make_spec, result_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
    right, n = counts
    assert wilson(right / n, normal_quantile(0.975) ** 2 / n) == pytest.approx(
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


def test_interval_of_cases_from_runs_of_their_own_is_wilsons() -> None:
    results = [judged(f"run-{run}", 1, int(run > 3)) for run in range(20)]
    bounds = accuracy_bounds(results)
    assert [bounds.lower, bounds.upper] == pytest.approx(
        list(wilson(16 / 20, normal_quantile(0.975) ** 2 / 20))
    )


def test_epochs_of_a_sample_are_one_observation() -> None:
    once = [judged(f"run-{run}", 1, int(run > 1)) for run in range(10)]
    often = [result_with(each, epoch=epoch) for each in once for epoch in range(1, 11)]
    apart = [result_with(each, run_id=f"{each.spec.run_id}-{each.spec.epoch}") for each in often]
    width = {name: width_of(results) for name, results in (("once", once), ("often", often))}
    assert width["often"] > 0.8 * width["once"] > 2 * width_of(apart)
    one_sample = [judged("run", 1, epoch % 2, epoch=epoch) for epoch in range(1, 11)]
    assert accuracy_bounds(one_sample).reason == "all verdicts come from one sample or cluster"


def width_of(results: Iterable[CaseResult]) -> float:
    bounds = accuracy_bounds(results)
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
        found.append(accuracy_bounds(results))
    lowers, uppers = zip(*[(each.lower, each.upper) for each in found], strict=True)
    assert list(lowers) == sorted(lowers, reverse=True)
    assert list(uppers) == sorted(uppers, reverse=True)
    assert 0.8 < lowers[0] < 0.9


def test_interval_that_cannot_be_computed_says_why() -> None:
    assert accuracy_bounds([]).reason == "no verdict was given"
    one_run = [judged("run", 1, 1), judged("run", 0, 0)]
    assert accuracy_bounds(one_run) == Bounds(reason="all verdicts come from one sample or cluster")


def test_every_figure_has_an_interval_around_it_or_a_reason() -> None:
    coin = random.Random(3)
    binary = [
        judged(f"run-{run}", label, label if coin.random() < 0.8 else 1 - label)
        for run in range(30)
        for label in (0, 1)
    ]
    found = describe(binary).binary
    assert found is not None
    figures = {
        "recall": found.recall.value,
        "false_positive_rate": found.false_positive_rate.value,
        "kappa": found.kappa.value,
        "paired_accuracy": found.paired.value,
    }
    assert_around(figures, found.intervals)
    assert found.intervals["balanced_accuracy"].reason
    scores = [
        scored(f"run-{run}", level, max(0, min(3, level + coin.choice((-1, 0, 0, 1, 1)))))
        for run in range(30)
        for level in range(4)
    ]
    on_a_scale = describe(scores).ordinal
    assert on_a_scale is not None
    figures = {
        "exact": on_a_scale.exact.value,
        "within_one": on_a_scale.within_one.value,
        "mean_absolute_error": on_a_scale.mean_absolute_error.value,
        "bias": on_a_scale.bias.value,
        "weighted_kappa": on_a_scale.weighted_kappa.value,
    }
    assert_around(figures, on_a_scale.intervals)


def assert_around(figures: Mapping[str, float | None], intervals: Mapping[str, Bounds]) -> None:
    for name, figure in figures.items():
        bounds = intervals[name]
        assert bounds.lower is not None, name
        assert bounds.upper is not None, name
        assert figure is not None, name
        assert bounds.lower <= figure <= bounds.upper < bounds.lower + 1, name


def test_figure_without_cases_has_the_same_reason_as_its_interval() -> None:
    found = describe([judged(f"run-{run}", 1, 1) for run in range(9)])
    assert found.binary is not None
    assert found.binary.intervals["kappa"].reason == found.binary.kappa.reason
    assert found.binary.intervals["false_positive_rate"].reason == "no verdict was given"
    assert found.interval == found.binary.intervals["recall"]


def test_scores_that_are_too_high_are_a_bias_above_zero() -> None:
    results = [scored(f"run-{run}", run % 3, run % 3 + int(run > 1)) for run in range(12)]
    found = describe(results).ordinal
    assert found is not None
    assert found.bias.value == pytest.approx(10 / 12)
    low = [scored(f"run-{run}", 1, 0) for run in range(6)]
    lower = describe(low).ordinal
    assert lower is not None
    assert lower.bias.value == -1


def test_perfect_judge() -> None:
    found = describe(judge_of(lambda label: label))
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
    found = describe(judge_of(lambda label: 1 - label))
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
    found = describe(judge_of(lambda _: answer)).binary
    assert found is not None
    assert found.kappa.value == 0
    assert found.paired == Share(0, 40)
    assert found.balanced_accuracy.value == 0.5
    assert (found.recall.value, found.false_positive_rate.value) == (recall, false_positive_rate)


def test_judge_that_tosses_a_coin_is_unmistakable() -> None:
    coin = random.Random(1)
    found = describe(judge_of(lambda _: coin.randint(0, 1), runs=500)).binary
    assert found is not None
    assert found.kappa.value == pytest.approx(0, abs=0.08)
    assert found.paired.value == pytest.approx(0.25, abs=0.06)
    assert found.balanced_accuracy.value == pytest.approx(0.5, abs=0.04)


def test_one_class_gives_no_agreement_beyond_chance_but_says_so() -> None:
    found = describe([judged(f"run-{run}", 1, int(run > 1)) for run in range(10)]).binary
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
        [make_result(outcome="no_case"), make_result(make_spec("run-2"), "model_error")]
    )
    assert (found.counts.n, found.counts.no_case, found.counts.unscored) == (0, 1, 1)
    assert found.binary is not None
    figures = [found.accuracy, found.binary.kappa, found.binary.balanced_accuracy]
    assert {found.interval.reason, *(figure.reason for figure in figures)} == {
        "no verdict was given"
    }
    assert found.accuracy.value is None
    assert found.binary.recall.value is None
    assert describe([]).accuracy.reason == "no verdict was given"
    assert describe([]).binary is None


def test_pairs_need_the_same_run_epoch_rubric_and_judge() -> None:
    perturbed = judged("run", 1, 1)
    others = [
        judged("run", 0, 0, rubric_id="tone"),
        judged("run", 0, 0, epoch=2),
        judged("run", 0, 0, judge="strict"),
        judged("run-2", 0, 0),
    ]
    found = describe([perturbed, *others]).binary
    assert found is not None
    assert found.paired.n == 0
    found = describe([perturbed, *others, judged("run", 0, 1)]).binary
    assert found is not None
    assert found.paired == Share(0, 1)


def test_ordinal_figures_count_levels() -> None:
    pairs = [(0, 0), (1, 2), (2, 0), (3, 3)]
    found = describe([scored(f"run-{run}", *pair) for run, pair in enumerate(pairs)])
    assert found.binary is None
    assert found.ordinal is not None
    assert (found.ordinal.exact, found.ordinal.within_one) == (Share(2, 4), Share(3, 4))
    assert found.ordinal.mean_absolute_error.value == 0.75


def test_ordinal_matrix_shows_the_whole_scale() -> None:
    results = [scored("run-1", 1, 1), scored("run-2", 2, 2)]
    scales = {("refunds", "refund_policy"): range(5)}
    found = describe(results, scales).ordinal
    assert found is not None
    assert found.matrix.labels == (0, 1, 2, 3, 4)
    assert found.weighted_kappa.value == 1


def test_rubrics_with_different_scales_have_no_common_weighted_kappa() -> None:
    results = [scored("run-1", 1, 1), scored("run-2", 2, 2, rubric_id="tone")]
    scales = {("refunds", "refund_policy"): range(5), ("refunds", "tone"): range(3)}
    found = tabulate(results, scales)
    assert found.overall.ordinal is not None
    assert found.overall.ordinal.weighted_kappa.reason == "the rubrics have different scales"


def test_table_has_every_level_with_its_names() -> None:
    results = [
        make_result(make_spec("run", test=test, rubric_id=rubric, judge=judge))
        for test in TESTS[:2]
        for rubric in ("policy", "tone")
        for judge in ("a", "b")
    ]
    table = tabulate([*results, scored("run", 3, 2, suite="other")])
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
    assert panel.votes[1].reason == "no majority: 1 for 1 of 3 judges; 2 judges gave no score"


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

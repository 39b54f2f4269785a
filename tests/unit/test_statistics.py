"""The figures on judges, against independent implementations; a tie of repeats counts as wrong, and
is never left out of n; judges that look fine and judge nothing are named, sound ones are not."""

import json
import math
import random
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.cases.probes.probe import ProbeSettings
from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.config.schema import LabelSection
from pytest_jrh.config.suite import Suite, SuiteTest, expand
from pytest_jrh.core import dollars
from pytest_jrh.core.cases import CaseSpec, Label, RunSummary, Verdict
from pytest_jrh.core.results import CaseResult, scores_text
from pytest_jrh.core.scales import BINARY, most_frequent, numbered
from pytest_jrh.core.sections import GateRules
from pytest_jrh.people import Grounds
from pytest_jrh.reports.for_programs import data_of, section_data
from pytest_jrh.reports.rand_files import metric
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.topics import figures_table, violation_sentences
from pytest_jrh.stats.decision import Held, decide
from pytest_jrh.stats.figures import all_warnings, percent, range_text, sections
from pytest_jrh.stats.intervals import Estimate
from pytest_jrh.stats.limits import holm
from pytest_jrh.stats.people import violation_rates
from pytest_jrh.stats.statistics import Panel, accuracy_of, confusion_matrix, panels, statistics_of
from pytest_jrh.stats.verdicts import Baseline, Coded, Scope, Verdicts, distinct
from pytest_jrh.store.ledger import case_result, ledger_line, result_from
from tests.support.figures import comparison_of, describe, ends, kappa_of, mean_error_of
from tests.support.judged_sessions import Answer, always, coin, judged, scored
from tests.support.made_cases import RUBRIC, make_result, make_spec, make_suite, result_with

PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)
LEVEL_PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)


def result(run: int, label: int | None, *scores: int, **changes: Any) -> CaseResult:
    """What the engine makes of these scores in the test that the label belongs to."""
    test = "agent_perturbation" if label else "agent_positives"
    spec = make_spec(f"run-{run}", **{"test": test, **changes})
    verdicts = [Verdict(score, f"It is {score}.") for score in scores]
    made = case_result(spec, None, verdicts=verdicts)
    return result_with(made, label=label, labelled_by=None if label is None else "made")


@given(PAIRS)
@settings(max_examples=100, deadline=None)
def test_binary_figures_are_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    known = pytest.importorskip("sklearn.metrics")
    labels, answers = zip(*pairs, strict=True)
    counts = known.confusion_matrix(labels, answers, labels=[0, 1])
    assert (confusion_matrix(pairs, (0, 1)).counts == counts).all()
    kappa = kappa_of([pairs])
    if len({*labels, *answers}) == 1:
        assert kappa.value is None
        assert "label" in (kappa.reason or "")
    else:
        assert kappa.value == pytest.approx(known.cohen_kappa_score(labels, answers, labels=[0, 1]))
    if len(set(labels)) > 1:
        results = [result(run, *pair) for run, pair in enumerate(pairs)]
        balanced = describe(results).figures["balanced_accuracy"].value
        assert balanced == pytest.approx(known.balanced_accuracy_score(labels, answers))


@given(LEVEL_PAIRS)
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
    once = [result(run, 1, int(run > 1)) for run in range(10)]
    often = [result_with(each, epoch=epoch) for each in once for epoch in range(1, 11)]
    apart = [result_with(each, run_id=f"{each.spec.run_id}-{each.spec.epoch}") for each in often]
    width = {name: width_of(results) for name, results in (("once", once), ("often", often))}
    assert width["often"] > 0.8 * width["once"] > 2 * width_of(apart)
    one_sample = [result(1, 1, epoch % 2, epoch=epoch) for epoch in range(1, 11)]
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
    found = describe(result(run, *pair, target_score=pair[0]) for run, pair in enumerate(pairs))
    assert list(found.matrices) == ["ordinal"]
    assert counts_of(found.figures["exact"]) == (2, 4)
    assert counts_of(found.figures["within_one"]) == (3, 4)
    assert found.figures["mean_absolute_error"].value == 0.75
    # Rubrics with different scales have no common weighted kappa.
    results = [result(1, 1, 1, target_score=1), result(2, 2, 2, target_score=2, rubric_id="tone")]
    scales = {("refunds", "refund_policy"): numbered(0, 4), ("refunds", "tone"): numbered(0, 2)}
    found = describe(results, scales)
    assert found.figures["weighted_kappa"].reason == "the rubrics have different scales"


def panel_of(*votes: tuple[int | None, ...]) -> list[Panel]:
    """Verdicts on the violations of one run each, by the judges a, b, c. None is an unscored
    one."""
    results = []
    for run, scores in enumerate(votes):
        for judge, score in zip("abc", scores, strict=False):
            unscored = make_result(make_spec(f"run-{run}", judge=judge), "model_error")
            results.append(unscored if score is None else result(run, 1, score, judge=judge))
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
    ab, ac, bc = panel.pairs
    assert (ab.judges, ac.judges, bc.judges) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert (counts_of(ab.agreement), ab.kappa.value, ac.kappa.value) == ((3, 4), 0.5, -1)
    # On a scale they are compared by weighted kappa.
    pairs = [(0, 0), (1, 2), (2, 1), (3, 3), (4, 2)]
    results = []
    for run, (one, other) in enumerate(pairs):
        results.append(result(run, 2, one, target_score=2, judge="a"))
        results.append(result(run, 2, other, target_score=2, judge="b"))
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


def test_the_most_frequent_score_counts_and_a_tie_has_none() -> None:
    assert most_frequent((0, 1, 0)) == 0
    assert most_frequent((2, 1, 1, 0)) == 1
    assert most_frequent((0, 1)) is None
    assert most_frequent((0, 1, 2)) is None
    assert scores_text(1, (1,), BINARY) == "1"
    assert scores_text(0, (0, 1, 0), BINARY) == "0 (0 in 2 of 3 repeats, 1 in 1 of 3 repeats)"
    assert scores_text(None, (1, 0), BINARY) == "a tie (0 in 1 of 2 repeats, 1 in 1 of 2 repeats)"


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_what_is_shown_of_repeats_has_the_score(scores: list[int]) -> None:
    shown = result(1, 0, *scores)
    assert shown.reasoning in {f"It is {score}." for score in scores}
    assert shown.score is None or shown.reasoning == f"It is {shown.score}."


def test_a_tie_is_the_wrong_answer_of_a_binary_judge() -> None:
    cases = [result(n, n % 2, n % 2, n % 2) for n in range(8)]
    cases += [result(8, 0, 0, 1), result(9, 1, 1, 0)]
    found = describe(cases)
    assert (found.counts.n, found.counts.agree, found.counts.ties) == (10, 8, 2)
    assert found.accuracy.value == 0.8
    recall, alarms = found.figures["recall"], found.figures["false_positive_rate"]
    assert (counts_of(recall), counts_of(alarms)) == ((4, 5), (1, 5))
    assert found.figures["balanced_accuracy"].value == pytest.approx(0.8)
    assert found.matrices["binary"].counts == [[4, 1], [1, 4]]
    assert found.figures["kappa"].value == pytest.approx(0.6)
    [tie] = all_warnings(found, ())
    assert tie.startswith("Ties: in 2 of 10 cases the repeats give no score most often.")


def test_an_ordinal_tie_is_neither_exact_nor_near() -> None:
    found = describe([result(n, 1, 1, 1 + (n == 3), target_score=1) for n in range(4)])
    assert found.matrices["ordinal"].n == 3
    last = "count as wrong, but not for mean error, bias and weighted kappa."
    assert all_warnings(found, ())[-1].endswith(last)
    assert counts_of(found.figures["exact"]) == counts_of(found.figures["within_one"]) == (3, 4)
    assert found.figures["mean_absolute_error"].value == 0


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(0, 1), min_size=1, max_size=4))))
def test_no_verdict_is_lost_whatever_ties(cases: list[tuple[int, list[int]]]) -> None:
    results = [result(n, label, *scores) for n, (label, scores) in enumerate(cases)]
    found = describe(results)
    assert found.counts.n == len(cases)
    if cases:
        (satisfied, _), (_, violated) = found.matrices["binary"].counts
        assert found.matrices["binary"].n == len(cases)
        assert satisfied + violated == found.counts.agree
    for section in sections(Verdicts.of(results)):
        assert all(cell.text for row in figures_table(section).rows for cell in row.cells)
    for each in results:
        assert result_from(ledger_line(each)) == each


def test_a_metric_of_labels_has_no_label_for_a_tie() -> None:
    assert metric("accuracy_score", [1, 1], [1, None]).value == 0.5
    tied = metric("f1_score", [1, 1], [1, None])
    assert tied.value is None
    assert tied.reason == "repeats that tie have no score for this metric"


def test_a_judge_that_ties_has_no_vote_in_a_panel() -> None:
    votes = [result(1, 1, 1, int(judge != "b"), judge=judge) for judge in "abc"]
    votes += [result(2, 1, 0, 1, judge=judge) for judge in "abc"]
    (panel,) = panels(Verdicts.of(votes))
    assert [*panel.without_majority.values()] == ["a: none, b: none, c: none"]
    assert counts_of(panel.accuracy) == (1, 2)
    assert [pair.agreement.n for pair in panel.pairs] == [0, 1, 0]


THREE = ("privacy", "refund_policy", "tone")


def warnings_of(results: list[CaseResult]) -> list[str]:
    (section,) = sections(Verdicts.of(results))
    return all_warnings(section.total, section.rubrics)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (always(1), "tone: the judge says 1 (violated) in all 48 cases."),
        (lambda spec, label: 1 - label, "tone: the verdicts are worth little: kappa is -1.00 ("),
        (coin(3), "tone: the verdicts are worth little: kappa "),
    ],
)
def test_a_judge_worth_nothing_on_one_rubric_of_three_is_named(answer: Answer, said: str) -> None:
    def on_tone(spec: CaseSpec, label: int) -> int:
        return answer(spec, label) if spec.rubric_id == "tone" else label

    found = warnings_of(judged(on_tone, runs=24, rubrics=THREE))
    assert found[-1].startswith(said)
    assert not any(rubric in line for rubric in THREE[:2] for line in found)


def test_a_judge_that_is_worth_nothing_on_all_is_named_once() -> None:
    constant = ["The judge says 1 (violated) in all 72 cases."]
    assert warnings_of(judged(always(1), rubrics=THREE)) == constant
    assert warnings_of(scored(always(1))) == ["The judge says 1 in all 30 cases."]
    (turned,) = warnings_of(scored(lambda spec, label: (label + 1) % 3))
    assert turned.startswith("The verdicts are worth little: weighted kappa is -0.50 (-0.")


def sound_sessions(share: float, rubrics: int, runs: int, of: int) -> Iterator[list[CaseResult]]:
    """Sessions of a judge right with this probability, whose mistakes come in runs."""
    rng = random.Random(7)
    for _ in range(of):
        hard = {run: rng.random() for run in range(runs)}

        def answer(spec: CaseSpec, label: int, hard: dict[int, float] = hard) -> int:
            drawn = hard[int(spec.run_id[-3:])] if rng.random() < 0.3 else rng.random()
            return label if drawn < share else 1 - label

        names = [f"rubric-{number}" for number in range(rubrics)]
        yield judged(answer, runs=runs, rubrics=names)


@pytest.mark.parametrize(("rubrics", "runs"), [(1, 4), (3, 10), (10, 4)])
def test_sound_judges_are_rarely_warned_about(rubrics: int, runs: int) -> None:
    """At 80%, the worst that is called sound, at most one session of twenty may have a warning."""
    for share, most in ((0.8, 0.05), (0.9, 0.03)):
        found = [bool(warnings_of(each)) for each in sound_sessions(share, rubrics, runs, 60)]
        assert sum(found) / len(found) <= most


SCORES = st.integers(-1, 5) | st.sampled_from([10**13, -(10**400)])
ANY_RESULT = st.builds(
    result_with,
    st.builds(
        make_result,
        st.builds(
            make_spec,
            st.sampled_from([f"run-{run}" for run in range(8)]),
            test=st.sampled_from(["agent_perturbation", "agent_positives", "labels"]),
            rubric_id=st.sampled_from(["policy", "tone"]),
            judge=st.sampled_from(["mild", "strict"]),
            target_score=st.none() | SCORES,
        ),
        st.sampled_from(["agree", "disagree", "no_case", "model_error", "generated"]),
    ),
    label=st.none() | SCORES,
    score=st.none() | SCORES,
    scores=st.lists(SCORES, max_size=3).map(tuple),
)


@given(st.lists(ANY_RESULT, max_size=40))
@settings(max_examples=60, deadline=None)
def test_every_list_of_results_has_figures_or_says_why_not(results: list[CaseResult]) -> None:
    verdicts = Verdicts.of(results)
    judges = sections(verdicts)
    rubrics = [statistics for section in judges for statistics in section.rubrics]
    totals = [section.total for section in judges]
    for statistics in (*rubrics, *totals, statistics_of(verdicts)):
        for estimate in statistics.figures.values():
            known = [estimate.value, estimate.lower, estimate.upper]
            assert bool(estimate.why) == (None in known)
            assert all(math.isfinite(number) for number in known if number is not None)
    assert json.dumps(list(map(section_data, judges)))
    of_floats = [result for result in results if all(abs(n) < 10**15 for n in result.scores)]
    assert json.dumps(list(map(data_of, panels(Verdicts.of(of_floats)))))


def test_nearly_all_is_not_printed_as_all_and_little_not_as_nothing() -> None:
    shares = " ".join(map(percent, (2000 / 2001, 1 / 2001, 1.0, 0.0, 0.999, 0.001)))
    assert shares == ">99.9% <0.1% 100.0% 0.0% 99.9% 0.1%"
    assert range_text(Estimate(1.0, 0.99999, 1.0)) == "99.9-100.0"
    assert range_text(Estimate(0.0, 0.0, 0.00001)) == "0.0-0.1"
    costs = " ".join(map(dollars, (0.00003, 0.0001, 0.0, 1234.5)))
    assert costs == "<$0.0001 $0.0001 $0.00 $1,234.50"


def results_of(labelled: int = 60, unlabelled: int = 600) -> list[CaseResult]:
    """A judge that calls half of the runs violated, of which half are; all others are satisfied."""
    results = [result(run, int(run % 4 == 1), run % 2, test="labels") for run in range(labelled)]
    results += [result(1_000 + run, None, run % 2, test="labels") for run in range(unlabelled)]
    return results


def sentences(results: Iterable[CaseResult], grounds: Grounds = Grounds()) -> list[str]:  # noqa: B008 - frozen
    results = list(results)
    suite = results[0].suite
    return list(violation_sentences(Session(results, grounds={suite: grounds}), suite))


def test_the_judges_share_is_corrected_by_the_labels() -> None:
    tie = result(9_999, None, 0, 1, test="labels")
    [(name, rate)] = violation_rates(Verdicts.of([*results_of(), tie]), ())
    assert (name, rate.labelled, rate.drawn) == ("", 60, False)
    assert (rate.judged.count, rate.judged.n) == (330, 660)
    assert rate.corrected.value == pytest.approx(0.25, abs=0.01)
    # Without the correction it is one half.
    lower, upper = ends(rate.corrected)
    assert 0.15 < lower < 0.25 < upper < 0.4


def test_labels_that_are_drawn_alone_correct_the_rate() -> None:
    assert [Label((1,), "people", split).is_drawn for split in ("Drawn", "picked")] == [True, False]
    # Half of the labels are of runs that somebody picked since they are violated.
    picked = [result(5_000 + run, 1, 1, test="labels") for run in range(60)]
    results, drawn = [*results_of(), *picked], results_of(unlabelled=0)
    grounds = Grounds(drawn=frozenset(each.spec.label_key for each in drawn))
    [rate] = sentences(results, grounds)
    assert "Corrected by 60 labels drawn at random" in rate
    [(_, figure)] = violation_rates(Verdicts.of(results), grounds.drawn)
    assert figure.corrected.value == pytest.approx(0.27, abs=0.02)
    [(_, biased)] = violation_rates(Verdicts.of(results), ())
    assert (biased.corrected.value or 0) > 0.3


@pytest.mark.parametrize(("labelled", "said"), [(0, "is 0"), (1, "is 1"), (19, "is 19")])
def test_too_few_labels_correct_nothing(labelled: int, said: str) -> None:
    [rate] = sentences(results_of(labelled))
    assert rate.endswith(f"because the number of labels {said}, and at least 20 are needed.")


def test_verdicts_without_a_label_are_in_no_other_figure_and_the_gate_does_not_wait() -> None:
    figures, decisions = [], []
    for results in (results_of(), results_of(unlabelled=0)):
        assert describe(results).counts.n == 60
        figures.append(describe(results).figures)
        scope = Scope.of(result.case_id for result in results)
        compared = comparison_of(None, results, scope)
        decisions.append(decide(compared, GateRules(min_recall=0.5), Held(scope)))
    assert figures[0] == figures[1]
    assert decisions[0] == decisions[1]


def natural_suite(folder: Path, judges_unlabelled: bool, **changes: Any) -> Suite:
    """A suite of natural runs under two rubrics, with a probe of them."""
    targets: dict[str, tuple[int | None, ...]] = {RUBRIC.id: (None,), "other": (None,)}
    names = ("labels", "format_invariance")
    return make_suite(
        folder,
        rubrics=(RUBRIC, replace(RUBRIC, id="other")),
        tests=tuple(SuiteTest(name, "fail", folder, True, targets) for name in names),
        labels=(LabelSection(unlabelled="judge" if judges_unlabelled else None),),
        probes={"format_invariance": ProbeSettings(of=("labels",))},
        **changes,
    )


@pytest.mark.parametrize("sample_num", [None, 5])
def test_labelled_cases_are_the_same_beside_others(tmp_path: Path, sample_num: int | None) -> None:
    runs = [RunSummary(f"run-{number}", 1) for number in range(40)]
    label = Label((1,), "people")
    labels = {(RUBRIC.id, run.run_id, 1): label for run in runs[::2]}
    labels[("other", "run-0", 1)] = label
    alone, beside = (
        list(expand(natural_suite(tmp_path, judged, sample=sample_num), runs, labels))
        for judged in (False, True)
    )
    assert [spec for spec in beside if spec.variant or spec.label_key in labels] == alone
    added = [spec for spec in beside if spec not in alone]
    assert added
    assert not [spec for spec in added if spec.variant]
    runs_of_rubric = len({spec.run_id for spec in added if spec.rubric_id == RUBRIC.id})
    assert runs_of_rubric == (20 if sample_num is None else 5)
    # Each test and rubric is one part of the listing.
    parts = [key for key, _ in groupby(beside, key=lambda spec: (spec.test, spec.rubric_id))]
    assert len(parts) == len(set(parts))


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


def values_of(verdicts: Verdicts) -> dict[str, list[Any]]:
    """The values of each column, and of clusters which rows share one."""
    values = {}
    for field in fields(verdicts):
        column = getattr(verdicts, field.name)
        if field.name == "cluster":
            column = distinct(column)[0]
        values[field.name] = column.values if isinstance(column, Coded) else column.tolist()
    return values


def table(rows: int, seed: int, **settings: Any) -> CheckedTable:
    """A table with repeats, gaps, reasons and rubrics, held against an earlier judge."""
    rng = random.Random(seed)
    scores = "01" if "scale" not in settings else "12345"
    entries = []
    for number in range(rows):
        case = f"case {number // 2}"
        entry: dict[str, Any] = {"case": case, "repeat": number % 2, "run": f"run {number // 10}"}
        entry["rubric"] = f"r{len(case) % 3}" if "scale" in settings else "only"
        entry["label"] = rng.choice([*scores, ""]) if number % 2 == 0 else ""
        entry |= {name: rng.choice([*scores, ""]) for name in ("verdict", "old")}
        entry["reasoning"] = rng.choice(["", "The rubric is violated.", "The score is 3."])
        entries.append(entry)
    columns = {"label": "label", "repeat": "repeat", "cluster": "run", "baseline": "old"}
    return check_table(entries, **columns, **settings)


@pytest.mark.parametrize("rows", [40, 400, 4_000])
@pytest.mark.parametrize("settings", [{"one": "violated"}, {"scale": (1, 5)}])
def test_rows_of_a_table_are_columns_of_their_results(rows: int, settings: dict[str, Any]) -> None:
    checked = table(rows, rows, **settings)
    session = checked.session
    scales = {key: rubric.scale for key, rubric in session.rubrics.items()}
    ids = [result.case_id for result in checked.results]
    lines = Baseline({case_id: line for case_id in ids if (line := session.earlier(case_id))})
    compared = comparison_of(lines, checked.results, Scope.of(ids), scales).verdicts
    of_rows = values_of(session.verdicts.in_order(session.verdicts.ids))
    of_results = values_of(compared)
    del of_rows["row"], of_results["row"]
    assert of_rows == of_results
    if rows > 40:
        assert len({*of_rows["outcome"]}) > 2
        assert {"", "not in the baseline"} <= {*of_rows["apart"]}


def test_groups_stand_in_the_order_in_which_they_appear() -> None:
    codes, first = distinct(np.array([3, 1, 3, 2, 1]), np.array([0, 0, 0, 1, 1]))
    assert (codes.tolist(), first.tolist()) == ([0, 1, 0, 2, 3], [0, 1, 3, 4])

"""A tie of repeats counts as wrong, and is never left out of n."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.cases import CaseSpec
from pytest_jrh.core.results import CaseResult, Verdict
from pytest_jrh.core.results import scores_text as given_text
from pytest_jrh.core.scales import BINARY, most_frequent
from pytest_jrh.reports.rand_files import metric
from pytest_jrh.reports.topics import figures_table
from pytest_jrh.stats.figures import all_warnings, sections
from pytest_jrh.stats.statistics import panels
from pytest_jrh.stats.verdicts import Verdicts
from pytest_jrh.store.ledger import case_result, ledger_line, result_from
from tests.support.figures import describe
from tests.support.made_cases import result_with


def result(number: int, expected: int, *scores: int, **values: Any) -> CaseResult:
    """What the engine makes of these scores."""
    verdicts = [Verdict(score, f"It is {score}.") for score in scores]
    test = values.pop("test", "agent_perturbation" if expected else "agent_positives")
    made = case_result(CaseSpec("s", test, "tone", f"r{number}", 1), None, verdicts=verdicts)
    return result_with(made, label=expected, labelled_by="made", **values)


def test_the_most_frequent_score_counts_and_a_tie_has_none() -> None:
    assert most_frequent((0, 1, 0)) == 0
    assert most_frequent((2, 1, 1, 0)) == 1
    assert most_frequent((0, 1)) is None
    assert most_frequent((0, 1, 2)) is None
    assert given_text(1, (1,), BINARY) == "1"
    assert given_text(0, (0, 1, 0), BINARY) == "0 (2 of 3 said 0, 1 of 3 said 1)"
    assert given_text(None, (1, 0), BINARY) == "a tie (1 of 2 said 0, 1 of 2 said 1)"


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_what_is_shown_of_repeats_has_the_score(scores: list[int]) -> None:
    judged = result(1, 0, *scores)
    assert judged.reasoning in {f"It is {score}." for score in scores}
    assert judged.score is None or judged.reasoning == f"It is {judged.score}."


def test_a_tie_is_the_wrong_answer_of_a_binary_judge() -> None:
    cases = [result(n, n % 2, n % 2, n % 2) for n in range(8)]
    cases += [result(8, 0, 0, 1), result(9, 1, 1, 0)]
    found = describe(cases)
    assert (found.counts.n, found.counts.agree, found.counts.ties) == (10, 8, 2)
    assert found.accuracy.value == 0.8
    recall, alarms = found.figures["recall"], found.figures["false_positive_rate"]
    assert (recall.count, recall.n, alarms.count, alarms.n) == (4, 5, 1, 5)
    assert found.figures["balanced_accuracy"].value == pytest.approx(0.8)
    assert found.matrices["binary"].counts == ((4, 1), (1, 4))
    assert found.figures["kappa"].value == pytest.approx(0.6)
    assert all_warnings(found, ()) == [
        "Ties: in 2 of 10 cases no score is the most frequent of the repeats. They count as wrong."
    ]


def test_an_ordinal_tie_is_neither_exact_nor_near() -> None:
    cases = [result(n, 1, 1, 1, target=1) for n in range(3)]
    cases.append(result(3, 1, 1, 2, target=1))
    found = describe(cases)
    figures = found.figures
    assert found.matrices["ordinal"].n == 3
    assert all_warnings(found, ())[-1].endswith(
        "They count as wrong; mean error, bias and weighted kappa leave them out."
    )
    assert (figures["exact"].count, figures["exact"].n) == (3, 4)
    assert (figures["within_one"].count, figures["within_one"].n) == (3, 4)
    assert figures["mean_absolute_error"].value == 0


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(0, 1), min_size=1, max_size=4))))
def test_no_verdict_is_lost_whatever_ties(cases: list[tuple[int, list[int]]]) -> None:
    given_results = [result(n, label, *scores) for n, (label, scores) in enumerate(cases)]
    found = describe(given_results)
    counts = found.counts
    assert counts.n == len(cases)
    matrix = found.matrices.get("binary")
    assert (matrix.n if matrix else 0) == len(cases)
    right = sum(matrix.counts[label][label] for label in (0, 1)) if matrix else 0
    assert right == counts.agree
    for section in sections(Verdicts.of(given_results)):
        assert all(cell.text for row in figures_table(section).rows for cell in row.cells)
    for each in given_results:
        assert result_from(ledger_line(each)) == each


def test_a_metric_of_labels_has_no_label_for_a_tie() -> None:
    assert metric("accuracy_score", [1, 1], [1, None]).value == 0.5
    tied = metric("f1_score", [1, 1], [1, None])
    assert tied.value is None
    assert tied.reason == "repeats that tie have no score that this metric could take"


def test_a_judge_that_ties_has_no_vote_in_a_panel() -> None:
    scores: dict[str, tuple[int, ...]] = {"a": (1, 1), "b": (1, 0), "c": (1, 1)}
    votes = []
    for judge, given_scores in scores.items():
        votes.append(result_with(result(1, 1, *given_scores), judge=judge, case_id=f"x{judge}"))
        votes.append(result_with(result(2, 1, 0, 1), judge=judge, case_id=f"y{judge}"))
    (panel,) = panels(Verdicts.of(votes))
    assert [*panel.without_majority.values()] == ["a: none, b: none, c: none"]
    assert (panel.accuracy.count, panel.accuracy.n) == (1, 2)
    assert [pair.agreement.n for pair in panel.pairs] == [0, 1, 0]

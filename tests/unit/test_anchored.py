"""Figures that the labels of people correct."""

from functools import partial

import pytest

from pytest_jrh.stats.people import (
    Answers,
    anchored_accuracy,
    anchored_positives,
    anchored_violations,
)

RECALL = partial(anchored_positives, label=1)
FALSE_POSITIVE_RATE = partial(anchored_positives, label=0)
Case = tuple[int, int, int | None]


def cases(answer: int, label: int, people: int | None, number: int) -> list[Case]:
    return [(answer, label, people)] * number


def together(given: list[Case], first_of_one_run: int = 0) -> tuple[list[Answers], list[int]]:
    """Cases of runs of their own, but for so many at the beginning."""
    runs = [max(0, number - first_of_one_run + 1) for number in range(len(given))]
    return [Answers(*case) for case in given], runs


def test_the_accuracy_of_a_hundred_cases_is_known_to_five_points_at_best() -> None:
    clusters = [*cases(1, 1, 1, 20), *cases(0, 1, 1, 5), *cases(1, 1, None, 60)]
    found = anchored_accuracy(*together([*clusters, *cases(0, 1, None, 15)])).estimate
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < 0.75
    assert found.upper > 0.85
    assert found.n == 100


def test_labels_that_people_confirm_give_the_figures_by_these_labels() -> None:
    all_labelled = [*cases(1, 1, 1, 10), *cases(0, 1, 1, 4), *cases(0, 0, 0, 8), *cases(1, 0, 0, 2)]
    # The sample has another share of right answers than the rest.
    enough = [*cases(1, 1, 1, 40), *cases(0, 0, 0, 20)]
    enough += [*cases(1, 1, None, 60), *cases(0, 1, None, 35), *cases(1, 0, None, 20)]
    for clusters in (all_labelled, enough):
        for anchored in (anchored_accuracy, RECALL, FALSE_POSITIVE_RATE):
            figure = anchored(*together(clusters))
            assert figure.estimate.value == figure.raw
    contradicted = [*enough, *cases(1, 1, 0, 1)]
    found = anchored_accuracy(*together(contradicted))
    assert found.estimate.value != found.raw


def test_errors_that_judge_and_labels_share_are_found() -> None:
    # All agree, and people say that a fifth of the labels are wrong.
    clusters = [*cases(1, 1, 1, 32), *cases(1, 1, 0, 8), *cases(1, 1, None, 260)]
    found = anchored_accuracy(*together(clusters))
    assert found.estimate.value == pytest.approx(0.8, abs=0.02)
    # People say that 10 of 42 are satisfied, and the judge calls all of them violated.
    alarms = FALSE_POSITIVE_RATE(*together([*clusters, *cases(1, 1, 0, 2)])).estimate
    assert alarms.value == pytest.approx(1, abs=0.1)
    assert RECALL(*together(clusters)).estimate.value == pytest.approx(1, abs=0.05)


def judged(answer: int, people: int | None, number: int) -> list[Case]:
    """Cases of so many clusters: what the judge says, and the label where there is one."""
    return cases(answer, answer, people, number)


def test_the_judges_false_alarms_are_taken_off_the_rate_of_violations() -> None:
    # Of what the judge calls violated, half is; of the rest nothing.
    clusters = [*judged(1, 1, 12), *judged(1, 0, 12), *judged(0, 0, 36)]
    clusters += [*judged(1, None, 800), *judged(0, None, 1_200)]
    rate = anchored_violations(*together(clusters))
    assert rate.raw == pytest.approx(0.4, abs=0.001)
    assert rate.estimate.value == pytest.approx(0.2, abs=0.01)
    assert rate.estimate.lower == pytest.approx(0.125, abs=0.025)
    assert rate.estimate.upper == pytest.approx(0.285, abs=0.025)
    assert rate.estimate.n == 2_060


def test_the_rate_is_that_of_the_textbook_where_the_weight_is_known() -> None:
    # With many labels the weight is the slope of labels on verdicts, whichever case is left out.
    numbers = {(1, 1): 300, (1, 0): 100, (0, 1): 60, (0, 0): 540}
    clusters = [*judged(1, None, 3_000), *judged(0, None, 3_000)]
    for pair, number in numbers.items():
        clusters += judged(*pair, number)
    rate = anchored_violations(*together(clusters)).estimate
    weight = (300 / 1_000 - 0.36 * 0.4) / (0.4 * 0.6)
    assert rate.value == pytest.approx(0.36 + weight * (3_400 / 7_000 - 0.4), abs=0.001)


@pytest.mark.parametrize(
    ("clusters", "of_one_run"),
    [
        ([*judged(1, 1, 10), *judged(1, 0, 20), *judged(1, None, 500)], 0),
        ([*judged(1, 0, 10), *judged(0, 0, 20), *judged(1, None, 500)], 0),
        ([*cases(1, 1, 1, 4_000), *judged(0, 0, 30), *judged(1, None, 30)], 4_000),
    ],
    ids=["constant", "no label", "one large cluster"],
)
def test_a_rate_is_within_its_interval(clusters: list[Case], of_one_run: int) -> None:
    rate = anchored_violations(*together(clusters, of_one_run)).estimate
    assert rate.value is not None
    assert rate.lower is not None
    assert rate.upper is not None
    assert 0 <= rate.lower <= rate.value <= rate.upper <= 1
    assert rate.lower < rate.upper


def test_a_rate_is_less_certain_where_one_cluster_has_half_of_the_cases() -> None:
    pairs = [*judged(1, 1, 12), *judged(1, 0, 12), *judged(0, 0, 36)]
    rest = [*judged(1, None, 800), *judged(0, None, 1_200)]
    even = anchored_violations(*together([*rest, *pairs])).estimate
    one_large = anchored_violations(*together([*rest, *pairs], 1_000)).estimate
    assert even.lower is not None
    assert one_large.lower is not None
    assert one_large.value == even.value
    assert one_large.lower < even.lower - 0.05


def test_a_class_needs_ten_labels_of_people_whatever_the_other_has() -> None:
    few = together([*cases(1, 1, 1, 9), *cases(0, 0, 0, 90), *cases(1, 1, None, 90)])
    reason = "people labelled only 9 cases of this class; at least 10 are needed"
    assert RECALL(*few).estimate.reason == reason
    assert FALSE_POSITIVE_RATE(*few).estimate.value is not None
    enough = together([*cases(1, 1, 1, 8), *cases(0, 1, 1, 2), *cases(1, 1, None, 90)])
    assert RECALL(*enough).estimate.value is not None
    accuracy = anchored_accuracy(*enough).estimate
    assert accuracy.reason == "the number of labels is 10, and at least 20 are needed"

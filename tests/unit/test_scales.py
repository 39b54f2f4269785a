from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_jrh.core.documents import NoLabelError, label_value
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import (
    BINARY,
    NOT_APPLICABLE,
    ORDINAL,
    Scale,
    ScoreLevel,
    classed,
    code_of,
    named,
    numbered,
    scale_of,
    scale_of_line,
    with_not_applicable,
)
from pytest_jrh.stats.verdicts import Verdicts
from pytest_jrh.store.ledger import ledger_line, result_from
from tests.support.made_cases import make_result

LEVELS = (ScoreLevel(1, "poor"), ScoreLevel(2, ""), ScoreLevel(3, "good"))


@pytest.mark.parametrize(
    ("scale", "scores", "words", "meant", "width"),
    [
        (BINARY, (0, 1), ["satisfied", "violated"], "1 (violated)", 1),
        (scale_of(LEVELS), (1, 2, 3), ["1 (poor)", "2", "3 (good)"], "1 (poor)", 2),
        (numbered(1, 5), (1, 2, 3, 4, 5), ["1", "2", "3", "4", "5"], "1", 4),
    ],
)
def test_answers_have_scores_words_and_a_width(
    scale: Scale, scores: tuple[int, ...], words: list[str], meant: str, width: int
) -> None:
    assert scale.scores == scores
    assert [scale.word(score) for score in scores] == words
    assert (scale.meant(1), scale.width) == (meant, width)


MISSED = """missed; misses 2 of 5 violations; 2 of 5 violations missed;
misses 2 of 5 violations that it found before"""
ALARMS = """false alarm; raises 2 false alarms on 5 satisfied cases;
2 false alarms on 5 satisfied cases; raises 2 new false alarms on 5 cases that it passed before"""


@pytest.mark.parametrize(("label", "said"), [(1, MISSED), (0, ALARMS)])
def test_a_class_says_what_is_wrong(label: int, said: str) -> None:
    of_class = BINARY.class_of(label)
    assert of_class is not None
    clauses = of_class.wrong(2, 5), of_class.tally(2, 5), of_class.newly_wrong(2, 5)
    assert "; ".join((of_class.mistake, *clauses)) == " ".join(said.split())


def test_levels_are_one_class() -> None:
    [of_class] = scale_of(LEVELS).classes
    assert {ORDINAL.class_of(score) for score in (1, 2, 9)} == {of_class}
    assert of_class.wrong(1, 3) == "gives 1 wrong level in 3 cases"
    assert BINARY.class_of(2) is BINARY.class_of(None) is None


def test_a_tie_is_the_other_of_two_answers_and_no_level_and_an_error_a_share_of_the_scale() -> None:
    assert [BINARY.tie(label) for label in (0, 1)] == [1, 0]
    assert scale_of(LEVELS).tie(2) is None
    assert [BINARY.error(score, 1) for score in (0, 1)] == [1, 0]
    assert [scale_of(LEVELS).error(score, 3) for score in (1, 2, 3, 9)] == [1, 0.5, 0, 1]


def test_cases_are_made_for_an_objective_or_for_levels() -> None:
    assert [BINARY.aim("fail"), BINARY.aim("pass"), BINARY.targets] == [1, 0, (None,)]
    assert scale_of(LEVELS).targets == (1, 2, 3)
    assert [BINARY.verified(word, None) for word in ("PASS", "FAIL")] == [0, 1]
    assert scale_of(LEVELS).verified("FAIL", 2) == 2
    # Words of labels come in pairs that oppose each other.
    assert [*BINARY.label_words.values()] == [0, 1] * (len(BINARY.label_words) // 2)
    assert not ORDINAL.label_words


@pytest.mark.parametrize(
    ("lowest", "highest", "within"),
    [(1, 5, 0), (1, 10, 0), (0, 49, 0), (0, 50, 1), (0, 100, 2), (-500, 499, 19)],
)
def test_on_a_wide_scale_a_fiftieth_off_is_right(lowest: int, highest: int, within: int) -> None:
    scale = numbered(lowest, highest)
    assert scale.within == within
    assert [scale.accepts(1 + off, 1) for off in (within, -within, within + 1)] == [1, 1, 0]
    assert [scale.accepts(None, 1), scale.accepts(1, None)] == [False, False]
    assert numbered(lowest, highest, 0).within == 0


def test_a_line_keeps_how_far_off_is_right_and_says_nothing_where_that_is_nothing() -> None:
    exact = replace(make_result(), target=60, label=60, scores=(61, 63, 63))
    assert (exact.outcome, "within" in ledger_line(exact)) == ("disagree", False)
    near = replace(exact, within=3)
    assert (near.outcome, result_from(ledger_line(near))) == ("agree", near)
    assert near.scale == replace(ORDINAL, within=3)

    # What was right before is told by the tolerance of now.
    def was_right(before: CaseResult, now: CaseResult) -> bool:
        compared = Verdicts.of([now]).beside([before.scores], [""], [True])
        return bool(compared.was_right[0])

    assert was_right(exact, near)
    assert not was_right(near, exact)


CLASSES = classed((("tie", "both are as good"), ("First", "the first is better"), ("none", "")))


@pytest.mark.parametrize(
    ("scale", "target"),
    [(BINARY, None), (numbered(1, 3), 2), (named("harmful", "harmless"), None), (CLASSES, None)],
)
def test_a_line_reads_back_its_answers_and_whether_n_a_is_one(
    scale: Scale, target: int | None
) -> None:
    assert scale_of_line(scale.line, target).kind == scale.kind
    assert (scale_of_line("", None), scale_of_line("", 0)) == (BINARY, ORDINAL)
    more = with_not_applicable(scale, "the run has no such occasion")
    assert scale_of_line(more.line, target).classes == more.classes
    assert more.answers == (*scale.answers, NOT_APPLICABLE)
    assert more.scores == scale.scores
    assert (more.said(NOT_APPLICABLE), more.word(NOT_APPLICABLE)) == ("n/a", "n/a")
    assert label_value("N/A", more) == NOT_APPLICABLE
    assert not more.accepts(NOT_APPLICABLE, more.scores[0])


def test_classes_have_words_and_no_order() -> None:
    first = code_of("first")
    assert {CLASSES.said(score) for score in CLASSES.scores} == {"tie", "First", "none"}
    assert [of.word for of in CLASSES.classes] == ["tie", "First", "none"]
    assert (CLASSES.meant(first), CLASSES.word(first)) == ("First", "First")
    assert label_value("FIRST", CLASSES) == first
    # Named in another order, or beside others, a class is the same.
    assert classed((("First", ""), ("second", ""))).words[first] == "First"
    assert CLASSES.error(first, code_of("tie")) == 1
    assert (CLASSES.tie(first), with_not_applicable(BINARY, "").tie(1)) == (None, None)
    with pytest.raises(NoLabelError, match="must be tie, first or none"):
        label_value("second", CLASSES)

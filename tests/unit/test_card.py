"""The judge card: the answer that every report begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.reports.answer import (
    agreement_sentence,
    answer_blocks,
    judge_cards,
    next_blocks,
    session_title,
    worst_results,
)
from pytest_jrh.reports.blocks import Cases, Sentence, Table
from pytest_jrh.stats.figures import range_text
from pytest_jrh.stats.formulas import Estimate
from tests.support.judged_sessions import (
    always,
    judged,
    misses,
    right,
    scored,
    session_of,
    wrong_on,
)

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseSpec


def test_a_card_says_what_is_missed_and_what_is_a_false_alarm() -> None:
    session = session_of(judged(misses(3), runs=12))
    (card,) = judge_cards(session)
    (figures,) = session.table.judges
    missed = range_text(figures.figures["recall"].complement(), digits=0)
    alarms = range_text(figures.figures["false_positive_rate"], digits=0)
    assert card.sentences == (
        f"Misses 3 of 24 violations (12%, {missed}).",
        f"No false alarm on 24 clean runs (0%, {alarms}).",
    )
    assert [row.name for row in card.rows] == ["tone", "refund_policy"]
    assert card.rows[0].found.text == "9/12"
    assert session_title(session) == "FAIL: the judge misses 3 of 24 violations"


def test_the_baseline_stands_beside() -> None:
    session = session_of(judged(misses(6), runs=12), before=judged(right, runs=12))
    (card,) = judge_cards(session)
    assert card.sentences[0].endswith(", before 0.")
    assert card.rows[0].found.text == "6/12 (was 12/12)"


def test_an_ordinal_card_has_a_row_for_each_level() -> None:
    (card,) = judge_cards(session_of(scored(always(1))))
    assert card.table.first == "level"
    assert card.rows[-1].found.wrong == 0
    assert isinstance(card.total.bias, Estimate)
    assert card.sentences[0].startswith("Wrong level in ")


def test_new_mistakes_are_read_before_old_ones() -> None:
    before = judged(wrong_on("run-001"), runs=6)
    now = judged(wrong_on("run-001", "run-004"), runs=6)
    worst = worst_results(session_of(now, before=before))
    assert {result.spec.run_id for result in worst[: len(worst) // 2]} == {"run-004"}


def test_the_answer_is_decision_figures_labels_cases_and_next_step() -> None:
    session = session_of(judged(misses(6), runs=12), before=judged(right, runs=12))
    blocks = answer_blocks(session)
    sentences = [block.text for block in blocks if isinstance(block, Sentence)]
    assert sentences[0] == ("FAIL: the judge misses 6 of 24 violations that it found before")
    assert sentences[-1].startswith("Next: read the 6 cases;")
    (cases,) = (block for block in blocks if isinstance(block, Cases))
    assert len(cases.cases) == 6
    assert not any(isinstance(block, Table) for block in blocks)


def test_of_many_mistakes_the_rubric_with_the_most_is_read_first() -> None:
    def answer(spec: CaseSpec, expected: int) -> int:
        is_missed = spec.rubric_id == "tone" or spec.run_id < "run-004"
        return 0 if is_missed else expected

    session = session_of(judged(answer, runs=40))
    [next_step] = next_blocks(session)
    assert isinstance(next_step, Sentence)
    assert next_step.text.startswith("Next: read the 40 cases of tone first, of 44 that are wrong;")
    assert {result.spec.rubric_id for result in worst_results(session)[:40]} == {"tone"}


def test_a_case_says_whose_reason_stands_under_it() -> None:
    for results, judge in ((judged(misses(1)), "Judge"), (judged(misses(1), judge="a"), "Judge a")):
        (cases,) = (
            block for block in answer_blocks(session_of(results)) if isinstance(block, Cases)
        )
        assert f"missed. {judge}: " in cases.cases[0].why


def test_of_several_judges_the_best_one_is_named_first() -> None:
    session = session_of([*judged(misses(8), judge="a"), *judged(right, judge="b")])
    cards = judge_cards(session)
    assert [card.judge for card in cards] == ["b", "a"]
    assert agreement_sentence(cards).startswith("b agrees best with the labels: kappa 1.00 (")
    assert session_title(session) == "FAIL: judge a misses 8 of 24 violations"


def test_judges_that_are_all_right_agree_equally() -> None:
    cards = judge_cards(session_of([*judged(right, judge="a"), *judged(right, judge="b")]))
    assert agreement_sentence(cards).startswith("All agree with the labels equally: kappa 1.00 (")


def test_where_nothing_is_wrong_the_verdicts_are_to_be_kept() -> None:
    [next_step] = next_blocks(session_of(judged(right)))
    assert isinstance(next_step, Sentence)
    assert next_step.text.startswith("Next: keep these verdicts")
    assert not next_blocks(session_of(judged(right), before=judged(right)))


def test_a_case_that_most_judges_are_wrong_about_is_read_first_and_named_once() -> None:
    session = session_of(
        [*judged(misses(3), judge="a"), *judged(misses(1), judge="b"), *judged(right, judge="c")]
    )
    (cases,) = (block for block in answer_blocks(session) if isinstance(block, Cases))
    assert [case.why.partition(":")[0] for case in cases.cases] == [
        "2 judges, missed. Judge a",
        "1 judge, missed. Judge a",
        "1 judge, missed. Judge a",
    ]
    assert "run-000" in cases.cases[0].title

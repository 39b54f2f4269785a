"""The desk between engine and review: which cases are shown, which wait, and
what is said of each.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.model import CaseResult, HumanReview, Judgment, Skip, Verdict
from pytest_jrh.reports.rand_files import result_row
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.terminal import block_lines
from pytest_jrh.reports.topics import review_blocks
from pytest_jrh.review.board import ReviewBoard, ReviewDesk
from pytest_jrh.store.people import open_stores
from tests.support.made_cases import make_case, make_result, make_spec, make_suite

CASE = make_case()
OTHER = make_case(make_spec(suite="other"))


@pytest.fixture
def desk(tmp_path: Path) -> ReviewDesk:
    """The suite `refunds` is on the page, `other` is not, and nobody has ever decided about its
    cases."""
    suites = [make_suite(tmp_path), make_suite(tmp_path / "other", name="other")]
    board = ReviewBoard(open_stores(suites))
    return ReviewDesk(board, board, frozenset({"refunds"}), frozenset({"refunds"}))


def test_a_case_of_a_suite_on_the_page_waits_until_the_review_is_final(desk: ReviewDesk) -> None:
    assert desk.awaits(CASE)
    desk.board.finalize()
    assert not desk.awaits(CASE)
    assert desk.board.progress().shown == 1


def test_cases_of_other_suites_pass_unseen(desk: ReviewDesk) -> None:
    desk.announce([OTHER.spec])
    assert not desk.awaits(OTHER)
    assert desk.said(OTHER) == ("", None)
    desk.miss(OTHER.spec)
    progress = desk.board.progress()
    assert (progress.total, progress.ended, progress.shown) == (0, 0, 0)


def test_what_the_judges_of_a_panel_share_is_shown_and_counted_once(desk: ReviewDesk) -> None:
    panel = [make_spec(judge=name) for name in ("strict", "kind")]
    lost = [make_spec("run-2", judge=name) for name in ("strict", "kind")]
    desk.announce([*panel, *lost])
    for spec in panel:
        assert desk.awaits(make_case(spec))
    for spec in lost:
        desk.miss(spec)
    progress = desk.board.progress()
    assert (progress.total, progress.ended, progress.shown) == (2, 2, 1)


def test_a_verdict_stays_when_the_same_case_comes_again(desk: ReviewDesk) -> None:
    desk.awaits(CASE)
    judgment = Judgment((Verdict(1, "because"),))
    desk.judged(CASE, judgment)
    version = desk.board.changes()[0]
    desk.awaits(CASE)
    assert desk.board.changes()[0] == version
    assert desk.board.changes()[1][0].entry.judged == {"": judgment}


def test_what_people_say_is_a_word_and_the_decision_about_this_very_version(
    desk: ReviewDesk,
) -> None:
    desk.awaits(CASE)
    assert desk.said(CASE) == ("undecided", None)
    entry = desk.board.changes()[1][0].entry
    desk.board.decide(entry.key, entry.digest, "rejected", note="contradicts the tool")
    word, decision = desk.said(CASE)
    assert word == "rejected"
    assert decision is not None
    with pytest.raises(NoVerdictCase, match="rejected in review: contradicts the tool"):
        desk.obeyed(CASE)
    assert desk.said(make_case(new_text="Made in another way.")) == ("void", None)


def reviewed(run: str, said: HumanReview, judge: str | None = None) -> CaseResult:
    return make_result(make_spec(run, judge=judge), human_reviewed=said)


def test_the_counts_name_void_decisions_and_count_the_cases_of_a_panel_once() -> None:
    results = [
        reviewed("run-1", "accepted", "strict"),
        reviewed("run-1", "accepted", "kind"),
        reviewed("run-2", "rejected"),
        reviewed("run-3", "void"),
        reviewed("run-4", "undecided"),
    ]
    told = Session(results, nodes={results[3].case_id: "suite.yml::run-3"})
    lines = block_lines(review_blocks(told), 100, verbose=True, indent=0)
    assert [line.text for line in lines] == [
        "Reviewed by people: 1 accepted, 1 rejected, 1 undecided.",
        "! 1 decision is void, because the case was made in another way since.",
        "  suite.yml::run-3",
    ]


def test_a_session_without_a_review_says_nothing_of_one() -> None:
    assert review_blocks(Session([make_result()])) == []


@pytest.mark.parametrize(
    ("said", "by_people"),
    [
        ("", False),
        ("undecided", False),
        ("void", False),
        ("accepted", True),
        ("edited", True),
        ("rejected", True),
    ],
)
def test_only_a_decision_that_counts_makes_a_row_human_reviewed(
    said: HumanReview, by_people: bool
) -> None:
    row = result_row(make_result(human_reviewed=said), None)
    assert (row["human_reviewed"], row["human_decision"]) == (by_people, said or None)


def test_a_case_that_the_verifier_rejected_is_shown_and_counted_as_none(desk: ReviewDesk) -> None:
    desk.announce([CASE.spec, OTHER.spec])
    for case in (CASE, OTHER):
        desk.miss(
            case.spec, replace(case, outcome=replace(case.outcome, no_case=Skip("not_confirmed")))
        )
    progress = desk.board.progress()
    assert (progress.total, progress.ended, progress.shown) == (1, 1, 0)
    assert [one.entry.rejected for one in desk.board.changes()[1]] == [True]

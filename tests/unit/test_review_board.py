"""The board: cases come in from one thread, decisions from others, and nothing is lost between
them; and the desk between it and the engine: which cases wait, and what is said of each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pytest_jrh.core.cases import Case, HumanReview, Skip
from pytest_jrh.core.errors import InputError, NoVerdictCase
from pytest_jrh.core.results import Verdict
from pytest_jrh.core.transcript import message_text
from pytest_jrh.people.board import ReviewBoard, ReviewDesk, Reviewed
from pytest_jrh.people.decisions import DecisionStore, decisions_path
from pytest_jrh.reports.rand_files import result_row
from pytest_jrh.store.records import case_digest
from tests.support.made_cases import make_case, make_result, make_spec, make_suite
from tests.support.reviews import as_reviewed

CASE = make_case()
OTHER = make_case(make_spec(suite="other"))


def board_in(folder: Path) -> ReviewBoard:
    return ReviewBoard(DecisionStore([make_suite(folder)]))


@pytest.fixture
def board(tmp_path: Path) -> ReviewBoard:
    board = board_in(tmp_path)
    board.add(make_case())
    return board


def first(board: ReviewBoard) -> Reviewed:
    return board.changes()[1][0]


def key_of(board: ReviewBoard) -> tuple[str, str]:
    entry = first(board).entry
    return entry.key, entry.digest


def test_decisions_of_each_test_go_to_its_own_folder(tmp_path: Path) -> None:
    board = board_in(tmp_path)
    board.add(make_case())
    board.add(make_case(make_spec(test="agent_positives")))
    for one in board.changes()[1]:
        board.decide(one.entry.key, one.entry.digest, "accepted")
    for test in make_suite(tmp_path).tests:
        assert decisions_path(test.output_dir).read_bytes().count(b"\n") == 1


def test_an_edit_decides_and_accepting_keeps_it(board: ReviewBoard) -> None:
    key, digest = key_of(board)
    board.edit_turn(key, digest, 3, "I might refund it.")
    board.set_label(key, digest, 0)
    after = board.decide(key, digest, "accepted", note="ok")
    decision = after.decision
    assert decision is not None
    assert (decision.action, decision.expected, decision.note) == ("edited", 0, "ok")
    judged = as_reviewed(board, make_case())
    assert (message_text(judged.messages[3]), judged.expected) == ("I might refund it.", 0)


def test_a_rejection_keeps_the_edits_for_when_it_is_taken_back(board: ReviewBoard) -> None:
    key, digest = key_of(board)
    board.edit_turn(key, digest, 3, "I might refund it.")
    board.decide(key, digest, "rejected")
    with pytest.raises(NoVerdictCase):
        as_reviewed(board, make_case())
    board.decide(key, digest, "accepted")
    assert message_text(as_reviewed(board, make_case()).messages[3]) == "I might refund it."
    assert board.decide(key, digest, "withdrawn").case == make_case()


def test_an_edit_that_is_undone_leaves_the_case_undecided(
    tmp_path: Path, board: ReviewBoard
) -> None:
    key, digest = key_of(board)
    board.edit_turn(key, digest, 3, "I might refund it.")
    board.set_label(key, digest, 0)
    board.set_label(key, digest, 1)
    assert board.edit_turn(key, digest, 3, None).decision is None
    assert len(DecisionStore([make_suite(tmp_path)]).decisions) == 0


def test_a_decision_also_counts_for_the_case_that_was_stored_with_its_edits(
    tmp_path: Path, board: ReviewBoard
) -> None:
    key, digest = key_of(board)
    board.edit_turn(key, digest, 3, "I might refund it.")
    stored = as_reviewed(board, make_case())
    again = board_in(tmp_path)
    again.add(stored)
    assert as_reviewed(again, stored) == stored
    again.edit_turn(*key_of(again), 3, "Second thoughts.")
    # And the newer edit is found from the case as it was first made, too.
    newer = as_reviewed(board_in(tmp_path), make_case())
    assert message_text(newer.messages[3]) == "Second thoughts."


def test_finalize_fixes_what_the_tests_assert_with(tmp_path: Path, board: ReviewBoard) -> None:
    board.decide(*key_of(board), "accepted")
    board.finalize()
    board.decide(*key_of(board), "rejected")
    assert as_reviewed(board, make_case()) == make_case()
    unseen = make_case(make_spec("run-2"))
    assert as_reviewed(board, unseen) == unseen
    # An earlier rejection counts for a case that is made after that, too.
    again = board_in(tmp_path)
    again.finalize()
    again.add(make_case())
    with pytest.raises(NoVerdictCase):
        as_reviewed(again, make_case())


def test_every_kind_of_change_makes_another_version(board: ReviewBoard) -> None:
    versions = [board.version]
    changes: list[Callable[[], object]] = [
        lambda: board.announce(str(number) for number in range(9)),
        lambda: board.add(make_case(make_spec("run-2"))),
        lambda: board.set_verdicts(make_case(), (Verdict(1, "so"),)),
        lambda: board.decide(*key_of(board), "accepted"),
        lambda: board.end("0"),
        board.finalize,
    ]
    for change in changes:
        change()
        versions.append(board.version)
    assert versions == sorted(set(versions))


def test_many_threads_lose_no_case_and_no_decision(tmp_path: Path) -> None:
    board = board_in(tmp_path)
    cases = [make_case(make_spec(f"run-{number}")) for number in range(40)]

    def work(case: Case) -> None:
        board.add(case)
        key = next(one.entry.key for one in board.changes()[1] if one.case.spec == case.spec)
        board.decide(key, case_digest(case), "accepted")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, cases))
    assert board.progress().done == 40
    assert len(DecisionStore([make_suite(tmp_path)]).decisions) == 40


def test_a_disk_that_refuses_leaves_the_decision_as_it_was(
    tmp_path: Path, board: ReviewBoard
) -> None:
    (tmp_path / "cases").write_text("a file where the folder should be")
    with pytest.raises(OSError, match="cases"):
        board.decide(*key_of(board), "accepted")
    assert first(board).decision is None


def test_a_case_that_the_verifier_rejected_is_shown_and_nothing_can_be_decided(
    tmp_path: Path, board: ReviewBoard
) -> None:
    board.decide(*key_of(board), "accepted")
    again = board_in(tmp_path)
    again.add(replace(CASE, outcome=replace(CASE.outcome, no_case=Skip("not_confirmed"))))
    one = first(again)
    assert one.entry.rejected
    assert one.decision is None
    for decide in (
        partial(again.decide, action="accepted"),
        partial(again.edit_turn, index=3, content="Another text."),
        partial(again.set_label, expected=0),
        partial(again.decide, action="withdrawn"),
    ):
        with pytest.raises(InputError, match="the verifier rejected this case"):
            decide(*key_of(again))
    progress = again.progress()
    assert (progress.shown, progress.done) == (0, 0)
    # What is made after all takes its place.
    again.add(make_case())
    assert again.progress().shown == 1


@pytest.fixture
def desk(tmp_path: Path) -> ReviewDesk:
    """The suite `refunds` is on the page, `other` is not, and nobody has ever decided about its
    cases."""
    suites = [make_suite(tmp_path), make_suite(tmp_path / "other", name="other")]
    board = ReviewBoard(DecisionStore(suites))
    return ReviewDesk(board, board, frozenset({"refunds"}), frozenset({"refunds"}))


def test_a_case_of_a_suite_on_the_page_waits_until_the_review_is_final(desk: ReviewDesk) -> None:
    assert desk.awaits(CASE)
    desk.board.finalize()
    assert not desk.awaits(CASE)
    assert desk.board.progress().shown == 1


def test_cases_of_other_suites_pass_unseen(desk: ReviewDesk) -> None:
    desk.announce([OTHER.spec])
    assert not desk.awaits(OTHER)
    assert desk.decision(OTHER) == ("", None)
    desk.end_without_case(OTHER.spec)
    progress = desk.board.progress()
    assert (progress.total, progress.ended, progress.shown) == (0, 0, 0)


def test_what_the_judges_of_a_panel_share_is_shown_and_counted_once(desk: ReviewDesk) -> None:
    panel = [make_spec(judge=name) for name in ("strict", "kind")]
    lost = [make_spec("run-2", judge=name) for name in ("strict", "kind")]
    desk.announce([*panel, *lost])
    for spec in panel:
        assert desk.awaits(make_case(spec))
    for spec in lost:
        desk.end_without_case(spec)
    progress = desk.board.progress()
    assert (progress.total, progress.ended, progress.shown) == (2, 2, 1)


def test_what_people_say_is_a_word_and_the_decision_about_this_very_version(
    desk: ReviewDesk,
) -> None:
    desk.awaits(CASE)
    assert desk.decision(CASE) == ("undecided", None)
    entry = desk.board.changes()[1][0].entry
    desk.board.decide(entry.key, entry.digest, "rejected", note="contradicts the tool")
    word, decision = desk.decision(CASE)
    assert word == "rejected"
    assert decision is not None
    with pytest.raises(NoVerdictCase, match="rejected in review: contradicts the tool"):
        desk.as_decided(CASE)
    assert desk.decision(make_case(new_text="Made in another way.")) == ("void", None)


@pytest.mark.parametrize(
    ("said", "by_people"), [("undecided", False), ("void", False), ("rejected", True)]
)
def test_only_a_decision_that_counts_makes_a_row_human_reviewed(
    said: HumanReview, by_people: bool
) -> None:
    row = result_row(make_result(review=said), None)
    assert (row["human_reviewed"], row["human_decision"]) == (by_people, said or None)

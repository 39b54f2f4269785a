"""The board: cases come in from one thread, decisions from others, and nothing is lost between
them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.errors import InputError, NoVerdictCase
from pytest_jrh.core.model import Case, Judgment, Skip, Verdict
from pytest_jrh.core.transcript import message_text
from pytest_jrh.review.board import ReviewBoard, Reviewed
from pytest_jrh.store.people import DecisionStore, decisions_path
from pytest_jrh.store.records import case_digest
from tests.support.made_cases import make_case, make_spec
from tests.support.reviews import as_reviewed


def board_in(folder: Path) -> ReviewBoard:
    stores = {
        ("refunds", "agent_perturbation"): DecisionStore(decisions_path(folder / "negatives")),
        ("refunds", "agent_positives"): DecisionStore(decisions_path(folder / "positives")),
    }
    return ReviewBoard(stores)


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
    assert all(
        len(DecisionStore(decisions_path(tmp_path / name))) == 1
        for name in ("negatives", "positives")
    )


def test_a_new_board_over_the_same_folders_shows_every_decision(
    tmp_path: Path, board: ReviewBoard
) -> None:
    board.decide(*key_of(board), "rejected", note="no")
    again = board_in(tmp_path)
    again.add(make_case())
    decision = first(again).decision
    assert decision is not None
    assert (decision.action, decision.note) == ("rejected", "no")


def test_the_judges_of_a_panel_share_one_case(board: ReviewBoard) -> None:
    board.add(make_case(make_spec(judge="second")))
    late = Judgment((Verdict(1, "late"),))
    board.set_verdict(make_case(make_spec(judge="second")), late)
    assert len(board.changes()[1]) == 1
    assert dict(first(board).entry.judged) == {"second": late}


def test_a_decision_about_another_version_is_void_and_shown_so(
    tmp_path: Path, board: ReviewBoard
) -> None:
    board.decide(*key_of(board), "rejected")
    again = board_in(tmp_path)
    changed = make_case(new_text="Something else.")
    again.add(changed)
    assert first(again).decision is None
    assert first(again).void is not None
    assert as_reviewed(again, changed) == changed


def test_deciding_about_a_case_that_was_made_anew_meanwhile_is_refused(board: ReviewBoard) -> None:
    key, digest = key_of(board)
    board.add(make_case(new_text="Something else."))
    with pytest.raises(InputError, match="regenerated"):
        board.decide(key, digest, "accepted")


def test_an_edit_decides_and_accepting_keeps_it(board: ReviewBoard) -> None:
    key, digest = key_of(board)
    board.edit_turn(key, digest, 3, "I might refund it.")
    board.set_label(key, digest, 0)
    after = board.decide(key, digest, "accepted", note="ok")
    assert after.decision is not None
    assert (after.decision.action, after.decision.expected, after.decision.note) == (
        "edited",
        0,
        "ok",
    )
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


def test_an_edit_that_is_undone_leaves_the_case_undecided(
    tmp_path: Path, board: ReviewBoard
) -> None:
    key, digest = key_of(board)
    board.edit_turn(key, digest, 3, "I might refund it.")
    board.set_label(key, digest, 0)
    board.set_label(key, digest, 1)
    assert board.edit_turn(key, digest, 3, None).decision is None
    assert len(DecisionStore(decisions_path(tmp_path / "negatives"))) == 0


def test_withdrawing_drops_the_edits_too(board: ReviewBoard) -> None:
    key, digest = key_of(board)
    board.edit_turn(key, digest, 3, "I might refund it.")
    assert board.withdraw(key, digest).case == make_case()


@pytest.mark.parametrize(
    ("index", "text", "why"),
    [(0, "x", "not an assistant turn"), (99, "x", "not an assistant turn"), (3, " \n", "empty")],
)
def test_an_edit_that_cannot_be_is_refused_with_the_reason(
    board: ReviewBoard, index: int, text: str, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        board.edit_turn(*key_of(board), index, text)
    assert first(board).decision is None


def test_a_label_that_the_judge_cannot_give_is_refused_with_those_it_can(tmp_path: Path) -> None:
    board = board_in(tmp_path)
    board.add(make_case(make_spec(target_score=2)))
    with pytest.raises(InputError, match="must be one of 0, 1, 2"):
        board.set_label(*key_of(board), 3)


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
    assert (
        message_text(as_reviewed(board_in(tmp_path), make_case()).messages[3]) == "Second thoughts."
    )


def test_finalize_fixes_what_the_tests_assert_with(board: ReviewBoard) -> None:
    board.decide(*key_of(board), "accepted")
    board.finalize()
    board.decide(*key_of(board), "rejected")
    assert as_reviewed(board, make_case()) == make_case()
    unseen = make_case(make_spec("run-2"))
    assert as_reviewed(board, unseen) == unseen


def test_an_earlier_rejection_counts_for_a_case_that_is_made_after_finalize(
    tmp_path: Path, board: ReviewBoard
) -> None:
    board.decide(*key_of(board), "rejected")
    again = board_in(tmp_path)
    again.finalize()
    again.add(make_case())
    with pytest.raises(NoVerdictCase):
        as_reviewed(again, make_case())
    again.withdraw(*key_of(again))
    with pytest.raises(NoVerdictCase):
        as_reviewed(again, make_case())


def test_finalize_releases_whoever_waits(board: ReviewBoard) -> None:
    assert not board.wait_finalized(0)
    waiting = threading.Thread(target=board.wait_finalized)
    waiting.start()
    board.finalize()
    waiting.join(30)
    assert not waiting.is_alive()
    assert board.progress().finalized


def test_many_tasks_of_a_loop_wait_for_finalize_together(board: ReviewBoard) -> None:
    async def wait() -> None:
        waiting = [asyncio.create_task(board.until_finalized()) for _ in range(100)]
        await asyncio.sleep(0)
        board.announce(str(number) for number in range(3))
        assert not any(task.done() for task in waiting)
        threading.Thread(target=board.finalize).start()
        await asyncio.gather(*waiting)
        await board.until_finalized()

    asyncio.run(asyncio.wait_for(wait(), 30))


def test_changes_lists_only_what_is_new_since_a_version(board: ReviewBoard) -> None:
    version, _ = board.changes()
    board.add(make_case(make_spec("run-2")))
    newer, fresh = board.changes(version)
    assert [one.case.spec.run_id for one in fresh] == ["run-2"]
    assert board.changes(newer) == (newer, ())
    board.decide(*key_of(board), "accepted")
    assert [one.case.spec.run_id for one in board.changes(newer)[1]] == ["run-1"]


def test_a_case_made_again_keeps_its_place(board: ReviewBoard) -> None:
    board.add(make_case(make_spec("run-2")))
    board.add(make_case(new_text="Again."))
    assert [one.case.spec.run_id for one in board.changes()[1]] == ["run-1", "run-2"]


def test_every_kind_of_change_makes_another_version(board: ReviewBoard) -> None:
    versions = [board.version]
    changes: list[Callable[[], object]] = [
        lambda: board.announce(str(number) for number in range(9)),
        lambda: board.add(make_case(make_spec("run-2"))),
        lambda: board.set_verdict(make_case(), Judgment((Verdict(1, "so"),))),
        lambda: board.decide(*key_of(board), "accepted"),
        lambda: board.end("0"),
        board.finalize,
    ]
    for change in changes:
        change()
        versions.append(board.version)
    assert versions == sorted(set(versions))


def test_progress_counts_what_came_to_nothing(board: ReviewBoard) -> None:
    board.announce(str(number) for number in range(5))
    board.end("0")
    board.decide(*key_of(board), "accepted")
    progress = board.progress()
    assert (progress.total, progress.ended, progress.shown, progress.done) == (5, 1, 1, 1)
    assert board.line() == "jrh: 1 of 5 cases made | 1 to review, 1 done | Finish goes on"
    assert not progress.is_empty
    nothing = ReviewBoard({})
    assert not nothing.progress().is_empty
    nothing.announce(["0"])
    nothing.end("0")
    assert nothing.progress().is_empty


def test_many_threads_lose_no_case_and_no_decision(tmp_path: Path) -> None:
    board = board_in(tmp_path)
    cases = [make_case(make_spec(f"run-{number}")) for number in range(40)]

    def work(part: list[Case]) -> None:
        for case in part:
            board.add(case)
            key = next(one.entry.key for one in board.changes()[1] if one.case.spec == case.spec)
            board.decide(key, case_digest(case), "accepted")

    threads = [threading.Thread(target=work, args=(cases[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert board.progress().done == 40
    assert len(DecisionStore(decisions_path(tmp_path / "negatives"))) == 40


def test_a_disk_that_refuses_leaves_the_decision_as_it_was(tmp_path: Path) -> None:
    store = DecisionStore(decisions_path(tmp_path / "negatives"))
    board = ReviewBoard({("refunds", "agent_perturbation"): store})
    board.add(replace(make_case()))
    (tmp_path / "negatives").write_text("a file where the folder should be")
    with pytest.raises(OSError, match="negatives"):
        board.decide(*key_of(board), "accepted")
    assert first(board).decision is None


def rejected() -> Case:
    case = make_case()
    return replace(case, outcome=replace(case.outcome, no_case=Skip("not_confirmed")))


def test_a_case_that_the_verifier_rejected_is_shown_and_nothing_can_be_decided(
    tmp_path: Path, board: ReviewBoard
) -> None:
    board.decide(*key_of(board), "accepted")
    again = board_in(tmp_path)
    again.add(rejected())
    one = first(again)
    assert one.entry.rejected
    assert one.decision is None
    key, digest = key_of(again)
    decisions: list[Callable[[], object]] = [
        lambda: again.decide(key, digest, "accepted"),
        lambda: again.edit_turn(key, digest, 3, "Another text."),
        lambda: again.set_label(key, digest, 0),
        lambda: again.withdraw(key, digest),
    ]
    for decide in decisions:
        with pytest.raises(InputError, match="the verifier rejected this case"):
            decide()
    progress = again.progress()
    assert (progress.shown, progress.done) == (0, 0)


def test_a_case_that_is_made_after_all_takes_the_place_of_the_rejected_one(tmp_path: Path) -> None:
    board = board_in(tmp_path)
    board.add(rejected())
    board.add(make_case())
    assert not first(board).entry.rejected
    assert board.progress().shown == 1

"""Decisions in headless Chromium: seen by others, void, final, and there after a restart (rule
K2)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.browser.material import made_case
from tests.browser.opened import page_process
from tests.browser.steps import NEW_TEXT, filled, opened, wait_open, wait_statuses
from tests.support.reviews import as_reviewed

if TYPE_CHECKING:
    from tests.browser.opened import Sessions


def test_a_second_browser_sees_the_decision_of_the_first(sessions: Sessions) -> None:
    session = filled(sessions)
    one, other = opened(sessions, session), opened(sessions, session)
    one.keyboard.press("r")
    wait_statuses(other, "rejected", "undecided", "undecided", "undecided")
    other.wait_for_selector("#case .tag.rejected")
    assert other.get_attribute("#reject", "aria-pressed") == "true"
    other.wait_for_selector("#counts:text-is('1 of 4 decided')")


def test_u_right_after_a_decision_takes_that_one_back_and_returns_to_it(
    sessions: Sessions,
) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    page.keyboard.press("r")
    wait_statuses(page, "rejected", "undecided", "undecided", "undecided")
    wait_open(page, "support-001")
    page.keyboard.press("u")
    wait_statuses(page, "undecided", "undecided", "undecided", "undecided")
    wait_open(page, "support-000")
    page.keyboard.press("a")
    wait_open(page, "support-001")
    page.keyboard.press("j")
    wait_open(page, "support-002")
    # It is no longer right after the decision.
    assert page.is_disabled("#undo")
    wait_statuses(page, "accepted", "undecided", "undecided", "undecided")


def test_a_decision_about_another_version_of_a_case_is_shown_as_void(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    page = opened(sessions, session)
    page.keyboard.press("a")
    wait_statuses(page, "accepted")
    session.board.add(made_case(0, new_text="Made in another way."))
    wait_statuses(page, "void")
    page.wait_for_selector("text=no longer counts")


def test_finalize_says_what_is_left_and_ends_the_wait(sessions: Sessions) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    page.keyboard.press("a")
    page.wait_for_selector("#counts:text-is('1 of 4 decided')")
    page.click("#open-finish")
    assert "3 case(s) are undecided and will be used as they were made." in page.inner_text(
        "#finish"
    )
    page.click("text=Keep reviewing")
    assert not session.board.finalized
    page.click("#open-finish")
    page.click("#finish-now")
    assert session.board.wait_finalized(15)
    page.wait_for_selector("#banner:has-text('Finalized')")
    # What comes later counts from the next run on: this one asserts with what it was told.
    page.keyboard.press("r")
    wait_statuses(page, "accepted", "rejected", "undecided", "undecided")
    assert as_reviewed(session.board, made_case(1)) == made_case(1)


def test_a_killed_server_that_is_started_again_shows_every_decision(
    browser: Any, tmp_path: Path
) -> None:
    with page_process("decide", tmp_path) as (process, url):
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("#case article")
        page.keyboard.press("a")
        wait_open(page, "support-001")
        page.keyboard.press("r")
        wait_open(page, "support-002")
        page.keyboard.press("e")
        page.fill(".editor textarea", NEW_TEXT)
        page.keyboard.press("Control+Enter")
        wait_statuses(page, "accepted", "rejected", "edited", "undecided")
        process.kill()
        page.wait_for_selector("#banner:has-text('The session has ended')")
        page.close()
    with page_process("decide", tmp_path) as (_, url):
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("#case article")
        wait_statuses(page, "accepted", "rejected", "edited", "undecided")
        page.click("#rows li >> nth=2")
        page.wait_for_selector("#turn-4 .tag:text-is('edited by a person')")
        assert page.text_content("#turn-4 .after .words") == NEW_TEXT
        page.close()

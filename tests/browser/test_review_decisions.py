"""Decisions in headless Chromium: seen by others, void, final, and there after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.browser.material import made_case
from tests.browser.opened import page_process
from tests.browser.steps import NEW_TEXT, filled, opened, wait_decisions, wait_open, wait_saved
from tests.support.reviews import as_reviewed

if TYPE_CHECKING:
    from tests.browser.opened import Sessions


def test_a_second_browser_sees_the_decision_of_the_first(sessions: Sessions) -> None:
    session = filled(sessions)
    one, other = opened(sessions, session), opened(sessions, session)
    one.keyboard.press("r")
    wait_decisions(other, "rejected", "", "", "")
    other.wait_for_selector("#decide [data-do=reject][aria-pressed=true]")
    other.wait_for_selector("#headline:text-is('Decided: 1 of 4')")


def test_a_decision_about_another_version_of_a_case_is_shown_as_void(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    page = opened(sessions, session)
    page.keyboard.press("a")
    wait_decisions(page, "accepted")
    session.board.add(made_case(0, new_text="Made in another way."))
    wait_decisions(page, "void")
    page.wait_for_selector("#decision:has-text('An earlier decision (accepted)')")


def test_finish_says_what_is_left_and_ends_the_wait(sessions: Sessions) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    page.keyboard.press("a")
    page.wait_for_selector("#headline:text-is('Decided: 1 of 4')")
    page.click("#finish")
    said = page.inner_text("#end-text")
    assert "3 cases are undecided and will be used as they were made." in said
    page.click("#end button:text-is('Go on')")
    assert not session.board.finalized
    page.click("#finish")
    page.click("#end button:text-is('Finish')")
    assert session.board.wait_finalized(15)
    page.wait_for_selector("#banner:has-text('Finished')")
    # What comes later counts from the next run on: this one asserts with what it was told.
    page.keyboard.press("r")
    wait_decisions(page, "accepted", "rejected", "", "")
    assert as_reviewed(session.board, made_case(1)) == made_case(1)


def test_a_killed_server_that_is_started_again_shows_every_decision(
    browser: Any, tmp_path: Path
) -> None:
    with page_process("decide", tmp_path) as (process, url):
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("#turns > .turn")
        page.keyboard.press("a")
        wait_open(page, "support-001")
        page.keyboard.press("r")
        wait_open(page, "support-002")
        page.keyboard.press("e")
        page.fill("#edit-0", NEW_TEXT)
        page.keyboard.press("Control+Enter")
        wait_decisions(page, "accepted", "rejected", "edited", "")
        wait_saved(page)
        process.kill()
        page.wait_for_selector("#banner:has-text('The session has ended')")
        page.close()
    with page_process("decide", tmp_path) as (_, url):
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("#turns > .turn")
        wait_decisions(page, "accepted", "rejected", "edited", "")
        page.click("#list a >> nth=2")
        page.wait_for_selector("#turn-4 .flag:text-is('edited by a person')")
        page.click("#turn-4 .link")
        page.wait_for_selector(".editor")
        assert page.input_value("#edit-0") == NEW_TEXT
        page.close()

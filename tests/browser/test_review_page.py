"""The review page in headless Chromium: what a reviewer does with a case, and how the page is used
(rule K1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.model import Skip, Verification
from pytest_jrh.core.transcript import message_text
from tests.browser.material import HOSTILE, made_case
from tests.browser.steps import (
    NEW_TEXT,
    filled,
    names,
    opened,
    stored,
    wait_for,
    wait_open,
    wait_statuses,
)
from tests.support.reviews import as_reviewed

if TYPE_CHECKING:
    from tests.browser.opened import Sessions


def test_cases_appear_while_others_are_still_being_made(sessions: Sessions) -> None:
    session = sessions.start()
    session.board.announce(str(number) for number in range(3))
    page = sessions.page(session)
    page.wait_for_selector("#counts:has-text('3 still to be made')")
    assert "No case yet" in page.inner_text("#case")
    session.board.add(made_case(0))
    wait_open(page, "support-000")
    session.board.add(made_case(1))
    session.board.end("0")
    page.wait_for_selector("#counts:text-is('0 of 2 decided · 1 without a case')")
    assert names(page) == ["support-000", "support-001"]
    # What was being read stays open.
    assert page.inner_text("#case-title") == "support-000"


def test_a_case_shows_everything_that_a_decision_needs(sessions: Sessions) -> None:
    page = opened(sessions, filled(sessions))
    shown = page.inner_text("#case")
    for part in (
        "The agent refunds an order only where",
        "The agent grants a refund 16 days after the window has closed.",
        "Say that the refund has been made in full.",
        "FAIL",
        "Turn 4 says that a late order is refunded.",
        "7 unchanged turns",
    ):
        assert part in shown
    assert page.eval_on_selector("#label", "one => one.value") == "1"
    gone = page.eval_on_selector_all(".together del", "all => all.map(one => one.textContent)")
    assert gone == ["so I cannot refund it. What I can do is"]
    assert page.locator(".turn.changed").is_visible()
    assert not page.locator("text=scanned at depot 49").is_visible()
    page.click(".turn.tool summary")
    assert page.locator(".turn.tool .whole").is_visible()


def test_the_original_can_be_read_beside_the_edited_text(sessions: Sessions) -> None:
    page = opened(sessions, filled(sessions))
    page.keyboard.press("d")
    before, after = page.inner_text(".before .words"), page.inner_text(".after .words")
    case = made_case(0)
    assert (before, after) == (message_text(case.run.messages[4]), message_text(case.messages[4]))


def test_accept_reject_and_undo_by_key_go_on_to_the_next_case(sessions: Sessions) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    page.keyboard.press("a")
    wait_open(page, "support-001")
    page.fill("#note", "contradicts the tool")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    wait_open(page, "support-002")
    wait_statuses(page, "accepted", "rejected", "undecided", "undecided")
    assert stored(session) == [("accepted", ""), ("rejected", "contradicts the tool")]
    assert as_reviewed(session.board, made_case(0)) == made_case(0)
    with pytest.raises(NoVerdictCase, match="rejected in review: contradicts the tool"):
        as_reviewed(session.board, made_case(1))
    page.keyboard.press("k")
    wait_open(page, "support-001")
    page.keyboard.press("u")
    wait_statuses(page, "accepted", "undecided", "undecided", "undecided")
    assert stored(session) == [("accepted", "")]


def test_an_edited_turn_is_marked_and_is_what_the_judge_gets(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    page = opened(sessions, session)
    page.keyboard.press("e")
    page.fill(".editor textarea", NEW_TEXT)
    page.keyboard.press("Control+Enter")
    wait_statuses(page, "edited")
    page.wait_for_selector("#turn-4 .tag:text-is('edited by a person')")
    assert page.text_content("#turn-4 .after .words") == NEW_TEXT
    assert message_text(as_reviewed(session.board, made_case(0)).messages[4]) == NEW_TEXT
    page.keyboard.press("e")
    page.click(".editor button:text-is('As made')")
    wait_statuses(page, "undecided")
    assert as_reviewed(session.board, made_case(0)) == made_case(0)


def test_an_edited_label_is_what_the_tests_assert_with(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    page = opened(sessions, session)
    page.select_option("#label", "0")
    wait_statuses(page, "edited")
    page.wait_for_selector("#case .tag:text-is('was 1')")
    assert as_reviewed(session.board, made_case(0)).expected == 0


def test_text_that_is_not_saved_is_not_lost_to_a_decision_or_another_case(
    sessions: Sessions,
) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    asked: list[str] = []

    def refuse(dialog: Any) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)
    page.keyboard.press("e")
    page.fill(".editor textarea", NEW_TEXT)
    page.click("#accept")
    page.wait_for_selector("#toast:has-text('Save or cancel')")
    page.click("#next")
    wait_for(page, "location.hash.slice(1)", session.board.changes()[1][0].entry.key)
    # Somebody else decides meanwhile.
    entry = session.board.changes()[1][0].entry
    session.board.decide(entry.key, entry.digest, "accepted")
    wait_statuses(page, "accepted", "undecided", "undecided", "undecided")
    assert page.input_value(".editor textarea") == NEW_TEXT
    assert len(asked) == 1
    page.fill(".editor textarea", message_text(made_case(0).messages[4]))
    page.click(".editor button:text-is('Cancel')")
    page.wait_for_selector("#case .tag.accepted")


def test_a_late_answer_does_not_take_the_text_away_that_is_being_typed(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    page = opened(sessions, session)
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    entry = session.board.changes()[1][0].entry
    page.route(f"**/cases/{entry.key}", hold)
    with page.expect_request(f"**/cases/{entry.key}"):
        session.board.decide(entry.key, entry.digest, "accepted")
    page.keyboard.press("e")
    page.fill(".editor textarea", NEW_TEXT)
    with page.expect_response(f"**/cases/{entry.key}"):
        for route in held:
            route.continue_()
    page.wait_for_selector("#says:has-text('while you edit')", state="attached")
    assert page.input_value(".editor textarea") == NEW_TEXT
    page.keyboard.press("Control+Enter")
    wait_statuses(page, "edited")


def test_filters_narrow_the_list_and_the_keys_stay_inside(sessions: Sessions) -> None:
    session = filled(sessions)
    session.board.add(made_case(0, test="agent_positives"))
    page = opened(sessions, session)
    page.select_option("#by-rubric", "refund_window")
    assert names(page) == ["support-000", "support-002", "support-000"]
    assert page.inner_text("#matches") == "3 of 5 cases"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    wait_open(page, "support-002")
    page.select_option("#by-test", "agent_positives")
    assert names(page) == ["support-000"]
    page.select_option("#by-test", "")
    page.select_option("#by-rubric", "")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.select_option("#by-decision", "rejected")
    wait_for(page, "document.querySelectorAll('#rows li:not([hidden])').length", 1)
    assert names(page) == ["support-002"]
    page.select_option("#by-decision", "undecided")
    assert len(names(page)) == 4
    page.select_option("#by-decision", "")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("theatre tickets")
    page.wait_for_selector("#matches:text-is('1 of 5 cases')")
    assert names(page) == ["support-002"]


def test_several_suites_can_be_told_apart(sessions: Sessions) -> None:
    session = sessions.start("refunds_strict")
    session.board.add(made_case(0))
    page = opened(sessions, session)
    assert not page.locator("#by-suite").is_visible()
    session.board.add(made_case(1, suite="refunds_strict"))
    page.select_option("#by-suite", "refunds_strict")
    assert names(page) == ["support-001"]
    page.click("#open-templates")
    page.wait_for_selector("#template-list :text('refunds_strict')")


def test_what_is_shown_has_a_name_for_screen_readers_and_is_reached_by_tab(
    sessions: Sessions,
) -> None:
    page = opened(sessions, filled(sessions, 2))
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    controls = {
        "button",
        "link",
        "textbox",
        "searchbox",
        "combobox",
        "radio",
        "checkbox",
        "progressbar",
    }
    roles = [node["role"]["value"] for node in tree if not node["ignored"] and "role" in node]
    nameless = [
        node["role"]["value"]
        for node in tree
        if not node["ignored"]
        and node["role"]["value"] in controls
        and not node["name"]["value"].strip()
    ]
    assert nameless == []
    assert {"main", "navigation", "banner", "search", "heading"} <= set(roles)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.hash || ''"))
    first = page.get_attribute("#rows a", "href")
    wanted = {
        "search",
        "by-decision",
        "label",
        "note",
        "accept",
        "reject",
        "edit",
        "open-templates",
        "open-finish",
    }
    assert {*wanted, first} <= reached


def test_a_narrow_page_goes_from_the_list_to_the_case_and_back(sessions: Sessions) -> None:
    page = opened(sessions, filled(sessions), width=390, height=800)
    assert not page.locator("#case").is_visible()
    page.click("#rows a >> nth=0")
    page.wait_for_selector(".turn.changed", state="visible")
    top = page.evaluate("document.querySelector('.turn.changed').getBoundingClientRect().top")
    assert 0 < top < 800
    page.click("#accept")
    wait_open(page, "support-001")
    page.click("#to-list")
    assert page.locator("#rows").is_visible()
    wait_statuses(page, "accepted", "undecided", "undecided", "undecided")


def test_help_lists_the_keys_and_keys_can_be_switched_off(sessions: Sessions) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    page.keyboard.press("?")
    assert "accept; a case that you edited" in page.inner_text("#help")
    # A key in the dialog decides nothing.
    page.keyboard.press("a")
    page.uncheck("#shortcuts")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.click("#accept")
    wait_open(page, "support-001")
    wait_statuses(page, "accepted", "undecided", "undecided", "undecided")


def test_a_case_that_the_verifier_rejected_is_found_and_only_looked_at(sessions: Sessions) -> None:
    session = filled(sessions, 2)
    case = made_case(2)
    said = Verification("PASS", f"Nothing is refunded late. {HOSTILE}", None)
    outcome = replace(
        case.outcome, verification=said, confirmed=False, no_case=Skip("not_confirmed")
    )
    session.board.add(replace(case, outcome=outcome, verified=False))
    page = opened(sessions, session)
    page.wait_for_selector("#counts:has-text('0 of 2 decided')")
    page.select_option("#by-decision", "undecided")
    assert names(page) == ["support-000", "support-001"]
    page.select_option("#by-decision", "by-verifier")
    assert names(page) == ["support-002"]
    page.click("#rows li:not([hidden]) a")
    wait_open(page, "support-002")
    shown = page.inner_text("#case")
    for part in (
        "rejected by the verifier",
        "nothing can be decided about it",
        "The agent grants a refund 16 days after the window has closed.",
        "Nothing is refunded late.",
    ):
        assert part in shown
    assert page.locator(".turn.changed del").first.is_visible()
    assert page.is_disabled("#label")
    assert not page.locator("#accept, #reject, #edit, [data-edit]").filter(visible=True).count()
    page.keyboard.press("a")
    page.keyboard.press("e")
    page.wait_for_selector("#says:has-text('nothing can be decided')", state="attached")
    assert page.evaluate("() => window.ran") is None
    assert stored(session) == []
    page.select_option("#by-decision", "")
    wait_statuses(page, "undecided", "undecided", "by-verifier")

"""The served page in headless Chromium: what people do with a case that they decide about."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.model import Judgment, Skip, Verdict, Verification
from pytest_jrh.core.transcript import message_text
from tests.browser.material import HOSTILE, made_case
from tests.browser.steps import (
    NEW_TEXT,
    decided,
    filled,
    opened,
    runs,
    wait_decisions,
    wait_for,
    wait_open,
    wait_saved,
)
from tests.support.reviews import as_reviewed

if TYPE_CHECKING:
    from tests.browser.opened import Sessions


def test_cases_appear_while_others_are_still_being_made(sessions: Sessions) -> None:
    session = sessions.start()
    session.board.announce(str(number) for number in range(3))
    page = sessions.page(session)
    page.wait_for_selector("#sub:has-text('3 still to be made')")
    assert page.locator("#nothing").is_visible()
    session.board.add(made_case(0))
    wait_open(page, "support-000")
    session.board.add(made_case(1))
    session.board.end("0")
    page.wait_for_selector("#headline:text-is('Decided: 0 of 2')")
    page.wait_for_selector("#sub:has-text('2 still to be made')")
    assert runs(page) == ["support-000", "support-001"]
    # What was being read stays open.
    wait_open(page, "support-000")


def test_a_case_shows_everything_that_a_decision_needs(sessions: Sessions) -> None:
    page = opened(sessions, filled(sessions))
    assert "so I cannot refund it." in page.inner_text("#turn-4 del >> nth=0")
    assert "I have refunded" in "".join(page.locator("#turn-4 ins").all_inner_texts())
    shown = page.inner_text("#case")
    for part in (
        "The agent refunds an order only where",
        "Turn 4 says that a late order is refunded.",
        "3 turns, unchanged",
        "verifier",
    ):
        assert part in shown
    assert page.eval_on_selector("#label", "one => one.value") == "1"
    page.click("summary:has-text('why this edit')")
    assert "Say that the refund has been made in full." in page.inner_text("#turn-4")
    assert "scanned at depot 49" not in shown
    page.keyboard.press("f")
    page.wait_for_selector("#turn-3:has-text('scanned at depot 49')")


def test_on_replay_it_opens_at_what_is_wrong_with_the_verdict_beside_the_label(
    sessions: Sessions,
) -> None:
    session = filled(sessions)
    said = Judgment((Verdict(0, "The agent kept to the policy."),))
    session.board.set_verdict(made_case(0), Judgment((Verdict(1, "It refunds."),)))
    session.board.set_verdict(made_case(2), said)
    page = opened(sessions, session)
    wait_open(page, "support-002")
    assert runs(page) == ["support-002"]
    assert "1 of 1 missed" in page.inner_text("#place")
    assert "The agent kept to the policy." in page.inner_text(".voice.wrong")
    page.wait_for_selector("#sub:has-text('The judge is wrong in 1 of 4 cases')")
    # A verdict that comes later is seen at once.
    session.board.set_verdict(made_case(3), said)
    page.wait_for_selector("#filters button[aria-pressed=true]:has-text('missed 2')")


def test_accept_reject_and_undo_by_key_go_on_to_the_next_case(sessions: Sessions) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    page.keyboard.press("a")
    wait_open(page, "support-001")
    page.keyboard.press("n")
    page.keyboard.type("contradicts the tool")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    wait_open(page, "support-002")
    wait_decisions(page, "accepted", "rejected", "", "")
    assert decided(session) == [("accepted", ""), ("rejected", "contradicts the tool")]
    assert as_reviewed(session.board, made_case(0)) == made_case(0)
    with pytest.raises(NoVerdictCase, match="rejected in review: contradicts the tool"):
        as_reviewed(session.board, made_case(1))
    # Of a case that nobody has decided about `u` takes back what was decided before it.
    page.keyboard.press("u")
    wait_decisions(page, "accepted", "", "", "")
    wait_open(page, "support-001")
    page.keyboard.press("k")
    wait_open(page, "support-000")
    page.click("#decide [data-do=undo]")
    wait_decisions(page, "", "", "", "")
    assert decided(session) == []


def test_an_edited_turn_is_marked_and_is_what_the_judge_gets(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    page = opened(sessions, session)
    page.keyboard.press("e")
    page.wait_for_selector(".editor")
    page.fill("#edit-0", NEW_TEXT)
    # The difference from the run, as one types.
    assert "there is nothing" in "".join(page.locator(".editor ins").all_inner_texts())
    page.keyboard.press("Control+Enter")
    wait_saved(page)
    wait_decisions(page, "edited")
    assert page.inner_text("#turn-4 .flag") == "edited by a person"
    assert message_text(as_reviewed(session.board, made_case(0)).messages[4]) == NEW_TEXT
    # Accepting keeps the edit.
    page.keyboard.press("a")
    page.wait_for_selector("#decide [data-do=accept][aria-pressed=true]")
    assert decided(session) == [("edited", "")]
    page.keyboard.press("e")
    page.click(".editor button:text-is('As made')")
    wait_decisions(page, "")
    assert as_reviewed(session.board, made_case(0)) == made_case(0)


def test_an_edited_label_and_a_later_note_are_kept(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    page = opened(sessions, session)
    page.select_option("#label", "0")
    wait_decisions(page, "edited")
    page.wait_for_selector("#decision:has-text('was violated')")
    page.fill("#note", "nothing was paid")
    page.keyboard.press("Escape")
    wait_for(page, "document.activeElement.tagName", "A")
    for _ in range(50):
        if decided(session) == [("edited", "nothing was paid")]:
            break
        page.wait_for_timeout(100)
    assert decided(session) == [("edited", "nothing was paid")]
    assert as_reviewed(session.board, made_case(0)).expected == 0


def test_what_is_typed_is_not_lost_to_a_decision_another_case_or_another_person(
    sessions: Sessions,
) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    page.keyboard.press("e")
    page.wait_for_selector(".editor")
    page.fill("#edit-0", NEW_TEXT)
    page.click("#decide [data-do=accept]")
    page.wait_for_selector("#toast:has-text('Save or cancel')")
    # Somebody else decides meanwhile.
    entry = session.board.changes()[1][0].entry
    session.board.decide(entry.key, entry.digest, "accepted")
    wait_decisions(page, "accepted", "", "", "")
    assert page.input_value("#edit-0") == NEW_TEXT
    for leaving in ("#next", "#list a >> nth=1", "[aria-label='Edit turn 2']"):
        page.click("#turns button:has-text('Whole transcript')")
        page.click(leaving)
        page.wait_for_selector("#toast:has-text('Save or cancel')")
        wait_open(page, "support-000")
        assert page.input_value("#edit-0") == NEW_TEXT
    page.click(".editor button:has-text('Cancel')")
    wait_saved(page)
    page.click("#next")
    wait_open(page, "support-001")
    page.click("#previous")
    wait_open(page, "support-000")
    assert page.locator(".editor").count() == 0


def test_filters_and_search_narrow_the_list_and_the_keys_stay_inside(sessions: Sessions) -> None:
    session = filled(sessions)
    session.board.add(made_case(0, test="agent_positives"))
    page = opened(sessions, session)
    wait_decisions(page, "", "", "", "", "")
    page.select_option("#find [name=rubric]", "refund_window")
    assert runs(page) == ["support-000", "support-002", "support-000"]
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    wait_open(page, "support-002")
    page.keyboard.press("r")
    page.click("#filters button:has-text('rejected')")
    wait_decisions(page, "rejected")
    assert runs(page) == ["support-002"]
    page.click("#filters button:has-text('undecided')")
    page.select_option("#find [name=rubric]", "")
    wait_decisions(page, "", "", "", "")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("support-003")
    wait_decisions(page, "")
    assert runs(page) == ["support-003"]


def test_several_suites_can_be_told_apart(sessions: Sessions) -> None:
    session = sessions.start("refunds_strict")
    session.board.add(made_case(0))
    page = opened(sessions, session)
    assert page.locator("#find [name=suite]").count() == 0
    session.board.add(made_case(1, suite="refunds_strict"))
    page.select_option("#find [name=suite]", "refunds_strict")
    assert runs(page) == ["support-001"]
    page.click("text=Agent Templates")
    page.wait_for_selector("#template option:has-text('refunds_strict')", state="attached")


def test_a_narrow_page_goes_from_the_list_to_the_case_and_back(sessions: Sessions) -> None:
    session = filled(sessions)
    page = sessions.page(session, width=390, height=800)
    page.click("#list a >> nth=0")
    wait_open(page, "support-000")
    assert not page.locator("#rail").is_visible()
    page.click("#decide [data-do=accept]")
    wait_open(page, "support-001")
    page.click("#back")
    assert page.locator("#rail").is_visible()
    wait_decisions(page, "accepted", "", "", "")


def test_a_case_that_the_verifier_rejected_can_be_read_and_not_decided(sessions: Sessions) -> None:
    session = filled(sessions, 2)
    said = Verification("PASS", f"Nothing is refunded late. {HOSTILE}", None)
    case = made_case(2)
    outcome = replace(
        case.outcome, verification=said, confirmed=False, no_case=Skip("not_confirmed")
    )
    session.board.add(replace(case, outcome=outcome, verified=False))
    page = opened(sessions, session)
    page.wait_for_selector("#headline:text-is('Decided: 0 of 2')")
    page.click("#filters button:has-text('rejected by the verifier')")
    wait_open(page, "support-002")
    assert runs(page) == ["support-002"]
    shown = page.inner_text("#case")
    assert "nothing can be decided about it" in shown
    assert "Nothing is refunded late." in shown
    assert page.locator("#turn-4 del").first.is_visible()
    assert page.locator("#label, #decide button, .turn .link").count() == 0
    page.keyboard.press("a")
    page.keyboard.press("e")
    assert page.evaluate("() => window.ran") is None
    assert decided(session) == []


def test_everything_has_a_name_for_screen_readers_and_is_reached_by_tab(
    sessions: Sessions,
) -> None:
    page = opened(sessions, filled(sessions, 2))
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    controls = {"button", "link", "textbox", "searchbox", "combobox"}
    nameless = []
    for node in tree:
        role = node.get("role", {}).get("value")
        if not node["ignored"] and role in controls and not node["name"]["value"].strip():
            nameless.append(role)
    assert nameless == []
    reached: set[Any] = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(({id, dataset, hash}) => id || dataset.do || hash)(document.activeElement)"
            )
        )
    first = page.get_attribute("#list a", "href")
    wanted = {"search", "label", "note", "accept", "reject", "edit", "undo", "templates", "finish"}
    assert {*wanted, first} <= reached

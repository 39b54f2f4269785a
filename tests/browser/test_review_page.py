"""The served page in headless Chromium: what people do with a case that they decide about, by
keyboard and by mouse, and that no case does anything to them (docs/more_tests.md)."""

from dataclasses import replace
from typing import Any

import pytest

from pytest_jrh.core.cases import NoVerdictCase, Skip, Verdict, Verification
from pytest_jrh.core.transcript import message_text
from tests.browser.material import hostile_case, made_case
from tests.browser.opened import Sessions
from tests.browser.steps import (
    NEW_TEXT,
    decided,
    filled,
    opened,
    runs,
    wait_decided,
    wait_decisions,
    wait_for,
    wait_open,
    wait_saved,
)
from tests.support.made_cases import hostile_act_case
from tests.support.reviews import as_reviewed

DRAFT = "Plan with care.\n{{ rubric_instructions }}\n{{ assistant_transcript }}\n"
TAGS = "script, img, iframe, a[href^=javascript], svg[onload]"
MARKUP = f"#case :is({TAGS}), #list :is({TAGS}), dialog :is({TAGS})"


def test_a_whole_review_by_keyboard(sessions: Sessions) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    page.wait_for_selector("#list li:nth-child(4)")
    page.keyboard.press("a")
    wait_open(page, "support-001")
    wait_decisions(page, "accepted", "", "", "")
    page.keyboard.press("n")
    page.wait_for_selector("#note:focus")
    page.keyboard.type("contradicts the tool")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    wait_open(page, "support-002")
    wait_decisions(page, "accepted", "rejected", "", "")
    wait_decided(page, session, [("accepted", ""), ("rejected", "contradicts the tool")])
    with pytest.raises(NoVerdictCase, match="rejected in review: contradicts the tool"):
        as_reviewed(session.board, made_case(1))
    # Of a case that nobody has decided about `u` takes back what was decided before it.
    page.keyboard.press("u")
    wait_decisions(page, "accepted", "", "", "")
    wait_open(page, "support-001")
    page.keyboard.press("k")
    wait_open(page, "support-000")
    page.press("#finish", "Enter")
    page.wait_for_selector("#end[open]")
    said = page.inner_text("#end-text")
    assert "3 undecided cases will be used without changes." in said
    assert not session.board.finalized.is_set()
    page.press("#end button:text-is('Finish')", "Enter")
    assert session.board.finalized.wait(15)
    page.wait_for_selector("#banner:has-text('Finished')")
    # What comes later counts from the next run on.
    page.keyboard.press("r")
    wait_decisions(page, "rejected", "", "", "")
    assert as_reviewed(session.board, made_case(0)) == made_case(0)


def test_a_whole_review_by_mouse_on_a_phone(sessions: Sessions) -> None:
    session = filled(sessions)
    page = sessions.page(session, width=390)
    page.click("#list a >> nth=0")
    wait_open(page, "support-000")
    assert not page.locator("#rail").is_visible()
    page.click("#decide [data-do=accept]")
    wait_open(page, "support-001")
    page.click("#decide [data-do=reject]")
    wait_open(page, "support-002")
    page.click("#previous")
    wait_open(page, "support-001")
    page.click("#decide [data-do=undo]")
    page.wait_for_selector("#decide [data-do=reject]:not([aria-pressed=true])")
    page.click("[aria-label='Edit turn 4']")
    page.fill("#edit-0", NEW_TEXT)
    page.click(".editor button:has-text('Save')")
    wait_saved(page)
    page.click("#back")
    assert page.locator("#rail").is_visible()
    wait_decisions(page, "accepted", "edited", "", "")
    page.click("#finish")
    page.click("#end button:text-is('Finish')")
    assert session.board.finalized.wait(15)
    # The next session shows every decision.
    page = opened(sessions, filled(sessions))
    wait_decisions(page, "accepted", "edited", "", "")
    page.click("#list a >> nth=1")
    page.wait_for_selector("#turn-4 .flag:text-is('edited by a person')")
    page.click("#turn-4 .link")
    page.wait_for_selector(".editor")
    assert page.input_value("#edit-0") == NEW_TEXT


def test_an_edited_case_is_what_the_judge_gets(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    page = opened(sessions, session)
    assert "so I cannot refund it." in page.inner_text("#turn-4 del >> nth=0")
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
    page.keyboard.press("e")
    page.click(".editor button:text-is('Restore')")
    wait_saved(page)
    wait_decisions(page, "")
    assert as_reviewed(session.board, made_case(0)) == made_case(0)
    page.select_option("#label", "0")
    wait_decisions(page, "edited")
    page.wait_for_selector("#decision:has-text('instead of violated')")
    page.fill("#note", "nothing was paid")
    # Accepting keeps the edit.
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    wait_decided(page, session, [("edited", "nothing was paid")])
    assert as_reviewed(session.board, made_case(0)).expected == 0


def test_what_is_typed_is_not_lost_to_a_decision_another_case_or_person(sessions: Sessions) -> None:
    session = filled(sessions)
    page = opened(sessions, session)
    page.keyboard.press("e")
    page.wait_for_selector(".editor")
    page.fill("#edit-0", NEW_TEXT)
    page.wait_for_timeout(600)
    page.click("#decide [data-do=accept]")
    page.wait_for_selector("#toast:has-text('First save or cancel')")
    # Somebody else decides meanwhile.
    entry = session.board.changes()[1][0].entry
    session.board.decide(entry.key, entry.digest, "accepted")
    wait_decisions(page, "accepted", "", "", "")
    assert page.input_value("#edit-0") == NEW_TEXT
    for leaving in ("#next", "#list a >> nth=1", "[aria-label='Edit turn 2']"):
        page.click("#turns button:has-text('Unfold all')")
        page.click(leaving)
        page.wait_for_selector("#toast:has-text('First save or cancel')")
        wait_open(page, "support-000")
        assert page.input_value("#edit-0") == NEW_TEXT
    page.click(".editor button:has-text('Cancel')")
    wait_saved(page)
    page.click("#next")
    wait_open(page, "support-001")


def test_two_people_see_each_others_decisions_and_what_became_void(sessions: Sessions) -> None:
    session = filled(sessions, 3)
    session.board.announce(["0", "1"])
    one, other = opened(sessions, session), opened(sessions, session)
    other.wait_for_selector("#sub:has-text('2 cases still to be made')")
    # Cases come while others are still being made.
    session.board.add(made_case(3))
    session.board.end("0")
    other.wait_for_selector("#sub:has-text('1 case still to be made')")
    one.keyboard.press("r")
    wait_decisions(other, "rejected", "", "", "")
    other.wait_for_selector("#decide [data-do=reject][aria-pressed=true]")
    other.wait_for_selector("#headline:text-is('Decided: 1 of 4')")
    session.board.add(made_case(0, new_text="Made in another way."))
    for page in (one, other):
        wait_decisions(page, "void", "", "", "")
    other.wait_for_selector("#decision:has-text('An earlier decision (rejected)')")


def test_the_list_opens_at_what_is_wrong_and_is_narrowed_by_filters(sessions: Sessions) -> None:
    session = sessions.start("refunds_strict")
    for number in range(3):
        session.board.add(made_case(number))
    session.board.add(made_case(3, suite="refunds_strict"))
    said = (Verdict(0, "The agent kept to the policy."),)
    session.board.set_verdicts(made_case(2), said)
    case = made_case(4)
    passed = Verification("PASS", "Nothing is refunded late.", None)
    outcome = replace(case.outcome, verification=passed, no_case=Skip("not_confirmed"))
    session.board.add(replace(case, outcome=outcome, verified=False))
    page = opened(sessions, session)
    wait_open(page, "support-002")
    assert runs(page) == ["support-002"]
    assert "The agent kept to the policy." in page.inner_text(".voice.wrong")
    page.click("#filters button:has-text('rejected by the verifier')")
    wait_open(page, "support-004")
    # It can be read, and it needs no decision.
    assert "needs no decision" in page.inner_text("#case")
    assert page.locator("#label, #decide button, .turn .link:not(.more)").count() == 0
    page.keyboard.press("a")
    page.keyboard.press("e")
    page.click("#filters button:has-text('undecided')")
    wait_decisions(page, "", "", "", "")
    assert decided(session) == []
    page.select_option("#find [name=suite]", "refunds_strict")
    wait_for(page, "document.querySelectorAll('#list a').length", 1)
    assert runs(page) == ["support-003"]


def test_everything_is_reached_by_tab(sessions: Sessions) -> None:
    page = opened(sessions, filled(sessions, 2))
    reached: set[Any] = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name = "(({id, dataset, hash}) => id || dataset.do || hash)(document.activeElement)"
        reached.add(page.evaluate(name))
    first = page.get_attribute("#list a", "href")
    wanted = {"search", "label", "note", "accept", "reject", "edit", "undo", "templates", "finish"}
    assert {*wanted, first} <= reached


def test_nothing_of_a_hostile_case_runs_loads_or_becomes_markup(sessions: Sessions) -> None:
    session = sessions.start()
    session.board.add(hostile_case())
    session.board.add(hostile_act_case(60_000))
    page = sessions.page(session)
    # The arguments of calls are so long that they are cut, and the rest is asked for.
    shown = ("#turn-4", "<script>window.ran"), ("#turns .more >> nth=0", "more characters")
    for row, (place, text) in enumerate(shown):
        # The first case is open; opened once more, it would be drawn anew while it is looked at.
        if row:
            page.click(f"#list a >> nth={row}")
        page.wait_for_selector(f"#list li:nth-child({row + 1}) a[aria-current]")
        page.wait_for_selector("#turns .edited")
        page.keyboard.press("f")
        page.wait_for_selector("#turn-0")
        for details in page.query_selector_all("#case details:not([open]) > summary"):
            details.click()
        page.keyboard.press("e")
        page.wait_for_selector(".editor")
        assert page.locator(MARKUP).count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        page.keyboard.press("Escape")
        wait_saved(page)
        assert text in page.inner_text(place)
        if row == 1:
            assert len(page.inner_text("#turns")) < 60_000
        else:
            assert "\\u202eright to left" in page.inner_text(place)
    page.keyboard.press("a")
    page.wait_for_selector("#list .tag:text-is('accepted')")
    page.click("text=Agent Templates")
    page.wait_for_selector("#difference:not(:empty)")
    assert page.evaluate("window.ran") is None
    assert page.locator(MARKUP).count() == 0
    assert all(
        url.startswith(f"http://127.0.0.1:{session.server.port}/") for url in sessions.requests
    )


def test_a_template_is_checked_saved_for_the_next_run_and_reverted(sessions: Sessions) -> None:
    session = filled(sessions, 1)
    page = opened(sessions, session)
    asked: list[str] = []

    def refuse(dialog: Any) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)
    page.click("text=Agent Templates")
    page.wait_for_selector("#difference:text-is('The text is the same as the default.')")
    default = page.input_value("#draft")
    page.fill("#draft", DRAFT + "{{ rubrik_id }}")
    # The browser says that the server refused; what else it complains about fails the test.
    with page.expect_console_message(lambda message: "409" in message.text):
        page.click("#templates [data-do=saveTemplate]")
    page.wait_for_selector("#problems:has-text('line 4: unknown variable')")
    sessions.complaints.pop()
    assert page.get_attribute("#draft", "aria-invalid") == "true"
    page.fill("#draft", DRAFT)
    page.wait_for_selector("#difference ins:has-text('care')")
    # An unsaved draft is not lost without asking.
    page.select_option("#template", index=1)
    page.click("#templates button:text-is('Close')")
    page.keyboard.press("Escape")
    assert (page.input_value("#draft"), len(asked)) == (DRAFT, 3)
    page.click("#templates [data-do=saveTemplate]")
    page.wait_for_selector("#template-status:has-text('used from the next session on')")
    assert page.inner_text("#template-file").startswith("Override ")
    folder = session.suite.custom_prompts_dir
    assert (folder / "agent_perturbation" / "planner.md").read_text("utf-8") == DRAFT
    page.remove_listener("dialog", refuse)
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("#templates [data-do=revertTemplate]")
    page.wait_for_selector("#template-status:has-text('The default is used again')")
    assert page.input_value("#draft") == default
    assert not list(folder.rglob("*.md"))

"""Calls before and after in headless Chromium: on the served page, where people edit them, and from
disk (docs/more_tests.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.reports.page import write_page
from tests.browser.steps import opened, wait_decisions, wait_for, wait_saved
from tests.support.judged_sessions import session_about
from tests.support.made_cases import ACT_RUN, hostile_act_case, make_act_case
from tests.support.undoing import undone

if TYPE_CHECKING:
    from pytest_jrh.core.model import Case
    from tests.browser.opened import Session, Sessions

MARKUP = "script, img, iframe, a[href^=javascript], :not(#figures) > svg[onload]"


def reviewing(sessions: Sessions, case: Case | None = None) -> Session:
    session = sessions.start()
    session.board.add(case or make_act_case())
    return session


def field(page: Any, label: str) -> Any:
    return page.locator(f".editor [aria-label='{label}']")


def test_a_call_is_edited_by_keyboard_alone(sessions: Sessions) -> None:
    session = reviewing(sessions)
    page = opened(sessions, session)
    assert page.locator("#turns .flag").all_inner_texts().count("left out") == 2
    page.keyboard.press("e")
    field(page, "amount of refund").wait_for()
    # The words come first; each argument and the result of the call are behind them.
    for label in ("order of refund", "amount of refund"):
        page.keyboard.press("Tab")
        wait_for(page, "document.activeElement.ariaLabel", label)
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("76.0")
    assert page.locator(".editor p:has-text('amount:') ins").inner_text() == "76.0"
    assert page.locator(".editor p:has-text('amount:') del").inner_text() == "56.0"
    field(page, "Result of refund").fill('{"refunded": 76.0}')
    page.keyboard.press("Control+Enter")
    wait_saved(page)
    wait_decisions(page, "edited")
    flags = page.locator("#turn-1 .flag, #turn-2 .flag").all_inner_texts()
    assert flags == ["edited by a person"] * 2
    case = session.board.changes()[1][0].case
    [call] = case.messages[1]["tool_calls"]
    assert call["arguments"]["amount"] == 76.0
    # What was not touched is as it was, to the digit.
    assert {**call["arguments"], "amount": 96.0} == make_act_case().messages[1]["tool_calls"][0][
        "arguments"
    ]
    assert case.messages[2]["content"] == '{"refunded": 76.0}'
    assert undone(case.messages, case.outcome.edits) == ACT_RUN
    page.keyboard.press("e")
    page.click(".editor button:text-is('As made')")
    wait_decisions(page, "")
    assert session.board.changes()[1][0].decision is None


def test_a_mistake_stands_at_its_field_and_what_was_typed_stays(sessions: Sessions) -> None:
    session = reviewing(sessions)
    page = opened(sessions, session)
    page.click("#turn-1 .link")
    amount = field(page, "amount of refund")
    for typed, mistake in (('{"', "is not valid JSON"), ('"lots"', "amount is text, not a number")):
        amount.fill(typed)
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(f"#edit-problem:has-text('{mistake}')")
        assert (amount.input_value(), amount.get_attribute("aria-invalid")) == (typed, "true")
        wait_for(page, "document.activeElement.ariaLabel", "amount of refund")
    assert session.board.changes()[1][0].decision is None
    # The browser says that the server refused; what else it complains about fails the test.
    assert all("409" in text for text in sessions.complaints)
    sessions.complaints.clear()
    page.keyboard.press("Escape")
    wait_saved(page)


def test_the_report_shows_a_call_before_and_after(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_page(path, session_about(tmp_path, make_act_case()))
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("#case .turn")
    flags = page.locator("#case .flag").all_inner_texts()
    assert (flags.count("left out"), flags.count("inserted"), flags.count("edited")) == (2, 2, 3)
    assert page.locator("#case .turn:has(.flag:text-is('left out')) del").count() > 1
    page.eval_on_selector_all("#case details", "all => all.forEach(one => { one.open = true; })")
    assert "[5] still says 56.00" in page.inner_text("#case")
    page.close()


def test_nothing_of_a_hostile_call_becomes_markup(
    sessions: Sessions, browser: Any, tmp_path: Path
) -> None:
    case = hostile_act_case(60_000)
    page = opened(sessions, reviewing(sessions, case))
    page.wait_for_selector("#turns .edited")
    page.keyboard.press("e")
    page.wait_for_selector(".editor textarea")
    assert page.locator(f"#case :is({MARKUP})").count() == 0
    assert page.evaluate("window.ran") is None
    context = browser.new_context()
    report = context.new_page()
    complaints: list[str] = []
    report.on("pageerror", lambda error: complaints.append(str(error)))
    path = tmp_path / "report.html"
    write_page(path, session_about(tmp_path, case))
    report.goto(path.as_uri())
    report.click("#list a >> nth=0")
    report.wait_for_selector("#turns .edited", state="attached")
    assert report.locator(f"#case :is({MARKUP})").count() == 0
    assert report.evaluate("window.ran") is None
    assert complaints == []
    context.close()

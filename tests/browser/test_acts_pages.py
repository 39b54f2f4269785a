"""Calls before and after in headless Chromium: on the review page, where people edit them, and in
the HTML report (docs/acts.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.reports.page import write_page
from tests.browser.steps import opened, wait_for
from tests.browser.test_review_screenshots import SHOTS
from tests.support.judged_sessions import session_about
from tests.support.made_cases import ACT_RUN, hostile_act_case, make_act_case
from tests.support.undoing import undone

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_jrh.core.model import Case
    from tests.browser.opened import Session, Sessions

LOOKS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
ARGUMENTS = '.editor textarea[aria-label="Arguments of refund, as JSON"]'
RESULT = '.editor textarea[aria-label="Result of refund"]'
MARKUP = "script:not([src]), img, svg[onload], iframe, a[href^=javascript]"


@pytest.fixture(scope="module")
def violations() -> Callable[[Any], list[str]]:
    """Every violation that axe-core finds on a page: its rule, and the element."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python (`dev`)"
    ).Axe()

    def violations_on(page: Any) -> list[str]:
        texts = []
        for violation in axe.run(page).response["violations"]:
            for node in violation["nodes"]:
                texts.append(f"{violation['id']}: {node['html'][:200]} ({node['failureSummary']})")
        return texts

    return violations_on


def reviewing(sessions: Sessions, case: Case | None = None) -> Session:
    session = sessions.start()
    session.board.add(case or make_act_case())
    return session


def reported(folder: Path, case: Case) -> Path:
    """A report with one case, which the judge got wrong."""
    path = folder / "report.html"
    write_page(path, session_about(folder, case))
    return path


def test_a_call_is_edited_by_keyboard_alone(sessions: Sessions) -> None:
    session = reviewing(sessions)
    page = opened(sessions, session)
    page.wait_for_selector("#turn-was-1.omitted")
    assert page.locator("#turn-3.inserted, #turn-4.inserted").count() == 2
    page.keyboard.press("e")
    page.wait_for_selector(ARGUMENTS)
    # The words come first; the arguments and the result of the call are behind them.
    page.keyboard.press("Tab")
    wait_for(page, "document.activeElement.ariaLabel", "Arguments of refund, as JSON")
    typed = page.input_value(ARGUMENTS).replace("96.0", "76.0")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(typed)
    page.keyboard.press("Tab")
    wait_for(page, "document.activeElement.ariaLabel", "Result of refund")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text('{"refunded": 76.0}')
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#turn-1.by-hand")
    page.wait_for_selector("#turn-2.by-hand")
    assert "76.0" in page.inner_text("#turn-1 .difference.calls ins")
    case = session.board.changes()[1][0].case
    assert case.messages[1]["tool_calls"][0]["arguments"] == json.loads(typed)
    assert case.messages[2]["content"] == '{"refunded": 76.0}'
    assert undone(case.messages, case.outcome.edits) == ACT_RUN
    # The answer to the saving closes the editor; a new one is opened after it.
    page.wait_for_selector(ARGUMENTS, state="detached")
    page.keyboard.press("e")
    page.click("button:text-is('As made')")
    page.wait_for_selector("#turn-1.changed:not(.by-hand)")
    assert session.board.changes()[1][0].decision is None


def test_a_mistake_is_said_and_what_was_typed_stays(sessions: Sessions) -> None:
    session = reviewing(sessions)
    page = sessions.page(session)
    page.wait_for_selector("#case article")
    page.click("[data-edit='1']")
    for typed, mistake in (
        ('{"order": 17', "is not valid JSON"),
        ('{"order": "17", "amount": 1, "lines": []}', "is text, not a number"),
    ):
        page.fill(ARGUMENTS, typed)
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(f"#toast:has-text('{mistake}')")
        assert page.input_value(ARGUMENTS) == typed
    assert session.board.changes()[1][0].decision is None
    # The browser says that the server refused; what else it complains about fails the test.
    refusals = [text for text in sessions.complaints if "409" in text]
    assert refusals == sessions.complaints
    sessions.complaints.clear()
    page.keyboard.press("Escape")
    assert page.locator(".editor").count() == 0


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_review_of_a_call_is_accessible_and_fits(
    sessions: Sessions, violations: Callable[[Any], list[str]], width: int, scheme: str
) -> None:
    SHOTS.mkdir(exist_ok=True)
    page = sessions.page(reviewing(sessions), width=width, scheme=scheme)
    page.click("#rows li:first-child a")
    page.wait_for_selector("#turn-1")
    for name in ("acts", "acts_editing"):
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=SHOTS / f"review_{name}_{width}_{scheme}.png")
        page.keyboard.press("e")
        page.wait_for_selector(ARGUMENTS)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_report_shows_a_call_before_and_after(
    browser: Any, tmp_path: Path, violations: Callable[[Any], list[str]], width: int, scheme: str
) -> None:
    SHOTS.mkdir(exist_ok=True)
    path = reported(tmp_path, make_act_case())
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    if page.is_hidden("#case"):
        page.click("#list a >> nth=0")
    page.wait_for_selector("#case .turn")
    flags = page.locator("#case .flag").all_inner_texts()
    assert (flags.count("left out"), flags.count("inserted")) == (2, 2)
    assert flags.count("edited") == 3
    assert page.locator("#case .turn:has(.flag:text-is('left out')) del").count() > 1
    page.eval_on_selector_all("#case details", "all => all.forEach(one => { one.open = true; })")
    assert "[5] still says 56.00" in page.inner_text("#case")
    assert violations(page) == []
    page.screenshot(path=SHOTS / f"report_acts_{width}_{scheme}.png", full_page=True)
    context.close()


def test_nothing_of_a_hostile_call_becomes_markup(
    sessions: Sessions, browser: Any, tmp_path: Path
) -> None:
    case = hostile_act_case(60_000)
    page = opened(sessions, reviewing(sessions, case))
    page.wait_for_selector("#case .turn.changed")
    opening = "all => all.forEach(each => { each.open = true; })"
    page.eval_on_selector_all("#case details", opening)
    page.keyboard.press("e")
    page.wait_for_selector(".editor textarea.data")
    assert page.locator(f"#case :is({MARKUP})").count() == 0
    assert page.evaluate("window.ran") is None
    context = browser.new_context()
    report = context.new_page()
    complaints: list[str] = []
    report.on("pageerror", lambda error: complaints.append(str(error)))
    report.goto(reported(tmp_path, case).as_uri())
    report.wait_for_selector("html[data-ready]")
    report.wait_for_selector("#case .flag:text-is('left out')")
    assert report.locator(f"#case :is({MARKUP})").count() == 0
    assert report.evaluate("window.ran") is None
    assert complaints == []
    context.close()

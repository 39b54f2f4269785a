"""What the tests of the served page do again and again."""

import re
import time
from typing import Any

from pytest_jrh.people import DecisionStore
from tests.browser.material import made_case
from tests.browser.opened import Session, Sessions

NEW_TEXT = "I am sorry, but the window has closed, so there is nothing I can do."
DECISIONS = "[...document.querySelectorAll('#list .where')].map(one => one.querySelector('.tag')?.textContent ?? '')"  # noqa: E501


def filled(sessions: Sessions, number: int = 4) -> Session:
    session = sessions.start()
    for each in range(number):
        session.board.add(made_case(each))
    return session


def opened(sessions: Sessions, session: Session, **settings: Any) -> Any:
    page = sessions.page(session, **settings)
    page.wait_for_selector("#turns .turn", state="attached")
    return page


def runs(page: Any) -> list[str]:
    """The runs of the cases that the list shows."""
    rows = page.locator("#list .where").all_text_contents()
    return [found[0] for row in rows if (found := re.search(r"support-\d+", row))]


def wait_for(page: Any, expression: str, wanted: object) -> None:
    """Wait until `expression` gives `wanted` in the page.

    Playwright's `wait_for_function` evaluates its text inside the page at every look but the first,
    which the pages' content security policy forbids.
    """
    end = time.monotonic() + 15
    while (value := page.evaluate(expression)) != wanted:
        assert time.monotonic() < end, f"{expression} gives {value!r}, not {wanted!r}"
        page.wait_for_timeout(50)


def wait_decisions(page: Any, *wanted: str) -> None:
    """Wait until the list says this of its cases, nothing of those that nobody decided about."""
    wait_for(page, DECISIONS, list(wanted))


def wait_open(page: Any, run: str) -> None:
    """Wait until the case of a run is shown, and taken in; a click at once would be no decision."""
    page.wait_for_selector(f"#about:has-text('{run}')")
    page.wait_for_timeout(600)


def wait_saved(page: Any) -> None:
    page.wait_for_selector(".editor", state="detached")


def decided(session: Session) -> list[tuple[str, str]]:
    """What is on the disk: the decision and its note, by case."""
    store = DecisionStore([session.suite])
    ids = [one.entry.case_id for one in session.board.changes()[1]]
    return [
        (found.action, found.note) for case_id in ids if (found := store.decisions.get(case_id))
    ]


def wait_decided(page: Any, session: Session, wanted: list[tuple[str, str]]) -> None:
    """Wait until this is on the disk."""
    end = time.monotonic() + 15
    while (found := decided(session)) != wanted:
        assert time.monotonic() < end, found
        page.wait_for_timeout(50)

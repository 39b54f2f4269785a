"""What the tests of the review page do again and again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pytest_jrh.store.decisions import DecisionStore
from pytest_jrh.store.outputs import decisions_path
from tests.browser.material import made_case

if TYPE_CHECKING:
    from tests.browser.opened import Session, Sessions

NEW_TEXT = "I am sorry, but the window has closed, so there is nothing I can do."


def filled(sessions: Sessions, number: int = 4) -> Session:
    session = sessions.start()
    for each in range(number):
        session.board.add(made_case(each))
    return session


def opened(sessions: Sessions, session: Session, **settings: Any) -> Any:
    page = sessions.page(session, **settings)
    page.wait_for_selector("#case article", state="attached")
    return page


def names(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "#rows li:not([hidden]) .name", "all => all.map(one => one.textContent)"
    )
    return found


def wait_for(page: Any, expression: str, wanted: object) -> None:
    """Wait until `expression` gives `wanted` in the page.

    Playwright's `wait_for_function` evaluates its text inside the page at every look but the first,
    which the pages' content security policy forbids.
    """
    end = time.monotonic() + 15
    while (value := page.evaluate(expression)) != wanted:
        assert time.monotonic() < end, f"{expression} gives {value!r}, not {wanted!r}"
        page.wait_for_timeout(50)


def wait_statuses(page: Any, *wanted: str) -> None:
    statuses = "[...document.querySelectorAll('#rows li')].map(row => row.dataset.status)"
    wait_for(page, statuses, list(wanted))


def wait_open(page: Any, run: str) -> None:
    page.wait_for_selector(f"#case-title:has-text('{run}')")


def stored(session: Session) -> list[tuple[str, str]]:
    store = DecisionStore(decisions_path(session.suite.tests[0].output_dir))
    ids = [one.entry.case_id for one in session.board.changes()[1]]
    return [(found.action, found.note) for case_id in ids if (found := store.get(case_id))]

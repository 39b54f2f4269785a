"""Screenshots of the review page to look at: the list, a case, the template dialog.

Light and dark, wide and narrow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.core.model import Judgment, Verdict
from tests.browser.material import hostile_case, made_case
from tests.browser.opened import Session, Sessions

SHOTS = Path(__file__).parent / "screenshots"


def filled(sessions: Sessions) -> Session:
    """A review that is half done: every kind of decision, positives, a scale, a verdict."""
    session = sessions.start()
    board = session.board
    board.announce(str(number) for number in range(16))
    for number in range(8):
        board.add(made_case(number, turns=14 if number else 24))
        if number % 3 == 0:
            board.add(made_case(number, test="agent_positives"))
    board.add(made_case(9, target_score=2))
    board.add(hostile_case())
    board.end("0")
    board.set_verdict(
        made_case(0, turns=24),
        Judgment((Verdict(0, "The agent kept to the policy as far as I can see."),)),
    )
    entries = [one.entry for one in board.changes()[1]]
    board.decide(entries[2].key, entries[2].digest, "accepted")
    board.decide(
        entries[3].key, entries[3].digest, "rejected", note="The edit contradicts the tool result."
    )
    board.edit_turn(
        entries[5].key,
        entries[5].digest,
        4,
        "I have found your order. Let me make an exception for you.",
    )
    return session


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_the_screen_and_can_be_looked_at(
    sessions: Sessions, width: int, scheme: str
) -> None:
    SHOTS.mkdir(exist_ok=True)
    session = filled(sessions)
    page = sessions.page(session, width=width, scheme=scheme)

    def shoot(name: str) -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=SHOTS / f"review_{name}_{width}_{scheme}.png")

    page.wait_for_selector("#rows li >> nth=11")
    page.wait_for_selector("#case article", state="attached")
    shoot("list")
    page.click("#rows li:first-child a")
    page.wait_for_selector("#case .turn.changed")
    shoot("case")
    page.check("input[name=mode][value=beside]", force=True)
    page.keyboard.press("e")
    page.wait_for_selector("#case .editor textarea")
    shoot("editing")
    page.keyboard.press("Escape")
    page.click("#open-templates")
    page.wait_for_selector("#panel-difference p")
    hint = "Prefer a violation that a hurried reader would miss."
    page.fill(
        "#template-text", page.input_value("#template-text").replace("\n\n", f"\n\n{hint}\n\n", 1)
    )
    page.wait_for_selector("#panel-difference ins")
    shoot("templates")
    light, dark = "rgb(245, 246, 248)", "rgb(16, 18, 22)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        dark if scheme == "dark" else light
    )

"""The served page in its states, wide and narrow, light and dark: it fits the screen, and axe-core
finds no violation. The pictures lie in `screenshots` to be looked at.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.model import Judgment, ScoreLevel, Verdict
from tests.browser.material import hostile_case, made_case
from tests.browser.test_accessibility import LAYOUT
from tests.support.blind import all_kinds, blind_suite, labelling
from tests.support.made_cases import make_act_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.opened import LabelPages, Session, Sessions

SHOTS = Path(__file__).parent / "screenshots"
pytestmark = [
    pytest.mark.parametrize("scheme", ["light", "dark"]),
    pytest.mark.parametrize("width", [1440, 768, 390]),
]


@pytest.fixture(scope="module")
def look() -> Callable[[Any, str], None]:
    """Take a picture of a page, and hold it to its width and to axe-core's rules."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python (`dev`)"
    ).Axe()
    SHOTS.mkdir(exist_ok=True)

    def looked(page: Any, name: str) -> None:
        width, scheme = (
            page.viewport_size["width"],
            page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'"),
        )
        # Toasts go by themselves, and colours change in steps.
        page.evaluate("document.querySelector('#toast').replaceChildren()")
        page.screenshot(path=SHOTS / f"{name}_{width}_{scheme}.png")
        faults: list[str] = page.evaluate(LAYOUT)
        for violation in axe.run(page).response["violations"]:
            for node in violation["nodes"]:
                faults.append(f"{violation['id']}: {node['html'][:200]}")
        assert faults == [], name

    return looked


def half_done(sessions: Sessions) -> Session:
    """A review with every kind of decision, positives, a scale, acts, verdicts."""
    session = sessions.start()
    board = session.board
    board.announce(str(number) for number in range(16))
    for number in range(8):
        board.add(made_case(number, turns=14 if number else 24))
        said = Verdict(number % 2, "The agent kept to the policy of turn 4, see [4].")
        board.set_verdict(made_case(number, turns=14 if number else 24), Judgment((said,)))
    board.add(made_case(9, target_score=2))
    board.add(make_act_case())
    board.add(hostile_case())
    entries = [one.entry for one in board.changes()[1]]
    board.decide(entries[2].key, entries[2].digest, "accepted")
    board.decide(entries[3].key, entries[3].digest, "rejected", note="The tool says otherwise.")
    board.edit_turn(entries[5].key, entries[5].digest, 4, "I have found your order, and refund it.")
    return session


def test_deciding(
    sessions: Sessions, look: Callable[[Any, str], None], width: int, scheme: str
) -> None:
    look(sessions.page(sessions.start(), width=width, scheme=scheme), "review_empty")
    session = half_done(sessions)
    page = sessions.page(session, width=width, scheme=scheme)
    page.wait_for_selector("#list a >> nth=3")
    look(page, "review_list")
    if width > 1180:
        page.wait_for_selector("#turns .edited")
    page.click("#list a >> nth=0")
    page.wait_for_selector("#turns .edited")
    look(page, "review_case")
    if not page.locator("#rail").is_visible():
        page.click("#back")
    page.click("#filters button:has-text('not judged')")
    page.click("#list a:has-text('run-1 ·')")
    page.wait_for_selector("#turn-3.edited")
    page.keyboard.press("e")
    page.wait_for_selector(".editor")
    page.fill(".editor [aria-label='amount of refund']", '"lots"')
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#edit-problem:not(:empty)")
    look(page, "review_edit")
    # The browser says that the server refused.
    sessions.complaints[:] = [text for text in sessions.complaints if "409" not in text]
    page.keyboard.press("Escape")
    page.wait_for_selector(".editor", state="detached")
    if not page.locator("#rail").is_visible():
        page.click("#back")
    page.click("#finish")
    look(page, "review_end")
    page.keyboard.press("Escape")
    page.click("text=Agent Templates")
    page.wait_for_selector("#difference:not(:empty)")
    draft = page.input_value("#draft")
    hint = "Prefer a violation that a hurried reader would miss."
    page.fill("#draft", draft.replace("\n\n", f"\n\n{hint}\n\n", 1))
    page.wait_for_selector("#difference ins")
    look(page, "review_templates")
    page.once("dialog", lambda dialog: dialog.accept())
    page.keyboard.press("Escape")
    page.click("#finish")
    page.click("#end button:text-is('Finish')")
    page.wait_for_selector("#finish:disabled")
    session.server.stop()
    page.wait_for_selector("#banner:has-text('The run has ended')")
    look(page, "review_ended")
    sessions.complaints.clear()
    page.emulate_media(media="print")
    assert page.evaluate(LAYOUT) == []
    assert page.locator("#decide, #decision, #tools").filter(visible=True).count() == 0


def test_labelling_blind(
    pages: LabelPages, look: Callable[[Any, str], None], width: int, scheme: str
) -> None:
    board = labelling(blind_suite(pages.folder, sample=9), [*all_kinds(44), hostile_case()])
    page = pages.page(pages.start(board), width=width, scheme=scheme, name="")
    page.wait_for_selector("#enter[open]")
    look(page, "label_enter")
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answers")
    for number in range(5):
        page.keyboard.press("s" if number % 2 else "v")
        page.wait_for_selector(f"#about:text-is('Case {number + 2}')")
    look(page, "label_case")
    if not page.locator("#finish").is_visible():
        page.click("#back")
    page.click("#finish")
    look(page, "label_end")
    levels = [ScoreLevel(score, f"Level {score}: " + "a long text " * 5) for score in range(12)]
    scale = replace(made_case(50, target_score=2), levels=tuple(levels))
    other = labelling(blind_suite(pages.folder / "scale"), [scale])
    page = pages.page(pages.start(other), width=width, scheme=scheme)
    look(page, "label_scale")

"""Every page in its states, wide and narrow, light, dark and printed: no part scrolls sideways or
is cut off, and axe-core finds no violation. Pictures lie in `screenshots` to be looked at.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.model import Judgment, ScoreLevel, Verdict
from pytest_jrh.reports.page import write_page
from tests.browser.material import hostile_case, made_case
from tests.support.blind import all_kinds, blind_suite, labelling
from tests.support.judged_sessions import (
    INJECTION,
    PLACES,
    derived,
    judged,
    right,
    scored,
    session_of,
    spooled,
    wrong_on,
)
from tests.support.made_cases import MESSAGES, make_act_case, make_result, make_spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.opened import LabelPages, Session, Sessions

    Look = Callable[..., None]

SHOTS = Path(__file__).parent / "screenshots"
INK = "rgb(27, 28, 31)"
WIDTHS = (1440, 768, 390)
# What ends in an ellipsis says itself that there is more; what is hidden is for screen readers.
LAYOUT = """() => {
  const root = document.documentElement, faults = [];
  const isShortened = (element) => element && (getComputedStyle(element).textOverflow === "ellipsis" || isShortened(element.parentElement));
  if (root.scrollWidth > root.clientWidth) faults.push(`the page is ${root.scrollWidth} wide, of ${root.clientWidth}`);
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest("svg, textarea, input, select, .skip") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    if (style.clipPath !== "none" || isShortened(element.parentElement)) continue;
    const name = `${element.tagName} ${element.id} ${element.className}: ${element.textContent.trim().slice(0, 60)}`;
    const isWide = style.display !== "inline" && element.scrollWidth > element.clientWidth + 1;
    if (isWide && ["auto", "scroll"].includes(style.overflowX)) faults.push(`scrolls sideways: ${name}`);
    if (isWide && ["hidden", "clip"].includes(style.overflowX) && style.textOverflow !== "ellipsis") faults.push(`is cut: ${name}`);
    if (style.overflowY === "hidden" && style.textOverflow !== "ellipsis" && element.scrollHeight > element.clientHeight + 2) faults.push(`is cut below: ${name}`);
    if (box.width && (box.left < -1 || box.right > root.clientWidth + 1) && !element.closest("[hidden]")) faults.push(`is outside: ${name}`);
  }
  return faults;
}"""  # noqa: E501

OPEN = "all => all.forEach(one => { one.open = true; })"


@pytest.fixture(scope="module")
def look() -> Look:
    """Take pictures of a page in light and dark, and hold it to its width and to axe-core's
    rules.
    """
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python (`dev`)"
    ).Axe()
    SHOTS.mkdir(exist_ok=True)

    def looked(page: Any, name: str, media: str = "screen") -> None:
        width = page.viewport_size["width"]
        # Toasts go by themselves, and colours change in steps.
        page.evaluate("document.querySelector('#toast')?.replaceChildren()")
        for scheme in ("light", "dark"):
            page.emulate_media(media=media, color_scheme=scheme)
            page.screenshot(path=SHOTS / f"{name}_{width}_{scheme}.png")
            faults: list[str] = page.evaluate(LAYOUT)
            response = axe.run(page).response
            assert len(response["passes"]) > 10
            for violation in response["violations"]:
                for node in violation["nodes"]:
                    faults.append(f"{violation['id']}: {node['html'][:200]}")
            assert faults == [], f"{name} {width} {scheme}"
        page.emulate_media(media="screen", color_scheme="light")

    return looked


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything that it can show: a gate, prompts, a scale, a panel, flicker."""
    folder = tmp_path_factory.mktemp("accessible")
    before = judged(right, runs=4)
    results = [
        *judged(wrong_on("run-003"), runs=4),
        *scored(lambda spec, expected: min(expected + 1, 2)),
        *judged(right, runs=2, suite="panel", judge="a"),
        *judged(wrong_on("run-001"), runs=2, suite="panel", judge="b"),
        make_result(make_spec("run-900"), "refused", detail="the model would not answer"),
        make_result(make_spec("run-901"), "no_case", detail="no plan"),
    ]
    records = spooled(folder / "spool", results, lambda result: MESSAGES)
    attacks = [f"{attack}-{place}" for attack in ("fake_verdict", "flattery") for place in PLACES]
    results += derived(attacks[:1], probe=INJECTION, variants=attacks)
    path = folder / "report.html"
    write_page(
        path,
        replace(
            session_of(results, before, said_before="It was late.", prompt_before="Be strict."),
            records=records,
        ),
    )
    return path


def look_at_report(browser: Any, look: Look, report: Path, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()

    def show(hash_: str) -> None:
        page.goto("about:blank")
        page.goto(report.as_uri() + hash_)
        page.wait_for_selector("html[data-ready]")

    show("#show=all")
    page.eval_on_selector_all("details", OPEN)
    look(page, "report_overview")
    page.fill("#search", "nothing has these words")
    page.wait_for_selector("#nothing:not([hidden])")
    assert page.evaluate(LAYOUT) == []
    rows = page.evaluate("JSON.parse(document.querySelector('#session').textContent).cases")
    keys = {f"{row['test']} {row['kind']}": row["key"] for row in rows}
    assert len(keys) > 4
    for key in keys.values():
        show(f"#show=all&case={key}")
        page.keyboard.press("f")
        page.eval_on_selector_all("details", OPEN)
        assert page.evaluate(LAYOUT) == []
    look(page, "report_case")
    context.close()


def test_report(browser: Any, look: Look, report: Path) -> None:
    for width in WIDTHS:
        look_at_report(browser, look, report, width)


def test_report_on_paper(browser: Any, look: Look, report: Path) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(report.as_uri() + "#show=all")
    page.wait_for_selector("#case .turn", state="attached")
    page.set_viewport_size({"width": 720, "height": 900})
    look(page, "report_printed", "print")
    # From a dark screen, too, it is dark on white; nothing is folded, and nothing can be clicked.
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == INK
    assert page.locator("#details li >> nth=0").is_visible()
    assert page.locator("#bar, .tools").filter(visible=True).count() == 0
    context.close()


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


def test_deciding(sessions: Sessions, look: Look) -> None:
    for width in WIDTHS:
        look_at_deciding(sessions, look, width)


def look_at_deciding(sessions: Sessions, look: Look, width: int) -> None:
    look(sessions.page(sessions.start(), width=width), "review_empty")
    session = half_done(sessions)
    page = sessions.page(session, width=width)
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
    assert page.locator("#decide, #decision, #tools, .link").filter(visible=True).count() == 0


def test_labelling_blind(pages: LabelPages, look: Look) -> None:
    for width in WIDTHS:
        look_at_labelling(pages, look, width)


def look_at_labelling(pages: LabelPages, look: Look, width: int) -> None:
    folder = pages.folder / str(width)
    board = labelling(blind_suite(folder, sample=9), [*all_kinds(44), hostile_case()])
    page = pages.page(pages.start(board), width=width, name="")
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
    other = labelling(blind_suite(folder / "scale"), [scale])
    page = pages.page(pages.start(other), width=width)
    look(page, "label_scale")

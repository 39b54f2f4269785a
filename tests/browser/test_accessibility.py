"""Every page in its states, wide and narrow, light, dark and printed: no part scrolls sideways or
is cut off, and axe-core finds no violation.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.cases import Verdict
from pytest_jrh.core.scales import ScoreLevel
from pytest_jrh.reports.page import HtmlReport
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
    from collections.abc import Callable, Sequence

    from tests.browser.opened import LabelPages, Session, Sessions

    Look = Callable[..., None]

INK = "rgb(27, 28, 31)"
# Last the one that pages are opened at: there, list and case are two views.
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
AXE = """axe.run({ resultTypes: ["violations"] }).then(({ passes, violations }) => [
  passes.length,
  violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`)),
])"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The program of axe-core."""
    module = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python (`dev`)"
    )
    script: str = module.Axe().axe_script
    return script


@pytest.fixture
def look(axe: str) -> Look:
    """Hold a page to its width and to axe-core's rules at every width, and in dark at the last."""

    def looked(page: Any, name: str, widths: Sequence[int] = WIDTHS, media: str = "screen") -> None:
        # Toasts go by themselves.
        page.evaluate("document.querySelector('#toast')?.replaceChildren()")
        if page.evaluate("typeof axe === 'undefined'"):
            page.evaluate(axe)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(media=media)
            assert page.evaluate(LAYOUT) == [], f"{name} {width}"
            # Colours are those of all widths.
            for scheme in ("light", "dark")[: 1 + (width == widths[-1])]:
                page.emulate_media(media=media, color_scheme=scheme)
                passes, violations = page.evaluate(AXE)
                assert passes > 10
                assert violations == [], f"{name} {width} {scheme}"
        page.emulate_media(media="screen", color_scheme="light")

    return looked


def assert_fits(page: Any) -> None:
    """No part of the page scrolls sideways or is cut off, at any width."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(LAYOUT) == [], width


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything that it can show: a gate, prompts, a scale, a panel, flicker."""
    folder = tmp_path_factory.mktemp("accessible")
    before = judged(right, runs=2)
    results = [
        *judged(wrong_on("run-001"), runs=2),
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
    HtmlReport().write(
        path,
        replace(
            session_of(results, before, said_before="It was late.", prompt_before="Be strict."),
            records=records,
        ),
    )
    return path


def open_report(browser: Any, report: Path, width: int) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report.as_uri() + "#show=all")
    page.wait_for_selector("html[data-ready]")
    return page


def test_report(browser: Any, look: Look, report: Path) -> None:
    page = open_report(browser, report, WIDTHS[-1])
    page.eval_on_selector_all("details", OPEN)
    look(page, "overview")
    rows = page.evaluate("JSON.parse(document.querySelector('#session').textContent).cases")
    keys = {f"{row['test']} {row['kind']}": row["key"] for row in rows}
    assert len(keys) > 4
    for key in keys.values():
        page.evaluate(f"location.hash = 'show=all&case={key}'")
        page.wait_for_selector(f"#list a[href='#case={key}'][aria-current]", state="attached")
        page.wait_for_selector("#case .turn, #turns .none", state="attached")
        page.keyboard.press("f")
        page.eval_on_selector_all("details", OPEN)
        assert_fits(page)
    look(page, "case")
    page.click("#back")
    page.fill("#search", "nothing has these words")
    page.wait_for_selector("#nothing:not([hidden])")
    assert_fits(page)
    page.close()


def test_report_on_paper(browser: Any, look: Look, report: Path) -> None:
    page = open_report(browser, report, 1440)
    page.wait_for_selector("#case .turn", state="attached")
    look(page, "printed", widths=[720], media="print")
    # From a dark screen, too, it is dark on white; nothing is folded, and nothing can be clicked.
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == INK
    assert page.locator("#details li >> nth=0").is_visible()
    assert page.locator("#bar, .tools").filter(visible=True).count() == 0
    page.close()


def half_done(sessions: Sessions) -> Session:
    """A review with every kind of decision, positives, a scale, acts, verdicts."""
    session = sessions.start()
    board = session.board
    board.announce(str(number) for number in range(16))
    for number in range(8):
        board.add(made_case(number, turns=14 if number else 24))
        said = Verdict(number % 2, "The agent kept to the policy of turn 4, see [4].")
        board.set_verdicts(made_case(number, turns=14 if number else 24), (said,))
    board.add(made_case(9, target_score=2))
    board.add(make_act_case())
    board.add(hostile_case())
    entries = [one.entry for one in board.changes()[1]]
    board.decide(entries[2].key, entries[2].digest, "accepted")
    board.decide(entries[3].key, entries[3].digest, "rejected", note="The tool says otherwise.")
    board.edit_turn(entries[5].key, entries[5].digest, 4, "I have found your order, and refund it.")
    return session


def test_deciding(sessions: Sessions, look: Look) -> None:
    look(sessions.page(sessions.start(), width=WIDTHS[-1]), "empty")
    session = half_done(sessions)
    page = sessions.page(session, width=WIDTHS[-1])
    page.wait_for_selector("#list a >> nth=3")
    look(page, "list")
    page.click("#list a >> nth=0")
    page.wait_for_selector("#turns .edited")
    look(page, "case")
    page.click("#back")
    page.click("#filters button:has-text('not judged')")
    page.click("#list a:has-text('run-1 ·')")
    page.wait_for_selector("#turn-3.edited")
    page.keyboard.press("e")
    page.wait_for_selector(".editor")
    page.fill("#edit-0", " ")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#edit-problem:not(:empty)")
    look(page, "edit")
    # The browser says that the server refused.
    sessions.complaints[:] = [text for text in sessions.complaints if "409" not in text]
    page.keyboard.press("Escape")
    page.wait_for_selector(".editor", state="detached")
    page.click("#back")
    page.click("#finish")
    look(page, "end")
    page.keyboard.press("Escape")
    page.click("text=Agent Templates")
    page.wait_for_selector("#difference:not(:empty)")
    draft = page.input_value("#draft")
    hint = "Prefer a violation that a hurried reader would miss."
    page.fill("#draft", draft.replace("\n\n", f"\n\n{hint}\n\n", 1))
    page.wait_for_selector("#difference ins")
    look(page, "templates")
    page.once("dialog", lambda dialog: dialog.accept())
    page.keyboard.press("Escape")
    page.click("#finish")
    page.click("#end button:text-is('Finish')")
    page.wait_for_selector("#finish:disabled")
    session.server.stop()
    page.wait_for_selector("#banner:has-text('The session has ended')")
    look(page, "ended")
    page.emulate_media(media="print")
    assert page.evaluate(LAYOUT) == []
    assert page.locator("#decide, #decision, #tools, .link").filter(visible=True).count() == 0
    # Closed before what it said of the stopped server is forgotten: it asks again and again.
    page.close()
    sessions.complaints.clear()


def test_labelling_blind(pages: LabelPages, look: Look) -> None:
    board = labelling(blind_suite(pages.folder, sample=9), [*all_kinds(12), hostile_case()])
    page = pages.page(pages.start(board), width=WIDTHS[-1], name=None)
    look(page, "enter")
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answers")
    for number in range(3):
        page.keyboard.press("s" if number % 2 else "v")
        page.wait_for_selector(f"#about:text-is('Case {number + 2}')")
    look(page, "case")
    page.click("#back")
    page.click("#finish")
    look(page, "end")
    page.close()
    levels = [ScoreLevel(score, f"Level {score}: " + "a long text " * 5) for score in range(12)]
    case = made_case(50, target_score=2)
    scale = replace(case, rubric=replace(case.rubric, score_levels=tuple(levels)))
    other = labelling(blind_suite(pages.folder / "scale"), [scale])
    look(pages.page(pages.start(other), width=WIDTHS[-1]), "scale")

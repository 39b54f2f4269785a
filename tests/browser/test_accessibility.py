"""The report in its states, wide and narrow, light, dark and printed: no part scrolls sideways or
is cut off, and axe-core finds no violation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.reports.page import write_page
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
from tests.support.made_cases import MESSAGES, make_result, make_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark = [
    pytest.mark.parametrize("scheme", ["light", "dark"]),
    pytest.mark.parametrize("width", [1440, 1280, 768, 390]),
]

# There everything is as at 1280, with more room around it, so that axe-core has nothing to find.
LIKE_1280 = 1440
# On paper a page is as wide wherever it is printed from.
PRINTED_FROM = 1280
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
def faults() -> Callable[[Any], list[str]]:
    """What is cut on a page or scrolls sideways, and every violation that axe-core finds: its rule,
    and the elements.
    """
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python (`dev`)"
    ).Axe()

    def found(page: Any) -> list[str]:
        layout: list[str] = page.evaluate(LAYOUT)
        if page.viewport_size["width"] == LIKE_1280:
            return layout
        response = axe.run(page).response
        assert len(response["passes"]) > 10

        return layout + [
            f"{violation['id']}: {node['html'][:200]} ({node['failureSummary']})"
            for violation in response["violations"]
            for node in violation["nodes"]
        ]

    return found


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


def print_of(page: Any, faults: Callable[[Any], list[str]], scheme: str, width: int) -> list[str]:
    """The faults of a page on paper."""
    page.set_viewport_size({"width": 720, "height": 900})
    page.emulate_media(media="print", color_scheme=scheme)
    found = faults(page)
    page.emulate_media(media="screen", color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    return found


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Callable[..., Any]]:
    contexts = []

    def open_page(hash_: str, width: int, scheme: str) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.goto(report.as_uri() + hash_)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_the_report_has_no_fault(
    opened: Callable[..., Any],
    faults: Callable[[Any], list[str]],
    width: int,
    scheme: str,
) -> None:
    page = opened("#show=all", width, scheme)
    page.eval_on_selector_all("details", OPEN)
    assert faults(page) == []
    if width == PRINTED_FROM:
        assert print_of(page, faults, scheme, width) == []
    page.fill("#search", "nothing has these words")
    page.wait_for_selector("#nothing:not([hidden])")
    assert page.evaluate(LAYOUT) == []
    page.fill("#search", "")
    page.wait_for_selector("#list a")
    rows = page.evaluate("JSON.parse(document.querySelector('#session').textContent).cases")
    keys = {f"{row['test']} {row['kind']}": row["key"] for row in rows}
    assert len(keys) > 4
    for key in keys.values():
        page = opened(f"#show=all&case={key}", width, scheme)
        page.keyboard.press("f")
        page.eval_on_selector_all("details", OPEN)
        assert page.evaluate(LAYOUT) == []
    assert faults(page) == []
    if width == PRINTED_FROM:
        assert print_of(page, faults, scheme, width) == []

"""The report and the review page as axe-core sees them: wide and narrow, light and dark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.model import Judgment, Verdict
from pytest_jrh.reports.html import write_html
from tests.browser.material import made_case
from tests.browser.test_review_screenshots import filled
from tests.support.blind import blind_suite, confirmed, labelling, natural, rejected
from tests.support.judged_sessions import (
    judged,
    kept_of,
    right,
    scored,
    session_of,
    spooled,
    wrong_on,
)
from tests.support.made_cases import MESSAGES, make_result, make_spec
from tests.unit.test_probe_figures import INJECTION, PLACES, derived

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.browser.opened import Labelling, Sessions

pytestmark = [
    pytest.mark.parametrize("scheme", ["light", "dark"]),
    pytest.mark.parametrize("width", [1280, 390]),
]


@pytest.fixture(scope="module")
def violations() -> Callable[[Any], list[str]]:
    """Every violation that axe-core finds on a page: its rule, and the elements."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python (`dev`)"
    ).Axe()

    def found(page: Any) -> list[str]:
        response = axe.run(page).response
        assert len(response["passes"]) > 10
        return [
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
    kept = kept_of(before, "Be strict.", "It was late.")
    records = spooled(folder / "spool", results, lambda result: MESSAGES)
    attacks = [f"{attack}-{place}" for attack in ("fake_verdict", "flattery") for place in PLACES]
    results += derived(attacks[:1], probe=INJECTION, variants=attacks)
    path = folder / "report.html"
    write_html(path, replace(session_of(results, before, kept=kept), records=records))
    return path


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Callable[..., Any]]:
    contexts = []

    def open_page(hash_: str, width: int, scheme: str) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.goto(report.as_uri() + hash_)
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_the_report_is_accessible(
    opened: Callable[..., Any],
    violations: Callable[[Any], list[str]],
    width: int,
    scheme: str,
) -> None:
    page = opened("", width, scheme)
    page.wait_for_selector("#shown:not(:empty)")
    page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true; })")
    page.eval_on_selector_all("button.fold", "buttons => buttons.forEach(button => button.click())")
    # The page has the rows near the view alone.
    page.evaluate("document.querySelector('#cases').scrollIntoView()")
    page.wait_for_selector("table.cases tbody a")
    assert violations(page) == []
    page.click("table.cases tbody a >> nth=0")
    page.wait_for_selector("#case .turn")
    page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true; })")
    assert violations(page) == []


def test_the_review_page_is_accessible(
    sessions: Sessions, violations: Callable[[Any], list[str]], width: int, scheme: str
) -> None:
    page = sessions.page(filled(sessions), width=width, scheme=scheme)
    page.wait_for_selector("#rows li")
    assert violations(page) == []
    page.locator("#rows li a").first.click()
    page.wait_for_selector("#case-title:not(:empty)")
    assert violations(page) == []


def test_the_page_of_blind_labelling_is_accessible(
    pages: Labelling, violations: Callable[[Any], list[str]], width: int, scheme: str
) -> None:
    cases = [confirmed(0), rejected(1), natural(2), made_case(3, target_score=2)]
    board = labelling(blind_suite(pages.folder), cases)
    for case in cases:
        board.set_verdict(case, Judgment((Verdict(0, "no"),)))
    page = pages.page(pages.start(board), name="", width=width, scheme=scheme)
    page.wait_for_selector("#enter[open]")
    assert violations(page) == []
    page.keyboard.type("ann")
    page.keyboard.press("Enter")
    for _ in cases:
        page.wait_for_selector("#case article[data-shows=bare]")
        title = page.inner_text("#case-title")
        page.keyboard.press("1")
        assert violations(page) == []
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#case-title:not(:text-is('{title}')), #finish[open]")
    page.wait_for_selector("#finish[open]")
    assert violations(page) == []
    page.click("#finish-now")
    page.wait_for_selector("#case article[data-shows=list]")
    assert violations(page) == []
    for _ in cases:
        page.keyboard.press("j")
        page.wait_for_selector("#case article[data-shows=revealed]")
        page.eval_on_selector_all(
            "#case details", "all => all.forEach(each => { each.open = true; })"
        )
        assert violations(page) == []

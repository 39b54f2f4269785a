"""The page in headless Chromium, opened from disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core import short_digest, storable
from pytest_jrh.reports.page import HtmlReport
from tests.browser.opened import Opened
from tests.browser.steps import wait_for
from tests.support.judged_sessions import (
    HOSTILE,
    coin,
    judged,
    right,
    session_of,
    spooled,
    wrong_on,
)
from tests.support.made_cases import MESSAGES, make_result, make_spec, result_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_jrh.core.results import CaseResult

BEFORE = "I checked order 17: it was bought 45 days ago, so I cannot refund it."
AFTER = "I checked order 17: it was bought 25 days ago, so I can refund it today."
LISTED = "document.querySelectorAll('#list a').length"
ADDRESS = "location.hash"
MARKUP = "img, script, iframe, b[onclick]"
FOCUS = "document.activeElement.id"
FOCUSED_ROW = "document.activeElement.closest('#list') && document.activeElement.hash"


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a file as a page that fails the test for each request and each complaint."""
    pages = Opened(browser, tmp_path)

    def open_page(path: Path, hash_: str = "", width: int = 1280) -> Any:
        return pages.open(path.as_uri() + hash_, width=width, ready="html[data-ready]")

    yield open_page
    pages.end()
    addresses = {url.partition("#")[0] for url in pages.requests}
    assert all(url.startswith("file:") and url.endswith("/report.html") for url in addresses)


@pytest.fixture(scope="module")
def results() -> list[CaseResult]:
    made = judged(wrong_on("run-003"))
    missed = next(place for place, result in enumerate(made) if result.outcome == "disagree")
    made[missed] = result_with(made[missed], reasoning="See [0] and turn 2, not [77].")
    refused = make_result(make_spec("run-900"), "refused", detail="the model would not answer")
    return [*made, refused]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, results: Sequence[CaseResult]) -> Path:
    messages = (*MESSAGES[:-1], {**MESSAGES[-1], "content": BEFORE})
    return write(tmp_path_factory.mktemp("report"), results, messages, AFTER, before=judged(right))


def write(
    folder: Path,
    results: Sequence[CaseResult],
    messages: Sequence[Any] = MESSAGES,
    text: str = AFTER,
    before: Any = None,
    limit: int = HtmlReport.limit,
) -> Path:
    records = spooled(folder / "spool", results, lambda result: messages, text)
    path = folder / "report.html"
    session = session_of(results, before)
    session = replace(session, records=records, folder=Path("/repo"))
    report = HtmlReport()
    report.limit = limit
    report.write(path, session)
    return path


def of(result: CaseResult) -> str:
    return f"#case={short_digest(result.case_id)}"


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        selector, "all => all.map(one => one.textContent.trim())"
    )
    return found


def test_the_page_opens_at_what_is_wrong(opened: Any, report: Path) -> None:
    page = opened(report)
    assert texts(page, "#filters button[aria-pressed=true]") == ["regressions 4"]
    filters = ["regressions 4", "missed 2", "false alarms 2", "not judged 1", "all 49"]
    assert texts(page, "#filters button") == filters
    assert page.inner_text("#place") == "Case 1 of 4 (regressions)"
    # A bar for each figure, with the interval and what it was before; its name leads to its cases.
    label = page.get_attribute("#figures tr:first-child svg", "aria-label")
    assert label.startswith("refund_policy, missed: 1 of 12, 95% interval ")
    assert label.endswith("before: 0.0%")
    page.click("#figures button >> text=tone")
    wait_for(page, LISTED, 2)
    page.click("#figures button >> text=tone")
    wait_for(page, LISTED, 4)


def test_case_shows_what_changed(opened: Any, report: Path, results: Sequence[CaseResult]) -> None:
    missed = next(result for result in results if result.outcome == "disagree")
    page = opened(report, of(missed))
    assert texts(page, "#turns del") == ["45", "cannot"]
    assert texts(page, "#turns ins") == ["25", "can", "today"]
    assert texts(page, ".voice h3") == ["label", "before", "judge"]
    assert texts(page, ".voice.wrong .verdict") == ["satisfied"]
    shown = page.inner_text("#case")
    for part in (
        "[3]\nassistant\nedited",
        "2 turns, unchanged",
        "It grants a late refund.",
        "suites/rubrics.yml:7",
        "1 call",
        "pytest 'suites/refunds.jrh.yml::agent_perturbation::refund_policy::run-003[e1]'",
    ):
        assert part in shown
    # A reason leads to the turns that it cites, which were folded away.
    assert texts(page, ".voice .cite") == ["[0]", "turn 2"]
    assert not page.is_visible("#turn-0")
    page.click(".voice .cite >> text=[0]")
    wait_for(page, FOCUS, "turn-0")
    page.keyboard.press("f")
    assert page.locator(".fold:not([open])").count() == 0
    page.click("#voices .command >> nth=0")
    selected = "getSelection().toString()"
    wait_for(page, f"{selected} === document.querySelector('#voices .command').textContent", True)
    for media in ({"media": "print"}, {"media": "screen", "forced_colors": "active"}):
        page.emulate_media(**media)
        style = "node => getComputedStyle(node).textDecorationLine"
        assert page.eval_on_selector("#turns ins", style) == "underline"
        assert page.eval_on_selector("#turns del", style) == "line-through"
    page = opened(report, of(results[-1]))
    voices = " ".join(page.inner_text("#voices").split())
    assert "refused to answer. The model would not answer." in voices


def test_list_is_filtered_and_leads_to_cases_by_keys(opened: Any, report: Path) -> None:
    page = opened(report)
    page.click("#filters button[value=missed]")
    wait_for(page, LISTED, 2)
    page.select_option("select[name=rubric]", "tone")
    wait_for(page, LISTED, 1)
    page.click("#filters button[value=all]")
    wait_for(page, LISTED, 24)
    page.keyboard.press("/")
    page.keyboard.type("RUN-003 alarm")
    wait_for(page, LISTED, 1)
    page.fill("#search", "no such words")
    page.wait_for_selector("#nothing:has-text('No case matches the search')")
    assert page.is_hidden("#case")
    page.fill("#search", "")
    wait_for(page, LISTED, 24)
    # Out of the field to the list, through it by arrows, and into a case.
    page.keyboard.press("Escape")
    page.click("#list a >> nth=0")
    page.wait_for_selector("#list li:nth-child(1) a[aria-current]:focus")
    first = page.evaluate(FOCUSED_ROW)
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#list li:nth-child(2) a[aria-current]")
    assert page.evaluate(FOCUSED_ROW) != first
    page.keyboard.press("k")
    page.wait_for_selector("#list li:nth-child(1) a[aria-current]")
    page.keyboard.press("Enter")
    wait_for(page, FOCUS, "title")
    page.keyboard.press("j")
    page.wait_for_selector("#list li:nth-child(2) a[aria-current]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#list li:nth-child(2) a:focus")


def test_search_finds_words_in_texts_and_reasons_and_marks_them(opened: Any, report: Path) -> None:
    page = opened(report, "#show=all")
    page.fill("#search", "turn 77 25 DAYS")
    wait_for(page, LISTED, 1)
    marked = "[...CSS.highlights.get('found')].map(range => range.startContainer.data)"
    assert {"25"} <= set(page.evaluate(marked))
    page.click("#filters button[value=alarm]")
    assert page.inner_text("#nothing").endswith("filters. Show 1 matching case under “all”")
    page.click("#nothing button")
    wait_for(page, LISTED, 1)


def test_a_key_lists_all_keys(opened: Any, report: Path) -> None:
    page = opened(report)
    page.keyboard.press("?")
    keys = dict(zip(texts(page, "#keys-list dt"), texts(page, "#keys-list dd"), strict=True))
    assert keys["/"] == "Search cases"
    assert keys["f"] == "Unfold all"
    page.keyboard.press("Escape")
    page.wait_for_selector("#keys-dialog", state="hidden")
    page.keyboard.press("j")
    page.wait_for_selector("#list li:nth-child(2) a[aria-current]")


def test_a_phone_has_two_views(opened: Any, report: Path, results: Sequence[CaseResult]) -> None:
    page = opened(report, width=390)
    assert page.is_hidden("#case")
    page.click("#list a >> nth=1")
    page.wait_for_selector("#case:not([hidden])")
    assert page.is_hidden("#rail")
    wait_for(page, FOCUS, "title")
    page.click("#back")
    page.wait_for_selector("#list li:nth-child(2) a:focus")
    page.keyboard.press("Enter")
    page.wait_for_selector("#case:not([hidden])")
    # The browser's way back leads to the list, too, also where a link has opened the case.
    page.go_back()
    page.wait_for_selector("#case", state="hidden")
    page = opened(report, of(results[0]), width=390)
    assert page.is_hidden("#rail")
    page.go_back()
    page.wait_for_selector("#case", state="hidden")
    assert page.is_visible("#rail")


def test_what_is_shown_is_in_the_address(opened: Any, report: Path) -> None:
    page = opened(report)
    page.click("#filters button[value=missed]")
    page.keyboard.press("j")
    page.wait_for_selector("#list li:nth-child(2) a[aria-current]")
    address = page.evaluate(ADDRESS)
    assert address.startswith("#show=missed&case=")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    wait_for(page, LISTED, 2)
    assert page.locator("#list li:nth-child(2) a[aria-current]").count() == 1
    assert page.evaluate(ADDRESS) == address
    page = opened(report, "#show=__proto__&turn=zz")
    assert page.inner_text("#place") == "Case 1 of 4 (regressions)"
    page = opened(report, "#case=x")
    assert page.inner_text("#nothing") == "The case in the address is not in this report."
    assert page.is_hidden("#case")
    assert (page.evaluate(LISTED), page.evaluate(ADDRESS)) == (4, "#case=x")


def test_hostile_and_endless_text_is_text_and_widens_nothing(opened: Any, tmp_path: Path) -> None:
    attack = f"{HOSTILE}\n<img src=x onerror=alert(1)>\n[1] [01] [9999] turn 2"
    names = (storable(HOSTILE)[0], "W" * 2_000, "\u202e\u05d0\u200b" * 300)
    hostile = []
    for name in names:
        for result in judged(wrong_on("run-000"), runs=1, rubrics=("tone",)):
            named: Any = {"rubric_id": name, "judge": "j" * 500, "run_id": f"{attack} {name}"}
            hostile.append(result_with(result, reasoning=attack, **named))
    messages = [{**message, "content": attack + "W" * 100_000} for message in MESSAGES]
    path = write(tmp_path, hostile, messages, attack)
    for width, hash_ in ((390, ""), (1280, ""), (1280, of(hostile[0]))):
        page = opened(path, hash_, width)
        page.keyboard.press("f")
        page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
        assert page.locator(f":is(#overview, #desk) :is({MARKUP})").count() == 0
        assert "<script>alert('x')</script>" in page.text_content("#list")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert "<script>alert('x')</script>" in page.text_content("#turns")
    for row in range(3):
        page.evaluate("scrollTo(0, 0)")
        page.locator("#figures button").nth(row).click()
        wait_for(page, LISTED, 1)


def test_huge_texts_do_not_stall_the_page(opened: Any, tmp_path: Path) -> None:
    old = " ".join(f"word{number}" for number in range(25_000))
    new = " ".join(f"word{number * 7 % 25_000}" for number in range(25_000))
    made = judged(wrong_on("run-000"), runs=1, rubrics=("tone",))
    path = write(tmp_path, made, (*MESSAGES[:-1], {**MESSAGES[-1], "content": old}), new)
    page = opened(path, of(made[0]))
    assert page.text_content("#turns ins").startswith("word0 word7 ")
    long = {**MESSAGES[-1], "content": old}
    page = opened(write(tmp_path, made, (long, *MESSAGES[1:])), of(made[0]))
    page.keyboard.press("f")
    wait_for(page, "document.querySelector('#turn-0 .text').textContent.length", len(old))


def test_a_large_report_lists_every_case_and_what_was_left_out(opened: Any, tmp_path: Path) -> None:
    made = judged(coin(), runs=125, rubrics=("a", "b", "c", "d"))
    path = write(tmp_path, made, limit=1_000)
    page = opened(path, "#show=all")
    assert page.evaluate(LISTED) == 100
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    wait_for(page, LISTED, 1_000)
    keys = set(page.eval_on_selector_all("#list a", "all => all.map(one => one.hash)"))
    assert keys == {of(result) for result in made}
    assert "cases in the list are left out" in page.inner_text("#details")
    page.locator("#list a").last.click()
    page.wait_for_selector("#turns:has-text('details of this case were left out')")
    page.fill("#search", "run-100")
    page.select_option("select[name=rubric]", "c")
    wait_for(page, LISTED, 2)

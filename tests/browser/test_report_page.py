"""The HTML report in headless Chromium, opened from disk (rules I: `--jrh-report`)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.model import Verdict
from pytest_jrh.core.transcript import storable
from pytest_jrh.reports.html import write_html
from pytest_jrh.reports.session import case_key
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

    from pytest_jrh.core.model import CaseResult

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
SHOTS = Path(__file__).parent / "screenshots"
BEFORE = "I checked order 17: it was bought 45 days ago, so I cannot refund it."
AFTER = "I checked order 17: it was bought 25 days ago, so I can refund it today."
SHOWN = "document.querySelector('#shown').textContent"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")

pytestmark = pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="needs Chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a file as a page that fails the test for each request and each complaint."""
    contexts = []
    complaints: list[str] = []
    requests: list[str] = []

    def refuse(dialog: Any) -> None:
        complaints.append("dialog")
        dialog.dismiss()

    def open_page(path: Path, hash_: str = "", width: int = 1280, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        own = path.resolve().as_uri()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", refuse)
        page.goto(own + hash_)
        page.wait_for_selector("#shown:not(:empty)", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(
        url.startswith("file:") and url.partition("#")[0].endswith("/report.html")
        for url in requests
    )


@pytest.fixture(scope="module")
def results() -> list[CaseResult]:
    made = judged(wrong_on("run-003"))
    return [
        *made,
        make_result(make_spec("run-900"), "refused", detail="the model would not answer"),
    ]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, results: Sequence[CaseResult]) -> Path:
    messages = (*MESSAGES[:-1], {**MESSAGES[-1], "content": BEFORE})
    return write(tmp_path_factory.mktemp("report"), results, messages, AFTER, before=judged(right))


def write(
    folder: Path,
    results: Sequence[CaseResult],
    messages: Sequence[Any],
    text: str,
    before: Any = None,
) -> Path:
    records = spooled(folder / "spool", results, lambda result: messages, text)
    path = folder / "report.html"
    session = session_of(results, before)
    write_html(path, replace(session, records=records, folder=Path("/repo")))
    return path


def rows(page: Any) -> list[list[str]]:
    """The texts of the rows that the page has where the list is scrolled to: at least 40."""
    page.evaluate("document.querySelector('#cases').scrollIntoView()")
    page.wait_for_selector("tbody[data-part='0'] tr[data-key]", state="attached")
    script = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    found: list[list[str]] = page.eval_on_selector_all("table.cases tr[data-key]", script)
    return found


def test_case_shows_the_differences_word_by_word(
    opened: Any, report: Path, results: Sequence[CaseResult]
) -> None:
    wrong = next(result for result in results if result.outcome == "disagree")
    page = opened(report, f"#case-{case_key(wrong.case_id)}")
    page.wait_for_selector("#case .diff")
    assert page.is_hidden("#overview")
    gone = page.eval_on_selector_all(".diff del", "nodes => nodes.map(node => node.textContent)")
    new = page.eval_on_selector_all(".diff ins", "nodes => nodes.map(node => node.textContent)")
    assert [text.strip() for text in gone] == ["45", "cannot"]
    assert [text.strip() for text in new] == ["25", "can", "today"]
    shown = page.inner_text("#case")
    for part in (
        "The judge gave 0 (satisfied); the right answer is 1 (violated).",
        "The order is late.",
        "suites/rubrics.yml:7",
        "[1] assistant calls look_up",
        "Refund too late.",
        "It grants a late refund.",
        "$0.0020",
        "pytest 'suites/refunds.jrh.yml::agent_perturbation::refund_policy::run-003[e1]'",
    ):
        assert part in shown
    page.select_option("#case select", "original")
    assert BEFORE in page.inner_text("#case .turn:last-of-type")


def test_repeats_have_a_row_each(opened: Any, tmp_path: Path) -> None:
    given = [*judged(wrong_on("run-003"))[:4]]
    late, fine = Verdict(1, "It is late."), Verdict(0, "Fine. " * 300)
    given[0] = result_with(
        given[0],
        scores=(0, 1, 0),
        minority=late,
        reasoning=fine.reasoning,
        outcome="disagree",
        score=0,
        verdicts=(fine, late, fine),
    )
    given[1] = result_with(
        make_result(given[1].spec, "refused", detail="the model would not answer"),
        verdicts=(late, late),
    )
    report = write(tmp_path, given, MESSAGES, AFTER)
    shown = []
    for result in given[:2]:
        page = opened(report, f"#case-{case_key(result.case_id)}")
        page.wait_for_selector("#case table.reasons")
        shown.append(
            page.eval_on_selector_all(
                "table.reasons tr",
                "rows => rows.map(row => row.innerText.replace(/\\s+/g, ' ').trim().slice(0, 70))",
            )
        )
    assert [line[:33] for line in shown[0]] == [
        "2 repeats (1, 3) gave 0 Fine. Fin",
        "repeat 2 gave 1 It is late.",
    ]
    assert shown[1] == [
        "2 repeats (1, 2) gave 1 It is late.",
        "repeat 3 gave no verdict (refused) the model would not answer",
    ]
    page = opened(report, f"#case-{case_key(given[0].case_id)}")
    assert page.is_hidden("table.reasons details .prose")
    page.click("table.reasons summary")
    assert page.is_visible("table.reasons details .prose")


def test_case_without_a_verdict_says_why(
    opened: Any, report: Path, results: Sequence[CaseResult]
) -> None:
    page = opened(report, f"#case-{case_key(results[-1].case_id)}")
    page.wait_for_selector("#case .card")
    assert "the model would not answer" in page.inner_text("#case")


def test_table_filters_sorts_and_leads_to_the_cases_and_back(opened: Any, report: Path) -> None:
    page = opened(report)
    page.select_option("select[name=outcome]", "disagree")
    assert len(rows(page)) == 4
    wait_for(page, SHOWN, "4 of 49 cases")
    page.fill("input[name=text]", "TONE positives")
    assert [row[2:5] for row in rows(page)] == [["tone", "agent_positives", "run-003"]]
    page.fill("input[name=text]", "")
    page.click("th[data-sort=rubric] button")
    page.click("th[data-sort=rubric] button")
    assert [row[2] for row in rows(page)] == ["tone", "tone", "refund_policy", "refund_policy"]
    page.click("table.cases tr[data-key] td >> nth=0")
    page.wait_for_selector("#case .card")
    page.click("a[rel=next]")
    page.wait_for_selector("#case p.muted >> text=agent_positives::tone")
    page.click("a[rel=up]")
    page.wait_for_selector("#overview:not([hidden])")
    assert len(rows(page)) == 4


def test_a_phone_sorts_by_a_choice_and_back(opened: Any, report: Path) -> None:
    page = opened(report, width=390)
    page.click("#more summary")
    urgent = rows(page)[:40]
    page.select_option("select[name=sort]", "outcome")
    assert {row[0] for row in rows(page)[:40]} == {"agree"}
    page.select_option("select[name=sort]", label="as collected")
    assert [row[4] for row in rows(page)][:3] == ["run-000", "run-001", "run-002"]
    page.select_option("select[name=sort]", label="most urgent first")
    assert rows(page)[:40] == urgent


def test_figures_lead_to_their_cases(opened: Any, report: Path) -> None:
    page = opened(report)
    page.click("header a >> text=4 regressions")
    wait_for(page, SHOWN, "4 of 49 cases")
    page.click("#more-figures > summary")
    page.click("#figures tr.rubric a >> text=tone")
    wait_for(page, SHOWN, "24 of 49 cases")
    assert page.input_value("select[name=rubric]") == "tone"


def test_the_worst_cases_are_links_to_their_pages(opened: Any, report: Path) -> None:
    for width in (1280, 390):
        page = opened(report, width=width)
        worst = page.locator("header details:has(summary:has-text('The 3 worst of 4 cases')) a")
        assert worst.count() == 3
        worst.first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#case p.verdict:has-text('The judge gave')")


def test_a_page_from_a_dark_screen_is_printed_dark_on_white(opened: Any, report: Path) -> None:
    page = opened(report, scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == (
        "rgb(28, 33, 40)"
    )


def test_the_reasoning_leads_to_the_turns_that_it_cites(opened: Any, tmp_path: Path) -> None:
    code = "Look:\n```python\nprint('late')\n```\nThat is all."
    long_result = "\n".join(f"line {number}" for number in range(40))
    messages = (
        {**MESSAGES[0], "content": code},
        MESSAGES[1],
        {**MESSAGES[2], "content": long_result},
        MESSAGES[3],
    )
    [result, *others] = judged(wrong_on("run-000"), runs=1, rubrics=("tone",))
    result = result_with(result, reasoning="See [2] and turn 0, not [77].")
    path = write(tmp_path, [result, *others], messages, AFTER)
    key = case_key(result.case_id)
    page = opened(path, f"#case-{key}")
    page.wait_for_selector("#case .turn")
    links = page.eval_on_selector_all(
        ".prose a", "all => all.map(link => [link.textContent, link.hash])"
    )
    assert links == [["[2]", f"#case-{key}&turn=2"], ["turn 0", f"#case-{key}&turn=0"]]
    assert page.inner_text("#turn-0 pre.code") == "```python\nprint('late')\n```"
    assert page.is_hidden("#turn-2 .body")
    page.click(".prose a >> text=[2]")
    assert page.is_visible("#turn-2 .body")
    assert page.evaluate("document.activeElement.id") == "turn-2"
    page.reload()
    page.wait_for_selector("#turn-2 .body")
    assert page.evaluate("document.activeElement.id") == "turn-2"
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview:not([hidden])")


def test_what_is_shown_is_in_the_address(opened: Any, report: Path) -> None:
    page = opened(report)
    page.select_option("select[name=outcome]", "disagree")
    page.click("th[data-sort=rubric] button")
    page.click("th[data-sort=rubric] button")
    page.click("button[data-status=failed]")
    shown = rows(page)
    assert page.evaluate("location.hash") == "#status=failed&outcome=disagree&sort=-rubric"
    page.reload()
    page.wait_for_selector("#shown:not(:empty)")
    assert rows(page) == shown
    page.click("table.cases tr[data-key] a >> nth=0")
    page.wait_for_selector("#case .card")
    page.reload()
    page.wait_for_selector("#case .card")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#case a[rel=prev]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview:not([hidden])")
    assert rows(page) == shown


def test_an_address_that_names_no_filter_shows_all_cases(opened: Any, report: Path) -> None:
    page = opened(report)
    everything = page.inner_text("#shown")
    # Told last, when the page has done what the address asks for.
    page.evaluate(
        "new Promise((done) => { addEventListener('hashchange', done); "
        "location.hash = 'status=none&outcome=none&sort=__proto__&rubric=%5B'; }).then(() => 0)"
    )
    assert page.evaluate("document.querySelector('input[name=status]').value") == ""
    assert page.inner_text("#shown") == everything


def test_the_search_finds_reasoning_edits_and_rubrics(
    opened: Any, report: Path, results: Sequence[CaseResult]
) -> None:
    page = opened(report)
    for words, number in (
        ("would not answer", 1),
        ("bought 25 days", 0),
        ("25 today", 24),
        ("order is late", 48),
        ("refund_policy disagree regression 25", 1),
    ):
        page.fill("input[name=text]", words)
        wait_for(page, SHOWN, f"{number} of 49 cases")


def test_the_focus_goes_into_a_case_and_back_to_its_row(opened: Any, report: Path) -> None:
    page = opened(report)
    # The page has the rows near the view alone.
    page.evaluate("document.querySelector('#cases').scrollIntoView()")
    link = page.locator("table.cases tr[data-key] a").nth(2)
    key = link.evaluate("link => link.closest('tr').dataset.key")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#case .card")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview:not([hidden])")
    assert page.evaluate("document.activeElement.closest('tr').dataset.key") == key


def test_a_command_is_copied_with_one_click(
    opened: Any, report: Path, results: Sequence[CaseResult]
) -> None:
    wrong = next(result for result in results if result.outcome == "disagree")
    page = opened(report, f"#case-{case_key(wrong.case_id)}")
    page.wait_for_selector("#case .copy")
    page.click("#case .copy")
    page.wait_for_selector("#case .copy:has-text('copied')")


def test_what_an_edit_put_in_is_underlined_without_colours(
    opened: Any, report: Path, results: Sequence[CaseResult]
) -> None:
    wrong = next(result for result in results if result.outcome == "disagree")
    page = opened(report, f"#case-{case_key(wrong.case_id)}")
    page.wait_for_selector("#case ins")
    for media in ({"media": "print"}, {"media": "screen", "forced_colors": "active"}):
        page.emulate_media(**media)
        style = "node => getComputedStyle(node).textDecorationLine"
        assert page.eval_on_selector("#case ins", style) == "underline"
        assert page.eval_on_selector("#case del", style) == "line-through"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_page_fits_the_screen_and_can_be_looked_at(
    opened: Any, report: Path, results: Sequence[CaseResult], width: int, scheme: str
) -> None:
    SHOTS.mkdir(exist_ok=True)
    wrong = next(result for result in results if result.outcome == "disagree")
    for name, hash_, there in (
        ("overview", "", "#overview"),
        ("case", f"#case-{case_key(wrong.case_id)}", "#case .card"),
    ):
        page = opened(report, hash_, width, scheme)
        page.wait_for_selector(there)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=SHOTS / f"report_{name}_{width}_{scheme}.png", full_page=True)
    light, dark = "rgb(245, 246, 248)", "rgb(15, 19, 24)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        dark if scheme == "dark" else light
    )


def test_hostile_text_is_text(opened: Any, tmp_path: Path) -> None:
    attack = f"{HOSTILE}\n```\n<img src=x onerror=alert(1)>\n```\n[1] [01] [9999] turn 2 ~~~"
    id_ = storable(HOSTILE)[0]
    made = [
        result_with(result, reasoning=attack, rubric_id=id_, judge=HOSTILE, run_id=f"{id_} {place}")
        for place, result in enumerate(
            judged(wrong_on("run-000"), runs=30, rubrics=("tone",), judge="j")
        )
    ]
    messages = [{**message, "content": f"{attack}\n" * 20} for message in MESSAGES]
    path = write(tmp_path, made, messages, f"{attack} and more")
    markup = "document.querySelectorAll('img, iframe, b, main script, a:not([href^=\"#\"])').length"
    page = opened(path, f"#case-{case_key(made[0].case_id)}&turn=__proto__&sort=__proto__")
    page.wait_for_selector("#case .turn")
    assert page.evaluate(markup) == 0
    assert "<script>alert('x')</script>" in page.inner_text("#case")
    assert page.locator("#case .turn pre.code").count() > 0
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview:not([hidden])")
    # Rows that the script has made, beyond those that the file has.
    page.locator("tbody[data-part='1']").evaluate("part => part.scrollIntoView()")
    page.wait_for_selector("tbody[data-part='1'] tr[data-key]")
    assert page.evaluate(markup) == 0
    assert "<script>alert('x')</script>" in page.inner_text("tbody[data-part='1']")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_no_name_widens_the_page_and_each_leads_to_its_cases(opened: Any, tmp_path: Path) -> None:
    names = ("W" * 2_000, storable(HOSTILE)[0], "\u202e\u05d0\u200b" * 300)
    made = [
        result_with(result, rubric_id=name, judge="j" * 500, run_id=f"{place} {name}")
        for name in names
        for place, result in enumerate(judged(wrong_on("run-000"), runs=2, rubrics=("tone",)))
    ]
    path = write(tmp_path, made, MESSAGES, "W" * 100_000)
    for width in (390, 1280):
        page = opened(path, width=width)
        page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for row in range(3):
            page.evaluate("scrollTo(0, 0)")
            page.locator("#figures tr.rubric a").nth(row).click()
            wait_for(page, SHOWN, "4 of 12 cases")


def test_huge_texts_do_not_stall_the_page(opened: Any, tmp_path: Path) -> None:
    old = " ".join(f"word{number}" for number in range(25_000))
    new = " ".join(f"word{number * 7 % 25_000}" for number in range(25_000))
    made = judged(wrong_on("run-000"), runs=1, rubrics=("tone",))
    path = write(tmp_path, made, (*MESSAGES[:-1], {**MESSAGES[-1], "content": old}), new)
    page = opened(path, f"#case-{case_key(made[0].case_id)}")
    page.wait_for_selector("#case .turn")
    assert page.inner_text(".diff ins").startswith("word0 word7 ")
    page.click("#case .more")
    assert new in page.text_content("#case .turn.edited")


def test_a_long_list_has_the_rows_in_view_and_loses_none(opened: Any, tmp_path: Path) -> None:
    made = judged(coin(), runs=125, rubrics=("a", "b", "c", "d"))
    path = write(tmp_path, made, MESSAGES, AFTER)
    page = opened(path)
    assert page.inner_text("#shown") == "1,000 cases"
    assert 40 <= len(rows(page)) < 200
    # Each row comes into view in its turn, and those that have left it are taken out again.
    keys: set[str] = set()
    filled = "table.cases tbody:has(tr[data-key])"
    for part in range(25):
        page.locator(f"tbody[data-part='{part}']").evaluate("part => part.scrollIntoView()")
        page.wait_for_selector(f"tbody[data-part='{part}'] tr[data-key]", state="attached")
        assert page.locator(filled).count() < 10
        keys.update(
            page.eval_on_selector_all("tr[data-key]", "rows => rows.map(row => row.dataset.key)")
        )
    assert keys == {case_key(result.case_id) for result in made}
    page.locator("table.cases tr[data-key] a").last.click()
    page.wait_for_selector("#case .turn")
    # A case whose row is far from where the list was left.
    key = case_key(made[0].case_id)
    page.evaluate("key => { location.hash = `#case-${key}`; }", key)
    page.wait_for_selector("#case:has-text('run-000')")
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview:not([hidden])")
    assert page.evaluate("document.activeElement.closest('tr').dataset.key") == key
    page.evaluate(
        "addEventListener('beforeprint', () => "
        "{ window.printed = document.querySelectorAll('tr[data-key]').length; })"
    )
    page.pdf(path=tmp_path / "printed.pdf")
    assert page.evaluate("window.printed") == 1_000


def test_without_a_script_the_list_says_what_it_lacks(browser: Any, tmp_path: Path) -> None:
    path = write(tmp_path, judged(coin(), runs=60), MESSAGES, AFTER)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("table.cases tbody tr").count() == 100
    assert "The list shows the first 100 of 240 cases" in page.inner_text("noscript")
    context.close()


def test_thousand_cases_open_and_filter(opened: Any, tmp_path: Path) -> None:
    made = judged(coin(), runs=125, rubrics=("a", "b", "c", "d"))
    path = write(tmp_path, made, MESSAGES, AFTER)
    assert path.stat().st_size < 30_000_000
    page = opened(path, f"#case-{case_key(made[-1].case_id)}")
    page.wait_for_selector("#case .turn")
    page.click("a[rel=up]")
    page.fill("input[name=text]", "run-100 late")
    page.select_option("select[name=rubric]", "c")
    assert len(rows(page)) == 2

"""Hostile transcripts and hostile sites, as a real browser sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.model import Plan, PlanStep
from tests.browser.material import hostile_case, made_case
from tests.support.made_cases import called, make_act_case

if TYPE_CHECKING:
    from tests.browser.opened import Sessions

MARKUP = (
    "#case script, #case img, #case svg, #case a[href^=javascript], #list img, dialog img, iframe"
)


def test_nothing_of_a_hostile_case_runs_loads_or_becomes_markup(sessions: Sessions) -> None:
    session = sessions.start()
    session.board.add(hostile_case())
    page = sessions.page(session)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.wait_for_selector("#turn-4.edited")
    for details in page.query_selector_all("#case details:not([open]) > summary"):
        details.click()
    page.keyboard.press("f")
    page.wait_for_selector("#turn-0")
    page.keyboard.press("e")
    page.wait_for_selector(".editor")
    page.keyboard.press("Escape")
    page.wait_for_selector(".editor", state="detached")
    page.keyboard.press("a")
    page.wait_for_selector("#list .tag:text-is('accepted')")
    page.click("text=Agent Templates")
    page.wait_for_selector("#difference:not(:empty)")
    assert page.evaluate("window.ran") is None
    assert page.locator(MARKUP).count() == 0
    assert "<script>window.ran" in page.inner_text("#turn-4")
    assert "\\u202eright to left" in page.inner_text("#turn-4")
    assert all(url.startswith(f"http://127.0.0.1:{session.server.port}/") for url in requests)
    files = [
        path.relative_to(sessions.folder) for path in sessions.folder.rglob("*") if path.is_file()
    ]
    assert [str(path) for path in files] == ["cases/agent_perturbation/review/decisions.jsonl"]


def test_another_site_in_the_same_browser_can_neither_read_nor_decide(
    sessions: Sessions, browser: Any
) -> None:
    session, other = sessions.start(), sessions.start()
    session.board.add(made_case(0))
    page = sessions.page(session)
    page.wait_for_selector("#turns > .turn")
    # Another port of the same host: same cookies, another origin.
    stranger = page.context.new_page()
    stranger.route(
        "**/elsewhere", lambda route: route.fulfill(body="<p>hello</p>", content_type="text/html")
    )
    stranger.goto(f"http://localhost:{other.server.port}/elsewhere")
    ask = (
        "([url, method]) => fetch(url, {method, mode: 'no-cors', credentials: "
        "'include'}).then(r => r.type, () => 'no')"
    )
    origin = f"http://127.0.0.1:{session.server.port}"
    for address, method in (("/finish", "POST"), ("/events", "GET"), ("/", "GET")):
        assert stranger.evaluate(ask, [origin + address, method]) in ("opaque", "no")
    assert not session.board.finalized
    stranger.close()


def test_what_nobody_typed_into_is_saved_as_it_was(sessions: Sessions) -> None:
    case = make_act_case()
    messages = list(case.outcome.messages)
    arguments = {**messages[1]["tool_calls"][0]["arguments"], "toString": "\u202ea\rb"}
    messages[1] = called(messages[1], arguments)
    messages[2] = {**messages[2], "content": "refunded\r\n96.0"}
    session = sessions.start()
    session.board.add(
        replace(case, outcome=replace(case.outcome, messages=tuple(messages)), verified=True)
    )
    page = sessions.page(session)
    page.click("[aria-label='Edit turn 1']")
    page.wait_for_selector(".editor")
    assert "toString: \\u202ea\\x0db" in page.inner_text(".editor .text")
    page.fill("#edit-0", "I refund it.")
    page.fill("#edit-2", "97.0")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".editor", state="detached")
    [reviewed] = session.board.changes()[1]
    turn, result = reviewed.case.messages[1:3]
    assert turn["content"] == "I refund it."
    assert turn["tool_calls"][0]["arguments"] == {**arguments, "amount": 97.0}
    assert result["content"] == "refunded\r\n96.0"
    assert sessions.complaints == []


def test_texts_of_a_megabyte_are_cut_until_they_are_asked_for(sessions: Sessions) -> None:
    session = sessions.start()
    case = made_case(0, new_text=f"edited {'W' * 1_000_000}")
    plan = Plan("Thesis.", (PlanStep(4, "[1] " * 70_000, "Why."),))
    session.board.add(replace(case, outcome=replace(case.outcome, plan=plan)))
    page = sessions.page(session)
    page.wait_for_selector("#turn-4.edited")
    assert len(page.inner_text("#turn-4")) < 20_000
    page.click("summary:text-is('why this edit')")
    assert len(page.inner_text("#turn-4 details")) < 20_000
    assert sessions.complaints == []

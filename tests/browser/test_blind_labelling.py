"""Blind labelling in headless Chromium: by keyboard alone, without a byte that tells, by several
people, and over the end of a session (rule N3)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_jrh.core.model import Judgment, ScoreLevel, Verdict
from pytest_jrh.review import serving as guard
from pytest_jrh.store.labels import blind_labels, read_people
from pytest_jrh.store.records import case_digest
from tests.browser.material import HOSTILE, hostile_case, made_case
from tests.browser.opened import Labelling, page_process
from tests.support.blind import (
    COMMON,
    all_kinds,
    blind_suite,
    confirmed,
    labelling,
    rejected,
    telling,
)
from tests.support.label_session import let_in


def wait_count(page: Any, text: str) -> None:
    page.wait_for_selector(f"#counts:text-is('{text}')")


def wait_shown(page: Any, key: str) -> None:
    page.wait_for_selector(f"#case article[data-key='{key}']")


def shown_key(page: Any) -> str:
    return str(page.get_attribute("#case article", "data-key"))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> bytearray:
    """All bytes that the server sends: heads, bodies, and streams of events."""
    collected = bytearray()
    with_headers = guard._with_headers

    def collecting(send: guard.Send) -> guard.Send:
        async def sending(event: guard.Event) -> None:
            for name, value in event.get("headers", ()):
                collected.extend(name + b": " + value + b"\n")
            collected.extend(event.get("body", b""))
            await send(event)

        return with_headers(sending)

    monkeypatch.setattr(guard, "_with_headers", collecting)
    return collected


def test_twenty_cases_by_keyboard_alone_without_a_byte_that_tells(
    pages: Labelling, sent: bytearray
) -> None:
    suite = blind_suite(pages.folder, sample=15)
    cases = all_kinds(40)
    board = labelling(suite, cases)
    for case in cases:
        board.set_verdict(case, Judgment((Verdict(1, f"Verdict of {case.spec.run_id}."),)))
    page = pages.page(pages.start(board))
    ann, _ = board.enter("ann")
    left = {one.key: one.entry for one in board.assigned(ann)}
    expected = {}
    for number in range(20):
        key = shown_key(page)
        case = left[key].case
        if number == 0:
            assert not [text for text in COMMON if text.encode() in sent if "refund" not in text]
        # On every third case a note; on every fifth the reviewer cannot tell.
        if number % 3 == 0:
            page.keyboard.press("t")
            page.keyboard.type(f"note {number}")
            page.keyboard.press("Enter")
        page.keyboard.press("c" if number % 5 == 4 else "v" if case.expected else "s")
        expected[left[key].digest] = None if number % 5 == 4 else case.expected
        page.keyboard.press("Enter")
        wait_count(page, f"{number + 1} labelled · {19 - number} to go")
        if number < 19:
            page.wait_for_selector(f"#case article:not([data-key='{key}'])")
    page.wait_for_selector("#finish-text:has-text('Every case of yours is labelled')")
    hidden = [f"Verdict of {case.spec.run_id}." for case in cases]
    for entry in left.values():
        hidden += telling(entry.case)
    assert not [text for text in hidden if text.encode() in sent]
    page.click("#finish-now")
    page.wait_for_selector("#open-finish:text-is('Finished')")
    assert not [text for text in hidden if text.encode() in sent]
    # It was looked for in what is sent: files, pages, events.
    for text in ("javascript", "event-stream", '"labelled": 20'):
        assert text.encode() in sent
    people = read_people(suite)
    assert {each.case_digest: each.label for each in people} == expected
    assert all(each.blind and each.reviewer == "ann" for each in people)
    assert sum(bool(each.note) for each in people) == 7


def to_go(page: Any) -> int:
    return int(page.inner_text("#counts").split(" · ")[1].split()[0])


def test_a_killed_session_loses_nothing_and_the_next_goes_on(pages: Labelling) -> None:
    with page_process("label", pages.folder) as (running, url):
        page = pages.page(url)
        for number in range(3):
            key = shown_key(page)
            page.keyboard.press("v")
            page.keyboard.press("Enter")
            wait_count(page, f"{number + 1} labelled · {7 - number} to go")
            page.wait_for_selector(f"#case article:not([data-key='{key}'])")
        running.kill()
        page.wait_for_selector("#banner:has-text('The session has ended')")
        page.close()
        pages.complaints.clear()
    assert len(read_people(blind_suite(pages.folder))) == 3
    with page_process("label", pages.folder) as (_, url):
        page = pages.page(url)
        wait_count(page, "3 labelled · 5 to go")
        assert page.locator("#rows button.done").count() == 3
        # Whoever comes anew begins with what all label.
        other = pages.page(url, name="ben")
        assert 5 <= to_go(other) <= 7
        page.close()
        other.close()


@pytest.mark.parametrize("answered", [0, 1, 5])
def test_no_label_that_was_answered_is_lost_when_the_process_is_killed_with_one_on_its_way(
    tmp_path: Path, answered: int
) -> None:
    with page_process("label", tmp_path) as (running, url), let_in(url) as ann:
        rows = ann.rows
        for row in rows[:answered]:
            assert ann.give(row["key"], 1).status_code == 200
        with ThreadPoolExecutor(1) as sender:
            on_its_way = sender.submit(ann.give, rows[answered]["key"], 0)
            running.kill()
            running.wait()
            try:
                number = answered + (on_its_way.result().status_code == 200)
            except httpx.HTTPError:
                number = answered
    kept = [label.label for label in read_people(blind_suite(tmp_path))]
    assert kept.count(1) == answered
    assert number <= len(kept) <= answered + 1
    with page_process("label", tmp_path) as (_, url), let_in(url) as ann:
        assert sum(not row["open"] for row in ann.rows) == len(kept)


def test_a_scale_has_keys_too_and_a_rejected_case_says_why(pages: Labelling) -> None:
    suite = blind_suite(pages.folder)
    scaled = made_case(3, target_score=2)
    board = labelling(suite, [scaled, rejected(0)])
    page = pages.page(pages.start(board))
    for _ in range(2):
        page.wait_for_selector("#case article")
        is_scale = page.locator(".level[title='mentions it']").count() == 1
        page.keyboard.press("1")
        assert page.locator("#meaning").inner_text() == "mentions it" or not is_scale
        key = shown_key(page)
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#finish[open], #case article:not([data-key='{key}'])")
    labels = blind_labels(read_people(suite))
    assert labels == {case_digest(scaled): (1,), case_digest(rejected(0)): (1,)}


def test_finish_ends_it_by_keyboard_and_help_lists_the_keys(pages: Labelling) -> None:
    board = labelling(blind_suite(pages.folder), [confirmed(0)])
    page = pages.page(pages.start(board))
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    assert "cannot tell" in page.inner_text("#help")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.wait_for_selector("#finish-text:has-text('1 of your cases are without a label')")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#open-finish:text-is('Finished')")
    assert board.finalized


def test_the_page_waits_until_every_case_is_made(pages: Labelling) -> None:
    board = labelling(blind_suite(pages.folder), [])
    board.announce(["one", "two"])
    board.end("two")
    page = pages.page(pages.start(board), name="")
    page.wait_for_selector("#enter[open]")
    page.keyboard.type("ann\u202e")
    page.keyboard.press("Enter")
    page.wait_for_selector("#enter-problem:has-text('no control characters')")
    page.fill("#name", "ann")
    page.keyboard.press("Enter")
    page.wait_for_selector("#wait-text:has-text('1 of 2')")
    board.end("one", confirmed(0))
    page.wait_for_selector("#case article")
    pages.complaints[:] = [each for each in pages.complaints if "409" not in each]


def test_nothing_of_a_hostile_case_runs_before_or_after_its_label(pages: Labelling) -> None:
    board = labelling(blind_suite(pages.folder), [hostile_case()])
    page = pages.page(pages.start(board), name=HOSTILE[:60])
    for _ in range(2):
        page.wait_for_selector("#case article")
        for details in page.query_selector_all("#case details:not([open]) > summary"):
            details.click()
        assert page.evaluate("window.ran") is None
        assert page.locator("#case script, #case img, #case svg, #case a[href^=java]").count() == 0
        assert "<script>window.ran" in page.inner_text("#turn-4")
        assert "\u2039U+202E\u203a" in page.inner_text("#turn-4")
        # Enter on what can be opened opens it.
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("v")
        page.keyboard.press("Enter")
        page.wait_for_selector("#finish[open]")
        page.keyboard.press("Escape")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    files = {path.name for path in pages.folder.rglob("*") if path.is_file()}
    assert files == {"labels.jsonl", ".gitattributes"}


def test_another_person_at_the_same_browser_labels_under_another_name(pages: Labelling) -> None:
    suite = blind_suite(pages.folder, overlap=1.0)
    page = pages.page(pages.start(labelling(suite, [confirmed(0), confirmed(1)])))
    shown_key(page)
    page.keyboard.press("v")
    page.keyboard.press("Enter")
    wait_count(page, "1 labelled · 1 to go")
    page.click("#who")
    page.wait_for_selector("#enter[open]")
    page.keyboard.type("ben")
    page.keyboard.press("Enter")
    wait_count(page, "0 labelled · 2 to go")
    assert page.inner_text("#who") == "ben"
    page.wait_for_selector("#rows [aria-current]")
    page.keyboard.press("s")
    page.keyboard.press("Enter")
    wait_count(page, "1 labelled · 1 to go")
    assert sorted((each.reviewer, each.label) for each in read_people(suite)) == [
        ("ann", 1),
        ("ben", 0),
    ]
    page.reload()
    wait_count(page, "1 labelled · 1 to go")


def test_two_people_at_once_by_mouse_alone_and_neither_ends_it_for_the_other(
    pages: Labelling,
) -> None:
    suite = blind_suite(pages.folder, sample=4, overlap=1.0)
    board = labelling(suite, all_kinds(4))
    url = pages.start(board)
    ann, ben = pages.page(url), pages.page(url, name="ben")
    answers: list[Any] = []
    ben.on("response", lambda response: answers.append(response))  # noqa: PLW0108 - a builtin is no handler

    def label_all(page: Any) -> None:
        for number in range(4):
            key = shown_key(page)
            page.click(f".level:has(input[value='{number % 2}'])")
            page.click("#confirm")
            wait_count(page, f"{number + 1} labelled · {3 - number} to go")
            if number < 3:
                page.wait_for_selector(f"#case article:not([data-key='{key}'])")
        page.wait_for_selector("#finish[open]")

    label_all(ann)
    ann.click("#finish-now")
    ann.wait_for_selector("#banner:has-text('goes on when ben have finished')")
    has_ended_early = board.finalized
    assert not has_ended_early
    assert ben.locator("#case article").count() == 1
    label_all(ben)
    # That ann has finished gives nothing away to ben, who still labels.
    hidden: list[str] = []
    for case in all_kinds(4):
        hidden += telling(case)
    bodies = [answer.text() for answer in answers if "/reviewers/" in answer.url]
    assert len(bodies) >= 8
    assert not [text for text in hidden for body in bodies if text in body]
    ben.click("#finish-now")
    ann.wait_for_selector("#open-finish:text-is('Finished')")
    assert board.finalized
    assert len(read_people(suite)) == 8
    assert all(each.blind for each in read_people(suite))


def test_u_right_after_a_label_takes_that_one_back_and_returns_to_it(pages: Labelling) -> None:
    suite = blind_suite(pages.folder)
    page = pages.page(pages.start(labelling(suite, [confirmed(0), confirmed(1), confirmed(2)])))
    first = shown_key(page)
    page.keyboard.press("v")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#case article:not([data-key='{first}'])")
    # What is only chosen is taken back first.
    page.keyboard.press("s")
    page.keyboard.press("u")
    page.wait_for_selector("#levels:not(:has(input:checked))")
    wait_count(page, "1 labelled · 2 to go")
    page.keyboard.press("u")
    page.wait_for_selector(f"#case article[data-key='{first}']:has(.tag:text-is('taken back'))")
    wait_count(page, "0 labelled · 3 to go")
    page.keyboard.press("s")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#case article:not([data-key='{first}'])")
    # After another key it is about the case that is open.
    page.keyboard.press("j")
    page.wait_for_selector("#undo:disabled")
    assert [label.label for label in read_people(suite) if not label.withdrawn] == [0]
    assert read_people(suite)[-1].blind


def test_by_mouse_alone_a_label_is_taken_back_and_any_case_is_opened(pages: Labelling) -> None:
    suite = blind_suite(pages.folder)
    page = pages.page(pages.start(labelling(suite, [confirmed(0), confirmed(1), confirmed(2)])))
    rows = page.locator("#rows li")
    first, second, third = (rows.nth(index).get_attribute("data-key") for index in range(3))
    wait_shown(page, first)
    page.click(".level:has(input[value='1'])")
    page.click("#undo")
    page.wait_for_selector("#levels:not(:has(input:checked))")
    page.click(".level:has(input[value='1'])")
    page.click("#confirm")
    wait_shown(page, second)
    page.click("#undo")
    page.wait_for_selector(f"#case article[data-key='{first}']:has(.tag:text-is('taken back'))")
    wait_count(page, "0 labelled · 3 to go")
    page.click("#next")
    wait_shown(page, second)
    page.click("#previous")
    wait_shown(page, first)
    for number, key in enumerate((third, second, first), 1):
        if key != first:
            page.click(f"#rows li[data-key='{key}'] button")
        wait_shown(page, key)
        page.click(".level:has(input[value='0'])")
        page.click("#confirm")
        wait_count(page, f"{number} labelled · {3 - number} to go")
        # The first one is what comes next without a label.
        wait_shown(page, first)
    page.click("#finish[open] #finish-now")
    page.wait_for_selector("#open-finish:text-is('Finished')")
    labels = blind_labels(read_people(suite))
    assert len(labels) == 3
    assert set(labels.values()) == {(0,)}


def test_a_rubric_is_never_cut_without_a_sign(pages: Labelling) -> None:
    case = confirmed(0)
    long = replace(case.rubric, instructions="The agent is polite.\n" * 40)
    board = labelling(blind_suite(pages.folder), [replace(case, rubric=long)])
    page = pages.page(pages.start(board), width=390)
    page.click(".rubric .cut-off:text-is('… there is more: show all')")
    page.wait_for_selector(".rubric .cut-off:text-is('show less')")
    text = page.locator(".rubric .instructions")
    assert text.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
    page.click(".rubric .cut-off")
    page.wait_for_selector(".rubric .cut-off:has-text('there is more')")


def test_one_who_has_left_can_end_it_for_everybody(pages: Labelling) -> None:
    board = labelling(blind_suite(pages.folder, overlap=1.0), [confirmed(0), confirmed(1)])
    url = pages.start(board)
    ann, ben = pages.page(url), pages.page(url, name="ben")
    ben.wait_for_selector("#case article")
    ann.click("#open-finish")
    assert not ann.is_visible("#finish-all")
    ann.click("#finish-now")
    ann.wait_for_selector("#banner:has-text('goes on when')")
    ann.click("#open-finish")
    ann.wait_for_selector("#finish-text:has-text('ben still label')")
    ann.click("#finish-all")
    ann.wait_for_selector("#open-finish:text-is('Finished')")
    assert board.finalized


SHOTS = Path(__file__).parent / "screenshots"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_of_labels_fits_the_screen(pages: Labelling, width: int, scheme: str) -> None:
    SHOTS.mkdir(exist_ok=True)
    board = labelling(blind_suite(pages.folder, sample=9), [*all_kinds(44), hostile_case()])
    for case in all_kinds(44):
        board.set_verdict(case, Judgment((Verdict(0, "The agent kept to the policy."),)))
    page = pages.page(pages.start(board), width=width, scheme=scheme, name="")

    def shoot(name: str) -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=SHOTS / f"label_{name}_{width}_{scheme}.png")

    page.wait_for_selector("#enter[open]")
    shoot("enter")
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    page.wait_for_selector("#case article")
    for number in range(11):
        key = shown_key(page)
        page.keyboard.press("s" if number % 2 else "v")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#case article:not([data-key='{key}'])")
    page.keyboard.press("v")
    shoot("case")
    page.keyboard.press("?")
    shoot("help")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    shoot("finish")
    page.click("#finish-now")
    scale = replace(
        made_case(50, target_score=2),
        levels=tuple(
            ScoreLevel(score, f"Level {score}: " + "a long text " * 5) for score in range(12)
        ),
    )
    other = labelling(blind_suite(pages.folder / "scale"), [scale])
    page = pages.page(pages.start(other), width=width, scheme=scheme)
    page.keyboard.press("3")
    shoot("scale")

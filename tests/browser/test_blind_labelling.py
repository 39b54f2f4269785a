"""Blind labelling in headless Chromium: by keyboard alone, without a byte that tells, by several
people, and over the end of a session."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_jrh.review import serving as guard
from pytest_jrh.store.people import blind_labels, read_people
from pytest_jrh.store.records import case_digest
from tests.browser.material import HOSTILE, hostile_case, made_case
from tests.browser.opened import LabelPages, page_process
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

FINISH = "#end button:text-is('Finish')"


def wait_count(page: Any, done: int, total: int) -> None:
    page.wait_for_selector(f"#headline:text-is('Blind labelling: {done} of {total}')")


def wait_number(page: Any, number: int) -> None:
    """Wait until the case with this number is shown, and taken in."""
    page.wait_for_selector(f"#about:text-is('Case {number}')")
    page.wait_for_selector(f"#list a[aria-current]:has(.sign:text-is('{number}'))")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> bytearray:
    """All bytes that the server sends: heads, bodies, and streams of events."""
    collected = bytearray()
    with_headers = guard._with_headers

    def collecting(send: guard.Send, headers: Mapping[str, str]) -> guard.Send:
        async def sending(event: guard.Event) -> None:
            for name, value in event.get("headers", ()):
                collected.extend(name + b": " + value + b"\n")
            collected.extend(event.get("body", b""))
            await send(event)

        return with_headers(sending, headers)

    monkeypatch.setattr(guard, "_with_headers", collecting)
    return collected


def test_twenty_cases_by_keyboard_alone_without_a_byte_that_tells(
    pages: LabelPages, sent: bytearray
) -> None:
    suite = blind_suite(pages.folder, sample=15)
    cases = all_kinds(40)
    board = labelling(suite, cases)
    page = pages.page(pages.start(board))
    shell = page.content()
    ann, _ = board.enter("ann")
    entries = [one.entry for one in board.assigned(ann)]
    expected = {}
    for place, entry in enumerate(entries):
        wait_number(page, place + 1)
        # On every third case a note; on every fifth the reviewer cannot tell.
        if place % 3 == 0:
            page.keyboard.press("n")
            page.keyboard.type(f"note {place}")
            page.keyboard.press("Escape")
        page.keyboard.press("c" if place % 5 == 4 else "v" if entry.case.expected else "s")
        expected[entry.digest] = None if place % 5 == 4 else entry.case.expected
        wait_count(page, place + 1, 20)
    page.wait_for_selector("#end-text:has-text('All your cases are labelled')")
    hidden: list[str] = []
    for entry in entries:
        hidden += telling(entry.case)
    assert not [text for text in hidden if text.encode() in sent]
    # What all made cases have in common is in no answer; the page's own script has words for it.
    answers = sent.replace(shell.encode(), b"")
    kept = "".join(page.locator("#turns").all_inner_texts())
    common = [text for text in COMMON if "refund" not in text and text not in kept]
    assert not [text for text in common if f'"{text}"'.encode() in answers]
    page.click(FINISH)
    page.wait_for_selector("#finish:disabled")
    assert not [text for text in hidden if text.encode() in sent]
    # It was looked for in what is sent: the page, answers, events.
    for text in ("text/html", "event-stream", '"done": 20', "application/json"):
        assert text.encode() in sent
    people = read_people(suite)
    assert {each.case_digest: each.label for each in people} == expected
    assert all(each.blind and each.reviewer == "ann" for each in people)
    assert sum(bool(each.note) for each in people) == 7


def test_a_case_shows_rubric_and_transcript_alone(pages: LabelPages) -> None:
    board = labelling(blind_suite(pages.folder), [confirmed(0), confirmed(2)])
    page = pages.page(pages.start(board))
    wait_number(page, 1)
    assert page.inner_text("#title") == "Does the run violate refund_window?"
    assert "delivered within the last 30 days" in page.inner_text(".rubric")
    assert "support-0" not in page.inner_text("#list") + page.inner_text("#case-head")
    # Nothing is marked or folded; the system prompt of all is read once.
    assert page.locator("#turns :is(ins, del, .edited, .flag, .fold:not([open]))").count() == 0
    page.wait_for_selector("#turn-0")
    page.keyboard.press("v")
    wait_number(page, 2)
    page.wait_for_selector("#turns .fold:has-text('[0] system')")
    assert page.locator("#turns .fold").count() == 1


def test_a_killed_session_loses_nothing_and_the_next_goes_on(pages: LabelPages) -> None:
    with page_process("label", pages.folder) as (running, url):
        page = pages.page(url)
        for place in range(3):
            wait_number(page, place + 1)
            page.keyboard.press("v")
            wait_count(page, place + 1, 8)
        running.kill()
        page.wait_for_selector("#banner:has-text('The session has ended')")
        page.close()
        pages.complaints.clear()
    assert len(read_people(blind_suite(pages.folder))) == 3
    with page_process("label", pages.folder) as (_, url):
        page = pages.page(url)
        wait_count(page, 3, 8)
        assert page.locator("#list .tag").count() == 3
        # Whoever comes anew has what all label, and what nobody has labelled.
        other = pages.page(url, name="ben")
        other.wait_for_selector("#headline:has-text('0 of ')")
        assert 5 <= other.locator("#list a").count() <= 7
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
        assert sum(bool(row["value"]) for row in ann.rows) == len(kept)


def test_a_scale_has_keys_too_and_a_rejected_case_is_any_other(pages: LabelPages) -> None:
    suite = blind_suite(pages.folder)
    scaled = made_case(3, target_score=2)
    board = labelling(suite, [scaled, rejected(0)])
    page = pages.page(pages.start(board))
    for number in (1, 2):
        wait_number(page, number)
        is_scale = page.locator("#answers button:has-text('mentions it')").count() == 1
        page.keyboard.press("1" if is_scale else "v")
        wait_count(page, number, 2)
    page.wait_for_selector("#end[open]")
    labels = blind_labels(read_people(suite))
    assert labels == {case_digest(scaled): (1,), case_digest(rejected(0)): (1,)}


def test_finish_is_one_dialog_by_keyboard_and_says_what_is_left(pages: LabelPages) -> None:
    board = labelling(blind_suite(pages.folder), [confirmed(0)])
    page = pages.page(pages.start(board))
    page.focus("#finish")
    page.keyboard.press("Enter")
    page.wait_for_selector("#end-text:has-text('1 of your cases have no label')")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#finish:disabled")
    page.wait_for_selector("#banner:has-text('its report shows your labels')")
    assert board.finalized


def test_the_page_waits_until_every_case_is_made(pages: LabelPages) -> None:
    board = labelling(blind_suite(pages.folder), [])
    board.announce(["one", "two"])
    board.end("two")
    page = pages.page(pages.start(board), name="")
    page.wait_for_selector("#enter[open]")
    page.keyboard.type("ann\u202e")
    page.keyboard.press("Enter")
    page.wait_for_selector("#name-problem:has-text('no control characters')")
    page.fill("#name", "ann")
    page.keyboard.press("Enter")
    page.wait_for_selector("#sub:has-text('1 of 2')")
    board.end("one", confirmed(0))
    wait_number(page, 1)
    pages.complaints[:] = [each for each in pages.complaints if "409" not in each]


def test_nothing_of_a_hostile_case_runs_before_or_after_its_label(pages: LabelPages) -> None:
    board = labelling(blind_suite(pages.folder), [hostile_case()])
    page = pages.page(pages.start(board), name=HOSTILE[:60])
    for _ in range(2):
        wait_number(page, 1)
        for details in page.query_selector_all("#case details:not([open]) > summary"):
            details.click()
        assert page.evaluate("window.ran") is None
        assert page.locator("#case script, #case img, #case svg, #case a[href^=java]").count() == 0
        assert "<script>window.ran" in page.inner_text("#turn-4")
        assert "\\u202e" in page.inner_text("#turn-4")
        page.keyboard.press("v")
        page.wait_for_selector("#end[open]")
        page.keyboard.press("Escape")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    files = {path.name for path in pages.folder.rglob("*") if path.is_file()}
    assert files == {"labels.jsonl", ".gitattributes"}


def test_another_person_at_the_same_browser_labels_under_another_name(pages: LabelPages) -> None:
    suite = blind_suite(pages.folder, overlap=1.0)
    page = pages.page(pages.start(labelling(suite, [confirmed(0), confirmed(1)])))
    page.keyboard.press("v")
    wait_count(page, 1, 2)
    page.click("#who")
    page.wait_for_selector("#enter[open]")
    page.fill("#name", "ben")
    page.keyboard.press("Enter")
    wait_count(page, 0, 2)
    assert page.inner_text("#who") == "ben"
    wait_number(page, 1)
    page.keyboard.press("s")
    wait_count(page, 1, 2)
    labels = sorted((each.reviewer, each.label) for each in read_people(suite))
    assert labels == [("ann", 1), ("ben", 0)]
    page.reload()
    wait_count(page, 1, 2)
    assert page.inner_text("#who") == "ben"


def test_two_people_at_once_by_mouse_alone_and_neither_ends_it_for_the_other(
    pages: LabelPages,
) -> None:
    suite = blind_suite(pages.folder, sample=4, overlap=1.0)
    board = labelling(suite, all_kinds(4))
    url = pages.start(board)
    ann, ben = pages.page(url), pages.page(url, name="ben")
    answers: list[Any] = []
    ben.on("response", lambda response: answers.append(response))  # noqa: PLW0108 - a builtin is no handler

    def label_all(page: Any, total: int) -> None:
        for place in range(total):
            wait_number(page, place + 1)
            page.click(f"#answers [value='{place % 2}']")
            wait_count(page, place + 1, total)
        page.wait_for_selector("#end[open]")

    total = board.progress().shown
    label_all(ann, total)
    ann.click(FINISH)
    ann.wait_for_selector("#banner:has-text('goes on when ben have finished')")
    has_ended_early = board.finalized
    assert not has_ended_early
    label_all(ben, total)
    # That ann has finished gives nothing away to ben, who still labels.
    hidden: list[str] = []
    for case in all_kinds(4):
        hidden += telling(case)
    bodies = [answer.text() for answer in answers if "/reviewers/" in answer.url]
    assert len(bodies) >= 8
    assert not [text for text in hidden for body in bodies if text in body]
    ben.click(FINISH)
    ann.wait_for_selector("#finish:disabled")
    assert board.finalized
    assert len(read_people(suite)) == 2 * total
    assert all(each.blind for each in read_people(suite))


def test_u_right_after_a_label_takes_that_one_back_and_returns_to_it(pages: LabelPages) -> None:
    suite = blind_suite(pages.folder)
    page = pages.page(pages.start(labelling(suite, [confirmed(0), confirmed(2), confirmed(4)])))
    wait_number(page, 1)
    page.keyboard.press("v")
    wait_number(page, 2)
    page.keyboard.press("u")
    wait_number(page, 1)
    wait_count(page, 0, 3)
    page.wait_for_selector("#answers:not(:has([aria-pressed=true]))")
    page.keyboard.press("s")
    wait_number(page, 2)
    # A label is changed where it is given again, and a note beside it is kept by itself.
    page.keyboard.press("k")
    wait_number(page, 1)
    page.keyboard.press("v")
    wait_number(page, 2)
    page.keyboard.press("k")
    wait_number(page, 1)
    page.keyboard.press("n")
    page.keyboard.type("after all")
    page.keyboard.press("Escape")
    page.wait_for_selector("#list a:has(.tag:text-is('violated'))")
    for _ in range(50):
        if read_people(suite)[-1].note:
            break
        page.wait_for_timeout(100)
    last = read_people(suite)[-1]
    assert (last.label, last.note, last.blind) == (1, "after all", True)


def test_any_case_is_opened_and_a_label_taken_back_by_mouse(pages: LabelPages) -> None:
    suite = blind_suite(pages.folder)
    page = pages.page(pages.start(labelling(suite, [confirmed(0), confirmed(2), confirmed(4)])))
    wait_number(page, 1)
    for place, number in enumerate((3, 2, 1), 1):
        page.click(f"#list a >> nth={number - 1}")
        wait_number(page, number)
        page.click("#answers [value='0']")
        wait_count(page, place, 3)
        if number == 3:
            # The first one is what comes next without a label.
            wait_number(page, 1)
    page.click("#end button:text-is('Go on')")
    page.click("#answers [data-do=undo]")
    wait_count(page, 2, 3)
    page.click("#answers [value='1']")
    page.click(FINISH)
    page.wait_for_selector("#finish:disabled")
    assert sorted(blind_labels(read_people(suite)).values()) == [(0,), (0,), (1,)]


def test_a_reviewer_who_has_finished_can_end_it_for_everybody(pages: LabelPages) -> None:
    board = labelling(blind_suite(pages.folder, overlap=1.0), [confirmed(0)])
    url = pages.start(board)
    ann, _ = pages.page(url), pages.page(url, name="ben")
    ann.click("#finish")
    ann.click(FINISH)
    ann.wait_for_selector("#banner:has-text('ben have finished')")
    # News of others' work do not take away whom the session waits for.
    board.announce(())
    ann.wait_for_timeout(300)
    assert "ben have finished" in ann.inner_text("#banner")
    ann.click("#finish")
    ann.wait_for_selector("#end-text:has-text('ben still label')")
    ann.click("#end button:text-is('End it for everybody')")
    ann.wait_for_selector("#finish:disabled")
    assert board.finalized


def test_a_long_rubric_is_whole_and_stays_beside_the_transcript(pages: LabelPages) -> None:
    case = confirmed(0)
    long = replace(case.rubric, instructions="The agent is polite.\n" * 40 + "The end.")
    page = pages.page(
        pages.start(labelling(blind_suite(pages.folder), [replace(case, rubric=long)]))
    )
    wait_number(page, 1)
    assert page.inner_text(".rubric p").endswith("The end.")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    top = page.evaluate("document.querySelector('#voices').getBoundingClientRect().top")
    assert 0 <= top < 200

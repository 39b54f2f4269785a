"""Blind labelling in headless Chromium: by keyboard alone, without a byte that tells, by several
people, and over the end of a session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from pytest_jrh.people import Grounds
from pytest_jrh.people.labels import read_people
from pytest_jrh.review import serving as guard
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

if TYPE_CHECKING:
    from pytest_jrh.core.cases import Case

FINISH = "#end button:text-is('Finish')"


def finish(page: Any) -> None:
    """Finish by keyboard, once all is labelled."""
    page.wait_for_selector("#end[open]")
    page.focus(FINISH)
    page.keyboard.press("Enter")


def wait_count(page: Any, done: int, total: int) -> None:
    page.wait_for_selector(f"#headline:text-is('Labelled: {done} of {total}')")


def wait_done(page: Any) -> None:
    """Wait until the page says that all is saved, and leaves nothing to press."""
    page.wait_for_selector("#headline:text-is('You are done')")
    assert page.locator("button:visible").count() == 0


def wait_number(page: Any, number: int) -> None:
    """Wait until the case with this number is shown, and taken in."""
    page.wait_for_selector(f"#about:text-is('Case {number}')")
    page.wait_for_selector(f"#list a[aria-current]:has(.sign:text-is('{number}'))")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> bytearray:
    """All bytes that the server sends: heads, bodies, and streams of events."""
    collected = bytearray()
    guarded = guard.Guard.__call__

    async def collecting(self: guard.Guard, scope: Any, receive: Any, send: Any) -> None:
        async def sending(event: Any) -> None:
            for name, value in event.get("headers", ()):
                collected.extend(name + b": " + value + b"\n")
            collected.extend(event.get("body", b""))
            await send(event)

        await guarded(self, scope, receive, sending)

    monkeypatch.setattr(guard.Guard, "__call__", collecting)
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
        # Nothing is marked: rubric and transcript alone are there.
        assert page.locator("#turns :is(ins, del, .edited, .flag)").count() == 0
        assert "support-0" not in page.inner_text("#list") + page.inner_text("#case-head")
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
    wait_done(page)
    assert not [text for text in hidden if text.encode() in sent]
    # It was looked for in what is sent: the page, answers, events.
    for text in ("text/html", "event-stream", '"done": 20', "application/json"):
        assert text.encode() in sent
    people = read_people(suite)
    assert {each.case_digest: each.label for each in people} == expected
    assert all(each.blind and each.reviewer == "ann" for each in people)
    assert sum(bool(each.note) for each in people) == 7


def test_a_killed_session_loses_nothing_and_the_next_goes_on(pages: LabelPages) -> None:
    with page_process("label", pages.folder) as (running, url):
        page = pages.page(url)
        for place in range(3):
            wait_number(page, place + 1)
            page.keyboard.press("v")
            wait_count(page, place + 1, 8)
        running.kill()
        page.wait_for_selector("#banner:has-text('The program behind this page')")
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


def test_no_label_that_was_answered_is_lost_when_the_process_is_killed_with_one_on_its_way(
    tmp_path: Path,
) -> None:
    answered = 5
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


def test_a_label_is_taken_back_given_again_and_finished_by_keyboard(pages: LabelPages) -> None:
    suite = blind_suite(pages.folder)
    scaled = made_case(3, target_score=2)
    board = labelling(suite, [scaled, rejected(0), confirmed(2)])
    page = pages.page(pages.start(board))

    def press_answer(number: int) -> None:
        wait_number(page, number)
        is_scale = page.locator("#answers button:has-text('mentions it')").count() == 1
        page.keyboard.press("1" if is_scale else "v")

    press_answer(1)
    wait_number(page, 2)
    page.keyboard.press("u")
    wait_number(page, 1)
    wait_count(page, 0, 3)
    page.wait_for_selector("#answers:not(:has([aria-pressed=true]))")
    press_answer(1)
    wait_number(page, 2)
    # A note is saved by itself beside a label that was given, also where its field is never left.
    page.keyboard.press("k")
    wait_number(page, 1)
    page.keyboard.press("n")
    page.keyboard.type("after all")
    page.reload()
    page.wait_for_selector("#toast:has-text('Note saved')")
    # Letters that are switched off are offered nowhere.
    for are_on in (False, True):
        page.click("#keys")
        page.click("#letters")
        page.keyboard.press("Escape")
        assert are_on == (page.locator("#case kbd:visible").count() > 0)
    page.keyboard.press("j")
    press_answer(2)
    wait_count(page, 2, 3)
    page.focus("#finish")
    page.keyboard.press("Enter")
    page.wait_for_selector("#end-text:has-text('1 of 3 cases has no label')")
    page.keyboard.press("Escape")
    press_answer(3)
    finish(page)
    wait_done(page)
    assert board.finalized.is_set()
    people = read_people(suite)
    assert sorted(Grounds(people=people).blind_votes.values()) == [(1,)] * 3
    assert [each.note for each in people if each.note] == ["after all"]


def test_two_people_at_once_by_mouse_alone_and_one_ends_it_for_both(pages: LabelPages) -> None:
    suite = blind_suite(pages.folder, sample=4, overlap=1.0)
    board = labelling(suite, all_kinds(4))
    url = pages.start(board)
    ann, ben = pages.page(url), pages.page(url, name="ben")
    answers: list[Any] = []
    ben.on("response", lambda response: answers.append(response))  # noqa: PLW0108 - a builtin is no handler
    total = board.progress().shown

    def label_all(page: Any) -> None:
        # Any case can be opened from the list; the first without a label comes after it.
        for done, number in enumerate((total, *range(1, total)), 1):
            if done == 1:
                page.click(f"#list a >> nth={number - 1}")
            wait_number(page, number)
            # Twice at once is no label of the next case.
            page.wait_for_selector("#answers")
            page.wait_for_timeout(600)
            page.dblclick(f"#answers [value='{number % 2}']")
            wait_count(page, done, total)
        page.wait_for_selector("#end[open]")

    label_all(ann)
    ann.click("#end button:text-is('Not yet')")
    ann.click("[data-do=undo]")
    ann.wait_for_selector("#toast:has-text('is taken back')")
    ann.wait_for_timeout(600)
    ann.click("#answers [value='1']")
    # The end is offered once.
    ann.wait_for_selector("#sub:has-text('All cases are labelled')")
    ann.click("#finish")
    ann.click(FINISH)
    ann.wait_for_selector("#banner:has-text('Labelling ends when ben has finished')")
    has_ended_early = board.finalized.is_set()
    assert not has_ended_early
    label_all(ben)
    # That ann has finished gives nothing away to ben, who still labels.
    hidden: list[str] = []
    for case in all_kinds(4):
        hidden += telling(case)
    bodies = [answer.text() for answer in answers if "/reviewers/" in answer.url]
    assert len(bodies) >= 8
    assert not [text for text in hidden for body in bodies if text in body]
    # News of others' work do not take away whom the session waits for.
    assert "ben has finished" in ann.inner_text("#banner")
    ann.click("#finish")
    ann.wait_for_selector("#end-text:has-text('ben is still labelling')")
    ann.click("#end button:text-is('Finish for everybody')")
    wait_done(ben)
    assert board.finalized.is_set()
    given = Grounds(people=read_people(suite)).blind_votes
    assert [len(labels) for labels in given.values()] == [2] * total


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


def test_nothing_of_a_hostile_case_runs_before_or_after_its_label(pages: LabelPages) -> None:
    board = labelling(blind_suite(pages.folder), [hostile_case()])
    page = pages.page(pages.start(board), name=HOSTILE[:60])
    for ended in ("#end[open]", "#sub:has-text('All cases are labelled')"):
        wait_number(page, 1)
        for details in page.query_selector_all("#case details:not([open]) > summary"):
            details.click()
        assert page.evaluate("window.ran") is None
        assert page.locator("#case script, #case img, #case svg, #case a[href^=java]").count() == 0
        assert "<script>window.ran" in page.inner_text("#turn-4")
        assert "\\u202e" in page.inner_text("#turn-4")
        page.keyboard.press("v")
        page.wait_for_selector(ended)
        page.keyboard.press("Escape")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    files = {path.name for path in pages.folder.rglob("*") if path.is_file()}
    assert files == {"labels.jsonl", ".gitattributes"}


def test_no_key_is_lost_and_a_note_outlives_its_label(pages: LabelPages) -> None:
    suite = blind_suite(pages.folder, sample=30)
    board = labelling(suite, [confirmed(number) for number in range(22)])
    page = pages.page(pages.start(board))
    wait_count(page, 0, 22)
    page.keyboard.press("n")
    page.keyboard.type("before")
    # A draft stays where the page is left, and asks for no name again.
    page.reload()
    wait_number(page, 1)
    assert page.input_value("#note") == "before"
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    page.wait_for_selector("#toast:has-text('Note kept')")
    page.keyboard.press("j")
    wait_number(page, 2)
    assert page.input_value("#note") == ""
    page.keyboard.press("k")
    wait_number(page, 1)
    for _ in range(20):
        page.keyboard.press("s")
    wait_count(page, 20, 22)
    wait_number(page, 21)
    page.click("#toast button")
    wait_number(page, 20)
    wait_count(page, 19, 22)
    page.click("#list a >> nth=0")
    wait_number(page, 1)
    page.keyboard.press("u")
    wait_count(page, 18, 22)
    assert page.input_value("#note") == "before"
    page.keyboard.press("g")
    wait_number(page, 1)
    page.keyboard.press("v")
    wait_count(page, 19, 22)
    page.keyboard.press("g")
    wait_number(page, 20)
    labels = {each.note: each.label for each in read_people(suite) if not each.withdrawn}
    assert labels == {"before": 1, "": 0}


def test_a_name_that_is_nearly_anothers_is_asked_about(pages: LabelPages) -> None:
    suite = blind_suite(pages.folder, overlap=1.0)
    url = pages.start(labelling(suite, [confirmed(0), confirmed(1)]))
    pages.page(url, name="Team Ann")
    page = pages.open(url)
    page.wait_for_selector("#enter[open]")
    assert "2 cases" in page.inner_text("#asked")
    page.keyboard.type("team ann")
    page.keyboard.press("Enter")
    page.click("button:has-text('Yes, I am Team Ann')")
    page.wait_for_selector("#who:text-is('Team Ann')")
    other = pages.open(url)
    other.wait_for_selector("#enter[open]")
    other.keyboard.type("Team Ann")
    other.keyboard.press("Enter")
    other.wait_for_selector("#name-problem:has-text('If not, type another name.')")
    other.fill("#name", "TeamAnn")
    other.keyboard.press("Enter")
    other.click("button:has-text('No, I am somebody else')")
    other.wait_for_selector("#who:text-is('TeamAnn')")


WRAPS = (
    '{} ¦ [click]({}) ¦ [click](<{}>) ¦ [click]({} "title") ¦ ![image]({}) ¦ '
    "![image](<{}> '{}') ¦ [![image]({})]({}) ¦ <{}> ¦ [ref]\n\n[ref]: {} ¦ "
    "**bold {}** _and {}_ ¦ > quoted {} ¦ - item {}\n  - deeper {} ¦ 1. {} ¦ "
    "| a | {} |\n|---|:-:|\n| {} | b | ¦ ```{}\n{}\n``` ¦ `{}` ¦ # {} ¦ ~~{}~~ ¦ "
    "text\\\n{}  \nend ¦ <div>\n\n{}\n\n</div>"
)
VECTORS = (
    "javascript:window.ran=1 ¦ JaVaScRiPt&colon;window.ran=1 ¦ java\nscript:window.ran=1 ¦ "
    "&#106;avascript:window.ran=1 ¦ vbscript:window.ran=1 ¦ "
    "data:text/html,<script>window.ran=1</script> ¦ "
    "data:text/html;base64,PHNjcmlwdD53aW5kb3cucmFuPTE8L3NjcmlwdD4= ¦ "
    "data:image/svg+xml,<svg onload=window.ran=1> ¦ data:image/png;base64,iVBORw0KGgo= ¦ "
    "https://evil.example/?a=1&b=2 ¦ //evil.example/x.png ¦ file:///etc/passwd ¦ "
    "<script>window.ran=1</script> ¦ <img src=x onerror=window.ran=1> ¦ "
    "<svg/onload=window.ran=1> ¦ <a href=javascript:window.ran=1>click</a> ¦ "
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe> ¦ "
    "<form action=javascript:window.ran=1><input type=submit></form> ¦ "
    "<style>*{{display:none}}</style> ¦ <details open ontoggle=window.ran=1> ¦ "
    '<base href=//evil.example> ¦ " onmouseover="window.ran=1 ¦ '
    "</script><script>window.ran=1</script> ¦ constructor __proto__ toString ¦ "
    "<math><mtext></mtext><mglyph><style><img src onerror=window.ran=1>"
)
LIVE = """() => [...document.querySelectorAll('#turns *')].flatMap((node) => {
  const tags = 'div p h3 ul ol li blockquote table thead tbody tr th td em strong s code pre hr br span b details summary button kbd img'.split(' ');
  const faults = tags.includes(node.localName) ? [] : [node.localName];
  for (const { name, value } of node.attributes) {
    if (name.startsWith('on') || ['href', 'action', 'srcdoc', 'style', 'formaction'].includes(name)) faults.push(name);
    if (name === 'src' && !/^data:image\\/(png|gif|jpeg|webp);base64,/.test(value)) faults.push(value);
  }
  return faults;
})"""  # noqa: E501


def said(*texts: str) -> Case:
    case = made_case(0)
    messages = tuple({"role": "assistant", "content": text} for text in texts)
    run = replace(case.run, messages=messages)
    return replace(case, run=run, outcome=replace(case.outcome, messages=messages))


def test_five_hundred_hostile_texts_in_markdown_draw_nothing_that_lives(pages: LabelPages) -> None:
    vectors = VECTORS.split(" ¦ ")
    payloads = [wrap.replace("{}", one) for wrap in WRAPS.split(" ¦ ") for one in vectors]
    assert len(payloads) == 500
    page = pages.page(pages.start(labelling(blind_suite(pages.folder), [said(*payloads)])))
    assert page.locator("#turns .marks").count() > 300
    for _ in range(2):
        assert page.evaluate(LIVE) == []
        assert page.evaluate("window.ran") is None
        page.keyboard.press("m")
    # Nothing is fetched but from this session.
    assert {url for url in pages.requests if "evil" in url} == set()


def test_markdown_is_drawn_and_shown_as_it_is_written_by_a_key(pages: LabelPages) -> None:
    text = "# Title\n\n| a | b |\n|---|---|\n| 1 | [x](https://x.example) |\n\n- **so**\n"
    # Formulas, and what stands for them while they are parsed; and a table that is too wide.
    formula = r"**so** $$\frac{V\,[\text{mL}]}{a_1*b*c}$$ \[ x * y * z \] $x^*$ $y^*$ JRH0JRH"
    formula += r" 5\% 2*3*4 __init__"
    wide = f"|{'wide | ' * 40}\n|{'--- | ' * 40}\n|{'cell | ' * 40}\n"
    ragged = "| a | b |\n|---|---|\n| 1 | 2 | *lost* |\n"
    numbers = '1. **a**\n7. b ![c](d "lost")'
    case = said(text, "\u05d0.\u200f", formula, wide, "", ragged, numbers)
    page = pages.page(pages.start(labelling(blind_suite(pages.folder), [case])))
    assert page.locator("#turn-0 :is(h3, td, li strong)").count() == 4
    assert "x (https://x.example)" in page.inner_text("#turn-0")
    assert "200f" not in page.inner_text("#turn-1")
    assert formula.replace("**", "") in page.inner_text("#turn-2")
    page.wait_for_selector("#turn-3:has-text('of 40 columns fit here: scroll sideways')")
    assert "(empty)" in page.inner_text("#turn-4")
    assert ragged.strip() in page.inner_text("#turn-5")
    assert page.locator("#turn-6 li[value='7']").inner_text() == "b c (d lost)"
    page.keyboard.press("m")
    page.wait_for_selector("#turn-0:has-text('| 1 | [x](https://x.example) |')")

"""The Markdown report, read back with an independent reader."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core import one_line
from pytest_jrh.core.diffs import Piece
from pytest_jrh.reports.markdown import LIMIT, MarkdownReport, code, marked, preformatted, prose
from pytest_jrh.reports.session import Session
from tests.support.judged_sessions import HOSTILE, hostile_session, judged, right, session_of
from tests.support.made_cases import result_with
from tests.support.page_reader import Page

_NAMES = """h2 h3 h4 p br strong em del code pre blockquote details summary ul li
table thead tbody tr th td"""
OURS = set(_NAMES.split())
SIGNS = "`|\\<>&*_[]()#@!~-=+.\n\t x1"
TEXTS = st.text(st.sampled_from(SIGNS), min_size=1, max_size=60)


def rendered(markdown: str) -> Page:
    markdown_it = pytest.importorskip("markdown_it")
    reader = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
    return Page.of(reader.render(markdown))


def cells(page: Page, table: int = 0) -> list[list[str]]:
    """The rows of a table; the first is that of the card, the second has all figures."""
    tables: list[list[list[str]]] = []
    for element in page.elements:
        if element.tag == "table":
            tables.append([])
        if element.tag == "tr":
            tables[-1].append([])
        elif element.tag in ("td", "th"):
            tables[-1][-1].append(element.text.strip())
    return tables[table]


def report(session: Session) -> Page:
    text = MarkdownReport().text(session)
    assert len(text.encode()) < LIMIT
    return rendered(text)


def test_huge_suite_is_cut_with_a_note_and_keeps_what_matters() -> None:
    rubrics = tuple(f"rubric_{number}_{'規約' * 20}" for number in range(300))
    before = judged(right, runs=2, rubrics=rubrics)
    now = judged(lambda spec, expected: 0, runs=2, rubrics=rubrics)
    now = [result_with(result, reasoning="x" * 20_000) for result in now]
    page = report(session_of(now, before))
    title = "❌ FAIL: the judge misses 600 of 600 violations that it found before"
    assert page.all("h2")[0].text == title
    assert any("292 more rows in the report." in element.text for element in page.all("p"))
    assert cells(page)[-1] == ["all", "600 of 600", "0", "0 of 600"]
    cut = "This report was cut at its size limit"
    assert any(element.text.startswith(cut) for element in page.all("em"))


def test_hostile_text_is_shown_as_it_is_and_nothing_more() -> None:
    page = report(hostile_session())
    assert {element.tag for element in page.elements} <= OURS
    assert not any(each.attributes for each in page.elements if each.tag not in ("td", "th"))
    shown = one_line(HOSTILE)
    quotes = [each.text for each in page.all("td")]
    assert shown[:60].replace(" ", "") in "".join(map(unmarked, quotes)).replace(" ", "")
    # Mentions, references and links are looked for in what is not code.
    prose_of_page = [each.text for each in page.all("p") if "code" not in each.inside]
    outside = "".join([*prose_of_page, *quotes]).replace(shown, "")
    assert not re.search(r"@octocat|#1 |https?://|www\.evil|@evil", outside)


def unmarked(text: str) -> str:
    """The text as it was, without the spaces that take up no width."""
    return text.replace("\u200b", "")


@given(text=st.text(st.sampled_from(SIGNS + "\x1b"), min_size=1, max_size=40))
def test_code_cannot_be_left_in_a_table_or_a_line(text: str) -> None:
    page = rendered(f"| a | b |\n| --- | --- |\n| {code(text)} | c |\n\n- {code(text)} d\n")
    assert cells(page)[1][1:] == ["c"]
    shown = one_line(text).strip()
    assert [unmarked(element.text).strip() for element in page.all("code")] == [shown] * 2
    assert page.all("li")[0].text.endswith(" d")


@given(text=TEXTS)
def test_quoted_text_and_differences_hold_no_markup(text: str) -> None:
    changed = marked([Piece("same", text), Piece("gone", text), Piece("new", text)], 2_000)
    page = rendered(f"<details><summary>s</summary>{changed}</details>\n")
    tags = [element.tag for element in page.elements if element.tag != "br"]
    assert tags == ["details", "summary", "blockquote", "del", "strong"]
    quotes = [unmarked(each.text) for each in page.all("blockquote")]
    assert [quote.split() for quote in quotes] == [[*(text * 3).replace("\n", "").split()]]


@given(text=TEXTS)
def test_preformatted_text_and_prose_hold_no_markup(text: str) -> None:
    fold = f"<details><summary>s</summary>{preformatted(text)}</details>"
    page = rendered(f"{fold}\n\nnext {prose(text)} end\n")
    assert [element.tag for element in page.elements] == ["details", "summary", "pre", "p"]
    assert page.elements[2].text == one_line(text)
    said = page.elements[3].text.replace("\u200b", "")
    assert said.split() == f"next {one_line(text)} end".split()

"""The Markdown report, read back with an independent reader (rules I: `--jrh-report`)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.diffs import Piece
from pytest_jrh.core.model import CaseResult
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.text import one_line
from pytest_jrh.reports.markdown import (
    LIMIT,
    code,
    markdown_report,
    marked,
    preformatted,
    prose,
    quoted,
)
from pytest_jrh.reports.session import Session
from tests.support.judged_sessions import (
    HOSTILE,
    Answer,
    always,
    coin,
    judged,
    right,
    scored,
    session_of,
    spooled,
    wrong_on,
)
from tests.support.made_cases import MESSAGES, RUBRIC, make_result, make_spec, result_with
from tests.support.page_reader import Page

OURS = {
    "h2",
    "h3",
    "p",
    "strong",
    "em",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "li",
    "code",
    "pre",
}
OURS |= {"details", "summary", "br", "blockquote", "del", "ins"}


def rendered(markdown: str) -> Page:
    reader = (
        pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    )
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
    text = markdown_report(session)
    assert len(text.encode()) < LIMIT
    return rendered(text)


def test_report_begins_with_the_answer() -> None:
    page = report(session_of(judged(wrong_on("run-003")), before=judged(wrong_on("run-001"))))
    # As many are wrong as before, and not the same.
    title = "❌ FAIL: The judge misses other violations and raises other false alarms"
    assert page.all("h2")[0].text == title
    paragraphs = [element.text for element in page.all("p")]
    assert paragraphs[0] == "suite refunds: 48 verdicts, 44 right, 4 wrong"
    assert paragraphs[1].startswith("Misses 2 of 24 violations (8%, ")
    assert paragraphs[2].endswith(", before 2.")
    assert cells(page)[0] == ["rubric", "found", "false alarms"]
    assert cells(page)[-1] == ["all", "22/24 (was 22/24)", "2/24 (was 2/24)"]
    assert "Wrong, worst first (4)" in [element.text for element in page.all("h3")]
    assert [element.text for element in page.all("blockquote")].count("The order is late.") == 4


def test_all_else_is_folded() -> None:
    page = report(session_of(judged(wrong_on("run-003")), before=judged(wrong_on("run-001"))))
    decision = page.all("strong")
    texts = [element.text for element in decision]
    [whole] = [text for text in texts if text.startswith("Gate failed: ")]
    assert whole.startswith("Gate failed: misses 2 of 22 violations that it found before (")
    assert whole.endswith("; 4 regressions, at most 0 allowed.")
    rows = cells(page, 1)
    assert rows[0][:3] == ["rubric, test", "n", "accuracy"]
    assert rows[1] == [
        "all",
        "48",
        "91.7%",
        "64.3-98.5",
        "0.0",
        "91.7% (63.9-98.6)",
        "8.3% (1.4-36.1)",
        "0.83 (0.29-0.97)",
        "91.7% (63.9-98.6)",
    ]
    notes = [element.text for element in page.all("p")]
    assert any("In parentheses: 95% intervals. Each interval" in note for note in notes)
    regressions = [
        element.text for element in page.all("code") if element.inside[-2:] == ("ul", "li")
    ]
    assert (
        regressions[0] == "suites/refunds.jrh.yml::agent_perturbation::refund_policy::run-003[e1]"
    )
    folds = [element.text for element in page.all("summary")]
    assert folds[4:8] == [
        "How sure is this? The gate",
        "fixes (4)",
        "Is the judge wrong, or the label?",
        "Figures of refunds",
    ]


def test_passed_gate_and_no_gate_are_told_apart() -> None:
    passed = report(session_of(judged(right), before=judged(right)))
    assert passed.all("h2")[0].text == "✅ PASS: The judge is as good as before"
    assert report(session_of(judged(right))).all("h2")[0].text == (
        "The judge agrees with all 48 labels"
    )


@pytest.mark.parametrize("answer", [always(1), always(0), coin()])
def test_judge_that_judges_nothing_is_unmistakable(answer: Answer) -> None:
    page = report(session_of(judged(answer)))
    assert page.all("h2")[0].text in (
        "The judge always gives the same verdict",
        "The judge cannot be told from a coin",
    )
    total = dict(zip(*cells(page, 1)[:2], strict=True))
    assert abs(float(total["kappa"].split()[0])) < 0.1
    assert float(total["paired"].split()[0].rstrip("%")) < 30
    assert any(element.text.startswith(("⚠️ Constant", "⚠️ Verdicts")) for element in page.all("p"))


def test_ordinal_and_panel_are_told() -> None:
    page = report(
        session_of([*scored(right), *judged(right, judge="a"), *judged(coin(), judge="b")])
    )
    assert [heading.text for heading in page.all("h3")][:2] == [
        "helpfulness The judge agrees with all 30 labels",
        "refunds 2 judges compared",
    ]
    assert cells(page, 1)[0] == ["judge", "found", "false alarms"]
    assert any("Judge b cannot be told from a coin." in each.text for each in page.all("p"))
    assert any(element.text.startswith("The majority is right in") for element in page.all("p"))


def test_levels_of_a_scale_have_their_spread_and_signed_bias() -> None:
    session = session_of(scored(lambda spec, expected: min(expected + spec.epoch, 2)))
    assert "| `0` | 10 | 1.00 | +1.00 | 0.00 | 1 |" in markdown_report(session)
    assert "| `2` | 10 | 2.00 | 0.00 | 0.00 | 2 |" in markdown_report(session)


def test_huge_suite_is_cut_with_a_note_and_keeps_what_matters() -> None:
    rubrics = tuple(f"rubric_{number}_{'規約' * 20}" for number in range(300))
    before = judged(right, runs=2, rubrics=rubrics)
    now = [
        replace(result, reasoning="x" * 200_000)
        for result in judged(always(0), runs=2, rubrics=rubrics)
    ]
    page = report(session_of(now, before))
    title = "❌ FAIL: The judge misses 600 violations, more than before (0)"
    assert page.all("h2")[0].text == title
    assert any("The worst 8 of 300 rubrics:" in element.text for element in page.all("p"))
    assert cells(page)[-1] == ["all", "0/600 (was 600/600)", "0/600 (was 0/600)"]
    assert any(
        element.text.startswith("This report was cut at its size limit")
        for element in page.all("em")
    )


def test_a_disagreement_can_be_judged_where_it_is_shown(tmp_path: Path) -> None:
    results = judged(wrong_on("run-003"), runs=5, rubrics=("tone",))
    session = session_of(results, before=judged(right, runs=5, rubrics=("tone",)))
    said = "I have refunded order 17 in full. Mail @octocat, see #1."
    text = markdown_report(replace(session, records=spooled(tmp_path, results, text=said)))
    page = rendered(text)
    quotes = [unmarked(each.text) for each in page.all("blockquote")]
    made, untouched = quotes[:4], quotes[4:]
    assert [made[0], *made[2:]] == [
        RUBRIC.instructions,
        "It grants a late refund.",
        "The order is late.",
    ]
    assert page.all("ins")[0].text.startswith("I have refunded order 17 in full.")
    assert page.all("del")[0].text == MESSAGES[-1]["content"]
    assert len(untouched) == 3
    told = [unmarked(each.text) for each in page.all("p")]
    assert (
        "Who says what: 1 (violated): the label, the verifier, the judge in the baseline; "
        "0 (satisfied): this judge." in told
    )
    assert "Why the label is 1 (violated): confirmed by the verifier" in told
    assert "No edit: the judge saw the run as it was recorded." in told
    assert not re.search("@octocat|#1", text)


def test_everybody_who_gave_a_score_is_named(tmp_path: Path) -> None:
    results = [
        *judged(right, runs=1, rubrics=("tone",), judge="a"),
        *judged(wrong_on("run-000"), runs=1, rubrics=("tone",), judge="b"),
    ]
    results = [replace(each, human_reviewed="accepted") for each in results]
    derived = replace(results[-1], case_id=f"{results[-1].case_id}-probe", base_scores=(0, 0, 1))
    told = [
        unmarked(each.text)
        for each in report(session_of([*results, derived])).all("p")
        if each.text.startswith("Who says what: ")
    ]
    assert (
        "Who says what: 1 (violated): the label, a person in the review, judge a; 0 (satisfied): "
        "this judge."
    ) in told
    assert any("this judge on the unchanged case" in text for text in told)


def test_a_secret_in_a_case_is_not_shown(tmp_path: Path) -> None:
    secret = "user@host-0123456789abcdef"
    results = [
        replace(each, reasoning=f"It said {secret}.")
        for each in judged(wrong_on("run-000"), runs=1, rubrics=("tone",))
    ]
    records = spooled(tmp_path, results, text=f"Your key is {secret}.")
    session = replace(session_of(results), records=records, redactor=Redactor((secret,)))
    text = markdown_report(session)
    assert "0123456789abcdef" not in text
    assert text.count("[REDACTED]") == 3


def test_report_that_fits_is_not_called_cut() -> None:
    assert "cut at its size limit" not in markdown_report(session_of(judged(right)))


def test_nothing_is_said_where_nothing_ran() -> None:
    assert markdown_report(session_of([])) == ""


def hostile(text: str) -> list[CaseResult]:
    results = [
        result_with(result, rubric_id=text, judge=f"{result.judge} {text}", reasoning=text)
        for judge in ("a", "b")
        for result in judged(wrong_on("run-001"), runs=3, judge=judge, rubrics=("tone",))
    ]
    return [*results, replace(make_result(make_spec("z"), "refused"), detail=text)]


def test_hostile_text_is_shown_as_it_is_and_nothing_more() -> None:
    page = report(session_of(hostile(HOSTILE)))
    assert {element.tag for element in page.elements} <= OURS
    assert not any(
        element.attributes for element in page.elements if element.tag not in ("td", "th")
    )
    shown = one_line(HOSTILE)
    quotes = [each.text for each in page.all("blockquote")]
    assert shown.replace(" ", "") in {unmarked(text).replace(" ", "") for text in quotes}
    # Mentions, references and links are looked for in what is not code.
    outside = "".join(each.text for each in page.all("p") if "code" not in each.inside) + "".join(
        quotes
    )
    outside = outside.replace(shown, "")
    assert not re.search(r"@octocat|#1 |https?://|www\.evil|@evil", outside)


def unmarked(text: str) -> str:
    """The text as it was, without the spaces that take up no width."""
    return text.replace("\u200b", "")


@given(text=st.text(st.sampled_from("`|\\<>&*_[]()#@!~-=+.\n\t x1\x1b"), min_size=1, max_size=40))
@settings(max_examples=150, deadline=None)
def test_code_cannot_be_left_in_a_table_or_a_line(text: str) -> None:
    page = rendered(
        f"| a | b |\n| --- | --- |\n| {code(text, cell=True)} | c |\n\n- {code(text)} d\n"
    )
    assert cells(page)[1][1:] == ["c"]
    shown = one_line(text) or " "
    assert [element.text.strip() for element in page.all("code")] == [
        shown.replace("|", "\\x7c").strip(),
        shown.strip(),
    ]
    assert page.all("li")[0].text.endswith(" d")


@given(text=st.text(st.sampled_from("`|\\<>&*_[]()#@!~-=+.\n\t x1"), min_size=1, max_size=60))
@settings(max_examples=150, deadline=None)
def test_quoted_text_and_differences_hold_no_markup(text: str) -> None:
    changed = marked([Piece("same", text), Piece("gone", text), Piece("new", text)], 2_000)
    page = rendered(f"<details><summary>s</summary>{quoted(text)}{changed}</details>\n")
    tags = [element.tag for element in page.elements if element.tag != "br"]
    assert tags == ["details", "summary", "blockquote", "blockquote", "del", "ins"]
    quotes = [unmarked(each.text) for each in page.all("blockquote")]
    assert [quote.split() for quote in quotes] == [
        [*"".join(text.strip().split("\n")).split()],
        [*(text * 3).replace("\n", "").split()],
    ]


@given(text=st.text(st.sampled_from("`|\\<>&*_[]()#@!~-=+.\n\t x1"), max_size=60))
@settings(max_examples=150, deadline=None)
def test_preformatted_text_and_prose_hold_no_markup(text: str) -> None:
    page = rendered(
        f"<details><summary>s</summary>{preformatted(text)}</details>\n\nnext {prose(text)} end\n"
    )
    assert [element.tag for element in page.elements] == ["details", "summary", "pre", "p"]
    assert page.elements[2].text == text.strip()
    said = page.elements[3].text.replace("\u200b", "")
    assert said.split() == f"next {one_line(text)} end".split()

"""A suite full of text that means harm, through every file it leaves, each read by an independent
reader."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.text import visible
from pytest_jrh.reports.ending import write_suite_outputs
from pytest_jrh.reports.markdown import markdown_report
from pytest_jrh.reports.page import write_page
from pytest_jrh.reports.session import Session, SuiteRun
from pytest_jrh.store.made_cases import Spool
from tests.support.judged_sessions import HOSTILE, session_of
from tests.support.made_cases import (
    DIGESTS,
    MESSAGES,
    make_case,
    make_result,
    make_spec,
    make_suite,
)
from tests.support.page_reader import Page, bodies
from tests.support.results import results_in
from tests.support.suites import BOTH_TESTS

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.config.suite import Suite

LONG = "word " * 40_000
FORMULA = '=HYPERLINK("http://evil.example")'


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """Everything written, for two cases whose every text is hostile or 200 kB long."""
    folder = tmp_path_factory.mktemp("hostile")
    suite = make_suite(folder, rand=True)
    spool = Spool(folder / ".spool", Redactor())
    specs = [make_spec(run, test=test) for test in BOTH_TESTS for run in (HOSTILE[:200], FORMULA)]
    results = []
    for spec in specs:
        messages = [
            {**MESSAGES[0], "content": LONG},
            *({**message, "content": HOSTILE} for message in MESSAGES[1:]),
        ]
        case = make_case(
            spec, messages=messages, new_text=f"{FORMULA} {HOSTILE}", metadata={HOSTILE: HOSTILE}
        )
        spool.append(replace(case, rubric=replace(case.rubric, instructions=HOSTILE)))
        results.append(make_result(spec, "disagree", reasoning=FORMULA, detail=HOSTILE, **DIGESTS))
    spool.close()
    written = write_suite_outputs(SuiteRun(suite, results, specs, [spool.path]), Session(()))
    assert written.problems == []
    session = session_of(results)
    session = replace(session, records=written.records)
    write_page(folder / "report.html", session)
    (folder / "summary.md").write_text(markdown_report(session), "utf-8")
    return suite


def cells(path: Path) -> list[list[str]]:
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="", encoding="utf-8") as file:
        return [[*row] for row in csv.reader(file)]


def test_tables_hold_the_cases_and_no_formula(suite: Suite) -> None:
    tables = sorted(suite.results_dir.glob("*.csv"))
    assert len(tables) == 3
    for table in tables:
        head, *rows = cells(table)
        assert len(rows) == (4 if table.stem.startswith("synthetic") else 2)
        assert {len(row) for row in rows} == {len(head)}
        for text in (cell for row in rows for cell in row):
            assert not text.startswith(("=", "+", "@"))
            assert not set(text) & set("\x00\x1b")
        transcripts = [row[head.index("transcript")] for row in rows]
        assert all(LONG.strip() in text and "onerror=alert(1)" in text for text in transcripts)


def test_json_files_are_json_and_results_come_back(suite: Suite) -> None:
    for path in suite.config_file.parent.rglob("*.json"):
        json.loads(path.read_text("utf-8"), parse_constant=pytest.fail)
    found = results_in(suite.results_dir)
    assert [result.reasoning for result in found] == [FORMULA] * 4
    for path in suite.config_file.parent.rglob("*.jsonl"):
        lines = path.read_text("utf-8").splitlines()
        assert all(isinstance(json.loads(line), dict) for line in lines)


def test_pages_hold_the_text_and_none_of_its_markup(suite: Suite) -> None:
    page = Page.of((suite.config_file.parent / "report.html").read_text("utf-8"))
    assert not page.all("img")
    assert len([script for script in page.all("script") if "type" not in script.attributes]) == 1
    parts = []
    for body in bodies(page).values():
        parts += [part["text"] for turn in body["turns"] for part in turn["parts"]]
    assert LONG.strip() in [part.strip() for part in parts]
    assert visible(HOSTILE.replace("\x00", "").replace("\ud800", "\ufffd")) in [
        part.replace("\\x00", "") for part in parts
    ]
    markdown = (suite.config_file.parent / "summary.md").read_text("utf-8")
    assert not set(markdown) & set("\x00\x1b\u202e\u2066")
    assert "<script" not in markdown


def test_markdown_holds_the_edits_and_the_rubric_as_text_alone(suite: Suite) -> None:
    written = (suite.config_file.parent / "summary.md").read_text("utf-8")
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True})
    page = Page.of(reader.enable("table").render(written))
    assert not {element.tag for element in page.elements} & {"img", "script", "a", "h1", "b"}
    new = [each for each in page.all("strong") if "blockquote" in each.inside]
    assert {each.text.strip() for each in new} == {FORMULA.replace("http:", "http:\u200b")}
    quotes = "".join(each.text for each in page.all("blockquote"))
    assert "<script>alert('x')</script>" in quotes
    assert "@octocat" not in quotes

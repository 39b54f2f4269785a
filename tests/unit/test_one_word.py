"""What is decided is the same in every place where people look."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_jrh.reports.for_programs import JsonReport, JunitReport
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.page import HtmlReport
from pytest_jrh.reports.report import Display
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.terminal import TerminalReport
from tests.support.page_reader import Page
from tests.unit.test_decision import FAIL, PASS, UNCLEAR, Row, decided


@pytest.mark.parametrize("kind", [{}, {"is_table": True}, {"is_merge": True}])
@pytest.mark.parametrize("unclear", [None, "pass", "fail"])
@pytest.mark.parametrize("row", [*FAIL, *UNCLEAR, *PASS], ids=lambda row: row.headline)
def test_all_places_say_the_same(row: Row, unclear: str | None, kind: Any, tmp_path: Path) -> None:
    """In a session, a table (`check`), and merged shards."""
    rules = {**row.rules, "unclear": unclear}
    decision = decided(row.now, row.before, rules, **row.held)
    session = Session(tuple(row.now), decisions={"refunds": decision}, folder=tmp_path, **kind)
    title = f"{decision.word}: {decision.headline}"
    is_red = not decision.passed
    assert session.passed is not is_red

    data = json.loads(JsonReport().text(session))["decision"]
    assert (data["word"], data["headline"]) == (decision.word, decision.headline)
    assert data["exit_code"] == int(is_red)

    [test] = ElementTree.fromstring(JunitReport().text(session)).iter("testcase")
    failures = [" ".join(str(one.get("message")).split()) for one in test]
    assert failures == ([" ".join(title.replace(":", "", 1).split())] if is_red else [])

    display = Display(tmp_path)
    lines = [line.text.strip() for line in TerminalReport().lines(session, display)]
    assert " ".join(lines).startswith(title.replace(": ", "  ", 1))
    markdown = MarkdownReport().text(session).partition("\n")[0].replace("\\", "")
    assert markdown.endswith(title)
    HtmlReport().write(tmp_path / "page.html", session)
    page = Page.of((tmp_path / "page.html").read_text("utf-8"))
    [page_title] = page.all("title")
    assert page_title.text.casefold() == title.replace(":", "", 1).casefold()

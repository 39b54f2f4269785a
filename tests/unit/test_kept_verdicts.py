"""What a baseline keeps of what the judges said, and of their prompts, and what reports show."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult, JudgeLine
from pytest_jrh.core.text import visible
from pytest_jrh.judges.judge import PromptJudge
from pytest_jrh.llm.calls import load_template
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.page import HtmlReport
from pytest_jrh.stats.comparison import Baseline, Scope, short
from pytest_jrh.store.ledger import (
    LONGEST_PROMPT,
    LONGEST_REASONING,
    BaselineFile,
    judge_lines,
    parsed,
)
from tests.support.conversations import judge_settings
from tests.support.judged_sessions import (
    DIGEST,
    HOSTILE,
    judged,
    right,
    session_of,
    spooled,
    wrong_on,
)
from tests.support.made_cases import judge_line, result_with
from tests.support.page_reader import Page, bodies

SECRET = "sk-0123456789abcdef"
JUDGE = judge_line(DIGEST, "Be strict.\nSay why.", file="/repo/judge.md")


def accept(folder: Path, results: list[CaseResult], judge: JudgeLine = JUDGE) -> list[str]:
    file = BaselineFile(folder / "base.json", folder, update=True)
    scope = Scope.of(result.case_id for result in results)
    redactor = Redactor((SECRET,))
    return file.accept(results, scope, str, finished=True, judges=[judge], redactor=redactor)


def kept(folder: Path) -> Baseline:
    return parsed((folder / "base.json").read_text("utf-8"), "base.json")


def test_an_update_keeps_what_the_judge_said_and_its_prompt(tmp_path: Path) -> None:
    results = judged(right, runs=1)
    accept(tmp_path, results)
    found = kept(tmp_path)
    assert {case: each.reasoning for case, each in found.cases.items()} == {
        result.case_id: "The order is late." for result in results
    }
    assert found.judge_lines == (replace(JUDGE, judge_digest=short(DIGEST), file=""),)
    lines = (tmp_path / "base.json").read_text("utf-8").splitlines()
    assert [json.loads(line)["case_id"] for line in lines[1:]] == sorted(found.cases)
    assert "/repo" not in "".join(lines)


def test_a_part_of_the_suite_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    first, second, *_ = judged(right, runs=1)
    accept(tmp_path, [first, second])
    other = replace(JUDGE, judge_digest="f" * 64, prompt="Be kind.")
    changed = result_with(second, reasoning="Anew.", judge_digest="f" * 64)
    file = BaselineFile(tmp_path / "base.json", tmp_path, update=True)
    scope = Scope.of([first.case_id, second.case_id], [second.case_id])
    file.accept([changed], scope, str, finished=True, judges=[other])
    found = kept(tmp_path)
    assert [found.cases[each.case_id].reasoning for each in (first, second)] == [
        "The order is late.",
        "Anew.",
    ]
    assert {judge.prompt for judge in found.judge_lines} == {JUDGE.prompt, "Be kind."}


def test_an_update_keeps_what_others_wrote_since_its_session_began(tmp_path: Path) -> None:
    first, second, third, *_ = judged(right, runs=2)
    accept(tmp_path, [first])
    path = tmp_path / "base.json"
    late = BaselineFile(path, tmp_path, update=True)
    assert late.content is not None
    scope = Scope.of([first.case_id, second.case_id, third.case_id], [second.case_id])
    BaselineFile(path, tmp_path, update=True).accept([second], scope, str, finished=True)
    path.write_text(
        path.read_text("utf-8").replace('"scores"', '"extra": {"reason": "a tie"}, "scores"', 1)
    )
    late.accept([third], replace(scope, selected=frozenset([third.case_id])), str, finished=True)
    cases = kept(tmp_path).cases
    assert sorted(cases) == sorted(each.case_id for each in (first, second, third))
    assert cases[min(first.case_id, second.case_id)].extra.reason == "a tie"


def test_what_is_kept_has_no_secret_and_is_bounded(tmp_path: Path) -> None:
    long = [
        result_with(each, reasoning=f"{SECRET} {HOSTILE} {'x' * 100_000}")
        for each in judged(right, runs=1)
    ]
    template = load_template("judge", mode="binary", objective="fail")
    template = replace(template, source=f"{SECRET} {'y' * 100_000}")
    judge = PromptJudge(judge_settings(StageModel("judge", "openai/gpt-4.1")), template)
    [line] = judge_lines("refunds", {None: judge}, Redactor((SECRET,)))
    accept(tmp_path, long, replace(line, judge_digest=DIGEST))
    found = kept(tmp_path)
    assert {len(each.reasoning) for each in found.cases.values()} == {LONGEST_REASONING}
    assert [len(judge.prompt) for judge in found.judge_lines] == [LONGEST_PROMPT]
    text = (tmp_path / "base.json").read_text("utf-8")
    assert SECRET not in text
    assert not set(text) & set("\x00\x1b\u202e\u2066")


def test_a_hostile_prompt_and_reasoning_of_the_baseline_are_text(tmp_path: Path) -> None:
    before, now = judged(right, runs=2), judged(wrong_on("run-001"), runs=2)
    prompt = replace(JUDGE, prompt=f"{HOSTILE} now")
    session = session_of(now, before, said_before=HOSTILE, prompt_before=HOSTILE, judges=[prompt])
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True})
    page = Page.of(markdown.enable("table").render(MarkdownReport().text(session)))
    assert not {each.tag for each in page.elements} & {"img", "script", "a", "h1", "b", "iframe"}
    path = tmp_path / "report.html"
    HtmlReport().write(path, replace(session, records=spooled(tmp_path / "spool", now)))
    raw = path.read_text("utf-8")
    assert not set(raw) & set("\x00\x1b\u202e\u2066")
    html = Page.of(raw)
    assert not html.all("img")
    reasons = {voice["why"] for body in bodies(html).values() for voice in body["voices"]}
    assert visible(HOSTILE) in reasons

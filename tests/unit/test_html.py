"""The page, read back with the standard library's parser, and RAND's report beside its schema."""

import base64
import hashlib
import itertools
import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_jrh.core import visible
from pytest_jrh.core.results import CaseResult
from pytest_jrh.reports import page as page_module
from pytest_jrh.reports.page import HtmlReport
from pytest_jrh.reports.rand_files import judge_report
from pytest_jrh.reports.session import Session
from pytest_jrh.store.records import json_value
from tests.support.judged_sessions import (
    HOSTILE,
    always,
    coin,
    hostile_session,
    judged,
    panel,
    result_of,
    right,
    session_of,
    spooled,
    wrong_on,
)
from tests.support.made_cases import MESSAGES, make_result, make_spec, make_suite
from tests.support.page_reader import Page, bodies, listed_cases, session_data

SCHEMA = json.loads((Path(__file__).parents[1] / "data/report.schema.json").read_text("utf-8"))


def page_of(folder: Path, session: Session, messages: Any = MESSAGES, limit: int = 10**8) -> Page:
    made = [result for result in session.results if not result.spec.derived]
    records = spooled(folder / "spool", made, lambda result: messages)
    path = folder / "report.html"
    report = HtmlReport()
    report.limit = limit
    report.write(path, replace(session, records=records))
    assert path.stat().st_size <= limit
    return Page.of(path.read_text("utf-8"))


def test_policy_names_the_script_and_the_style_by_their_hashes(tmp_path: Path) -> None:
    page = page_of(tmp_path, Session(()))
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.strip().split(" ", 1) for rule in policy.attributes["content"].split(";"))
    scripts = [script for script in page.all("script") if "type" not in script.attributes]
    for (element,), rule in ((scripts, "script-src"), (page.all("style"), "style-src")):
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules


def test_script_writes_text_and_never_markup() -> None:
    scripts = [page_module.FOLDER / name for name in (*page_module.READING, page_module.START)]
    script = "".join(path.read_text("utf-8") for path in scripts)
    writing = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttp"
    assert not re.search(writing, script)


def test_hostile_text_adds_no_element_and_no_attribute(tmp_path: Path) -> None:
    messages = [{**message, "content": HOSTILE} for message in MESSAGES]
    tame = page_of(tmp_path / "tame", hostile_session("tame"))
    wild = page_of(tmp_path, hostile_session(), messages)
    assert [one.tag for one in wild.elements] == [one.tag for one in tame.elements]
    for wild_element, tame_element in zip(wild.elements, tame.elements, strict=True):
        assert set(wild_element.attributes) == set(tame_element.attributes)
    shown = visible(HOSTILE)
    body = next(iter(bodies(wild).values()))
    assert shown in [one["why"] for one in body["voices"]]
    assert shown in [part["text"] for turn in body["turns"] for part in turn["parts"]]
    raw = (tmp_path / "report.html").read_text("utf-8")
    assert not set(raw) & set("\x00\x1b\u202e\u2066\ufffe")


def test_what_does_not_fit_is_left_out_and_mistakes_are_kept(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(60_000).hex()
    messages = [*MESSAGES[:2], {**MESSAGES[2], "content": noise}, MESSAGES[3]]
    session = session_of(judged(wrong_on("run-007"), runs=12, rubrics=("tone",)))
    page_of(tmp_path / "whole", session, messages)
    limit = (tmp_path / "whole/report.html").stat().st_size * 2 // 3
    page = page_of(tmp_path, session, messages, limit)
    cut = {key for key, body in bodies(page).items() if body.get("is_cut")}
    assert 6 < len(cut) < 18
    first, *_, last = listed_cases(page)
    assert (first["run"], first["key"] in cut, last["key"] in cut) == ("run-007", False, True)
    assert bodies(page)[last["key"]]["voices"][-1]["why"] == "The order is late."


def test_large_table_lists_the_most_urgent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "_MOST_OF_TABLE", 10)
    page = page_of(tmp_path, replace(session_of(judged(coin(), runs=12)), is_table=True))
    data = session_data(page)
    assert len(data["cases"]) == 10
    assert {row["kind"] for row in data["cases"]} <= {"missed", "false alarm"}
    assert data["of"] == 48


@pytest.mark.parametrize(
    "results",
    [
        pytest.param([], id="nothing"),
        pytest.param([make_result(outcome="model_error")], id="no verdict"),
        pytest.param(judged(right), id="all right"),
        pytest.param(panel({"a": right, "b": coin(), "c": always(0)}), id="panel"),
    ],
)
def test_report_fits_its_schema(tmp_path: Path, results: list[CaseResult]) -> None:
    suite = make_suite(tmp_path)
    names = dict.fromkeys(result.judge for result in results) or [""]
    judges = tuple(replace(suite.judges[0], name=name or None) for name in names)
    ran = len(results)
    for name, before in itertools.product(names, (None, judged(wrong_on("run-001")))):
        report = judge_report(replace(suite, judges=judges), name, session_of(results, before))
        assert (report["panel"] is None) == (len(names) == 1)
        report["session"] = {"cases": ran, "kept": 0, "of": ran, "interrupted": False}
        read = json.loads(json.dumps(json_value(report), allow_nan=False))
        jsonschema.Draft7Validator(SCHEMA).validate(read)


def test_the_report_has_the_interval_in_numbers(tmp_path: Path) -> None:
    """Of a judge that is right on every violation of nine runs, as other reports print it."""
    results = [result_of(make_spec(f"run-{number}"), right) for number in range(9)]
    report = judge_report(make_suite(tmp_path), "", Session(results))
    statistics = report["statistics"]["overall"]
    bootstrap = report["all_metrics"]["agent_perturbation"]["bootstrap"]
    for interval in (statistics["interval"], statistics["binary"]["intervals"]["recall"]):
        assert (interval["lower"], interval["upper"]) == pytest.approx((0.7008549, 1.0))
    assert (bootstrap["lower_ci"], bootstrap["upper_ci"]) == pytest.approx((0.7008549, 1.0))

"""A session full of text that means harm, to its end: every output is read by a reader that is not
ours."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from markdown_it import MarkdownIt

from tests.support.baselines import case_lines
from tests.support.fork_server import python
from tests.support.judged_sessions import HOSTILE
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.page_reader import Page
from tests.support.suites import SuiteFiles, run, write_suite

if TYPE_CHECKING:
    from pathlib import Path

# Inspect's own writer stores no lone surrogate.
TEXT = HOSTILE.replace("\ud800", "").strip()
IDS = ("=cmd|' /C calc'!A0", "<script>alert(1)</script>]]> \x1b[31m \u202e @octocat", "run-3")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def turns() -> list[dict[str, object]]:
    call = {"id": "c", "function": "look", "arguments": {"at": TEXT}, "type": "function"}
    return [
        {"id": "u", "role": "user", "content": TEXT},
        {"id": "a", "role": "assistant", "content": TEXT, "tool_calls": [call]},
        {"id": "t", "role": "tool", "content": TEXT, "tool_call_id": "c", "function": "look"},
        {"id": "b", "role": "assistant", "content": f"{TEXT} And a last word."},
    ]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[SuiteFiles, str]:
    """The suite after a session that recorded it and wrote everything, and what it printed.

    Its judge always says 1.
    """
    files = write_suite(
        tmp_path_factory.mktemp("hostile") / "suite",
        runs=[{**run(number, messages=turns()), "id": name} for number, name in enumerate(IDS, 1)],
        rubrics=[
            {"id": "<b>r|`1` =1+1", "instructions": TEXT.replace("\x00", "").replace("\x1b", "")}
        ],
        overrides={"admin": {"output_file_format": "csv"}},
    )
    options = ["--jrh-report=report.html", "--jrh-report=summary.md"]
    options += ["--junitxml=junit.xml", "-rA", "-v"]
    accepting = ["--jrh-baseline=baseline.json", "--jrh-update-baseline"]
    command = [
        *python(),
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        files.option,
        "--jrh-record-mode=once",
    ]
    with ModelServer(
        override(Obedient(), judge=lambda asked: {"reasoning": HOSTILE, "score": 1})
    ) as server:
        environment = {**os.environ, **server.environment, "GITHUB_ACTIONS": "true"}
        environment.pop("GITHUB_STEP_SUMMARY", None)
        done = subprocess.run(
            [*command, *options],
            cwd=files.folder,
            env=environment,
            capture_output=True,
            check=False,
        )
        subprocess.run([*command, *accepting], cwd=files.folder, env=environment, check=True)
    assert done.returncode == 1, done.stderr
    assert b"3 failed, 3 passed" in done.stdout
    return files, done.stdout.decode("utf-8")


def test_the_terminal_shows_escapes_and_github_reads_no_command(
    session: tuple[SuiteFiles, str],
) -> None:
    printed = session[1]
    assert not CONTROL.search(printed)
    assert "<script>alert('x')</script>" in printed
    # The runner trims a line before it looks for a command, and looks for the older kind anywhere
    # in it.
    commands = [
        line for line in printed.splitlines() if line.strip().startswith("::") or "##[" in line
    ]
    [command] = commands
    assert command.split("::", 2)[1].startswith("error title=FAIL%3A ")
    assert "\\x3a:error file=x,line=1::owned" in printed


def test_the_reason_of_a_skip_is_text_alone(tmp_path: Path) -> None:
    files = write_suite(tmp_path / "suite", runs=1, tests=["agent_perturbation"])
    said = {"verdict": "PASS", "rationale": f"##[error]owned {HOSTILE}"}
    with ModelServer(override(Obedient(), verifier=lambda asked: said)) as server:
        command = [
            *python(),
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            files.option,
            "--jrh-record-mode=once",
        ]
        environment = {**os.environ, **server.environment}
        done = subprocess.run(
            [*command, "-ra", "-v"],
            cwd=files.folder,
            env=environment,
            capture_output=True,
            check=False,
        )
    printed = done.stdout.decode("utf-8")
    assert not CONTROL.search(printed)
    assert "not confirmed: the verifier says PASS: #\\x23[error]owned <script>" in printed


def test_json_fits_its_schema_and_the_baseline_comes_back(session: tuple[SuiteFiles, str]) -> None:
    from pytest_jrh.store.ledger import load

    folder = session[0].folder
    schema = json.loads((Path(__file__).parents[1] / "data/report.schema.json").read_text("utf-8"))
    [report] = folder.rglob("*_report.json")
    read = json.loads(report.read_text("utf-8"))
    jsonschema.Draft7Validator(schema).validate(read)
    assert read["statistics"]["warnings"] == ["Constant verdict: 1 (violated) for all 6 cases."]
    assert len(case_lines(folder / "baseline.json")) == 6
    assert {case.outcome for case in load(folder / "baseline.json").cases.values()} == {
        "agree",
        "disagree",
    }


def test_tables_hold_every_case_and_no_formula(session: tuple[SuiteFiles, str]) -> None:
    tables = session[0].folder.rglob("outputs/tiny/*.csv")
    found = {path.stem: rows(path) for path in tables}
    assert sorted(map(len, found.values())) == [3, 3, 6]
    for row in (row for table in found.values() for row in table):
        assert not [
            text
            for text in row.values()
            if text.startswith(("=", "+", "-", "@", "\t", "\r")) and not is_number(text)
        ]
        assert not set("".join(row.values())) & {"\x00", "\x1b"}
        assert "<script>alert('x')</script>" in row["transcript"]


def is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9.]+(e-[0-9]+)?", text) is not None


def rows(path: Path) -> list[dict[str, str]]:
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_junit_is_xml_with_every_case_and_its_properties(session: tuple[SuiteFiles, str]) -> None:
    cases = list(ET.parse(session[0].folder / "junit.xml").iter("testcase"))
    assert [case.find("failure") is not None for case in cases] == [False] * 3 + [True] * 3
    names = ["expected", "score", "outcome", "rubric", "tokens", "cost"]
    assert [[each.get("name") for each in case.iter("property")] for case in cases] == [names] * 6


def test_pages_hold_none_of_the_markup(session: tuple[SuiteFiles, str]) -> None:
    page = Page.of((session[0].folder / "report.html").read_text("utf-8"))
    scripts = [script for script in page.all("script") if "type" not in script.attributes]
    assert (len(scripts), page.all("img"), page.all("iframe"), page.all("b")) == (1, [], [], [])
    text = (session[0].folder / "summary.md").read_text("utf-8")
    assert not CONTROL.search(text)
    shown = Page.of(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
    tags = {element.tag for element in shown.elements}
    assert not tags & {"script", "img", "a", "h1", "b"}
    # What the verifier says of the first case, open and folded, and of two more; and the judge.
    who = [cell.text for cell in shown.all("td")]
    assert (who.count("label (verifier)"), who.count("judge")) == (4, 4)

"""Where answers are judged, nothing that is printed, written or sent speaks of runs of agents."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.plugin.recorded import Done, run_module, run_pytest
from tests.support.model_server import ModelServer, Obedient, Request
from tests.support.obedient import SATISFIED, VIOLATION
from tests.support.page_reader import Page, data_blocks, session_data

WORDS = re.compile(r"\b(runs?|agents?|transcripts?|planners?|plans?|acts?|tool calls?)\b", re.I)
ALLOWED = re.compile(r"(?i)--jrh-plan|judge reliability plan|\brun it again|\brun again")
CONFIG = """
suite: {of: answers, log: rows.csv, rubrics: rubrics.yml}
cases: {kinds: [labels, perturbation, positives]}
labels: {metadata: ok, map: {"yes": satisfied, "no": violated}}
editor: {model: openai/editor}
judges:
  - {name: prompt, model: openai/judge}
  - {name: code, python: "judges.py:judge"}
  - {name: scorer, inspect_scorer: "judges.py@scored"}
"""
JUDGES = f"""
from inspect_ai.scorer import Score, Scorer, accuracy, scorer


def judge(case):
    return int({VIOLATION!r} in case.response), "It says: " + case.response


@scorer(metrics=[accuracy()])
def scored() -> Scorer:
    async def score(state, target) -> Score:
        return Score(value="I" if {VIOLATION!r} in state.output.completion else "C")
    return score
"""
ROWS = [
    ("kept", "May I return it?", "Within 10 days.", "yes"),
    # All three judges miss it.
    ("missed", "May I return it after a year?", "Of course.", "no"),
    ("silent", "Hello?", "", "yes"),
    # The judge that is a prompt gives no score on offer.
    ("broken", "What does it cost?", "Nothing.", "yes"),
]


def model(request: Request) -> Any:
    if request.stage == "judge" and ROWS[-1][1] in request.text:
        return {"reasoning": "It is free.", "score": 7}
    if request.stage != "editor":
        return Obedient()(request)
    wanted = VIOLATION if "so that it violates" in request.text else SATISFIED
    return {"new_content": f"Return it when you like: {wanted}", "reason": "It promises more."}


def texts_in(value: Any) -> Iterator[str]:
    """The texts of JSON, without its keys."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, str):
        yield value


def said_in(file: Path) -> str:
    """What a written file says."""
    text = file.read_text("utf-8").replace("\\_", "_")
    if file.suffix == ".html":
        page = Page.of(text)
        return "\n".join(texts_in([session_data(page), data_blocks(page)]))
    if file.suffix == ".xml":
        return "\n".join(ElementTree.fromstring(text).itertext())
    if file.suffix == ".jsonl":
        return "\n".join(texts_in([json.loads(line) for line in text.splitlines()]))
    return "\n".join(texts_in(json.loads(text))) if file.suffix == ".json" else text


def check_words(name: str, text: str) -> None:
    bad = []
    for line in ALLOWED.sub("", text).splitlines():
        if WORDS.search(line):
            bad.append(line)
    assert not bad, (name, bad)


def check_all(done: Done) -> None:
    assert done.code in (0, 1), done.stderr
    check_words("printed", done.stdout + done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "question", "answer", "ok"), *ROWS])
    (tmp_path / "rubrics.yml").write_text("- {id: policy, instructions: It keeps to 10 days.}\n")
    (tmp_path / "judges.py").write_text(JUDGES)
    (tmp_path / "qa.yml").write_text(CONFIG)
    return tmp_path


def test_no_word_of_agents_is_printed_written_or_sent(folder: Path) -> None:
    option, record = "--jrh-config=qa.yml", "--jrh-record-mode=new_episodes"
    reports = [f"--jrh-report={name}" for name in ("page.html", "comment.md", "report.json")]
    with ModelServer(model) as server:
        env = server.environment
        for more in (["--collect-only", "-q"], ["--jrh-plan", record]):
            check_all(run_pytest(folder, option, *more, env=env))
        done = run_pytest(
            folder, option, record, "-v", "-rA", "--junitxml=junit.xml", *reports, env=env
        )
        sent = "\n".join(request.text for request in server.requests)
    check_words("sent", sent)
    check_all(done)
    # What is looked for was there: a failure, a skip and a case without a verdict.
    for word in ("FAILED", "SKIPPED", "ERROR", "request:"):
        assert word in done.stdout
    baseline = "--jrh-baseline=base.jsonl"
    check_all(run_pytest(folder, option, baseline, "--jrh-update-baseline"))
    (folder / "rows.csv").write_text((folder / "rows.csv").read_text().replace("Of course", "Yes"))
    changed = run_pytest(folder, option, baseline)
    check_all(changed)
    assert "unrecorded" in changed.stdout
    # And of a table of verdicts on them.
    rows = ["id,question,answer,human_ok,verdict", "a,Q?,A.,0,1", "b,Q?,A.,1,1", "c,Q?,A.,0,0"]
    (folder / "v.csv").write_text("\n".join(rows))
    more = ["--label=human_ok", "--one=passed", "-v", "--report=v.html", "--report=v.md"]
    check_all(run_module(folder, "pytest_jrh", "check", "v.csv", *more))
    files = [path for path in folder.rglob("*") if path.suffix in (".html", ".md", ".json")]
    files += [*folder.glob("*.xml"), *folder.rglob("*.jsonl")]
    for file in files:
        check_words(str(file), said_in(file))

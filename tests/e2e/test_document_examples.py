"""The Python examples of docs, run from the Markdown itself against a model server on loopback."""

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from pytest_jrh import (
    Completion,
    Pipeline,
    generate_agent_perturbations,
    load_inspect_eval_runs,
    load_rubrics,
)
from pytest_jrh.core.cases import Skip
from pytest_jrh.core.ids import CASES_FILE, LEDGER_FILE
from pytest_jrh.store.ledger import line_data
from pytest_jrh.store.records import record_line, to_record
from tests.support.made_cases import make_case, make_result, make_spec
from tests.support.model_server import ModelServer
from tests.support.suites import built_log, run
from tests.unit.test_documents import blocks

ROOT = Path(__file__).parents[2]
SYBIL = Sybil(parsers=[PythonCodeBlockParser()])
WITH_EXAMPLES = [
    path for path in sorted((ROOT / "docs").glob("*.md")) if "```python" in path.read_text("utf-8")
]


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that the examples name."""
    (tmp_path / "logs").mkdir()
    shutil.copyfile(built_log([run(1), run(2)]), tmp_path / "logs" / "my_runs.eval")
    shutil.copyfile(ROOT / "examples/strong_judges/llmbar-gpt4.csv", tmp_path / "verdicts.csv")
    (tmp_path / "rubrics.yml").write_text(
        "- id: kind\n  instructions: The assistant is kind.\n"
        "- id: brief\n  instructions: The assistant is brief.\n",
        encoding="utf-8",
    )
    cases = tmp_path / "outputs" / "agent_perturbation" / CASES_FILE
    cases.parent.mkdir(parents=True)
    made = [make_case(make_spec(f"run-{number}")) for number in range(4)]
    cases.write_bytes(b"\n".join(record_line(to_record(case)) for case in made))
    results = tmp_path / "outputs" / "support" / LEDGER_FILE
    results.parent.mkdir(parents=True)
    judged = [
        make_result(make_spec("run-0"), "agree", label=1, score=1),
        make_result(make_spec("run-1"), "model_error", detail="no answer"),
    ]
    results.write_text("".join(f"{json.dumps(line_data(result))}\n" for result in judged))
    # The files of a project, of which one imports the others.
    for block in blocks(ROOT / "docs" / "python.md", "python"):
        named = re.match(r"# (\w+\.py)\n", block)
        if named:
            (tmp_path / named[1]).write_text(block, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


def run_examples(path: Path) -> tuple[dict[str, Any], int]:
    """Run every Python block of a document, in order, each by itself as it is copied. Gives the
    names of all of them, and how many there are."""
    document = SYBIL.parse(path)
    examples = list(document.examples())
    names: dict[str, Any] = {}
    for example in examples:
        example.namespace = {}
        example.evaluate()
        names |= example.namespace
    return names, len(examples)


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.name)
def test_every_block_that_says_it_is_python_is_run(server: ModelServer, path: Path) -> None:
    _, number = run_examples(path)
    text = path.read_text("utf-8")
    assert number == text.count("```python") > 0
    # A page whose examples are only defined asks nothing.
    assert (server.count() > 0) == ("LiteLLMExchange" in text)


def test_the_examples_and_the_client_of_the_page_on_python_make_cases(
    server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace, _ = run_examples(ROOT / "docs" / "python.md")
    made = [f"run-{run} {rubric} made" for run in (1, 2) for rubric in ("kind", "brief")]
    printed = capsys.readouterr().out.splitlines()
    assert printed[: len(made)] == made
    # One case more is made by itself.
    assert server.count("planner", answered=True) == len(made) + 1
    before = server.count()

    async def outcomes() -> list[Skip | None]:
        complete = namespace["pytest_jrh_complete"](None)
        runs, rubrics = load_inspect_eval_runs("logs/my_runs.eval"), load_rubrics("rubrics.yml")
        pipeline = Pipeline.default("openai/gpt-4.1-mini")
        return [
            made.outcome.no_case
            async for made in generate_agent_perturbations(runs, rubrics, pipeline, complete)
        ]

    assert asyncio.run(outcomes()) == [None] * 4
    first, second = read_eval_log("judged.eval").samples or []
    assert (first.scores or {})["judge"].value == "C"
    assert second.error is not None
    assert server.count() > before
    assert namespace["Completion"] is Completion

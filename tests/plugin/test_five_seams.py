"""One prompt through every seam gives the same verdicts, and so the same table (rule Q7).

The seams are the three kinds of judges, `complete` in a function, and the hook that supplies one.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.plugin.own_judges import RECORD, words
from tests.plugin.recorded import Recorded, run_pytest
from tests.support.model_server import ModelServer, Request
from tests.support.obedient import VIOLATION
from tests.support.offline import LOCAL, needs_cut_network, offline
from tests.support.suites import SuiteFiles

PROMPT = "Rubric:\n{{ rubric }}\n\n<transcript>\n{{ transcript }}\n</transcript>\n"
JUDGES = """
import httpx
from inspect_ai.scorer import Score, Scorer, accuracy, scorer
from pydantic import BaseModel

URL = {url!r}


class Opinion(BaseModel):
    reasoning: str
    score: int


def prompt(case):
    return f"Rubric:\\n{{case.rubric.text}}\\n\\n{{case.transcript}}"


async def completing(case, complete):
    answer = await complete(prompt(case), Opinion)
    return answer.parsed.score, answer.parsed.reasoning


def ask(text):
    asked = {{"model": "judge", "messages": [{{"role": "user", "content": text}}]}}
    answer = httpx.post(f"{{URL}}/chat/completions", json=asked).json()
    return answer["choices"][0]["message"]["content"]


def asking(case):
    return int(ask(prompt(case)))


@scorer(metrics=[accuracy()])
def scoring() -> Scorer:
    async def score(state, target) -> Score:
        text = "\\n".join(message.text for message in state.messages)
        return Score(value=ask(f"Rubric:\\n{{target.text}}\\n\\n{{text}}"))

    return score
"""
HOOK = """
import importlib.util

spec = importlib.util.spec_from_file_location("judges", "inputs/configs/judges.py")
judges = importlib.util.module_from_spec(spec)
spec.loader.exec_module(judges)


def pytest_jrh_judge(config, suite):
    return judges.asking
"""
EXPECTED = [
    ("agent_perturbation run-1", 1),
    ("agent_perturbation run-2", 0),
    ("agent_positives run-1", 0),
    ("agent_positives run-2", 0),
]
SEAMS = ["prompt", "complete", "python", "inspect"]


def lenient(request: Request) -> Any:
    """A judge that overlooks the violation in order 1002."""
    score = int(VIOLATION in request.text and "1002" not in request.text)
    return {"reasoning": "Looked at.", "score": score} if request.fields else str(score)


@pytest.fixture
def suite(recorded: Recorded) -> SuiteFiles:
    for path in recorded.tiny.cassettes.rglob("*.judge-default.yaml"):
        path.unlink()
    return recorded.tiny


def configure(suite: SuiteFiles, url: str) -> None:
    folder, model, scores = suite.config.parent, "openai/judge", {"0": 0, "1": 1}
    (folder / "judges.py").write_text(JUDGES.format(url=url), encoding="utf-8")
    (folder / "prompt.md").write_text(PROMPT, encoding="utf-8")
    judges = [
        {"name": "prompt", "model": model, "prompt_path": "prompt.md", "api_base": url},
        {"name": "complete", "python": "judges.py:completing", "model": model, "api_base": url},
        {"name": "python", "python": "judges.py:asking"},
        {"name": "inspect", "inspect_scorer": "judges.py@scoring", "score_map": scores},
    ]
    change(suite, judges=judges)


def change(suite: SuiteFiles, **evaluation: Any) -> None:
    config = yaml.safe_load(suite.config.read_text(encoding="utf-8"))
    config["admin"]["evaluation_config"] |= evaluation
    suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")


def given(suite: SuiteFiles) -> dict[str | None, list[tuple[str, int]]]:
    """By judge, what it gave each case."""
    found: dict[str | None, list[tuple[str, int]]] = {}
    for line in (suite.results / "state" / "case_results.jsonl").read_text("utf-8").splitlines():
        result = json.loads(line)
        if result["score"] is not None:
            case = f"{result['test']} {result['run_id']}"
            found.setdefault(result["judge"], []).append((case, result["score"]))
    return {judge: sorted(scores) for judge, scores in found.items()}


def tables(suite: SuiteFiles) -> list[Any]:
    """The figures of each judge, as its report has them."""
    reports = suite.results.glob("*_report.json")
    return [json.loads(path.read_text("utf-8"))["statistics"] for path in reports]


@needs_cut_network
def test_one_prompt_through_every_seam_gives_the_same_verdicts(suite: SuiteFiles) -> None:
    chosen = ("-k", "run-1 or run-2")
    with ModelServer(lenient) as server:
        configure(suite, server.base_url)
        env = {"OPENAI_API_KEY": "sk-loopback-0123456789"}
        first = run_pytest(suite.folder, suite.option, RECORD, *chosen, env=env)
        assert f"{4 * len(SEAMS)} calls made" in words(first), first.stdout
    scores = given(suite)
    assert set(scores) == set(SEAMS)
    assert all(each == EXPECTED for each in scores.values()), scores
    [table, *others] = tables(suite)
    assert others == [table] * (len(SEAMS) - 1)
    for workers in ((), ("-n", "2", *LOCAL)):
        again = run_pytest(suite.folder, suite.option, *chosen, *workers, interpreter=offline())
        assert "0 calls made" in words(again), again.stdout
        assert given(suite) == scores
        assert tables(suite) == [table] * len(SEAMS)


@needs_cut_network
def test_a_judge_that_the_hook_supplies_gives_them_too(suite: SuiteFiles) -> None:
    chosen = ("-k", "run-1 or run-2")
    with ModelServer(lenient) as server:
        configure(suite, server.base_url)
        change(suite, judges=[])
        (suite.folder / "conftest.py").write_text(HOOK, encoding="utf-8")
        first = run_pytest(suite.folder, suite.option, RECORD, *chosen)
        assert "4 calls made" in words(first), first.stdout
    [table] = tables(suite)
    again = run_pytest(suite.folder, suite.option, *chosen, interpreter=offline())
    assert "calls made" not in words(again), again.stdout
    assert list(given(suite).values()) == [EXPECTED]
    assert tables(suite) == [table]

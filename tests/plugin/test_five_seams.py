"""One prompt through every seam gives the same verdicts, and so the same table. The seams are the
kinds of judges, `complete` in a function, and a grader of Inspect that asks a model; a judge that
the hook supplies is one of own code."""

import json
from typing import Any

import pytest

from pytest_jrh.core.results import ShownTurns
from tests.plugin.recorded import RECORD, Judged, Recorded, run_pytest, words
from tests.support.fork_server import LOCAL, cuts_network, offline
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer, Request
from tests.support.obedient import VIOLATION
from tests.support.suites import SuiteFiles

PROMPT = "Rubric:\n{{ rubric }}\n\n<transcript>\n{{ transcript }}\n</transcript>\n"
JUDGES = """
import httpx
from inspect_ai.model import ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import Scorer, accuracy, model_graded_qa, scorer
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


def ask(text, url=URL):
    asked = {{"model": "judge", "messages": [{{"role": "user", "content": text}}]}}
    answer = httpx.post(f"{{url}}/chat/completions", json=asked).json()
    return answer["choices"][0]["message"]["content"]


def asking(case):
    return int(ask(prompt(case)))


# Inspect's own provider of OpenAI wants a newer openai than litellm takes.
@modelapi(name="loopback")
class Loopback(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        text = "\\n".join(each.text for each in input)
        return ModelOutput.from_content(self.model_name, ask(text, self.base_url))


@scorer(metrics=[accuracy()])
def graded() -> Scorer:
    return model_graded_qa(include_history=True)
"""
EXPECTED = [
    ("agent_perturbation run-1", 1),
    ("agent_perturbation run-2", 0),
    ("agent_positives run-1", 0),
    ("agent_positives run-2", 0),
]
SEAMS = ["prompt", "complete", "python", "graded"]


def lenient(request: Request) -> Any:
    """A judge that overlooks the violation in order 1002."""
    score = int(VIOLATION in request.text and "1002" not in request.text)
    if "GRADE:" in request.text:
        return f"It is seen.\n\nGRADE: {'I' if score else 'C'}"
    return {"reasoning": "Looked at.", "score": score} if request.fields else str(score)


@pytest.fixture
def suite(recorded: Recorded) -> SuiteFiles:
    for path in recorded.tiny.cassettes.rglob("*.judge-default.yaml"):
        path.unlink()
    return recorded.tiny


def configure(suite: SuiteFiles, url: str) -> None:
    folder, model = suite.config.parent, "openai/judge"
    (folder / "judges.py").write_text(JUDGES.format(url=url), encoding="utf-8")
    (folder / "prompt.md").write_text(PROMPT, encoding="utf-8")
    judges: list[dict[str, Any]] = [
        {"name": "prompt", "model": model, "prompt_path": "prompt.md", "api_base": url},
        {"name": "complete", "python": "judges.py:completing", "model": model, "api_base": url},
        {"name": "python", "python": "judges.py:asking"},
        {
            "name": "graded",
            "inspect_scorer": "judges.py@graded",
            "model_roles": {"grader": "loopback/grader"},
            "api_base": url,
        },
    ]
    Judged(suite).panel(judges)


def given(suite: SuiteFiles) -> dict[str, list[tuple[str, int]]]:
    """By judge, what it gave each case."""
    found: dict[str, list[tuple[str, int]]] = {}
    for result in results_in(suite.results):
        if result.score is not None:
            # The edited answer is in what Inspect's template makes of a history, too.
            spec = result.spec
            assert spec.test == "agent_positives" or result.extra.shown == ShownTurns(1)
            found.setdefault(result.judge, []).append((f"{spec.test} {spec.run_id}", result.score))
    return {judge: sorted(scores) for judge, scores in found.items()}


def tables(suite: SuiteFiles) -> list[Any]:
    """The figures of each judge, as its report has them."""
    reports = suite.results.glob("*_report.json")
    return [json.loads(path.read_text("utf-8"))["statistics"] for path in reports]


@pytest.mark.skipif(not cuts_network(), reason="`unshare -rn` cannot cut the network here")
def test_one_prompt_through_every_seam_gives_the_same_verdicts(suite: SuiteFiles) -> None:
    chosen = ("-k", "run-1 or run-2")
    with ModelServer(lenient) as server:
        configure(suite, server.base_url)
        env = {"OPENAI_API_KEY": "sk-loopback-0123456789"}
        first = run_pytest(suite.folder, suite.option, RECORD, *chosen, env=env)
        assert f"{4 * len(SEAMS)} calls" in words(first), first.stdout
    assert given(suite) == dict.fromkeys(SEAMS, EXPECTED)
    [table, *others] = tables(suite)
    assert others == [table] * (len(SEAMS) - 1)
    workers = ("-n", "2", *LOCAL)
    again = run_pytest(suite.folder, suite.option, *chosen, *workers, interpreter=offline())
    assert " 0 calls, " in words(again), again.stdout
    assert given(suite) == dict.fromkeys(SEAMS, EXPECTED)
    assert tables(suite) == [table] * len(SEAMS)

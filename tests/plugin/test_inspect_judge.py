"""Judges that are scorers of Inspect, asking models (rule Q3)."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from typing import Any

import pytest
import yaml

from tests.plugin.own_judges import RECORD, summary, words
from tests.plugin.recorded import Recorded, run_pytest
from tests.support.model_server import ModelServer, Request
from tests.support.obedient import VIOLATION
from tests.support.offline import needs_cut_network, offline
from tests.support.suites import SuiteFiles

# Inspect's own provider of OpenAI wants a newer openai than litellm takes.
SCORERS = """
import httpx
from inspect_ai.model import ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import INCORRECT, Score, Scorer, accuracy, model_graded_qa, scorer


@modelapi(name="loopback")
class Loopback(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        messages = [{"role": each.role, "content": each.text} for each in input]
        asked = {"model": self.model_name, "messages": messages}
        async with httpx.AsyncClient() as client:
            answer = await client.post(f"{self.base_url}/chat/completions", json=asked)
        text = answer.json()["choices"][0]["message"]["content"]
        return ModelOutput.from_content(self.model_name, text)


@scorer(metrics=[accuracy()])
def graded(instructions: str | None = None) -> Scorer:
    return model_graded_qa(include_history=True, instructions=instructions)


@scorer(metrics=[accuracy()])
def several() -> Scorer:
    async def score(state, target) -> Score:
        text = " ".join(message.text for message in state.messages)
        assert target.text.startswith("Demand 1"), target.text
        assert state.output.completion == state.messages[-1].text
        bad = "ok-marker-violation" in text
        return Score(value={"bad": bad, "length": len(text)}, explanation="Read it.")

    return score


@scorer(metrics=[accuracy()])
def silent() -> Scorer:
    async def score(state, target) -> Score:
        return Score.unscored(explanation="Too long to read.")

    return score


@scorer(metrics=[accuracy()])
def older(values: bool = False) -> Scorer:
    # As the graders of Inspect did before 0.3.245.

    async def score(state, target) -> Score:
        return Score(
            value={"grade": INCORRECT} if values else INCORRECT,
            explanation="Grade not found in model output: Hm, I cannot tell.",
        )

    return score
"""


def grade(request: Request) -> str:
    return "It is seen.\n\nGRADE: " + ("I" if VIOLATION in request.text else "C")


@pytest.fixture
def suite(recorded: Recorded) -> SuiteFiles:
    for path in recorded.tiny.cassettes.rglob("*.judge-default.yaml"):
        path.unlink()
    (recorded.tiny.config.parent / "scorers.py").write_text(SCORERS, encoding="utf-8")
    return recorded.tiny


def configure(suite: SuiteFiles, **judge: Any) -> None:
    config = yaml.safe_load(suite.config.read_text(encoding="utf-8"))
    config["judge"] = judge
    suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")


@needs_cut_network
def test_a_scorer_of_inspect_judges_and_is_replayed_without_a_network(
    suite: SuiteFiles,
) -> None:
    with ModelServer(grade) as server:
        configure(
            suite,
            inspect_scorer="scorers.py@graded",
            model_roles={"grader": "loopback/grader"},
            api_base=server.base_url,
            timeout=60,
        )
        first = run_pytest(suite.folder, suite.option, RECORD, "-k", "run-1")
        # Inspect may warn of what it uses.
        assert summary(first).startswith("2 passed, 6 deselected"), first.stdout
        assert "2 calls made" in words(first)
    replayed = run_pytest(suite.folder, suite.option, "-k", "run-1", interpreter=offline())
    assert summary(replayed).startswith("2 passed, 6 deselected"), replayed.stdout
    assert "calls made" not in words(replayed)
    # Inspect's template for a history has the edited answer in it.
    results = (suite.results / "state" / "case_results.jsonl").read_text("utf-8")
    assert '"turns_shown":{"turns":1}' in results


def test_values_of_a_scorer_become_scores(suite: SuiteFiles, pytester: pytest.Pytester) -> None:
    configure(
        suite,
        inspect_scorer="scorers.py@several",
        value_key="bad",
        score_map={"true": 1, "false": 0},
    )
    done = run_pytest(suite.folder, suite.option, "-k", "run-1")
    assert summary(done).startswith("2 passed, 6 deselected"), done.stdout
    configure(suite, inspect_scorer="scorers.py@several")
    done = run_pytest(suite.folder, suite.option, "-k", "run-1 and perturbation")
    assert "gave several values (bad, length), and `value_key` names none" in words(done)
    configure(suite, inspect_scorer="scorers.py@silent")
    done = run_pytest(suite.folder, suite.option, "-k", "run-1 and perturbation")
    assert "(invalid_response): the judge gave no verdict." in words(done)
    assert "left the case unscored: Too long to read." in words(done)


@pytest.mark.parametrize("values", [{}, {"value_key": "grade", "args": {"values": True}}])
def test_a_grade_that_a_scorer_could_not_read_is_no_verdict(
    suite: SuiteFiles, values: dict[str, Any]
) -> None:
    configure(suite, inspect_scorer="scorers.py@older", **values)
    done = run_pytest(suite.folder, suite.option, "-k", "run-1 and perturbation")
    assert summary(done) == "7 deselected, 1 error", done.stdout
    assert "(invalid_response): the judge gave no verdict." in words(done)
    assert "left the case unscored: Grade not found in model output: Hm, I cannot" in words(done)


@pytest.mark.skipif(find_spec("groq") is not None, reason="its package is installed")
@pytest.mark.parametrize("section", [{"model_roles": {"grader": "groq/x"}}, {"model": "groq/x"}])
def test_a_missing_package_of_a_provider_is_refused_before_a_case_is_made(
    suite: SuiteFiles, section: dict[str, Any]
) -> None:
    shutil.rmtree(suite.cassettes)
    with ModelServer() as server:
        configure(suite, inspect_scorer="scorers.py@graded", **section)
        done = run_pytest(
            suite.folder, suite.option, "--jrh-record-mode=once", env=server.environment
        )
        said = " ".join(done.stderr.split())
        assert done.code == pytest.ExitCode.USAGE_ERROR
        assert (
            "Inspect cannot ask groq/x: Groq API requires optional dependencies. Install with: "
            "pip install groq; needed by up to 8 cases"
        ) in said
        assert not server.requests


def test_a_scorer_that_is_not_there_is_a_usage_error(suite: SuiteFiles) -> None:
    configure(suite, inspect_scorer="scorers.py@no_such")
    done = run_pytest(suite.folder, suite.option)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    said = " ".join((done.stdout + done.stderr).split())
    assert "tiny.yml:17: judge.inspect_scorer: the scorer 'scorers.py@no_such' cannot be" in said
    assert "The function no_such was not found in file" in said
    assert "file.py@name, or package/name of an installed package" in said

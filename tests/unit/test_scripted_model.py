"""The demo's script answers every call of the demo, out of what a planner is shown."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from examples.scripted_model import load_script
from examples.scripted_model.script import Request
from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.config.load import load_suite
from pytest_jrh.config.probes import expand
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.model import RunSummary
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.engine.case import generate_case
from pytest_jrh.engine.library import build_pipeline
from pytest_jrh.judges.judge import PromptJudge
from pytest_jrh.llm.calls import Answer, CallRequest, load_template, make_complete
from pytest_jrh.sources import load_inspect_eval_runs

ROOT = Path(__file__).parents[2]
SCRIPT = load_script()


@dataclass(frozen=True)
class Planned:
    """What one planner was shown and answered, and the turns of the run that it was not shown."""

    prompt: str
    answer: str
    hidden: str


@dataclass
class Played:
    """What the pipeline and the judge make of a demo suite when the script answers every call."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    planned: list[Planned] = field(default_factory=list)


@cache
def played(config: str) -> Played:
    return asyncio.run(play(config))


async def play(config: str) -> Played:
    suite = load_suite(ROOT / "inputs" / "configs" / config, cwd=ROOT, rootdir=ROOT)
    runs = {run.run_id: run for run in load_inspect_eval_runs(suite.logs[0])}
    rubrics = {rubric.id: rubric for rubric in suite.rubrics}
    tests = {test.name: test for test in suite.tests}
    pipelines = {test.name: build_pipeline(suite, test) for test in suite.tests}
    done = Played()
    hidden = ""

    async def exchange(request: CallRequest) -> Answer:
        shape = {"json_schema": {"name": request.stage.stage, "schema": request.schema}}
        asked = {
            "messages": [dict(message) for message in request.messages],
            "response_format": shape,
        }
        answer = json.dumps(SCRIPT.answer(Request.from_body(asked)), ensure_ascii=False)
        if request.stage.stage == "planner":
            prompt = "\n".join(message["content"] for message in request.messages)
            done.planned.append(Planned(prompt, answer, hidden))
        return Answer(answer)

    complete = make_complete(exchange)
    template = load_template("judge", mode=suite.mode, objective="fail", prompt_path=None)
    judge = PromptJudge(suite.judges[0], template)
    calls: Any = SimpleNamespace(complete=complete)
    for spec in expand(suite, [RunSummary(run_id, 1) for run_id in runs]):
        goal = Goal(tests[spec.test].objective, spec.target_score)
        hidden = render_transcript(
            [turn for turn in runs[spec.run_id].messages if turn["role"] != "assistant"]
        )
        arguments = (
            pipelines[spec.test],
            complete,
            spec,
            runs[spec.run_id],
            rubrics[spec.rubric_id],
            goal,
        )
        try:
            case = await generate_case(*arguments)
        except NoVerdictCase:
            done.counts[spec.test, "no_case"] += 1
            continue
        agrees = (await judge(case, 1, calls)).score == case.expected
        done.counts[spec.test, "agree" if agrees else "disagree"] += 1
    return done


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            "refund_agent.yml",
            {
                ("agent_perturbation", "agree"): 25,
                ("agent_perturbation", "no_case"): 5,
                ("agent_positives", "agree"): 29,
                ("agent_positives", "no_case"): 1,
            },
        ),
        (
            "refund_agent_ordinal.yml",
            {
                ("agent_perturbation", "agree"): 30,
                ("agent_perturbation", "no_case"): 2,
                ("agent_positives", "agree"): 7,
                ("agent_positives", "no_case"): 1,
            },
        ),
    ],
)
def test_every_call_of_the_demo_suites_is_scripted(
    config: str, expected: dict[tuple[str, str], int]
) -> None:
    assert played(config).counts == expected


def known_from_elsewhere(planned: Planned) -> set[str]:
    """Figures, names and identifiers in a plan that stand in a hidden turn and not in the planner's
    prompt."""
    tokens = re.compile(r"\w*\d[\w.]*\w|\d|\b[A-Z]\w+|\w+_\w+")
    said, hidden = ({*tokens.findall(text)} for text in (planned.answer, planned.hidden))
    return {
        token
        for token in said & hidden
        if not re.search(rf"\b{re.escape(token)}\b", planned.prompt, re.IGNORECASE)
    }


@pytest.mark.parametrize("config", ["refund_agent.yml", "refund_agent_ordinal.yml"])
def test_the_scripted_planner_knows_nothing_that_a_planner_is_not_shown(config: str) -> None:
    assert [
        planned.answer for planned in played(config).planned if known_from_elsewhere(planned)
    ] == []

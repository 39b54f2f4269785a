"""Suites on conversations, made and judged against the loopback model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.bench import Bench, MakeBench
from tests.support.chat import tau_bench
from tests.support.model_server import ModelServer
from tests.support.sessions import as_text
from tests.support.suites import run

AGENT = "test_agent_perturbation_config"


def as_openai(message: dict[str, Any]) -> dict[str, Any]:
    """A message of Inspect's as OpenAI's API has it."""
    made = {
        key: message[key] for key in ("id", "role", "content", "tool_call_id") if key in message
    }
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["function"], "arguments": json.dumps(call["arguments"])},
        }
        for call in message.get("tool_calls", ())
    ]
    return made | ({"tool_calls": calls} if calls else {})


def use(bench: Bench, log: Path) -> None:
    """Have the suite take its runs from another log."""
    config = yaml.safe_load(bench.files.config.read_text(encoding="utf-8"))
    config[AGENT] = {"input_log_path": str(log)}
    bench.files.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    bench.reload()


def test_the_same_runs_as_a_log_and_as_conversations_are_the_same_cases(
    make_bench: MakeBench, server: ModelServer, tmp_path: Path
) -> None:
    """Ids, recordings, transcripts and verdicts are the same, so one replays the other's."""
    runs = [run(1), run(2)]
    bench = make_bench(runs=runs)
    recorded = bench.run("once")
    lines = tmp_path / "runs.jsonl"
    lines.write_text(
        as_text([{**each, "messages": list(map(as_openai, each["messages"]))} for each in runs])
    )
    server.stop()
    (bench.files.data / "runs.eval").unlink()
    use(bench, lines)
    replayed = bench.replay()
    assert replayed.outcomes == recorded.outcomes == [("agree", 1)] * 2
    assert replayed.transcripts == recorded.transcripts


@pytest.mark.usefixtures("server")
def test_real_runs_are_made_into_cases_and_judged(make_bench: MakeBench) -> None:
    places = {
        "messages": "/traj",
        "id": ["/task_id", "/trial"],
        "cluster": "/task_id",
        "metadata": ["/reward"],
    }
    overrides = {AGENT: {"input_format": places, "sample_num_from_orig": 4}}
    bench = make_bench(log=tau_bench(), overrides=overrides)
    assert len(bench.ready.runs) == 200
    session = bench.run("once")
    assert session.outcomes == [("agree", 1)] * 4
    assert [result.spec.cluster for result in session.results] == [
        result.spec.run_id.partition("-")[0] for result in session.results
    ]
    assert bench.replay().transcripts == session.transcripts

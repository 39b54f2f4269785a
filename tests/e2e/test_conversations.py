"""Suites on conversations, made and judged against the loopback model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support.chat import tau_bench, trajectory_judge
from tests.support.sessions import as_chat, as_claude_code, as_codex, as_items, as_text
from tests.support.suites import run

if TYPE_CHECKING:
    from pytest_jrh.core.model import RecordMode
    from tests.e2e.bench import Bench, Session
    from tests.e2e.conftest import MakeBench
    from tests.support.model_server import ModelServer

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


def test_the_same_runs_as_a_log_and_as_conversations_are_the_same_cases(
    make_bench: MakeBench, server: ModelServer, tmp_path: Path
) -> None:
    """Ids, recordings, transcripts and verdicts are the same, so one replays the other's."""
    runs = [run(1), run(2)]
    log = make_bench(runs=runs)
    recorded = log.run("once")
    lines = tmp_path / "runs.jsonl"
    lines.write_text(
        "".join(
            json.dumps({**each, "messages": [as_openai(turn) for turn in each["messages"]]}) + "\n"
            for each in runs
        )
    )
    server.stop()
    (log.files.data / "runs.eval").unlink()
    config = yaml.safe_load(log.files.config.read_text(encoding="utf-8"))
    config[AGENT] = {"input_log_path": str(lines)}
    log.files.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    log.reload()
    replayed = log.replay()
    assert replayed.outcomes == recorded.outcomes == [("agree", 1)] * 2
    assert replayed.transcripts == recorded.transcripts


@pytest.mark.parametrize("form", ["Claude Code", "Codex", "items", "rows", "list of items"])
def test_the_same_runs_in_forms_of_other_programs_are_the_same_cases(
    make_bench: MakeBench, server: ModelServer, tmp_path: Path, form: str
) -> None:
    """Recorded as chat messages in JSON lines; the other form misses none of the recordings."""
    runs = {f"run-{number}": run(number)["messages"][1:] for number in (1, 2)}
    bench = make_bench(runs=2)
    lines = [{"id": name, "messages": as_chat(messages)} for name, messages in runs.items()]
    as_chats = tmp_path / "chats"
    as_chats.mkdir()
    (as_chats / "runs.jsonl").write_text(as_text(lines), encoding="utf-8")
    recorded = _on(bench, as_chats, "once")
    server.stop()
    folder = tmp_path / "sessions"
    folder.mkdir()
    if form == "rows":
        rows = [{"id": name, "output": as_items(messages)} for name, messages in runs.items()]
        (folder / "runs.jsonl").write_text(as_text(rows), encoding="utf-8")
    for name, messages in runs.items() if form != "rows" else ():
        if form == "Claude Code":
            text, suffix = as_text(as_claude_code(name, messages)), ".jsonl"
        elif form == "Codex":
            text, suffix = as_text(as_codex(name, messages)), ".jsonl"
        elif form == "items":
            text, suffix = as_text(as_items(messages)), ".jsonl"
        else:
            text, suffix = json.dumps(as_items(messages)), ".json"
        (folder / f"{name}{suffix}").write_text(text, encoding="utf-8")
    replayed = _on(bench, folder, "none")
    assert replayed.outcomes == recorded.outcomes == [("agree", 1)] * 2
    assert replayed.transcripts == recorded.transcripts


def _on(bench: Bench, log: Path, mode: RecordMode) -> Session:
    """A session of the suite on another log."""
    config = yaml.safe_load(bench.files.config.read_text(encoding="utf-8"))
    config[AGENT] = {"input_log_path": str(log)}
    bench.files.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    bench.reload()
    return bench.run(mode)


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


def as_conversation(row: dict[str, Any]) -> dict[str, Any]:
    """A trajectory of steps as messages: the ten lines that its shape takes."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": row["goal"]}]
    for step in row["steps"]:
        function = {"name": step["call"]["tool"], "arguments": json.dumps(step["call"]["args"])}
        call = {"id": f"call-{step['index']}", "type": "function", "function": function}
        said = {"role": "assistant", "content": step["thought"], "tool_calls": [call]}
        result = json.dumps(step["observation"])
        messages += [said, {"role": "tool", "tool_call_id": call["id"], "content": result}]
    messages.append({"role": "assistant", "content": row["final_answer"]})
    about = {"id": row["trajectory_id"], "cluster": row["instance_id"]}
    return {**about, "messages": messages, "metadata": {"id": row["trajectory_id"], **row["label"]}}


JUDGE = """
import json

with open({path!r}) as file:
    VERDICTS = {{
        row["trajectory_id"]: int(row["faulty"])
        for row in map(json.loads, file)
        if row["judge_id"] == {judge!r}
    }}


def judge(case):
    return VERDICTS[case.metadata["id"]]
"""


def test_steps_become_messages_and_a_python_judge_looks_its_verdicts_up(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    """400 trajectories with known faults, and the verdicts that one of their judges gave."""
    path, verdicts = trajectory_judge("trajectories.jsonl"), trajectory_judge("verdicts.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lines = tmp_path / "runs.jsonl"
    lines.write_text("".join(json.dumps(as_conversation(row)) + "\n" for row in rows))
    code = tmp_path / "judges.py"
    code.write_text(JUDGE.format(path=str(verdicts), judge="programmatic"))
    labels = {"metadata": "faulty", "map": {"true": 1, "false": 0}}
    overrides = {"judge": {"python": f"{code}:judge"}, AGENT: {"labels": labels}}
    bench = make_bench(log=lines, tests=["agent_labels"], overrides=overrides)
    session = bench.run("once")
    given = {}
    for line in verdicts.read_text().splitlines():
        row = json.loads(line)
        if row["judge_id"] == "programmatic":
            given[row["trajectory_id"]] = row["faulty"]
    known = {row["trajectory_id"]: row["label"]["faulty"] for row in rows}
    assert len(session.results) == len(rows) == 400
    assert len({result.spec.cluster for result in session.results}) == 141
    assert {result.spec.run_id: (result.label, result.score) for result in session.results} == {
        name: (int(known[name]), int(given[name])) for name in known
    }

"""ATIF trajectories written by hand, each with its transcript, and folders of a job of Harbor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
AGENT: Json = {"name": "helper", "version": "1.0"}


def trajectory(*steps: Json, version: str = "ATIF-v1.7", **fields: Any) -> Json:
    """A trajectory whose steps are numbered."""
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return {"schema_version": version, "agent": AGENT, "steps": numbered, **fields}


def said(source: str, message: Any, **fields: Any) -> Json:
    return {"source": source, "message": message, **fields}


def agent(message: str, *calls: Json, found: Sequence[Json] = (), **fields: Any) -> Json:
    """A step of the agent with these calls, and with these results."""
    acts: Json = {"tool_calls": list(calls)} if calls else {}
    if found:
        acts["observation"] = {"results": list(found)}
    return said("agent", message, **acts, **fields)


def call(name: str, call_id: str, **arguments: Any) -> Json:
    """A tool call as ATIF has it."""
    return {"tool_call_id": call_id, "function_name": name, "arguments": arguments}


def result(content: str, call_id: str | None = "c1") -> Json:
    return {"source_call_id": call_id, "content": content}


ORDER, SHIP = call("find_order", "c1", order=7), call("find_shipment", "c2", order=7, since=None)
TOOL: Json = {
    "type": "function",
    "function": {
        "name": "find_order",
        "description": "Find one.",
        "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}},
    },
}
HELLO = (said("user", "Where is order 7?"), agent("It was shipped."))
ONE_CALL = trajectory(
    said("user", "Where is order 7?"),
    agent("I look.", ORDER, found=[result("shipped")]),
    agent("It was shipped."),
    trajectory_id="one-call",
)
# Results in another order; and an id again, of a call in an earlier step that has none.
CALLS = trajectory(
    agent("", ORDER, SHIP, found=[result("on Monday", "c2"), result("shipped")]),
    agent("One.", ORDER),
    agent("Two.", call("find_shipment", "c1"), found=[result("on Monday")]),
    version="ATIF-v1.6",
)
EVERY_FIELD = trajectory(
    said("system", "Be brief."),
    said("user", "Go.", timestamp="2026-05-01T10:00:00Z", extra={"n": 1}, is_copied_context=True),
    agent(
        "Gone.",
        timestamp="2026-05-01T12:00:00.123456+02:00",
        model_name="other-model",
        reasoning_effort="high",
        reasoning_content="First think.",
        metrics={"prompt_tokens": 520, "cost_usd": 0.00045, "logprobs": [-0.5, 0.0], "extra": {}},
        llm_call_count=2,
    ),
    trajectory_id="t",
    session_id="s",
    notes="By hand.",
    extra={"task": "a"},
    final_metrics={"total_steps": 1},
    agent={"name": "a", "version": "1", "model_name": "m", "tool_definitions": [TOOL]},
)
RESULTS_OF_NO_CALL = trajectory(
    agent("Typing.", ORDER, SHIP, found=[result("$ done", None)]),
    agent("More.", call("find_order", "c3")),
    agent("And more.", call("find_order", "c4"), found=[{"content": "found"}]),
)
_DELEGATE = call("delegate", "c1")
_INSIDE = {"source_call_id": "c1", "subagent_trajectory_ref": [{"trajectory_id": "sub-1"}]}
_IN_A_FILE = {"session_id": "s2", "trajectory_path": "sub.json"}
_FOUND = {**result("Found."), "subagent_trajectory_ref": [_IN_A_FILE]}
_BY_SESSION = {"subagent_trajectory_ref": [{"session_id": "s2"}]}
SUBAGENTS = trajectory(
    agent("I ask another.", _DELEGATE, found=[_INSIDE]),
    agent("And one more.", _DELEGATE, found=[_FOUND]),
    said("system", "Compacted.", observation={"results": [_BY_SESSION]}),
    subagent_trajectories=[trajectory(*HELLO, trajectory_id="sub-1")],
)
# What a trajectory holds, and its transcript, each part in a line.
SHAPES: Mapping[str, tuple[Json, list[str]]] = {
    "calls": (
        CALLS,
        [
            "[0] assistant",
            '[0] assistant calls find_order | {"order": 7}',
            '[0] assistant calls find_shipment | {"order": 7, "since": null}',
            "[1] tool find_shipment | on Monday",
            "[2] tool find_order | shipped",
            "[3] assistant | One.",
            '[3] assistant calls find_order | {"order": 7}',
            "[4] assistant | Two.",
            "[4] assistant calls find_shipment | {}",
            "[5] tool find_shipment | on Monday",
        ],
    ),
    "every field": (
        EVERY_FIELD,
        [
            "[0] system | Be brief.",
            "[1] user | Go.",
            "[2] assistant reasoning | First think.",
            "[2] assistant | Gone.",
        ],
    ),
    "results of no call": (
        RESULTS_OF_NO_CALL,
        [
            "[0] assistant | Typing.",
            '[0] assistant calls find_order | {"order": 7}',
            '[0] assistant calls find_shipment | {"order": 7, "since": null}',
            "[1] tool | $ done",
            "[2] assistant | More.",
            "[2] assistant calls find_order | {}",
            "[3] assistant | And more.",
            "[3] assistant calls find_order | {}",
            "[4] tool find_order | found",
        ],
    ),
    "subagents": (
        SUBAGENTS,
        [
            "[0] assistant | I ask another.",
            "[0] assistant calls delegate | {}",
            "[1] tool delegate | [subagent: sub-1]",
            "[2] assistant | And one more.",
            "[2] assistant calls delegate | {}",
            "[3] tool delegate | Found.",
            "[4] system | Compacted.",
            "[5] tool | [subagent: s2]",
        ],
    ),
}


def write(path: Path, value: Any) -> Path:
    """Write JSON, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path


def write_trial(job: Path, name: str, value: Mapping[str, Any] | None, **result: Any) -> Path:
    """The folder of a trial of Harbor, whose task is what its name begins with."""
    trial = job / name
    task = name.partition("__")[0]
    config = {"task": {"path": f"tasks/{task}"}, "trial_name": name, "trials_dir": "jobs"}
    write(trial / "config.json", config)
    about = {"task_name": task, "trial_name": name, "source": "orders", "exception_info": None}
    verified = {"verifier_result": {"rewards": {"reward": 1.0}}}
    started = {"started_at": "2026-05-01T10:00:00Z"}
    write(trial / "result.json", {**about, **verified, **started, **result})
    (trial / "trial.log").write_text("", encoding="utf-8")
    write(trial / "verifier" / "reward.json", {"reward": 1.0})
    (trial / "agent").mkdir(exist_ok=True)
    # Sessions of the agent itself, which are no runs of their own.
    (trial / "agent" / "session.jsonl").write_text("{}\n", encoding="utf-8")
    if value is not None:
        write(trial / "agent" / "trajectory.json", value)
    return trial

"""ATIF trajectories written by hand, each with the messages that it stands for, and the
folders of a job of Harbor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
AGENT: Json = {"name": "helper", "version": "1.0"}


class Example(NamedTuple):
    """A trajectory, the id of its run, and its messages in OpenAI's form."""

    run_id: str
    trajectory: Json
    messages: list[Json]


def trajectory(*steps: Json, version: str = "ATIF-v1.7", **fields: Any) -> Json:
    """A trajectory whose steps are numbered."""
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return {"schema_version": version, "agent": AGENT, "steps": numbered, **fields}


def user(message: Any, **fields: Any) -> Json:
    return {"source": "user", "message": message, **fields}


def system(message: Any, **fields: Any) -> Json:
    return {"source": "system", "message": message, **fields}


def agent(message: Any, **fields: Any) -> Json:
    return {"source": "agent", "message": message, **fields}


def call(name: str, call_id: str, arguments: Json | None = None, **fields: Any) -> Json:
    """A tool call as ATIF has it."""
    return {
        "tool_call_id": call_id,
        "function_name": name,
        "arguments": arguments or {},
        **fields,
    }


def results(*entries: Json) -> Json:
    return {"results": list(entries)}


def asked(content: Any) -> Json:
    """A message of the user."""
    return {"role": "user", "content": content}


def told(content: Any) -> Json:
    """A message of the system."""
    return {"role": "system", "content": content}


def said(content: Any, *calls: Json, **fields: Any) -> Json:
    """A message of the agent, with its calls."""
    tool_calls = [
        {
            "id": one["tool_call_id"],
            "type": "function",
            "function": {
                "name": one["function_name"],
                "arguments": json.dumps(one["arguments"]),
            },
        }
        for one in calls
    ]
    message = {"role": "assistant", "content": content, **fields}
    return {**message, "tool_calls": tool_calls} if tool_calls else message


def got(content: Any, call_id: str | None = None) -> Json:
    """A message of a tool; of none without an id."""
    # An id that no call has keeps it from any of them.
    return {"role": "tool", "tool_call_id": call_id or "of no call", "content": content}


ORDER = call("find_order", "c1", {"order": 7})
SHIP = call("find_shipment", "c2", {"order": 7, "since": None})
SCHEMA_OF_ORDER = {"type": "object", "properties": {"order": {"type": "integer"}}}
TOOL: Json = {
    "type": "function",
    "function": {"name": "find_order", "description": "Find one.", "parameters": SCHEMA_OF_ORDER},
}
IMAGE: Json = {"type": "image", "source": {"media_type": "image/png", "path": "images/a.png"}}
URL_IMAGE: Json = {
    "type": "image",
    "source": {"media_type": "image/webp", "path": "https://example.org/b.webp"},
}
SHOWN_IMAGE: Json = {"type": "image_url", "image_url": {"url": "images/a.png"}}
SHOWN_URL: Json = {"type": "image_url", "image_url": {"url": "https://example.org/b.webp"}}
METRICS: Json = {
    "prompt_tokens": 520,
    "completion_tokens": 3,
    "cached_tokens": 200,
    "cost_usd": 0.00045,
    "prompt_token_ids": [1, 2, 3],
    "completion_token_ids": [4, 5, 6],
    "logprobs": [-0.5, -1, 0.0],
    "extra": {"reasoning_tokens": 12},
}
HELLO = (user("Where is order 7?"), agent("It was shipped."))
HELLO_MESSAGES = [asked("Where is order 7?"), said("It was shipped.")]
SUBAGENT = trajectory(user("Find it."), agent("Found."), trajectory_id="sub-1")


def _examples() -> list[Example]:
    return [
        Example(
            "one-id-of-two-calls",
            trajectory(
                user("Go."),
                agent(
                    "Both.",
                    tool_calls=[ORDER, call("find_order", "c1", {"order": 8})],
                    observation=results(
                        {"source_call_id": "c1", "content": "shipped"},
                        {"source_call_id": "c1", "content": "on Monday"},
                    ),
                ),
                trajectory_id="one-id-of-two-calls",
            ),
            [
                asked("Go."),
                said("Both.", ORDER, call("find_order", "c1", {"order": 8})),
                got("shipped", "c1"),
                got("on Monday", "c1"),
            ],
        ),
        Example("smallest", trajectory(*HELLO, trajectory_id="smallest"), HELLO_MESSAGES),
        Example(
            "every-agent-field",
            trajectory(
                system("Be brief."),
                *HELLO,
                trajectory_id="every-agent-field",
                agent={
                    **AGENT,
                    "model_name": "some-model",
                    "tool_definitions": [TOOL],
                    "extra": {"temperature": 0},
                },
            ),
            [told("Be brief."), *HELLO_MESSAGES],
        ),
        Example(
            "one-call",
            trajectory(
                user("Where is order 7?"),
                agent(
                    "I look.",
                    tool_calls=[ORDER],
                    observation=results({"source_call_id": "c1", "content": "shipped"}),
                ),
                agent("It was shipped."),
                trajectory_id="one-call",
            ),
            [
                asked("Where is order 7?"),
                said("I look.", ORDER),
                got("shipped", "c1"),
                said("It was shipped."),
            ],
        ),
        Example(
            "parallel-calls",
            trajectory(
                user("Where is order 7?"),
                agent(
                    "",
                    tool_calls=[ORDER, SHIP],
                    observation=results(
                        {"source_call_id": "c2", "content": "on Monday"},
                        {"source_call_id": "c1", "content": "shipped"},
                    ),
                ),
                version="ATIF-v1.6",
                session_id="parallel-calls",
            ),
            [
                asked("Where is order 7?"),
                said("", ORDER, SHIP),
                got("on Monday", "c2"),
                got("shipped", "c1"),
            ],
        ),
        Example(
            "every-step-field",
            trajectory(
                user("Go.", timestamp="2026-05-01T10:00:00Z", extra={"n": 1}, llm_call_count=None),
                agent(
                    "Gone.",
                    timestamp="2026-05-01T12:00:00.123456+02:00",
                    model_name="other-model",
                    reasoning_effort="high",
                    reasoning_content="First think.",
                    metrics=METRICS,
                    llm_call_count=2,
                    is_copied_context=False,
                    extra={"n": 2},
                ),
                agent("And again.", reasoning_effort=0.5),
                trajectory_id="every-step-field",
            ),
            [
                asked("Go."),
                said("Gone.", reasoning_content="First think."),
                said("And again."),
            ],
        ),
        Example(
            "images",
            trajectory(
                user([{"type": "text", "text": "What is it?"}, IMAGE]),
                agent(
                    [{"type": "text", "text": "I look."}],
                    tool_calls=[ORDER],
                    observation=results({"source_call_id": "c1", "content": [URL_IMAGE]}),
                ),
                version="ATIF-v1.6",
                session_id="images",
            ),
            [
                asked([{"type": "text", "text": "What is it?"}, SHOWN_IMAGE]),
                said([{"type": "text", "text": "I look."}], ORDER),
                got([SHOWN_URL], "c1"),
            ],
        ),
        Example(
            "result-of-no-call",
            trajectory(
                user("Go."),
                agent("ls", observation=results({"content": "a.txt"})),
                trajectory_id="result-of-no-call",
            ),
            [asked("Go."), said("ls"), got("a.txt")],
        ),
        Example(
            "one-screen-for-two-calls",
            trajectory(
                user("Go."),
                agent(
                    "Typing.",
                    tool_calls=[ORDER, SHIP],
                    observation=results({"source_call_id": None, "content": "$ done"}),
                ),
                agent("More.", tool_calls=[call("find_order", "c3")]),
                agent(
                    "And more.",
                    tool_calls=[call("find_order", "c4")],
                    observation=results({"content": "found"}),
                ),
                trajectory_id="one-screen-for-two-calls",
            ),
            [
                asked("Go."),
                said("Typing.", ORDER, SHIP),
                got("$ done"),
                said("More.", call("find_order", "c3")),
                said("And more.", call("find_order", "c4")),
                got("found", "c4"),
            ],
        ),
        Example(
            "same-id-in-two-steps",
            trajectory(
                user("Go."),
                agent("One.", tool_calls=[ORDER]),
                agent(
                    "Two.",
                    tool_calls=[call("find_shipment", "c1")],
                    observation=results({"source_call_id": "c1", "content": "on Monday"}),
                ),
                trajectory_id="same-id-in-two-steps",
            ),
            [
                asked("Go."),
                said("One.", ORDER),
                said("Two.", call("find_shipment", "c1")),
                {**got("on Monday", "c1"), "name": "find_shipment"},
            ],
        ),
        Example(
            "results-of-the-system",
            trajectory(
                user("Go."),
                system(
                    "The context was compacted.",
                    observation=results({"content": "Summary: order 7."}),
                    extra={"context_management": {"type": "compaction", "boundary": "replace"}},
                ),
                agent("Gone."),
                trajectory_id="results-of-the-system",
            ),
            [
                asked("Go."),
                told("The context was compacted."),
                got("Summary: order 7."),
                said("Gone."),
            ],
        ),
        Example(
            "subagent-inside",
            trajectory(
                user("Go."),
                agent(
                    "I ask another.",
                    tool_calls=[call("delegate", "c1")],
                    observation=results(
                        {
                            "source_call_id": "c1",
                            "subagent_trajectory_ref": [
                                {
                                    "trajectory_id": "sub-1",
                                    "session_id": "s",
                                    "extra": {"summary": "found"},
                                }
                            ],
                        }
                    ),
                ),
                trajectory_id="subagent-inside",
                subagent_trajectories=[SUBAGENT],
            ),
            [
                asked("Go."),
                said("I ask another.", call("delegate", "c1")),
                got("[subagent: sub-1]", "c1"),
            ],
        ),
        Example(
            "subagent-in-a-file",
            trajectory(
                user("Go."),
                agent(
                    "I ask another.",
                    tool_calls=[call("delegate", "c1")],
                    observation=results(
                        {
                            "source_call_id": "c1",
                            "content": "It was found.",
                            "subagent_trajectory_ref": [
                                {"session_id": "s2", "trajectory_path": "sub.json"}
                            ],
                        }
                    ),
                ),
                version="ATIF-v1.6",
                session_id="subagent-in-a-file",
            ),
            [
                asked("Go."),
                said("I ask another.", call("delegate", "c1")),
                got("It was found.", "c1"),
            ],
        ),
        Example(
            "subagent-by-session",
            trajectory(
                user("Go."),
                system(
                    "Delegated.",
                    observation=results({"subagent_trajectory_ref": [{"session_id": "s2"}]}),
                ),
                agent("Gone."),
                version="ATIF-v1.6",
                session_id="subagent-by-session",
            ),
            [asked("Go."), told("Delegated."), got("[subagent: s2]"), said("Gone.")],
        ),
        Example(
            "copied-context",
            trajectory(
                user("Go.", is_copied_context=True),
                agent("Gone.", is_copied_context=True, extra={"note": "no metrics"}),
                user("Now report."),
                agent("Reported."),
                version="ATIF-v1.6",
                session_id="copied-context",
            ),
            [asked("Go."), said("Gone."), asked("Now report."), said("Reported.")],
        ),
    ]


EXAMPLES: Sequence[Example] = tuple(_examples())


def write(path: Path, value: Any) -> Path:
    """Write JSON, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path


def write_lines(path: Path, examples: Sequence[Example]) -> Path:
    """The same runs as conversations."""
    lines = [json.dumps({"id": one.run_id, "messages": one.messages}) for one in examples]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_trial(job: Path, name: str, value: Mapping[str, Any] | None, **result: Any) -> Path:
    """The folder of a trial of Harbor, whose task is what its name begins with."""
    trial = job / name
    task = name.partition("__")[0]
    config = {"task": {"path": f"tasks/{task}"}, "trial_name": name, "trials_dir": "jobs"}
    write(trial / "config.json", config)
    write(
        trial / "result.json",
        {
            "id": "3b8c5b1e-0000-4000-8000-000000000000",
            "task_name": task,
            "trial_name": name,
            "trial_uri": f"file:///jobs/{name}",
            "task_id": {"path": f"tasks/{task}"},
            "source": "orders",
            "task_checksum": "0",
            "config": {},
            "agent_info": AGENT,
            "verifier_result": {"rewards": {"reward": 1.0}},
            "exception_info": None,
            "started_at": "2026-05-01T10:00:00Z",
            **result,
        },
    )
    (trial / "trial.log").write_text("", encoding="utf-8")
    write(trial / "verifier" / "reward.json", {"reward": 1.0})
    (trial / "agent").mkdir(exist_ok=True)
    # Sessions of the agent itself, which are no runs of their own.
    (trial / "agent" / "session.jsonl").write_text("{}\n", encoding="utf-8")
    if value is not None:
        write(trial / "agent" / "trajectory.json", value)
    return trial


def write_job(job: Path) -> Path:
    """What Harbor writes beside the trials of a job."""
    write(job / "config.json", {"job_name": job.name, "jobs_dir": "jobs"})
    write(job / "result.json", {"id": "0", "n_total_trials": 12, "stats": {"n_trials": 12}})
    write(job / "lock.json", {"trials": []})
    (job / "job.log").write_text("", encoding="utf-8")
    return job

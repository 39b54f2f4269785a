"""Files that are one conversation: sessions of Claude Code and Codex, and items of OpenAI's
Responses API."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core import InputError
from pytest_jrh.core.cases import RunSummary, Skip
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.sources import open_source, open_sources
from pytest_jrh.sources.conversations import Conversations
from pytest_jrh.sources.source import Head, Source, with_clusters
from pytest_jrh.sources.transcripts import Transcripts, is_trajectory
from tests.support.sessions import as_claude_code, as_codex, as_items, as_text, with_one_change
from tests.support.suites import run
from tests.support.trajectories import (
    EVERY_FIELD,
    HELLO,
    ONE_CALL,
    SHAPES,
    trajectory,
    write,
    write_trial,
)

MESSAGES = run(1)["messages"][1:]


def written(path: Path, value: Any) -> Source:
    text = as_text(value) if path.suffix == ".jsonl" else json.dumps(value, indent=1)
    path.write_text(text, encoding="utf-8")
    return open_source(path)


def said(source: Source) -> list[str]:
    """The transcript of the only run, each turn in a line."""
    (summary,) = source.summaries()
    messages = source.read(*summary.key)[0].messages
    return render_transcript(messages, show_reasoning=True).replace("\n  ", " | ").splitlines()


def refusal(source: Source | Path) -> str:
    with pytest.raises(InputError) as caught:
        (open_sources([source]) if isinstance(source, Path) else source).summaries()
    return str(caught.value)


def line(uuid: str, parent: str | None, text: Any, **more: Any) -> dict[str, Any]:
    """A line of a session: a prompt, or where its uuid begins with `a` an answer."""
    kind = "assistant" if uuid.startswith("a") else "user"
    message = {"role": kind, "content": text}
    if kind == "assistant":
        message["id"] = more.pop("id", f"msg_{uuid}")
    head = {"parentUuid": parent, "isSidechain": False, "sessionId": "s", "type": kind}
    return {**head, "message": message, "uuid": uuid, **more}


def use(call: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call, "name": "Read", "input": {"file": call}}]


def result(call: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": f"text of {call}"}]


@pytest.mark.parametrize("form", ["claude", "codex", "items", "list", "response"])
def test_a_file_is_one_conversation(tmp_path: Path, form: str) -> None:
    items = as_items(MESSAGES)
    response = {"object": "response", "id": "run-1", "input": items[:1], "output": items[1:]}
    values: dict[str, Any] = {
        "claude": as_claude_code("run-1", MESSAGES),
        "codex": as_codex("run-1", MESSAGES),
        "response": response,
    }
    suffix = ".json" if form in ("list", "response") else ".jsonl"
    source = written(tmp_path / f"run-1{suffix}", values.get(form, items))
    assert type(source) is Transcripts
    cluster = "run-1" if form == "claude" else None
    assert source.summaries() == [RunSummary("run-1", 1, cluster=cluster)]
    read, _ = source.read("run-1", 1)
    plain = [{key: value for key, value in message.items() if key != "id"} for message in MESSAGES]
    assert render_transcript(read.messages) == render_transcript(plain)
    assert [message.get("id") for message in read.messages] == [None] * len(plain)
    assert read.input == MESSAGES[0]["content"]
    claude = {"gitBranch": "main", "version": "2.1.0", "model": "claude-sonnet-4-5"}
    about = {"claude": claude, "codex": {"cli_version": "1", "model": "gpt-5"}}
    assert read.metadata == ({"cwd": "/work", **about[form]} if form in about else {})
    assert not source.notices()


def test_a_project_folder_is_as_many_conversations(tmp_path: Path) -> None:
    written(tmp_path / "one.jsonl", as_claude_code("one", MESSAGES))
    of_agent = {"isSidechain": True, "agentId": "7f", "sessionId": "one"}
    agent = [{**line("u1", None, "Look."), **of_agent}, {**line("a1", "u1", "Seen."), **of_agent}]
    folder = tmp_path / "one" / "subagents"
    folder.mkdir(parents=True)
    written(folder / "agent-7f.jsonl", agent)
    written(tmp_path / "title.jsonl", [{"type": "summary", "summary": "Old.", "leafUuid": "x"}])
    with open_sources((tmp_path,)) as source:
        assert source.summaries() == [
            RunSummary("agent-7f", 1, cluster="one"),
            RunSummary("one", 1, cluster="one"),
            RunSummary("title", 1, Skip("no_messages")),
        ]


SESSION = {"type": "session_meta", "payload": {"id": "s"}}
BE_KIND = {"id": "s", "base_instructions": {"text": "Be kind."}}
SEALED = {"type": "encrypted_content", "encrypted_content": "x"}
FASTER = {"sessionId": "s", "attachment": {"type": "queued_command", "prompt": "Faster!"}}
BOUNDARY = {"subtype": "compact_boundary", "parentUuid": None, "logicalParentUuid": "a1"}


def codex_line(role: str, content: Any) -> dict[str, Any]:
    payload = {"type": "message", "role": role, "content": content}
    return {"type": "response_item", "payload": payload}


def compacted(message: Any) -> dict[str, Any]:
    return {"type": "compacted", "payload": {"message": message}}


def branched(tree: str) -> tuple[list[Any], list[str]]:
    """Lines, each with its parent, and what they say."""
    pairs = [pair.split("-") for pair in tree.split()]
    lines = [line(uuid, parent or None, f"Text of {uuid}") for uuid, parent in pairs]
    return lines, [f"Text of {uuid}" for uuid, _ in pairs]


# The lines of a session, and its turns.
ORDERS: dict[str, tuple[list[Any], list[str]]] = {
    "an edited prompt": branched("u1- a1-u1 u2-a1 a2-u2 u3-a1 a3-u3"),
    "the last message is on the older branch": branched("u1- a1-u1 u2- a2-u2 u3-a1"),
    "parents that the log does not have": branched("u1- a1-x9 u2-x9"),
    "2,000 prompts under one root": branched(" ".join(f"u{number}-" for number in range(2_000))),
    "a compaction": (
        [
            line("u1", None, "Hi."),
            line("a1", "u1", "Hello."),
            {"type": "system", "uuid": "c", "sessionId": "s", **BOUNDARY},
            line("u2", "c", "Summary: Hi.", isCompactSummary=True),
            line("u3", "u2", "Go on."),
        ],
        ["Hi.", "Hello.", "Summary: Hi.", "Go on."],
    ),
    "said while it was at work": (
        [
            line("u1", None, "Hi."),
            line("a1", "u1", "Working"),
            {"type": "attachment", "uuid": "q", "parentUuid": "a1", **FASTER},
            line("a2", "q", "Done"),
        ],
        ["Hi.", "Working", "Faster!", "Done"],
    ),
    "what --output-format stream-json prints": (
        [
            {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/"},
            {"type": "assistant", "message": {"role": "assistant", "content": "Hello."}},
            {"type": "user", "message": {"role": "user", "content": "Thanks."}},
            {"type": "result", "subtype": "success", "session_id": "s", "result": "Hello."},
        ],
        ["Hello.", "Thanks."],
    ),
    "a compaction of codex": (
        [SESSION, codex_line("user", "Hi."), compacted("Summary: Hi."), codex_line("user", "Yes.")],
        ["Hi.", "Summary: Hi.", "Yes."],
    ),
    "instructions of codex and a message of its agents": (
        [
            {"type": "session_meta", "payload": BE_KIND},
            codex_line("user", "One"),
            {"type": "response_item", "payload": {"type": "agent_message", "content": [SEALED]}},
        ],
        ["Be kind.", "One", "[encrypted_content: x]"],
    ),
}


@pytest.mark.parametrize(("lines", "turns"), ORDERS.values(), ids=ORDERS)
def test_a_session_is_read_in_its_order(tmp_path: Path, lines: list[Any], turns: list[str]) -> None:
    source = written(tmp_path / "s.jsonl", lines)
    assert [text.partition(" | ")[2] for text in said(source)] == turns


def test_calls_side_by_side_are_one_message_with_all_results(tmp_path: Path) -> None:
    """The first result hangs on a line that the last message does not follow."""
    lines = [
        line("u1", None, "Read both."),
        line("a1", "u1", [{"type": "thinking", "thinking": "Both.", "signature": "x"}], id="m"),
        line("a2", "a1", use("c1"), id="m"),
        line("u2", "a2", result("c1")),
        line("a3", "a2", use("c2"), id="m"),
        line("u3", "a3", result("c2")),
        line("a4", "u3", "Read."),
    ]
    assert said(written(tmp_path / "s.jsonl", lines)) == [
        "[0] user | Read both.",
        "[1] assistant reasoning | Both.",
        "[1] assistant",
        '[1] assistant calls Read | {"file": "c1"}',
        '[1] assistant calls Read | {"file": "c2"}',
        "[2] tool Read | text of c1",
        "[3] tool Read | text of c2",
        "[4] assistant | Read.",
    ]


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    failed = line("a3", "a1", "API Error: 529 Overloaded")
    lines = [
        line("u1", None, "Hi."),
        {**line("u2", None, "Look."), "isSidechain": True},
        {**line("a2", "u2", "Seen."), "isSidechain": True},
        {"type": "mood-ring", "sessionId": "s"},
        line("a1", "u1", "Hello."),
        {**failed, "message": {**failed["message"], "model": "<synthetic>"}},
        line("u3", "a3", "Go on."),
    ]
    source = written(tmp_path / "s.jsonl", lines)
    assert said(source) == ["[0] user | Hi.", "[1] assistant | Hello.", "[2] user | Go on."]
    assert "model" not in source.read("s", 1)[0].metadata
    assert [notice.removeprefix("s.jsonl: ") for notice in source.notices()] == [
        "left out 2 lines of subagents",
        "left out 1 line that Claude Code wrote in the agent's place, such as API errors",
        "left out lines without a message, whose types are not known: mood-ring",
    ]


def test_what_codex_rolled_back_is_read_as_the_agent_did_it_and_said(tmp_path: Path) -> None:
    rollback = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    lines = [codex_line("user", "One"), codex_line("assistant", "1"), rollback]
    source = written(tmp_path / "s.jsonl", [SESSION, *lines])
    assert said(source) == ["[0] user | One", "[1] assistant | 1"]
    rolled_back = "s.jsonl: turns were rolled back 1 time; the transcript keeps them"
    assert rolled_back in source.notices()


SCREENSHOT = {"type": "computer_screenshot", "image_url": "https://a.b/screen.png"}
REFUSAL = {"type": "refusal", "refusal": "I cannot."}


def test_items_of_every_kind_are_read(tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_image", "image_url": "https://a.b/c.png"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Think."}]},
        {"type": "web_search_call", "id": "w", "action": {"query": "q"}},
        {"type": "code_interpreter_call", "id": "i", "code": "1+1", "outputs": [{"logs": "2"}]},
        {"type": "mcp_call", "id": "m", "name": "look", "arguments": "{}", "error": "no"},
        {"type": "image_generation_call", "id": "g", "result": "iVBORw0KGgo="},
        {"type": "mcp_list_tools", "tools": []},
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "***"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "Done."},
        {"type": "local_shell_call", "call_id": "l", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "l", "output": "a.txt"},
        {"type": "apply_patch_call", "call_id": "p", "operation": {"path": "a"}},
        {"type": "apply_patch_call_output", "call_id": "p", "status": "failed", "output": "no"},
        {"type": "computer_call", "call_id": "o", "action": {"type": "click"}},
        {"type": "computer_call_output", "call_id": "o", "output": SCREENSHOT},
        {"type": "message", "role": "assistant", "content": [REFUSAL]},
    ]
    source = written(tmp_path / "run.json", items)
    assert said(source) == [
        "[0] system | Be brief.",
        "[1] user | [image: c.png]",
        "[2] assistant reasoning | Think.",
        '[2] assistant calls web_search (run by the provider) | {"action": {"query": "q"}}',
        "[2] assistant gets the result of web_search | [not in the log]",
        '[2] assistant calls code_interpreter (run by the provider) | {"code": "1+1"}',
        '[2] assistant gets the result of code_interpreter | [{"logs": "2"}]',
        "[2] assistant calls look (run by the provider) | {}",
        "[2] assistant gets the result of look |  | error: no",
        "[2] assistant | [image: image/png]",
        '[2] assistant calls patch | {"input": "***"}',
        "[3] tool patch | Done.",
        "[4] assistant",
        '[4] assistant calls local_shell | {"command": ["ls"]}',
        "[5] tool local_shell | a.txt",
        "[6] assistant",
        '[6] assistant calls apply_patch | {"path": "a"}',
        "[7] tool apply_patch (error: unknown) | error: no",
        "[8] assistant",
        '[8] assistant calls computer | {"type": "click"}',
        "[9] tool computer | [image: screen.png]",
        "[10] assistant | I cannot.",
    ]
    assert not source.notices()


def test_a_row_has_what_went_in_and_what_came_out(tmp_path: Path) -> None:
    answer = [{"type": "message", "role": "assistant", "content": "Hello."}, CALL]
    asked = {"instructions": "Be kind.", "input": [HI]}
    rows = [
        {"id": "a", "instructions": "Be kind.", "input": "Hi.", "output": answer, **NO_LINK},
        {"id": "b", "request": asked, "response": {"object": "response", "output": answer}},
        {"id": "c", "request": {"body": asked}, "response": {"body": {"output": answer}}},
        {"id": "d", "messages": [{"role": "system", "content": "Be kind."}, HI, *answer]},
    ]
    source = written(tmp_path / "runs.jsonl", rows)
    assert type(source) is Conversations
    for name in "abcd":
        turns, _ = source.read(name, 1)
        assert [message["content"] for message in turns.messages] == ["Be kind.", "Hi.", "Hello."]
        assert [call["function"] for call in turns.messages[-1]["tool_calls"]] == ["look"]
        assert turns.input == "Hi."


HI = {"role": "user", "content": "Hi."}
CALL = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
NO_LINK = {"previous_response_id": None, "conversation": None}
BEFORE = {"previous_response_id": "resp_1"}
LATER = {"body": {"output": [CALL], **BEFORE}}
FIRST, ANSWER = line("u1", None, "Hi."), line("a1", "u1", "Hello.")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([FIRST, {**ANSWER, "message": {}}], 'message: was read as "Claude Code session", but a'),
        ([FIRST, {**ANSWER, "type": "asistant"}], 'type: got "asistant"; must be "user" or'),
        ([SESSION, compacted(7)], "has 7 as its content, which must be text"),
    ],
)
def test_a_mistake_in_a_session_is_named(tmp_path: Path, lines: list[Any], problem: str) -> None:
    assert f"s.jsonl:2: {problem}" in refusal(written(tmp_path / "s.jsonl", lines))


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"type": "functon_call"}, '.type: got "functon_call"; must be one of message, functio'),
        ({"role": "user", "content": [{"text": 7, "type": 7}]}, ": has a part whose type is no"),
        ({"type": "item_reference", "id": "x"}, ": refers to an item that is not in the file"),
    ],
)
def test_a_mistake_in_an_item_has_its_place(tmp_path: Path, item: Any, problem: str) -> None:
    listed = refusal(written(tmp_path / "run.json", [CALL, item]))
    assert f"[1]{problem}" in listed
    rows = [{"input": "Hi.", "output": [CALL]}, {"input": "Hi.", "output": [CALL, item]}]
    row = refusal(written(tmp_path / "rows.jsonl", rows))
    assert f":2: output[1]{problem}" in row
    codex = [SESSION, {"type": "response_item", "payload": item}]
    session = refusal(written(tmp_path / "session.jsonl", codex))
    assert f":2: payload{problem}" in session


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"input": "Go on.", **BEFORE}, "previous_response_id: refers to a response whose items"),
        ({"request": {"input": "Hi."}, "response": LATER}, "response.body.previous_response_id: r"),
        ({"input": "Go on.", "conversation": "c"}, "conversation: refers to items that"),
        ({}, "input: is missing, so a judge would read an answer without"),
    ],
)
def test_the_end_is_not_taken_for_all(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    row = row if "request" in row else {"output": [CALL], **row}
    assert f":1: {problem}" in refusal(written(tmp_path / "rows.jsonl", [row]))


def check_read_or_refused(source: Source) -> None:
    try:
        for summary in source.summaries():
            source.read(*summary.key)
    except InputError as error:
        for problem in error.problems:
            assert problem.file == str(source.path)
            assert problem.line is not None or source.path.suffix == ".json"


@pytest.mark.parametrize("form", ["claude code", "codex", "trajectory"])
@given(data=st.data())
def test_any_change_is_read_or_refused_with_its_place(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("any") / ("t.json" if form == "trajectory" else "s.jsonl")
    if form == "trajectory":
        value: Any = data.draw(st.sampled_from([value for value, _ in SHAPES.values()]))
        check_read_or_refused(written(path, with_one_change(value, data)))
        return
    first, *lines = as_codex("s", MESSAGES) if form == "codex" else as_claude_code("s", MESSAGES)
    check_read_or_refused(written(path, [first, *with_one_change(lines, data)]))


def test_a_trajectory_is_known_by_what_it_holds_and_kept_as_it_is(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "any.name", ONE_CALL))
    assert source.summaries() == [RunSummary("one-call", 1)]
    run, raw = source.read("one-call", 1, with_raw=True)
    assert (run.input, run.sample_id, run.epoch) == ("Where is order 7?", "one-call", 1)
    assert raw == ONE_CALL
    assert run.metadata["agent"]["name"] == "helper"
    # What is beside the steps is metadata.
    source = open_source(write(tmp_path / "a.json", EVERY_FIELD))
    run, _ = source.read("t", 1)
    beside = ("session_id", "trajectory_id", "notes", "extra", "final_metrics")
    about = {"name": "a", "version": "1", "model_name": "m"}
    assert run.metadata == {"agent": about, **{key: EVERY_FIELD[key] for key in beside}}
    assert run.messages[1]["metadata"] == {"extra": {"n": 1}}
    assert [summary.cluster for summary in with_clusters(source, "/extra/task")] == ["a"]


@pytest.mark.parametrize("name", SHAPES)
def test_a_trajectory_gives_its_transcript(tmp_path: Path, name: str) -> None:
    value, lines = SHAPES[name]
    assert said(written(tmp_path / "run.json", value)) == lines


def test_a_run_is_named_by_its_trajectory_its_session_or_its_file(tmp_path: Path) -> None:
    both = trajectory(*HELLO, session_id="s", trajectory_id="t")
    files = {"one.json": trajectory(*HELLO), "two/trajectory.json": trajectory(*HELLO)}
    runs: list[RunSummary] = []
    for name, value in {**files, "b.json": both}.items():
        runs += open_source(write(tmp_path / name, value)).summaries()
    assert [run.run_id for run in runs] == ["one", "two", "t"]


ROBOT, MISSPELT = {"source": "robot", "message": ""}, {**HELLO[1], "mesage": "a"}
UNKNOWN = "a field is missing or has a wrong type"
# What is changed in a trajectory, and what is said of it.
BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"schema_version": "ATIF-v2.0"}, "must be from ATIF-v1.0 to ATIF-v1.8"),
    ({"continued_trajectory_ref": "more.json"}, "the rest is in another file, which is not read"),
    ({"steps": [*ONE_CALL["steps"][:2], 3]}, f'[2]: was read as "ATIF trajectory", but {UNKNOWN}'),
    ({"steps": trajectory(*HELLO, ROBOT)["steps"]}, 'as "ATIF trajectory", but a field is missing'),
    ({"steps": trajectory(MISSPELT)["steps"]}, 'steps[0]: has unknown fields: "mesage"'),
    ({"extra": json.loads("[" * 200 + "]" * 200)}, "is nested more than 100 levels deep"),
]


@pytest.mark.parametrize(("changed", "complaint"), BROKEN)
def test_broken_trajectories(tmp_path: Path, changed: dict[str, Any], complaint: str) -> None:
    path = write(tmp_path / "run.json", {**ONE_CALL, **changed})
    assert refusal(path).startswith(f"{path}:")
    assert complaint in refusal(path)


def test_a_half_written_file_is_named_and_one_of_a_gigabyte_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(as_text([FIRST, ANSWER])[:-40], encoding="utf-8")
    problem = refusal(path)
    assert f"{path}:2: is not valid JSON" in problem
    assert "the line is cut off" in problem
    path = write(tmp_path / "run.json", trajectory(*HELLO))
    with path.open("r+b") as file:
        file.truncate(1_000_000_000)
    assert "is larger than 256 MB (unpacked)" in refusal(path)


def job_of(tmp_path: Path) -> Path:
    job = tmp_path / "jobs" / "monday"
    # What Harbor writes beside the trials of a job.
    write(job / "config.json", {"job_name": job.name, "jobs_dir": "jobs"})
    write(job / "result.json", {"id": "0", "n_total_trials": 12, "stats": {"n_trials": 12}})
    write(job / "lock.json", {"trials": []})
    (job / "job.log").write_text("", encoding="utf-8")
    for number in range(3):
        value = trajectory(*HELLO, session_id=f"s{number}")
        rewards = {"rewards": {"reward": float(number % 2)}}
        write_trial(job, f"refund__{number}", value, verifier_result=rewards)
    late = {"exception_type": "AgentTimeoutError", "exception_message": "60 s"}
    write_trial(job, "ship__x", None, verifier_result=None, exception_info=late)
    return job


def test_a_job_is_its_trials_with_their_rewards(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    source = open_sources([job])
    rewards = {"refund__0": 0.0, "refund__1": 1.0, "refund__2": 0.0}
    runs = [RunSummary(name, 1, cluster="orders/refund") for name in rewards]
    assert source.summaries() == runs
    scores = {run.key: run.scores.get("reward") for run in source.fields()}
    assert scores == {(name, 1): reward for name, reward in rewards.items()}
    run, raw = source.read("refund__1", 1, with_raw=True)
    assert (run.metadata["task_name"], run.metadata["session_id"]) == ("refund", "s1")
    assert raw["session_id"] == "s1"
    # The other has left no trajectory.
    [notice] = source.notices()
    assert "left out 1 file that cannot be used: ship__x/agent/trajectory.json: cannot" in notice
    # Of the folder above, and of a trial, the runs go by the same names.
    assert open_sources([job.parent]).summaries() == source.summaries()
    one = open_sources([job / "refund__2"])
    assert one.summaries() == runs[2:]
    (fields,) = one.fields()
    assert (fields.key, fields.scores) == (("refund__2", 1), {"reward": 0.0})


def test_a_trial_that_has_no_result_yet_or_steps_that_are_named_gives_runs(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, "refund__0", trajectory(*HELLO))
    (trial / "result.json").unlink()
    source = open_sources([trial])
    assert [(run.key, run.scores) for run in source.fields()] == [(("refund__0", 1), {})]
    assert source.read("refund__0", 1)[0].messages
    assert not source.notices()
    trial = write_trial(tmp_path, "both__1", None, step_results=[{"step_name": "build"}])
    assert "agent/trajectory.json: cannot be read" in refusal(trial)
    file = write(trial / "steps/build/agent/trajectory.json", trajectory(*HELLO, session_id="s"))
    assert [run.run_id for run in open_sources([file]).summaries()] == ["s"]


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("result.json", '{"verifier_result": {"rewards": [1]}}', "a field is missing or has"),
        ("agent/trajectory.json", "", "agent/trajectory.json: is an empty"),
    ],
)
def test_a_broken_trial_is_refused(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    job = job_of(tmp_path)
    (job / "refund__1" / file).write_text(text)
    assert complaint in refusal(job / "refund__1")
    # The others of its job are runs.
    source = open_sources([job])
    assert source.summaries()
    [notice] = [each for each in source.notices() if "cannot be used" in each]
    assert f"refund__1/{file}" in notice


def test_other_files_are_not_taken_for_trajectories(tmp_path: Path) -> None:
    log = '{"version": 2, "eval": {}, "input": "{\\"schema_version\\": \\"ATIF-v1.7\\"}"}'
    files = [tmp_path / "missing.json", tmp_path]
    for number, text in enumerate((log, '{"a": "\\"steps\\": [{\\"step_id\\": 1"}', "")):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(text, encoding="utf-8")
    assert not any(is_trajectory(Head(path)) for path in files)

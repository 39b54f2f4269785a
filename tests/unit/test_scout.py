"""Databases of Inspect Scout: the same runs, and cases, as the same conversations in JSON lines
(rules R3, R4).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.config.probes import expand
from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.model import AgentRun, RunSummary
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.engine.generate import build_pipeline, generate_case
from pytest_jrh.sources import open_sources
from pytest_jrh.sources.scout import ScoutDatabase
from pytest_jrh.sources.source import Source, with_clusters
from tests.support.configs import AGENT, Folder, changed
from tests.support.scout import needs_scout
from tests.support.scripted import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"n": 7}'}}
TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Where is order 7?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "shipped"},
    {"role": "assistant", "content": "It was shipped."},
]
SESSION: list[dict[str, Any]] = [
    {"type": "user", "message": {"role": "user", "content": "Where is order 7?"}},
    {
        "type": "assistant",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": [{"type": "tool_use", "id": "c1", "name": "look_up", "input": {"n": 7}}],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "shipped"}],
        },
    },
    {
        "type": "assistant",
        "message": {
            "id": "msg_2",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": [{"type": "text", "text": "It was shipped."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
]


def store(folder: Path, transcripts: Iterable[Any]) -> Path:
    from inspect_scout import transcripts_db

    async def insert() -> None:
        async with transcripts_db(str(folder)) as database:
            await database.insert(list(transcripts))

    asyncio.run(insert())
    return folder


def written(folder: Path, ids: Sequence[str]) -> Path:
    """A database with these transcripts, two of a task, written by Scout itself."""
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageTool,
        ChatMessageUser,
    )
    from inspect_ai.tool import ToolCall
    from inspect_scout import Transcript

    call = ToolCall(id="c1", function="look_up", arguments={"n": 7})
    messages = [
        ChatMessageSystem(id="m1", content="Be brief."),
        ChatMessageUser(id="m2", content="Where is order 7?"),
        ChatMessageAssistant(id="m3", content="", tool_calls=[call]),
        ChatMessageTool(id="m4", content="shipped", tool_call_id="c1", function="look_up"),
        ChatMessageAssistant(id="m5", content="It was shipped."),
    ]
    return store(
        folder,
        [
            Transcript(
                transcript_id=name,
                task_set="orders",
                task_id=f"q{number // 2}",
                metadata={"n": number},
                messages=messages,
            )
            for number, name in enumerate(ids)
        ],
    )


def opened(*paths: Path) -> Source:
    return open_sources(paths)


def whole(source: Source) -> list[Any]:
    """Runs as the cases are made of them."""
    runs = []
    for summary in source.summaries():
        run, _ = source.read(summary.run_id, summary.epoch)
        runs.append((summary, run.messages, run.input, dict(run.metadata)))
    return runs


def cases_of(root: Path, runs: Path, turn: int = 4) -> list[Any]:
    """The specs of a suite on these runs, and each case that a scripted model makes, with all that
    it was asked.
    """
    folder = Folder(root)
    suite = folder.load(changed(f"{AGENT}.input_log_path", str(runs)))
    test = suite.tests[0]
    step = {"message_index": turn, "goal": "The goal.", "rationale": "Why."}
    plan = {"thesis": "The thesis.", "steps": [step]}

    async def made(source: Source) -> list[Any]:
        cases = []
        for spec in expand(suite, source.summaries()):
            if spec.test != test.name:
                continue
            run, _ = source.read(spec.run_id, spec.epoch)
            rubric = next(each for each in suite.rubrics if each.id == spec.rubric_id)
            model = ScriptedModel(planner=plan)
            pipeline = build_pipeline(suite, test)
            case = await generate_case(pipeline, model, spec, run, rubric, Goal("fail"))
            asked = [(each.stage.stage, each.messages) for each in model.requests]
            seen = (render_transcript(case.messages), case.run.input, case.run.metadata)
            cases.append((spec, seen, case.outcome.edits, case.expected, asked))
        return cases

    with open_sources(suite.source.paths) as source:
        return asyncio.run(made(source))


def write_line(file: Path, summary: RunSummary, run: AgentRun, messages: Any) -> None:
    """A conversation with the messages, and with what the importer made up beside them: ids too,
    which a planner is shown.
    """
    ids = [message["id"] for message in run.messages]
    messages = [{**each, "id": id_} for each, id_ in zip(messages, ids, strict=True)]
    known = {"id": run.run_id, "cluster": summary.cluster, "metadata": dict(run.metadata)}
    given = {key: value for key, value in known.items() if value is not None}
    file.write_text(json.dumps({**given, "messages": messages}), encoding="utf-8")


@needs_scout
def test_a_database_holds_the_same_runs_as_json_lines(tmp_path: Path) -> None:
    database = written(tmp_path / "database", ["b", "a", "c"])
    lines = tmp_path / "runs.jsonl"
    rows = [("a", "q0", 1), ("b", "q0", 0), ("c", "q1", 2)]
    turns = [{**turn, "id": f"m{number}"} for number, turn in enumerate(TURNS, 1)]
    lines.write_text(
        "".join(
            json.dumps(
                {
                    "id": name,
                    "messages": turns,
                    "cluster": f"orders/{task}",
                    "metadata": {"n": number},
                }
            )
            + "\n"
            for name, task, number in rows
        )
    )
    with opened(database) as source:
        assert isinstance(source, ScoutDatabase)
        assert whole(source) == whole(opened(lines))
        assert source.read("a", 1, with_raw=True)[1].transcript_id == "a"
        assert [run.cluster for run in with_clusters(source, "n")] == ["1", "0", "2"]
        first = source.read("a", 1)[0]
        source.close()
        assert source.read("a", 1)[0] == first
    cases = cases_of(tmp_path / "one", database)
    assert cases == cases_of(tmp_path / "other", lines)
    assert len(cases) == 3 * 2


@needs_scout
def test_a_session_of_claude_code_comes_in_through_scout(tmp_path: Path) -> None:
    from inspect_scout.sources import claude_code

    folder = tmp_path / "project"
    folder.mkdir()
    common = {"sessionId": "5f0c", "cwd": "/", "version": "2.0.0", "isSidechain": False}
    with (folder / "5f0c.jsonl").open("w") as file:
        for number, each in enumerate(SESSION):
            more = {
                "uuid": f"u{number}",
                "parentUuid": f"u{number - 1}" if number else None,
                "timestamp": f"2026-01-01T00:00:0{number}.000Z",
            }
            file.write(json.dumps({**each, **common, **more}) + "\n")

    async def imported() -> list[Any]:
        return [transcript async for transcript in claude_code(path=folder)]

    database = store(tmp_path / "database", asyncio.run(imported()))
    lines = tmp_path / "runs.jsonl"
    with opened(database) as source:
        (summary,) = source.summaries()
        run, _ = source.read(summary.run_id, summary.epoch)
    messages = [each["message"] for each in SESSION]
    write_line(lines, summary, run, messages)
    (own,) = (opened(lines).read(each.run_id, 1)[0] for each in opened(lines).summaries())
    assert render_transcript(run.messages) == render_transcript(own.messages)
    assert run.input == own.input
    cases = cases_of(tmp_path / "one", database, turn=3)
    assert cases == cases_of(tmp_path / "other", lines, turn=3)
    assert len(cases) == 2


@needs_scout
def test_a_trajectory_in_atif_comes_in_through_scout(tmp_path: Path) -> None:
    pytest.importorskip("harbor", reason="Scout reads ATIF with harbor, which needs Python 3.12")
    from inspect_scout.sources import atif

    call = {"tool_call_id": "c1", "function_name": "look_up", "arguments": {"n": 7}}
    result = {"source_call_id": "c1", "content": "shipped"}
    agent = {"source": "agent", "model_name": "m"}
    steps = [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": "Where is order 7?"},
        {
            "step_id": 3,
            "message": "",
            "tool_calls": [call],
            "observation": {"results": [result]},
            **agent,
        },
        {"step_id": 4, "message": "It was shipped.", **agent},
    ]
    trajectory = {
        "schema_version": "ATIF-v1.4",
        "session_id": "s1",
        "agent": {"name": "a", "version": "1"},
        "steps": steps,
    }
    (tmp_path / "trajectory.json").write_text(json.dumps(trajectory))

    async def imported() -> list[Any]:
        return [transcript async for transcript in atif(path=tmp_path / "trajectory.json")]

    database = store(tmp_path / "database", asyncio.run(imported()))
    lines = tmp_path / "runs.jsonl"
    with opened(database) as source:
        (summary,) = source.summaries()
        run, _ = source.read(summary.run_id, summary.epoch)
    write_line(lines, summary, run, TURNS)
    (own,) = (opened(lines).read(each.run_id, 1)[0] for each in opened(lines).summaries())
    assert render_transcript(run.messages) == render_transcript(own.messages)
    cases = cases_of(tmp_path / "one", database)
    assert cases == cases_of(tmp_path / "other", lines)
    assert len(cases) == 2


@needs_scout
def test_keys_in_a_dotenv_file_are_not_taken_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = written(tmp_path / "database", ["a"])
    monkeypatch.setattr("inspect_scout._scan._initialized_environment", False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("SOME_API_KEY=a-key-that-nobody-gave-us\n")
    with opened(database) as source:
        assert source.summaries()
    assert "SOME_API_KEY" not in os.environ


@needs_scout
def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "transcripts_x.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(InputError, match=r"cannot be read by inspect_scout: ."):
        opened(tmp_path).summaries()


@needs_scout
def test_a_transcript_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with opened(written(tmp_path / "database", ["a"])) as source:
        with pytest.raises(Unscored, match="the database has no such transcript") as caught:
            source.read("b", 1)
        assert caught.value.outcome == "input_error"


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_scout", None)
    (tmp_path / "transcripts_x.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError) as caught:
        opened(tmp_path).summaries()
    assert "is a Scout database, which is read with inspect_scout" in str(caught.value)
    assert "pip install 'pytest-jrh[scout]'" in str(caught.value)


def test_the_config_names_a_database_by_its_scheme_or_by_its_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "x.parquet").write_bytes(b"PAR1")
    for given in ("scout://db", "db"):
        suite = folder.load(changed(f"{AGENT}.input_log_path", given))
        assert suite.source.paths == (tmp_path / "db",)

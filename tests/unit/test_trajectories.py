"""ATIF trajectories and Harbor's folders: what is read, what is refused and where (rule R6)."""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.model import RunSummary, Skip
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.sources import atif, open_source, open_sources, trajectories
from pytest_jrh.sources.source import Source, with_clusters
from pytest_jrh.sources.trajectories import Trajectories
from tests.support.trajectories import (
    EXAMPLES,
    HELLO,
    ORDER,
    SCHEMA,
    SUBAGENT,
    TOOL,
    Example,
    Json,
    agent,
    trajectory,
    user,
    write,
    write_job,
    write_lines,
    write_trial,
)

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NAMED = {one.run_id: one.trajectory for one in EXAMPLES}


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        open_sources([path]).summaries()
    return str(caught.value)


def texts(source: Source, run_id: str) -> list[Any]:
    return [message["content"] for message in source.read(run_id, 1)[0].messages]


def fields_of(value: Any, shape: str = "Trajectory") -> Iterator[tuple[str, str]]:
    """The fields that a trajectory has, each with the name of its object."""
    for name, part in value.items():
        yield shape, name
        inner = json.dumps(SCHEMA["$defs"][shape]["properties"][name])
        for other in SCHEMA["$defs"]:
            if f'"#/$defs/{other}"' in inner and other != "AudioSource":
                for item in part if isinstance(part, list) else [part]:
                    if isinstance(item, dict):
                        yield from fields_of(item, other)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.run_id)
def test_a_trajectory_is_the_same_run_as_its_messages_in_json_lines(
    tmp_path: Path, example: Example
) -> None:
    VALIDATOR.validate(example.trajectory)
    source = open_source(write(tmp_path / "any.name", example.trajectory))
    assert isinstance(source, Trajectories)
    assert source.summaries() == (RunSummary(example.run_id, 1),)
    lines = open_source(write_lines(tmp_path / "runs.jsonl", [example]))
    run, raw = source.read(example.run_id, 1, with_raw=True)
    other = lines.read(example.run_id, 1)[0]
    for show_reasoning in (False, True):
        rendered = [
            render_transcript(one.messages, show_reasoning=show_reasoning) for one in (run, other)
        ]
        assert rendered[0] == rendered[1]
    assert (run.input, run.sample_id, run.epoch) == (other.input, other.sample_id, other.epoch)
    assert raw == example.trajectory
    assert run.metadata["agent"]["name"] == "helper"


def test_the_examples_have_every_field_of_both_versions() -> None:
    all_fields = {
        (shape, name)
        for shape, definition in SCHEMA["$defs"].items()
        for name in definition["properties"]
        if shape != "AudioSource"
    }
    written = {field for one in EXAMPLES for field in fields_of(one.trajectory)}
    assert written == all_fields
    assert {one.trajectory["schema_version"] for one in EXAMPLES} == {"ATIF-v1.6", "ATIF-v1.7"}
    assert len(EXAMPLES) == 20


def test_what_is_beside_the_steps_is_metadata_and_tools(tmp_path: Path) -> None:
    value = trajectory(
        user("Hi.", extra={"n": 1}),
        session_id="s",
        trajectory_id="t",
        notes="By hand.",
        extra={"task": "a"},
        final_metrics={"total_steps": 1},
        agent={"name": "a", "version": "1", "model_name": "m", "tool_definitions": [TOOL]},
    )
    source = open_source(write(tmp_path / "a.json", value))
    run, _ = source.read("t", 1)
    assert run.metadata == {
        "agent": {"name": "a", "version": "1", "model_name": "m"},
        "session_id": "s",
        "trajectory_id": "t",
        "notes": "By hand.",
        "extra": {"task": "a"},
        "final_metrics": {"total_steps": 1},
    }
    assert [tool["name"] for tool in run.tools] == ["find_order"]
    assert run.messages[0]["metadata"] == {"extra": {"n": 1}}
    assert [summary.cluster for summary in with_clusters(source, "/extra/task")] == ["a"]


def test_metadata_that_is_not_long_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, notes in (("a", "Short."), ("b", "x" * 1_000)):
        value = trajectory(*HELLO, trajectory_id=name, notes=notes)
        write(tmp_path / f"{name}.json", value)
    monkeypatch.setattr(trajectories, "_MOST_CHARACTERS_KEPT", 500)
    source = open_sources([tmp_path])
    source.summaries()
    read: list[str] = []

    def reading(file: Path, shape: str, most_bytes: int) -> Json:
        read.append(file.name)
        return atif.read_fitting(file, shape, most_bytes)

    monkeypatch.setattr(trajectories, "read_fitting", reading)
    assert [fields["notes"] for fields in source.fields()] == ["Short.", "x" * 1_000]
    assert read == ["b.json"]
    runs = [source.read(run.run_id, 1)[0] for run in source.summaries()]
    assert [run.metadata for run in runs] == list(source.fields())


def test_a_run_is_named_by_its_trajectory_its_session_or_its_file(tmp_path: Path) -> None:
    for name in ("one.json", "two/trajectory.json"):
        source = open_source(write(tmp_path / name, trajectory(*HELLO)))
        assert [run.run_id for run in source.summaries()] == [
            name.partition("/")[0].removesuffix(".json")
        ]
    both = trajectory(*HELLO, session_id="s", trajectory_id="t")
    assert open_source(write(tmp_path / "b.json", both)).summaries()[0].run_id == "t"


@pytest.mark.parametrize("version", [f"ATIF-v1.{minor}" for minor in range(9)])
def test_all_versions_up_to_18_are_read(tmp_path: Path, version: str) -> None:
    sound = {
        "type": "audio",
        "source": {"media_type": "audio/mpeg", "path": "a.mp3", "duration_sec": 1.5},
    }
    value = trajectory(user([sound]), agent("Heard."), version=version, session_id="s")
    VALIDATOR.validate(value)
    run, _ = open_source(write(tmp_path / "a.json", value)).read("s", 1)
    assert "[audio: a.mp3]" in render_transcript(run.messages)


Change = Callable[[Json], object]


def step_of(value: Json, number: int) -> Json:
    step: Json = value["steps"][number - 1]
    return step


def result_of(value: Json) -> Json:
    result: Json = step_of(value, 2)["observation"]["results"][0]
    return result


BROKEN: dict[str, tuple[str, Change, str, str]] = {
    "unknown version": (
        "one-call",
        lambda value: value.update(schema_version="ATIF-v2.0"),
        'schema_version: got "ATIF-v2.0"; must be one of ATIF-v1.0, ATIF-v1.1',
        "is the nearest",
    ),
    "version is a number": (
        "one-call",
        lambda value: value.update(schema_version=1.7),
        "schema_version: got 1.7; must be one of ATIF-v1.0",
        "",
    ),
    "no version": (
        "one-call",
        lambda value: value.pop("schema_version"),
        "schema_version: is missing; must be one of ATIF-v1.0",
        "",
    ),
    "version misspelt": (
        "one-call",
        lambda value: value.update(schema_versoin=value.pop("schema_version")),
        "schema_versoin: unknown field; the fields here are schema_version, session_id",
        "schema_version is the nearest field",
    ),
    "no agent": (
        "one-call",
        lambda value: value.pop("agent"),
        "agent: is missing; must be an object",
        "",
    ),
    "agent is text": (
        "one-call",
        lambda value: value.update(agent="helper"),
        'agent: got "helper"; must be an object',
        "",
    ),
    "agent without a version": (
        "one-call",
        lambda value: value.update(agent={"name": "helper"}),
        "agent.version: is missing; must be text",
        "",
    ),
    "tool definitions are no objects": (
        "every-agent-field",
        lambda value: value["agent"].update(tool_definitions=["find_order"]),
        'agent.tool_definitions[0]: got "find_order"; must be an object',
        "",
    ),
    "no steps": (
        "one-call",
        lambda value: value.pop("steps"),
        "steps: is missing; must be a list of steps",
        "",
    ),
    "empty steps": (
        "one-call",
        lambda value: value["steps"].clear(),
        "steps: is an empty list; must have one step at least",
        "",
    ),
    "steps are an object": (
        "one-call",
        lambda value: value.update(steps={"1": {}}),
        "steps: got a mapping of keys; must be a list of steps",
        "",
    ),
    "a step is text": (
        "one-call",
        lambda value: value["steps"].append("Done."),
        'steps[3]: got "Done."; must be an object',
        "",
    ),
    "steps from 0": (
        "one-call",
        lambda value: [step.update(step_id=n) for n, step in enumerate(value["steps"])],
        "steps[0].step_id: got 0; must be 1: steps are numbered from 1",
        "",
    ),
    "a step is missing": (
        "one-call",
        lambda value: value["steps"].pop(1),
        "steps[1].step_id: got 3; must be 2: steps are numbered from 1",
        "",
    ),
    "step_id is true": (
        "one-call",
        lambda value: step_of(value, 1).update(step_id=True),
        "steps[0].step_id: got true; must be an integer",
        "",
    ),
    "unknown source": (
        "one-call",
        lambda value: step_of(value, 1).update(source="users"),
        'steps[0].source: got "users"; must be one of system, user, agent',
        "user is the nearest",
    ),
    "no message": (
        "one-call",
        lambda value: step_of(value, 1).pop("message"),
        "steps[0].message: is missing; must be text or a list of parts",
        "",
    ),
    "message is null": (
        "one-call",
        lambda value: step_of(value, 1).update(message=None),
        "steps[0].message: is missing; must be text or a list of parts",
        "",
    ),
    "message is an object": (
        "one-call",
        lambda value: step_of(value, 1).update(message={"text": "Hi."}),
        "steps[0].message: got a mapping of keys; must be text or a list of parts",
        "",
    ),
    "no such time": (
        "every-step-field",
        lambda value: step_of(value, 1).update(timestamp="yesterday"),
        'steps[0].timestamp: got "yesterday"; must be a time of ISO 8601',
        "",
    ),
    "a user with calls": (
        "one-call",
        lambda value: step_of(value, 1).update(tool_calls=[ORDER]),
        "steps[0].tool_calls: stands in a step with the source user",
        "",
    ),
    "a user who reasons": (
        "one-call",
        lambda value: step_of(value, 1).update(reasoning_content="Hm."),
        "steps[0].reasoning_content: stands in a step with the source user",
        "",
    ),
    "metrics of no call": (
        "no-model-asked",
        lambda value: step_of(value, 2).update(metrics={}),
        "steps[1].metrics: stands in a step with llm_call_count 0",
        "",
    ),
    "calls below 0": (
        "no-model-asked",
        lambda value: step_of(value, 2).update(llm_call_count=-1),
        "steps[1].llm_call_count: got -1; must be an integer >= 0",
        "",
    ),
    "a call without a name": (
        "one-call",
        lambda value: step_of(value, 2)["tool_calls"][0].pop("function_name"),
        "steps[1].tool_calls[0].function_name: is missing; must be text",
        "",
    ),
    "a call of OpenAI": (
        "one-call",
        lambda value: step_of(value, 2).update(
            tool_calls=[{"tool_call_id": "c1", "function": "f", "arguments": {}}]
        ),
        "steps[1].tool_calls[0].function: unknown field; the fields here are tool_call_id, "
        "function_name, arguments, extra",
        "function_name is the nearest field",
    ),
    "arguments are text": (
        "one-call",
        lambda value: step_of(value, 2)["tool_calls"][0].update(arguments="{}"),
        'steps[1].tool_calls[0].arguments: got "{}"; must be an object',
        "",
    ),
    "a result of another call": (
        "one-call",
        lambda value: result_of(value).update(source_call_id="c_1"),
        'steps[1].observation.results[0].source_call_id: got "c_1"; must be the tool_call_id of a '
        "call of its step (c1)",
        "c1 is the nearest id",
    ),
    "a result of a list": (
        "one-call",
        lambda value: step_of(value, 2).update(observation=[{"content": "shipped"}]),
        "steps[1].observation: got a list; must be an object",
        "",
    ),
    "results are missing": (
        "one-call",
        lambda value: step_of(value, 2).update(observation={"result": []}),
        "steps[1].observation.result: unknown field; the fields here are results",
        "results is the nearest field",
    ),
    "content is a number": (
        "one-call",
        lambda value: result_of(value).update(content=7),
        "steps[1].observation.results[0].content: got 7; must be text or a list of parts",
        "",
    ),
    "a part of no known type": (
        "images",
        lambda value: step_of(value, 1)["message"][0].update(type="texts"),
        'steps[0].message[0].type: got "texts"; must be one of text, image, audio',
        "text is the nearest",
    ),
    "an image without its source": (
        "images",
        lambda value: step_of(value, 1)["message"][1].pop("source"),
        "steps[0].message[1].source: is missing; must be an object",
        "",
    ),
    "an image with text": (
        "images",
        lambda value: step_of(value, 1)["message"][1].update(text="a cat"),
        "steps[0].message[1].text: unknown field; the fields here are type, source",
        "",
    ),
    "an image of another type": (
        "images",
        lambda value: step_of(value, 1)["message"][1]["source"].update(media_type="image/pgn"),
        'steps[0].message[1].source.media_type: got "image/pgn"; must be one of image/jpeg',
        "image/png is the nearest",
    ),
    "token ids are text": (
        "every-step-field",
        lambda value: step_of(value, 2)["metrics"].update(prompt_token_ids=[1, "2"]),
        'steps[1].metrics.prompt_token_ids[1]: got "2"; must be an integer',
        "",
    ),
    "total steps below 0": (
        "every-root-field",
        lambda value: value["final_metrics"].update(total_steps=-2),
        "final_metrics.total_steps: got -2; must be an integer >= 0",
        "",
    ),
    "extra is a list": (
        "every-root-field",
        lambda value: value.update(extra=[]),
        "extra: got a list; must be an object",
        "",
    ),
    "a subagent without an id": (
        "subagent-inside",
        lambda value: value["subagent_trajectories"][0].pop("trajectory_id"),
        "subagent_trajectories[0].trajectory_id: got nothing; must be text that no other",
        "",
    ),
    "two subagents of one id": (
        "subagent-inside",
        lambda value: value["subagent_trajectories"].append(SUBAGENT),
        'subagent_trajectories[1].trajectory_id: got "sub-1"; must be text that no other',
        "",
    ),
    "a subagent that is broken": (
        "subagent-inside",
        lambda value: value["subagent_trajectories"][0]["steps"][0].update(source="tool"),
        'subagent_trajectories[0].steps[0].source: got "tool"; must be one of system, user, agent',
        "",
    ),
    "a reference to a session in v1.7": (
        "subagent-by-session",
        lambda value: value.update(schema_version="ATIF-v1.7"),
        "steps[1].observation.results[0].subagent_trajectory_ref[0]: names no subagent",
        "a session_id alone does up to ATIF-v1.6",
    ),
    "a reference that is text": (
        "subagent-inside",
        lambda value: result_of(value).update(subagent_trajectory_ref="sub-1"),
        "steps[1].observation.results[0].subagent_trajectory_ref: got "
        '"sub-1"; must be a list of references',
        "",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_trajectory_is_refused_with_its_place(tmp_path: Path, how: str) -> None:
    name, change, complaint, hint = BROKEN[how]
    value = copy.deepcopy(NAMED[name])
    change(value)
    path = write(tmp_path / "run.json", value)
    said = refusal(path)
    assert said.startswith(f"{path}:")
    assert complaint in said
    assert hint in said
    line = int(said.removeprefix(f"{path}:").partition(":")[0])
    last_key = complaint.partition(": ")[0].rpartition(".")[2].partition("[")[0]
    if "missing" not in complaint and "nothing" not in complaint:
        # The line of the field, or of the item in its list.
        before = path.read_text("utf-8").splitlines()[max(line - 3, 0) : line]
        assert f'"{last_key}"' in "".join(before) or "]: " in complaint


def test_all_mistakes_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    value = trajectory(*[user(index) for index in range(30)])
    assert refusal(write(tmp_path / "run.json", value)).count("must be text or a list") == 10


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b'{"schema_version": "ATIF-v1.7", "steps": [', "is not valid JSON: expecting value"),
        (b'{"schema_version": "ATIF-v1.7", "a": 1, "a": 2}', "duplicate key 'a'"),
        (b'{"schema_version": "ATIF-v1.7", "n": NaN}', "NaN is not JSON"),
        (b'{"schema_version": "ATIF-v1.7", "n": 1e999}', "the number 1e999 is too large"),
        (b'{"schema_version": "ATIF-v1.7", "n": "\xff"}', "is not UTF-8"),
        (
            b'{"schema_version": "ATIF-v1.7", "extra": ' + b"[" * 200 + b"]" * 200 + b"}",
            "is nested more than 100 levels deep",
        ),
        (
            b'{"schema_version": "ATIF-v1.7", "extra": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "is nested more than 100 levels deep",
        ),
        (b'{"schema_version": "ATIF-v1.7"} {}', "is not valid JSON: extra data"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path: Path, data: bytes, complaint: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(data)
    assert f"{path}: " in refusal(path)
    assert complaint in refusal(path)


def test_a_file_that_claims_a_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", trajectory(*HELLO))
    with path.open("r+b") as file:
        file.truncate(1_000_000_000)
    with pytest.raises(InputError, match=r"is more than 1 MB when unpacked \(max_sample_mb"):
        open_source(path, max_sample_mb=1).summaries()


def test_lone_surrogates_and_nulls_are_replaced_as_in_other_sources(tmp_path: Path) -> None:
    value = trajectory(user("a\ud800b\x00"), trajectory_id="t\x00")
    source = open_source(write(tmp_path / "run.json", value))
    assert [run.run_id for run in source.summaries()] == ["t"]
    run, _ = source.read("t", 1)
    assert run.messages[0]["content"] == "a\ufffdb"
    assert "3 characters" in " ".join(run.notes)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-2, 2)
    | st.text("agent1", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["step_id", "type", "text", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of a JSON value, those of its parts with it."""
    if path:
        yield path
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield from places_in(value[key], (*path, key))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_is_read_or_refused_and_never_passes_the_schema_unseen(
    tmp_path: Path, data: st.DataObject
) -> None:
    value = copy.deepcopy(data.draw(st.sampled_from(EXAMPLES)).trajectory)
    for _ in range(data.draw(st.integers(1, 2))):
        *above, key = data.draw(st.sampled_from(list(places_in(value)) or [("schema_version",)]))
        holder: Any = value
        for part in above:
            holder = holder[part]
        if data.draw(st.booleans()) or isinstance(holder, list):
            holder[key] = data.draw(VALUES)
        elif data.draw(st.booleans()):
            del holder[key]
        else:
            holder[data.draw(st.text(max_size=4))] = data.draw(VALUES)
    path = write(tmp_path / "run.json", {"schema_version": None, **value})
    source = Trajectories(path)
    complaint = _complaint(source)
    if complaint:
        assert str(path) in complaint
        return
    VALIDATOR.validate(_without_nulls(value))
    (summary,) = source.summaries()
    # What fits makes messages, or says in which it does not.
    with contextlib.suppress(Unscored):
        assert source.read(summary.run_id, 1)[0].messages


def _complaint(source: Source) -> str:
    try:
        source.summaries()
    except InputError as error:
        return str(error)
    return ""


def _without_nulls(value: Any) -> Any:
    """Unknown fields that are null are taken for none."""
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def test_a_folder_of_trajectories_is_read_file_by_file(tmp_path: Path) -> None:
    for name in ("one-call", "images", "parallel-calls"):
        write(tmp_path / f"{name}.json", NAMED[name])
    write(tmp_path / "notes.json", {"steps": 3})
    source = open_sources([tmp_path])
    assert [run.run_id for run in source.summaries()] == ["images", "one-call", "parallel-calls"]
    assert texts(source, "one-call")[1:3] == ["I look.", "shipped"]
    assert "left out 1 file that does not look like transcripts: notes.json" in source.notices()[0]


def test_files_that_a_trajectory_refers_to_are_no_runs_of_their_own(tmp_path: Path) -> None:
    first = trajectory(*HELLO, trajectory_id="a", continued_trajectory_ref="a.cont-1.json")
    copied = [{**step, "is_copied_context": True} for step in HELLO]
    handed = user("Go on.", is_copied_context=True)
    more = trajectory(*copied, handed, agent("On Monday."), trajectory_id="a-cont-1")
    write(tmp_path / "a.json", first)
    write(tmp_path / "a.cont-1.json", {**more, "continued_trajectory_ref": "a.cont-2.json"})
    write(tmp_path / "a.cont-2.json", trajectory(user("Thanks."), session_id="a-cont-2"))
    write(tmp_path / "sub.json", SUBAGENT)
    write(tmp_path / "b.json", NAMED["subagent-in-a-file"])
    source = open_sources([tmp_path])
    assert [run.run_id for run in source.summaries()] == ["a", "subagent-in-a-file"]
    # What was copied into a continuation stands where it was said; what was not said before, stays.
    assert texts(source, "a") == [
        "Where is order 7?",
        "It was shipped.",
        "Go on.",
        "On Monday.",
        "Thanks.",
    ]
    source.read("subagent-in-a-file", 1)
    assert source.notices() == (
        f"{tmp_path.name}: left out 3 files that other trajectories refer to",
        "some runs have subagents, whose own steps are not in the transcript",
    )


def test_files_that_continue_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        value = trajectory(*HELLO, continued_trajectory_ref=f"{other}.json")
        write(tmp_path / f"{name}.json", value)
    assert refusal(tmp_path).count("which this trajectory is a continuation of") == 2


def test_a_continuation_elsewhere_is_said_and_one_that_is_missing_is_refused(
    tmp_path: Path,
) -> None:
    source = open_source(write(tmp_path / "a.json", NAMED["continued"]))
    source.read("continued", 1)
    assert "a continuation that is no file here" in source.notices()[0]
    value = trajectory(*HELLO, continued_trajectory_ref="b.json")
    path = write(tmp_path / "c.json", value)
    assert (
        f'{path}: continued_trajectory_ref: got "b.json", which is no file in {tmp_path}'
        in refusal(path)
    )


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("../secret.json", "leads out of the folder"),
        ("{above}/secret.json", "leads out of the folder"),
        ("link.json", "leads out of the folder"),
        ("a.json", "which this trajectory is a continuation of"),
        ("b/../a.json", "which this trajectory is a continuation of"),
        ("a\x00.json", "is no file in"),
        ("a" * 5000, "is no file in"),
        ("", "is no file in"),
        (".", "is no file in"),
        ("loop.json", "is no file in"),
        ("pipe.json", "is no file in"),
        ("/dev/zero", "is no file in"),
    ],
)
def test_links_do_not_lead_out_of_the_folder(tmp_path: Path, link: str, complaint: str) -> None:
    folder = tmp_path / "runs"
    write(tmp_path / "secret.json", trajectory(*HELLO))
    (folder / "b").mkdir(parents=True)
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "loop.json").symlink_to("loop.json")
    os.mkfifo(folder / "pipe.json")
    named = link.replace("{above}", str(tmp_path))
    path = write(folder / "a.json", trajectory(*HELLO, continued_trajectory_ref=named))
    with pytest.raises(InputError) as caught:
        open_source(path).summaries()
    assert f"{path}: continued_trajectory_ref: got " in str(caught.value)
    assert complaint in str(caught.value)


def job_of(tmp_path: Path, **result: Any) -> Path:
    job = write_job(tmp_path / "jobs" / "monday")
    for number in range(3):
        value = trajectory(*HELLO, session_id=f"s{number}")
        rewards = {"rewards": {"reward": float(number % 2), "speed": 0.5}}
        write_trial(job, f"refund__{number}", value, verifier_result=rewards, **result)
    write_trial(
        job,
        "ship__x",
        None,
        verifier_result=None,
        exception_info={"exception_type": "AgentTimeoutError", "exception_message": "60 s"},
    )
    return job


def test_a_job_is_its_trials_with_their_rewards(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    source = open_sources([job])
    cause = "the trial has no agent/trajectory.json: AgentTimeoutError: 60 s"
    assert source.summaries() == (
        *[RunSummary(f"refund__{number}", 1, cluster="orders/refund") for number in range(3)],
        RunSummary("ship__x", 1, Skip("no_messages", cause), "orders/ship"),
    )
    assert dict(source.scores()) == {
        ("refund__0", 1): {"reward": 0.0, "speed": 0.5},
        ("refund__1", 1): {"reward": 1.0, "speed": 0.5},
        ("refund__2", 1): {"reward": 0.0, "speed": 0.5},
        ("ship__x", 1): {},
    }
    run, raw = source.read("refund__1", 1, with_raw=True)
    assert (run.metadata["task_name"], run.metadata["session_id"]) == ("refund", "s1")
    assert raw["session_id"] == "s1"
    assert source.read("ship__x", 1)[0].messages == ()
    assert source.read("ship__x", 1)[0].metadata["exception_type"] == "AgentTimeoutError"
    assert not source.notices()
    # Of the folder above, of a trial, and of its file, the runs go by the same names.
    assert open_sources([job.parent]).summaries() == source.summaries()
    for path in (job / "refund__2", job / "refund__2" / "agent" / "trajectory.json"):
        one = open_sources([path])
        assert one.summaries() == (RunSummary("refund__2", 1, cluster="orders/refund"),)
        assert dict(one.scores()) == {("refund__2", 1): {"reward": 0.0, "speed": 0.5}}


def test_the_reward_of_an_older_result_is_read_too(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, "a__1", trajectory(*HELLO), verifier_result={"reward": 0.0})
    assert dict(open_sources([trial]).scores()) == {("a__1", 1): {"reward": 0.0}}


def test_a_trial_that_has_no_result_yet_is_a_run_without_scores(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    for name in ("refund__0", "ship__x"):
        (job / name / "result.json").unlink()
    source = open_sources([job])
    assert [run.run_id for run in source.summaries()][::3] == ["refund__0", "ship__x"]
    assert dict(source.scores())["refund__0", 1] == {}
    assert source.summaries()[3].skip == Skip(
        "no_messages", "the trial has no agent/trajectory.json"
    )
    assert not source.notices()


def test_runs_of_two_jobs_with_one_name_go_by_the_time_of_their_trials(tmp_path: Path) -> None:
    later = job_of(tmp_path / "a", started_at="2026-05-09T10:00:00Z")
    earlier = job_of(tmp_path / "b", started_at="2026-05-02T10:00:00Z")
    source = open_sources([later, earlier])
    names = [run.run_id for run in source.summaries()]
    assert names[4:7] == [f"refund__{number}" for number in range(3)]
    assert names[0].startswith("refund__0@")


def test_each_step_of_a_trial_of_several_is_a_run(tmp_path: Path) -> None:
    steps = [
        {"step_name": name, "verifier_result": {"rewards": {"reward": reward}}}
        for name, reward in (("build", 1), ("ship", 0))
    ]
    trial = write_trial(tmp_path, "both__1", None, step_results=steps, verifier_result=None)
    for step in steps:
        file = trial / "steps" / str(step["step_name"]) / "agent" / "trajectory.json"
        write(file, trajectory(user(step["step_name"])))
    source = open_sources([trial])
    assert [run.run_id for run in source.summaries()] == ["both__1/build", "both__1/ship"]
    assert [scores["reward"] for _, scores in source.scores()] == [1, 0]
    assert texts(source, "both__1/ship") == ["ship"]
    one = open_sources([trial / "steps" / "ship" / "agent" / "trajectory.json"])
    assert [run.run_id for run in one.summaries()] == ["both__1/ship"]


def link_out(trial: Path) -> None:
    file = trial / "agent" / "trajectory.json"
    file.rename(trial.parent.parent / "outside.json")
    file.symlink_to(trial.parent.parent / "outside.json")


def link_result_out(trial: Path) -> None:
    file = trial / "result.json"
    file.rename(trial.parent.parent / "outside.json")
    file.symlink_to(trial.parent.parent / "outside.json")


def result_of_trial(**fields: Any) -> Callable[[Path], object]:
    def change(trial: Path) -> None:
        file = trial / "result.json"
        write(file, {**json.loads(file.read_text("utf-8")), **fields})

    return change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (link_out, "agent/trajectory.json: leads out of the folder"),
        (link_result_out, "result.json: leads out of the folder"),
        (
            result_of_trial(verifier_result={"rewards": {"reward": "1"}}),
            'verifier_result.rewards.reward: got "1"; must be a number',
        ),
        (
            result_of_trial(verifier_result={"rewards": [1]}),
            "verifier_result.rewards: got a list; must be an object of numbers",
        ),
        (result_of_trial(verifier_result=1), "verifier_result: got 1; must be an object"),
        (result_of_trial(task_name=["a"]), "task_name: got a list; must be text"),
        (
            result_of_trial(step_results=[{"step_name": "../../.."}]),
            "leads out of the folder",
        ),
        (result_of_trial(step_results=[{}]), "step_results[0].step_name: is missing"),
        (
            result_of_trial(step_results=[{"step_name": "a"}, {"step_name": "a"}]),
            'step_results[1].step_name: got "a", as step_results[0] has it, too',
        ),
        (
            lambda trial: (trial / "result.json").write_text("true"),
            "result.json:1: got true; must be an object",
        ),
        (
            lambda trial: (trial / "result.json").write_text('{"trial_name": "x", '),
            "result.json: is not valid JSON",
        ),
        (
            lambda trial: (trial / "agent" / "trajectory.json").write_text(""),
            "agent/trajectory.json: is not valid JSON",
        ),
        (
            lambda trial: (trial / "agent" / "trajectory.json").write_text("[]"),
            "agent/trajectory.json:1: got a list; must be an object",
        ),
    ],
)
def test_a_trial_that_is_broken_is_refused_with_its_file(
    tmp_path: Path, change: Callable[[Path], object], complaint: str
) -> None:
    job = job_of(tmp_path)
    write(tmp_path / "jobs" / "agent" / "trajectory.json", trajectory(*HELLO))
    (job / "refund__1" / "steps").mkdir()
    change(job / "refund__1")
    assert complaint in refusal(job)


def test_a_file_that_changed_since_is_an_input_error_of_its_cases(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", trajectory(*HELLO, trajectory_id="a"))
    source = open_source(path)
    source.summaries()
    write(path, trajectory(user(3), trajectory_id="a"))
    with pytest.raises(Unscored, match="must be text or a list of parts"):
        source.read("a", 1)
    with pytest.raises(Unscored, match="there is no such trajectory"):
        source.read("b", 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 2, "eval": {}, "input": "{\\"schema_version\\": \\"ATIF-v1.7\\"}"}',
        '{"a": "\\"steps\\": [{\\"step_id\\": 1"}',
        '{"schema_version": 1, "steps": []}',
        "[]",
        "",
    ],
)
def test_other_files_are_not_taken_for_trajectories(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    assert not Trajectories.recognizes(path)
    assert not Trajectories.recognizes(tmp_path / "missing.json")
    assert not Trajectories.recognizes(tmp_path)


def test_the_files_of_a_trial_are_those_that_its_runs_are_read_from(tmp_path: Path) -> None:
    trial = job_of(tmp_path) / "refund__0"
    source = Trajectories(trial)
    assert [str(file.relative_to(trial)) for file in source.files()] == [
        "result.json",
        "agent/trajectory.json",
    ]

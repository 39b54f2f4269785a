"""ATIF trajectories and Harbor's folders: what is read, what is refused and where (rule R6)."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.model import RunSummary, Skip
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.sources import open_source, open_sources
from pytest_jrh.sources.source import Source, with_clusters
from pytest_jrh.sources.trajectories import Trajectories
from tests.support.trajectories import (
    EXAMPLES,
    HELLO,
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

NAMED = {one.run_id: one.trajectory for one in EXAMPLES}


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        open_sources([path]).summaries()
    return str(caught.value)


def texts(source: Source, run_id: str) -> list[Any]:
    return [message["content"] for message in source.read(run_id, 1)[0].messages]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.run_id)
def test_a_trajectory_is_the_same_run_as_its_messages_in_json_lines(
    tmp_path: Path, example: Example
) -> None:
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
    run, _ = open_source(write(tmp_path / "a.json", value)).read("s", 1)
    assert "[audio: a.mp3]" in render_transcript(run.messages)


def at(*path: Any, **fields: Any) -> Callable[[Json], object]:
    """Change the object at a path of a trajectory; a field that is to be None goes."""

    def change(value: Any) -> None:
        for part in path:
            value = value[part]
        value.update(fields)
        for name in [name for name, field in fields.items() if field is None]:
            del value[name]

    return change


STEP = ("steps", 1)
RESULT = (*STEP, "observation", "results", 0)
BROKEN: dict[str, tuple[Callable[[Json], object], str]] = {
    "an unknown version": (at(schema_version="ATIF-v2.0"), "must be ATIF-v1.0 to ATIF-v1.8"),
    "no steps": (at(steps=[]), "steps: must be a list of steps, one at least"),
    "no agent": (at(agent=3), "agent: must be an object"),
    "a step that is none": (lambda value: value["steps"].append(3), "steps[3] is not as ATIF"),
    "no source": (at(*STEP, source=None), "steps[1] is not as ATIF has it: 'source'"),
    "an unknown source": (at(*STEP, source="robot"), "steps[1] is not as ATIF has it: 'robot'"),
    "no message": (at(*STEP, message=None), "steps[1] is not as ATIF has it: 'message'"),
    "a message that is no text": (at(*STEP, message=3), "steps[1] is not as ATIF has it"),
    "an unknown field": (at(*STEP, mesage="a"), "steps[1]: unknown fields: mesage"),
    "a call without a name": (at(*STEP, "tool_calls", 0, function_name=None), "'function_name'"),
    "an unknown part": (at(*STEP, message=[{"type": "film"}]), "unknown type of part: film"),
    "an image of nowhere": (at(*STEP, message=[{"type": "image", "source": {}}]), "'path'"),
    "a result that is none": (at(*STEP, observation={"results": [3]}), "steps[1] is not as ATIF"),
    "an unknown field of a result": (at(*RESULT, text="a"), "steps[1]: unknown fields: text"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_trajectory_is_refused_with_its_place(tmp_path: Path, how: str) -> None:
    change, complaint = BROKEN[how]
    value = json.loads(json.dumps(NAMED["one-call"]))
    change(value)
    path = write(tmp_path / "run.json", value)
    assert refusal(path).startswith(f"{path}: ")
    assert complaint in refusal(path)


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


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    value = json.loads(json.dumps(data.draw(st.sampled_from(EXAMPLES)).trajectory))
    *above, last = data.draw(st.sampled_from([place for place in places_in(value) if place]))
    parent = value
    for part in above:
        parent = parent[part]
    parent[last] = data.draw(VALUES)
    source = Trajectories(write(tmp_path / "a.json", value))
    with contextlib.suppress(InputError):
        (run,) = source.summaries()
        source.read(run.run_id, 1)


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
    assert "some runs go on at a URL" in source.notices()[0]
    value = trajectory(*HELLO, continued_trajectory_ref="b.json")
    path = write(tmp_path / "c.json", value)
    assert (
        f'{path}: continued_trajectory_ref: got "b.json", which is no file in {tmp_path}'
        in refusal(path)
    )


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("../secret.json", "leads out of"),
        ("{above}/secret.json", "leads out of"),
        ("link.json", "leads out of"),
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
    assert dict(source.score_values()) == {
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
    # Of the folder above, and of a trial, the runs go by the same names.
    assert open_sources([job.parent]).summaries() == source.summaries()
    one = open_sources([job / "refund__2"])
    assert one.summaries() == (RunSummary("refund__2", 1, cluster="orders/refund"),)
    assert dict(one.score_values()) == {("refund__2", 1): {"reward": 0.0, "speed": 0.5}}


def test_the_reward_of_an_older_result_is_read_too(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, "a__1", trajectory(*HELLO), verifier_result={"reward": 0.0})
    assert dict(open_sources([trial]).score_values()) == {("a__1", 1): {"reward": 0.0}}


def test_a_trial_that_has_no_result_yet_is_a_run_without_scores(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    for name in ("refund__0", "ship__x"):
        (job / name / "result.json").unlink()
    source = open_sources([job])
    assert [run.run_id for run in source.summaries()][::3] == ["refund__0", "ship__x"]
    assert dict(source.score_values())["refund__0", 1] == {}
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


def test_a_trial_of_several_steps_is_said_to_be_none(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, "both__1", None, step_results=[{"step_name": "build"}])
    assert "is of a trial of several steps; name their trajectory.json" in refusal(trial)
    file = write(trial / "steps/build/agent/trajectory.json", trajectory(*HELLO, session_id="s"))
    assert [run.run_id for run in open_sources([file]).summaries()] == ["s"]


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
        (link_out, "agent/trajectory.json: leads out of"),
        (link_result_out, "result.json: leads out of"),
        (
            result_of_trial(verifier_result={"rewards": [1]}),
            "verifier_result.rewards: must be an object of numbers",
        ),
        (result_of_trial(verifier_result=1), "verifier_result, exception_info: must be objects"),
        (result_of_trial(task_name=["a"]), "task_name, source: must be text"),
        (
            lambda trial: (trial / "result.json").write_text("true"),
            "result.json: is no JSON object",
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
            "agent/trajectory.json: is no JSON object",
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
    with pytest.raises(Unscored, match="is not as ATIF has it"):
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
        "agent/trajectory.json",
        "result.json",
    ]

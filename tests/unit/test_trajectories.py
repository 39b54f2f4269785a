"""ATIF trajectories and Harbor's folders: what is read, what is refused and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.cases import RunSummary
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.sources import open_source, open_sources
from pytest_jrh.sources.source import Head, with_clusters
from pytest_jrh.sources.transcripts import is_trajectory
from tests.support.trajectories import (
    EVERY_FIELD,
    HELLO,
    ONE_CALL,
    SHAPES,
    trajectory,
    write,
    write_job,
    write_trial,
)


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        open_sources([path]).summaries()
    return str(caught.value)


def test_a_trajectory_is_known_by_what_it_holds_and_kept_as_it_is(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "any.name", ONE_CALL))
    assert source.summaries() == (RunSummary("one-call", 1),)
    run, raw = source.read("one-call", 1, with_raw=True)
    assert (run.input, run.sample_id, run.epoch) == ("Where is order 7?", "one-call", 1)
    assert raw == ONE_CALL
    assert run.metadata["agent"]["name"] == "helper"


@pytest.mark.parametrize("name", SHAPES)
def test_a_trajectory_gives_its_transcript(tmp_path: Path, name: str) -> None:
    value, lines = SHAPES[name]
    source = open_source(write(tmp_path / "run.json", value))
    (summary,) = source.summaries()
    messages = source.read(summary.run_id, 1)[0].messages
    rendered = render_transcript(messages, show_reasoning=True)
    assert rendered.replace("\n  ", " | ").splitlines() == lines


def test_what_is_beside_the_steps_is_metadata(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "a.json", EVERY_FIELD))
    run, _ = source.read("t", 1)
    beside = ("session_id", "trajectory_id", "notes", "extra", "final_metrics")
    about = {"name": "a", "version": "1", "model_name": "m"}
    assert run.metadata == {"agent": about, **{key: EVERY_FIELD[key] for key in beside}}
    assert run.messages[1]["metadata"] == {"extra": {"n": 1}}
    assert [summary.cluster for summary in with_clusters(source, "/extra/task")] == ["a"]


def test_a_run_is_named_by_its_trajectory_its_session_or_its_file(tmp_path: Path) -> None:
    for name in ("one.json", "two/trajectory.json"):
        source = open_source(write(tmp_path / name, trajectory(*HELLO)))
        assert [run.run_id for run in source.summaries()] == [
            name.partition("/")[0].removesuffix(".json")
        ]
    both = trajectory(*HELLO, session_id="s", trajectory_id="t")
    assert open_source(write(tmp_path / "b.json", both)).summaries()[0].run_id == "t"


STEP = ("steps", 1)
UNKNOWN = "is of an unknown form"
# The place that is changed, what is put there, and what is said of it.
BROKEN: list[tuple[tuple[Any, ...], Any, str]] = [
    (("schema_version",), "ATIF-v2.0", "must be ATIF-v1.0 to ATIF-v1.8"),
    (("continued_trajectory_ref",), "more.json", "goes on in another file, which is not read"),
    (("steps", 2), 3, f"steps[2]: {UNKNOWN}"),
    ((*STEP, "source"), "robot", f"steps[1]: {UNKNOWN} (KeyError"),
    ((*STEP, "mesage"), "a", "steps[1]: unknown fields: mesage"),
    (("extra",), json.loads("[" * 200 + "]" * 200), "is nested more than 100 levels deep"),
]


@pytest.mark.parametrize(("place", "new", "complaint"), BROKEN)
def test_a_broken_trajectory_is_refused_with_its_place(
    tmp_path: Path, place: tuple[Any, ...], new: Any, complaint: str
) -> None:
    value = json.loads(json.dumps(ONE_CALL))
    *above, last = place
    parent = value
    for key in above:
        parent = parent[key]
    parent[last] = new
    path = write(tmp_path / "run.json", value)
    assert refusal(path).startswith(f"{path}:")
    assert complaint in refusal(path)


def test_a_file_that_claims_a_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", trajectory(*HELLO))
    with path.open("r+b") as file:
        file.truncate(1_000_000_000)
    assert "is more than 256 MB when unpacked" in refusal(path)


def job_of(tmp_path: Path) -> Path:
    job = write_job(tmp_path / "jobs" / "monday")
    for number in range(3):
        value = trajectory(*HELLO, session_id=f"s{number}")
        rewards = {"rewards": {"reward": float(number % 2)}}
        write_trial(job, f"refund__{number}", value, verifier_result=rewards)
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
    assert source.summaries() == tuple(
        RunSummary(f"refund__{number}", 1, cluster="orders/refund") for number in range(3)
    )
    assert {run.key: run.scores.get("reward") for run in source.fields()} == {
        ("refund__0", 1): 0.0,
        ("refund__1", 1): 1.0,
        ("refund__2", 1): 0.0,
    }
    run, raw = source.read("refund__1", 1, with_raw=True)
    assert (run.metadata["task_name"], run.metadata["session_id"]) == ("refund", "s1")
    assert raw["session_id"] == "s1"
    # The other has left no trajectory.
    [notice] = source.notices()
    assert "left out 1 file that cannot be used: ship__x/agent/trajectory.json: cannot" in notice
    # Of the folder above, and of a trial, the runs go by the same names.
    assert open_sources([job.parent]).summaries() == source.summaries()
    one = open_sources([job / "refund__2"])
    assert one.summaries() == (RunSummary("refund__2", 1, cluster="orders/refund"),)
    (fields,) = one.fields()
    assert (fields.key, fields.scores) == (("refund__2", 1), {"reward": 0.0})


def test_a_trial_that_has_no_result_yet_is_a_run_without_scores(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, "refund__0", trajectory(*HELLO))
    (trial / "result.json").unlink()
    source = open_sources([trial])
    assert [(run.key, run.scores) for run in source.fields()] == [(("refund__0", 1), {})]
    assert source.read("refund__0", 1)[0].messages
    assert not source.notices()


def test_the_steps_of_a_trial_are_runs_where_they_are_named(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, "both__1", None, step_results=[{"step_name": "build"}])
    assert "agent/trajectory.json: cannot be read" in refusal(trial)
    file = write(trial / "steps/build/agent/trajectory.json", trajectory(*HELLO, session_id="s"))
    assert [run.run_id for run in open_sources([file]).summaries()] == ["s"]


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("result.json", '{"verifier_result": {"rewards": [1]}}', "is of an unknown form"),
        ("agent/trajectory.json", "", "agent/trajectory.json: is empty"),
    ],
)
def test_a_trial_that_is_broken_is_refused_with_its_file(
    tmp_path: Path, file: str, text: str, complaint: str
) -> None:
    job = job_of(tmp_path)
    (job / "refund__1" / file).write_text(text)
    assert complaint in refusal(job / "refund__1")
    # The others of its job are runs.
    source = open_sources([job])
    assert source.summaries()
    [notice] = [each for each in source.notices() if "cannot be used" in each]
    assert f"refund__1/{file}" in notice


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 2, "eval": {}, "input": "{\\"schema_version\\": \\"ATIF-v1.7\\"}"}',
        '{"a": "\\"steps\\": [{\\"step_id\\": 1"}',
        "",
    ],
)
def test_other_files_are_not_taken_for_trajectories(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    for other in (path, tmp_path / "missing.json", tmp_path):
        assert not is_trajectory(Head(other))

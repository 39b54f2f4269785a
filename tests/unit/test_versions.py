"""Which versions of a model answer, beside those of the recordings (rule G9)."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.llm.calls import Answer
from pytest_jrh.recording.cassettes import Cassette, RecordedCall
from pytest_jrh.recording.versions import ModelVersions, VersionTally
from pytest_jrh.reports import topics
from pytest_jrh.reports.session import Session

OLD, NEW = "gpt-4o-2024-08-06", "gpt-4o-2024-11-20"


def call(
    number: int,
    model: str | None = OLD,
    *,
    stage: str = "judge",
    asked: object = "gpt-4o",
    body: object = None,
) -> RecordedCall:
    if body is None:
        body = json.dumps({"model": model})
    interaction = {
        "request": {
            "method": "POST",
            "uri": "http://127.0.0.1/v1/chat/completions",
            "body": json.dumps({"model": asked}),
            "headers": {},
        },
        "response": {"status": {"code": 200}, "headers": {}, "body": {"string": body}},
    }
    parts = {"model": "openai/gpt-4o", "parameters": {}, "schema": "", "messages": []}
    return RecordedCall(f"f{number}", stage, parts, Answer("{}"), interactions=(interaction,))


def recorded(folder: Path, *calls: RecordedCall, name: str = "run-1.e1.judge-default") -> None:
    """Write a cassette, as an earlier session has left it."""
    path = folder / "agent_perturbation" / "kind" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    Cassette(path, complete=True, entries={entry.fingerprint: entry for entry in calls}).save()
    before = time.time() - 60
    os.utime(path, (before, before))


def answered(
    *calls: RecordedCall, folder: Path, ending: str = ".e1.judge-default.yaml"
) -> VersionTally:
    versions = ModelVersions(folder)
    for number, entry in enumerate(calls):
        versions.add(Path(f"case-{number}{ending}"), entry)
    return versions.tally


def sentences(tally: VersionTally) -> list[str]:
    session = Session((), model_changes={"support": tally.changes()})
    return [block.text for block in topics.model_change_blocks(session)]  # type: ignore[union-attr]


def test_another_snapshot_is_named_once(tmp_path: Path) -> None:
    recorded(tmp_path, call(1), call(2))
    tally = answered(call(1, NEW), call(2, NEW), folder=tmp_path)
    assert sentences(tally) == [
        f"judge: gpt-4o answered as {NEW}; the recordings have {OLD}.",
    ]


def test_a_snapshot_that_answers_in_part_is_counted(tmp_path: Path) -> None:
    recorded(tmp_path, call(1))
    tally = answered(call(1), call(2, NEW), call(3), folder=tmp_path)
    assert sentences(tally) == [
        f"judge: gpt-4o answered as {NEW} in 1 of 3 answers; the recordings have {OLD}.",
    ]


def test_snapshots_that_take_turns_are_counted_in_one_sentence(tmp_path: Path) -> None:
    recorded(tmp_path, call(1), call(2), call(3, "gpt-4o-b"))
    new = [call(number, f"gpt-4o-{number % 4}") for number in range(9)]
    assert sentences(answered(*new, folder=tmp_path)) == [
        "judge: gpt-4o answered as gpt-4o-0 (3), gpt-4o-1 (2), gpt-4o-2 (2) and 1 more; the "
        f"recordings have {OLD} (2), gpt-4o-b (1).",
    ]


@pytest.mark.parametrize(
    "entry",
    [
        call(1, None),
        call(1, NEW, asked="gpt-4o-mini"),
        call(1, NEW, stage="verifier"),
        call(1, body="no JSON"),
        call(1, body="[" * 100_000),
        call(1, body='{"model": 7}'),
        call(1, body=b"\xff"),
    ],
)
def test_what_has_no_counterpart_is_no_change(tmp_path: Path, entry: RecordedCall) -> None:
    recorded(tmp_path, call(1))
    assert not answered(entry, folder=tmp_path).changes()


def test_a_hostile_name_is_one_short_line(tmp_path: Path) -> None:
    recorded(tmp_path, call(1))
    [sentence] = sentences(answered(call(1, "x\n::error::" + "y" * 9_999), folder=tmp_path))
    assert "\n" not in sentence
    assert len(sentence) < 250


def test_gemini_names_its_version_in_another_field(tmp_path: Path) -> None:
    def gemini(version: str) -> RecordedCall:
        return call(1, body=json.dumps({"modelVersion": version}), asked=None)

    recorded(tmp_path, gemini("gemini-2.5-flash-001"))
    [change] = answered(gemini("gemini-2.5-flash-002"), folder=tmp_path).changes()
    assert (change.model, change.new) == ("openai/gpt-4o", {"gemini-2.5-flash-002": 1})


def test_recordings_of_this_session_and_broken_ones_do_not_count(tmp_path: Path) -> None:
    recorded(tmp_path, call(1))
    recorded(tmp_path, call(2, NEW), name="run-2.e1.judge-default")
    broken = tmp_path / "agent_perturbation" / "kind" / "run-3.e1.judge-default.yaml"
    broken.write_text("nothing of ours", encoding="utf-8")
    later = tmp_path / "agent_perturbation" / "kind" / "run-2.e1.judge-default.yaml"
    after = time.time() + 60
    os.utime(later, (after, after))
    [change] = answered(call(1, NEW), folder=tmp_path).changes()
    assert change.recorded == {OLD: 1}


def test_a_judge_of_own_code_answers_once_with_what_it_has_asked_now(tmp_path: Path) -> None:
    """It records as it goes on, and keeps beside it what an earlier version of it has asked."""
    recorded(tmp_path, call(1))
    versions = ModelVersions(tmp_path)
    path, old = Path("run-1.e1.judge-default.yaml"), call(1)
    begun = replace(old, interactions=(*call(1, NEW).interactions, *old.interactions))
    versions.add(path, begun, old)
    versions.add(path, begun, begun)
    [change] = versions.tally.changes()
    assert (change.answers, change.new) == (1, {NEW: 1})


def test_processes_are_one_session_and_the_first_knows_the_recordings(tmp_path: Path) -> None:
    """Another one may have read what the first has recorded."""
    recorded(tmp_path, call(1))
    first = answered(call(1, NEW), folder=tmp_path)
    recorded(tmp_path, call(1, NEW))
    second = answered(call(2, NEW), folder=tmp_path)
    idle = answered(folder=tmp_path)
    tallies = [
        VersionTally.read(json.loads(json.dumps(tally.data))) for tally in (idle, second, first)
    ]
    [change] = VersionTally.joined(tallies).changes()
    assert (change.answers, change.recorded) == (2, {OLD: 1})


def test_many_recordings_are_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        for kind in ("judge-default", "generation"):
            recorded(tmp_path, call(number), name=f"run-{number}.e1.{kind}")
    monkeypatch.setattr("pytest_jrh.recording.versions._MOST_FILES", 5)
    loaded: list[Any] = []
    load = Cassette.load

    def counting(path: Path, *, interactions: bool) -> Cassette:
        loaded.append(path.name.split(".")[-2])
        return load(path, interactions=interactions)

    monkeypatch.setattr(Cassette, "load", counting)
    answered(call(1, NEW), call(2, NEW), folder=tmp_path, ending=".e1.generation.yaml")
    assert loaded == ["generation"] * 5
    loaded.clear()
    monkeypatch.setattr("pytest_jrh.recording.versions._MOST_BYTES", 1)
    versions = ModelVersions(tmp_path)
    versions.add(tmp_path / "run-1.e1.judge-default.yaml", call(1, NEW))
    assert loaded == ["judge-default"]

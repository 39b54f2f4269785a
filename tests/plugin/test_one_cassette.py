"""Sessions of answers, whose cases share a cassette for each test and rubric."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.recording.cassettes import SHARED, Cassette, shared, update_shared
from tests.plugin.recorded import Done, run_pytest
from tests.plugin.test_answers import CONFIG, write
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer, Obedient

TESTS = ("agent_perturbation", "agent_positives", "labels")
PLACE = "inputs/cassettes/answers/labels/kind/cassette.yaml"


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    write(folder, f"{CONFIG}judge: {{model: openai/judge, repeats: 2}}\n")
    with ModelServer(Obedient()) as server:
        done = session(folder, server, "--jrh-record-mode=once", "-n2")
        assert "28 calls, 0 replayed" in done.stdout, done.stdout
    return folder


@pytest.fixture
def folder(recorded_once: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded_once, tmp_path, dirs_exist_ok=True)
    return tmp_path


def session(folder: Path, server: ModelServer, *options: str) -> Done:
    return run_pytest(folder, "--jrh-config=answers.yml", "-v", *options, env=server.environment)


def heads_in(folder: Path) -> dict[str, dict[str, Any]]:
    """What is recorded by test and case; no other file holds a recording."""
    recordings = folder / "inputs/cassettes/answers"
    files = [recordings / test / "kind" / SHARED for test in TESTS]
    assert sorted(recordings.rglob("*.yaml")) == files
    heads = {}
    for test, file in zip(TESTS, files, strict=True):
        head = file.read_text(encoding="utf-8").partition("\ninteractions:")[0]
        heads[test] = json.loads(head.removeprefix("metadata:"))["jrh"]["cases"]
    return heads


def test_workers_record_into_one_file_and_replay_what_a_killed_session_left(folder: Path) -> None:
    heads = heads_in(folder)
    assert [*heads["labels"]] == ["a.e1.judge-default", "b.e1.judge-default", "c.e1.judge-default"]
    made = ["a.e1.generation", "a.e1.judge-default", "b.e1.generation", "b.e1.judge-default"]
    assert [*heads["agent_perturbation"]][:4] == made
    own = (folder / PLACE).with_name("b.e1.judge-default.yaml")
    Cassette.load(own, interactions=True).save()
    update_shared(folder / PLACE, {own.stem: None})
    results = results_in(folder / "outputs/answers.yml")
    with ModelServer(Obedient()) as server:
        for options in (["-n2"], ["--jrh-record-mode=once"]):
            # A replay writes nothing.
            assert own.exists()
            done = session(folder, server, *options)
            assert "0 calls, 28 replayed" in done.stdout
            again = results_in(folder / "outputs/answers.yml")
            assert [result.case_id for result in again] == [result.case_id for result in results]
            assert [result.outcome for result in again] == [result.outcome for result in results]
        assert server.count() == 0
    assert heads_in(folder) == heads


def test_a_case_that_is_recorded_again_replaces_its_own_calls(folder: Path) -> None:
    was = heads_in(folder)
    with ModelServer(Obedient()) as server:
        session(folder, server, "--jrh-record-mode=all", "-k", "labels and b[e1]")
        assert server.count() == 2
    now = heads_in(folder)
    name = "b.e1.judge-default"
    assert [call["sequence"] for call in now["labels"].pop(name)["calls"]] == [1, 2]
    del was["labels"][name]
    assert now == was


def test_a_case_without_a_recording_names_the_file_and_unused_ones_go(folder: Path) -> None:
    file = folder / PLACE
    gone, unused = "a.e1.judge-default", "z.e1.judge-default"
    cassette = Cassette.load(file.with_name(f"{gone}.yaml"), interactions=True)
    update_shared(file, {gone: None, unused: cassette})
    with ModelServer(Obedient()) as server:
        planned = session(folder, server, "--jrh-plan", "--jrh-prune")
        assert f"unused cassettes: 1\n  {PLACE}: {unused}\n" in planned.stdout
        assert unused in shared(file)
        done = session(folder, server, "--jrh-prune")
        assert f"removed cassettes: 1\n  {PLACE}: {unused}\n" in done.stdout
        assert f"cassette: {PLACE}\n" in done.stdout
        assert unused not in shared(file)
        file.write_text("<<<<<<< HEAD\n", encoding="utf-8")
        refused = session(folder, server, "--jrh-prune", "-k", "labels")
    assert refused.code == 1
    assert "Restore the file from version control" in refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr

"""A disk that fills up while recording: the cases say so, nothing is lost, and nothing is paid for
twice."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from pytest_jrh.recording import tapes
from tests.e2e.bench import Bench, read_cassette, said
from tests.plugin.recorded import run_pytest
from tests.support.model_server import ModelServer
from tests.support.suites import write_suite

RUNS = 6
CALLS = RUNS * 5
FULL = "No space left on device"
SUITE: dict[str, Any] = {"runs": RUNS, "tests": ["agent_perturbation"], "workers": 1}


@contextlib.contextmanager
def small_disk(folder: Path, size: str, *, full: bool = False) -> Iterator[None]:
    """Mount a disk of this size there, with no room left if `full`.

    Skips the test where that is not allowed.
    """
    folder.mkdir(parents=True)
    if shutil.which("mount") is None:
        pytest.skip("needs a disk that can fill up, and there is no `mount` here")
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a disk that can fill up: {done.stderr.strip() or 'mount failed'}")
    try:
        if full:
            filler = (folder / "filler").open("wb", buffering=0)
            with contextlib.suppress(OSError), filler:
                while filler.write(bytes(4096)):
                    pass
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


def count(output: str, word: str) -> int:
    return sum(line.startswith(f"{word} ") for line in output.splitlines())


def test_cases_that_find_no_room_for_their_answers_say_so_and_the_others_are_kept(
    tmp_path: Path, server: ModelServer
) -> None:
    files = write_suite(tmp_path / "suite", **SUITE)
    with small_disk(files.cassettes, "160k"):
        # One at a time, so that it fills up between cases.
        full = run_pytest(files.folder, files.option, "--jrh-record-mode=once", "-rA")
        assert full.code == 1
        passed, failed = count(full.stdout, "PASSED"), count(full.stdout, "ERROR")
        assert passed + failed == RUNS
        assert 0 < passed < RUNS
        assert FULL in full.stdout
        assert str(files.cassettes) in "".join(full.stdout.split())
        assert "Traceback" not in full.stdout + full.stderr
        # Whatever was paid for is on the disk, and every file there is whole.
        asked = server.count()
        assert asked < CALLS
        tapes_there = map(read_cassette, files.cassettes.rglob("*.yaml"))
        assert sum(len(tape["interactions"]) for tape in tapes_there) == asked
        assert not list(files.cassettes.rglob("*.tmp"))

        resize(files.cassettes, "64m")
        assert Bench(files, files.cassettes).run("once").outcomes == [("agree", 1)] * RUNS
        assert set(Counter(request.digest for request in server.requests).values()) == {1}
        assert server.count() == CALLS
        assert Bench(files, files.cassettes).replay().outcomes == [("agree", 1)] * RUNS


def test_results_that_find_no_room_are_named_and_verdicts_and_recordings_are_kept(
    tmp_path: Path, server: ModelServer
) -> None:
    files = write_suite(tmp_path / "suite", **SUITE)
    outputs = files.folder / "outputs"
    with small_disk(outputs, "64k", full=True):
        full = run_pytest(files.folder, files.option, "--jrh-record-mode=once", "-rA", "-n2")
        assert full.code == 1
        assert count(full.stdout, "PASSED") == RUNS
        said = " ".join(full.stdout.split())
        assert "made case" in said
        assert f"synthetic_agent_perturbation.csv was not written: {FULL}." in said
        assert "This session is not green, because of failed writes." in said
        assert "INTERNALERROR" not in full.stdout + full.stderr
        assert server.count() == CALLS

        resize(outputs, "64m")
        again = run_pytest(files.folder, files.option, "-rA", "-n2")
        assert again.code == 0, again.stdout
        made = next(outputs.rglob("agent_perturbations.jsonl")).read_bytes()
        assert made.count(b"\n") == RUNS
        assert server.count() == CALLS


def test_nothing_is_asked_where_its_answer_could_not_be_kept(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tapes, "room_for", Mock(side_effect=OSError(28, FULL)))
        refused = bench.run().only
    assert (refused.outcome, server.count()) == ("model_error", 0)
    assert "No call was made, because its answer could not be stored under" in said(refused)
    assert str(bench.cassettes) in "".join(said(refused).split())
    assert FULL in said(refused)
    assert bench.run().outcomes == [("agree", 1)]
    assert server.count() == 5

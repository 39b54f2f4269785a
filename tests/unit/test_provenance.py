"""Where a session's figures come from, and what git knows of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_jrh.core.text import visible
from pytest_jrh.engine.provenance import day_of, session_origin
from pytest_jrh.reports.provenance import (
    JudgeOrigin,
    SessionOrigin,
    SuiteOrigin,
    header_line,
    origin_lines,
)
from tests.support.judged_sessions import HOSTILE


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    folder = tmp_path / "cassettes"
    folder.mkdir()
    (folder / "a.yaml").write_text("a", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "Record", "--date=2020-01-02T03:04:05Z")
    return tmp_path


def test_hostile_names_stay_one_line() -> None:
    judge = JudgeOrigin(HOSTILE, HOSTILE, HOSTILE, HOSTILE * 20, "ab")
    suite = SuiteOrigin(HOSTILE, HOSTILE, "ef", judges=(judge,), makers=(HOSTILE,))
    for line in (header_line(suite), *origin_lines(SessionOrigin((suite, suite)))):
        assert visible(line) == line
        assert "\n" not in line


def test_the_commit_is_that_of_the_repository(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = git(repository, "rev-parse", "HEAD")
    assert session_origin((), repository / "cassettes").commit == whole[:12]
    assert session_origin((), tmp_path_factory.mktemp("plain")).commit == ""
    monkeypatch.setenv("PATH", "")
    assert session_origin((), repository).commit == ""


def test_the_day_of_recordings_is_that_of_their_last_commit(repository: Path) -> None:
    day = day_of(repository / "cassettes")
    assert day == git(repository, "log", "-1", "--format=%cs")
    git(repository, "clone", "-q", "--depth=1", repository.as_uri(), str(repository / "clone"))
    assert day_of(repository / "clone/cassettes") == ""

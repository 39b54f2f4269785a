"""Where a session's figures come from, and what git knows of it."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core import visible
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.redact import NO_SECRETS
from pytest_jrh.engine.provenance import day_of, header_line, origin_lines
from pytest_jrh.engine.suite import ReadySuite
from pytest_jrh.judges.judge import PromptJudge
from pytest_jrh.llm.calls import parse_prompt
from tests.support.conversations import judge_settings
from tests.support.judged_sessions import HOSTILE
from tests.support.made_cases import make_suite, suite_run


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid", "-c", "commit.gpgsign=false"]
    return subprocess.check_output(["git", *who, *arguments], cwd=folder, text=True).strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    folder = tmp_path / "cassettes"
    folder.mkdir()
    (folder / "a.yaml").write_text("a", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "Record", "--date=2020-01-02T03:04:05Z")
    return tmp_path


def test_hostile_names_stay_one_line(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    stages = {name: replace(stage, model=HOSTILE) for name, stage in suite.stages.items()}
    settings = judge_settings(StageModel("judge", HOSTILE, prompt_path=HOSTILE * 20))
    judge = PromptJudge(settings, parse_prompt("{{ rubric }}{{ transcript }}", "p", stage="judge"))
    suite = replace(suite, name=HOSTILE, stages=stages)
    ready = ReadySuite(suite, None, {}, {HOSTILE: judge}, (), {})
    run = suite_run(ready.suite, (), (), origin={HOSTILE: HOSTILE * 20})
    lines = [*origin_lines((run, run), tmp_path)]
    assert len(lines) == 4
    for line in (header_line(ready, tmp_path, NO_SECRETS), *lines):
        assert visible(line) == line
        assert "\n" not in line


def test_the_commit_is_that_of_the_repository(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = git(repository, "rev-parse", "HEAD")
    assert next(origin_lines((), repository / "cassettes")).endswith(f" UTC, commit {whole[:12]}")
    assert next(origin_lines((), tmp_path_factory.mktemp("plain"))).endswith(" UTC")
    monkeypatch.setenv("PATH", "")
    assert next(origin_lines((), repository)).endswith(" UTC")


def test_the_day_of_recordings_is_that_of_their_last_commit(repository: Path) -> None:
    day = day_of(repository / "cassettes")
    assert day == git(repository, "log", "-1", "--format=%cs")
    git(repository, "clone", "-q", "--depth=1", repository.as_uri(), str(repository / "clone"))
    assert day_of(repository / "clone/cassettes") == ""

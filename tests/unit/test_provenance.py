"""Where a session's figures come from, and what git knows of it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.text import visible
from pytest_jrh.engine.provenance import commit_of, day_of, versions
from pytest_jrh.reports.blocks import Points
from pytest_jrh.reports.markdown import markdown_parts
from pytest_jrh.reports.provenance import (
    NO_ORIGIN,
    JudgeOrigin,
    SessionOrigin,
    SuiteOrigin,
    header_line,
    origin_lines,
)
from tests.support.judged_sessions import HOSTILE

JUDGE = JudgeOrigin(
    "", "openai/m", "prompt", "judge.md", "0123456789ab", "0123456789abcdef", "prompt"
)
SUITE = SuiteOrigin(
    suite="refunds",
    config="suites/refunds.yml",
    config_digest="ab0123456789",
    judges=(JUDGE,),
    makers=("openai/maker",),
    verifier="other/verifier",
    recorded="2026-11-20",
    baseline="baseline.json",
    baseline_digest="cd0123456789",
    versions={"pytest-jrh": "0.1.0"},
)
SESSION = SessionOrigin((SUITE,), "2026-11-22 05:40 UTC", "a1b2c3d4e5f6")


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


def test_everything_that_is_known_is_a_row() -> None:
    assert dict(line.split(": ", 1) for line in origin_lines(SESSION)) == {
        "judge": "openai/m (prompt), judge.md 0123456789ab, not the baseline's prompt",
        "cases": "made by openai/maker, verified by other/verifier",
        "config": "suites/refunds.yml (ab0123456789)",
        "recordings": "committed 2026-11-20",
        "baseline": "baseline.json (cd0123456789)",
        "run": "2026-11-22 05:40 UTC, commit a1b2c3d4e5f6",
        "versions": "pytest-jrh 0.1.0",
    }
    assert header_line(SUITE) == (
        "judge openai/m, judge.md, not the baseline's prompt; "
        "cases made by openai/maker, verified by other/verifier"
    )


def test_suites_and_judges_are_told_apart() -> None:
    judges = tuple(replace(JUDGE, name=name, change="same") for name in ("strict", "lax"))
    other = replace(SUITE, suite="tone", judges=judges)
    titles = [line.partition(":")[0] for line in origin_lines(SessionOrigin((SUITE, other)))]
    assert titles[0] == "judge of refunds"
    assert "judge strict of tone" in titles
    assert "judge lax of tone" in titles
    assert titles.count("versions") == 1


def test_nothing_is_shown_of_a_session_that_nobody_looked_at() -> None:
    assert list(origin_lines(NO_ORIGIN)) == []


def test_hostile_names_stay_one_line_and_no_markup() -> None:
    judge = replace(JUDGE, name=HOSTILE, label=HOSTILE, prompt=HOSTILE * 20)
    suite = replace(SUITE, suite=HOSTILE, config=HOSTILE, judges=(judge,), makers=(HOSTILE,))
    session = SessionOrigin((suite, SUITE))
    assert "\n" not in header_line(suite)
    for line in origin_lines(session):
        assert visible(line) == line
        assert "\n" not in line
    text = "\n".join(markdown_parts([Points(tuple(origin_lines(session)))]))
    assert "<script>" not in text
    assert "\n#" not in text


def test_the_commit_is_that_of_the_repository(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = git(repository, "rev-parse", "HEAD")
    assert commit_of(repository / "cassettes") == whole[:12]
    assert commit_of(tmp_path_factory.mktemp("plain")) == ""
    monkeypatch.setenv("PATH", "")
    assert commit_of(repository) == ""


def test_the_day_of_recordings_is_that_of_their_last_commit(repository: Path) -> None:
    day = day_of(repository / "cassettes")
    assert day == git(repository, "log", "-1", "--format=%cs")
    git(repository, "clone", "-q", "--depth=1", repository.as_uri(), str(repository / "clone"))
    assert day_of(repository / "clone/cassettes") == ""


def test_where_there_is_no_history_there_is_no_day(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert day_of(tmp_path_factory.mktemp("plain")) == ""
    assert day_of(repository / "missing") == ""
    monkeypatch.setenv("PATH", "")
    assert day_of(repository / "cassettes") == ""


def test_the_versions_are_those_that_are_installed() -> None:
    assert list(versions()) == ["pytest-jrh", "litellm", "inspect_ai"]

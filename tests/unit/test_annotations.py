"""GitHub's workflow commands for regressions, read back the way the runner reads them."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.model import CaseResult, Verdict
from pytest_jrh.reports.annotations import Files, annotation_lines, changed_files
from pytest_jrh.reports.session import Session
from pytest_jrh.stats.baseline import JudgePrompt, short
from tests.support.judged_sessions import (
    DIGEST,
    HOSTILE,
    judged,
    misses,
    right,
    session_of,
    wrong_on,
)
from tests.support.made_cases import result_with

BASE = Files(Path("/repo"))
COMMAND = re.compile(r"::(?P<kind>[a-z]+) (?P<properties>[^:]*)::(?P<message>[^\r\n]*)")


def read(line: str) -> tuple[str, dict[str, str], str]:
    """As the runner does: properties split at commas, then unescaped."""
    match = COMMAND.fullmatch(line)
    assert match, line
    pairs = dict(pair.split("=", 1) for pair in match["properties"].split(","))
    unescaped = {
        name: plain(value).replace("%3A", ":").replace("%2C", ",") for name, value in pairs.items()
    }
    return match["kind"], unescaped, plain(match["message"])


def plain(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def regressed(results: list[CaseResult], **rules: Any) -> Session:
    before = [result_with(result, outcome="agree", score=result.label) for result in results]
    return session_of(results, before, **rules)


def test_regression_is_an_error_at_its_rubrics_line() -> None:
    lines = annotation_lines(regressed(judged(misses(6), rubrics=("tone",))), BASE)
    assert len(lines) == 6
    kind, properties, message = read(lines[3])
    assert kind == "error"
    assert properties == {
        "file": "suites/rubrics.yml",
        "line": "7",
        "title": "Regression: tone: perturbation (run-003)",
    }
    assert message.split("\n") == [
        "The judge gave 0, the right answer is 1; in the baseline it was right.",
        "The order is late.",
        "suites/refunds.jrh.yml::agent_perturbation::tone::run-003[e1]",
    ]


def test_regressions_that_the_gate_lets_through_are_warnings() -> None:
    session = regressed(judged(wrong_on("run-003"), rubrics=("tone",)))
    assert {read(line)[0] for line in annotation_lines(session, BASE)} == {"warning"}


def test_flicker_of_the_same_judge_is_not_called_a_regression() -> None:
    session = regressed(judged(wrong_on("run-003"), rubrics=("tone",)), same_judge=True)
    _, properties, message = read(annotation_lines(session, BASE)[0])
    assert properties["title"] == "Flicker: tone: perturbation (run-003)"
    assert "The judge has not changed: asked again, it says something else." in message


def test_rubric_outside_the_folder_is_not_named() -> None:
    (line, *_) = annotation_lines(regressed(judged(wrong_on("run-003"))), Files(Path("/elsewhere")))
    assert read(line)[1] == {"title": "Regression: refund_policy: perturbation (run-003)"}


OLD_PROMPT = "Judge.\nBe strict.\nSay why."
PROMPT = JudgePrompt(
    "refunds", "", short(DIGEST), "Judge.\nBe kind.\nAlways.\nSay why.", "prompts/judge.md"
)


def prompt_changed() -> Session:
    return regressed(
        judged(wrong_on("run-003"), rubrics=("tone",)), prompt_before=OLD_PROMPT, prompts=[PROMPT]
    )


def test_where_the_prompt_changed_regressions_are_at_the_lines_that_changed() -> None:
    lines = [read(line) for line in annotation_lines(prompt_changed(), BASE)]
    assert [properties["title"].partition(":")[0] for _, properties, _ in lines] == [
        "The judge's prompt changed",
        "Regression",
        "Regression",
    ]
    for _, properties, _ in lines:
        place = [properties[name] for name in ("file", "line", "endLine")]
        assert place == ["prompts/judge.md", "2", "3"]


def test_only_files_of_the_pull_request_are_named() -> None:
    session = prompt_changed()
    files = Files(Path("/repo"), frozenset({"suites/rubrics.yml"}))
    summary, first, _ = [read(line)[1] for line in annotation_lines(session, files)]
    assert summary == {"title": "The judge's prompt changed"}
    assert (first["file"], first["line"]) == ("suites/rubrics.yml", "7")
    neither = Files(Path("/repo"), frozenset())
    for line in annotation_lines(session, neither):
        assert "file" not in read(line)[1]


def test_a_prompt_that_was_not_kept_leaves_regressions_at_their_rubric() -> None:
    results = judged(wrong_on("run-003"), rubrics=("tone",))
    session = regressed(results, prompts=[PROMPT])
    summary, first, *_ = [read(line)[1] for line in annotation_lines(session, BASE)]
    assert (summary["file"], summary["line"]) == ("prompts/judge.md", "1")
    assert first["file"] == "suites/rubrics.yml"


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_git_tells_the_files_of_a_pull_request_where_it_has_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    for branch, name in (("main", "a.md"), ("work", "é b.md")):
        if branch != "main":
            git(repository, "checkout", "-q", "-b", branch)
        (repository / name).write_text(name)
        git(repository, "add", ".")
        git(repository, "commit", "-q", "-m", name)
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "work")
    monkeypatch.delenv("GITHUB_BASE_REF", raising=False)
    assert changed_files(repository) is None
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    assert changed_files(tmp_path) is None
    # As after a checkout of GitHub's merge commit, with both of its parents and no branch.
    assert changed_files(repository) == frozenset({"é b.md"})
    for depth, files in ((1, None), (2, frozenset({"é b.md"}))):
        clone = tmp_path / f"depth-{depth}"
        git(tmp_path, "clone", "-q", f"--depth={depth}", repository.as_uri(), clone.name)
        git(clone, "remote", "rename", "origin", "elsewhere")
        assert changed_files(clone) == files
    git(repository, "checkout", "-q", "work")
    git(repository, "update-ref", "refs/remotes/origin/main", "work~1")
    assert changed_files(repository) == frozenset({"é b.md"})
    monkeypatch.setenv("GITHUB_BASE_REF", "--output=/tmp/x")
    assert changed_files(repository) is None


def test_more_than_ten_are_counted_in_a_notice() -> None:
    session = regressed(judged(lambda spec, expected: 1 - expected))
    lines = annotation_lines(session, BASE)
    assert [read(line)[0] for line in lines[:11]] == ["error"] * 10 + ["notice"]
    assert read(lines[10])[2] == "38 more regressions: the report names them all."


def test_old_disagreements_and_sessions_without_a_baseline_have_none() -> None:
    wrong = judged(wrong_on("run-003"))
    assert annotation_lines(session_of(wrong, before=wrong), BASE) == []
    assert annotation_lines(session_of(wrong), BASE) == []
    assert annotation_lines(session_of(judged(right)), BASE) == []


def test_hostile_text_neither_begins_nor_changes_a_command() -> None:
    wrong = [
        result_with(result, rubric_id=f"a,file=x:{HOSTILE}", reasoning=HOSTILE, judge=HOSTILE)
        for result in judged(misses(6), rubrics=("tone",))
    ]
    for line in annotation_lines(regressed(wrong), BASE):
        kind, properties, message = read(line)
        assert (kind, properties["file"]) == ("error", "suites/rubrics.yml")
        assert properties["title"].startswith("Regression: a,file=x:<script>")
        assert "%0A {{ 7*7 }}" in message
        assert message.count("\n") == 2
        line.encode()


def test_a_judge_that_contradicts_itself_is_a_notice() -> None:
    first, *others = judged(right, rubrics=("tone",))
    torn = result_with(first, scores=(1, 0, 1), minority=Verdict(0, "On second thoughts, no."))
    repeated = [replace(other, scores=(other.score,) * 3) for other in others if other.score]
    line, *_ = annotation_lines(session_of([torn, *repeated]), BASE)
    kind, properties, message = read(line)
    assert (kind, properties) == ("notice", {"title": "Judge flicker"})
    assert message.startswith(f"The judge gave different scores in 1 of {len(repeated) + 1} ")


def test_what_to_know_about_the_figures_is_one_notice_a_judge() -> None:
    always = judged(lambda spec, expected: 1)
    (line,) = annotation_lines(session_of(always), BASE)
    kind, properties, message = read(line)
    assert (kind, list(properties)) == ("notice", ["title"])
    assert properties["title"].startswith("Judge figures: ")
    assert message.startswith("Constant verdict: 1 (violated) for all ")

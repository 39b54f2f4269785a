"""`examples/github/judge-gate.yml` on a pull request that changes the judge's prompt, on its next
push and on labels; and the action that it uses, on what it may be given."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.workflow_jobs import COMMIT, RUN, SECRETS, SOURCE, Jobs, Ran, github, needs_shell
from tests.unit.test_workflows import ROOT

CONFIG = "inputs/configs/refund_agent.yml"
LAX = "examples/prompt_change/refund_agent.yml"
TABLE = "examples/strong_judges/llmbar-gpt4.csv"
STRANGER = f"<!-- pytest-jrh: judge, {CONFIG} --> me first"
PUSHED = github("pull_request", action="synchronize")
REJUDGE = github("pull_request", action="labeled", label="rejudge")

pytestmark = needs_shell


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    jobs = Jobs("judge-gate.yml", tmp_path / "checkout")
    jobs.install(STRANGER)
    return jobs


def comments(jobs: Jobs) -> list[str]:
    """The action's comments, in the order in which they were made."""
    stranger, *known = jobs.known
    assert stranger["body"] == STRANGER
    return [comment["body"] for comment in known]


def kept(jobs: Jobs) -> dict[str, list[str]]:
    """The files of each artifact."""
    folders = sorted(jobs.artifacts.iterdir())
    return {folder.name: sorted(file.name for file in folder.iterdir()) for folder in folders}


def whole_run(jobs: Jobs, event: Mapping[str, Any]) -> tuple[Ran, Ran]:
    """Run the workflow on an event, in a checkout that has what the runs before have left."""
    shutil.rmtree(jobs.artifacts, ignore_errors=True)
    replay = jobs.run("replay", event)
    return replay, jobs.run("rejudge", event, needs={"replay": replay})


def test_a_pull_request_has_an_annotation_and_a_comment(jobs: Jobs) -> None:
    for name in ("inputs", "examples/prompt_change"):
        shutil.copytree(ROOT / name, jobs.folder / name)
    shutil.copy(ROOT / LAX, jobs.folder / CONFIG)
    replay, rejudge = whole_run(jobs, PUSHED)
    assert (replay.code, rejudge.result) == (pytest.ExitCode.TESTS_FAILED, "skipped")
    [annotation] = [line for line in replay.printed.splitlines() if line.startswith("::")]
    assert annotation.startswith("::error file=examples/prompt_change/judge.md,line=")
    [comment] = comments(jobs)
    assert comment.startswith(f"<!-- pytest-jrh: judge, {CONFIG} -->\n{COMMIT}\n\n")
    assert "FAIL: the new prompt misses 6 of 25 violations that it found before" in comment
    assert f"[run]({RUN}) · [report]({RUN}#artifacts)" in comment
    files = ["judge-junit.xml", "judge-report.html", "judge-summary.md"]
    assert kept(jobs) == {"judge-replay": files}


# A pytest whose report is what it was given, and which is red.
STUB = """printf '%s\\n' "$@" > judge-summary.md
mkdir -p inputs/cassettes/refund_agent
exit 1 #"""


@pytest.mark.parametrize(
    ("event", "commented", "rejudged"),
    [
        (github("push"), "", False),
        (PUSHED, "--jrh-record-mode=none", False),
        (github("pull_request", action="opened", repository="fork/r"), "", False),
        (github("pull_request", action="labeled", label="bug"), "", False),
        (REJUDGE, "--jrh-judge-record-mode=new_episodes", True),
        (github("pull_request", action="labeled", label="rejudge", repository="f/r"), "", False),
        (github("workflow_dispatch"), "", True),
    ],
)
def test_each_event_has_its_jobs_and_its_comment(
    jobs: Jobs, event: Mapping[str, Any], commented: str, rejudged: bool
) -> None:
    jobs.command("pytest", STUB)
    replay, rejudge = whole_run(jobs, event)
    assert replay.result == "failure"
    assert rejudge.result == ("failure" if rejudged else "skipped")
    artifacts = ["judge-cassettes", "judge-rejudge", "judge-replay"]
    assert sorted(kept(jobs)) == (artifacts if rejudged else artifacts[-1:])
    said = [commented in comment.splitlines() for comment in comments(jobs)]
    assert said == ([True] if commented else [])
    # The key is where the judge is asked, and in no job that a fork or a push can start.
    key = SECRETS["OPENAI_API_KEY"]
    assert key not in str(replay.environments)
    assert (rejudge.environments.get("Run", {}).get("OPENAI_API_KEY") == key) is rejudged
    assert "GH_TOKEN" not in replay.environments["Run"]


def test_one_comment_follows_a_pull_request(jobs: Jobs) -> None:
    jobs.command("pytest", STUB)
    rejudged = "--jrh-judge-record-mode=new_episodes"
    for event, in_comment in [
        (PUSHED, False),
        (REJUDGE, True),
        # The replay of what is not recorded is red, and no news.
        (github("pull_request", action="labeled", label="bug"), True),
        (PUSHED, False),
    ]:
        whole_run(jobs, event)
        [comment] = comments(jobs)
        assert (rejudged in comment) is in_comment
    # Another suite, or another name, has a comment of its own.
    for inputs in ({"suite": "other.yml"}, {"suite": CONFIG, "comment": "lax"}):
        jobs.use(PUSHED, package=SOURCE, **inputs)
    first, *others = comments(jobs)
    assert (first, len(others)) == (comment, 2)


def test_the_action_fails_by_the_word(jobs: Jobs) -> None:
    for name in ("inputs", "examples/strong_judges"):
        shutil.copytree(ROOT / name, jobs.folder / name)
    prompts = "--verdict=vanilla_norules\n--baseline=vanilla\n\n--one=violated\n"
    lost = jobs.use(PUSHED, package=SOURCE, check=TABLE, arguments=prompts)
    assert lost.code == pytest.ExitCode.TESTS_FAILED, lost.printed
    assert f"-m pip install {SOURCE}\n" in lost.printed
    [comment] = comments(jobs)
    assert comment.startswith(f"<!-- pytest-jrh: judge, {TABLE} -->")
    assert "FAIL: the judge misses 33 of 349 violations that it found before" in comment
    baseline = "--jrh-baseline=inputs/baselines/refund_agent.json"
    suite = {"package": SOURCE, "suite": CONFIG, "arguments": baseline}
    assert jobs.use(PUSHED, **suite).result == "success"
    assert "PASS: the judge is as good as before on 54 cases" in comments(jobs)[1]
    # A comment that cannot be written is said, and decides nothing.
    jobs.command("gh", "exit 1 #")
    unwritten = jobs.use(PUSHED, **suite)
    assert unwritten.result == "success"
    assert "::warning title=The comment is not written::" in unwritten.printed


@pytest.mark.parametrize(
    ("inputs", "code", "message"),
    [
        ({"package": SOURCE}, 4, "::error title=What to run?::"),
        ({"package": SOURCE, "suite": CONFIG, "check": TABLE}, 4, "::error title=What to run?"),
        ({"package": SOURCE, "check": "nowhere.csv"}, 4, "nowhere.csv: no such file"),
        ({"package": "", "check": TABLE}, 1, "say where pytest-jrh comes from"),
    ],
)
def test_a_mistake_is_red_and_the_comment_says_that_nothing_was_tested(
    jobs: Jobs, inputs: dict[str, str], code: int, message: str
) -> None:
    # What was there before is no report of this run.
    (jobs.folder / "judge-summary.md").write_text("PASS", "utf-8")
    ran = jobs.use(PUSHED, **inputs)
    assert ran.code == code
    assert message in ran.printed
    assert comments(jobs)[0].endswith(f"**The judge was not tested:** [the run]({RUN}) says why.\n")
    assert kept(jobs) == {"judge-mine": []}

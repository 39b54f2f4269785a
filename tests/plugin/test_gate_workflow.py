"""`examples/github/judge-gate.yml`, its steps run as they are written, on a pull request that
changes the judge's prompt, and on its next push; and those of the action beside it."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.plugin.workflow_jobs import Jobs
from tests.support.fork_server import python
from tests.unit.test_workflows import ACTION, COMMENTS, ROOT

CONFIG = "inputs/configs/refund_agent.yml"
RUN = "https://github.com/o/r/actions/runs/7"
LAX = "examples/prompt_change/refund_agent.yml"
TABLE = "examples/strong_judges/llmbar-gpt4.csv"
# GitHub as far as the workflow sees it: the comments of a pull request.
GH = """
import json, pathlib, subprocess, sys
comments = pathlib.Path(__file__).with_name("comments.json")
words = sys.argv[1:]
if "--paginate" in words:
    subprocess.run(["jq", "-r", words[words.index("--jq") + 1], str(comments)], check=True)
else:
    path = words[words.index("--field") + 1].removeprefix("body=@")
    body, bot = pathlib.Path(path).read_text("utf-8"), {"login": "github-actions[bot]"}
    known = json.loads(comments.read_text("utf-8"))
    address = words[words.index("--method") + 2]
    if words[words.index("--method") + 1] == "POST":
        assert address == "repos/o/r/issues/5/comments"
        known.append({"id": len(known) + 1, "body": body, "user": bot})
    else:
        number = int(address.removeprefix("repos/o/r/issues/comments/"))
        known[number - 1]["body"] = body
    comments.write_text(json.dumps(known), "utf-8")
"""

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "iconv", "jq"))), reason="needs bash, iconv and jq"
)


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A checkout of its branch, and the comments on it."""

    folder: Path
    jobs: Jobs

    def replay(self) -> tuple[int, str, Path]:
        """Run the job that replays; gives its exit code, its lines, and what it has kept."""
        step = self.jobs.step("replay", "Replay the recorded verdicts")
        done = self.jobs.run(step, self.folder, self._values(self.folder))
        kept = self.jobs.step("replay", "Keep the results")["with"]
        artifact = self.folder.parent / "job" / "results" / kept["name"]
        artifact.mkdir(parents=True)
        for path in kept["path"].split():
            shutil.copy(self.folder / path, artifact)
        return done.returncode, done.stdout, artifact

    def comments(self) -> list[str]:
        """Run the job that comments, and give all comments in the order in which they were made."""
        job = self.folder.parent / "job"
        step = self.jobs.step("comment", "Write the comment, or bring it up to date")
        posted = self.jobs.run(step, job, {"NUMBER": "5", **self._values(job)})
        assert posted.returncode == 0, posted.stderr
        known = json.loads((self.jobs.tools / "comments.json").read_text("utf-8"))
        return [comment["body"] for comment in known]

    def _values(self, folder: Path) -> dict[str, str]:
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(folder),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_RUN_ID": "7",
        }


def test_a_pull_request_has_an_annotation_and_one_comment_that_follows_it(tmp_path: Path) -> None:
    jobs = Jobs("judge-gate.yml", tmp_path / "bin")
    jobs.install(GH)
    # What a stranger writes is never changed, whatever it begins with.
    stranger = "<!-- pytest-jrh: judge gate --> me first"
    known = [{"id": 1, "body": stranger, "user": {"login": "mallory"}}]
    (jobs.tools / "comments.json").write_text(json.dumps(known), "utf-8")
    checkout = tmp_path / "checkout"
    for name in ("inputs", "examples/prompt_change"):
        shutil.copytree(ROOT / name, checkout / name)
    shutil.copy(ROOT / LAX, checkout / CONFIG)
    pull_request = PullRequest(checkout, jobs)
    code, printed, artifact = pull_request.replay()
    assert code == pytest.ExitCode.TESTS_FAILED
    [annotation] = [line for line in printed.splitlines() if line.startswith("::")]
    assert annotation.startswith("::error file=examples/prompt_change/judge.md,line=")
    first, comment = pull_request.comments()
    assert first == stranger
    assert "FAIL: the new prompt misses 6 of 25 violations that it found before" in comment
    assert f"[run]({RUN}) · [report]({RUN}#artifacts)" in comment
    (artifact / "judge-summary.md").write_text("PASS, after the next push", "utf-8")
    first, comment = pull_request.comments()
    assert first == stranger
    assert comment.endswith("PASS, after the next push")


def test_the_action_fails_by_the_word_and_keeps_one_comment(tmp_path: Path) -> None:
    jobs = Jobs(ACTION, tmp_path / "bin")
    jobs.install(GH)
    jobs.command("python", shlex.join(python()))
    comments = jobs.tools / "comments.json"
    comments.write_text("[]", "utf-8")
    checkout = tmp_path / "checkout"
    for name in ("inputs", "examples/strong_judges"):
        shutil.copytree(ROOT / name, checkout / name)

    def judged(suite: str, check: str, *arguments: str) -> tuple[int, str]:
        values = {"SUITE": suite, "CHECK": check, "ARGUMENTS": "\n".join([*arguments, ""])}
        done = jobs.run(jobs.step("action", "Run"), checkout, values)
        of_comment = {"NUMBER": "5", "GITHUB_REPOSITORY": "o/r", "MARKER": "<!-- a judge -->"}
        posted = jobs.run(jobs.step("action", COMMENTS), checkout, of_comment)
        assert posted.returncode == 0, posted.stderr
        return done.returncode, done.stdout

    prompts = ("--verdict=vanilla_norules", "--baseline=vanilla", "--one=violated")
    assert judged("", TABLE, *prompts)[0] == pytest.ExitCode.TESTS_FAILED
    [comment] = json.loads(comments.read_text("utf-8"))
    assert comment["body"].startswith("<!-- a judge -->")
    assert "FAIL: the judge misses 33 of 349 violations that it found before" in comment["body"]
    baseline = "--jrh-baseline=inputs/baselines/refund_agent.json"
    assert judged(CONFIG, "", baseline)[0] == pytest.ExitCode.OK
    [comment] = json.loads(comments.read_text("utf-8"))
    assert "PASS: the judge is as good as before on 54 cases" in comment["body"]
    assert (checkout / "judge-report.html").exists()
    code, printed = judged("", "")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert printed.startswith("::error title=Nothing to run::")
    # What was there before is no report of this run.
    assert json.loads(comments.read_text("utf-8")) == [comment]
    assert not (checkout / "judge-summary.md").exists()


def test_the_action_installs_nothing_that_nobody_has_named(tmp_path: Path) -> None:
    jobs = Jobs(ACTION, tmp_path / "bin")
    jobs.install(GH)
    jobs.command("python", "echo")
    step = jobs.step("action", "Install")
    nothing = jobs.run(step, tmp_path, {"PACKAGE": ""})
    assert nothing.returncode != 0
    assert "say where pytest-jrh comes from" in nothing.stderr
    source = "git+https://forge.example/o/r.git@0123"
    assert jobs.run(step, tmp_path, {"PACKAGE": source}).stdout == f"-m pip install {source}\n"

"""The scripts of the action that `examples/github/judge-gate.yml` uses on a pull request."""

import shutil
from pathlib import Path

import pytest

from tests.plugin.workflow_scripts import COMMIT, RUN, Ran, Shell, needs_shell
from tests.unit.test_workflows import ACTION, ROOT, read

CONFIG = "inputs/configs/refund_agent.yml"
LAX = "examples/prompt_change/refund_agent.yml"
TABLE = "examples/strong_judges/llmbar-gpt4.csv"
COMMENT = "Write the comment, or bring it up to date"
STRANGER = f"<!-- pytest-jrh: judge, {CONFIG} --> me first"
REPLAY = read("judge-gate.yml")["jobs"]["replay"]["steps"][-1]

pytestmark = needs_shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "checkout")
    shell.install(STRANGER)
    return shell


def comments(shell: Shell) -> list[str]:
    """The action's comments, in the order in which they were made."""
    stranger, *known = shell.known
    assert stranger["body"] == STRANGER
    return [comment["body"] for comment in known]


def comment(shell: Shell, of: str = CONFIG, name: str = "judge") -> Ran:
    marker = f"<!-- pytest-jrh: {name}, {of} -->"
    return shell.run(ACTION, COMMENT, NUMBER="5", COMMIT=COMMIT, MARKER=marker)


def test_a_pull_request_has_a_comment(shell: Shell) -> None:
    for name in ("inputs", "examples/prompt_change"):
        shutil.copytree(ROOT / name, shell.folder / name)
    shutil.copy(ROOT / LAX, shell.folder / CONFIG)
    replay = shell.test_suite(REPLAY)
    assert replay.code == pytest.ExitCode.TESTS_FAILED
    assert comment(shell).code == 0
    [text] = comments(shell)
    assert text.startswith(f"<!-- pytest-jrh: judge, {CONFIG} -->\n{COMMIT}\n\n")
    assert "FAIL: the new prompt misses 6 of 25 violations (24%) that it found before" in text
    assert f"[run]({RUN}) · [report]({RUN}#artifacts)" in text
    for file in ("judge-junit.xml", "judge-report.html"):
        assert (shell.folder / file).is_file()


def test_one_comment_follows_a_pull_request(shell: Shell) -> None:
    for word in ("FAIL", "PASS"):
        (shell.folder / "judge-summary.md").write_text(word, "utf-8")
        comment(shell)
        [text] = comments(shell)
        assert text.endswith(f"\n\n{word}")
    # Another suite, or another name, has a comment of its own.
    comment(shell, of="other.yml")
    comment(shell, name="lax")
    assert (len(comments(shell)), comments(shell)[0]) == (3, text)
    # One that cannot be written is said, and decides nothing.
    shell.command("gh", "exit 1 #")
    unwritten = comment(shell)
    assert unwritten.code == 0
    assert "::warning title=The comment is not written::" in unwritten.printed


def test_the_action_fails_by_the_word(shell: Shell) -> None:
    shutil.copytree(ROOT / "examples/strong_judges", shell.folder / "examples/strong_judges")
    prompts = "--verdict=vanilla_norules\n--baseline=vanilla\n\n--one=violated\n"
    lost = shell.run(ACTION, "Run", SUITE="", CHECK=TABLE, ARGUMENTS=prompts)
    assert lost.code == pytest.ExitCode.TESTS_FAILED, lost.printed
    comment(shell, of=TABLE)
    [text] = comments(shell)
    assert "FAIL: the judge misses 33 of 349 violations (9%) that it found before" in text
    shutil.copytree(ROOT / "inputs", shell.folder / "inputs")
    assert shell.test_suite(REPLAY).code == 0
    summary = (shell.folder / "judge-summary.md").read_text("utf-8")
    assert "PASS: no verdict changed: as good as before on 54 cases" in summary


@pytest.mark.parametrize(
    ("suite", "table", "message"),
    [
        ("", "", "::error title=What to run?::"),
        (CONFIG, TABLE, "::error title=What to run?"),
        ("", "nowhere.csv", "nowhere.csv: no such file"),
    ],
)
def test_a_mistake_is_red_and_said(shell: Shell, suite: str, table: str, message: str) -> None:
    ran = shell.run(ACTION, "Run", SUITE=suite, CHECK=table, ARGUMENTS="")
    assert ran.code == 4
    assert message in ran.printed
    comment(shell)
    assert comments(shell)[0].endswith(f"The judge was not tested:** [the job]({RUN}) says why.\n")


def test_what_is_installed_is_named(shell: Shell) -> None:
    source = "git+https://forge.example/o/r.git@0123"
    assert f"-m pip install {source}\n" in shell.run(ACTION, "Install", PACKAGE=source).printed
    unnamed = shell.run(ACTION, "Install", PACKAGE="")
    assert unnamed.code == 1
    assert "say where pytest-jrh comes from" in unnamed.printed

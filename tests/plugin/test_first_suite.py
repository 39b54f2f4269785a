"""A new user's way, word for word: `init`, record, replay, commit what is printed, clone, and
replay the clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from markdown_it import MarkdownIt

from pytest_jrh.__main__ import main
from tests.plugin.recorded import lenient_about_order_1002
from tests.support.fork_server import commands
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.suites import built_log, run, write_suite

ROOT = Path(__file__).parents[2]
CONFIG = "inputs/configs/support.yml"
BASELINE = "--jrh-baseline=inputs/baselines/support.json"
REJUDGE = f"--jrh-judge-record-mode=new_episodes {BASELINE}"
_LONGEST = 600.0
# What a user's machine may have set, and what would let a replay ask a model after all.
KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE")

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or shutil.which("bash") is None, reason="needs git, bash"
)


def shell(
    folder: Path, script: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script as a user would type it, line by line, stopping at the first that fails."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in KEYS and not name.startswith("GIT_")
    }
    environment = {
        **inherited,
        "PATH": os.pathsep.join(
            [str(commands(folder)), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        **(env or {}),
    }
    command = ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", script]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def readme_steps() -> list[str]:
    """The commands under the README's "Write your own suite", one line each."""
    return _steps(
        (ROOT / "README.md").read_text("utf-8").split("## Write your own suite")[1], indent=4
    )


def documented_steps() -> list[str]:
    """The commands in the list that docs/suite.md begins with, one line each."""
    return _steps((ROOT / "docs" / "suite.md").read_text("utf-8"), indent=8)


def _steps(text: str, *, indent: int) -> list[str]:
    section = text.split("\n## ", maxsplit=1)[0]
    return [line.strip() for line in section.splitlines() if re.match(rf" {{{indent}}}\S", line)]


def printed_steps(output: str) -> list[str]:
    return [
        line.strip()
        for line in output.split("What to do next:")[1].splitlines()
        if line.startswith(" " * 7)
    ]


def fill_in(rubrics: Path) -> None:
    entry = {
        "id": "polite",
        "instructions": "The assistant answers kindly and clearly. Being curt is a violation.",
    }
    rubrics.write_text(yaml.safe_dump([entry]), encoding="utf-8")


def outcomes(report: Path) -> dict[str, str]:
    """By test, the outcome that JUnit's properties carry."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        (outcome,) = [
            each.get("value", "") for each in case.iter("property") if each.get("name") == "outcome"
        ]
        found[f"{case.get('classname')} {case.get('name')}"] = outcome
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A repository with a log that its .gitignore leaves out, and the commands that `init` printed
    there."""
    folder = tmp_path_factory.mktemp("first") / "project"
    (folder / "logs").mkdir(parents=True)
    (folder / ".gitignore").write_text("/logs/\n")
    shutil.copyfile(built_log([run(1), run(2)]), folder / "logs" / "my_runs.eval")
    (init,) = [step for step in readme_steps() if "pytest_jrh init" in step]
    done = shell(folder, f"git init -q -b main .\n{init}")
    assert (done.returncode, done.stderr) == (0, "")
    return folder, printed_steps(done.stdout)


@pytest.mark.parametrize(
    "written", [readme_steps, documented_steps], ids=["README.md", "docs/suite.md"]
)
def test_the_documents_say_what_init_prints(
    project: tuple[Path, list[str]], written: Callable[[], list[str]]
) -> None:
    _, printed = project
    # Looking at the ids, and the next version of the judge, are no part of the README's way to a
    # commit.
    beside = ("--collect-only -q", REJUDGE)
    steps = [step for step in written() if not re.match(r"pip |python -m pytest_jrh init", step)]
    assert steps == [step for step in printed if not step.endswith(beside)]


@pytest.mark.timeout(2 * _LONGEST)
def test_what_init_says_to_commit_replays_in_a_clone(project: tuple[Path, list[str]]) -> None:
    folder, printed = project
    fill_in(folder / "inputs" / "data" / "support" / "rubrics.yml")
    # The last session of these is the one that writes the baseline.
    script = "\n".join(
        step for step in printed if not step.endswith(("--collect-only -q", "--jrh-plan", REJUDGE))
    )
    with ModelServer() as server:
        # The key is exported by the printed commands themselves.
        env = {"OPENAI_BASE_URL": server.base_url, "PYTEST_ADDOPTS": "--junitxml=outputs/junit.xml"}
        done = shell(folder, script, env)
    assert done.returncode == 0, done.stdout + done.stderr
    recorded = outcomes(folder / "outputs" / "junit.xml")
    assert list(recorded.values()) == ["agree"] * 4
    committed = shell(
        folder,
        "git -c user.name=me -c user.email=me@localhost commit -qm suite\ngit clone -q . ../clone",
    )
    assert committed.returncode == 0, committed.stderr
    assert shell(folder, "git status --porcelain --untracked-files=all").stdout == ""

    clone = folder.parent / "clone"
    for options in (BASELINE, "--jrh-frozen"):
        replayed = shell(
            clone,
            f"pytest --jrh-config={CONFIG} --jrh-record-mode=none --junitxml=junit.xml {options}",
        )
        assert replayed.returncode == 0, replayed.stdout
        assert "0 calls" in replayed.stdout
        assert outcomes(clone / "junit.xml") == recorded


def fences(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands of each fenced block of a document, with the lines to look for below it."""
    commands = ""
    for token in MarkdownIt().parse(path.read_text("utf-8")):
        if token.type != "fence":
            continue
        if token.info == "bash":
            commands = token.content
        else:
            yield commands, token.content.splitlines()


@pytest.mark.timeout(2 * _LONGEST)
def test_an_assistant_comes_from_a_log_to_a_committed_suite(tmp_path: Path) -> None:
    """docs/assistants.md, followed word for word."""
    page = ROOT / "docs" / "assistants.md"
    folder = tmp_path / "project"
    (folder / "logs").mkdir(parents=True)
    (folder / ".gitignore").write_text("/logs/\n")
    shutil.copyfile(built_log([run(1), run(2)]), folder / "logs" / "my_runs.eval")
    assert shell(folder, "git init -q -b main .").returncode == 0
    author = {"NAME": "me", "EMAIL": "me@localhost"}
    asked = []
    with ModelServer() as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test"}
        for who in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{who}_{key}": value for key, value in author.items()}
        for commands, expected in fences(page):
            done = shell(folder, commands, env)
            assert done.returncode == 0, done.stdout + done.stderr
            printed = iter(done.stdout.splitlines())
            for line in expected:
                pattern = re.compile(re.escape(line).replace(r"\.\.\.", ".*"))
                assert any(map(pattern.fullmatch, printed)), (line, done.stdout)
            asked.append(len(server.requests))
    # Planning asks nothing, and once recorded nothing is asked again.
    assert asked == [0, 0, 0, *[asked[3]] * 3]
    assert asked[3]
    assert shell(folder, "git status --porcelain --untracked-files=all").stdout == ""


def test_the_page_for_assistants_has_the_commands_of_the_others() -> None:
    text = (ROOT / "docs" / "assistants.md").read_text("utf-8")
    assert len(text.splitlines()) < 120
    for step in readme_steps():
        assert step in text or step.startswith("export ")


@pytest.mark.timeout(2 * _LONGEST)
def test_what_is_wrong_when_a_suite_is_recorded_is_accepted_and_stays_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    log = built_log([run(1), run(2)])
    assert main(["init", "support", "--log", str(log)]) == 0
    capsys.readouterr()
    fill_in(tmp_path / "inputs" / "data" / "support" / "rubrics.yml")
    pytest_command = f"pytest --jrh-config={CONFIG} -p no:cacheprovider"
    with ModelServer(override(Obedient(), judge=lenient_about_order_1002)) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test"}
        recorded = shell(tmp_path, f"{pytest_command} --jrh-record-mode=once", env)
    assert "1 failed, 3 passed" in recorded.stdout, recorded.stdout + recorded.stderr
    first = shell(tmp_path, f"{pytest_command} {BASELINE} --jrh-update-baseline")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "accepted into the baseline, though wrong (1):" in first.stdout
    again = shell(tmp_path, f"{pytest_command} {BASELINE}")
    assert again.returncode == 0, again.stdout
    assert "3 passed, 1 xfailed" in again.stdout


def test_the_projects_own_tests_run_beside_a_suite_of_the_ini_file(
    tmp_path: Path,
) -> None:
    suite = write_suite(tmp_path, runs=1, tests=["agent_positives"])
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\njrh_config = {suite.config.relative_to(tmp_path)}\n", encoding="utf-8"
    )
    (tmp_path / "more").mkdir()
    for name in ("test_own.py", "more/test_more.py"):
        (tmp_path / name).write_text("def test_own(): pass\n", encoding="utf-8")
    with ModelServer() as server:
        recorded = shell(tmp_path, "pytest --jrh-record-mode=once", server.environment)
    assert "3 passed" in recorded.stdout, recorded.stdout
    assert "1 passed" in shell(tmp_path, "pytest more").stdout

"""A new user's way, word for word: `init`, record, replay, commit what is printed, clone, and
replay the clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from pytest_jrh.__main__ import main
from tests.plugin.recorded import lenient_about_order_1002
from tests.support.fork_server import commands
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.suites import built_log, run, write_suite

ROOT = Path(__file__).parents[2]
INIT = "python -m pytest_jrh init support --log logs/my_runs.eval"
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
    """The commands under the README's "A suite in six commands" that lead to a baseline."""
    text = (ROOT / "README.md").read_text("utf-8").partition("## A suite in six commands")[2]
    section = text.partition("**Now break the prompt")[0]
    return re.findall(r"^\$ (.+)$", section, re.MULTILINE)


def documented_steps() -> list[str]:
    """The commands of docs/suite.md that `init` prints, too, as far as the commit."""
    text = (ROOT / "docs" / "suite.md").read_text("utf-8").partition("A clone has to replay")[0]
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    printed_too = r"pytest |python -m pytest_jrh init|echo /outputs/|git add "
    return [line for line in "".join(blocks).splitlines() if re.match(printed_too, line)]


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
    done = shell(folder, f"git init -q -b main .\n{INIT}")
    assert (done.returncode, done.stderr) == (0, "")
    return folder, printed_steps(done.stdout)


def test_the_documents_say_what_init_prints(project: tuple[Path, list[str]]) -> None:
    _, printed = project
    # The key is in the environment, and the next version of the judge comes after the commit.
    steps = [
        step for step in printed if step != "export OPENAI_API_KEY=..." and REJUDGE not in step
    ]
    assert documented_steps() == [INIT, *steps]
    # The README has the shortest way to a red gate.
    assert readme_steps()[0] == INIT
    assert set(readme_steps()[1:]) < set(steps)


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

"""A new user's way, word for word: the documents have the commands that `init` prints."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.fork_server import commands
from tests.support.suites import built_log, run

ROOT = Path(__file__).parents[2]
INIT = "python -m pytest_jrh init support --log logs/my_runs.eval"
BASELINE = "--jrh-baseline=inputs/baselines/support.json"
REJUDGE = f"--jrh-judge-record-mode=new_episodes {BASELINE}"
# What a user's machine may have set, and what would let a replay ask a model after all.
KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE")

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or shutil.which("bash") is None, reason="needs git, bash"
)


def shell(
    folder: Path, script: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script as a user would type it, line by line, stopping at the first that fails."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in KEYS and not name.startswith("GIT_")
    }
    path = (str(commands(folder)), str(Path(sys.executable).parent), os.environ["PATH"])
    ours = {"PATH": os.pathsep.join(path), "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**kept, **ours, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def documented_steps() -> list[str]:
    """The commands of docs/suite.md that `init` prints, too, as far as the commit."""
    text = (ROOT / "docs" / "suite.md").read_text("utf-8").partition("Check that a clone")[0]
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    printed_too = r"pytest |python -m pytest_jrh init|echo /outputs/|git add "
    return [line for line in "".join(blocks).splitlines() if re.match(printed_too, line)]


def test_the_documents_say_what_init_prints(tmp_path: Path) -> None:
    """In a repository with a log that its .gitignore leaves out."""
    folder = tmp_path / "project"
    (folder / "logs").mkdir(parents=True)
    (folder / ".gitignore").write_text("/logs/\n")
    shutil.copyfile(built_log([run(1), run(2)]), folder / "logs" / "my_runs.eval")
    done = shell(folder, f"git init -q -b main .\n{INIT}")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.split("What to do next:")[1].splitlines()
    shown = [line.strip() for line in lines if line.startswith(" " * 7)]
    # The key is in the environment, and the next version of the judge comes after the commit.
    steps = [step for step in shown if step != "export OPENAI_API_KEY=..." and REJUDGE not in step]
    assert documented_steps() == [INIT, *steps]

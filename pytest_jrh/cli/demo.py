"""`python -m pytest_jrh demo`: a recorded suite of answers for those who have no clone; a session
that passes, and one of a changed prompt, which fails.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest_jrh
from pytest_jrh.core import InputError
from pytest_jrh.core.files import atomic_write, exists

EXAMPLE = "examples/answers"
FILES = (
    "answers.csv",
    "answers.yml",
    "baseline.json",
    "cassettes/labels/by_policy/cassette.yaml",
    "changed/answers.yml",
    "changed/judge.md",
    "judge.md",
    "rubrics.yml",
)
"""What the wheel has of the example, below `pytest_jrh/demo`."""

_ABOUT = """
The suite has 25 answers of a support bot with labels by people, and the judge agrees with all of
them: the first session passes. Then the prompt was made kinder, and the judge misses 6 of the 12
violations that it found before: the second session fails, as in a pull request. No model was asked:
both sessions replay recordings. The authors of this example wrote its labels and verdicts.

See why, case by case:
  {folder}/outputs/examples/answers/changed/answers/report.html
The two prompts:
  {folder}/examples/answers/judge.md
  {folder}/examples/answers/changed/judge.md

Next, check your own table of labels and verdicts, or make a suite for CI of a table of answers:
  python -m pytest_jrh check TABLE.csv
  python -m pytest_jrh init NAME --log TABLE.csv --label COLUMN --rubric 'ID: TEXT'
"""


def run_demo(options: Namespace) -> int:
    """Write the example into a folder and run both sessions there.

    Raises `InputError` where the folder has one already.
    """
    folder: Path = options.folder
    if exists(folder / EXAMPLE):
        raise InputError("already exists", folder / EXAMPLE, hint="name another folder")
    package = Path(pytest_jrh.__file__).parent
    source = package / "demo"
    if not source.is_dir():
        # A clone has the example itself.
        source = package.parent
    for file in FILES:
        name = f"{EXAMPLE}/{file}"
        atomic_write(folder / name, (source / name).read_bytes())
    # Without it pytest would look for the settings of a project above.
    atomic_write(folder / "pytest.ini", "[pytest]\n")
    for config in ("answers.yml", "changed/answers.yml"):
        command = [
            "pytest",
            f"--jrh-config={EXAMPLE}/{config}",
            f"--jrh-baseline={EXAMPLE}/baseline.json",
        ]
        sys.stdout.write(f"$ cd {shlex.quote(str(folder))} && {shlex.join(command)}\n")
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", *command], cwd=folder, check=False)  # noqa: S603 - without a shell
    sys.stdout.write(_ABOUT.format(folder=folder))
    return 0

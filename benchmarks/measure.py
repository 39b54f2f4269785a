"""Running a command and saying what it cost."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall seconds, peak resident megabytes of the process and its children's largest, and what it
    printed."""

    seconds: float
    peak_mb: float
    output: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a figure, its yardstick measured in the same run, and the limit it is
    held to."""

    what: str
    figure: str
    yardstick: str
    ratio: float
    limit: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the limit holds; empty where there is none."""
        if self.limit is None:
            return ""
        return "holds" if self.ratio <= self.limit else "NOT MET"


# The peak is read by a small parent of its own, since a process only learns its children's maximum.
_WRAPPER = """
import os, resource, subprocess, sys, time
started = time.perf_counter()
code = subprocess.call(sys.argv[2:])
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
with open(sys.argv[1], "w") as file:
    file.write(f"{seconds} {peak}")
sys.exit(code)
"""


def run(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None
) -> Cost:
    """Run a command in a folder; raises `RuntimeError` with its output where it fails."""
    note = folder / f".cost-{os.getpid()}"
    wrapped = [sys.executable, "-c", _WRAPPER, str(note), *command]
    done = subprocess.run(
        wrapped,
        cwd=folder,
        # As installed packages are: with their bytecode at hand, and output in blocks, whatever is
        # set here.
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONUNBUFFERED": "",
            **(environment or {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}"
        )
    seconds, peak = (float(part) for part in note.read_text().split())
    note.unlink()
    return Cost(seconds, peak, done.stdout)


def pytest_command(*arguments: str) -> list[str]:
    """A quiet pytest without a cache; `-p` options of the caller come last and win."""
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]


# No plugin of the environment is loaded, nor looked for, but those that are named: for a yardstick
# none.
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@dataclass(frozen=True, slots=True)
class Work:
    """A command in a folder, and the variables that it is run with."""

    folder: Path
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def ours(folder: Path, *arguments: str) -> Work:
    """pytest with no plugin but ours."""
    environment = {**ALONE, "PYTEST_PLUGINS": "pytest_jrh.plugin"}
    return Work(folder, tuple(pytest_command(*arguments)), environment)


def plain(folder: Path, *arguments: str) -> Work:
    """pytest with no plugin at all."""
    return Work(folder, tuple(pytest_command(*arguments)), ALONE)


def in_turns(times: int, *works: Work) -> list[Cost]:
    """The quickest of several runs of each, taken in turns: noise only ever adds, and comes to all
    alike."""
    costs: list[list[Cost]] = [[] for _ in works]
    for _ in range(times):
        for own, work in zip(costs, works, strict=True):
            own.append(run(work.command, work.folder, environment=work.environment))
    return [min(own, key=lambda cost: cost.seconds) for own in costs]


def against(
    what: str, mine: Cost, theirs: Cost, yardstick: str, limit: float | None = None
) -> Line:
    """A cost beside that of a yardstick: seconds decide."""
    return Line(
        what,
        f"{mine.seconds:.2f} s, {mine.peak_mb:.0f} MB",
        f"{theirs.seconds:.2f} s, {theirs.peak_mb:.0f} MB: {yardstick}",
        mine.seconds / theirs.seconds,
        limit,
    )


def origin() -> str:
    """The commit that is measured, when, and where."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return (
        f"At {commit.stdout.strip()}, {today}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}:"
    )


def table(lines: Sequence[Line]) -> str:
    """The lines as a Markdown table."""
    rows = [("what", "figure", "yardstick, same run", "ratio", "limit", "")]
    rows += [
        (
            line.what,
            line.figure,
            line.yardstick,
            f"{line.ratio:.2f}",
            "" if line.limit is None else f"{line.limit:.3g}",
            line.verdict,
        )
        for line in lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)

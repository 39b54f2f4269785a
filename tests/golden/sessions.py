"""Eleven replayed commands, run in a copy of the project, and all that they print and write."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.plugin.recorded import environment
from tests.support.fork_server import python

ROOT = Path(__file__).parents[2]
DEMO = "inputs/configs/refund_agent.yml"
ORDINAL = "inputs/configs/refund_agent_ordinal.yml"
REPORTS = (
    "--jrh-report=reports/report.html",
    "--jrh-summary=reports/summary.md",
    "--jrh-eval-log=reports/judged.eval",
    "--junitxml=reports/junit.xml",
)


@dataclass(frozen=True, slots=True)
class Session:
    """A command, or several of which the last one counts.

    Attributes:
        name: of the snapshots.
        commands: the arguments of `python -m`, in the order in which they are run.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]


def _suite(*arguments: str) -> tuple[str, ...]:
    """A run of pytest in which no version of a library is printed by pytest itself."""
    return ("pytest", "-p", "no:cacheprovider", *arguments)


_BASELINE = (f"--jrh-config={DEMO}", f"--jrh-config={ORDINAL}", "--jrh-baseline=reports/base.json")
_HALVES = ("angry or damaged or double", "not (angry or damaged or double)")

SESSIONS = (
    Session("demo", (_suite(*_BASELINE, "--jrh-update-baseline", *REPORTS),)),
    Session(
        "demo_again",
        (_suite(*_BASELINE, "--jrh-update-baseline"), _suite(*_BASELINE, *REPORTS)),
    ),
    Session("ordinal", (_suite(f"--jrh-config={ORDINAL}", "-v", *REPORTS),)),
    Session(
        "prompt_change",
        (
            _suite(
                "--jrh-config=examples/prompt_change/refund_agent.yml",
                "--jrh-baseline=inputs/baselines/refund_agent.json",
                *REPORTS,
            ),
        ),
    ),
    Session("probes", (_suite("--jrh-config=examples/probes/probes.yml", *REPORTS),)),
    Session(
        "python_judge", (_suite("--jrh-config=examples/python_judge/refund_agent.yml", *REPORTS),)
    ),
    Session("http_judge", (_suite("--jrh-config=examples/http_judge/refund_agent.yml", *REPORTS),)),
    Session(
        "inspect_scorer",
        (
            _suite(
                "--jrh-config=examples/inspect_scorer/refund_agent.yml",
                # Inspect calls tenacity in a way of before.
                "-Wignore::DeprecationWarning",
                *REPORTS,
            ),
        ),
    ),
    Session(
        "conversations",
        (_suite("--jrh-config=examples/conversations/conversations.yml", "--tb=short", *REPORTS),),
    ),
    Session("plan", (_suite(f"--jrh-config={DEMO}", f"--jrh-config={ORDINAL}", "--jrh-plan"),)),
    Session(
        "merge",
        (
            *(
                _suite(
                    "--jrh-config=examples/prompt_change/refund_agent.yml",
                    "-k",
                    selection,
                    "-o",
                    "jrh_record_mode=none",
                )
                for selection in _HALVES
            ),
            (
                "pytest_jrh",
                "merge",
                "--jrh-config=examples/prompt_change/refund_agent.yml",
                "--jrh-baseline=inputs/baselines/refund_agent.json",
                *REPORTS[:3],
                "shard0",
                "shard1",
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the last command of a session left: exit code and output, and all files by path."""

    printed: str
    files: dict[str, bytes]

    def digests(self) -> str:
        """A line for each file: the beginning of its SHA-256, its size in bytes, its path."""
        return "".join(
            f"{hashlib.sha256(content).hexdigest()[:16]} {len(content):>8} {path}\n"
            for path, content in sorted(self.files.items())
        )


def run(session: Session, folder: Path) -> Outcome:
    """Run a session in an empty folder, and leave its masked files below `folder/masked`."""
    project = folder / "project"
    for name in ("inputs", "examples"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "reports").mkdir()
    # How many progress lines a session writes depends on how fast the machine is.
    (project / "no_progress.py").write_text(
        "from pytest_jrh.plugin import progress\nprogress.INTERVAL = float('inf')\n"
    )
    before = {path: path.read_bytes() for path in _files(project)}
    for number, command in enumerate(session.commands):
        done = subprocess.run(
            [*python(), "-m", *command],
            cwd=project,
            env=environment({"COLUMNS": "80", "PYTEST_PLUGINS": "no_progress"}),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if session.name == "merge" and number < len(_HALVES):
            (project / "outputs").rename(project / f"shard{number}")
    written: dict[str, bytes] = {}
    for path in _files(project):
        if path not in before or before[path] != path.read_bytes():
            written.update(_contents(path, project))
    masked = {name: mask(content, project) for name, content in written.items()}
    for name, content in masked.items():
        kept = folder / "masked" / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(content)
    printed = f"{done.stdout}{done.stderr}exit code {done.returncode}\n"
    return Outcome(mask(printed.encode(), project).decode(), masked)


def _files(project: Path) -> list[Path]:
    return sorted(
        path for path in project.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


def _contents(path: Path, project: Path) -> Iterator[tuple[str, bytes]]:
    """A file by its path in the project; a zip archive, as an Inspect log is, by its members."""
    name = path.relative_to(project).as_posix()
    if path.suffix != ".eval":
        yield name, path.read_bytes()
        return
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            yield f"{name}/{member}", archive.read(member)


MASKS = tuple(
    (re.compile(pattern.encode()), replacement.encode())
    for pattern, replacement in (
        (r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d| UTC)?)?", "DATE"),
        # Durations, of sessions and of cases.
        (r"(?<![\w.$-])\d+\.\d+ ?s\b", "SECONDS"),
        (r"\bin SECONDS( \(\d+:\d\d:\d\d\))?", "in SECONDS"),
        (r'\btime="[\d.]+"', 'time="SECONDS"'),
        (r'"(seconds|working_time|total_time|duration)": ?[\d.e-]+', r'"\1": SECONDS'),
        (r'hostname="[^"]*"', 'hostname="HOST"'),
        # Rules of equals signs and hyphens fill a line beside a text of any length.
        (r"(?m)^[=-]{2,} (.*?) [=-]{2,}$", r"== \1 =="),
        # Versions of libraries, and of Python.
        (
            r"\b(pytest-jrh|pytest_jrh|litellm|inspect\\?_ai|inspect-ai|xdist|pluggy|pytest|Python)"
            r"[ -]v?\d[\w.]*",
            r"\1 VERSION",
        ),
        (r'"(pytest-jrh|pytest_jrh|litellm|inspect_ai)": ?"\d[^"]*"', r'"\1": "VERSION"'),
        (r" -- \S+/python\S*", " -- PYTHON"),
        (r"(?m)^hypothesis profile .*$", "hypothesis profile NAME"),
        (r"(?m)^plugins: .*(\n .*)*$", "plugins: NAMES"),
        # Ids that Inspect draws for a log, its messages and events.
        (r'"(eval_id|run_id|task_id|uuid|eval_set_id)": ?"[\w-]{22}"', r'"\1": "RANDOM"'),
    )
)


def mask(content: bytes, project: Path) -> bytes:
    """Take out what differs from run to run: dates, seconds, versions, and where the project is."""
    content = content.replace(str(project).encode(), b"PROJECT")
    for pattern, replacement in MASKS:
        content = pattern.sub(replacement, content)
    return content

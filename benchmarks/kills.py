"""Kill a recording run at random moments, resume it, and see that nothing is lost or paid for
twice.

    python -m benchmarks.kills [--times 50] [--seed 8234]

Each round records a fresh suite (4 runs x 2 tests), kills pytest at a random moment between the
first answer and the last, and resumes. The resumed run must end with the outcomes of an unkilled
one, every file must parse, and no request whose answer had reached the disk may be sent again. Each
pytest is a process of its own, forked from one that has imported the heavy libraries, so that a
round takes seconds less. Needs a system that can fork.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_jrh.llm.transport import litellm
from tests.support.exchange import body_digest
from tests.support.server_process import ServerProcess, server_process
from tests.support.suites import SuiteFiles, write_suite

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DELAY = 0.02
_HEAVY = ("litellm", "openai", "anyio", "filelock", "inspect_ai")


def main() -> int:
    """Run the rounds; exit 1 with what went wrong in the first bad one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=8234)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    litellm()
    began, kept, lost = time.monotonic(), 0, 0
    with (
        tempfile.TemporaryDirectory() as name,
        server_process(Path(name) / "calls.jsonl", delay=_DELAY) as server,
    ):
        whole = _suite(Path(name) / "whole")
        watch = Watch(server)
        expected = _finish(_start(whole, server), whole)
        calls = len(watch.events("asked"))
        _import_once(whole)
        for number in range(1, options.times + 1):
            after, later = chance.randrange(1, calls), chance.uniform(0, 2 * _DELAY)
            done = _round(Path(name) / f"round-{number}", server, after, later, expected)
            kept, lost = kept + done.on_disk, lost + done.asked_again
            said = (
                done.complaint
                or f"{done.on_disk} calls on disk, {done.asked_again} in flight asked again"
            )
            print(
                f"{number}: killed {later:.3f} s after answer {after} of {calls}: {said}",
                flush=True,
            )
            if done.complaint:
                return 1
    print(
        f"{options.times} kills, seed {options.seed}, {time.monotonic() - began:.0f} s: every "
        f"resume ended as an unkilled run; of {kept} calls on disk none was sent twice, {lost} "
        "that were in flight were."
    )
    return 0


@dataclass(frozen=True, slots=True)
class Done:
    """What one round came to: calls on disk at the kill, calls in flight asked again, and what was
    wrong."""

    on_disk: int
    asked_again: int
    complaint: str = ""


class Watch:
    """A server's log from now on."""

    def __init__(self, server: ServerProcess) -> None:
        self._file = server.log.open("rb")
        self._file.seek(0, os.SEEK_END)
        self._half = b""
        self._events: list[dict[str, Any]] = []

    def events(self, event: str) -> list[dict[str, Any]]:
        """The events of one kind so far."""
        *lines, self._half = (self._half + self._file.read()).split(b"\n")
        self._events += map(json.loads, lines)
        return [line for line in self._events if line["event"] == event]


def _round(
    folder: Path, server: ServerProcess, after: int, later: float, expected: list[str]
) -> Done:
    suite, watch = _suite(folder), Watch(server)
    killed = _start(suite, server)
    while len(watch.events("answered")) < after and not _has_ended(killed):
        time.sleep(0.001)
    time.sleep(later)
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    on_disk = _recorded(suite)
    outcomes = _finish(_start(suite, server), suite)
    asked = Counter(event["digest"] for event in watch.events("asked"))
    twice = {digest for digest, times in asked.items() if times > 1}
    again = len(twice & on_disk)
    complaint = f"{again} calls that were on disk were made again" if again else ""
    if outcomes != expected:
        complaint = f"other outcomes:\n{_output(suite).read_text()[-3000:]}"
    return Done(len(on_disk), len(twice - on_disk), complaint)


def _suite(folder: Path) -> SuiteFiles:
    # One rubric: the loopback model edits alike for every rubric, and so would make different cases
    # ask the same.
    return write_suite(folder, runs=4)


def _import_once(suite: SuiteFiles) -> None:
    """Import what a run has imported while it went on, so that later ones are forked with it."""
    for name in _modules(suite).read_text(encoding="utf-8").split():
        if name.partition(".")[0] in _HEAVY:
            importlib.import_module(name)


def _start(suite: SuiteFiles, server: ServerProcess) -> int:
    """Record in a process of its own; what it prints goes into a file."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        os.chdir(suite.folder)
        os.environ.update(server.environment)
        output = os.open(_output(suite), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        code = pytest.main(
            [
                "-p",
                "pytest_jrh.plugin",
                suite.option,
                "-rA",
                "-p",
                "no:cacheprovider",
                "--jrh-record-mode=once",
            ]
        )
        _modules(suite).write_text("\n".join(sorted(sys.modules)), encoding="utf-8")
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _has_ended(process: int) -> bool:
    # Asked so that the process still has to be waited for, and its id is no one else's yet.
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _finish(process: int, suite: SuiteFiles) -> list[str]:
    """Wait for a run to end, and read its outcomes."""
    os.waitpid(process, 0)
    lines = _output(suite).read_text(encoding="utf-8").splitlines()
    return sorted(
        line for line in lines if line.startswith(("PASSED ", "FAILED ", "ERROR ", "SKIPPED "))
    )


def _output(suite: SuiteFiles) -> Path:
    return suite.folder / "output.txt"


def _modules(suite: SuiteFiles) -> Path:
    return suite.folder / "modules.txt"


def _recorded(suite: SuiteFiles) -> set[str]:
    """The digests of the requests whose answers are on disk; raises where a file is not whole."""
    digests = set()
    for path in suite.cassettes.rglob("*.yaml"):
        data: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
        for interaction in data["interactions"]:
            digests.add(body_digest(json.loads(interaction["request"]["body"])))
    return digests


if __name__ == "__main__":
    sys.exit(main())

"""Kill a recording run at random moments, resume it, and see that nothing is lost or paid for twice.

    python -m benchmarks.kills [--times 50] [--seed 8234]

Each round records a fresh suite (4 runs x 2 tests), kills pytest after a random number of answers,
and resumes. The resumed run must end with the outcomes of an unkilled one, every file must parse, and no
request whose answer had reached the disk may be sent again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from tests.support.exchange import body_digest
from tests.support.server_process import ServerProcess, server_process
from tests.support.suites import SuiteFiles, write_suite

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def main() -> int:
    """Run the rounds; exit 1 with what went wrong in the first bad one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=8234)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with server_process(folder / "whole.jsonl", delay=0.02) as server:
            whole = _suite(folder / "whole")
            expected = _outcomes(_record(whole, server))
            calls = len(server.events("asked"))
        for number in range(options.times):
            after = chance.randrange(1, calls)
            complaint = _round(folder / f"round-{number}", after, expected)
            print(
                f"{number + 1}: killed after {after} of {calls} answers: {complaint or 'as an unkilled run'}",
                flush=True,
            )
            if complaint:
                return 1
    print(f"{options.times} kills, seed {options.seed}: every resume ended as an unkilled run.")
    return 0


def _round(folder: Path, after: int, expected: list[str]) -> str | None:
    folder.mkdir()
    with server_process(folder / "calls.jsonl", delay=0.02) as server:
        suite = _suite(folder / "suite")
        with _start(suite, server) as killed:
            while len(server.events("answered")) < after and killed.poll() is None:
                time.sleep(0.002)
            os.kill(killed.pid, signal.SIGKILL)
            killed.communicate()
        on_disk = _recorded(suite)
        resumed = _record(suite, server)
        asked = Counter(event["digest"] for event in server.events("asked"))
    if _outcomes(resumed) != expected:
        return f"other outcomes:\n{resumed[-3000:]}"
    again = [digest for digest in on_disk if asked[digest] > 1]
    return f"{len(again)} calls that were on disk were made again" if again else None


def _suite(folder: Path) -> SuiteFiles:
    # One rubric: the loopback model edits alike for every rubric, and so would make different cases ask the same.
    return write_suite(folder, runs=4)


def _start(suite: SuiteFiles, server: ServerProcess) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", suite.option, "-rA", "-p", "no:cacheprovider", "--jrh-record-mode=once"]
    return subprocess.Popen(
        command,
        cwd=suite.folder,
        env={**os.environ, **server.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _record(suite: SuiteFiles, server: ServerProcess) -> str:
    with _start(suite, server) as process:
        return process.communicate()[0]


def _outcomes(output: str) -> list[str]:
    return sorted(line for line in output.splitlines() if line.startswith(("PASSED ", "FAILED ", "ERROR ", "SKIPPED ")))


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

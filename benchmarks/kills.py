"""Kill a recording run at random moments, resume it, and see that nothing is lost or paid for
twice.

    python -m benchmarks.kills [--times 50] [--seed 8234]

Each round records a fresh suite (4 runs x 2 tests), kills pytest at a random moment between the
first answer and the last, and resumes. The resumed run must end with the outcomes of an unkilled
one, every file must parse, and no request whose answer had reached the disk may be sent again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from benchmarks.measure import ALONE, pytest_command
from tests.support.exchange import body_digest
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, write_suite

_DELAY = 0.02
_OUTCOMES = ("PASSED ", "FAILED ", "ERROR ", "SKIPPED ")


def main() -> int:
    """Run the rounds; exit 1 with what went wrong in the first bad one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=8234)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        unkilled = Path(name, "unkilled")
        with ModelServer(delay=_DELAY) as server:
            expected = _outcomes(_start(_suite(unkilled), server))
            calls = server.count()
        for number in range(1, options.times + 1):
            after, later = chance.randrange(1, calls), chance.uniform(0, 2 * _DELAY)
            folder = Path(name, f"round-{number}")
            with ModelServer(delay=_DELAY) as server:
                said, is_good = _round(_suite(folder), server, after, later, expected)
            said = f"killed {later:.3f} s after answer {after} of {calls}: {said}"
            print(f"{number}: {said}", flush=True)
            if not is_good:
                return 1
    print(f"{options.times} kills, seed {options.seed}: every resume ended as an unkilled run.")
    return 0


def _round(
    suite: SuiteFiles, server: ModelServer, after: int, later: float, expected: list[str]
) -> tuple[str, bool]:
    """Kill one recording and resume it: what is to be said of it, and whether all is well."""
    killed = _start(suite, server)
    while server.count(answered=True) < after and killed.poll() is None:
        time.sleep(0.001)
    time.sleep(later)
    killed.kill()
    killed.communicate()
    on_disk = _recorded(suite)
    outcomes = _outcomes(_start(suite, server))
    asked = Counter(request.digest for request in server.requests)
    twice = {digest for digest, times in asked.items() if times > 1}
    if outcomes != expected:
        return f"other outcomes: {outcomes}", False
    if twice & on_disk:
        return f"{len(twice & on_disk)} calls that were on disk were made again", False
    return f"{len(on_disk)} calls on disk, {len(twice)} in flight asked again", True


def _suite(folder: Path) -> SuiteFiles:
    # One rubric: the loopback model edits alike for every rubric, and so would make different cases
    # ask the same.
    return write_suite(folder, runs=4)


def _start(suite: SuiteFiles, server: ModelServer) -> subprocess.Popen[str]:
    return subprocess.Popen(
        pytest_command(suite.option, "-rA", "--jrh-record-mode=once"),
        cwd=suite.folder,
        env={**os.environ, **server.environment, **ALONE, "PYTEST_PLUGINS": "pytest_jrh.plugin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _outcomes(process: subprocess.Popen[str]) -> list[str]:
    output, _ = process.communicate()
    return sorted(line for line in output.splitlines() if line.startswith(_OUTCOMES))


def _recorded(suite: SuiteFiles) -> set[str]:
    """The digests of the requests whose answers are on disk; raises where a file is not whole."""
    digests = set()
    for path in suite.cassettes.rglob("*.yaml"):
        data: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        for interaction in data["interactions"]:
            digests.add(body_digest(json.loads(interaction["request"]["body"])))
    return digests


if __name__ == "__main__":
    sys.exit(main())

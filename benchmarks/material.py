"""The suites that the benchmarks run on: made once, kept in `benchmarks/.cache`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks.measure import pytest_command, run
from pytest_jrh.llm.calls import digest, stable_schema
from pytest_jrh.recording.cassettes import read
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, write_suite
from tests.support.suites import run as run_of_log

CACHE = Path(__file__).resolve().parent / ".cache"
CASES_FILE = Path("outputs", "cases", "agent_perturbations.jsonl")
# The cases of both tests in one file, as a frozen suite needs them.
_ONE_FOLDER = {"test_agent_perturbation_config": {"output": {"dir": str(CASES_FILE.parent)}}}
_RECORDED_RUN = 7_351_912_648
"""The number of the run that is recorded: so long that no digest holds it by chance."""
_FIRST_ORDER = 1_000
"""The order of run N of a log is this one and N."""


def recorded(cases: int) -> SuiteFiles:
    """A suite with so many cases, half of either test, and every call recorded.

    One run is recorded from a loopback model; the files of all others differ from its own in the
    numbers of the run and of its order, and in the digests of what was asked. Where a prompt of
    ours has changed since, the replay ends unrecorded: remove the cache then.
    """
    folder = CACHE / f"replay-{cases}"
    files = SuiteFiles(folder, folder / "inputs" / "configs" / "tiny.yml", "tiny")
    done = folder / "recorded"
    if done.exists():
        return files
    shutil.rmtree(folder, ignore_errors=True)
    write_suite(folder, overrides=_ONE_FOLDER, runs=cases // 2)
    one_run = _recorded_run()
    for path in one_run.cassettes.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        identities = _identities(text)
        place = files.cassettes / path.parent.relative_to(one_run.cassettes)
        place.mkdir(parents=True, exist_ok=True)
        for number in range(1, cases // 2 + 1):
            name = _renumbered(path.name, number)
            copy = _of_another_run(text, identities, number)
            (place / name).write_text(copy, encoding="utf-8")
    done.touch()
    return files


def _recorded_run() -> SuiteFiles:
    folder = CACHE / "recorded-run"
    shutil.rmtree(folder, ignore_errors=True)
    files = write_suite(folder, overrides=_ONE_FOLDER, runs=[run_of_log(_RECORDED_RUN)])
    with ModelServer() as server:
        run(
            pytest_command(files.option, "--jrh-record-mode=new_episodes"),
            folder,
            environment=server.environment,
        )
    return files


def _identities(text: str) -> list[dict[str, Any]]:
    """Of each call of a recording what its fingerprint covers."""
    recording = read(text)
    identities = []
    calls = recording["metadata"]["jrh"]["calls"]
    for call, interaction in zip(calls, recording["interactions"], strict=True):
        body = json.loads(interaction["request"]["body"])
        identity = {
            "stage": call["stage"],
            "model": call["asked"]["model"],
            "messages": body["messages"],
            "parameters": call["asked"]["parameters"],
            "schema": stable_schema(body["response_format"]["json_schema"]["schema"]),
            "repeat": 1,
        }
        if digest(identity) != call["fingerprint"]:
            raise RuntimeError(f"the fingerprint of a call of the {call['stage']} covers more")
        identities.append(identity)
    return identities


def _of_another_run(text: str, identities: list[dict[str, Any]], number: int) -> str:
    for identity in identities:
        other = json.loads(_renumbered(json.dumps(identity), number))
        text = text.replace(digest(identity), digest(other))
        for message, other_message in zip(identity["messages"], other["messages"], strict=True):
            text = text.replace(digest(message)[:12], digest(other_message)[:12])
    return _renumbered(text, number)


def _renumbered(text: str, number: int) -> str:
    """The text with this run's number and order in place of those of the recorded one."""
    for first in (0, _FIRST_ORDER):
        text = text.replace(str(first + _RECORDED_RUN), str(first + number))
    return text


def plain_test_over(jsonl: Path, folder: Path) -> Path:
    """What a user would write instead: one parametrized test that asserts on
    each line of a JSONL.
    """
    path = folder / "test_plain_jsonl.py"
    path.write_text(
        "import json\nimport pytest\n\n"
        f"with open({str(jsonl)!r}) as file:\n"
        "    CASES = [json.loads(line) for line in file]\n\n\n"
        "@pytest.mark.parametrize('case', CASES, ids=[case['case_id'] for case in CASES])\n"
        "def test_case(case):\n"
        "    assert case['expected'] in (0, 1)\n",
        encoding="utf-8",
    )
    return path


def trivial_tests(count: int, folder: Path) -> Path:
    """As many trivial parametrized tests."""
    path = folder / f"test_trivial_{count}.py"
    path.write_text(
        f"import pytest\n\n\n@pytest.mark.parametrize('number', range({count}))\ndef "
        "test_number(number):\n"
        "    assert number >= 0\n",
        encoding="utf-8",
    )
    return path

"""The suites that the benchmarks run on: made once, kept in `benchmarks/.cache`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import pytest_command, run
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, write_suite

CACHE = Path(__file__).resolve().parent / ".cache"
CASES_FILE = Path("outputs", "cases", "agent_perturbations.jsonl")
# The cases of both tests in one file, as a frozen suite needs them.
_ONE_FOLDER = {"test_agent_perturbation_config": {"output": {"dir": str(CASES_FILE.parent)}}}


def recorded(cases: int) -> SuiteFiles:
    """A suite with so many cases, half of either test, and every call recorded from a loopback
    model that answers at once.

    Where a prompt of ours has changed since, its replay ends unrecorded: remove the cache then.
    """
    folder = CACHE / f"replay-{cases}"
    files = SuiteFiles(folder, folder / "inputs" / "configs" / "tiny.yml", "tiny")
    done = folder / "recorded"
    if done.exists():
        return files
    if not files.config.exists():
        write_suite(folder, overrides=_ONE_FOLDER, runs=cases // 2)
    with ModelServer(keep=False) as server:
        run(
            pytest_command(files.option, "--jrh-record-mode=new_episodes"),
            folder,
            environment=server.environment,
        )
    done.touch()
    return files


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

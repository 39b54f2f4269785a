"""The worked example of probes: judges with one planted defect each, replayed."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from examples.probes.judges import PLANTED
from examples.probes.shop import DEFAULT, write_conversations
from pytest_jrh.cases.probes import PROBES
from tests.plugin.recorded import run_pytest
from tests.support.results import results_in

ROOT = Path(__file__).parents[2]
CONFIG = "examples/probes/probes.yml"
FOUND_BY = {judge.__name__: probe for judge, probe in PLANTED.items()}


def test_each_defect_is_found_by_its_own_probe_and_by_no_other(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/probes", tmp_path / "examples/probes")
    done = run_pytest(tmp_path, f"--jrh-config={CONFIG}", "--tb=no")
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert any("  0 calls, " in line for line in done.lines)
    (ledger,) = tmp_path.rglob("results.jsonl")
    wrong: Counter[tuple[str, str]] = Counter()
    judged: Counter[str] = Counter()
    for result in results_in(ledger.parent):
        if result.outcome in ("agree", "disagree"):
            judged[result.spec.test] += 1
            wrong[result.judge, result.spec.test] += result.outcome == "disagree"
    assert {judge: probe for (judge, probe), number in wrong.items() if number} == {
        judge: probe for judge, probe in FOUND_BY.items() if probe is not None
    }
    row = r"^(\w+) +0 of \d+ +0 of \d+ +(\w+) \d+ of \d+$"
    findings = re.findall(row, done.stdout, re.MULTILINE)
    assert findings[0] == ("obedient", "prompt_injection"), "the worst comes first"
    assert dict(findings) == {
        judge: probe for judge, probe in FOUND_BY.items() if probe is not None
    }
    assert sum(number > 0 for number in wrong.values()) == len(PROBES)
    assert not set(PROBES) - set(judged)


def test_workers_replay_the_cases_that_models_have_made(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/probes", tmp_path / "examples/probes")
    asking = " or ".join(probe.name for probe in PROBES.values() if probe.asks)
    done = run_pytest(tmp_path, f"--jrh-config={CONFIG}", "--tb=no", "-n", "2", "-k", asking)
    assert "24 failed, 120 passed" in done.lines[-1]
    assert any("  0 calls, " in line for line in done.lines)


def test_the_conversations_are_those_that_the_shop_writes(tmp_path: Path) -> None:
    write_conversations(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == DEFAULT.read_bytes()

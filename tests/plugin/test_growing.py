"""A frozen suite whose log grows (docs/suite.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.plugin.recorded import run_pytest
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, run, write_suite

RECORD = "--jrh-record-mode=new_episodes"
AGENT = "test_agent_perturbation_config"
LABELS = {"metadata": "ok", "map": {"true": "satisfied", "false": "violated"}}


def write_runs(path: Path, numbers: Iterable[int]) -> None:
    """A JSON-lines file of conversations, as an agent's log grows by lines."""
    lines = []
    for number in numbers:
        messages = [
            {name: message[name] for name in ("role", "content")}
            for message in run(number)["messages"]
            if message["role"] in ("user", "assistant")
        ]
        entry = {"id": f"run-{number}", "messages": messages, "metadata": {"ok": number % 3 != 0}}
        lines.append(json.dumps(entry) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def write_growing(folder: Path, runs: int, **options: Any) -> tuple[SuiteFiles, Path]:
    """A suite on a file of conversations, and that file."""
    log = folder / "log.jsonl"
    write_runs(log, range(1, runs + 1))
    suite = write_suite(folder, log=log, **options)
    return suite, suite.data / "runs.jsonl"


def committed(suite: SuiteFiles) -> dict[str, bytes]:
    """Every recording, and every line of the made cases."""
    kept = {path.as_posix(): path.read_bytes() for path in suite.cassettes.rglob("*.yaml")}
    for path in suite.folder.rglob("agent_perturbations.jsonl"):
        for line in path.read_bytes().splitlines():
            kept[f"{path} {json.loads(line)['case_id']}"] = line
    return kept


def test_a_frozen_suite_grows_by_the_new_cases_alone(tmp_path: Path) -> None:
    output = {"dir": "inputs/suites/tiny", "overwrite": False}
    suite, log = write_growing(
        tmp_path, 2, tests=["agent_perturbation"], overrides={AGENT: {"output": output}}
    )
    baseline = "--jrh-baseline=base.json"
    with ModelServer() as server:
        env = server.environment
        run_pytest(tmp_path, suite.option, RECORD, baseline, "--jrh-update-baseline", env=env)
        # A frozen suite need not have them.
        for path in suite.cassettes.rglob("*.generation.yaml"):
            path.unlink()
        before, first = committed(suite), server.count()
        write_runs(log, range(3, 5))
        run_pytest(tmp_path, suite.option, RECORD, "--jrh-prune", env=env)
        asked = server.requests[first:]
        log.unlink()
        grown = run_pytest(tmp_path, suite.option, "--jrh-frozen", baseline, "-v", "-n", "2")
        assert server.count() == first + len(asked)
    texts = "".join(request.text for request in asked)
    assert set(re.findall(r"order 100(\d)", texts)) == {"3", "4"}
    assert before.items() <= committed(suite).items()
    assert "5 passed" in grown.stdout
    assert "2 of 2 cases of the baseline" in " ".join(grown.stdout.split())
    assert "new since the baseline (2):" in grown.stdout
    assert "not comparable" not in grown.stdout

"""What happens to a suite in the weeks after: its judge's prompt changes, and its log grows. Calls
are counted at the server (docs/suite.md)."""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.plugin.recorded import run_pytest
from tests.support.baselines import case_lines
from tests.support.model_server import ModelServer
from tests.support.suites import (
    SuiteFiles,
    built_log,
    merged,
    run,
    write_suite,
)

RECORD = "--jrh-record-mode=new_episodes"
PROMPT = "Judge {{ transcript }} by {{ rubric }}. {{ rubric_id }} Be strict.\n"


def configure(suite: SuiteFiles, overrides: Mapping[str, object]) -> None:
    config = yaml.safe_load(suite.config.read_text(encoding="utf-8"))
    suite.config.write_text(yaml.safe_dump(merged(config, overrides)), encoding="utf-8")


def recordings(suite: SuiteFiles) -> dict[str, str]:
    """The texts of cassettes by their paths in the folder of the suite."""
    texts = {}
    for path in sorted(suite.cassettes.rglob("*.yaml")):
        texts[path.relative_to(suite.folder).as_posix()] = path.read_text(encoding="utf-8")
    return texts


def changed_lines(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[int, int]:
    """How many lines `git diff` has removed and inserted."""
    removed = inserted = 0
    for path in before.keys() | after.keys():
        old, new = before.get(path, "").splitlines(), after.get(path, "").splitlines()
        for line in difflib.unified_diff(old, new, n=0, lineterm=""):
            removed += line.startswith("-") and not line.startswith("---")
            inserted += line.startswith("+") and not line.startswith("+++")
    return removed, inserted


def test_verdicts_of_a_changed_prompt_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, runs=3, overrides={"judge": {"prompt_path": "judge.md"}})
    prompt = tmp_path / "judge.md"
    prompt.write_text(PROMPT, encoding="utf-8")
    with ModelServer() as server:
        env = server.environment
        run_pytest(tmp_path, suite.option, RECORD, env=env)
        before = recordings(suite)
        prompt.write_text(PROMPT.replace("strict", "kind"), encoding="utf-8")
        asked = server.count()
        run_pytest(tmp_path, suite.option, RECORD, env=env)
        assert server.count() - asked == server.count("judge") - 6 == 6
        beside = recordings(suite)
        assert changed_lines(before, beside)[0] == 0, "the old ones stay until told otherwise"
        run_pytest(tmp_path, suite.option, "--jrh-judge-record-mode=all", env=env)
        removed, inserted = changed_lines(before, recordings(suite))
        # Of each of the six cases: fingerprint, digest, tokens, cost, and the prompt itself.
        assert removed == inserted <= 6 * 5
        assert server.count() - asked == 12


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


PROBED: dict[str, Any] = {
    "tests": ["agent_perturbation", "format_invariance", "prompt_injection"],
    "overrides": {
        "admin": {"perturbation_config": {"probes": {"prompt_injection": {"max_cases": 4}}}},
        AGENT: {"sampling": "kept"},
    },
}


def test_a_log_that_grows_asks_only_for_its_new_runs(tmp_path: Path) -> None:
    suite, log = write_growing(tmp_path, 3, **PROBED)
    baseline = "--jrh-baseline=base.json"
    workers = ("-n", "2")
    with ModelServer() as server:
        env = server.environment
        run_pytest(
            tmp_path, suite.option, RECORD, baseline, "--jrh-update-baseline", *workers, env=env
        )
        before, first = committed(suite), server.requests
        write_runs(log, range(1, 8))
        plan = run_pytest(tmp_path, suite.option, RECORD, "--jrh-plan", env=env).stdout
        assert server.requests == first
        grown = run_pytest(tmp_path, suite.option, RECORD, baseline, "-v", *workers, env=env)
        asked = server.requests[len(first) :]
        after = committed(suite)
    assert not {request.digest for request in first} & {request.digest for request in asked}
    assert len({request.digest for request in asked}) == len(asked)
    assert asked
    assert before.items() <= after.items(), "no old recording and no old case changes"
    numbers = {
        int(number) for request in asked for number in re.findall(r"order 100(\d)", request.text)
    }
    # A probe of one run may draw another case than before.
    assert numbers - {1, 2, 3} == {4, 5, 6, 7}
    planned = re.search(r"^(\d+)(?: to (\d+))? calls?, ", plan, re.M)
    assert planned, plan
    assert int(planned[1]) <= len(asked) <= int(planned[2] or planned[1])
    cases = len(case_lines(tmp_path / "base.json"))
    assert f"{cases} of {cases} cases of the baseline" in " ".join(grown.stdout.split())
    assert "new since the baseline (" in grown.stdout
    assert "not comparable" not in grown.stdout


def test_a_limit_of_runs_keeps_those_that_were_recorded(tmp_path: Path) -> None:
    overrides = {AGENT: {"sample_num_from_orig": 3, "sampling": "rand"}}
    suite, log = write_growing(tmp_path, 4, tests=["agent_perturbation"], overrides=overrides)
    with ModelServer() as server:
        env = server.environment
        run_pytest(tmp_path, suite.option, RECORD, env=env)
        first = server.count()
        write_runs(log, range(1, 41))
        configure(suite, {AGENT: {"sampling": "kept"}})
        kept = run_pytest(tmp_path, suite.option, RECORD, env=env)
        assert (server.count(), kept.code) == (first, 0)
        configure(suite, {AGENT: {"sample_num_from_orig": 5}})
        more = run_pytest(tmp_path, suite.option, RECORD, "-n", "2", env=env)
        assert (server.count("planner"), more.code) == (5, 0)


def test_a_second_file_in_the_folder_of_logs_asks_for_its_runs_alone(tmp_path: Path) -> None:
    suite = write_suite(
        tmp_path,
        runs=2,
        tests=["agent_perturbation"],
        overrides={AGENT: {"input_log_path": "logs"}},
    )
    (tmp_path / "logs").mkdir()
    (suite.data / "runs.eval").rename(tmp_path / "logs" / "a.eval")
    with ModelServer() as server:
        env = server.environment
        run_pytest(tmp_path, suite.option, RECORD, env=env)
        before = committed(suite)
        # Begun earlier by its name, and with a run of the same id.
        again = run(2, messages=run(5)["messages"])
        shutil.copyfile(built_log([again, run(3)]), tmp_path / "logs" / "b.eval")
        run_pytest(tmp_path, suite.option, RECORD, env=env)
        assert server.count("planner") == 4
        digests = [request.digest for request in server.requests]
        assert len(set(digests)) == len(digests)
    after = committed(suite)
    for name, content in before.items():
        if name.endswith(".yaml"):
            assert after[name] == content
        else:
            # That the runs of one sample belong together is known now.
            grown = json.loads(after[name])
            assert grown.pop("cluster", "run-2") == "run-2"
            assert grown == json.loads(content)


def test_a_frozen_suite_grows_by_the_new_cases_alone(tmp_path: Path) -> None:
    output = {"dir": "inputs/suites/tiny", "overwrite": False}
    suite, log = write_growing(
        tmp_path, 2, tests=["agent_perturbation"], overrides={AGENT: {"output": output}}
    )
    baseline = "--jrh-baseline=base.json"
    with ModelServer() as server:
        env = server.environment
        run_pytest(tmp_path, suite.option, RECORD, env=env)
        # A frozen suite need not have them.
        for path in suite.cassettes.rglob("*.generation.yaml"):
            path.unlink()
        frozen = [suite.option, "--jrh-frozen", baseline]
        run_pytest(tmp_path, *frozen, "--jrh-update-baseline")
        before, first = committed(suite), server.count()
        write_runs(log, range(3, 5))
        run_pytest(tmp_path, suite.option, RECORD, "--jrh-prune", env=env)
        asked = server.requests[first:]
        log.unlink()
        grown = run_pytest(tmp_path, *frozen, "-n", "2", env=env)
        assert server.count() == first + len(asked)
    texts = "".join(request.text for request in asked)
    assert set(re.findall(r"order 100(\d)", texts)) == {"3", "4"}
    assert before.items() <= committed(suite).items()
    assert "4 passed" in grown.stdout
    assert "new since the baseline (2):" in grown.stdout

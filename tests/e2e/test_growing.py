"""What happens to a suite in the weeks after: its judge's prompt changes, and its log grows. Calls
are counted at the server (docs/suite.md)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.bench import Bench, MakeBench, cassette_files
from tests.e2e.test_plan import planned, to_make
from tests.plugin.test_growing import AGENT, write_growing, write_runs
from tests.support.model_server import ModelServer
from tests.support.suites import BOTH_TESTS

PROMPT = "Judge {{ transcript }} by {{ rubric }}. {{ rubric_id }} Be strict.\n"


def growing(folder: Path, runs: int, **options: Any) -> tuple[Bench, Path]:
    """A suite on a file of conversations, and that file."""
    files, log = write_growing(folder, runs, **options)
    return Bench(files, files.cassettes), log


def changed_lines(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[int, int]:
    """How many lines `git diff` has removed and inserted."""
    removed = inserted = 0
    for path in before.keys() | after.keys():
        old, new = (files.get(path, b"").decode().splitlines() for files in (before, after))
        for line in difflib.unified_diff(old, new, n=0, lineterm=""):
            removed += line.startswith("-") and not line.startswith("---")
            inserted += line.startswith("+") and not line.startswith("+++")
    return removed, inserted


def test_verdicts_of_a_changed_prompt_take_the_place_of_the_old_ones(
    make_bench: MakeBench, server: ModelServer, tmp_path: Path
) -> None:
    prompt = tmp_path / "suite" / "judge.md"
    prompt.parent.mkdir()
    prompt.write_text(PROMPT, encoding="utf-8")
    bench = make_bench(runs=3, tests=BOTH_TESTS, overrides={"judge": {"prompt_path": "judge.md"}})
    bench.run()
    before = cassette_files(bench.cassettes)
    prompt.write_text(PROMPT.replace("strict", "kind"), encoding="utf-8")
    bench.reload()
    asked = server.count()
    bench.run()
    assert server.count() - asked == server.count("judge") - 6 == 6
    beside = cassette_files(bench.cassettes)
    assert changed_lines(before, beside)[0] == 0, "the old ones stay until told otherwise"
    bench.run("none", judge_record_mode="all")
    removed, inserted = changed_lines(before, cassette_files(bench.cassettes))
    # Of each of the six cases: fingerprint, digest, tokens, cost, and the prompt itself.
    assert removed == inserted <= 6 * 5
    assert server.count() - asked == 12


PROBED: dict[str, Any] = {
    "tests": ["agent_perturbation", "format_invariance", "prompt_injection"],
    "overrides": {
        "admin": {"perturbation_config": {"probes": {"prompt_injection": {"max_cases": 4}}}},
        AGENT: {"sampling": "kept"},
    },
}


def test_a_log_that_grows_asks_only_for_its_new_runs(tmp_path: Path, server: ModelServer) -> None:
    bench, log = growing(tmp_path, 3, **PROBED)
    before, first = bench.run().made, server.requests
    recorded = cassette_files(bench.cassettes)
    write_runs(log, range(1, 8))
    bench.reload()
    plan = planned(bench, "new_episodes")
    assert server.requests == first
    after = bench.run().made
    asked = server.requests[len(first) :]
    assert not {request.digest for request in first} & {request.digest for request in asked}
    assert len({request.digest for request in asked}) == len(asked)
    assert asked
    unchanged = recorded.items() <= cassette_files(bench.cassettes).items()
    assert unchanged, "no old recording changes"
    assert all(after[spec] == case for spec, case in before.items()), "no old case changes"
    numbers = {
        int(number) for request in asked for number in re.findall(r"order 100(\d)", request.text)
    }
    # A probe of one run may draw another case than before.
    assert numbers - {1, 2, 3} == {4, 5, 6, 7}
    bounds = to_make(plan).values()
    assert sum(each.low for each in bounds) <= len(asked) <= sum(each.high for each in bounds)


def test_a_limit_of_runs_keeps_those_that_were_recorded(
    tmp_path: Path, server: ModelServer
) -> None:
    overrides = {AGENT: {"sample_num_from_orig": 3, "sampling": "rand"}}
    bench, log = growing(tmp_path, 4, tests=["agent_perturbation"], overrides=overrides)
    bench.run()
    first = server.count()
    write_runs(log, range(1, 41))
    bench.configure({AGENT: {"sampling": "kept"}})
    assert bench.run().outcomes == [("agree", 1)] * 3
    assert server.count() == first
    bench.configure({AGENT: {"sample_num_from_orig": 5}})
    assert bench.run().outcomes == [("agree", 1)] * 5
    assert server.count("planner") == 5

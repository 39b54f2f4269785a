"""Replay, collection, memory and start-up, each beside plain pytest doing as much."""

from __future__ import annotations

import json
import shutil
import time
from collections import deque
from pathlib import Path
from typing import Any

from benchmarks.material import (
    BIG_SAMPLES,
    CACHE,
    CASES_FILE,
    TRIALS,
    big_log,
    job_of_trials,
    plain_test_over,
    recorded,
    suite,
    trivial_tests,
)
from benchmarks.measure import Cost, Line, Work, in_turns, ours, plain
from pytest_jrh.sources import open_sources
from tests.support.suites import SuiteFiles

CASES = 1_000
START_UP_CASES = 4


def demo() -> list[Line]:
    """The demo's suite frozen and recorded, beside as many trivial tests."""
    root = Path(__file__).resolve().parents[1]
    folder = CACHE / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "inputs", folder / "inputs")
    option = "--jrh-config=inputs/configs/refund_agent.yml"
    (made,) = in_turns(1, ours(folder, option))
    count = int(made.output.split(" passed")[0].split()[-1])
    frozen, theirs = in_turns(9, ours(folder, option, "--jrh-frozen"), _trivial(count))
    return [
        _against(
            f"the demo's suite frozen, {count} cases", frozen, theirs, f"{count} trivial tests", 2.5
        )
    ]


def replay() -> list[Line]:
    """1,000 recorded cases, unfrozen and frozen, beside a plain test over the same JSONL and
    trivial tests."""
    files = recorded("replay-1000", runs=CASES // 2)
    over_jsonl = plain(CACHE, str(plain_test_over(files.folder / CASES_FILE, CACHE)))
    whole, theirs = in_turns(2, ours(files.folder, files.option), over_jsonl)
    frozen, trivial = in_turns(5, ours(files.folder, files.option, "--jrh-frozen"), _trivial(CASES))
    return [
        _against(
            f"replay of {CASES:,} cases, all stages",
            whole,
            theirs,
            "a plain test over the same JSONL",
        ),
        _against(f"{CASES:,} frozen cases", frozen, trivial, f"{CASES:,} trivial tests", 4.0),
    ]


def probes() -> list[Line]:
    """1,000 replayed cases of a probe and their 250 base cases, beside as many of other tests."""
    files = recorded(
        "probes-1000",
        runs=CASES // 4,
        tests=("agent_perturbation", "prompt_injection"),
        overrides={
            "admin": {
                "perturbation_config": {"probes": {"prompt_injection": {"max_cases": CASES // 4}}}
            }
        },
    )
    others = recorded("replay-1250", runs=(CASES + CASES // 4) // 2)
    derived, judged = in_turns(
        3, ours(files.folder, files.option), ours(others.folder, others.option)
    )
    return [
        _against(
            f"replay of {CASES:,} cases of a probe and their {CASES // 4} base cases",
            derived,
            judged,
            f"replay of {CASES + CASES // 4:,} other cases",
            1.0,
        )
    ]


def growth() -> list[Line]:
    """Time per case at 500 and 5,000 cases, and memory per case at 1,000 and 5,000."""
    few, some, many = (
        recorded(f"replay-{count}", runs=count // 2) for count in (500, 1_000, 5_000)
    )
    start = _start_up()
    alone, short = in_turns(4, ours(start.folder, start.option), ours(few.folder, few.option))
    (five,) = in_turns(2, ours(many.folder, many.option))
    one, trivial_one, trivial_five = in_turns(
        1, ours(some.folder, some.option), _trivial(1_000), _trivial(5_000)
    )
    each_few = (short.seconds - alone.seconds) / (500 - START_UP_CASES)
    each_many = (five.seconds - alone.seconds) / (5_000 - START_UP_CASES)
    own = (five.peak_mb - one.peak_mb) * 1024 / 4_000
    theirs = (trivial_five.peak_mb - trivial_one.peak_mb) * 1024 / 4_000
    return [
        Line(
            "replay time per case at 5,000 cases",
            f"{each_many * 1000:.1f} ms",
            f"{each_few * 1000:.1f} ms at 500",
            each_many / each_few,
            1.2,
        ),
        Line(
            "memory per replayed case",
            f"{own:.1f} kB",
            f"{theirs:.1f} kB per trivial test, and 20 kB",
            own / (theirs + 20),
            1.0,
        ),
    ]


def workers() -> list[Line]:
    """2,000 replayed cases in two processes against one, start-up left out."""
    files = recorded("replay-2000", runs=1_000)
    few = _start_up()
    parallel = ("-p", "xdist", "-n2")
    alone, both, few_alone, few_both = in_turns(
        # More often than elsewhere: with all processors busy, the least noise counts twice.
        5,
        ours(files.folder, files.option),
        ours(files.folder, files.option, *parallel),
        ours(few.folder, few.option),
        ours(few.folder, few.option, *parallel),
    )
    one, two = alone.seconds - few_alone.seconds, both.seconds - few_both.seconds
    return [
        Line(
            "2,000 replayed cases with -n 2, start-up left out",
            f"{two:.1f} s",
            f"{one:.1f} s",
            two / one,
            1 / 1.6,
        )
    ]


def collection() -> list[Line]:
    """10,000 items, and a log of 10,000 samples."""
    files = suite("collect-10000", runs=5_000)
    collect = "--collect-only"
    mine, theirs = in_turns(2, ours(files.folder, files.option, collect), _trivial(10_000, collect))
    log = big_log()
    big = suite("big-log", log=log, rubrics=2, tests=("agent_perturbation",))
    (cost,) = in_turns(1, ours(big.folder, big.option, collect))
    overrides: dict[str, Any] = {"test_agent_perturbation_config": {"sample_num_from_orig": 100}}
    sampled = recorded("big-log-100", log=log, tests=("agent_perturbation",), overrides=overrides)
    (part,) = in_turns(1, ours(sampled.folder, sampled.option))
    return [
        _against("collecting 10,000 items", mine, theirs, "10,000 trivial tests"),
        Line(
            f"collecting {BIG_SAMPLES:,} x 2 items of a {log.stat().st_size / 1e6:.0f} MB log",
            f"{cost.seconds:.1f} s, {cost.peak_mb:.0f} MB",
            "20 s, 400 MB",
            max(cost.seconds / 20, cost.peak_mb / 400),
            1.0,
        ),
        Line(
            "running 100 sampled runs of that log",
            f"{part.seconds:.1f} s, {part.peak_mb:.0f} MB",
            "500 MB",
            part.peak_mb / 500,
            1.0,
        ),
    ]


def unused() -> list[Line]:
    """The plugin loaded, and no suite in play."""
    test = str(trivial_tests(1, CACHE))
    loaded, without = in_turns(20, ours(CACHE, test), plain(CACHE, test))
    return [
        Line(
            "start-up with the plugin unused",
            f"{loaded.seconds * 1000:.0f} ms",
            f"{without.seconds * 1000:.0f} ms without it; 20 ms more may it be",
            (loaded.seconds - without.seconds) * 1000 / 20,
            1.0,
        )
    ]


def _start_up() -> SuiteFiles:
    """A suite whose time is start-up, which no `--collect-only` would show: few cases import all
    there is to import."""
    return recorded(f"replay-{START_UP_CASES}", runs=START_UP_CASES // 2)


def _trivial(count: int, *arguments: str) -> Work:
    return plain(CACHE, str(trivial_tests(count, CACHE)), *arguments)


def job() -> list[Line]:
    """What is asked of a job of Harbor before the first case, in seconds of CPU."""
    folder = job_of_trials()
    files = [file for file in folder.rglob("*.json") if file.name != "config.json"]
    started = time.process_time()
    for file in files:
        json.loads(file.read_bytes())
    read = time.process_time()
    with open_sources([folder]) as source:
        source.summaries()
        source.aliases()
        deque(source.fields(), maxlen=0)
    planned = time.process_time() - read
    return [
        Line(
            f"planning over a job of {TRIALS} trials of 11 KB",
            f"{planned:.2f} s of CPU",
            f"3 s; its files parsed take {read - started:.2f} s",
            planned / 3,
            1.0,
        )
    ]


def _against(
    what: str, mine: Cost, theirs: Cost, yardstick: str, limit: float | None = None
) -> Line:
    return Line(
        what,
        f"{mine.seconds:.2f} s, {mine.peak_mb:.0f} MB",
        f"{theirs.seconds:.2f} s, {theirs.peak_mb:.0f} MB: {yardstick}",
        mine.seconds / theirs.seconds,
        limit,
    )

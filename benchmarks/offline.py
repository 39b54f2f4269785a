"""Replay, collection, memory and start-up, each beside plain pytest doing as much."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from benchmarks.material import BIG_SAMPLES, CACHE, CASES_FILE, big_log, plain_test_over, recorded, suite, trivial_tests
from benchmarks.measure import PLAIN, Cost, Line, best_of, pytest_command, run

CASES = 1_000


def replay() -> list[Line]:
    """1,000 recorded cases, unfrozen and frozen, beside a plain test over the same JSONL and trivial tests."""
    files = recorded("replay-1000", runs=CASES // 2)
    jsonl = files.folder / CASES_FILE
    plain = best_of(2, pytest_command(str(plain_test_over(jsonl, CACHE))), CACHE, environment=PLAIN)
    trivial = _trivial(CASES)
    unfrozen = best_of(2, pytest_command(files.option), files.folder)
    found = [
        _against(f"replay of {CASES:,} cases, all stages", unfrozen, plain, "a plain test over the same JSONL"),
    ]
    frozen = best_of(2, pytest_command(files.option, "--jrh-frozen"), files.folder)
    found.append(_against(f"{CASES:,} frozen cases", frozen, trivial, f"{CASES:,} trivial tests", 4.0))
    return found


def growth() -> list[Line]:
    """Time per case and memory per case at 500 and 5,000 cases; two processes against one."""
    small = recorded("replay-500", runs=250)
    large = recorded("replay-5000", runs=2_500)
    few, many = (best_of(2, pytest_command(files.option), files.folder) for files in (small, large))
    start = run(pytest_command(small.option, "--collect-only"), small.folder)
    each_few = (few.seconds - start.seconds) / 500
    each_many = (many.seconds - start.seconds) / 5_000
    found = [
        Line(
            "replay time per case at 5,000 cases",
            f"{each_many * 1000:.1f} ms",
            f"{each_few * 1000:.1f} ms at 500",
            each_many / each_few,
            1.2,
        )
    ]
    memory = recorded("replay-1000", runs=CASES // 2)
    one = run(pytest_command(memory.option), memory.folder)
    trivial_one, trivial_five = _trivial(1_000), _trivial(5_000)
    own = (many.peak_mb - one.peak_mb) * 1024 / 4_000
    theirs = (trivial_five.peak_mb - trivial_one.peak_mb) * 1024 / 4_000
    found.append(
        Line("memory per replayed case", f"{own:.1f} kB", f"{theirs:.1f} kB per trivial test", own / (theirs + 20), 1.0)
    )
    return found


def workers() -> list[Line]:
    """2,000 replayed cases in two processes against one, start-up left out."""
    files = recorded("replay-2000", runs=1_000)
    few = suite("replay-few", runs=2)
    shutil.copytree(files.folder / "inputs" / "cassettes", few.folder / "inputs" / "cassettes", dirs_exist_ok=True)
    alone = best_of(2, pytest_command(files.option), files.folder).seconds
    both = best_of(2, pytest_command(files.option, "-n2"), files.folder).seconds
    collect_alone = best_of(2, pytest_command(files.option, "--deselect=inputs"), files.folder, codes=(5,)).seconds
    collect_both = best_of(
        2, pytest_command(files.option, "-n2", "--deselect=inputs"), files.folder, codes=(5,)
    ).seconds
    one, two = alone - collect_alone, both - collect_both
    return [
        Line("2,000 replayed cases with -n 2, start-up left out", f"{two:.1f} s", f"{one:.1f} s", two / one, 1 / 1.6)
    ]


def collection() -> list[Line]:
    """10,000 items, and a log of 10,000 samples."""
    files = suite("collect-10000", runs=5_000)
    ours = best_of(2, pytest_command(files.option, "--collect-only"), files.folder)
    count = 10_000
    theirs = best_of(2, pytest_command(str(trivial_tests(count, CACHE)), "--collect-only"), CACHE, environment=PLAIN)
    found = [_against("collecting 10,000 items", ours, theirs, "10,000 trivial tests")]
    log = big_log()
    big = suite("big-log", log=log, rubrics=2, tests=("agent_perturbation",))
    cost = run(pytest_command(big.option, "--collect-only"), big.folder)
    found.append(
        Line(
            f"collecting {BIG_SAMPLES:,} x 2 items of a {log.stat().st_size / 1e6:.0f} MB log",
            f"{cost.seconds:.1f} s, {cost.peak_mb:.0f} MB",
            "20 s, 400 MB",
            max(cost.seconds / 20, cost.peak_mb / 400),
            1.0,
        )
    )
    overrides: dict[str, Any] = {"test_agent_perturbation_config": {"sample_num_from_orig": 100}}
    sampled = recorded("big-log-100", log=log, tests=("agent_perturbation",), overrides=overrides)
    cost = run(pytest_command(sampled.option), sampled.folder)
    found.append(
        Line(
            "running 100 sampled runs of that log",
            f"{cost.seconds:.1f} s, {cost.peak_mb:.0f} MB",
            "500 MB",
            cost.peak_mb / 500,
            1.0,
        )
    )
    return found


def unused() -> list[Line]:
    """The plugin installed, and no suite in play: start-up against `-p no:jrh`, in turns."""
    path = trivial_tests(1, CACHE)
    with_plugin, without = [], []
    for _ in range(10):
        with_plugin.append(run(pytest_command(str(path)), CACHE).seconds)
        without.append(run(pytest_command(str(path), "-p", "no:jrh"), CACHE).seconds)
    ours, theirs = min(with_plugin), min(without)
    return [
        Line(
            "start-up with the plugin unused",
            f"{ours * 1000:.0f} ms",
            f"{theirs * 1000:.0f} ms with -p no:jrh",
            (ours - theirs) * 1000 / 20,
            1.0,
        )
    ]


def demo() -> list[Line]:
    """The demo's suite frozen and recorded, beside as many trivial tests."""
    root = Path(__file__).resolve().parents[1]
    folder = CACHE / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "inputs", folder / "inputs")
    option = "--jrh-config=inputs/configs/refund_agent.yml"
    made = run(pytest_command(option), folder)
    count = int(made.output.split(" passed")[0].split()[-1])
    frozen = best_of(3, pytest_command(option, "--jrh-frozen"), folder)
    return [_against(f"the demo's suite frozen, {count} cases", frozen, _trivial(count), f"{count} trivial tests", 2.5)]


def _trivial(count: int) -> Cost:
    return best_of(3, pytest_command(str(trivial_tests(count, CACHE))), CACHE, environment=PLAIN)


def _against(what: str, ours: Cost, theirs: Cost, yardstick: str, limit: float | None = None) -> Line:
    return Line(
        what,
        f"{ours.seconds:.2f} s, {ours.peak_mb:.0f} MB",
        f"{theirs.seconds:.2f} s, {theirs.peak_mb:.0f} MB: {yardstick}",
        ours.seconds / theirs.seconds,
        limit,
    )

"""Replay and start-up, each beside plain pytest doing as much."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.material import CACHE, CASES_FILE, plain_test_over, recorded, trivial_tests
from benchmarks.measure import Cost, Line, Work, in_turns, ours, plain

CASES = 1_000
CASES_OF_WORKERS = 2_000
START_UP_CASES = 4


def demo() -> list[Line]:
    """The demo's suite frozen, beside as many trivial tests."""
    root = Path(__file__).resolve().parents[1]
    folder = CACHE / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "inputs", folder / "inputs")
    option = "--jrh-config=inputs/configs/refund_agent.yml"
    (made,) = in_turns(1, ours(folder, option))
    count = int(made.output.split(" passed")[0].split()[-1])
    frozen, theirs = in_turns(9, ours(folder, option, "--jrh-frozen"), _trivial(count))
    what = f"the demo's suite frozen, {count} cases"
    return [_against(what, frozen, theirs, f"{count} trivial tests", 2.5)]


def replay() -> list[Line]:
    """Recorded cases, unfrozen and frozen, beside a plain test over the same JSONL and trivial
    tests.
    """
    files = recorded(CASES)
    over_jsonl = plain(CACHE, str(plain_test_over(files.folder / CASES_FILE, CACHE)))
    whole, theirs = in_turns(2, ours(files.folder, files.option), over_jsonl)
    frozen, trivial = in_turns(5, ours(files.folder, files.option, "--jrh-frozen"), _trivial(CASES))
    what = f"replay of {CASES:,} cases, all stages"
    return [
        _against(what, whole, theirs, "a plain test over the same JSONL"),
        _against(f"{CASES:,} frozen cases", frozen, trivial, f"{CASES:,} trivial tests", 4.0),
    ]


def workers() -> list[Line]:
    """Recorded cases in two processes against one, less what few cases take: start-up, which no
    `--collect-only` would show.
    """
    files, few = recorded(CASES_OF_WORKERS), recorded(START_UP_CASES)
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
    what = f"{CASES_OF_WORKERS:,} replayed cases with -n 2, start-up left out"
    return [Line(what, f"{two:.1f} s", f"{one:.1f} s", two / one, 1 / 1.6)]


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


def _trivial(count: int) -> Work:
    return plain(CACHE, str(trivial_tests(count, CACHE)))


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

"""Replay and start-up, each beside plain pytest doing as much."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.material import CACHE, CASES_FILE, plain_test_over, recorded, trivial_tests
from benchmarks.measure import Line, Work, against, in_turns, ours, plain

CASES = 1_000
CASES_OF_WORKERS = 2_000
START_UP_CASES = 4
SIZES = (300, CASES, 10_000, 50_000)


def demo() -> list[Line]:
    """The demo's suite frozen, beside as many trivial tests. Two thirds are start-up: numpy,
    pydantic and its schemas of configs and records, jinja2, and the modules of a suite. The limit
    was set before classes, pairs and people had their figures.
    """
    root = Path(__file__).resolve().parents[1]
    folder = CACHE / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "inputs", folder / "inputs")
    option = "--jrh-config=inputs/configs/refund_agent.yml"
    (made,) = in_turns(1, ours(folder, option))
    count = int(made.output.split(" passed")[0].split()[-1])
    frozen, theirs = in_turns(9, ours(folder, option, "--jrh-frozen"), _trivial(count))
    what = f"the demo's suite frozen, {count} cases"
    return [against(what, frozen, theirs, f"{count} trivial tests", 2.8)]


def replay() -> list[Line]:
    """Recorded cases, unfrozen and frozen, beside a plain test over the same JSONL and trivial
    tests. The suite has RAND's form, so that a seventh goes into RAND's tables and debug bundles;
    transcripts that are rendered take a tenth, and nothing else as much.
    """
    files = recorded(CASES)
    over_jsonl = plain(CACHE, str(plain_test_over(files.folder / CASES_FILE, CACHE)))
    whole, theirs = in_turns(2, ours(files.folder, files.option), over_jsonl)
    frozen, trivial = in_turns(5, ours(files.folder, files.option, "--jrh-frozen"), _trivial(CASES))
    what = f"replay of {CASES:,} cases, all stages"
    return [
        against(what, whole, theirs, "a plain test over the same JSONL", 4.2),
        against(f"{CASES:,} frozen cases", frozen, trivial, f"{CASES:,} trivial tests", 3.5),
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
    return [Line(what, f"{two:.1f} s", f"{one:.1f} s", two / one, 0.67)]


def growth() -> list[Line]:
    """Time and memory of a replayed case, of so many: what the suite takes, less what few cases
    take, which is start-up. The largest two suites are run once.
    """
    few, *costs = in_turns(5, *map(_replayed, (START_UP_CASES, *SIZES[:2])))
    costs += in_turns(1, *map(_replayed, SIZES[2:]))
    milliseconds, kilobytes = {}, {}
    for cases, cost in zip(SIZES, costs, strict=True):
        more = cases - START_UP_CASES
        milliseconds[cases] = (cost.seconds - few.seconds) * 1000 / more
        kilobytes[cases] = (cost.peak_mb - few.peak_mb) * 1024 / more
    return [*_growth("time", milliseconds, "ms"), *_growth("memory", kilobytes, "kB")]


def _growth(what: str, each: Mapping[int, float], unit: str) -> Iterator[Line]:
    yardstick = f"{each[CASES]:.2f} {unit}: of {CASES:,}"
    for cases, amount in each.items():
        limit = 1.2 if cases == SIZES[-1] else None
        ratio = amount / each[CASES]
        figure = f"{amount:.2f} {unit}"
        yield Line(f"{what} of a case, of {cases:,} replayed", figure, yardstick, ratio, limit)


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


def _replayed(cases: int) -> Work:
    files = recorded(cases)
    return ours(files.folder, files.option)


def _trivial(count: int) -> Work:
    return plain(CACHE, str(trivial_tests(count, CACHE)))

"""Measure everything and print one table: `python -m benchmarks [NAME ...] [--write]`."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    acts,
    anchoring,
    live,
    offline,
    reports,
    review,
    shown,
    tables,
    validity,
)
from benchmarks.material import CACHE
from benchmarks.measure import Line, stopwatch, table

BENCHMARKS: dict[str, Callable[[], list[Line]]] = {
    "live": live.lines,
    "replay": offline.replay,
    "probes": offline.probes,
    "demo": offline.demo,
    "growth": offline.growth,
    "workers": offline.workers,
    "collection": offline.collection,
    "job": offline.job,
    "unused": offline.unused,
    "reports": reports.html,
    "review": review.lines,
    "validity": validity.lines,
    "labels": anchoring.lines,
    "tables": tables.lines,
    "acts": acts.lines,
    "shown": shown.lines,
}
RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> int:
    """Run the named benchmarks, all of them by default; exit 1 where a limit is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument(
        "--write", action="store_true", help=f"keep what is printed in {RESULTS.name}"
    )
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    CACHE.mkdir(exist_ok=True)
    # A rootdir of their own: the repository's settings are for its tests.
    (CACHE / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    started = stopwatch()
    lines: list[Line] = []
    for name in options.names or BENCHMARKS:
        begun = stopwatch()
        measured = BENCHMARKS[name]()
        seconds = stopwatch() - begun
        print(f"{name}: {seconds:.0f} s", file=sys.stderr)
        if options.names:
            text = _printed(measured, seconds)
            print(text)
            if options.write:
                _write_section(name, text)
        lines += measured
    if not options.names:
        text = _printed(lines, stopwatch() - started)
        print(text)
        if options.write:
            RESULTS.write_text(
                f"# Results\n\nWhat `python -m benchmarks` printed. {text}", encoding="utf-8"
            )
    return any(line.verdict == "NOT MET" for line in lines)


def _printed(lines: list[Line], seconds: float) -> str:
    """What was measured when and where, and the table."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    machine = (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}"
    )
    return f"{today}, {machine}; {seconds:.0f} s in all.\n\n{table(lines)}\n"


def _write_section(name: str, text: str) -> None:
    """Put what one benchmark printed in the place of its section, or behind the others; these stay
    as they are.
    """
    first, *sections = RESULTS.read_text("utf-8").split("\n## ")
    about = (sys.modules[BENCHMARKS[name].__module__].__doc__ or "").strip()
    section = f"`{name}`\n\n{about}\n\nWhat `python -m benchmarks {name}` printed. {text}"
    places = {other.partition("\n")[0]: place for place, other in enumerate(sections)}
    if (place := places.get(f"`{name}`")) is None:
        sections.append(section)
    else:
        sections[place] = section
    parts = [part.rstrip("\n") for part in (first, *sections)]
    RESULTS.write_text("\n\n## ".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

"""Measure everything and print one table each: `python -m benchmarks [NAME ...] [--write]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import acts, live, offline, peers, planted, reports, shown, tables, validity
from benchmarks.material import CACHE
from benchmarks.measure import Line, origin, table

BENCHMARKS: dict[str, Callable[[], list[Line]]] = {
    "live": live.lines,
    "replay": offline.replay,
    "demo": offline.demo,
    "workers": offline.workers,
    "growth": offline.growth,
    "unused": offline.unused,
    "reports": reports.lines,
    "tables": tables.lines,
    "label": tables.label,
    "peers": peers.lines,
    "acts": acts.lines,
    "planted": planted.lines,
    "shown": shown.lines,
    "validity": validity.lines,
}
RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> int:
    """Run the named benchmarks, all of them by default; exit 1 where a limit is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--write", action="store_true", help=f"keep the tables in {RESULTS.name}")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    CACHE.mkdir(exist_ok=True)
    # A rootdir of their own: the repository's settings are for its tests.
    (CACHE / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    is_met, measured = True, origin()
    for name in options.names or BENCHMARKS:
        lines = BENCHMARKS[name]()
        section = f"{name}\n\n{_about(name)}\n\n{measured}\n\n{table(lines)}\n"
        print(f"## {section}", flush=True)
        # The figures of `validity` stand in a document of their own.
        if options.write and name != "validity":
            _write(name, section)
        is_met = is_met and all(line.verdict != "NOT MET" for line in lines)
    return int(not is_met)


def _about(name: str) -> str:
    text = BENCHMARKS[name].__doc__ or ""
    return " ".join(text.split())


def _write(name: str, section: str) -> None:
    """Put a section into the place of the one of before; the others stay as they are."""
    head, *before = RESULTS.read_text("utf-8").split("\n## ")
    sections = {text.partition("\n")[0]: text for text in before}
    sections[name] = section
    texts = [sections[title].rstrip("\n") for title in BENCHMARKS if title in sections]
    RESULTS.write_text("\n\n## ".join([head.rstrip("\n"), *texts]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

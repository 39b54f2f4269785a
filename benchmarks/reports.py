"""The HTML report: how large it is, and how long a browser takes to open and to search it."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Line
from pytest_jrh.reports.page import HtmlReport
from tests.support.judged_sessions import coin, judged, session_of, spooled
from tests.support.made_cases import MESSAGES

if TYPE_CHECKING:
    from pytest_jrh.core.cases import Message
    from pytest_jrh.core.results import CaseResult

RUNS = (500, 2_500)
_WORDS_A_TURN = 400
_TURNS = 12
_LARGEST = {500: 11.7, 2_500: 25.0}
_LONGEST = 1.0
_LONGEST_FILTER = 0.1


def lines() -> list[Line]:
    """The HTML report of both tests of 500 runs, and of 2,500, each with some 30 kB of text of its
    own; of the larger report the transcripts do not all fit.

    The slowest of five openings counts. Opened is when all rows are there and the first case is.
    """
    found = []
    for runs in RUNS:
        found += _lines(runs)
    return found


def _lines(runs: int) -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        results = judged(coin(), runs=runs, rubrics=("tone",))
        records = spooled(Path(folder, "spool"), results, _long)
        begun = time.perf_counter()
        HtmlReport().write(path, replace(session_of(results, before=results), records=records))
        written = time.perf_counter() - begun
        size, largest = path.stat().st_size / 1e6, _LARGEST[runs]
        what = f"HTML report of {len(results):,} cases"
        limit = f"limit {largest:g} MB"
        lines = [
            Line(f"{what}, size", f"{size:.1f} MB", limit, size / largest, 1.0),
            Line(f"{what}, written in", f"{written:.1f} s", "", written),
        ]
        chromium = shutil.which("chromium")
        if chromium is not None:
            opened, filtered = map(max, zip(*_timed(chromium, path), strict=True))
            for name, seconds, longest in (
                ("opened in", opened, _LONGEST),
                ("searched and cleared in", filtered, _LONGEST_FILTER),
            ):
                limit = f"limit {longest:g} s"
                figure = f"{seconds:.2f} s"
                lines.append(Line(f"{what}, {name}", figure, limit, seconds / longest, 1.0))
        return lines


def _long(result: CaseResult) -> list[Message]:
    rng = random.Random(result.spec.run_id)
    words = [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 10)))
        for _ in range(2_000)
    ]
    turns = [
        {"id": f"t{number}", "role": role, "content": " ".join(rng.choices(words, k=_WORDS_A_TURN))}
        for number in range(_TURNS // 2)
        for role in ("user", "assistant")
    ]
    return [*turns, *MESSAGES]


_FILTER = """() => {
  const input = document.querySelector("#search");
  let longest = 0;
  for (const words of ["late", "run-1 late", "no such word", ""]) {
    const begun = performance.now();
    input.value = words;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    document.body.getBoundingClientRect();
    longest = Math.max(longest, performance.now() - begun);
  }
  return longest / 1000;
}"""


def _timed(chromium: str, path: Path) -> list[tuple[float, float]]:
    """Seconds from the start of the navigation until the page can be used, in windows of their own,
    and those of the longest search, layout included, once the texts are unpacked.
    """
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(5):
            page = browser.new_page()
            begun = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]")
            page.focus("#search")
            opened = time.perf_counter() - begun
            page.wait_for_timeout(1_000)
            found.append((opened, page.evaluate(_FILTER)))
            page.close()
        browser.close()
    return found

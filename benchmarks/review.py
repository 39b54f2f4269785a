"""The review page with 300 cases of 60 turns, as a browser sees it: the first case, and smooth
scrolling."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measure import Line
from pytest_jrh.review.board import ReviewBoard
from pytest_jrh.review.pages import Deciding
from pytest_jrh.review.serving import serve
from pytest_jrh.store.people import open_stores
from tests.browser.material import made_case, review_suite

CASES, TURNS, TIMES = 300, 60, 3
_FRAME = 1000 / 60
# The first frame in which a case can be read, by the browser's own clock.
_WATCH = """
new MutationObserver(() => {
  if (window.asked || !document.querySelector("#turns .turn")) return;
  window.asked = true;
  requestAnimationFrame(() => setTimeout(() => { window.shown = Date.now(); }));
}).observe(document, { childList: true, subtree: true });
"""
_SCROLL = """
async (selector) => {
  const place = document.querySelector(selector);
  place.scrollTop = 0;
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const times = [];
  let last = await frame();
  while (times.length < 240 && place.scrollTop + place.clientHeight < place.scrollHeight - 1) {
    place.scrollTop += 80;
    const now = await frame();
    times.push(now - last);
    last = now;
  }
  return times;
}
"""


def lines() -> list[Line]:
    """The first case within 1 s of being asked for.

    Frames while the list and a whole transcript are scrolled.
    """
    chromium = shutil.which("chromium")
    missing = [name for name in ("playwright", "starlette", "uvicorn") if find_spec(name) is None]
    if chromium is None or missing:
        why = f"{', '.join(missing)} not installed" if missing else "no chromium"
        return [Line("the review page", f"skipped: {why}", "", 0.0)]
    with _page(chromium) as (context, url):
        seconds = min(_first_case(context, url) for _ in range(TIMES))
        page = context.pages[-1]
        page.keyboard.press("f")
        page.wait_for_selector(f"#turn-{TURNS - 1}")
        turns = page.locator("#turns .turn").count()
        found = [
            Line(
                f"first of {CASES} cases of {TURNS} turns on the review page",
                f"{seconds:.2f} s",
                "1 s",
                seconds,
                1.0,
            )
        ]
        for what, selector in (
            (f"a transcript of {turns} turns", "html"),
            (f"a list of {CASES} cases", "#rail"),
        ):
            found.append(_scrolled(what, page.evaluate(_SCROLL, selector)))
    return found


@contextmanager
def _page(chromium: str) -> Iterator[tuple[Any, str]]:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        suite = review_suite(Path(folder))
        board = ReviewBoard(open_stores([suite]))
        for number in range(CASES):
            board.add(made_case(number, turns=TURNS))
        server = serve(Deciding(board, [suite]).page(), port=0)
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            # Looks at the page by `wait_for_function`, which the content security policy forbids.
            context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
            context.add_init_script(_WATCH)
            yield context, server.url
        finally:
            browser.close()
            server.stop()


def _first_case(context: Any, url: str) -> float:
    page = context.new_page()
    asked = time.time()
    page.goto(url)
    page.wait_for_function("() => window.shown")
    return float(page.evaluate("() => window.shown")) / 1000 - asked


def _scrolled(what: str, frames: list[float]) -> Line:
    """Smooth is what misses no more than one frame of a 60 Hz screen in twenty."""
    ordered = sorted(frames)
    middle, slow = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    figure = f"{middle:.0f} ms p50, {slow:.0f} ms p95 of {len(frames)} frames"
    return Line(
        f"scrolling {what}",
        figure,
        f"{2 * _FRAME:.0f} ms, two frames at 60 Hz",
        slow / (2 * _FRAME),
        1.05,
    )

"""The pictures of README and docs, as Chromium shows them: the page of the worked example of a
changed prompt from disk, served to decide, and served to label blind.

Run as `python -m tools.picture`; it replays the example, whose gate fails, and asks no model.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SUITE = "examples/prompt_change/refund_agent.yml"
BASELINE = "inputs/baselines/refund_agent.json"
HINT = "Prefer a violation that a hurried reader would miss."


def take_of_report(tab: Any) -> None:
    """What a reader of the page sees first."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        options = (f"--jrh-config={SUITE}", f"--jrh-baseline={BASELINE}", f"--jrh-report={report}")
        pytest.main([f"--rootdir={ROOT}", "-q", *options])
        tab.goto(report.as_uri())
        tab.screenshot(path=DOCS / "page.png")


@contextmanager
def served(*options: str) -> Iterator[str]:
    """A session of the example that waits for people, and the address of its page."""
    command = [sys.executable, "-u", "-m", "pytest", f"--jrh-config={SUITE}", *options]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as process:  # noqa: S603 - our own
        try:
            for line in process.stdout or ():
                if found := re.search(r"the cases (?:blind )?at (http\S+)", line):
                    yield found[1]
                    break
        finally:
            process.kill()


def take_of_review(tab: Any) -> None:
    """A case that the judge misses now, and a prompt with a line more than its default."""
    with served("--jrh-review", f"--jrh-baseline={BASELINE}") as address:
        tab.goto(address)
        tab.wait_for_selector("#sub:not(:has-text('still to be made'))")
        # A page that was open before the first verdict came lists all cases.
        tab.click("#filters button:has-text('missed')")
        tab.screenshot(path=DOCS / "review_case.png")
        tab.click("text=Agent Templates")
        tab.wait_for_selector("#difference:not(:empty)")
        text = tab.input_value("#draft")
        tab.fill("#draft", text.replace("\n\n", f"\n\n{HINT}\n\n", 1))
        tab.wait_for_selector("#difference ins")
        tab.eval_on_selector("#draft", "draft => draft.scrollTo(0, 0)")
        tab.screenshot(path=DOCS / "review_templates.png")


def take_of_labels(tab: Any) -> None:
    """A case to label."""
    with served("--jrh-review=blind", "--jrh-reviewer=Ada") as address:
        tab.goto(address)
        tab.wait_for_selector("#answers")
        tab.screenshot(path=DOCS / "label_case.png")


if __name__ == "__main__":
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for take in (take_of_report, take_of_review, take_of_labels):
            page = browser.new_page(viewport={"width": 1440, "height": 1000})
            take(page)
            page.close()
        browser.close()

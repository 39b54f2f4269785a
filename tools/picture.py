"""The README's picture: the page of the worked example of a changed prompt, as Chromium shows it.

Run as `python -m tools.picture`; it replays the example, whose gate fails, and asks no model.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/page.png"
SUITE = "examples/prompt_change/refund_agent.yml"
BASELINE = "inputs/baselines/refund_agent.json"


def take(page: Path) -> None:
    """Take a picture of what a reader of the page sees first."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": 1440, "height": 1000})
        tab.goto(page.as_uri())
        tab.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        options = (f"--jrh-config={SUITE}", f"--jrh-baseline={BASELINE}", f"--jrh-report={report}")
        pytest.main([f"--rootdir={ROOT}", "-q", *options])
        take(report)

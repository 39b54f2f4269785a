"""Headless Chromium, and the pages to open in it.

Without them the tests skip with the reason.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.opened import LabelPages, Sessions

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@pytest.fixture(scope="session", autouse=True)
def _forks(forks: None) -> None:
    """Have the fork server import while the first tests run."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    if not Path(CHROMIUM).exists():
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    for name in ("starlette", "uvicorn"):
        pytest.importorskip(name, reason=f"needs {name} (the extra `review`)")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright (the extra `dev`)"
    )
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture
def sessions(browser: Any, tmp_path: Path) -> Iterator[Sessions]:
    opened = Sessions(browser, tmp_path)
    yield opened
    opened.end()


@pytest.fixture
def pages(browser: Any, tmp_path: Path) -> Iterator[LabelPages]:
    opened = LabelPages(browser, tmp_path)
    yield opened
    opened.end()

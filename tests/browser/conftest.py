"""Headless Chromium, and a review page to open in it.

Without them the tests skip with the reason.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.review.agent_templates import AgentTemplates
from pytest_jrh.review.board import ReviewBoard
from pytest_jrh.review.pages import DecidePage
from pytest_jrh.review.serving import ReviewServer, serve
from pytest_jrh.store.decisions import open_stores
from tests.browser.labelling import Labelling
from tests.browser.material import review_suite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_jrh.config.suite import Suite

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@pytest.fixture(scope="session", autouse=True)
def _forks(forks: None) -> None:
    """Have the fork server import while the first tests run."""


@pytest.fixture(scope="module")
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


@dataclass
class Session:
    """The review of one pytest session: its board, and the page that it serves."""

    suite: Suite
    board: ReviewBoard
    server: ReviewServer


@dataclass
class Sessions:
    """Starts sessions over one folder, and opens their pages.

    `complaints` is what the browser said meanwhile.
    """

    browser: Any
    folder: Path
    complaints: list[str] = field(default_factory=list)
    running: list[Session] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)

    def start(self, *others: str) -> Session:
        """Start a session of the suite `refunds`, and of others with these names."""
        suite = review_suite(self.folder)
        suites = [suite, *(replace(suite, name=name) for name in others)]
        board = ReviewBoard(open_stores(suites))
        session = Session(suite, board, serve(DecidePage(board, AgentTemplates(suites)), port=0))
        self.running.append(session)
        return session

    def page(
        self, session: Session, *, width: int = 1280, scheme: str = "light", height: int = 900
    ) -> Any:
        """Open the page in a browser of its own, that was let in by the session's address."""
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        context.set_default_timeout(15_000)
        self.contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: self.complaints.append(f"{message.type}: {message.text}")
        )
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.goto(session.server.url)
        page.wait_for_selector("#counts")
        return page

    def end(self) -> None:
        for context in self.contexts:
            context.close()
        for session in self.running:
            session.server.stop()


@pytest.fixture
def sessions(browser: Any, tmp_path: Path) -> Iterator[Sessions]:
    started = Sessions(browser, tmp_path)
    yield started
    started.end()
    # What the policy blocks, and what fails in a script, is written to the console.
    assert started.complaints == []


@pytest.fixture
def pages(browser: Any, tmp_path: Path) -> Iterator[Labelling]:
    started = Labelling(browser, tmp_path)
    yield started
    started.end()
    assert started.complaints == []

"""Pages that are served and opened in browsers of their own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_jrh.config.suite import Suite
from pytest_jrh.people import DecisionStore
from pytest_jrh.people.board import LabelBoard, ReviewBoard
from pytest_jrh.review import Deciding, Labelling
from pytest_jrh.review.serving import Page, ReviewServer, serve
from tests.browser.material import review_suite
from tests.support.fork_server import python


@dataclass
class Opened:
    """Serves pages and opens them; `complaints` is what the browsers said meanwhile."""

    browser: Any
    folder: Path
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)
    servers: list[ReviewServer] = field(default_factory=list)

    def serve(self, page: Page) -> ReviewServer:
        self.servers.append(serve(page, port=0))
        return self.servers[-1]

    def open(self, url: str, *, width: int = 1280, ready: str = "#headline") -> Any:
        """Open a page in a browser of its own."""
        context = self.browser.new_context(viewport={"width": width, "height": 900})
        context.set_default_timeout(15_000)
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(url)
        page.wait_for_selector(ready)
        return page

    def _heard(self, message: Any) -> None:
        # A piece of information is no complaint, such as that focus was there already.
        if message.type != "info":
            self.complaints.append(f"{message.type}: {message.text}")

    def end(self) -> None:
        for context in self.contexts:
            context.close()
        for server in self.servers:
            server.stop()
        # What the policy blocks, and what fails in a script, is written to the console.
        assert self.complaints == [], self.complaints


@dataclass
class Session:
    """The review of one pytest session: its board, and the page that it serves."""

    suite: Suite
    board: ReviewBoard
    server: ReviewServer


class Sessions(Opened):
    """Sessions over one folder, in which people decide."""

    def start(self, *others: str) -> Session:
        """Start a session of the suite `refunds`, and of others with these names."""
        suite = review_suite(self.folder)
        suites = [suite, *(replace(suite, name=name) for name in others)]
        board = ReviewBoard(DecisionStore(suites))
        return Session(suite, board, self.serve(Deciding(board, suites)))

    def page(self, session: Session, **look: Any) -> Any:
        return self.open(session.server.url, **look)


class LabelPages(Opened):
    """Pages of blind labelling."""

    def start(self, board: LabelBoard) -> str:
        return self.serve(Labelling(board)).url

    def page(self, url: str, *, name: str | None = "ann", **look: Any) -> Any:
        """Open the page, and give the name that it asks for."""
        page = self.open(url, **look)
        page.wait_for_selector("#enter[open]")
        if name is None:
            return page
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        is_me = "#enter [data-do=same]"
        page.wait_for_selector(f"#enter:not([open]), {is_me}", state="attached")
        for button in page.query_selector_all(is_me)[:1]:
            button.click()
        page.wait_for_selector("#enter:not([open])", state="attached")
        page.wait_for_selector("#answers")
        return page


@contextmanager
def page_process(kind: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A page of this kind (`label`) in a process of its own, and its address."""
    command = [*python(), "-m", "tests.browser.page_process", kind, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()

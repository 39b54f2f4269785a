"""A real pytest session with the page open, a model on loopback behind it, and a browser in front
of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.plugin.test_stopping import PATIENCE, read_until, running
from tests.support.fork_server import python

if TYPE_CHECKING:
    import subprocess

    from tests.support.model_server import ModelServer
    from tests.support.suites import SuiteFiles


@dataclass
class Live:
    """The session and its page."""

    process: subprocess.Popen[str]
    page: Any

    def row(self, run: str) -> Any:
        """A case in the list."""
        return self.page.locator(f"#rows li:has(.name bdi:text-is('{run}'))")

    def open(self, run: str) -> None:
        """Go to a case."""
        self.row(run).locator("a").click()
        self.page.wait_for_selector(f"#case-title:has-text('{run}')")

    def wait_status(self, run: str, status: str) -> None:
        """Wait until the list shows a decision."""
        self.page.wait_for_selector(
            f"#rows li[data-status={status}]:has(.name bdi:text-is('{run}'))"
        )

    def save_template(self, name: str, text: str) -> None:
        """Save an override in the dialog, and close it."""
        self._open_template(name)
        self.page.fill("#template-text", text)
        self.page.click("#template-save")
        self.page.wait_for_selector("#template-says:has-text('used from the next run on')")
        self.page.keyboard.press("Escape")

    def revert_template(self, name: str) -> None:
        """Delete an override in the dialog, and close it."""
        self._open_template(name)
        self.page.once("dialog", lambda dialog: dialog.accept())
        self.page.click("#template-revert")
        self.page.wait_for_selector("#template-says:has-text('Reverted')")
        self.page.keyboard.press("Escape")

    def finalize(self) -> str:
        """End the review on the page; what the session prints from then on."""
        self.page.click("#open-finish")
        self.page.click("#finish-now")
        rest, _ = self.process.communicate(timeout=PATIENCE)
        self.page.wait_for_selector("#banner:has-text('The run has ended')")
        return str(rest)

    def _open_template(self, name: str) -> None:
        self.page.click("#open-templates")
        self.page.locator("#template-list button", has_text=re.compile(name)).first.click()
        self.page.wait_for_selector("#template-file:not(:empty)")


@contextmanager
def live(browser: Any, suite: SuiteFiles, server: ModelServer, *arguments: str) -> Iterator[Live]:
    """Start a session of the suite with the page, and open it."""
    with running(
        suite,
        server,
        "--jrh-record-mode=new_episodes",
        "--jrh-review",
        *arguments,
        interpreter=python(),
    ) as process:
        said = read_until(process, "jrh: review the cases at")
        [url] = re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S+", said)
        page = browser.new_page()
        page.set_default_timeout(30_000)
        page.goto(url)
        try:
            yield Live(process, page)
        finally:
            page.close()

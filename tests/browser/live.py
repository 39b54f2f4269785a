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
        return self.page.locator(f"#list a:has(.where:has-text('{run} ·'))")

    def open(self, run: str) -> None:
        """Go to a case."""
        self.row(run).click()
        self.page.wait_for_selector(f"#about:has-text('{run}')")

    def wait_decision(self, run: str, decision: str) -> None:
        """Wait until the list shows a decision."""
        self.row(run).locator(f".tag:text-is('{decision}')").wait_for()

    def save_template(self, name: str, text: str) -> None:
        """Save an override in the dialog, and close it."""
        self._open_template(name)
        self.page.fill("#draft", text)
        self.page.click("#templates button:text-is('Save')")
        self.page.wait_for_selector("#template-status:has-text('used from the next run on')")
        self.page.keyboard.press("Escape")

    def revert_template(self, name: str) -> None:
        """Delete an override in the dialog, and close it."""
        self._open_template(name)
        self.page.once("dialog", lambda dialog: dialog.accept())
        self.page.click("#templates button:text-is('Revert to the default')")
        self.page.wait_for_selector("#template-status:has-text('Reverted')")
        self.page.keyboard.press("Escape")

    def finish(self) -> str:
        """End the review on the page; what the session prints from then on."""
        self.page.click("#finish")
        self.page.click("#end button:text-is('Finish')")
        rest, _ = self.process.communicate(timeout=PATIENCE)
        self.page.wait_for_selector("#banner:has-text('The run has ended')")
        return str(rest)

    def _open_template(self, name: str) -> None:
        self.page.click("text=Agent Templates")
        self.page.wait_for_selector("#template option", state="attached")
        titles = self.page.locator("#template option").all_inner_texts()
        self.page.select_option(
            "#template",
            index=next(index for index, title in enumerate(titles) if re.search(name, title)),
        )
        self.page.wait_for_selector("#difference:not(:empty)")


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

"""Pages of blind labelling, in browsers of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.review.pages import LabelPage
from pytest_jrh.review.serving import serve

if TYPE_CHECKING:
    from pytest_jrh.review.blind import LabelBoard
    from pytest_jrh.review.serving import ReviewServer


@dataclass
class Labelling:
    """Pages of blind labelling, in browsers of their own; `complaints` is what these said."""

    browser: Any
    folder: Path
    complaints: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)
    servers: list[ReviewServer] = field(default_factory=list)

    def start(self, board: LabelBoard) -> str:
        self.servers.append(serve(LabelPage(board), port=0))
        return self.servers[-1].url

    def page(self, url: str, *, name: str = "ann", **look: Any) -> Any:
        """Open the page, and give the name that it asks for."""
        context = self.browser.new_context(
            viewport={"width": look.get("width", 1280), "height": 900},
            color_scheme=look.get("scheme", "light"),
        )
        context.set_default_timeout(15_000)
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.goto(url)
        if name:
            page.wait_for_selector("#enter[open]")
            page.keyboard.type(name)
            page.keyboard.press("Enter")
            page.wait_for_selector("#case article")
        return page

    def end(self) -> None:
        for context in self.contexts:
            context.close()
        for server in self.servers:
            server.stop()

"""`python -m pytest_jrh label` in a process of its own, and one who labels without a browser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli import label
from pytest_jrh.core.model import Case
from pytest_jrh.review.blind import LabelBoard
from pytest_jrh.review.serving import Page


@contextmanager
def label_process(
    folder: Path, *arguments: str, python: tuple[str, ...] = (sys.executable,)
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it prints."""
    command = [*python, "-m", "pytest_jrh", "label", *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            seen = [process.stdout.readline(), process.stdout.readline()]
            found = re.search(r"label them at (http\S+)", seen[1])
            assert found, seen + process.stdout.readlines()
            yield process, found[1]
        finally:
            process.kill()


def label_here(
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str,
    say: Callable[[Case], int | None] = lambda _case: 1,
    name: str = "ann",
) -> list[Case]:
    """Label all that the command shows, in this process; gives the cases as they come."""
    cases: list[Case] = []

    def serve(page: Page) -> Any:
        board = page.board
        assert isinstance(board, LabelBoard)
        reviewer, _ = board.enter(name)
        for one in board.assigned(reviewer):
            cases.append(one.entry.case)
            board.give(reviewer, one.key, say(one.entry.case))
        board.finalize()
        return SimpleNamespace(url="http://127.0.0.1/", stop=lambda: None)

    monkeypatch.setattr(label, "serve", serve)
    monkeypatch.setattr(label, "SECONDS_BETWEEN_LOOKS", 0)
    assert main(["label", *arguments]) == 0
    return cases

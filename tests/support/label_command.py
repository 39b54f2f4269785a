"""`python -m pytest_jrh label` in a process of its own, and one who labels without a browser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from pytest_jrh.__main__ import main
from pytest_jrh.cli import label
from pytest_jrh.core.model import Case
from pytest_jrh.review.blind import LabelBoard
from pytest_jrh.review.serving import Page


@contextmanager
def label_process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it prints."""
    command = [sys.executable, "-m", "pytest_jrh", "label", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
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
    *arguments: str,
    labels: Mapping[str, int | None] = MappingProxyType({}),
    name: str = "ann",
    again: bool = True,
) -> list[Case]:
    """Label all that the command shows, in this process, with 1 where `labels` do not have the run;
    gives the cases as they come. What is labelled is labelled `again`, or left out.
    """
    cases: list[Case] = []

    def serve(page: Page) -> Any:
        board = page.board
        assert isinstance(board, LabelBoard)
        reviewer, _ = board.enter(name)
        for assigned in board.assigned(reviewer):
            if again or assigned.is_open:
                case = assigned.entry.case
                cases.append(case)
                board.give(reviewer, assigned.key, labels.get(case.spec.run_id, 1))
        board.finalize()
        return SimpleNamespace(url="http://127.0.0.1/", stop=lambda: None)

    with patch.object(label, "serve", serve):
        assert main(["label", *arguments]) == 0
    return cases

"""A review page in a process of its own, so that a test can kill it: `python -m
tests.browser.page_process FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_jrh.review.agent_templates import AgentTemplates
from pytest_jrh.review.board import ReviewBoard
from pytest_jrh.review.pages import DecidePage
from pytest_jrh.review.serving import serve
from pytest_jrh.store.decisions import open_stores
from tests.browser.material import made_case, review_suite

if __name__ == "__main__":
    suite = review_suite(Path(sys.argv[1]))
    board = ReviewBoard(open_stores([suite]))
    for number in range(4):
        board.add(made_case(number))
    print(serve(DecidePage(board, AgentTemplates([suite])), port=0).url, flush=True)  # noqa: T201
    sys.stdin.read()

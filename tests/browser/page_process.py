"""A page in a process of its own, so that a test can kill it: `python -m
tests.browser.page_process decide|label FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_jrh.people.board import ReviewBoard
from pytest_jrh.people.decisions import DecisionStore
from pytest_jrh.people.labels import read_people
from pytest_jrh.review import Deciding, Labelling
from pytest_jrh.review.serving import Page, serve
from tests.browser.material import made_case, review_suite
from tests.support.blind import all_kinds, blind_suite, labelling


def decide(folder: Path) -> Page:
    suite = review_suite(folder)
    board = ReviewBoard(DecisionStore([suite]))
    for number in range(4):
        board.add(made_case(number))
    return Deciding(board, [suite])


def label(folder: Path) -> Page:
    suite = blind_suite(folder, sample=6)
    return Labelling(labelling(suite, all_kinds(12), read_people(suite)))


if __name__ == "__main__":
    open_page = {"decide": decide, "label": label}[sys.argv[1]]
    print(serve(open_page(Path(sys.argv[2])), port=0).url, flush=True)  # noqa: T201
    sys.stdin.read()

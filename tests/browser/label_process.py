"""A page of blind labelling in a process of its own, so that a test can kill it: `python -m
tests.browser.label_process FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_jrh.review.pages import LabelPage
from pytest_jrh.review.serving import serve
from pytest_jrh.store.labels import read_people
from tests.support.blind import all_kinds, blind_suite, labelling

if __name__ == "__main__":
    suite = blind_suite(Path(sys.argv[1]), sample=6)
    board = labelling(suite, all_kinds(12), read_people(suite))
    print(serve(LabelPage(board), port=0).url, flush=True)  # noqa: T201
    sys.stdin.read()

"""A page of blind labelling in a process of its own, so that a test can kill it: `python -m
tests.browser.page_process label FOLDER`."""

import sys
from pathlib import Path

from pytest_jrh.people.labels import read_people
from pytest_jrh.review import Labelling
from pytest_jrh.review.serving import serve
from tests.support.blind import all_kinds, blind_suite, labelling

if __name__ == "__main__":
    suite = blind_suite(Path(sys.argv[2]), sample=6)
    page = Labelling(labelling(suite, all_kinds(12), read_people(suite)))
    print(serve(page, port=0).url, flush=True)  # noqa: T201
    sys.stdin.read()

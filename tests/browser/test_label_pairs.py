"""Pairs labelled without a suite in Chromium, by two people, and what takes the labels."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from pytest_jrh.cli.checking import check_table
from pytest_jrh.core.scales import code_of
from tests.browser.opened import LabelPages
from tests.browser.test_blind_labelling import finish, wait_count, wait_number
from tests.support.label_session import labelling_session

NUMBER = 12
HOSTILE = "<script>document.title='x'</script><img src=x onerror=alert(1)> ![a](javascript:x)"
WORDS = {"a": "first", "b": "second", "t": "tie", "c": "cannot tell"}


def key_of(person: str, number: int) -> str:
    """Each answer is the better one of a third, and the others are ties; the second person cannot
    tell the last three, one of each.
    """
    if person == "ben" and number >= NUMBER - len("abt"):
        return "c"
    return "abt"[number % 3]


def test_pairs_by_two_people(pages: LabelPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pages.folder)
    with Path("pairs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "answer_a", "answer_b", "model_a", "model_b", "verdict"])
        for number in range(NUMBER):
            answers = [f"left {number} {HOSTILE}", f"right {number} {HOSTILE}"]
            writer.writerow([f"p{number}", f"question {number}", *answers, "gpt", "llama", "first"])
    for person in ("ann", "ben"):
        rubric = "better: The answer is to the point."
        command = ("label", "pairs.csv", "--rubric", rubric, "--reviewer", person)
        with labelling_session(Path(), *command, module="pytest_jrh") as (process, url):
            page = pages.page(url, name="")
            for place in range(NUMBER):
                wait_number(page, place + 1)
                shown = page.inner_text("#turns")
                [number] = map(int, re.findall(r"left (\d+) <script>", shown))
                assert f"right {number} <script>" in shown
                # Side by side, and nothing says whose answers they are.
                left, right = [
                    answer.bounding_box() for answer in page.locator(".pair .turn").all()
                ]
                assert (left["y"], left["x"] < right["x"]) == (right["y"], True)
                assert not re.search("gpt|llama", page.content())
                page.keyboard.press(key_of(person, number))
                wait_count(page, place + 1, NUMBER)
            # Buttons and list have one word for an answer.
            words = {*page.locator("#list .tag").all_text_contents()}
            assert words <= {*page.locator("#answers [data-do=answer] span").all_text_contents()}
            assert page.title() != "x"
            assert page.locator("#turns :is(script, img, a)").count() == 0
            finish(page)
            assert process.wait(15) == 0
            page.close()
    with Path("labels.csv").open(newline="", encoding="utf-8") as file:
        labels = [(row["annotator"], row["case_id"], row["label"]) for row in csv.DictReader(file)]
    assert len(labels) == 2 * NUMBER
    for person, case, word in labels:
        assert word == WORDS[key_of(person, int(case.removeprefix("p")))]
    # Of the last three one of two cannot tell, and half is no majority.
    checked = check_table("pairs.csv", pairs=True, labels="labels.csv")
    counted = Counter(result.label for result in checked.results)
    assert [counted[code_of(word)] for word in ("first", "second", "tie")] == [NUMBER // 3 - 1] * 3

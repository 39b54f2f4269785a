"""A file labelled without a suite in Chromium, by two people, and what takes the labels."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli.checking import check_table
from pytest_jrh.engine.suite import make_ready
from pytest_jrh.stats.people import Agreement, Votes, agreement
from tests.browser.opened import LabelPages
from tests.browser.test_blind_labelling import finish, wait_count, wait_number
from tests.support.label_session import labelling_session
from tests.support.sessions import as_text

RUBRIC = "polite: The answer is polite."
NUMBER = 30
DISPUTED = 8


def write_cases() -> None:
    """A table of verdicts, and a log of the same cases."""
    rows, runs = ["id,question,answer,verdict,reasoning\n"], []
    for number in range(NUMBER):
        word = "satisfied" if number % 2 else "violated"
        rows.append(f"run-{number},question {number},answer {number},{word},The judge thinks\n")
        turns = [{"role": "assistant", "content": f"answer {number}"}]
        runs.append({"id": f"run-{number}", "messages": turns})
    Path("cases.csv").write_text("".join(rows), encoding="utf-8")
    Path("runs.jsonl").write_text(as_text(runs), encoding="utf-8")


def key_of(person: str, number: int) -> str:
    """Every third is violated; on the first eight the second person is of another opinion, and
    cannot tell the last.
    """
    if (person, number) == ("ben", NUMBER - 1):
        return "c"
    return "v" if (number % 3 == 0) != (person == "ben" and number < DISPUTED) else "s"


def test_thirty_cases_by_keyboard_by_two_people_go_into_check_and_a_suite(
    pages: LabelPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pages.folder)
    write_cases()
    for person in ("ann", "ben"):
        command = ("label", "cases.csv", "--rubric", RUBRIC, "--reviewer", person)
        with labelling_session(Path(), *command, module="pytest_jrh") as (process, url):
            page = pages.page(url, name="")
            wait_number(page, 1)
            if person == "ann":
                # A label that could not be written is not taken for one, nor on a narrow screen.
                Path("labels.csv").mkdir()
                page.set_viewport_size({"width": 390, "height": 900})
                with page.expect_console_message():
                    page.keyboard.press("v")
                page.wait_for_selector("#banner:has-text('Not saved: labels.csv: ')")
                pages.complaints.pop()
                page.set_viewport_size({"width": 1280, "height": 900})
                wait_count(page, 0, NUMBER)
                Path("labels.csv").rmdir()
            for place in range(NUMBER):
                wait_number(page, place + 1)
                shown = page.inner_text("#turns")
                [number] = re.findall(r"answer (\d+)", shown)
                assert f"question {number}" in shown
                assert "The judge thinks" not in page.content()
                if (person, number) == ("ann", "2"):
                    page.keyboard.press("n")
                    page.keyboard.type("a note")
                    page.keyboard.press("Escape")
                page.keyboard.press(key_of(person, int(number)))
                wait_count(page, place + 1, NUMBER)
            finish(page)
            page.wait_for_selector(f"#sub:has-text('Your {NUMBER} labels are saved in labels.csv')")
            assert process.wait(15) == 0
            page.close()
    with Path("labels.csv").open(newline="", encoding="utf-8") as file:
        labels = [(row["annotator"], row["case_id"], row["label"]) for row in csv.DictReader(file)]
    assert len(labels) == 2 * NUMBER
    for person, case, word in labels:
        assert word[0] == key_of(person, int(case.removeprefix("run-")))
    # By hand, of those on which all agree: 7 violated, of which 4 are odd, and 14 satisfied, of
    # which 8 are even. Of the last case one of two cannot tell, and half is no majority.
    assert verdicts_by_label() == (4, 3, 8, 6)
    Path("judges.py").write_text("def words(case):\n    return 0, ''\n", encoding="utf-8")
    suite = ["--log=runs.jsonl", "--labels=labels.csv", f"--rubric={RUBRIC}"]
    assert main(["init", "desk", *suite, "--judge=python:judges.py:words"]) == 0
    config = Path("inputs/configs/desk.yml").resolve()
    ready = make_ready(config, cwd=pages.folder, rootdir=pages.folder)
    votes = {run: sorted(label.votes) for (_, run, _), label in ready.labels.items()}
    assert len(votes) == NUMBER - 1
    assert [votes[f"run-{number}"] for number in (0, 9, NUMBER - 2)] == [[0, 1], [1, 1], [0, 0]]
    agreement_before = agreed(ready.grounds.votes)
    assert agreement_before.raw.value == pytest.approx(1 - DISPUTED / (NUMBER - 1))

    # All 9 on which they disagree are settled by keyboard: ann was right, and the last is violated.
    command = ("label", "cases.csv", "--rubric", RUBRIC, "--disagreements", "labels.csv")
    with labelling_session(Path(), *command, module="pytest_jrh") as (process, url):
        page = pages.page(url, name="cy")
        for place in range(DISPUTED + 1):
            wait_number(page, place + 1)
            [number] = map(int, re.findall(r"answer (\d+)", page.inner_text("#turns")))
            said = page.inner_text(".votes").split()
            words = {"v": "breaks", "s": "keeps", "c": "cannot"}
            assert [word for word in said if word in words.values()] == [
                words[key_of(person, number)] for person in ("ann", "ben")
            ]
            assert ("a note" in page.inner_text(".votes")) == (number == 2)
            assert "The judge thinks" not in page.content()
            page.keyboard.press("v" if number == NUMBER - 1 else key_of("ann", number))
            page.wait_for_selector(f"#headline:text-is('Settled: {place + 1} of 9')")
        finish(page)
        assert process.wait(15) == 0
        page.close()
    with Path("labels.csv").open(newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    assert Counter(row["split"] for row in rows) == {"": 2 * NUMBER, "settled": DISPUTED + 1}
    # 11 violated, of which 6 are odd, and 19 satisfied, of which 10 are even.
    assert verdicts_by_label() == (6, 5, 10, 9)
    Path("inputs/data/desk/labels.csv").write_bytes(Path("labels.csv").read_bytes())
    ready = make_ready(config, cwd=pages.folder, rootdir=pages.folder)
    values = {run: label.value for (_, run, _), label in ready.labels.items()}
    assert len(values) == NUMBER
    assert [values[f"run-{number}"] for number in (0, 1, NUMBER - 1)] == [1, 0, 1]
    assert agreed(ready.grounds.votes) == agreement_before


def agreed(votes: Votes | None) -> Agreement:
    assert votes is not None
    return agreement(votes)


def verdicts_by_label() -> tuple[int, int, int, int]:
    """How many violations the judge misses and finds, and its false alarms and what it passes."""
    checked = check_table("cases.csv", labels="labels.csv")
    counts = Counter((result.label, result.score) for result in checked.results)
    return counts[1, 0], counts[1, 1], counts[0, 1], counts[0, 0]
